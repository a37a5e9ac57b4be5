"""The memory model: hand-worked states, and runs whose memory their authors noted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from flake8_gpu_training.facts import Location, Setting, Unknown
from flake8_gpu_training.memory import GIB, estimate, lora_parameters, missing, model_states
from flake8_gpu_training.models import model_of
from flake8_gpu_training.runs.model import (
    Hardware,
    Launcher,
    Model,
    Place,
    PlaceKind,
    Run,
    RunKind,
)

AT = Location("train.sh", 1)


def run_of(model: str, ranks: int = 1, **practices: Any) -> Run:
    values = {
        "micro_batch_size": 1,
        "max_length": 2048,
        "precision": "bf16",
        "attention": "sdpa",
        "gradient_checkpointing": True,
        **practices,
    }
    return Run(
        "train.sh:1",
        RunKind.TRAIN,
        "swift",
        AT,
        Place(PlaceKind.FLAGS, AT),
        launcher=Launcher("torchrun", Setting("processes", ranks), Setting("nodes", 1)),
        model=model_of(model),
        profile={name: Setting(name, value, AT) for name, value in values.items()},
    )


@pytest.mark.parametrize(
    ("stage", "bytes_per_parameter"),
    [(0, 16), (1, 4 + 12 / 8), (2, 2 + 14 / 8), (3, 16 / 8)],
)
def test_model_states_follow_the_zero_stages(stage: int, bytes_per_parameter: float) -> None:
    assert model_states(7e9, 8, stage) == pytest.approx(7e9 * bytes_per_parameter / GIB)


def test_frozen_weights_cost_only_their_storage() -> None:
    assert model_states(7e9, 1, 0, trained=1e7) == pytest.approx((14e9 + 14e7) / GIB)


def test_lora_parameters_of_all_linear_layers() -> None:
    # Qwen2.5-7B: 28 layers, hidden 3584, key/value width 512, feed-forward 18944.
    per_rank = (3584 + 3584) * 2 + (3584 + 512) * 2 + (3584 + 18944) * 3
    found = lora_parameters(model_of("Qwen/Qwen2.5-7B-Instruct"), 8)
    assert found == pytest.approx(8 * 28 * per_rank, rel=0.01)


# GiB per GPU noted by the authors of ms-swift's example scripts.
NOTED = [
    (17.2, "Qwen/Qwen2.5-7B-Instruct", 1, {"tuning": "lora", "lora_rank": 8}),
    (76.0, "Qwen/Qwen2.5-7B-Instruct", 1, {"tuning": "full"}),
    (22.0, "Qwen/Qwen2.5-7B-Instruct", 1, {"tuning": "lora", "packing": True}),
    (38.0, "Qwen/Qwen2.5-7B-Instruct", 1, {"tuning": "full", "optimizer": "galore"}),
    (
        42.0,
        "Qwen/Qwen2.5-7B",
        4,
        {
            "tuning": "full",
            "zero_stage": 3,
            "packing": True,
            "max_length": 16384,
            "liger_kernel": True,
            "attention": "flash_attention_2",
        },
    ),
    (
        50.0,
        "Qwen/Qwen2.5-7B-Instruct",
        4,
        {
            "tuning": "full",
            "zero_stage": 3,
            "packing": True,
            "max_length": 8192,
            "algorithm": "dpo",
            "attention": "flash_attention_2",
        },
    ),
]


def test_a_vision_language_model_has_the_shape_of_its_language_model() -> None:
    noted = 36.0  # ms-swift examples/train/packing/qwen2_5_vl.sh
    found = estimate(
        run_of(
            "Qwen/Qwen2.5-VL-7B-Instruct",
            4,
            tuning="lora",
            zero_stage=2,
            packing=True,
            max_length=8192,
            attention="flash_attention_2",
        )
    )
    assert found is not None
    assert found.low <= noted <= found.high
    assert found.total == pytest.approx(noted, rel=0.15)


def test_an_embedding_model_computes_no_logits() -> None:
    run = run_of("Qwen/Qwen3-Embedding-4B", tuning="lora")
    task = Setting("task_type", "embedding", AT)
    found = estimate(replace(run, settings={"task_type": task}))
    assert found is not None
    assert found.parts["logits"] == 0
    with_logits = estimate(run)
    assert with_logits is not None
    assert with_logits.parts["logits"] > 0


@pytest.mark.parametrize(("noted", "model", "ranks", "practices"), NOTED)
def test_noted_memory_lies_in_the_range(
    noted: float, model: str, ranks: int, practices: dict[str, Any]
) -> None:
    found = estimate(run_of(model, ranks, **practices))
    assert found is not None
    assert found.low <= noted <= found.high
    assert found.total == pytest.approx(noted, rel=0.17)


# Bytes a layer keeps of a token: hidden size, key/value width, feed-forward width times these.
# Counted with saved_tensors_hooks on Transformers' Llama: 49.04 hidden sizes for Llama 3's
# proportions in BF16, 59.04 under autocast, 90 in FP32, 53.15 with adapters (autocast).
@pytest.mark.parametrize(
    ("framework", "practices", "per_token"),
    [
        ("accelerate", {"zero_stage": 1}, 20 * 4096 + 4 * 1024 + 8 * 14336),
        ("accelerate", {"precision": "bf16"}, 30 * 4096 + 4 * 1024 + 8 * 14336),
        ("accelerate", {"precision": "fp32"}, 32 * 4096 + 8 * 1024 + 16 * 14336),
        ("accelerate", {"liger_kernel": True, "zero_stage": 1}, 12 * 4096 + 4 * 1024 + 6 * 14336),
        ("accelerate", {"tuning": "lora"}, 24 * 4096 + 4 * 1024 + 8 * 14336),
        ("swift", {"tuning": "lora"}, 42 * 4096 + 4 * 1024 + 11 * 14336),
    ],
)
def test_activations_without_checkpointing(
    framework: str, practices: dict[str, Any], per_token: int
) -> None:
    run = run_of("meta-llama/Meta-Llama-3-8B", gradient_checkpointing=False, **practices)
    found = estimate(replace(run, framework=framework))
    assert found is not None
    assert found.parts["activations"] == pytest.approx(1536 * 32 * per_token / GIB)


def test_a_mixture_keeps_what_the_experts_of_a_token_keep() -> None:
    dense = estimate(run_of("Qwen/Qwen3-8B", gradient_checkpointing=False))
    mixture = estimate(run_of("Qwen/Qwen3-30B-A3B", gradient_checkpointing=False))
    assert dense is not None
    assert mixture is not None
    # 8 of 128 experts, each 768 wide, hidden size 2048, key/value width 512, 48 layers.
    by_hand = 1536 * 48 * (30 * 2048 + 4 * 512 + 8 * 8 * 768) / GIB
    assert mixture.parts["activations"] == pytest.approx(by_hand, rel=0.2)
    assert mixture.parts["activations"] < dense.parts["activations"]


def test_estimate_lies_in_its_own_range() -> None:
    found = estimate(run_of("Qwen/Qwen2.5-7B-Instruct", tuning="full", max_length=32768))
    assert found is not None
    assert found.low < found.total < found.high


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({"gradient_checkpointing": True}, {"gradient_checkpointing": False}),
        ({"attention": "flash_attention_2"}, {"attention": "eager"}),
        ({"liger_kernel": True}, {"liger_kernel": False}),
        ({"tuning": "lora"}, {"tuning": "full"}),
        ({"tuning": "lora", "quantization_bits": 4}, {"tuning": "lora"}),
        ({"zero_stage": 3}, {"zero_stage": 2}),
        ({"zero_stage": 2, "offload_optimizer": "cpu"}, {"zero_stage": 2}),
        ({"sequence_parallel": 4}, {"sequence_parallel": 1}),
        ({"optimizer": "adamw_8bit"}, {"optimizer": "adamw_torch_fused"}),
    ],
)
def test_what_saves_memory_lowers_the_estimate(
    better: dict[str, Any], worse: dict[str, Any]
) -> None:
    base = {"packing": True, "max_length": 8192}
    small = estimate(run_of("Qwen/Qwen2.5-7B", 8, **base, **better))
    large = estimate(run_of("Qwen/Qwen2.5-7B", 8, **base, **worse))
    assert small is not None
    assert large is not None
    assert small.total < large.total


def test_whether_it_fits_is_told_only_when_the_range_is_clear() -> None:
    run = run_of("Qwen/Qwen2.5-7B-Instruct", tuning="full")
    verdicts = []
    for gib in (141.0, 76.0, 24.0, None):
        found = estimate(replace(run, hardware=Hardware(memory_gib=gib)))
        assert found is not None
        verdicts.append(found.fits)
    assert verdicts == [True, None, False, None]


def test_nothing_is_estimated_of_what_is_not_known() -> None:
    run = run_of("Qwen/Qwen2.5-7B-Instruct")
    unknown = Setting("max_length", Unknown("read at run time"), AT)
    assert estimate(replace(run, model=Model())) is None
    assert estimate(replace(run, kind=RunKind.SERVE)) is None
    assert estimate(replace(run, profile={**run.profile, "max_length": unknown})) is None


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("parameters", {"model": Model()}),
        ("shape", {"model": Model(parameters=7_000_000_000)}),
        ("micro_batch_size", {"micro_batch_size": Unknown("read at run time")}),
        ("max_length", {"max_length": Unknown("read at run time")}),
        ("max_length", {"max_length": None, "packing": True}),
        ("ranks", {"zero_stage": 3, "launcher": Launcher("torchrun")}),
        ("rollout", {"rollout_engine": "vllm"}),
    ],
)
def test_what_an_estimate_lacks_is_named(name: str, change: dict[str, Any]) -> None:
    run = run_of("Qwen/Qwen2.5-7B-Instruct")
    fields = {key: value for key, value in change.items() if key in ("model", "launcher")}
    practices = {k: Setting(k, v, AT) for k, v in change.items() if k not in fields}
    changed = replace(run, profile={**run.profile, **practices}, **fields)
    assert missing(run) == ()
    assert estimate(changed) is None
    assert missing(changed) == (name,)


def test_an_unknown_number_of_ranks_matters_only_where_states_are_sharded() -> None:
    unknown = Launcher("torchrun")
    alone = run_of("Qwen/Qwen2.5-7B-Instruct", tuning="lora")
    sharded = run_of("Qwen/Qwen2.5-7B-Instruct", tuning="lora", zero_stage=3)
    assert estimate(replace(alone, launcher=unknown)) == estimate(alone)
    assert estimate(replace(sharded, launcher=unknown)) is None


@pytest.mark.parametrize("size", [0, -1])
def test_senseless_sizes_give_no_estimate(size: int) -> None:
    assert estimate(run_of("Qwen/Qwen2.5-7B", micro_batch_size=size)) is None
    assert estimate(run_of("Qwen/Qwen2.5-7B", max_length=size)) is None


def test_long_samples_are_estimated_beside_usual_ones() -> None:
    long = estimate(run_of("Qwen/Qwen2.5-7B", max_length=16384, tuning="lora"))
    assert long is not None
    assert (long.sample_length, long.max_length) == (1536, 16384)
    assert long.full_total is not None
    assert long.total < long.full_total < long.high
    packed = estimate(run_of("Qwen/Qwen2.5-7B", max_length=16384, tuning="lora", packing=True))
    assert packed is not None
    assert packed.total == packed.full_total == pytest.approx(long.full_total)


def test_without_a_limit_only_usual_samples_are_estimated() -> None:
    found = estimate(run_of("Qwen/Qwen2.5-7B", max_length=None, tuning="lora"))
    assert found is not None
    assert (found.max_length, found.full_parts, found.full_total) == (None, None, None)
    assert estimate(run_of("Qwen/Qwen2.5-7B", max_length=None, packing=True)) is None


def test_what_is_offloaded_is_named() -> None:
    both = {"zero_stage": 3, "offload_optimizer": "cpu", "offload_param": "cpu"}
    found = estimate(run_of("Qwen/Qwen2.5-7B", 4, **both))
    assert found is not None
    assert set(found.offloaded) == {"optimizer", "weights"}
    assert found.parts["weights"] == found.parts["optimizer"] == 0
    kept = estimate(run_of("Qwen/Qwen2.5-7B", 4, zero_stage=3))
    assert kept is not None
    assert kept.offloaded == ()


def test_embeddings_saved_beside_the_adapters_are_trained_parameters() -> None:
    run = run_of("Qwen/Qwen2.5-3B", tuning="lora", liger_kernel=True)
    saved = Setting("modules_to_save", "embed_tokens lm_head", AT)
    found = estimate(replace(run, settings={"modules_to_save": saved}))
    plain = estimate(run)
    assert found is not None
    assert plain is not None
    assert found.total == pytest.approx(20.0, rel=0.2)  # ms-swift examples/train/agent/loss_scale
    assert found.total - plain.total > 2 * 16 * 151_000 * 2048 / GIB


def test_weights_quantized_under_their_own_name_are_small() -> None:
    found = estimate(run_of("Qwen/Qwen2.5-7B-Instruct-AWQ", tuning="lora"))
    assert found is not None
    assert found.total == pytest.approx(10.0, rel=0.15)  # ms-swift examples/train/qlora/awq


def test_one_process_of_ms_swift_spreads_the_layers_over_its_gpus() -> None:
    run = run_of("Qwen/Qwen2.5-72B-Instruct", tuning="lora")
    alone = estimate(replace(run, hardware=Hardware(gpus_per_node=1, nodes=1)))
    spread = estimate(replace(run, hardware=Hardware(gpus_per_node=4, nodes=1)))
    assert alone is not None
    assert spread is not None
    assert spread.parts["weights"] == pytest.approx(alone.parts["weights"] / 4)
