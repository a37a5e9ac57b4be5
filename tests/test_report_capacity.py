"""The reports say how an engine's memory is split, and how many requests its cache holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.find import find_runs
from flake8_gpu_training.serving_memory import capacity_of
from report_builder.cli import main
from report_builder.run_words import RunWords

SERVE = "vllm serve Qwen/Qwen3-8B --max-model-len 32768 --gpu-memory-utilization 0.9\n"


def audit(tmp_path: Path, *arguments: str, script: str = SERVE) -> str:
    project = tmp_path / "project"
    project.mkdir()
    (project / "serve.sh").write_text(script)
    main([str(project), "--output-dir", str(tmp_path / "out"), "--quiet", *arguments])
    return (tmp_path / "out" / "v0_vllm-optimization-report.md").read_text(encoding="utf-8")


def test_the_table_adds_up_on_a_named_gpu(tmp_path: Path) -> None:
    report = audit(tmp_path, "--lang", "zh", "--gpu", "A100-80G")
    assert "- 推理引擎：vLLM " in report
    assert "，在线服务，TP 1" in report
    # 79.15 x 0.9 = 71.2; weights 15.3; a batch and the driver take the rest.
    rows = dict(
        [cell.strip(" *") for cell in line.strip("|").split("|")]
        for line in report[report.index("## 显存估算参考") : report.index("## 检查明细")].split(
            "\n"
        )
        if line.startswith("|")
    )
    usable = float(rows["可用（79.2 × 0.9）"].split()[0])
    parts = [float(rows[name].split()[0]) for name in ("− 权重", "− 前向峰值与驱动", "KV 缓存")]
    assert usable == pytest.approx(sum(parts), abs=0.16)
    assert parts[0] == pytest.approx(15.3, abs=0.1)
    assert float(rows["32,768 token 的请求同时可容纳"]) == pytest.approx(
        int(rows["可缓存 token"].replace(",", "")) / 32768, abs=0.01
    )


def test_common_cards_stand_in_for_an_unknown_one(tmp_path: Path) -> None:
    script = SERVE.replace("Qwen3-8B", "Qwen2.5-14B-Instruct")
    report = audit(tmp_path, "--lang", "en", script=script)
    assert "The GPU is not known; on common cards (memory × 0.9):" in report
    assert "| 24 GiB | does not fit | — | — |" in report
    assert "| 80 GiB | " in report


@pytest.mark.parametrize(
    ("script", "mode"),
    [
        ("vllm serve Qwen/Qwen3-8B -tp 2 -dp 4\n", "server, TP 2, DP 4"),
        (
            "python -m vllm.entrypoints.openai.api_server --model Qwen/Qwen3-8B "
            "--pipeline-parallel-size 2\n",
            "server, TP 1, PP 2",
        ),
        (
            "trl vllm-serve --model Qwen/Qwen3-8B --tensor_parallel_size 2\n",
            "RLHF rollouts on GPUs of their own, by TRL, TP 2",
        ),
        (
            "swift rlhf --rlhf_type grpo --model Qwen/Qwen3-8B --use_vllm true "
            "--vllm_mode colocate --vllm_tensor_parallel_size 2\n",
            "RLHF rollouts on the training's GPUs, by ms-swift, TP 2",
        ),
    ],
)
def test_the_engine_is_named_with_its_mode_and_sizes(
    tmp_path: Path, script: str, mode: str
) -> None:
    (tmp_path / "run.sh").write_text(script)
    (run,) = find_runs(Project.open(tmp_path))
    assert RunWords("en").engine_of(run).split(", ", 1)[1] == mode


def test_runs_without_an_engine_say_nothing(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("swift sft --model Qwen/Qwen3-8B --dataset data.jsonl\n")
    (run,) = find_runs(Project.open(tmp_path))
    assert RunWords("en").engine_of(run) == ""
    assert RunWords("en").capacity_rows(run) == []
    assert capacity_of(run) is None
