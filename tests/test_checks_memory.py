"""Memory: precision, recomputation, offload, accumulation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checks_support import findings, hand_made, items_of, judged, runs_alone, runs_of, status
from test_checks_parallelism import EIGHT_A100, FULL, LORA

from flake8_gpu_training.checks.base import Priority, Status
from flake8_gpu_training.facts import Unknown
from flake8_gpu_training.runs.model import Hardware, Model, Run

V100 = Hardware("V100-32G", 8, 1, 32.0)
H100 = Hardware("H100", 8, 1, 80.0)
MULTIMODAL = Model("Qwen/Qwen2.5-VL-7B-Instruct", "MLLM", 8_300_000_000, is_hf_family=True)
SMALL = Model("Qwen/Qwen2.5-0.5B", "LLM", 494_000_000, is_hf_family=True)


def run_with(framework: str = "swift", **practices: Any) -> Run:
    return hand_made(framework, processes=8, practices=practices)


def test_points_of_the_categories_add_up() -> None:
    assert sum(item.points for item in items_of("general", "C")) == 5
    assert sum(item.points for item in items_of("swift", "C")) == 5
    assert {item.points for item in items_of("swift", "E")} == {3}
    precision = {item.points for item in items_of("swift", "B") if item.group}
    alone = sum(item.points for item in items_of("swift", "B") if not item.group)
    assert precision == {3}
    assert alone == 1


@pytest.mark.parametrize(
    ("precision", "variant"),
    [("bf16", "bf16"), ("pure-bf16", "bf16"), ("fp16", "fp16"), ("fp8", "bf16")],
)
def test_half_precision_is_on(precision: str, variant: str) -> None:
    answer = judged(run_with(precision=precision), "GPU201")
    assert (answer.status, answer.variant) == (Status.ENABLED, variant)


def test_fp32_training_is_advised_bf16() -> None:
    answer = judged(run_with("hf_trainer", precision="fp32"), "GPU201")
    assert answer.status is Status.RECOMMENDED
    assert answer.findings[0].message.startswith("set --bf16 true")


def test_fp32_on_volta_is_advised_fp16() -> None:
    run = hand_made("hf_trainer", practices={"precision": "fp32"}, hardware=V100)
    assert judged(run, "GPU201").variant == "fp16"


def test_bf16_on_volta_is_advised_fp16() -> None:
    answer = judged(hand_made(practices={"precision": "bf16"}, hardware=V100), "GPU201")
    assert (answer.status, answer.variant, answer.better) == (Status.PARTIAL, "bf16", "fp16")


def test_an_unknown_precision_is_no_finding() -> None:
    answer = judged(run_with(precision=Unknown("torch.cuda.is_available()")), "GPU201")
    assert (answer.status, answer.findings) == (Status.UNKNOWN, ())


def test_a_precision_that_is_half_either_way_is_on() -> None:
    answer = judged(run_with(precision=Unknown("config.json", ("bf16", "fp16"))), "GPU201")
    assert answer.status is Status.ENABLED


PROGRAM = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B-Instruct"{model})
args = TrainingArguments(output_dir="out"{args})
trainer = Trainer(model=model, args=args, train_dataset=data)
trainer.train()
"""


def alone(model: str = "", args: str = "", **versions: str) -> tuple[Run, ...]:
    return runs_alone(PROGRAM.format(model=model, args=args), **versions)


def test_a_trainer_without_precision_is_found_at_its_arguments() -> None:
    (run,) = alone()
    (finding,) = judged(run, "GPU201").findings
    assert (finding.location.path, finding.location.line) == ("train.py", 4)


@pytest.mark.parametrize(
    ("model", "args"),
    [
        (", dtype=torch.bfloat16", ""),
        (", torch_dtype=choose()", ""),
        (", quantization_config=config", ""),
        (", **options", ""),
        ("", ", fp16=torch.cuda.is_available()"),
        ("", ", **settings"),
        ("", ", use_cpu=True"),
        ("", ", max_steps=1"),
    ],
)
def test_nothing_is_said_about_a_precision_that_may_be_set(model: str, args: str) -> None:
    for run in alone(model, args):
        assert judged(run, "GPU201").findings == ()


def test_checkpoints_decide_the_precision_from_transformers_5_on() -> None:
    (run,) = alone(transformers="5.3.0")
    assert judged(run, "GPU201").findings == ()


def test_a_program_that_only_evaluates_is_not_advised() -> None:
    text = PROGRAM.replace("train_dataset", "eval_dataset").replace(".train()", ".evaluate()")
    for run in runs_alone(text.format(model="", args="")):
        assert judged(run, "GPU201").findings == ()


def test_a_test_is_not_advised() -> None:
    for run in runs_alone(PROGRAM.format(model="", args=""), "tests/test_train.py"):
        assert judged(run, "GPU201").findings == ()


def test_fp8_needs_the_cores_for_it() -> None:
    ampere = hand_made(practices={"precision": "bf16"}, hardware=EIGHT_A100)
    assert status(ampere, "GPU202") is Status.NOT_APPLICABLE
    hopper = hand_made(practices={"precision": "bf16", "megatron": True}, hardware=H100)
    assert status(hopper, "GPU202") is Status.RECOMMENDED
    alone = hand_made(practices={"precision": "bf16"}, hardware=H100)
    assert status(alone, "GPU202") is Status.NOT_APPLICABLE  # megatron sft alone trains in FP8
    on = hand_made(practices={"precision": "fp8"}, hardware=H100)
    assert status(on, "GPU202") is Status.ENABLED


def test_fp8_is_an_option_of_megatron_on_hopper() -> None:
    run = hand_made(practices={"precision": "bf16", "megatron": True}, hardware=H100)
    assert status(run, "GPU202") is Status.RECOMMENDED
    (finding,) = judged(run, "GPU202").findings
    assert finding.change is not None
    assert finding.change.edits == ()  # to be tested first


def test_long_sequences_without_recomputation_are_advised_first() -> None:
    answer = judged(run_with(gradient_checkpointing=False, max_length=8192), "GPU203")
    assert (answer.status, answer.priority) == (Status.RECOMMENDED, Priority.HIGH)


def test_short_sequences_turned_off_by_hand_are_left_alone() -> None:
    assert status(run_with(gradient_checkpointing=False, max_length=1024), "GPU203") is (
        Status.DISABLED
    )


def test_recomputation_that_is_on_or_unknown() -> None:
    assert status(run_with(gradient_checkpointing=True), "GPU203") is Status.ENABLED
    unknown = run_with(gradient_checkpointing=Unknown("an argument"))
    assert status(unknown, "GPU203") is Status.UNKNOWN


def test_small_models_need_no_recomputation() -> None:
    practices = {"gradient_checkpointing": False, "max_length": 4096}
    assert status(hand_made(practices=practices, model=SMALL), "GPU203") is Status.DISABLED


def test_recomputation_called_in_the_program_counts() -> None:
    text = PROGRAM.format(model="", args="") + "model.gradient_checkpointing_enable()\n"
    (run,) = runs_alone(text)
    assert status(run, "GPU203") is Status.ENABLED


def test_states_that_barely_fit_all_gpus_are_offloaded() -> None:
    run = hand_made(
        processes=8,
        practices={**FULL, "zero_stage": 3, "offload_optimizer": "none"},
        hardware=Hardware("RTX4090", 8, 1, 14.5),
    )
    assert judged(run, "GPU204").findings[0].message.startswith("set --deepspeed zero3_offload")


def test_states_that_fit_need_no_offload() -> None:
    run = hand_made(processes=8, practices={**FULL, "zero_stage": 3}, hardware=EIGHT_A100)
    assert status(run, "GPU204") is Status.DISABLED


def test_offload_without_need_is_partial() -> None:
    practices = {**LORA, "zero_stage": 2, "offload_optimizer": "cpu", "max_length": 2048}
    run = hand_made(processes=8, practices=practices, hardware=EIGHT_A100)
    assert status(run, "GPU204") is Status.PARTIAL


def test_offload_on_unknown_hardware_is_trusted() -> None:
    practices = {**LORA, "zero_stage": 2, "offload_optimizer": "cpu", "max_length": 2048}
    assert status(hand_made(processes=8, practices=practices), "GPU204") is Status.ENABLED


_OFFLOADED = """\
{
  "zero_optimization": {
    "stage": 3,
    "offload_optimizer": {
      "device": "cpu"
    },
    "offload_param": {"device": "cpu"}
  }
}
"""


def _offloaded(gpu: str) -> dict[str, str]:
    command = (
        "NPROC_PER_NODE=4 swift sft --model Qwen/Qwen2.5-7B-Instruct --tuner_type lora "
        "--gradient_checkpointing false --max_length 2048 --deepspeed ds.json --dataset d.jsonl\n"
    )
    return {"train.sh": f"#!/bin/bash\n# 4 * {gpu}\n{command}", "ds.json": _OFFLOADED}


def test_offload_that_a_gpu_of_a_comment_does_without_is_deleted(tmp_path: Path) -> None:
    (run,) = runs_of(tmp_path, _offloaded("A100-80G"))
    answer = judged(run, "GPU204")
    (found,) = answer.findings
    assert (answer.status, answer.share, str(found.location)) == (Status.PARTIAL, 0.5, "ds.json:5")
    assert found.message.startswith("delete offload_optimizer and offload_param")
    assert found.change is not None
    assert [(edit.location.line, edit.old, edit.new) for edit in found.change.edits] == [
        (5, '"cpu"', '"none"'),
        (7, '"cpu"', '"none"'),
    ]


def test_offload_that_leaves_little_room_is_kept(tmp_path: Path) -> None:
    (run,) = runs_of(tmp_path, _offloaded("RTX 4090"))
    assert judged(run, "GPU204").status is Status.ENABLED


def test_nothing_is_recomputed_where_the_worst_case_leaves_room(tmp_path: Path) -> None:
    (roomy,) = runs_of(tmp_path / "roomy", _offloaded("A100-80G"))
    assert judged(roomy, "GPU203").status is Status.DISABLED
    (tight,) = runs_of(tmp_path / "tight", _offloaded("RTX 4090"))
    assert judged(tight, "GPU203").status is Status.RECOMMENDED


def test_small_batches_are_advised_accumulation() -> None:
    practices = {"gradient_accumulation_steps": 1, "micro_batch_size": 1}
    run = hand_made(processes=2, practices=practices)
    answer = judged(run, "GPU205")
    assert answer.findings[0].message.startswith("set --gradient_accumulation_steps 8")


@pytest.mark.parametrize(
    ("practices", "expected"),
    [
        ({"gradient_accumulation_steps": 4}, Status.ENABLED),
        ({"gradient_accumulation_steps": 1, "micro_batch_size": 4}, Status.DISABLED),
        ({"gradient_accumulation_steps": 1}, Status.UNKNOWN),
        ({"gradient_accumulation_steps": Unknown("?")}, Status.UNKNOWN),
        (
            {"gradient_accumulation_steps": 1, "micro_batch_size": 1, "algorithm": "grpo"},
            Status.DISABLED,
        ),
    ],
)
def test_accumulation(practices: dict[str, Any], expected: Status) -> None:
    run = hand_made(processes=4, practices=practices)
    assert status(run, "GPU205") is expected


def test_galore_is_for_full_tuning() -> None:
    plain = hand_made(practices=FULL, settings={"use_galore": True})
    assert judged(plain, "GPU206").variant == "galore"
    quantized = {"use_galore": True, "galore_quantization": True}
    assert judged(hand_made(practices=FULL, settings=quantized), "GPU206").variant == "q-galore"
    assert status(hand_made(practices=FULL), "GPU206") is Status.DISABLED
    assert status(hand_made(practices=LORA), "GPU206") is Status.NOT_APPLICABLE
    assert status(hand_made(), "GPU206") is Status.UNKNOWN


def test_the_vision_tower_is_checkpointed_when_it_trains() -> None:
    def of(**practices: Any) -> Status:
        return status(hand_made(practices=practices, model=MULTIMODAL), "GPU207")

    assert of(vit_gradient_checkpointing=True) is Status.ENABLED
    assert of(vit_gradient_checkpointing=False, freeze_vision=True) is Status.DISABLED
    assert of(vit_gradient_checkpointing=False, freeze_vision=False) is Status.RECOMMENDED
    assert of() is Status.UNKNOWN
    assert status(hand_made(), "GPU207") is Status.NOT_APPLICABLE


def test_logits_to_keep_is_on_unless_turned_off() -> None:
    assert status(hand_made(), "GPU208") is Status.ENABLED
    off = {"use_logits_to_keep": False}
    assert status(hand_made(settings=off), "GPU208") is Status.RECOMMENDED
    assert status(hand_made(settings={"use_logits_to_keep": Unknown("?")}), "GPU208") is (
        Status.UNKNOWN
    )
    assert status(hand_made("hf_trainer"), "GPU208") is Status.NOT_APPLICABLE


def test_activations_are_offloaded_under_fsdp_only() -> None:
    fsdp = {"fsdp": "full_shard"}
    callback = {"callbacks": ["activation_cpu_offload"]}
    assert status(hand_made(practices=fsdp, settings=callback), "GPU209") is Status.ENABLED
    assert status(hand_made(practices=fsdp), "GPU209") is Status.DISABLED
    assert status(hand_made(practices={"fsdp": "none"}), "GPU209") is Status.NOT_APPLICABLE
    assert status(hand_made(), "GPU209") is Status.UNKNOWN


def test_an_unpinned_offload_is_found_in_the_dict() -> None:
    text = (
        "import deepspeed\n\n"
        'config = {"train_micro_batch_size_per_gpu": 4, "bf16": {"enabled": True},\n'
        '          "zero_optimization": {"stage": 2, "offload_optimizer":\n'
        '              {"device": "cpu", "pin_memory": PINNED}}}\n'
        "engine, _, _, _ = deepspeed.initialize(model=model, config=config)\n"
        "for batch in loader:\n    engine.backward(engine(batch))\n    engine.step()\n"
    )
    (bad,) = runs_alone(text.replace("PINNED", "False"))
    (good,) = runs_alone(text.replace("PINNED", "True"))
    assert [finding.location.line for finding in judged(bad, "GPU210").findings] == [5]
    assert judged(good, "GPU210").findings == ()


def test_lightning_is_told_the_precision_by_its_trainer(tmp_path):
    source = (
        "import lightning as L\nimport torchvision\nfrom torch.utils.data import DataLoader\n\n\n"
        "class Net(L.LightningModule):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.model = torchvision.models.resnet50()\n\n"
        "    def training_step(self, batch, index):\n"
        "        return self.model(batch).mean()\n\n\n"
        "def main():\n"
        "    trainer = L.Trainer(accelerator='gpu', devices=2, precision='32-true')\n"
        "    loader = DataLoader(data, batch_size=8, num_workers=4, pin_memory=True)\n"
        "    trainer.fit(Net(), loader)\n\n\nmain()\n"
    )
    found = findings(runs_of(tmp_path, {"train.py": source}), "GPU201")
    assert [finding.message.partition(":")[0] for finding in found] == [
        'set precision="bf16-mixed" of the Lightning Trainer'
    ]
