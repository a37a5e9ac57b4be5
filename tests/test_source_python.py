"""What the Python reader promises: names resolved, values known or Unknown, exact places."""

from __future__ import annotations

import ast
from itertools import accumulate
from typing import Any, Optional

import libcst as cst
import pytest

from flake8_gpu_training.facts import Call, ProblemKind, PythonFile, Unknown, known
from flake8_gpu_training.sources import _python_positions
from flake8_gpu_training.sources._python_positions import counted_spans, provided_spans
from flake8_gpu_training.sources._python_thinning import thin
from flake8_gpu_training.sources.python import is_relevant, read_imports, read_python


def read(source: str) -> PythonFile:
    return read_python(source, "train.py")


def call(facts: PythonFile, name: str) -> Call:
    found = list(facts.calls_to(name))
    assert len(found) == 1, [item.name for item in facts.calls]
    return found[0]


def value_of(expression: str, before: str = "") -> Any:
    source = (
        f"import os\nimport torch\nfrom trl import SFTConfig\n{before}\nSFTConfig(x={expression})\n"
    )
    return call(read(source), "trl.SFTConfig").keywords["x"].value


@pytest.mark.parametrize(
    ("line", "written"),
    [
        ("from torch.utils.data import DataLoader", "DataLoader"),
        ("from torch.utils.data import DataLoader as DL", "DL"),
        ("from torch.utils import data as D", "D.DataLoader"),
        ("import torch.utils.data as tud", "tud.DataLoader"),
        ("import torch", "torch.utils.data.DataLoader"),
    ],
)
def test_names_are_resolved_through_every_form_of_import(line: str, written: str) -> None:
    facts = read(f"{line}\nloader = {written}(ds, num_workers=2)\n")
    found = call(facts, "torch.utils.data.DataLoader")
    assert found.assigned_to == "loader"
    assert found.keywords["num_workers"].value == 2


@pytest.mark.parametrize("test", ["False", "0", "None", "False and debug"])
def test_code_that_is_switched_off_is_not_read(test: str) -> None:
    facts = read(
        f"from trl import SFTConfig\nif {test}:\n    SFTConfig(bf16=False)\n"
        "else:\n    SFTConfig(bf16=True)\n"
    )
    assert call(facts, "trl.SFTConfig").keywords["bf16"].value is True


def test_a_syntax_error_is_told_at_its_line() -> None:
    (problem,) = read("import torch\nprint 'x'\nexec 'a'\n").problems
    assert problem.location.line == 2


def test_an_imported_name_that_is_bound_to_a_call_is_something_else() -> None:
    facts = read(
        "from functools import partial\nfrom torch.utils.data import DataLoader\n"
        "DataLoader = partial(DataLoader, num_workers=8)\nloader = DataLoader(dataset)\n"
    )
    assert not list(facts.calls_to("torch.utils.data.DataLoader"))


def test_imports_inside_functions_and_try_are_seen() -> None:
    facts = read(
        "try:\n    import deepspeed\nexcept ImportError:\n    deepspeed = None\n"
        "def main():\n    from trl import SFTTrainer as T\n    T(model=1)\n"
        "from .local import helper\n"
    )
    dotted = {(item.dotted, item.alias, item.location.line) for item in facts.imports}
    assert ("deepspeed", "deepspeed", 2) in dotted
    assert ("trl.SFTTrainer", "T", 6) in dotted
    assert any(item.module == ".local" and item.name == "helper" for item in facts.imports)
    assert call(facts, "trl.SFTTrainer").scope == "main"


def test_a_class_bound_to_another_name_keeps_its_own() -> None:
    facts = read("from trl import SFTConfig\nCfg = SFTConfig\nCfg(bf16=True)\n")
    assert call(facts, "trl.SFTConfig").location.line == 3


@pytest.mark.parametrize(
    ("expression", "before", "expected"),
    [
        ("-1e-4", "", -1e-4),
        ("'a' 'b'", "", "ab"),
        ("f'{NAME}-x'", "NAME = 'run'", "run-x"),
        ("[1, (2, 3)]", "", [1, (2, 3)]),
        ("dict(a=1)", "", {"a": 1}),
        ("{'a': {'b': 2}}", "", {"a": {"b": 2}}),
        ("2 * N + 1", "N = 4", 9),
        ("None or 3", "", 3),
        ("5 if True else 6", "", 5),
        ("int('8')", "", 8),
        ("torch.bfloat16", "", "torch.bfloat16"),
        ("CFG['lr']", "CFG = {'lr': 0.1}", 0.1),
        ("not True", "", False),
        ("A", "A, B = 1, 2", 1),
        ("N", "if c:\n    N = 1\nelse:\n    N = 1", 1),
        ("N", "N = 1\nN = 2", 2),
        ("N", "if c:\n    N = 1\nN = 2", 2),
        ("N", "N = 3\nB = False\nif B:\n    N = 1\nelse:\n    N = 2", 2),
    ],
)
def test_what_can_be_known_is_known(expression: str, before: str, expected: object) -> None:
    value = value_of(expression, before)
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("expression", "before", "reason", "candidates"),
    [
        ("args.lr", "", "args.lr", ()),
        ("N", "N = 1\nif c:\n    N = 2", "N", (1, 2)),
        ("N", "N = 1\nfor i in x:\n    N = 2", "N", (1, 2)),
        ("N", "try:\n    N = 1\nexcept E:\n    N = 2", "N", (1, 2)),
        ("1 if c else 2", "", "1 if c else 2", (1, 2)),
        ("args.n or 4", "", "args.n or 4", (4,)),
        ("os.environ.get('WS', 4)", "", "environment variable WS", (4,)),
        ("int(os.getenv('WS', '4'))", "", "environment variable WS", (4,)),
        ("os.environ['WS']", "", "environment variable WS", ()),
        ("i", "for i in (1, 2):\n    pass", "i", ()),
        ("N", "N = 1\nN += 1", "N", (1,)),
        ("N", "N = 1\ndef f():\n    global N\n    N = 2", "N", (1, 2)),
        ("CFG", "CFG = {'a': 1}\nCFG['a'] = 2", "CFG", ({"a": 1},)),
        ("compute()", "", "compute()", ()),
    ],
)
def test_what_only_a_run_can_tell_is_unknown(
    expression: str, before: str, reason: str, candidates: tuple[object, ...]
) -> None:
    value = value_of(expression, before)
    assert isinstance(value, Unknown)
    assert (value.reason, value.candidates) == (reason, candidates)


def test_a_parameter_is_unknown_with_its_default_as_candidate() -> None:
    facts = read("from trl import SFTConfig\ndef f(n=2, m=3):\n    SFTConfig(x=n)\n")
    assert call(facts, "trl.SFTConfig").keywords["x"].value == Unknown("n", (2,))


def test_a_local_name_that_is_computed_hides_the_module_constant() -> None:
    facts = read("from trl import SFTConfig\nN = 1\ndef f():\n    N = g()\n    SFTConfig(x=N)\n")
    assert not known(call(facts, "trl.SFTConfig").keywords["x"].value)


def test_a_known_dict_is_spread_with_the_places_of_its_entries() -> None:
    facts = read(
        "from torch.utils.data import DataLoader\n"
        "KW = {\n    'num_workers': 4,\n}\n"
        "DataLoader(ds, **KW)\nDataLoader(ds, **other)\n"
    )
    closed, opened = facts.calls_to(".DataLoader")
    assert closed.keywords["num_workers"].value == 4
    assert closed.keywords["num_workers"].location.line == 3
    assert (closed.is_open, opened.is_open) == (False, True)


def test_a_dict_changed_later_does_not_count_as_known() -> None:
    facts = read(
        "from torch.utils.data import DataLoader\n"
        "def f():\n    kw = dict(num_workers=4)\n    kw.update(more)\n    DataLoader(ds, **kw)\n"
    )
    assert call(facts, ".DataLoader").is_open


def test_receivers_follow_the_object_built_in_sight() -> None:
    facts = read(
        "import torch\nfrom transformers import AutoModelForCausalLM\n"
        "scaler = torch.cuda.amp.GradScaler()\n"
        "model = AutoModelForCausalLM.from_pretrained('x').to('cuda')\n"
        "class Job:\n"
        "    def __init__(self):\n        self.opt = torch.optim.AdamW(p)\n"
        "    def run(self):\n        self.opt.zero_grad()\n"
        "model.gradient_checkpointing_enable()\n"
        "with torch.no_grad():\n    scaler.update()\n"
    )
    receivers = {item.name: item.receiver for item in facts.calls}
    assert receivers["self.opt.zero_grad"] == "torch.optim.AdamW"
    assert receivers["model.gradient_checkpointing_enable"] == "transformers.AutoModelForCausalLM"
    assert receivers["scaler.update"] == "torch.cuda.amp.GradScaler"


def test_decorators_are_calls() -> None:
    facts = read(
        "import torch, triton\n@triton.jit\ndef k(x): pass\n"
        "@torch.compile(mode='max-autotune')\ndef f(x):\n    return x\n"
    )
    jit, compiled = facts.calls
    assert (jit.name, jit.is_decorator, jit.insert_at) == ("triton.jit", True, None)
    assert compiled.name == "torch.compile"
    assert compiled.keywords["mode"].value == "max-autotune"


LOOP = """\
from accelerate import Accelerator
from torch.utils.data import DataLoader
from tqdm import tqdm

def log(loss):
    return loss.item()

def main(args):
    accelerator = Accelerator()
    dl = DataLoader(ds, batch_size=8)
    model, dl = accelerator.prepare(model, dl)
    for epoch in range(3):
        for step, batch in enumerate(tqdm(dl)):
            loss = model(batch)
            accelerator.backward(loss)
            optimizer.step()
            print(loss.item())
            log(loss)
            if step % args.logging_steps == 0:
                print(loss.cpu())
            if step % 10:
                continue
            model.save_pretrained("x")
    for x in env.things:
        env.step(torch.compile(x))
"""


def test_training_loops_are_recognised_and_calls_know_theirs() -> None:
    facts = read(LOOP)
    epochs, batches, other = facts.loops
    assert (epochs.trains, epochs.over_batches, epochs.parent) == (False, False, None)
    assert (batches.trains, batches.over_batches, batches.iterable) == (True, True, "dl")
    assert batches.parent == epochs
    assert (other.trains, other.over_batches) == (False, False)
    guarded = {item.name: item.guarded for item in facts.calls if item.loop == batches}
    assert guarded["loss.item"] is False
    assert guarded["loss.cpu"] is True
    assert guarded["model.save_pretrained"] is True
    assert any(item.scope == "log" and item.method == "item" for item in facts.calls)


def test_methods_that_a_trainer_calls_each_step_are_hot_loops() -> None:
    facts = read(
        "import lightning as L\nfrom transformers import Trainer\n"
        "class M(L.LightningModule):\n"
        "    def training_step(self, b, i):\n        return f(b).item()\n"
        "class T(Trainer):\n    def compute_loss(self, m, x):\n        return m(x).cpu()\n"
        "class Plain:\n    def compute_loss(self, m, x):\n        return m(x).cpu()\n"
    )
    assert [loop.iterable for loop in facts.loops] == ["training_step", "compute_loss"]
    assert all(loop.trains and loop.over_batches for loop in facts.loops)
    hot = [item for item in facts.calls if item.method == "item"]
    assert hot[0].loop == facts.loops[0]


def test_argparse_options() -> None:
    facts = read(
        "import argparse\nimport torch\n"
        "def parse():\n    p = argparse.ArgumentParser()\n    g = p.add_argument_group('x')\n"
        "    p.add_argument('model')\n"
        "    g.add_argument('-b', '--batch-size', type=int, default=8)\n"
        "    g.add_argument('--bf16', action='store_true')\n"
        "    g.add_argument('--tf32', action=argparse.BooleanOptionalAction, dest='use_tf32')\n"
        "    g.add_argument('--attn', choices=['sdpa', 'eager'], required=True)\n"
        "    return p.parse_args()\n"
    )
    options = {option.name: option for option in facts.options}
    assert options["model"].required
    assert (options["batch_size"].default, options["batch_size"].type) == (8, "int")
    assert options["batch_size"].flags == ("-b", "--batch-size")
    assert (options["bf16"].action, options["bf16"].default) == ("store_true", False)
    assert options["use_tf32"].action == "BooleanOptionalAction"
    assert options["attn"].choices == ("sdpa", "eager")
    assert options["attn"].required


def test_click_and_typer_options() -> None:
    facts = read(
        "import click, typer, torch\n"
        "@click.command()\n@click.option('--lr', default=1e-4, type=float)\n"
        "@click.option('--amp/--no-amp', default=True)\ndef a(lr, amp): pass\n"
        "def b(steps: int = typer.Option(10, '--max-steps'), name: str = typer.Option(...)):\n"
        "    torch.compile(b)\n"
    )
    options = {option.name: option for option in facts.options}
    assert options["lr"].default == 1e-4
    assert options["amp"].default is True
    assert (options["steps"].default, options["steps"].flags) == (10, ("--max-steps",))
    assert options["name"].required


def test_dataclass_fields_have_their_defaults() -> None:
    facts = read(
        "import torch\nfrom dataclasses import dataclass, field\n"
        "@dataclass\nclass Args(Base):\n    '''doc'''\n    lr: float = 1e-4\n    path: str\n"
        "    n: int = field(\n        default=3,\n        metadata={\n            'help': 'n'\n"
        "        },\n    )\n"
        "    names: list = field(default_factory=list)\n"
        "    pair: list = field(default_factory=lambda: [1, 2])\n"
        "    def dull(self):\n        return 1\n"
    )
    (found,) = facts.classes
    values = {name: setting.value for name, setting in found.fields.items()}
    assert values == {
        "lr": 1e-4, "path": Unknown("no default"), "n": 3, "names": [], "pair": [1, 2]
    }  # fmt: skip
    assert (found.bases, found.decorators) == (("Base",), ("dataclasses.dataclass",))
    assert found.methods == ("dull",)
    assert found.fields["names"].location.line == 14


def test_attributes_environment_bindings_and_dicts() -> None:
    facts = read(
        "import os\nimport torch\n"
        "os.environ['CUDA_VISIBLE_DEVICES'] = '0,1'\n"
        "os.environ.setdefault('NCCL_DEBUG', 'WARN')\n"
        "torch.backends.cudnn.benchmark = True\n"
        "DS = {'zero_optimization': {'stage': 3}, 'bf16': {'enabled': True}}\n"
        "def f(model):\n    n = 4\n    model.config.use_cache = False\n    DataLoader(n)\n"
        "if __name__ == '__main__':\n    f(1)\n"
    )
    assert {s.name: s.value for s in facts.environment} == {
        "CUDA_VISIBLE_DEVICES": "0,1", "NCCL_DEBUG": "WARN"
    }  # fmt: skip
    attributes = {s.name: s.value for s in facts.attributes}
    assert attributes["torch.backends.cudnn.benchmark"] is True
    assert attributes["model.config.use_cache"] is False
    assert facts.bindings["f.n"].value == 4
    (document,) = facts.dicts
    assert document.name == "DS"
    stage = document.get("zero_optimization.stage")
    assert stage is not None
    assert (stage.value, stage.location.line, stage.location.column) == (3, 6, 38)
    assert facts.has_main


@pytest.mark.parametrize(
    "written",
    [
        "DataLoader()",
        "DataLoader(ds)",
        "DataLoader(ds,)",
        "DataLoader(\n    ds,  # the data, all\n    shuffle=True,\n)",
        "DataLoader(\n    ds  # no comma, here\n)",
        "DataLoader(ds, *a, **k)",
        "DataLoader((ds))",
        "(DataLoader)(  )",
        "DataLoader(f(x, y), 'é)' )",
        "DataLoader(ds, batch_size=\\\n    4)",
    ],
)
def test_a_keyword_written_at_insert_at_is_valid_and_belongs_to_the_call(written: str) -> None:
    source = f"from torch.utils.data import DataLoader\nif é:\n    x = {written}; y = 1\n".replace(
        "\n    ds", "\n        ds"
    )
    found = call(read(source), ".DataLoader")
    assert found.insert_at is not None
    has_arguments = found.positional or found.keywords or found.is_open
    text = "pin=True" if found.ends_with_comma or not has_arguments else ", pin=True"
    lines = source.split("\n")
    line = lines[found.insert_at.line - 1]
    column = found.insert_at.column - 1
    lines[found.insert_at.line - 1] = line[:column] + text + line[column:]
    calls = [node for node in ast.walk(ast.parse("\n".join(lines))) if isinstance(node, ast.Call)]
    keywords = [keyword.arg for node in calls[:1] for keyword in node.keywords]
    assert "pin" in keywords
    assert found.end is not None
    before = source.split("\n")[found.end.line - 1][: found.end.column - 1]
    assert before.endswith(")")


def test_a_lone_generator_takes_no_keyword() -> None:
    facts = read("import torch\ntorch.compile(x for x in y)\n")
    assert call(facts, "torch.compile").insert_at is None


def test_columns_count_characters_and_lines_survive_thinning() -> None:
    source = (
        "import torch\n\ndef dull():\n    '''Long\n    text'''\n    a = 1\n    return a\n\n"
        "def kept():\n    # note\n    x = 'é'; torch.compile(x)\n"
    )
    found = call(read(source), "torch.compile")
    assert (found.location.line, found.location.column) == (11, 14)


@pytest.mark.parametrize("newline", ["\r\n", "\r", "\n"])
def test_newlines_tabs_form_feeds_and_marks_do_not_move_places(newline: str) -> None:
    source = newline.join(
        ["\ufeffimport torch", "\f", "def f():", "\tif a:", "\t\ttorch.compile(f)", ""]
    )
    found = call(read_python(source.encode(), "x.py"), "torch.compile")
    assert (found.location.line, found.location.column) == (5, 3)


def test_the_coding_cookie_is_honoured() -> None:
    data = "# -*- coding: latin-1 -*-\nimport torch\nx = 'é'; torch.compile(x)\n".encode("latin-1")
    found = call(read_python(data, "x.py"), "torch.compile")
    assert found.location.column == 10
    assert found.positional[0].value == "é"


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        (b"import torch\nprint 'python 2'\n", ProblemKind.SYNTAX),
        (b"import torch\n\0", ProblemKind.SYNTAX),
        (b"import torch\nx = '\xff\xfe'\n", ProblemKind.ENCODING),
        (b"import torch\nx = " + b"(" * 100_000, ProblemKind.TOO_DEEP),
        (b"import torch\nx = " + b"a + " * 100_000 + b"1\n", ProblemKind.TOO_DEEP),
        (b"import torch\nx = " + b"-" * 100_000 + b"1\n", ProblemKind.TOO_DEEP),
        (b"import torch\ntorch.compile(a" + b"()" * 50_000 + b")", ProblemKind.TOO_DEEP),
        (b"if a:\n pass\n" + b"elif b:\n pass\n" * 20_000, ProblemKind.TOO_DEEP),
        (b"import torch\n" + b"#" * 2_000_001, ProblemKind.TOO_LARGE),
    ],
    ids=lambda item: item.value if isinstance(item, ProblemKind) else "",
)
def test_what_cannot_be_read_is_a_problem(source: bytes, kind: ProblemKind) -> None:
    facts = read_python(source, "x.py")
    assert [problem.kind for problem in facts.problems] == [kind]


def test_one_deep_statement_does_not_hide_the_rest() -> None:
    facts = read("import torch\nx = " + " and ".join(["a"] * 300) + "\ntorch.compile(f)\n")
    assert call(facts, "torch.compile").location.line == 3


@pytest.mark.parametrize(
    ("source", "relevant"),
    [
        (b"import torch\n", True),
        (b"os.environ['CUDA_VISIBLE_DEVICES'] = '0'\n", True),
        (b"import flask\n\napp = flask.Flask(__name__)\n", False),
    ],
)
def test_the_byte_scan_dismisses_other_files(source: bytes, relevant: bool) -> None:
    assert is_relevant(source) is relevant


STEPS = """\
import torch

def report(loss, names):
    '''Says how far it is.'''
    a = names[0]
    print(loss.item())
    return a

def train(loader, model, optimizer, n: int = 8):
    loader = torch.utils.data.DataLoader(data, batch_size=n)
    note = compute(
        1,
    )
    for step, batch in enumerate(loader):
        # what the model makes of it
        hidden = model.embed(batch)
        hidden = hidden + hidden
        if step % 2:
            hidden = hidden * 2
            continue
        loss = model(hidden)
        loss.backward()
        if step % 10 == 0:
            other = hidden.mean()
            torch.save(model, "x.pt")
        optimizer.step()
        report(loss, [])
    return note
"""


def test_thinning_keeps_what_costs_time_in_a_step_and_drops_the_rest() -> None:
    thinned = thin(STEPS, ast.parse(STEPS))
    lines = STEPS.split("\n")
    kept = thinned.text.rstrip("\n").split("\n")
    dropped = ("hidden", "note = ", "'''", "#", "a = names")
    assert not [line for line in kept if line.strip().startswith(dropped)]
    for line, number in zip(kept, thinned.line_numbers):
        assert line in (lines[number - 1], f"{lines[number - 1][: len(line) - 4]}pass")
    assert len(kept) < 0.6 * len(lines)


def test_thinning_loses_no_fact_of_a_training_loop() -> None:
    facts = read(STEPS)
    (loop,) = facts.loops
    assert (loop.trains, loop.over_batches, loop.location.line) == (True, True, 14)
    calls = {item.name: (item.location.line, item.guarded) for item in facts.calls}
    assert calls["loss.backward"] == (22, True)  # behind ``if step % 2: continue``
    assert calls["torch.save"] == (25, True)
    assert calls["optimizer.step"] == (26, True)
    assert calls["loss.item"] == (6, False)
    assert call(facts, ".DataLoader").keywords["batch_size"].value == Unknown("n", (8,))


def test_thinning_drops_help_texts_and_keeps_the_options() -> None:
    source = (
        "import argparse, torch\n\ndef parse():\n    p = argparse.ArgumentParser()\n"
        "    p.add_argument(\n        '--lr',\n        type=float,\n        default=1e-4,\n"
        "        help='How fast it learns, '\n        'in words.',\n    )\n"
        "    p.add_argument('--n', help='one line', default=3)\n    return p.parse_args()\n"
    )
    assert "How fast" not in thin(source, ast.parse(source)).text
    options = {option.name: option for option in read(source).options}
    assert (options["lr"].default, options["lr"].type) == (1e-4, "float")
    assert (options["n"].default, options["n"].location.line) == (3, 12)


def test_values_survive_thinning_when_only_some_assignments_can_be_evaluated() -> None:
    facts = read(
        "from trl import SFTConfig\ndef f():\n    n = 4\n    if a:\n        n = g()\n"
        "    elif b:\n        n = h()\n    SFTConfig(x=n)\n"
    )
    assert call(facts, "trl.SFTConfig").keywords["x"].value == Unknown("n", (4,))


def test_imports_alone_are_those_of_the_whole_reading() -> None:
    source = (
        "import os, torch.nn as nn\nfrom . import é, x as y\nif a:\n    from ..b.c import *\n"
        "def f():\n    try:\n        from vllm import (LLM,\n            SamplingParams as S)\n"
        "    except ImportError:\n        import numpy\n"
    )
    assert read_imports(source.encode(), "train.py") == read(source).imports
    assert read_imports(b"import torch\nprint 'python 2'\n", "x.py") == ()


def test_places_counted_are_those_of_libcst_own_provider() -> None:
    source = STEPS + "x = [(a), -b, not c, *d]\nwith (f() as g, h):\n\tx[1:2] = (yield)\n"
    module = cst.parse_module(source)
    starts = [0, *accumulate(len(line) + 1 for line in source.split("\n"))]
    counted, provided = counted_spans(module, len(source)), provided_spans(module, starts)
    assert counted
    assert counted.items() <= provided.items()


def test_places_are_the_same_when_libcst_asks_for_more(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = read(STEPS)
    monkeypatch.setattr(_python_positions, "counted_spans", lambda module, length: None)
    assert read(STEPS) == expected


def test_functions_of_kernel_libraries_survive_thinning():
    source = (
        "from liger_kernel.transformers import apply_liger_kernel_to_llama as apply\n"
        "import peft\n\n\n"
        "def build(model):\n    apply()\n    return peft.get_peft_model(model, cfg)\n"
    )
    names = [call.name for call in read_python(source, "train.py").calls]
    assert "liger_kernel.transformers.apply_liger_kernel_to_llama" in names
    assert "peft.get_peft_model" in names


def test_a_long_triple_quoted_string_is_not_deep():
    body = "\n".join(f"line {number}" for number in range(400))
    source = f'import torch\n\n\ndef f():\n    text = f"""{body}\n{{x}}"""\n    torch.save(text)\n'
    assert read_python(source, "train.py").problems == ()


@pytest.mark.parametrize("literal", [r'"\--lr"', r'"\N{no such name}"', r"'\x'"])
def test_odd_escapes_neither_warn_nor_fail(literal):
    source = f"import torch, argparse\np = argparse.ArgumentParser()\np.add_argument({literal})\n"
    read_python(source, "train.py")


FILLED = """\
kwargs = dict(dtype="bfloat16")
kwargs["cache"] = False
if FLAG:
    kwargs["attention"] = "eager"
made = load(**kwargs)
kwargs["late"] = True
"""


@pytest.mark.parametrize(
    ("flag", "expected"),
    [
        ("True", {"dtype": "bfloat16", "cache": False, "attention": "eager"}),
        ("False", {"dtype": "bfloat16", "cache": False}),
        ("asked()", None),
    ],
)
def test_entries_that_are_set_one_by_one_are_arguments(
    flag: str, expected: Optional[dict[str, object]]
) -> None:
    source = "from torch import load\n" + FILLED.replace("FLAG", flag)
    (call,) = read_python(source, "a.py").calls_to("torch.load")
    assert call.is_open is (expected is None)
    assert expected is None or {k: v.value for k, v in call.keywords.items()} == expected


def test_entries_that_a_loop_or_an_update_sets_leave_the_arguments_open() -> None:
    for change in ("for i in x:\n    kwargs[i] = 1\n", "kwargs.update(x)\n", "kwargs[x] = 1\n"):
        source = f"from torch import load\nkwargs = dict(b=2)\n{change}load(**kwargs)\n"
        (call,) = read_python(source, "a.py").calls_to("torch.load")
        assert call.is_open
