"""Requirements: names, specifiers and pins, from every kind of file, command and image."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flake8_gpu_training.facts import Command, Location, ProblemKind, Unknown, Word
from flake8_gpu_training.sources.requirements import (
    conda_requirement,
    included_files,
    read_requirements,
    requirements_from_command,
    requirements_from_image,
)


def read(text, path="requirements.txt"):
    """``name -> (specifier, version)``, checking that nothing went wrong."""
    facts = read_requirements(text, path)
    assert facts.problems == ()
    return {item.name: (item.specifier, item.version) for item in facts.requirements}


def test_requirements_txt():
    text = """\
# serving
vllm==0.6.3  # pinned
Flash_Attn >= 2.5, < 3
transformers[torch]==4.46.*
torch==2.4.0+cu121 \\
    --hash=sha256:abc \\
    --hash=sha256:def
-r base.txt
--extra-index-url https://download.pytorch.org/whl/cu121
-e git+https://github.com/modelscope/ms-swift.git@v3.9.1#egg=ms-swift
trl @ git+https://github.com/huggingface/trl.git@main
git+https://github.com/hiyouga/LLaMA-Factory.git
https://example.com/deepspeed-0.15.4-py3-none-any.whl
pywin32==306; sys_platform == "win32"
triton==3.0.0; sys_platform == "linux"
numpy<2; python_version < "3.12"
./local
"""
    assert read(text) == {
        "vllm": ("==0.6.3", "0.6.3"),
        "flash-attn": ("<3,>=2.5", ""),
        "transformers": ("==4.46.*", ""),
        "torch": ("==2.4.0+cu121", "2.4.0"),
        "ms-swift": ("==3.9.1", "3.9.1"),
        "trl": ("", ""),
        "llama-factory": ("", ""),
        "deepspeed": ("==0.15.4", "0.15.4"),
        "triton": ("==3.0.0", "3.0.0"),
        "numpy": ("<2", ""),
    }
    assert included_files(text) == ("base.txt",)


def test_a_requirement_has_its_place():
    facts = read_requirements("\n  vllm==0.6.3\n", "requirements/serve.txt")
    assert facts.requirements[0].location == Location("requirements/serve.txt", 2, 3)


def test_pyproject():
    text = """\
[project]
name = "trainer"
dependencies = ["torch==2.5.1", "accelerate>=1.0"]
[project.optional-dependencies]
deepspeed = ["deepspeed==0.16.2"]
[dependency-groups]
dev = ["pytest", {include-group = "x"}]
[tool.poetry.dependencies]
python = "^3.10"
peft = "^0.13"
vllm = {version = "0.6.3", optional = true}
trl = {git = "https://github.com/huggingface/trl", tag = "v0.12.1"}
[tool.poetry.group.dev.dependencies]
ruff = "~0.6"
"""
    assert read(text, "pyproject.toml") == {
        "torch": ("==2.5.1", "2.5.1"),
        "accelerate": (">=1.0", ""),
        "deepspeed": ("==0.16.2", "0.16.2"),
        "pytest": ("", ""),
        "python": (">=3.10,<4", ""),
        "peft": (">=0.13,<0.14", ""),
        "vllm": ("==0.6.3", "0.6.3"),
        "trl": ("==0.12.1", "0.12.1"),
        "ruff": (">=0.6,<0.7", ""),
    }
    torch = read_requirements(text, "pyproject.toml").requirements[0]
    assert torch.location == Location("pyproject.toml", 3, 17)


def test_setup_py_is_read_and_not_run():
    text = """\
import os, setuptools
os.abort()
base = ["torch==2.1.0", "transformers>=4.40"]
extras = {}
extras["vllm"] = ["vllm==0.5.4"]
setuptools.setup(
    name="x",
    install_requires=base + ["peft"],
    extras_require={"all": extras["vllm"], **extras},
)
unused = ["tensorflow"]
"""
    found = read(text, "setup.py")
    assert found["torch"] == ("==2.1.0", "2.1.0")
    assert found["peft"] == ("", "")
    assert "tensorflow" not in found


def test_setup_py_of_python_2_is_a_problem():
    facts = read_requirements("print 'x'\n", "setup.py")
    assert [problem.kind for problem in facts.problems] == [ProblemKind.SYNTAX]


def test_setup_cfg():
    text = """\
[options]
install_requires =
    torch==2.3.1  # tested
    accelerate
python_requires = >=3.9
[options.extras_require]
rl = trl>=0.9
    vllm
[flake8]
ignore = E501
"""
    assert read(text, "setup.cfg") == {
        "torch": ("==2.3.1", "2.3.1"),
        "accelerate": ("", ""),
        "trl": (">=0.9", ""),
        "vllm": ("", ""),
    }


def test_conda_environment():
    text = """\
name: train
channels: [pytorch]
dependencies:
  - python=3.10
  - pytorch=2.4.0=py3.10_cuda12.1_cudnn9.1.0_0
  - pytorch-cuda=12.1
  - conda-forge::numpy=1.26
  - pip
  - pip:
      - vllm==0.6.3
      - -r requirements.txt
"""
    assert read(text, "environment.yml") == {
        "python": ("==3.10.*", ""),
        "torch": ("==2.4.0", "2.4.0"),
        "numpy": ("==1.26.*", ""),
        "vllm": ("==0.6.3", "0.6.3"),
    }


@pytest.mark.parametrize("name", ["uv.lock", "poetry.lock", "pdm.lock"])
def test_locks_pin(name):
    text = """\
version = 1
[[package]]
name = "torch"
version = "2.6.0+cu124"
[package.metadata]
name = "not-this"
version = "9"
[[package]]
name = "Flash_Attn"
version = "2.7.4.post1"
"""
    assert read(text, name) == {
        "torch": ("==2.6.0+cu124", "2.6.0"),
        "flash-attn": ("==2.7.4.post1", "2.7.4.post1"),
    }


def test_pipfile_and_its_lock():
    assert read('[packages]\ntorch = "==2.4.0"\npeft = "*"\n', "Pipfile") == {
        "torch": ("==2.4.0", "2.4.0"),
        "peft": ("", ""),
    }
    lock = '{"default": {"torch": {"version": "==2.4.0"}, "x": {}}, "develop": {}}'
    assert read(lock, "Pipfile.lock") == {"torch": ("==2.4.0", "2.4.0")}


def test_pixi():
    text = """\
[dependencies]
pytorch-gpu = "2.5.1.*"
numpy = ">=1.26,<2"
[pypi-dependencies]
vllm = "==0.6.3"
"""
    assert read(text, "pixi.toml") == {
        "torch": ("==2.5.1.*", ""),
        "numpy": (">=1.26,<2", ""),
        "vllm": ("==0.6.3", "0.6.3"),
    }


def command(text):
    place = Location("run.sh")
    return Command(tuple(Word(word, place) for word in text.split()), place)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pip install vllm==0.6.3 transformers>=4.45", {"vllm": "0.6.3", "transformers": ""}),
        ("pip3 install -U -i https://x/simple ms-swift==3.9.1", {"ms-swift": "3.9.1"}),
        ("python3 -m pip install torch==2.4.0 --index-url https://x", {"torch": "2.4.0"}),
        ("uv pip install --system sglang==0.4.1", {"sglang": "0.4.1"}),
        ("uv add trl", {"trl": ""}),
        ("pip install -r requirements.txt", {}),
        ("pip install -e .[dev]", {}),
        ("pip uninstall vllm==0.6.3", {}),
        ("conda install -y -c pytorch pytorch==2.1.0 pytorch-cuda=12.1", {"torch": "2.1.0"}),
        ("conda create -n train python=3.10 pytorch=2.1", {"python": "", "torch": ""}),
        (
            "pip install flash_attn-2.7.4.post1+cu12torch2.6cxx11abiFALSE"
            "-cp310-cp310-linux_x86_64.whl",
            {"flash-attn": "2.7.4.post1"},
        ),
        ("python train.py install vllm", {}),
        ("pip", {}),
    ],
)
def test_install_commands(text, expected):
    found = requirements_from_command(command(text))
    assert {item.name: item.version for item in found} == expected


def test_an_unknown_word_installs_nothing_known():
    place = Location("run.sh")
    words = (Word("pip", place), Word("install", place), Word(Unknown("$V"), place, "vllm==$V"))
    assert requirements_from_command(Command(words, place)) == ()


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("vllm/vllm-openai:v0.6.3", {"vllm": "0.6.3"}),
        ("docker.io/vllm/vllm-openai:v0.6.3.post1", {"vllm": "0.6.3.post1"}),
        ("vllm/vllm-openai:latest", {"vllm": ""}),
        ("vllm/vllm-openai@sha256:0123", {"vllm": ""}),
        ("vllm/vllm-openai:${TAG}", {"vllm": ""}),
        ("mine/vllm:custom", {"vllm": ""}),
        ("lmsysorg/sglang:v0.4.1-cu124", {"sglang": "0.4.1"}),
        ("hiyouga/llamafactory:0.9.3", {"llamafactory": "0.9.3"}),
        ("pytorch/pytorch:2.4.0-cuda12.1-cudnn9-devel", {"torch": "2.4.0"}),
        ("nvcr.io/nvidia/pytorch:24.05-py3", {}),
        (
            "modelscope-registry.cn-hangzhou.cr.aliyuncs.com/modelscope-repo/modelscope:"
            "ubuntu22.04-cuda12.8.1-py311-torch2.8.0-vllm0.11.0-modelscope1.31.0-swift3.9.1",
            {"torch": "2.8.0", "vllm": "0.11.0", "modelscope": "1.31.0", "ms-swift": "3.9.1"},
        ),
        ("localhost:5000/vllm/vllm-openai:v0.6.3", {"vllm": "0.6.3"}),
        ("", {}),
    ],
)
def test_images_state_versions(image, expected):
    found = requirements_from_image(image, Location("Dockerfile"))
    assert {item.name: item.version for item in found} == expected


NAMES = [
    "requirements.txt", "pyproject.toml", "setup.py", "setup.cfg", "environment.yml", "Pipfile",
    "Pipfile.lock", "uv.lock", "pixi.toml",
]  # fmt: skip
PIECES = st.sampled_from(
    ["torch", "==", "2.4", "\n", "[", "]", "@", "git+https://x/y", "#egg=", ";", '"', "= ", "\\",
     "dependencies", ": ", "- ", "  ", "{", "}", "setup(install_requires=", ")", "[[package]]\n",
     "*", "^", "~", "version = ", "9" * 30]
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(NAMES),
    st.lists(PIECES, max_size=25).map("".join) | st.text(max_size=50) | st.binary(max_size=50),
)
def test_no_input_raises(name, data):
    read_requirements(data, name)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=40))
def test_no_image_or_conda_name_raises(text):
    requirements_from_image(text, Location("x"))
    conda_requirement(text, Location("x"))


def test_long_lines_take_no_time():
    hostile = ["a" * 200_000, "git+" + "/" * 100_000, "a @ " * 50_000, "a-" * 100_000 + ".whl"]
    read_requirements("\n".join(hostile), "requirements.txt")


def test_a_table_of_requirements_is_looked_up_in_setup_py() -> None:
    text = (
        '_deps = ["trl[vllm]==0.18.0", "torch>=2.6", "ruff"]\n'
        'deps = {b: a for a, b in (re.findall(r"^(([^!=<>~ ]+).*)$", x)[0] for x in _deps)}\n'
        'setup(name="x", install_requires=[deps["trl"], deps["torch"], deps["absent"]])\n'
    )
    found = read_requirements(text.encode(), "setup.py").requirements
    assert [(item.name, item.version) for item in found] == [("trl", "0.18.0"), ("torch", "")]


def test_pip_freeze_tells_the_version_of_an_editable_install_in_a_comment():
    text = """\
# Editable install with no version control (ms_swift==3.7.0.dev0)
-e /home/user/ms-swift
# Editable Git install with no remote (trl==0.19.1)
-e /home/user/trl
# we tried vllm (vllm==0.6.3)
"""
    assert read(text) == {
        "ms-swift": ("==3.7.0.dev0", "3.7.0.dev0"),
        "trl": ("==0.19.1", "0.19.1"),
    }
