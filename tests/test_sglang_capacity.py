"""What SGLang holds on a GPU: weights and token pool within its static share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from audit_cases_sglang import A100, H100, LARGE, QWEN, flags, python
from checks_support import judged, runs_of

from flake8_gpu_training.serving_memory import GIB, Capacity, capacity_of


def capacity(root: Path, options: dict[str, Any], model: str = QWEN, gpus: str = H100) -> Capacity:
    found = capacity_of(runs_of(root, flags(options, model=model, gpus=gpus))[0])
    assert found is not None
    return found


def test_the_pool_is_what_weights_leave_of_the_static_share(tmp_path: Path) -> None:
    found = capacity(tmp_path, {"mem_fraction_static": 0.85})
    # 8.19 billion weights of 2 bytes; 36 layers, 8 heads of 128, keys and values, 2 bytes.
    assert found.weights == pytest.approx(15.26, abs=0.01)
    assert found.token_bytes == 147_456
    assert found.pool == pytest.approx(79.1 * 0.85 - found.weights, abs=0.01)
    assert found.pool is not None
    assert found.tokens == pytest.approx(found.pool * GIB / 147_456, rel=0.001)


def test_ranks_split_weights_and_heads(tmp_path: Path) -> None:
    one = capacity(tmp_path / "a", {"mem_fraction_static": 0.85}, LARGE)
    four = capacity(tmp_path / "b", {"mem_fraction_static": 0.85, "tp_size": 4}, LARGE)
    assert four.weights == pytest.approx(one.weights / 4)
    assert four.token_bytes == one.token_bytes // 4


def test_an_unset_share_leaves_the_pool_open(tmp_path: Path) -> None:
    found = capacity(tmp_path, {})
    assert found.tokens is None
    assert found.most is not None


@pytest.mark.parametrize(
    ("options", "gpus", "message"),
    [
        ({}, A100, "SGLang cannot start"),
        ({"tp_size": 2, "mem_fraction_static": 0.7}, A100, "SGLang cannot start"),
        ({"tp_size": 4}, A100, ""),
        ({"tp_size": 2}, "gres=gpu:h200:8", ""),
        ({"quantization": "fp8", "tp_size": 2, "mem_fraction_static": 0.7}, A100, ""),
        ({"cpu_offload_gb": 80}, A100, ""),
    ],
)
def test_weights_that_fit_no_gpu_are_refused(
    options: dict[str, Any], gpus: str, message: str, tmp_path: Path
) -> None:
    for number, make in enumerate((flags, python)):
        files = make(options, model=LARGE, gpus=gpus)
        found = judged(runs_of(tmp_path / str(number), files)[0], "GPU028").findings
        assert [message in one.message for one in found] == [True] * bool(message)
