"""GPUs are recognised by the names people write."""

import pytest

from flake8_gpu_training.hardware import GPUS, architecture_named, gpu_named


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("8 * A100-80G", "A100-80G"),
        ("NVIDIA A100-SXM4-80GB", "A100-80G"),
        ("A100 40GB PCIe", "A100-40G"),
        ("gpu:h100:8", "H100"),
        ("NVIDIA GeForce RTX 4090", "RTX4090"),
        ("2*4090 24GiB", "RTX4090"),
        ("Tesla V100-SXM2-16GB", "V100-16G"),
        ("a800", "A800-80G"),
        ("8 x H20 141GB", "H20-141G"),
        ("H20", "H20"),
        ("Ascend 910B3", "Ascend910B"),
        ("RTX PRO 6000", "RTXPRO6000"),
    ],
)
def test_names_people_write_are_recognised(text, name):
    assert gpu_named(text).name == name


@pytest.mark.parametrize("text", ["A100", "--gres=gpu:a100:4", "v100", "data100", "L4x", ""])
def test_a_name_that_leaves_the_memory_open_is_not_guessed(text):
    assert gpu_named(text) is None


def test_architecture_is_known_even_when_the_memory_is_not():
    assert architecture_named("--gres=gpu:a100:4") == "Ampere"
    assert architecture_named("my data") is None


def test_what_a_generation_can_compute():
    assert not GPUS["V100-32G"].bf16
    assert GPUS["T4"].flash_attention == 0
    assert not GPUS["A100-80G"].fp8
    assert GPUS["L40S"].fp8
    assert GPUS["L40S"].flash_attention == 2
    assert GPUS["H100"].flash_attention == 3
    assert GPUS["B200"].flash_attention == 4
    assert GPUS["RTX5090"].flash_attention == 2
    assert GPUS["Ascend910B"].flash_attention == 0
