"""The capacity of engines, against what vLLM logged when it started."""

from __future__ import annotations

from pathlib import Path

import pytest
from checks_support import findings, runs_of

from flake8_gpu_training._shapes import Shape, shape_named
from flake8_gpu_training.serving_memory import (
    bytes_of_token,
    capacity_of,
    overhead_gib,
    tokens_in,
    weights_gib,
)


def shape(name: str) -> Shape:
    found = shape_named(name)
    assert found is not None
    return found


# Model, tensor parallelism, bytes of a number, GiB for the cache, tokens as logged; where.
LOGGED = [
    ("llama-3.1-8b", 1, 2, 3.81, 31_232, "vllm#10517, RTX 3090, 20000 tokens"),
    ("llama-3.1-8b", 1, 2, 2.89, 23_648, "vllm#10517, RTX 3090, 29000 tokens"),
    ("qwen3-0.6b", 1, 2, 12.67, 118_576, "dtcms.com/a/609393, share 0.2"),
    ("qwen3-0.6b", 1, 2, 69.66, 652_144, "vllm#24577, A100"),
    ("qwen3-235b-a22b", 4, 2, 8.11, 178_880, "vllm#21348, 4xH100"),
    ("qwen2.5-32b", 2, 2, 7.71, 63_152, "vllm#15815, 2xL40S"),
    ("qwen3-coder-480b-a35b", 1, 2, 48.66, 205_728, "recipes#12, H20, share 0.9"),
    ("qwen3-coder-480b-a35b", 1, 2, 55.65, 235_296, "recipes#12, H20, share 0.95"),
]


@pytest.mark.parametrize(("name", "tensor", "element", "pool", "tokens", "where"), LOGGED)
def test_tokens_of_a_pool(
    name: str, tensor: int, element: float, pool: float, tokens: int, where: str
) -> None:
    found = tokens_in(pool, bytes_of_token(shape(name), tensor, element=element))
    assert found == pytest.approx(tokens, rel=0.05), where


# Model, reported GiB, share, GPUs, batched tokens, sequences; weights, tokens as logged.
STARTED = [
    ("llama-3.1-8b", 23.58, 0.9, 1, 20_000, 256, 14.99, 31_232, "vllm#10517"),
    ("llama-3.1-8b", 23.58, 0.9, 1, 29_000, 256, 14.99, 23_648, "vllm#10517"),
    ("qwen2.5-32b", 44.42, 0.9, 2, 10_000, 256, 30.71, 63_152, "vllm#15815"),
    ("qwen3-0.6b", 79.15, 0.9, 1, 16_384, 1_024, 1.12, 652_144, "vllm#24577"),
    ("llama-2-7b", 79.15, 0.9, 1, 4_096, 256, None, 117_616, "vllm#2031"),
]


@pytest.mark.parametrize(
    ("name", "total", "share", "gpus", "batch", "sequences", "weights", "tokens", "where"), STARTED
)
def test_the_cache_that_is_left_on_a_gpu(
    name: str,
    total: float,
    share: float,
    gpus: int,
    batch: int,
    sequences: int,
    weights: float,
    tokens: int,
    where: str,
) -> None:
    model = shape(name)
    held = weights_gib(model, 2, gpus)
    assert weights is None or held == pytest.approx(weights, rel=0.05)
    pool = total * share - held - overhead_gib(model, batch, sequences, gpus)
    assert tokens_in(pool, bytes_of_token(model, gpus)) == pytest.approx(tokens, rel=0.05), where


def test_one_sequence_of_the_largest_model(tmp_path: Path) -> None:
    # recipes#12: "62.00 GiB KV cache is needed" for 262144 tokens.
    needed = 262_144 * bytes_of_token(shape("qwen3-coder-480b-a35b")) / 1024**3
    assert needed == pytest.approx(62.0, rel=0.001)


def test_latent_attention_keeps_one_vector_on_every_rank() -> None:
    r1 = shape("deepseek-r1")
    assert bytes_of_token(r1, 1) == bytes_of_token(r1, 8) == 61 * (512 + 64) * 2


def serve(gpus: str, model: str, flags: str) -> dict[str, str]:
    head = f"#!/bin/bash\n#SBATCH --gres=gpu:{gpus}\n"
    return {"serve.sh": f"{head}vllm serve {model} {flags}\n", "requirements.txt": "vllm==0.10.2\n"}


LLAMA, QWEN_72B = "meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen2.5-72B-Instruct"


@pytest.mark.parametrize(
    ("gpus", "model", "flags", "words"),
    [
        ("a100-80g:1", QWEN_72B, "", "weights take 135.4 GiB a GPU"),
        ("a100-80g:2", QWEN_72B, "-tp 2 --max-model-len 32768", "32768 tokens takes 5.0 GiB"),
        ("rtx4090:1", LLAMA, "", "131072 tokens takes 16.0 GiB"),
        ("rtx4090:1", LLAMA, "--max-model-len 65536", "65536 tokens takes 8.0 GiB"),
    ],
)
def test_what_cannot_start_is_told_with_its_arithmetic(
    gpus: str, model: str, flags: str, words: str, tmp_path: Path
) -> None:
    (found,) = findings(runs_of(tmp_path, serve(gpus, model, flags)), "GPU028")
    assert words in found.message


@pytest.mark.parametrize(
    ("gpus", "model", "flags"),
    [
        ("a100-80g:4", QWEN_72B, "-tp 4 --max-model-len 32768"),
        ("rtx4090:1", LLAMA, "--max-model-len 16384"),
        ("rtx4090:1", LLAMA, "--max-model-len -1"),
        ("a100-80g:1", f"{QWEN_72B}-AWQ", "--max-model-len 8192"),
        ("a100-80g:1", QWEN_72B, "--cpu-offload-gb 100 --max-model-len 8192"),
        ("a100-80g:1", QWEN_72B, "--quantization fp8 --max-model-len 4096"),
        ("a100:1", QWEN_72B, ""),  # of 40 or 80 GB
        ("rtx4090:1", "google/gemma-3-27b-it", ""),  # keeps windows
        ("rtx4090:1", "my/own-model", ""),
    ],
)
def test_what_may_start_is_left_alone(gpus: str, model: str, flags: str, tmp_path: Path) -> None:
    assert findings(runs_of(tmp_path, serve(gpus, model, flags)), "GPU028") == []


def test_the_capacity_of_a_run(tmp_path: Path) -> None:
    (run,) = runs_of(tmp_path, serve("a100-80g:1", LLAMA, "--max-model-len 8192"))
    found = capacity_of(run)
    assert found is not None
    assert found.weights == pytest.approx(14.96, abs=0.01)
    assert (found.total, found.share, found.token_bytes) == (79.15, 0.9, 131_072)
    assert found.tokens == pytest.approx(455_600, rel=0.01)
    assert found.concurrency == pytest.approx(55.6, rel=0.01)
