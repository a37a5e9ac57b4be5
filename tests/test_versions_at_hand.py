"""Which release a run gets: the requirements that hold for its own script."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

import pytest
from checks_support import findings, runs_of

from flake8_gpu_training.frameworks.engine_of import engine_of
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.find import find_runs

FORMER = "from transformers import TrainingArguments\nTrainingArguments(output_dir='o', {}='no')\n"
OLD = FORMER.format("evaluation_strategy")
NEW = FORMER.format("eval_strategy")


def told(root: Path, files: dict[str, str], code: str = "GPU007") -> dict[str, str]:
    """Messages by the file that they stand in."""
    found = findings(runs_of(root, files), code)
    return {one.location.path: one.message for one in found if one.location is not None}


@pytest.mark.parametrize(
    ("files", "script", "message"),
    [
        # its own folder wins over the root and over others
        ({"a/r": "4.40.2", "r": "4.57.1"}, OLD, None),
        ({"a/r": "4.57.1", "r": "4.40.2"}, OLD, "4.57.1 no longer has"),
        ({"a/r": "4.40.2", "b/r": "4.57.1", "b/t.py": ""}, OLD, None),
        ({"a/r": "4.40.2", "b/r": "4.57.1", "b/t.py": ""}, NEW, "4.40.2 is asked for"),
        # what only another folder asks for may hold, and may not
        ({"b/r": "4.40.2", "b/t.py": ""}, OLD, None),
        ({"b/r": "4.40.2", "b/t.py": ""}, NEW, None),
        ({"b/r": "4.57.1", "b/t.py": ""}, OLD, "4.57.1, the newest"),
        # a folder without programs is for those of the one above it
        ({"requirements/r": "4.40.2"}, NEW, "4.40.2 is asked for"),
        ({"b/r": "4.40.2", "c/r": "4.57.1"}, OLD, None),
        ({"b/r": "4.52.4", "c/r": "4.57.1"}, OLD, "no longer has"),
    ],
)
def test_the_nearest_requirements_hold(
    tmp_path: Path, files: dict[str, str], script: str, message: Optional[str]
) -> None:
    project = {
        path.replace("/r", "/requirements.txt") if path != "r" else "requirements.txt": (
            f"transformers=={text}\n" if path.endswith("r") else text
        )
        for path, text in files.items()
    }
    found = told(tmp_path, {"a/t.py": script, **project}).get("a/t.py")
    assert (found is None) if message is None else (message in (found or "")), found


def test_the_main_file_is_believed_of_those_beside_each_other(tmp_path: Path) -> None:
    files = {"a/t.py": NEW, "requirements/npu.txt": "transformers==4.40.2\n"}
    assert told(tmp_path, {**files, "requirements.txt": "transformers==4.57.1\n"}) == {}
    assert "4.40.2 is asked for" in told(tmp_path / "b", files).get("a/t.py", "")


LOCKED = '[[package]]\nname = "transformers"\nversion = "{}"\n'


@pytest.mark.parametrize(
    ("versions", "refused"),
    [(("4.40.2", "4.52.4"), False), (("4.51.3", "4.52.4"), True), (("4.40.2",), False)],
)
def test_a_lock_file_with_several_versions(
    tmp_path: Path, versions: tuple[str, ...], refused: bool
) -> None:
    lock = "\n".join(LOCKED.format(version) for version in versions)
    asked = '[project]\nname = "x"\nversion = "1"\ndependencies = ["transformers>=4.36"]\n'
    files = {"t.py": OLD, "uv.lock": lock, "pyproject.toml": asked}
    assert bool(told(tmp_path, files)) is refused


@pytest.mark.parametrize("name", ["reqs/train.txt", "more.in"])
def test_included_files_are_read(tmp_path: Path, name: str) -> None:
    files = {"t.py": OLD, "requirements.txt": f"-r {name}\n", name: "transformers==4.40.2\n"}
    assert not told(tmp_path, files)
    files[name] = "transformers==4.57.1\n"
    assert "4.57.1" in told(tmp_path, files)["t.py"]


def test_a_workspace_pins_what_its_members_ask_for(tmp_path: Path) -> None:
    member = '[project]\nname = "x"\nversion = "1"\ndependencies = ["transformers>=4.36"]\n'
    files = {"a/t.py": OLD, "a/pyproject.toml": member, "uv.lock": LOCKED.format("4.40.2")}
    assert not told(tmp_path, files)


FIVE = "from transformers import TrainingArguments\nTrainingArguments(overwrite_output_dir=True)\n"
PROJECT = '[project]\nname = "x"\nversion = "1"\ndependencies = ["transformers"]\n'


@pytest.mark.parametrize(
    ("files", "refused"),
    [
        # transformers 5.0 asks for huggingface-hub>=1.3, tokenizers>=0.22 and Python 3.10
        ({"requirements.txt": "transformers>=4.53\nhuggingface-hub>=0.33,<1.0\n"}, False),
        ({"requirements.txt": "transformers>=4.53\nhuggingface-hub>=0.33\n"}, True),
        ({"requirements.txt": "transformers\ntokenizers==0.21.1\n"}, False),
        ({"requirements.txt": "transformers\ntokenizers==0.23.1\n"}, True),
        ({"pyproject.toml": PROJECT + 'requires-python = ">=3.8,<3.10"\n'}, False),
        ({"pyproject.toml": PROJECT + 'requires-python = ">=3.8"\n'}, True),
        ({"environment.yml": "dependencies:\n  - python=3.9\n"}, False),
        ({"Dockerfile": "FROM python:3.9-slim\nRUN pip install transformers\n"}, False),
        ({"Dockerfile": "FROM python:3.12\nRUN pip install transformers\n"}, True),
        # what the metadata of frameworks takes
        ({"requirements.txt": "ms-swift==3.5.3\n"}, False),
        ({"requirements.txt": "ms-swift==4.6.0\n"}, True),
        ({"requirements.txt": "llamafactory==0.9.2\n"}, False),
        ({"b/requirements.txt": "llamafactory==0.9.2\n", "b/b.py": ""}, True),
    ],
)
def test_what_cannot_be_installed_is_not_at_hand(
    tmp_path: Path, files: dict[str, str], refused: bool
) -> None:
    assert bool(told(tmp_path, {"t.py": FIVE, **files})) is refused


def test_a_cap_is_the_version_at_hand(tmp_path: Path) -> None:
    files = {"t.py": OLD, "requirements.txt": "transformers\nhuggingface-hub<1.0\n"}
    assert "4.57.6, the newest" in told(tmp_path, files)["t.py"]


@pytest.mark.parametrize(("plugin", "refused"), [("0.10.2rc1", False), ("0.18.0", True)])
def test_a_plugin_is_made_for_the_release_of_its_number(
    tmp_path: Path, plugin: str, refused: bool
) -> None:
    run = "vllm serve Qwen/Qwen2.5-7B-Instruct --swap-space 4\n"
    files = {"run.sh": run, "requirements.txt": f"vllm-ascend=={plugin}\n"}
    assert bool(told(tmp_path, files)) is refused


def test_a_server_may_have_an_environment_of_its_own(tmp_path: Path) -> None:
    files = {"run.sh": "vllm serve Qwen/Qwen2.5-7B-Instruct --swap-space 4\n"}
    files["requirements.txt"] = "vllm\ntransformers==4.45.2\n"
    assert not told(tmp_path, files)
    files["requirements.txt"] = "vllm\ntransformers==5.6.2\n"
    assert "0.33.0, the newest" in told(tmp_path, files)["run.sh"]


HEADER = '# /// script\n# dependencies = ["transformers=={}"]\n# ///\n'
MODAL = "import modal\nimage = modal.Image.debian_slim().pip_install('transformers=={}', 'x')\n"
ESTIMATOR = (
    "from sagemaker.huggingface import HuggingFace\nHuggingFace(transformers_version='{}')\n"
)


@pytest.mark.parametrize("stated", [HEADER, MODAL])
def test_a_script_states_its_own_requirements(tmp_path: Path, stated: str) -> None:
    files = {"requirements.txt": "transformers==4.57.1\n"}
    assert not told(tmp_path, {"t.py": stated.format("4.40.2") + OLD, **files})
    found = told(tmp_path, {"t.py": stated.format("4.52.4") + OLD, **files})
    assert "4.52.4 no longer has" in found["t.py"]


@pytest.mark.parametrize(
    ("path", "text"),
    [("README.md", "Install `transformers=={}` first.\n"), ("submit.py", ESTIMATOR)],
)
def test_what_is_mentioned_may_be_at_hand(tmp_path: Path, path: str, text: str) -> None:
    assert not told(tmp_path, {"t.py": OLD, path: text.format("4.40.2")})
    assert not told(tmp_path, {"t.py": NEW, path: text.format("4.40.2")})
    assert not told(tmp_path, {"t.py": OLD, path: text.format("4.28")})  # older than the tables
    assert told(tmp_path, {"t.py": OLD, path: text.format("4.52.4")})
    pinned = {"t.py": OLD, path: text.format("4.40.2"), "requirements.txt": "transformers==4.57.1"}
    assert told(tmp_path, pinned)


COMPOSE = (
    "services:\n  v:\n    image: {}\n"
    "    command: vllm serve Qwen/Qwen2.5-7B-Instruct --swap-space 4 --mine 8\n"
)


@pytest.mark.parametrize(
    ("image", "former", "unknown"),
    [
        ("vllm/vllm-openai:${TAG:-v0.6.6}", False, True),
        ("vllm/vllm-openai:${TAG:-v0.20.2}", True, True),
        ("vllm/vllm-openai:${TAG}", False, False),
        ("vllm/vllm-openai:latest", True, True),
        ("vllm/vllm-openai:nightly", False, False),
        ("mine/vllm:custom", False, False),
        ("mine/trainer:custom", True, True),
    ],
)
def test_images_that_hold_a_state_of_their_own(
    tmp_path: Path, image: str, former: bool, unknown: bool
) -> None:
    files = {"docker-compose.yml": COMPOSE.format(image)}
    assert bool(told(tmp_path, files)) is former
    assert bool(told(tmp_path, files, "GPU005")) is unknown


def test_an_image_is_as_released_whatever_others_are_built_from(tmp_path: Path) -> None:
    fork = {"patches/Dockerfile": "FROM mine/vllm:patched\nCOPY a.py /opt/a.py\n"}
    released = {"docker-compose.yml": COMPOSE.format("vllm/vllm-openai:v0.20.2")}
    assert told(tmp_path, {**released, **fork})
    own = {"docker-compose.yml": COMPOSE.format("mine/vllm:patched")}
    assert not told(tmp_path, {**own, **fork})


SWIFT = "swift sft --model Qwen/Qwen2.5-7B --train_type lora --dataset a.jsonl --my_flag 3\n"
MODULES = '[submodule "s"]\n\tpath = s\n\turl = https://github.com/me/{}.git\n'


@pytest.mark.parametrize(
    ("files", "refused"),
    [
        ({"run.sh": SWIFT}, True),
        ({"run.sh": SWIFT, ".gitmodules": MODULES.format("ms-swift")}, False),
        ({"run.sh": SWIFT, ".gitmodules": MODULES.format("data")}, True),
        ({"run.sh": f"git clone https://x.y/me/ms-swift-fork && pip install -e s\n{SWIFT}"}, False),
        ({"run.sh": f"git clone https://x.y/me/ms-swift\n{SWIFT}"}, True),
    ],
)
def test_the_release_of_a_fork_is_not_known(
    tmp_path: Path, files: dict[str, str], refused: bool
) -> None:
    assert bool(told(tmp_path, files, "GPU005")) is refused
    assert bool(told(tmp_path, files)) is refused


@pytest.mark.parametrize(
    ("program", "flag", "refused"),
    [
        ("vllm", "--mine 8", True),
        (".venv/bin/vllm", "--mine 8", False),
        (".venv/bin/vllm", "", True),
    ],
)
def test_a_patched_server(tmp_path: Path, program: str, flag: str, refused: bool) -> None:
    run = f"{program} serve Qwen/Qwen2.5-7B-Instruct --swap-space 4 {flag}\n"
    assert bool(told(tmp_path, {"run.sh": run})) is refused


SERVED = COMPOSE.replace("vllm serve Qwen/Qwen2.5-7B-Instruct --swap-space 4 --mine 8", "{}")
FIXED, ROUTER = "lmsysorg/sglang:v0.5.23", "lmsysorg/sglang-router:v0.2.4"
SERVER = "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --mine 8"


@pytest.mark.parametrize(
    ("image", "beside", "known"),
    [
        (FIXED, ROUTER, True),
        (FIXED, "lmsysorg/sglang:dev", True),
        ("lmsysorg/sglang:latest", "lmsysorg/sglang:dev", True),
        ("lmsysorg/sglang:dev", FIXED, False),
    ],
)
def test_the_image_of_a_server_tells_its_release_not_that_of_others(
    tmp_path: Path, image: str, beside: str, known: bool
) -> None:
    router = "python3 -m sglang_router.launch_router --worker-urls http://a http://b"
    files = {
        "a.docker-compose.yml": SERVED.format(image, SERVER),
        "b.docker-compose.yml": SERVED.format(beside, router),
    }
    assert bool(told(tmp_path, files, "GPU005")) is known


@pytest.mark.parametrize(
    ("flags", "instruction"),
    [
        ("--enable-nsa-prefill-context-parallel", "write --enable-prefill-cp, or"),
        ("--nsa-prefill-cp-mode round-robin-split", "write --cp-strategy interleave, or"),
        ("--enforce-piecewise-cuda-graph", "write --cuda-graph-backend-prefill tc_piecewise, or"),
        ("--piecewise-cuda-graph-max-tokens 4096", "write --cuda-graph-max-bs-prefill, or"),
        ("--prefill-round-robin-balance", "drop --prefill-round-robin-balance, or"),
    ],
)
def test_flags_that_sglang_calls_deprecated_have_their_successors(
    tmp_path: Path, flags: str, instruction: str
) -> None:
    command = f"python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B {flags}\n"
    (message,) = told(tmp_path / "new", {"serve.sh": command}).values()
    assert message.startswith(instruction)
    pinned = {"requirements.txt": "sglang==0.5.15\n"}
    assert told(tmp_path / "old", {"serve.sh": command, **pinned}) == {}


# --- source of LLaMA-Factory in the project ---

RECIPE = (
    "stage: sft\ndo_train: true\nfinetuning_type: lora\ntemplate: qwen\n"
    "model_name_or_path: Qwen/Qwen2.5-7B\ndataset: mine\noutput_dir: saves\n"
)
MARK = "llamafactory/hparams/parser.py"


def source(
    folder: str, version: str, package: str = "llamafactory/extras/env.py"
) -> dict[str, str]:
    return {f"{folder}{package}": f'VERSION = "{version}"\n', f"{folder}{MARK}": ""}


@pytest.mark.parametrize(
    ("files", "recipe", "version"),
    [
        (source("src/", "0.8.4.dev0"), "examples/sft.yaml", "0.8.4.dev0"),
        (source("src/", "0.7.1", "llamafactory/cli.py"), "sft.yaml", "0.7.1"),
        (source("LLaMA-Factory/src/", "0.9.0"), "LLaMA-Factory/sft.yaml", "0.9.0"),
        # that of another folder is not known to be installed
        (source("LLaMA-Factory/src/", "0.9.0"), "configs/sft.yaml", None),
        (
            {**source("LF/src/", "0.9.0"), "setup.sh": "cd LF\npip install -e '.[torch]'\n"},
            "configs/sft.yaml",
            "0.9.0",
        ),
        (
            {**source("LF/src/", "0.9.0"), "setup.sh": "pip install -e ./LF\n"},
            "configs/sft.yaml",
            "0.9.0",
        ),
        # the nearer of two
        (
            {**source("src/", "0.9.4"), **source("old/src/", "0.8.3")},
            "old/examples/sft.yaml",
            "0.8.3",
        ),
    ],
)
def test_the_source_that_a_run_lies_in_says_its_release(
    tmp_path: Path, files: dict[str, str], recipe: str, version: Optional[str]
) -> None:
    run = runs_of(tmp_path, {**files, recipe: RECIPE})[0]
    assert run.held.get("llamafactory") == version


def test_the_source_whose_script_a_launch_names_says_its_release(tmp_path: Path) -> None:
    files = {
        **source("train/LF/src/", "0.9.1.dev0"),
        "train/LF/src/train.py": "from llamafactory.train.tuner import run_exp\n\nrun_exp()\n",
        "configs/sft.yaml": RECIPE,
        "named.sh": "python train/LF/src/train.py configs/sft.yaml\n",
        "installed.sh": "llamafactory-cli train configs/sft.yaml\n",
    }
    held = {
        run.location.path: run.held.get("llamafactory")
        for run in runs_of(tmp_path, files)
        if run.command is not None
    }
    assert held == {"named.sh": "0.9.1.dev0", "installed.sh": None}


def test_defaults_of_a_release_are_its_own(tmp_path: Path) -> None:
    told = {}
    for version in ("0.8.4.dev0", "0.9.6.dev0"):
        files = {**source("src/", version), "sft.yaml": RECIPE}
        run = runs_of(tmp_path / version, files)[0]
        told[version] = (run.practice("max_length").value, run.practice("max_length").note)
    assert told["0.8.4.dev0"] == (1024, "llamafactory 0.8.3 hparams: cutoff_len 1024")
    assert told["0.9.6.dev0"][0] == 2048
    pinned = {"requirements.txt": "llamafactory==0.9.0\n", "sft.yaml": RECIPE}
    assert runs_of(tmp_path / "pinned", pinned)[0].value("max_length") == 1024


def test_what_a_held_release_lacks_is_not_advised(tmp_path: Path) -> None:
    found = {}
    for version in ("0.8.3", "0.9.5"):
        files = {**source("src/", version), "sft.yaml": RECIPE}
        found[version] = bool(told(tmp_path / version, files, "GPU305"))
    assert found == {"0.8.3": False, "0.9.5": True}


@pytest.mark.parametrize(
    ("model", "flags", "refused"),
    [
        ("MiniMaxAI/MiniMax-H3", "--ring-degree 2", False),
        ("me/llama-of-pictures", "--num-gpus 4 --mine 8", False),
        ("Qwen/Qwen3-8B", "--mine 8", True),
    ],
)
def test_a_server_of_images_or_videos_has_flags_of_its_own(
    tmp_path: Path, model: str, flags: str, refused: bool
) -> None:
    files = {"serve.sh": f"sglang serve --model-path {model} {flags}\n"}
    assert bool(told(tmp_path, files, "GPU005")) is refused


RANGE = '[project]\nname = "a"\ndependencies = ["transformers>=4.51.0,<=5.0.0", "torch>=2.4"]\n'
TRAINS = "swift sft --model Qwen/Qwen2.5-7B-Instruct --dataset a.jsonl\n"


def pinned(root: Path, files: dict[str, str]) -> dict[str, str]:
    run = next(r for r in runs_of(root, {**files, "train.sh": TRAINS}) if "train.sh" in r.id)
    return {name: run.versions.get(name, "") for name in ("transformers", "torch", "ms-swift")}


@pytest.mark.parametrize(
    ("files", "transformers"),
    [
        ({"requirements.txt": "transformers==5.0.0\n"}, "5.0.0"),
        # what an option asks for is not what every run has
        ({"requirements/sglang.txt": "transformers==4.51.1\n"}, ""),
        (
            {
                "requirements.txt": "transformers==5.0.0\n",
                "requirements/sglang.txt": "transformers==4.51.1\n",
                "requirements-npu.txt": "transformers==4.52.4\n",
            },
            "5.0.0",
        ),
        ({"requirements/base.txt": "transformers==4.57.1\n"}, "4.57.1"),
        ({"requirements-train.txt": "transformers==4.57.1\n"}, "4.57.1"),
        # images that disagree settle nothing
        (
            {
                "docker/a/Dockerfile": "FROM x\nRUN pip install transformers==4.52.4\n",
                "docker/b/Dockerfile": "FROM x\nRUN pip install transformers==4.57.1\n",
            },
            "",
        ),
        ({"docker/a/Dockerfile": "FROM x\nRUN pip install transformers==4.52.4\n"}, "4.52.4"),
        # one for other hardware beside it
        (
            {
                "docker/Dockerfile": "FROM x\nRUN pip install transformers==4.57.1\n",
                "docker/Dockerfile.rocm": "FROM x\nRUN pip install transformers==4.52.4\n",
            },
            "4.57.1",
        ),
        (
            {
                "docker/Dockerfile.cuda": "FROM x\nRUN pip install transformers==4.57.1\n",
                "docker/Dockerfile.rocm": "FROM x\nRUN pip install transformers==4.52.4\n",
            },
            "",
        ),
    ],
)
def test_a_pin_wins_over_a_range_and_an_option_over_nothing(
    tmp_path: Path, files: dict[str, str], transformers: str
) -> None:
    assert pinned(tmp_path, {"pyproject.toml": RANGE, **files})["transformers"] == transformers


def test_an_option_speaks_of_what_nothing_else_does(tmp_path: Path) -> None:
    files = {"requirements.txt": "transformers==5.0.0\n", "requirements/npu.txt": "torch==2.7.1\n"}
    assert pinned(tmp_path, files)["torch"] == "2.7.1"


@pytest.mark.parametrize(
    ("files", "version"),
    [
        ({"README.md": "```\npip install ms-swift==3.7.2\n```\n"}, "3.7.2"),
        ({"README.md": "pip install \\\n  'ms-swift[all]==3.7.2' -U\n"}, "3.7.2"),
        ({"README.md": "Tested with ms-swift==3.7.2.\n"}, ""),
        ({"README.md": "pip install ms-swift==3.7.2\n# or pip install ms-swift==3.8.0\n"}, ""),
        ({"README.md": "pip install ms-swift==3.7.2\nor ms-swift==3.8.0\n"}, ""),
        (
            {"README.md": "pip install ms-swift==3.7.2\n", "requirements.txt": "ms-swift==3.9.0\n"},
            "3.9.0",
        ),
        ({"README.md": "pip install ms-swift==3.7.2\n", "requirements.txt": "ms-swift>=3.9\n"}, ""),
    ],
)
def test_what_a_readme_installs_holds_where_nothing_else_is_said(
    tmp_path: Path, files: dict[str, str], version: str
) -> None:
    assert pinned(tmp_path, files)["ms-swift"] == version


def test_an_index_of_one_releases_wheels_pins_it(tmp_path):
    url = "https://wheels.vllm.ai/rocm/0.14.1/rocm700"
    (tmp_path / "page_0.sh").write_text(f"uv pip install vllm --extra-index-url {url}\n")
    (tmp_path / "page_1.sh").write_text("vllm serve org/model --swap-space 32\n")
    (tmp_path / "other_0.sh").write_text("pip install vllm==0.19.0\n")
    (tmp_path / "other_1.sh").write_text("vllm serve org/other\n")
    found = {run.location.path: run for run in find_runs(Project.open(tmp_path))}
    assert found["page_1.sh"].versions["vllm"] == "0.14.1"
    assert found["other_1.sh"].versions["vllm"] == "0.19.0"


_ROCM = "uv pip install vllm --extra-index-url https://wheels.vllm.ai/rocm/0.14.1/rocm700\n"


@pytest.mark.parametrize(
    ("files", "version"),
    [
        ({"page_0.sh": "uv pip install -U vllm\n"}, None),
        ({}, None),
        ({"page_0.sh": "pip install vllm==0.12.0\n"}, "0.12.0"),
        ({"page_0.sh": "uv pip install -U vllm\n", "page_4.sh": _ROCM}, None),
        ({"page_4.sh": _ROCM}, "0.14.1"),
        ({"requirements.txt": "vllm==0.11.0\n"}, "0.11.0"),
        ({"install_0.sh": "pip install vllm==0.11.0\n"}, "0.11.0"),
    ],
)
def test_a_numbered_page_takes_no_pin_of_another_one(tmp_path, files, version):
    files = {
        "other_0.sh": "pip install vllm==0.19.0\n",
        "third_1.yaml": "services: {a: {image: 'vllm/vllm-openai:v0.18.0'}}\n",
        "inc_19.Dockerfile": "FROM vllm/vllm-openai:v0.11.2\n",
        **files,
        "page_1.sh": "vllm serve org/model\n",
    }
    for path, text in files.items():
        (tmp_path / path).write_text(text)
    found = {run.location.path: run for run in find_runs(Project.open(tmp_path))}
    assert found["page_1.sh"].versions.get("vllm") == version


def test_an_amd_launch_takes_its_pages_wheels_for_amd(tmp_path):
    (tmp_path / "page_0.sh").write_text("uv pip install vllm==0.18.0\n")
    (tmp_path / "page_1.sh").write_text(_ROCM)
    (tmp_path / "page_2.sh").write_text("VLLM_ROCM_USE_AITER=1 vllm serve org/model\n")
    (tmp_path / "page_3.sh").write_text("vllm serve org/model\n")
    found = {run.location.path: run for run in find_runs(Project.open(tmp_path))}
    assert found["page_2.sh"].versions["vllm"] == "0.14.1"
    assert found["page_3.sh"].versions["vllm"] == "0.18.0"


def test_scripts_without_numbers_take_the_pins_beside_them(tmp_path):
    (tmp_path / "other_0.sh").write_text("pip install vllm==0.19.0\n")
    (tmp_path / "serve.sh").write_text("vllm serve org/model\n")
    found = {run.location.path: run for run in find_runs(Project.open(tmp_path))}
    assert found["serve.sh"].versions["vllm"] == "0.19.0"


def test_an_index_of_no_release_pins_none(tmp_path):
    (tmp_path / "a.sh").write_text(
        "pip install vllm --extra-index-url https://wheels.vllm.ai/nightly/cu129\n"
        "vllm serve org/model\n"
    )
    (run,) = find_runs(Project.open(tmp_path))
    assert "vllm" not in run.versions


def test_a_flag_that_later_releases_lack_tells_the_release(tmp_path):
    def engine(flags):
        (tmp_path / "a.sh").write_text(f"vllm serve org/model {flags}\n")
        (run,) = find_runs(Project.open(tmp_path))
        found = engine_of(run)
        assert found is not None
        assert found.release is not None
        return found.release

    newest = engine("--max-num-seqs 8")
    older = engine("--swap-space 32")
    assert newest.version == newest.table.versions[-1]
    assert older.version != newest.version
    assert older.table.knows("engine", "swap_space", older.table.release(older.version))
    assert engine("--no-such-flag 1").version == newest.version


@pytest.mark.parametrize(
    ("head", "version"),
    [
        ("# dependency: GPU vllm==0.18.0, transformers@<c0ffee>\n", "0.18.0"),
        ("# Needs:\n#   - vllm==v0.13.0\n", "0.13.0"),
        ("# dependency: GPU vllm==0.18.0\n# dependency: NPU vllm==0.17.0\n", "0.18.0"),
        ("# Requirements on Ascend:\n#     pip install x\n#   - vllm==0.18.0\n", None),
        ("# requires vllm==0.18.0\n# requires vllm==0.17.0\n", None),
        ("# pip install vllm==0.18.0\n", None),
        ("set -e\n# dependency: vllm==0.18.0\n", None),
    ],
)
def test_a_scripts_head_states_what_it_needs(tmp_path, head, version):
    text = f"#!/bin/bash\n{head}\nvllm serve org/model\n"
    (tmp_path / "a.sh").write_text(text)
    (run,) = find_runs(Project.open(tmp_path))
    assert run.versions.get("vllm") == version
