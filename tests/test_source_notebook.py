"""Notebooks: code cells as Python, shell lines as commands, places in the .ipynb file."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flake8_gpu_training.facts import ProblemKind
from flake8_gpu_training.sources.notebook import read_notebook


def cell(source, kind="code", **more):
    return {"cell_type": kind, "metadata": {}, "outputs": [], "source": source, **more}


def notebook(*sources, **more):
    cells = [source if isinstance(source, dict) else cell(source) for source in sources]
    return json.dumps({"cells": cells, "nbformat": 4, "nbformat_minor": 5, **more}, indent=1)


def lines(source):
    return source.splitlines(keepends=True)


def at(text, location):
    """What stands at a place of the file."""
    return text.splitlines()[location.line - 1][location.column - 1 :]


def read(*sources, **more):
    text = notebook(*sources, **more)
    facts = read_notebook(text, "sft.ipynb")
    assert facts.problems == ()
    return text, facts


TRAIN = lines(
    """\
from torch.utils.data import DataLoader
print("batch\\t", 8); loader = DataLoader(data, num_workers=4)
"""
)


def test_calls_have_their_places_in_the_file():
    text, facts = read("import torch", TRAIN)
    (call,) = facts.calls_to("torch.utils.data.DataLoader")
    assert at(text, call.location).startswith("DataLoader(data")
    assert at(text, call.keywords["num_workers"].location).startswith(("num_workers=4", "4)"))


def test_a_source_in_one_string_has_its_place():
    text, facts = read("".join(TRAIN))
    (call,) = facts.calls_to("torch.utils.data.DataLoader")
    assert at(text, call.location).startswith("DataLoader(data")


def test_names_go_on_from_cell_to_cell():
    _, facts = read("import torch.utils.data as d", "d.DataLoader(x)")
    assert [call.name for call in facts.calls] == ["torch.utils.data.DataLoader"]


def test_magics_and_shell_lines_leave_the_python_around_them():
    source = lines(
        """\
%load_ext autoreload
import torch
!nvidia-smi
if True:
    !pip install -q vllm==0.6.3
files = !ls
%time torch.compile(model)
torch.compile?
"""
    )
    text, facts = read(source)
    assert "torch.compile" in [call.name for call in facts.calls]
    assert [command.text for command in facts.shell] == [
        "nvidia-smi", "pip install -q vllm==0.6.3", "ls"
    ]  # fmt: skip
    assert at(text, facts.shell[1].location).startswith("pip install")


def test_a_percent_in_python_is_no_magic():
    _, facts = read("import torch\nx = (5\n%d)\ntorch.compile(x)", 's = """\n!rm x\n"""')
    assert [call.name for call in facts.calls] == ["torch.compile"]
    assert facts.shell == ()


def test_a_command_over_several_lines_is_one():
    text, facts = read("!accelerate launch \\\n  --num_processes {n} \\\n  train.py --bf16")
    (command,) = facts.shell
    assert [word.text for word in command.words][-2:] == ["train.py", "--bf16"]
    assert not isinstance(command.words[3].value, str)
    assert at(text, command.words[-1].location).startswith("--bf16")


def test_bash_cells_are_scripts():
    text, facts = read("%%bash\nexport NCCL_DEBUG=INFO\ntorchrun train.py --lr 1e-4")
    (command,) = facts.shell
    assert command.name == "torchrun"
    assert command.environment["NCCL_DEBUG"].value == "INFO"
    assert at(text, command.location).startswith("torchrun")


def test_cells_an_editor_marks_as_shell_are_scripts():
    marked = cell("swift sft --model x", metadata={"vscode": {"languageId": "shellscript"}})
    other = cell("SELECT 1", metadata={"vscode": {"languageId": "sql"}})
    _, facts = read(marked, other)
    assert [command.name for command in facts.shell] == ["swift"]


def test_written_files_are_kept():
    text, facts = read(lines('%%writefile ds.json\n{"train_batch_size": 8}\n'))
    (written,) = facts.heredocs
    assert (written.target, written.text.strip()) == ("ds.json", '{"train_batch_size": 8}')
    assert at(text, written.location).startswith('{\\"train_batch_size')


def test_magics_that_install_run_and_set():
    _, facts = read(
        "%cd work\n%env CUDA_VISIBLE_DEVICES=0,1\n%pip install trl==0.12.0\n%run train.py --bf16"
    )
    install, run = facts.shell
    assert install.text == "pip install trl==0.12.0"
    assert (run.text, run.directory) == ("python train.py --bf16", "work")
    assert run.environment["CUDA_VISIBLE_DEVICES"].value == "0,1"
    assert [(item.name, item.value) for item in facts.environment] == [
        ("CUDA_VISIBLE_DEVICES", "0,1")
    ]


def test_a_timed_cell_is_python_and_other_languages_are_not():
    _, facts = read("%%time\nimport torch\ntorch.compile(m)", "%%html\n<b>torch.compile(x)</b>")
    assert [call.name for call in facts.calls] == ["torch.compile"]


def test_top_level_await_is_python():
    _, facts = read("import torch\nawait x\ntorch.compile(m)")
    assert [call.name for call in facts.calls] == ["torch.compile"]


def test_a_broken_cell_is_a_problem_and_the_others_are_read():
    text = notebook("print 'python 2'", "import torch\ntorch.compile(m)")
    facts = read_notebook(text, "x.ipynb")
    assert [call.name for call in facts.calls] == ["torch.compile"]
    (problem,) = facts.problems
    assert problem.kind is ProblemKind.SYNTAX
    assert at(text, problem.location).startswith("print 'python 2'")


def test_markdown_and_outputs_are_no_code():
    shown = {"data": {"application/json": {"cells": [cell("import torch")], "source": "!ls"}}}
    _, facts = read(cell("import torch", "markdown"), cell("x = 1", outputs=[shown]))
    assert facts.imports == ()
    assert facts.shell == ()


def test_the_third_format_is_read():
    old = {
        "cell_type": "code",
        "input": ["import torch\n", "torch.compile(m)"],
        "language": "python",
    }
    text = json.dumps({"worksheets": [{"cells": [old]}], "nbformat": 3})
    assert [call.name for call in read_notebook(text, "x.ipynb").calls] == ["torch.compile"]


def test_another_kernel_has_no_python():
    metadata = {"kernelspec": {"language": "R", "name": "ir"}}
    _, facts = read("torch.compile(m)", metadata=metadata)
    assert facts.calls == ()


@pytest.mark.parametrize("text", ["", "{", '{"cells": [', "[" * 100_000, '{"cells": [{]}', "x"])
def test_broken_notebooks_are_a_problem(text):
    facts = read_notebook(text, "x.ipynb")
    assert len(facts.problems) == 1


@pytest.mark.parametrize("text", ["[]", "{}", "1", '{"cells": 5}', '{"cells": [1, {}]}'])
def test_odd_notebooks_do_not_raise(text):
    read_notebook(text, "x.ipynb")


CODE = st.sampled_from(
    ["!ls", "%env A=1", "%%bash", "\n", "import torch", "x = ", "torch.compile(m)", "\\\n", '"""',
     "  ", "if x:", "{n}", "%%writefile a", "%", "!", "?", "%time ", "é\t\""]
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(CODE, max_size=8).map("".join), max_size=3))
def test_no_cells_raise_and_every_place_is_in_the_file(sources):
    text = notebook(*[lines(source) for source in sources])
    facts = read_notebook(text, "x.ipynb")
    count = text.count("\n") + 1
    found = [call.location for call in facts.calls] + [command.location for command in facts.shell]
    assert all(1 <= location.line <= count for location in found)


@settings(max_examples=100, deadline=None)
@given(
    st.text('{}[]",:\\ acels', max_size=40)
    | st.binary(max_size=40)
    | st.integers(0, 300).map(lambda cut: notebook("import torch", ["!ls\n", "x"])[:cut])
)
def test_no_input_raises(data):
    read_notebook(data, "x.ipynb")


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["n = 4", "!torchrun --nproc_per_node {n} t.py $n"], "torchrun --nproc_per_node 4 t.py 4"),
        (["n = 4\n!python t.py $n\n"], "python t.py 4"),
        (["n = 4", "n = count()", "!python t.py $n"], "python t.py $n"),
        (["for n in (1, 2): pass", "!python t.py $n"], "python t.py $n"),
        (["!python t.py $n", "n = 4"], "python t.py $n"),
        (["n = 4", "%%bash\npython t.py $n"], "python t.py $n"),
    ],
)
def test_shell_lines_get_the_constants_of_the_python_before(
    cells: list[str], expected: str
) -> None:
    source = [{"cell_type": "code", "source": cell} for cell in cells]
    (command,) = read_notebook(json.dumps({"cells": source}), "n.ipynb").shell
    assert command.text == expected
    assert "n" not in command.environment


def test_shell_lines_inherit_the_environment_that_python_set() -> None:
    cells = [
        'import os\nos.environ["GPUS"] = "2"\nos.environ["X"] = f()',
        "%%bash\npython t.py $GPUS",
    ]
    source = [{"cell_type": "code", "source": cell} for cell in cells]
    (command,) = read_notebook(json.dumps({"cells": source}), "n.ipynb").shell
    assert command.text == "python t.py 2"
    assert {name: s.value for name, s in command.environment.items()} == {"GPUS": "2"}
