"""Parsers, models and heads that the servers of vLLM and SGLang refuse."""

from __future__ import annotations

from pathlib import Path

import pytest
from checks_support import findings, runs_of

SGLANG = "python -m sglang.launch_server "
MODEL = "--model-path Qwen/Qwen2.5-7B-Instruct "
VLLM = "vllm serve Qwen/Qwen3-8B --enable-auto-tool-choice "


def messages(root: Path, pin: str, command: str) -> list[str]:
    runs = runs_of(root, {"run.sh": command + "\n", "requirements.txt": pin})
    return [one.message for code in ("GPU024", "GPU009") for one in findings(runs, code)]


@pytest.mark.parametrize(
    ("pin", "command", "expected"),
    [
        ("vllm==0.10.2", VLLM + "--tool-call-parser hermess", "parser one of hermes"),
        ("vllm==0.19.1", VLLM + "--tool-call-parser hermess", "parser one of hermes"),
        (
            "vllm==0.33.0",
            VLLM + "--tool-call-parser hermes --reasoning-parser qwen33",
            "--reasoning-parser one of qwen3",
        ),
        ("sglang==0.4.6", SGLANG + MODEL + "--tool-call-parser qwen99", "tool-call-parser"),
        ("sglang==0.5.10", SGLANG + MODEL + "--tool-call-parser qwen99", "parser one of qwen"),
        ("sglang==0.5.23", SGLANG + MODEL + "--reasoning-parser qwen33", "parser one of qwen3"),
        ("sglang==0.5.10", SGLANG + "--tp 2", "add --model-path"),
        ("sglang==0.4.6", SGLANG + MODEL + "--tp 3", "to 2 or another divisor of 28"),
        ("sglang==0.5.10", SGLANG + MODEL + "--tp 3", "to 2 or another divisor of 28"),
        ("sglang==0.5.23", SGLANG + MODEL + "--tp 6 --dp 2 --enable-dp-attention", "of 28"),
        (
            "sglang==0.5.10",
            SGLANG + "--model-path meta-llama/Llama-3.1-8B-Instruct --tp 6",
            "divisor of 32",
        ),
    ],
)
def test_a_server_does_not_start_so(tmp_path: Path, pin: str, command: str, expected: str) -> None:
    assert [expected in one for one in messages(tmp_path, pin, command)] == [True]


@pytest.mark.parametrize(
    ("pin", "command"),
    [
        ("vllm==0.10.2", VLLM + "--tool-call-parser hermes --reasoning-parser qwen3"),
        ("vllm==0.10.2", VLLM + "--tool-call-parser own --tool-parser-plugin own.py"),
        ("vllm==0.10.2", "vllm serve Qwen/Qwen3-8B --tool-call-parser own"),
        ("vllm==0.10.2", VLLM + "--tool-call-parser $PARSER"),
        ("sglang==0.5.10", SGLANG + MODEL + "--tool-call-parser qwen25"),
        ("sglang==0.5.23", SGLANG + MODEL + "--tool-call-parser auto --reasoning-parser auto"),
        ("sglang==0.5.10", SGLANG + "--model Qwen/Qwen3-8B --tp 2"),
        ("sglang==0.5.10", SGLANG + "--config serve.yaml"),
        ("sglang==0.5.10", SGLANG + "$ARGS --tp 2"),
        ("sglang==0.5.10", SGLANG + MODEL + "--tp 4"),
        ("sglang==0.5.10", SGLANG + MODEL + "--tp 8 --dp 4 --enable-dp-attention"),
        ("sglang==0.5.10", SGLANG + "--model-path own/model --tp 3"),
        ("sglang==0.5.10", SGLANG + "--help"),
    ],
)
def test_a_server_starts_so(tmp_path: Path, pin: str, command: str) -> None:
    assert messages(tmp_path, pin, command) == []
