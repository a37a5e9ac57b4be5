"""Parallelism: what is on, what would gain, what cannot apply, what is not known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from checks_support import LLM_7B, hand_made, items_of, judged, runs_of, status

from flake8_gpu_training.checks.base import Priority, Status
from flake8_gpu_training.facts import Unknown
from flake8_gpu_training.models import model_of
from flake8_gpu_training.patches import unified_diff
from flake8_gpu_training.runs.model import Hardware, Model, Run, RunKind

MIXTURE = Model("Qwen/Qwen3-30B-A3B", "LLM", 30_500_000_000, is_moe=True, is_hf_family=True)
EIGHT_A100 = Hardware("A100-80G", 8, 1, 80.0)
FULL = {"tuning": "full", "zero_stage": 0, "fsdp": "none", "megatron": False}
LORA = {**FULL, "tuning": "lora"}


def test_points_of_the_categories_add_up() -> None:
    assert _points("general", "A") == 7
    assert _points("general", "B") == 6
    assert _points("swift", "D") == 8


def _points(audit: str, category: str) -> float:
    groups: dict[str, float] = {}
    alone = 0.0
    for item in items_of(audit, category):
        if item.group:
            groups[item.group] = max(groups.get(item.group, 0.0), item.points)
        else:
            alone += item.points
    return alone + sum(groups.values())


def test_several_processes_are_data_parallel() -> None:
    assert status(hand_made(processes=8), "GPU101") is Status.ENABLED


def test_one_process_on_one_gpu_cannot_be_data_parallel() -> None:
    run = hand_made(processes=1, hardware=Hardware(gpus_per_node=1))
    assert status(run, "GPU101") is Status.NOT_APPLICABLE


def test_without_a_launcher_the_processes_are_not_known() -> None:
    assert status(hand_made(), "GPU101") is Status.UNKNOWN


def test_one_trainer_process_on_eight_gpus_is_advised_torchrun() -> None:
    run = hand_made("hf_trainer", processes=1, hardware=EIGHT_A100)
    answer = judged(run, "GPU101")
    assert answer.status is Status.RECOMMENDED
    assert "--nproc_per_node=8" in answer.findings[0].message


ONE_PROCESS = """\
CUDA_VISIBLE_DEVICES=0,1,2,3 \\
swift sft \\
    --model {model} \\
    --tuner_type lora {more}--dataset data/train.jsonl
"""


def one_process(root: Path, model: str = "Qwen/Qwen2.5-7B-Instruct", more: str = "") -> Run:
    (run,) = runs_of(root, {"train.sh": ONE_PROCESS.format(model=model, more=more)})
    return run


def test_swift_in_one_process_on_several_gpus_is_advised_a_process_each(tmp_path: Path) -> None:
    run = one_process(tmp_path)
    answer = judged(run, "GPU101")
    assert (answer.status, answer.findings[0].location.line) == (Status.RECOMMENDED, 2)
    assert answer.findings[0].message.startswith("set NPROC_PER_NODE=4: ms-swift's one process")
    sharding = judged(run, "GPU102")
    assert (sharding.status, sharding.variant) == (Status.PARTIAL, "device-map")
    assert (sharding.findings, sharding.change) == ((), None)  # one recommendation is enough
    change = answer.findings[0].change
    assert change is not None
    (tmp_path / "x.patch").write_text(unified_diff(tmp_path, [change]))
    assert "+NPROC_PER_NODE=4 swift sft" in (tmp_path / "x.patch").read_text()


def test_a_model_too_large_for_one_gpu_may_be_spread_over_several(tmp_path: Path) -> None:
    run = one_process(tmp_path, "Qwen/Qwen2.5-32B-Instruct")
    assert judged(run, "GPU101").findings == ()
    assert judged(run, "GPU102").findings == ()


def test_one_trainer_process_on_several_gpus_is_told_of_data_parallel(tmp_path: Path) -> None:
    run = hand_made("hf_trainer", hardware=EIGHT_A100, processes=1)
    plain = replace(run, launcher=replace(run.launcher, name="python"))
    assert "nn.DataParallel" in judged(plain, "GPU101").findings[0].message
    assert "uses one of 8 GPUs" in judged(run, "GPU101").findings[0].message


@pytest.mark.parametrize(
    ("practices", "variant"),
    [
        ({"zero_stage": 2}, "zero2"),
        ({"zero_stage": 3}, "zero3"),
        ({"zero_stage": 2, "offload_optimizer": "cpu"}, "zero2-offload"),
        ({"zero_stage": 3, "offload_param": "cpu"}, "zero3-offload"),
        ({"fsdp": "full_shard"}, "fsdp"),
        ({"megatron": True}, "megatron"),
    ],
)
def test_each_kind_of_sharding_is_told_apart(practices: dict[str, object], variant: str) -> None:
    answer = judged(hand_made(processes=8, practices={**FULL, **practices}), "GPU102")
    assert (answer.status, answer.variant, answer.findings) == (Status.ENABLED, variant, ())


def test_full_tuning_of_7b_on_plain_ddp_is_advised_zero() -> None:
    wide = {"torch_dtype": "float32"}
    run = hand_made(processes=8, practices=FULL, settings=wide, hardware=EIGHT_A100)
    answer = judged(run, "GPU102")
    assert answer.status is Status.RECOMMENDED
    assert answer.variant == "zero2"
    assert "113 GiB" in answer.findings[0].message


@pytest.mark.parametrize("written", ["bfloat16", "float16"])
def test_weights_in_16_bits_have_states_in_16_bits_under_autocast(written: str) -> None:
    practices = {**FULL, "precision": "bf16"}
    run = hand_made(
        processes=8,
        practices=practices,
        settings={"torch_dtype": written},
        hardware=EIGHT_A100,
    )
    answer = judged(run, "GPU102")
    assert (answer.status, answer.findings) == (Status.DISABLED, ())
    assert "57 GiB" in answer.current.en


LOADED = """\
import torch
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B"{loading})
args = TrainingArguments("out", bf16=True, gradient_checkpointing=True)
Trainer(model, args, train_dataset=train_dataset).train()
"""


@pytest.mark.parametrize(
    ("loading", "version", "findings"),
    [
        (", torch_dtype=torch.bfloat16", "4.57.6", 0),
        (", dtype=torch.float32", "5.24.0", 1),
        ("", "4.57.6", 1),  # float32 unless told
        ("", "5.24.0", 0),  # as the checkpoint has them
        (', torch_dtype="auto"', "4.57.6", 0),
    ],
)
def test_the_type_of_the_loaded_weights_decides_whether_states_fit(
    tmp_path: Path, loading: str, version: str, findings: int
) -> None:
    files = {
        "train.py": LOADED.format(loading=loading),
        "train.sh": "#SBATCH --gres=gpu:a100-80g:8\ntorchrun --nproc_per_node=8 train.py\n",
        "requirements.txt": f"transformers=={version}\n",
    }
    (run,) = runs_of(tmp_path, files)
    assert len(judged(run, "GPU102").findings) == findings


def test_a_lora_run_that_fits_needs_no_sharding() -> None:
    assert status(hand_made(processes=8, practices=LORA), "GPU102") is Status.DISABLED


def test_a_run_on_one_gpu_cannot_shard() -> None:
    run = hand_made(processes=1, practices=FULL, hardware=Hardware(gpus_per_node=1))
    assert status(run, "GPU102") is Status.NOT_APPLICABLE


def test_an_unread_deepspeed_file_leaves_sharding_unknown() -> None:
    practices = {**FULL, "zero_stage": Unknown("not found")}
    assert status(hand_made(processes=8, practices=practices), "GPU102") is Status.UNKNOWN


SHAPED = model_of("Qwen/Qwen2.5-7B-Instruct")


def lora_on_a100(stage: int, offload: str, **practices: object) -> Run:
    wanted = {"max_length": 2048, "micro_batch_size": 1, "gradient_checkpointing": True}
    chosen = {"zero_stage": stage, "offload_optimizer": offload, "offload_param": "none"}
    given = {**LORA, **wanted, **chosen, **practices}
    return hand_made(processes=4, practices=given, hardware=FOUR_A100, model=SHAPED)


FOUR_A100 = Hardware("A100-80G", 4, 1, 80.0)


@pytest.mark.parametrize(
    ("stage", "offload", "burden"),
    [(3, "none", "gathers the weights"), (3, "cpu", "PCIe"), (2, "cpu", "PCIe")],
)
def test_a_heavier_stage_than_needed_is_partial(stage: int, offload: str, burden: str) -> None:
    answer = judged(lora_on_a100(stage, offload), "GPU102")
    assert (answer.status, answer.priority) == (Status.PARTIAL, Priority.MEDIUM)
    (finding,) = answer.findings
    assert finding.message.startswith("set --deepspeed zero2: it fits, ")
    assert "of 80 GiB" in finding.message
    assert burden in finding.message
    assert judged(lora_on_a100(stage, offload), "GPU204").findings == ()


def test_the_stage_that_is_needed_is_left_alone() -> None:
    assert status(lora_on_a100(2, "none"), "GPU102") is Status.ENABLED
    full = lora_on_a100(3, "none", tuning="full", max_length=16384)
    assert judged(full, "GPU102").findings == ()


def test_a_stage_is_not_called_too_heavy_beside_a_rollout_engine() -> None:
    run = lora_on_a100(3, "cpu", algorithm="grpo", rollout_engine="vllm")
    assert judged(run, "GPU102").findings == ()
    assert judged(run, "GPU204").findings == ()


def test_lora_under_zero_3_on_unknown_hardware_is_left_alone() -> None:
    run = replace(lora_on_a100(3, "none"), hardware=Hardware())
    assert status(run, "GPU102") is Status.ENABLED


@pytest.mark.parametrize(
    ("code", "practice"),
    [("GPU103", "tensor_parallel"), ("GPU104", "pipeline_parallel")],
)
def test_parallel_degrees(code: str, practice: str) -> None:
    assert status(hand_made(processes=8, practices={practice: 2}), code) is Status.ENABLED
    assert status(hand_made(processes=8, practices={practice: 1}), code) is Status.DISABLED
    one = Hardware(gpus_per_node=1)
    run = hand_made(processes=1, practices={practice: 1}, hardware=one)
    assert status(run, code) is Status.NOT_APPLICABLE
    unknown = {practice: Unknown("computed")}
    assert status(hand_made(processes=8, practices=unknown), code) is Status.UNKNOWN


def test_very_long_sequences_are_advised_sequence_parallelism() -> None:
    practices = {"sequence_parallel": 1, "max_length": 262144}
    answer = judged(hand_made(processes=8, practices=practices), "GPU105")
    assert answer.status is Status.RECOMMENDED
    assert answer.findings[0].message.startswith("set --sequence_parallel_size 8")


def test_short_sequences_need_no_sequence_parallelism() -> None:
    practices = {"sequence_parallel": 1, "max_length": 8192}
    assert status(hand_made(processes=8, practices=practices), "GPU105") is Status.DISABLED


def test_dense_models_have_no_experts_to_spread() -> None:
    run = hand_made(processes=8, practices={"expert_parallel": 1})
    assert status(run, "GPU106") is Status.NOT_APPLICABLE


def test_experts_are_advised_to_be_spread_where_megatron_drives(tmp_path: Path) -> None:
    script = "NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen3-30B-A3B --dataset data.jsonl\n"
    (run,) = runs_of(tmp_path, {"train.sh": script})
    answer = judged(run, "GPU106")
    assert answer.findings[0].message.startswith("set --expert_model_parallel_size 8")
    on = hand_made(processes=8, practices={"expert_parallel": 8}, model=MIXTURE)
    assert status(on, "GPU106") is Status.ENABLED
    dense_back_end = hand_made(processes=8, practices={"expert_parallel": 1}, model=MIXTURE)
    assert status(dense_back_end, "GPU106") is Status.DISABLED


def test_experts_of_an_unknown_model_are_not_known() -> None:
    run = hand_made(processes=8, practices={"expert_parallel": 1}, model=Model())
    assert status(run, "GPU106") is Status.UNKNOWN


def test_the_framework_that_drives_the_run() -> None:
    zero = hand_made(processes=8, practices={**FULL, "zero_stage": 3})
    assert judged(zero, "GPU107").variant == "deepspeed"
    trainer = hand_made("hf_trainer", processes=8, practices=LORA)
    assert judged(trainer, "GPU107").variant == "accelerate"
    assert judged(trainer, "GPU107").status is Status.ENABLED
    small = hand_made("generic", processes=8, practices=LORA)
    assert status(small, "GPU107") is Status.DISABLED


def test_accelerate_alone_is_not_enough_for_a_model_that_outgrows_a_gpu() -> None:
    wide = {"torch_dtype": "float32"}
    run = hand_made("hf_trainer", processes=8, practices=FULL, settings=wide)
    answer = judged(run, "GPU107")
    assert answer.status is Status.PARTIAL
    assert (answer.findings, answer.change) == ((), None)  # the sharding check reports it


def test_zero_plus_plus_is_for_several_nodes() -> None:
    practices = {**FULL, "zero_stage": 3, "zero_hpz_partition_size": 1}
    by_name = {"deepspeed": "zero3"}
    two = hand_made(processes=8, nodes=2, practices=practices, settings=by_name)
    assert judged(two, "GPU108").findings[0].message.startswith("set --zero_hpz_partition_size 8")
    through_accelerate = hand_made(processes=8, nodes=2, practices=practices)
    assert (
        judged(through_accelerate, "GPU108")
        .findings[0]
        .message.startswith('set "zero_hpz_partition_size": 8')
    )
    one = hand_made(processes=8, practices=practices)
    assert status(one, "GPU108") is Status.NOT_APPLICABLE
    on = hand_made(processes=8, nodes=2, practices={**practices, "zero_hpz_partition_size": 8})
    assert status(on, "GPU108") is Status.ENABLED


def test_autotp_is_for_full_tuning_below_stage_3() -> None:
    base = {**FULL, "zero_stage": 1, "autotp_size": 1}
    assert status(hand_made(processes=8, practices=base), "GPU109") is Status.DISABLED
    on = {**base, "autotp_size": 4}
    assert status(hand_made(processes=8, practices=on), "GPU109") is Status.ENABLED
    for other in ({"tuning": "lora"}, {"zero_stage": 3}):
        run = hand_made(processes=8, practices={**base, **other})
        assert status(run, "GPU109") is Status.NOT_APPLICABLE


def test_serving_is_not_advised_about_training() -> None:
    run = hand_made(processes=8, practices=FULL, kind=RunKind.SERVE)
    assert status(run, "GPU102") is Status.NOT_APPLICABLE


def test_a_quantized_checkpoint_is_smaller_than_its_parameters(tmp_path: Path) -> None:
    script = (
        "CUDA_VISIBLE_DEVICES=0,1 NPROC_PER_NODE=2 swift sft \\\n"
        "    --model Qwen/Qwen2.5-72B-Instruct-GPTQ-Int4 --tuner_type lora\n"
    )
    runs = runs_of(tmp_path, {"train.sh": script})
    assert [status(run, "GPU102") for run in runs] == [Status.DISABLED]


def test_the_model_of_these_tests_has_its_published_size() -> None:
    assert LLM_7B.parameters == 7_615_616_512


def test_states_that_do_not_fit_even_when_split_are_left_to_the_advice_on_adapters() -> None:
    hardware = Hardware("RTX4090", 2, 1, 24.0)
    run = hand_made(processes=2, practices=FULL, hardware=hardware)
    assert status(run, "GPU102") is Status.DISABLED
    assert status(run, "GPU204") is Status.DISABLED
    assert judged(run, "GPU604").status is Status.RECOMMENDED


def test_lean_optimizers_are_not_said_to_outgrow_a_gpu() -> None:
    for practices in ({"optimizer": "adafactor"}, {"precision": "pure-bf16"}):
        run = hand_made(processes=8, practices={**FULL, **practices}, hardware=EIGHT_A100)
        assert status(run, "GPU102") is Status.DISABLED
