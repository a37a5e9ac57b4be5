"""Kinds of false alarms that were met in real projects, each with its near miss that is right."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from checks_support import findings, hand_made, judged, runs_alone, runs_of, status
from test_checks_parallelism import EIGHT_A100, FULL, LORA, SHAPED

from flake8_gpu_training.checks.base import Priority, Status
from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.facts import Location, Problem, ProblemKind
from flake8_gpu_training.runs.model import Hardware, Model, Run

SWIFT = (
    "NPROC_PER_NODE=4 swift {command} --model {model} --tuner_type lora {more}--dataset a.jsonl\n"
)


def swift(
    root: Path, model: str = "Qwen/Qwen2.5-7B-Instruct", more: str = "", command: str = "sft"
) -> tuple[Run, ...]:
    text = SWIFT.format(command=command, model=model, more=more)
    return runs_of(root, {"train.sh": text})


def codes_of(runs: tuple[Run, ...]) -> set[str]:
    return {check.code for check in all_checks() if findings(runs, check.code)}


def test_flags_behind_a_cut_are_meant(tmp_path: Path) -> None:
    script = (
        "llamafactory-cli train --stage sft --do_train true \\\n"
        "    --model_name_or_path Qwen/Qwen2.5-7B-Instruct --finetuning_type full \\\n"
        "    #--cutoff_len 2048 \\\n"
        "    --dataloader_num_workers 4 --bf16 true --flash_attn fa2 --enable_liger_kernel true\n"
    )
    assert codes_of(runs_of(tmp_path, {"train.sh": script})) == {"GPU003"}


def test_a_trainers_class_is_told_of_its_steps_only() -> None:
    text = (
        "import torch\nfrom transformers import Trainer\n\n\nclass Own(Trainer):\n"
        "    def compute_loss(self, model, inputs, return_outputs=False):\n"
        "        loss = model(**inputs.to('cuda')).loss\n        self.total += loss.item()\n"
        "        return loss\n"
    )
    assert codes_of(runs_alone(text)) == {"GPU350"}


def test_an_optimizer_around_others_is_no_training_loop() -> None:
    text = (
        "import torch\n\n\nclass Several:\n    def step(self):\n"
        "        for optimizer in self.optimizers.values():\n            optimizer.step()\n"
    )
    assert codes_of(runs_alone(text)) == set()


def test_a_script_that_only_fills_arguments_trains_nothing() -> None:
    text = (
        "from trl import SFTConfig\n\n\ndef main():\n    args = SFTConfig(output_dir='x')\n"
        "    {}(args)\n\n\nif __name__ == '__main__':\n    main()\n"
    )
    assert "GPU501" not in codes_of(runs_alone(text.format("push_to_hub")))
    assert "GPU501" in codes_of(runs_alone(text.format("train")))


@pytest.mark.parametrize(
    ("model", "more", "code"),
    [
        ("/data/checkpoint-9282", "", "GPU507"),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B", "", "GPU507"),
        ("Qwen/Qwen2.5-7B-Instruct", "--tuner_backend unsloth ", "GPU507"),
        ("Qwen/Qwen2.5-7B-Instruct", "--target_modules all-linear lm_head ", "GPU305"),
        ("Qwen/Qwen2.5-7B-Instruct", "--task_type seq_cls --num_labels 2 ", "GPU305"),
        ("THUDM/chatglm3-6b", "", "GPU301"),
        ("Qwen/Qwen2.5-VL-7B-Instruct", "--model_kwargs '{\"max_pixels\": 100352}' ", "GPU702"),
    ],
)
def test_advice_that_would_break_the_run_is_not_given(
    tmp_path: Path, model: str, more: str, code: str
) -> None:
    assert findings(swift(tmp_path, model, more), code) == []


@pytest.mark.parametrize("code", ["GPU301", "GPU305", "GPU507"])
def test_a_plain_run_is_given_it(tmp_path: Path, code: str) -> None:
    assert len(findings(swift(tmp_path), code)) == 1


@pytest.mark.parametrize(
    "more", ["--init_weights pissa ", "--use_dora true ", "--task_type seq_cls "]
)
def test_unsloth_is_not_advised_where_it_cannot_do_it(tmp_path: Path, more: str) -> None:
    alone = "swift sft --model Qwen/Qwen2.5-7B-Instruct --tuner_type lora {}--dataset a.jsonl\n"
    script = f"CUDA_VISIBLE_DEVICES=0 {alone}"
    plain = runs_of(tmp_path / "plain", {"train.sh": script.format("")})
    special = runs_of(tmp_path / "special", {"train.sh": script.format(more)})
    assert len(findings(plain, "GPU307")) == 1
    assert findings(special, "GPU307") == []


def test_an_engine_is_not_advised_for_a_model_it_may_not_serve(tmp_path: Path) -> None:
    more = "--rlhf_type grpo "
    known = swift(tmp_path / "known", more=more, command="rlhf")
    assert len(findings(known, "GPU901")) == 1
    for model in ("/data/checkpoint-9282", "Qwen/Qwen2.5-Omni-7B"):
        name = model.replace("/", "_")
        assert findings(swift(tmp_path / name, model, more, "rlhf"), "GPU901") == []


def test_old_dialects_are_not_told_new_flags(tmp_path: Path) -> None:
    more = "--rlhf_type grpo --use_vllm false --vllm_device auto "
    (found,) = findings(swift(tmp_path, more=more, command="rlhf"), "GPU901")
    assert found.message.startswith("set --use_vllm true: ")


def test_whether_the_engine_shares_the_gpus_must_be_known() -> None:
    text = (
        "from trl import GRPOConfig\nargs = GRPOConfig('out', bf16=True, use_vllm=True, "
        "vllm_mode={})\n"
    )
    assert findings(runs_alone(text.format("mode()")), "GPU903") == []
    assert len(findings(runs_alone(text.format("'colocate'")), "GPU903")) == 1


@pytest.mark.parametrize(("algorithm", "count"), [("grpo", 0), ("sft", 1)])
def test_checkpoints_of_slow_steps_are_not_too_many(algorithm: str, count: int) -> None:
    practices = {"algorithm": algorithm, "save_steps": 10, "tuning": "full"}
    assert len(judged(hand_made(practices=practices), "GPU803").findings) == count


@pytest.mark.parametrize(("tuning", "count"), [("lora", 0), ("full", 1)])
def test_llamafactory_keeps_frozen_weights_as_they_are_saved(
    tmp_path: Path, tuning: str, count: int
) -> None:
    text = (
        "model_name_or_path: Qwen/Qwen2.5-7B-Instruct\nstage: sft\ndo_train: true\n"
        f"finetuning_type: {tuning}\ndataset: alpaca_en_demo\ntemplate: qwen\n"
        "output_dir: saves\n"
    )
    files = {"sft.yaml": text, "train.sh": "llamafactory-cli train sft.yaml\n"}
    assert len(findings(runs_of(tmp_path, files), "GPU201")) == count


def test_megatron_in_python_packs_without_attn_impl(tmp_path: Path) -> None:
    text = (
        "from swift.megatron import MegatronSftArguments, megatron_sft_main\n\n"
        "megatron_sft_main(MegatronSftArguments(model='Qwen/Qwen2.5-7B', packing=True))\n"
    )
    assert findings(runs_of(tmp_path, {"train.py": text}), "GPU016") == []


def test_accumulation_waits_for_the_processes_to_be_right() -> None:
    practices = {"gradient_accumulation_steps": 1, "micro_batch_size": 1}
    one = hand_made(processes=1, practices=practices)
    several = hand_made(processes=1, practices=practices, hardware=Hardware(gpus_per_node=4))
    assert len(judged(one, "GPU205").findings) == 1
    assert judged(several, "GPU205").findings == ()


def test_activations_that_fit_need_no_recomputing() -> None:
    practices = {
        **LORA,
        "gradient_checkpointing": False,
        "max_length": 4096,
        "micro_batch_size": 1,
        "attention": "flash_attention_2",
        "liger_kernel": True,
    }
    roomy = hand_made(processes=1, practices=practices, hardware=Hardware("H200", 1, 1, 141.0))
    roomy = replace(roomy, model=SHAPED)
    unknown = hand_made(processes=1, practices=practices, model=SHAPED)
    assert judged(roomy, "GPU203").findings == ()
    assert len(judged(unknown, "GPU203").findings) == 1


@pytest.mark.parametrize(
    ("gpu", "model", "expected"),
    [
        ("A100-80G", "Qwen/Qwen2.5-7B-Instruct", Status.PARTIAL),
        ("RTX4090", "Qwen/Qwen2.5-7B-Instruct", Status.PARTIAL),
        (None, "Qwen/Qwen2.5-7B-Instruct", Status.ENABLED),
        ("V100-32G", "Qwen/Qwen2.5-7B-Instruct", Status.ENABLED),
        ("A100-80G", "Qwen/Qwen2.5-7B-Instruct-AWQ", Status.ENABLED),
    ],
)
def test_fp16_is_second_best_where_bf16_runs(gpu: str, model: str, expected: Status) -> None:
    run = hand_made(
        practices={"precision": "fp16"},
        model=Model(model, "LLM", 7_600_000_000, is_hf_family=True),
        hardware=Hardware(gpu, 8, 1),
    )
    answer = judged(run, "GPU201")
    assert (answer.status, answer.variant) == (expected, "fp16")
    if expected is Status.PARTIAL:
        assert answer.priority is Priority.MEDIUM
        assert answer.findings[0].message.startswith("set --torch_dtype bfloat16")


def test_fp16_for_sampling_is_left_alone() -> None:
    practices = {"precision": "fp16", "algorithm": "grpo"}
    assert status(hand_made(practices=practices, hardware=EIGHT_A100), "GPU201") is Status.ENABLED


@pytest.mark.parametrize(
    ("prefix", "more", "count"),
    [
        ("", "--deepspeed zero2 ", 1),
        ("", "--use_liger_kernel true ", 1),
        ("NPROC_PER_NODE=2 ", "--deepspeed zero2 ", 0),
        ("SWIFT_SINGLE_DEVICE_MODE=1 ", "--deepspeed zero2 ", 0),
        ("", "", 0),
    ],
)
def test_what_ms_swift_refuses_beside_device_map(
    tmp_path: Path, prefix: str, more: str, count: int
) -> None:
    script = (
        f"CUDA_VISIBLE_DEVICES=0,1 {prefix}swift sft --model Qwen/Qwen2.5-7B-Instruct "
        f"--tuner_type full {more}--dataset a.jsonl\n"
    )
    runs = runs_of(tmp_path, {"train.sh": script})
    assert len(findings(runs, "GPU022")) == count
    assert not (count and findings(runs, "GPU101"))


def test_a_switch_that_is_off_by_choice_is_less_pressing() -> None:
    practices = {"liger_kernel": False, "tuning": "full", "algorithm": "sft"}
    assert judged(hand_made(processes=8, practices=practices), "GPU305").priority is Priority.MEDIUM


def test_single_samples_are_not_said_to_be_padded() -> None:
    practices = {"attention": "sdpa", "micro_batch_size": 1, "max_length": 8192, "packing": False}
    run = hand_made(processes=8, practices={**practices, "algorithm": "sft"})
    flash, packed = judged(run, "GPU301"), judged(run, "GPU507")
    assert flash.priority is Priority.MEDIUM
    assert "padding" not in flash.findings[0].message
    assert "padded" not in packed.findings[0].message
    more = replace(
        run,
        profile={
            **run.profile,
            "micro_batch_size": hand_made(practices={"micro_batch_size": 4}).profile[
                "micro_batch_size"
            ],
        },
    )
    assert "padding" in judged(more, "GPU301").findings[0].message
    assert "padded" in judged(more, "GPU507").findings[0].message


def test_a_trial_of_megatron_is_a_trial() -> None:
    assert status(hand_made(settings={"train_iters": 1}, practices=FULL), "GPU804") is not (
        Status.RECOMMENDED
    )


def test_cut_commands_are_known_by_their_problem() -> None:
    cut = Problem(ProblemKind.CUT_SHORT, "cut", Location("train.sh", 2, 1))
    wide = {"torch_dtype": "float32"}
    run = hand_made(
        processes=8, practices=FULL, settings=wide, hardware=EIGHT_A100, problems=(cut,)
    )
    assert status(run, "GPU102") is Status.UNKNOWN
