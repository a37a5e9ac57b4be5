"""GPUs are recognised by the names people write, and nothing else is taken for one."""

import time

import pytest

from flake8_gpu_training._gpus import INSTANCES
from flake8_gpu_training.hardware import (
    GPUS,
    architecture_named,
    gpu_named,
    named,
    noted,
)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("8 * A100-80G", "A100-80G"),
        ("8xA100-80GB", "A100-80G"),
        ("A100 (80GB)", "A100-80G"),
        ("80G A100", "A100-80G"),
        ("NVIDIA A100-SXM4-80GB", "A100-80G-SXM"),
        ("A100 40GB PCIe", "A100-40G-PCIe"),
        ("gpu:h100:8", "H100"),
        ("NVIDIA-H100-80GB-HBM3", "H100"),
        ("H100 NVL", "H100-NVL"),
        ("H200 NVL", "H200-NVL"),
        ("NVIDIA GeForce RTX 4090", "RTX4090"),
        ("2*4090 24GiB", "RTX4090"),
        ("4090D", "RTX4090D"),
        ("RTX 3080 Ti", "RTX3080Ti"),
        ("RTX 3060 12GB", "RTX3060-12G"),
        ("RTX 6000 Ada", "RTX6000Ada"),
        ("gpu:rtx8000:2", "QuadroRTX8000"),
        ("gpu:titan_rtx:2", "TITANRTX"),
        ("RTX A6000", "A6000"),
        ("A10G", "A10G"),
        ("Tesla V100-SXM2-16GB", "V100-16G-SXM"),
        ("a800", "A800-80G"),
        ("8 x H20 141GB", "H20-141G"),
        ("H20", "H20"),
        ("Ascend 910B3", "Ascend910B"),
        ("RTX PRO 6000", "RTXPRO6000"),
        ("AMD Instinct MI300X", "MI300X"),
        ("nvidia-tesla-t4", "T4"),
        ("nvidia-l4", "L4"),
        ("NVIDIA-L40S-SHARED", "L40S"),
        ("nvidia-h100-mega-80gb", "H100"),
    ],
)
def test_names_people_write_are_recognised(text, name):
    assert gpu_named(text).name == name


@pytest.mark.parametrize(
    "text",
    [
        "A100",
        "--gres=gpu:a100:4",
        "v100",
        "RTX 3080",
        "4090 48G",
        "gpu:a100_3g.20gb:1",
        "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb",
        "910B4",
        "a100|a40",
    ],
)
def test_a_name_that_leaves_the_memory_open_is_not_guessed(text):
    found = named(text)
    assert found.gpu is None
    assert found.architecture in ("Ampere", "Volta", "Ada", "Ascend")


@pytest.mark.parametrize("text", ["data100", "L4x", "", "a100|h100", "Atlas 800T A2", "RTX 6000"])
def test_what_names_no_one_kind_says_nothing(text):
    assert named(text) is None


def test_architecture_is_known_even_when_the_memory_is_not():
    assert architecture_named("--gres=gpu:a100:4") == "Ampere"
    assert architecture_named("RTX 2080 SUPER") == "Turing"
    assert architecture_named("ampere") == "Ampere"
    assert architecture_named("my data") is None


@pytest.mark.parametrize(
    ("text", "name", "count"),
    [
        ("p4d.24xlarge", "A100-40G-SXM", 8),
        ("ml.p4de.24xlarge", "A100-80G-SXM", 8),
        ("g5.12xlarge", "A10G", 4),
        ("p5en.48xlarge", "H200-SXM", 8),
        ("a2-ultragpu-4g", "A100-80G-SXM", 4),
        ("g2-standard-24", "L4", 2),
        ("Standard_NC96ads_A100_v4", "A100-80G-PCIe", 4),
        ("ND96isr_H100_v5", "H100-SXM", 8),
    ],
)
def test_machine_types_of_clouds_tell_kind_and_number(text, name, count):
    found = named(text)
    assert (found.gpu.name, found.count) == (name, count)


def test_every_machine_type_has_a_gpu_of_the_table():
    assert {gpu for gpu, _ in INSTANCES.values()} <= set(GPUS)


@pytest.mark.parametrize(
    ("text", "name", "count"),
    [
        ("tested on 8 * A100-80G", "A100-80G", 8),
        ("2 x 3090", "RTX3090", 2),
        ("4张3090", "RTX3090", 4),
        ("单机8卡A800", "A800-80G", 8),
        ("tests on 8 L20 GPUs", "L20", 8),
        ("单卡4090可训练", "RTX4090", None),
        ("on one T4 GPU", "T4", None),
        ("GPUs (A10)", "A10", None),
        ("use NVIDIA L4", "L4", None),
        ("h100", "H100", None),
        ("training on 32 nodes / 256 H100 GPUs", "H100", None),  # of all nodes
    ],
)
def test_gpus_named_in_prose_are_noted(text, name, count):
    found = noted(text)
    assert (found.gpu.name, found.count) == (name, count)


@pytest.mark.parametrize(
    "text",
    [
        "see section a30 of the paper",
        "A10 paper",
        "# L4: the fourth layer",
        "t4 is the fourth trial",
        "checkpoints/l40/run",
        "/data/a100/x",
        "exp_a100",
        "wan2.2-t2v-a14b",
        "Qwen3-30B-A3B",
        "qwen2-a40b",
        "llama-l40-h32",
        "max_length 4090",
        "MASTER_PORT=3090",
        "step 3090 of 4 GPU hours",
        "T4=3",
        "see section 4 A30",
        "step 12 4090",
        "8xA100 or 4xH100",
        "needs 4 * 80GiB",
    ],
)
def test_other_words_of_prose_are_no_gpus(text):
    assert noted(text) is None


def test_long_lines_are_read_in_no_time():
    long = ("8 " * 20_000, "nvidia " * 20_000, "80g " * 20_000, "a" * 100_000, "12" + " " * 50_000)
    start = time.perf_counter()
    assert [noted(f"a100 {text}") is not None for text in long] == [True] * len(long)
    assert time.perf_counter() - start < 5


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
    assert GPUS["MI300X"].flash_attention == 0


def test_links_are_those_of_the_form():
    assert GPUS["A100-80G"].nvlink is None
    assert GPUS["A100-80G-SXM"].nvlink == 600
    assert GPUS["A100-80G-PCIe"].bridge
    assert GPUS["A800-80G-SXM"].nvlink == 400
    assert GPUS["RTX4090"].nvlink == 0
    assert not GPUS["H20"].bridge


def test_forms_of_a_kind_share_architecture_and_capability():
    for gpu in GPUS.values():
        same = {(g.architecture, g.capability) for g in GPUS.values() if g.family == gpu.family}
        assert len(same) == 1, gpu.name
