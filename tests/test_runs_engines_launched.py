"""Launch commands whose engine is started by a program, or gets its arguments from one."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import pytest
from checks_support import check_of

from flake8_gpu_training.checks.base import Status
from flake8_gpu_training.frameworks.detection import detect
from flake8_gpu_training.frameworks.engine_of import engine_of
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.find import find_runs
from flake8_gpu_training.runs.model import Run
from flake8_gpu_training.verdicts import judge
from report_builder.report import Options, build

Launched = Callable[..., Run]
SERVER = "python -m sglang.launch_server --model-path Qwen/Qwen3-{size} --tp {tp}\n"
STARTS = """\
import argparse, subprocess, sys


def serve(args):
    cmd = [sys.executable, "-m", args.module, "--model-path", args.model, "--tp", str(args.tp)]
    if args.fast:
        cmd += ["--enable-mixed-chunk"]
    else:
        cmd += ["--disable-cuda-graph"]
    return subprocess.Popen(cmd)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--module", default="sglang.launch_server")
    parser.add_argument("--tp", type=int, default=2)
    parser.add_argument("--fast", action="store_true")
    serve(parser.parse_args())
"""
ENGINE = """\
import argparse, asyncio, dataclasses
import sglang as sgl
from sglang.srt.server_args import ServerArgs


class Inference:
    def __init__(self, **kwargs):
        self.engine = sgl.Engine(**kwargs)


async def serve(server_args):
    Inference(**dataclasses.asdict(server_args))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", default="out")
    ServerArgs.add_cli_args(parser)
    args = parser.parse_args()
    asyncio.run(serve(ServerArgs.from_cli_args(args)))
"""


@pytest.fixture
def launched(tmp_path: Path) -> Launched:
    def make(command: str, **files: str) -> Run:
        for name, text in files.items():
            path = tmp_path / name.replace("__", ".")
            path.write_text(text, encoding="utf-8")
        project = Project.open(tmp_path)
        return find_runs(project, command, detection=detect(project, ()))[0]

    return make


def values(run: Run) -> dict[str, Any]:
    return {n: s.value for n, s in run.settings.items() if n != "tp_size"}


def test_a_server_that_a_program_starts_has_what_the_command_line_makes_of_it(
    launched: Launched,
) -> None:
    other = SERVER.format(size="0.6B", tp=1)
    run = launched("python serve.py Qwen/Qwen3-8B", serve__py=STARTS, other__sh=other)
    assert (run.location.path, run.framework, run.is_open) == ("serve.py", "sglang", False)
    assert values(run) == {"model_path": "Qwen/Qwen3-8B", "tp": 2, "disable_cuda_graph": True}


def test_the_branch_and_the_values_are_those_of_the_flags_given(launched: Launched) -> None:
    run = launched("python serve.py Qwen/Qwen3-8B --tp 4 --fast", serve__py=STARTS)
    assert values(run) == {"model_path": "Qwen/Qwen3-8B", "tp": 4, "enable_mixed_chunk": True}


def test_the_engine_that_is_named_is_the_one_that_is_started(launched: Launched) -> None:
    body = (
        "import argparse, subprocess\n"
        "p = argparse.ArgumentParser()\n"
        'p.add_argument("--sglang", action="store_true")\n'
        "args = p.parse_args()\n"
        "if args.sglang:\n"
        '    cmd = ["python", "-m", "sglang.launch_server", "--model-path", "Qwen/Qwen3-8B"]\n'
        "else:\n"
        '    cmd = ["vllm", "serve", "Qwen/Qwen3-8B"]\n'
        "subprocess.Popen(cmd)\n"
    )
    assert launched("python chat.py --sglang", chat__py=body).framework == "sglang"
    assert launched("python chat.py", chat__py=body).framework == "vllm"


def test_words_that_a_loop_takes_apart_name_the_model(launched: Launched) -> None:
    body = (
        "import subprocess, sys\n"
        "def main():\n"
        "    pairs, waiting = [], []\n"
        "    for word in sys.argv[1:]:\n"
        '        model, tp = word.rsplit(":", 1)\n'
        "        pairs.append((model, int(tp)))\n"
        "    for model, tp in pairs:\n"
        "        if is_warm(model):\n"
        "            continue\n"
        "        waiting.append((model, tp))\n"
        "    for model, tp in waiting:\n"
        '        cmd = [sys.executable, "-m", "sglang.launch_server", "--model-path", model]\n'
        '        subprocess.run(cmd + ["--tp", str(tp)])\n'
        "main()\n"
    )
    run = launched("python warm.py deepseek-ai/DeepSeek-V3-0324:8", warm__py=body)
    assert values(run) == {"model_path": "deepseek-ai/DeepSeek-V3-0324", "tp": 8}


def test_two_servers_of_one_call_are_runs_each(tmp_path: Path) -> None:
    body = (
        "import json, subprocess, sys\n"
        'for mode in "cache,buffer".split(","):\n'
        '    cmd = [sys.executable, "-m", "sglang.launch_server"]\n'
        '    cmd += ["--model-path", "Qwen/Qwen3-8B"]\n'
        '    if mode == "buffer":\n'
        '        cmd += ["--hicache-size", "2"]\n'
        "    else:\n"
        '        cmd += ["--hicache-ratio", "2"]\n'
        '    extra = json.dumps({"prefetch_threshold": 64})\n'
        '    subprocess.Popen(cmd + ["--hicache-storage-backend-extra-config", extra])\n'
    )
    (tmp_path / "bench.py").write_text(body)
    runs = find_runs(Project.open(tmp_path), "python bench.py")
    extra = {"prefetch_threshold": 64}
    assert [values(run).get("hicache_ratio") for run in runs[:2]] == [2, None]
    assert [values(run).get("hicache_size") for run in runs[:2]] == [None, 2]
    assert {str(values(run)["hicache_storage_backend_extra_config"]) for run in runs[:2]} == {
        str(extra)
    }


def test_flags_of_an_engine_that_adds_them_to_the_parser_are_its_arguments(
    launched: Launched,
) -> None:
    run = launched("python run.py --model-path Qwen/Qwen3-8B --tp 2 --output x", run__py=ENGINE)
    assert not run.is_open
    assert values(run) == {"model_path": "Qwen/Qwen3-8B", "tp": 2}
    given = '["--model-path=Qwen/Qwen3-8B", "--skip-tokenizer-init"]'
    listed = ENGINE.replace("parser.parse_args()", f"parser.parse_args(args={given})")
    run = launched("python run.py", run__py=listed)
    assert values(run) == {"model_path": "Qwen/Qwen3-8B", "skip_tokenizer_init": True}


def test_without_a_command_the_flags_of_such_a_program_are_not_known(tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text(ENGINE)
    (run,) = find_runs(Project.open(tmp_path))
    assert run.framework == "sglang"
    assert run.is_open


# --- which run the engine's audit is about --------------------------------------------------

ROUTER = "python -m sglang_router.launch_router --worker-urls http://a:1 http://b:1\n"


def audited(tmp_path: Path, command: str, **files: str) -> str:
    for name, text in files.items():
        (tmp_path / name.replace("__", ".")).write_text(text)
    report = build(tmp_path, "p", Options(command), lambda *_: None)
    (audit,) = (one for one in report.audits if one.audit.id == "sglang")
    engine = report.engine_runs.get("sglang", report.primary)
    assert engine is not None
    items = {item.id: item for category in audit.categories for item in category.items}
    return f"{engine.location.path} {items['tensor-parallel'].status.value}"


def test_a_router_that_is_launched_is_audited_itself(tmp_path: Path) -> None:
    files = {"router__sh": ROUTER, "server__sh": SERVER.format(size="8B", tp=2)}
    assert audited(tmp_path, "bash router.sh", **files).startswith("router.sh not_applicable")
    assert audited(tmp_path, "bash server.sh", **files) == "server.sh enabled"
    assert audited(tmp_path, "", **files) == "server.sh enabled"


def test_of_a_router_and_a_server_in_one_script_the_server_is_audited(tmp_path: Path) -> None:
    both = ROUTER + SERVER.format(size="8B", tp=2)
    files = {"both__sh": both, "a__sh": SERVER.format(size="0.6B", tp=1)}
    assert audited(tmp_path, "bash both.sh", **files) == "both.sh enabled"


def test_ranks_of_dp_attention_are_among_those_of_tensor_parallelism(launched: Launched) -> None:
    body = SERVER.format(size="30B-A3B", tp=8).rstrip() + " --dp 4"
    run = launched("bash inside.sh", inside__sh=f"{body} --enable-dp-attention\n")
    assert (run.hardware.gpus_per_node, run.launcher.world_size) == (8, 8)
    run = launched("bash beside.sh", beside__sh=f"{body}\n")
    assert run.launcher.world_size == 32


# --- shell scripts of documents -------------------------------------------------------------

DRUN = (
    "{lead}drun --env HF_TOKEN=x --ipc=host \\\n    sglang_image \\\n"
    "    python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B \\ # <- here\n"
    "    --tp 8 \\\n    --port 30000\n"
)
ALIAS = "alias drun='docker run -it --rm --device=/dev/kfd \\\n    -v /data:/data'\n"


@pytest.mark.parametrize("lead", ["", ALIAS])
def test_an_alias_of_docker_run_starts_what_stands_behind_its_image(
    launched: Launched, lead: str
) -> None:
    run = launched("bash serve.sh", serve__sh=DRUN.format(lead=lead))
    assert values(run) == {"model_path": "Qwen/Qwen3-8B", "tp": 8, "port": 30000}
    assert run.command is not None
    (wrapper,) = run.command.wrappers
    assert wrapper[0].text == ("docker" if lead else "drun")
    (verdict,) = judge(run, [check_of("GPU990")])
    assert verdict.judgement.status is Status.ENABLED  # --ipc=host
    bare = launched("bash b.sh", b__sh=DRUN.format(lead=lead).replace("--ipc=host", "-p 1:1"))
    (verdict,) = judge(bare, [check_of("GPU990")])
    expected = Status.RECOMMENDED if lead else Status.UNKNOWN  # nobody knows the alias
    assert verdict.judgement.status is expected
    assert not run.is_open


def test_a_comment_behind_a_backslash_is_told_of_and_cuts_nothing_off(launched: Launched) -> None:
    body = (
        "vllm serve Qwen/Qwen3-8B \\   # a 'model'\n"
        "    --tensor-parallel-size 2 \\ # two ranks\n    --enforce-eager \\  # last\n"
        "echo \\ # no --flag below\ndone\n"
    )
    run = launched("bash serve.sh", serve__sh=body)
    assert values(run) == {
        "model": "Qwen/Qwen3-8B",
        "tensor_parallel_size": 2,
        "enforce_eager": True,
    }
    assert not run.is_open
    (verdict,) = judge(run, [check_of("GPU003")])
    lines = [finding.location.line for finding in verdict.judgement.findings]
    assert lines == [1, 2, 3, 4]
    assert "move the comment to a line of its own" in verdict.judgement.findings[0].message


def test_arguments_that_a_usage_line_leaves_out_may_be_any(launched: Launched) -> None:
    body = "python -m sglang.launch_server [args] \\\n  --load-format remote_instance\n"
    run = launched("bash serve.sh", serve__sh=body)
    assert run.is_open
    assert run.model.name is None
    assert values(run) == {"load_format": "remote_instance"}
    other = "python -m sglang.launch_server --model-path Qwen/Qwen3-8B --lora-paths [a-z]*\n"
    assert not launched("bash other.sh", other__sh=other).is_open


def test_quoted_text_with_a_backslash_and_a_hash_is_left_alone(launched: Launched) -> None:
    body = "sed 's/a\\ #b/c/' x\nvllm serve Qwen/Qwen3-8B --served-model-name 'a \\ # b' \n"
    run = launched("bash serve.sh", serve__sh=body)
    assert values(run)["served_model_name"] == "a \\ # b"


def test_arithmetic_within_an_index_is_one_word(launched: Launched) -> None:
    body = (
        'IPS=("$A" "$B")\nfor i in "${!IPS[@]}"; do\n'
        "  python -m sglang.launch_server --model-path Qwen/Qwen3-8B \\\n"
        "    --dist-init-addr ${IPS[$(( $i / 2 * 2 ))]}:5000 --tp 2\ndone\n"
    )
    run = launched("bash serve.sh", serve__sh=body)
    assert (run.is_open, values(run)["tp"]) == (False, 2)
    spread = body.replace("${IPS[$(( $i / 2 * 2 ))]}:5000", "${IPS[@]}")
    assert launched("bash more.sh", more__sh=spread).is_open


def test_an_indented_document_that_a_script_writes_is_read(launched: Launched) -> None:
    body = (
        "  cat > config.yaml << EOF\n  model-path: Qwen/Qwen3-8B\n  tp: 2\n  EOF\n\n"
        "  python -m sglang.launch_server --config config.yaml\n"
    )
    run = launched("bash serve.sh", serve__sh=body)
    assert not run.is_open
    assert {"model_path": "Qwen/Qwen3-8B", "tp": 2}.items() <= values(run).items()


def test_a_block_of_python_in_a_shell_script_starts_its_server(launched: Launched) -> None:
    body = (
        "#!/bin/bash\nserver, port = launch_server_cmd(\n"
        '    """\npython3 -m sglang.launch_server --model-path Qwen/Qwen3-8B \\\n'
        '    --enable-lora\n"""\n)\n'
    )
    other = SERVER.format(size="0.6B", tp=1)
    run = launched("bash block.sh", block__sh=body, other__sh=other)
    assert run.location.path == "block.sh"
    assert values(run) == {"model_path": "Qwen/Qwen3-8B", "enable_lora": True}
    text = "x=1\n# launch_server_cmd( is Python's\n" + other
    assert launched("bash plain.sh", plain__sh=text).location.line == 3


def test_what_a_loop_finds_out_before_it_is_left_may_be_so(launched: Launched) -> None:
    body = (
        "import argparse, glob\nimport sglang as sgl\n"
        "def is_whole(folder):\n    found = False\n"
        '    for pattern in ("*.safetensors", "*.bin"):\n'
        "        if glob.glob(folder + pattern):\n            found = True\n            break\n"
        "    return found\n"
        "def deploy(folder):\n    if not is_whole(folder):\n        return\n"
        '    sgl.Engine(model_path=folder, quantization="modelopt")\n'
        'p = argparse.ArgumentParser()\np.add_argument("--dir")\ndeploy(p.parse_args().dir)\n'
    )
    run = launched("python deploy.py --dir ./Qwen3-8B-FP8", deploy__py=body)
    assert values(run) == {"model_path": "./Qwen3-8B-FP8", "quantization": "modelopt"}


PATCH = """\
apiVersion: workloads.x-k8s.io/v1alpha2
kind: RoleBasedGroup
spec:
  roleTemplates:
    - name: base
      template:
        spec:
          containers:
            - name: sglang
              image: lmsysorg/sglang:v0.5.5
  roles:
    - name: router
      standalonePattern:
        templateRef:
          name: base
          patch:
            spec:
              containers:
                - name: sglang
                  command: [python3, -m, sglang_router.launch_router]
    - name: worker
      standalonePattern:
        templateRef:
          name: base
          patch:
            spec:
              containers:
                - name: sglang
                  command: [python3, -m, sglang.launch_server]
                  args: [--model-path, Qwen/Qwen3-0.6B, --enable-metrics]
"""


def test_a_container_that_patches_a_template_starts_a_server_of_its_image(
    launched: Launched,
) -> None:
    run = launched("kubectl apply -f group.yaml", group__yaml=PATCH)
    assert values(run) == {"model_path": "Qwen/Qwen3-0.6B", "enable_metrics": True}
    engine = engine_of(run)
    assert engine is not None
    assert engine.release is not None
    assert engine.release.version == "0.5.5"
