"""Mistakes: found where they stand, silent where the values are not known."""

from __future__ import annotations

from pathlib import Path

import pytest
from checks_support import findings, hand_made, judged, runs_alone, runs_of

from flake8_gpu_training.facts import Location, Problem, ProblemKind, Unknown
from flake8_gpu_training.runs.model import Hardware

TRAINER = """\
from transformers import Trainer, TrainingArguments

args = TrainingArguments(
    output_dir="out",
    {}
)
Trainer(model=model, args=args, train_dataset=data).train()
"""
LAUNCH = "torchrun --nproc_per_node={ranks} train.py\n"
SWIFT = "NPROC_PER_NODE=8 swift sft --model Qwen/Qwen2.5-7B-Instruct --tuner_type lora {}\n"


def messages(root: Path, code: str, **files: str) -> list[str]:
    """``path:line message`` of a check's findings; ``ds_json`` stands for ``ds.json``."""
    named = {name.replace("_", ".", 1): text for name, text in files.items()}
    return [f"{f.location} {f.message}" for f in findings(runs_of(root, named), code)]


def trained(line: str, code: str) -> list[str]:
    return [f.message for f in findings(runs_alone(TRAINER.format(line)), code)]


# --- files ---


def test_a_program_that_is_not_python_is_told(tmp_path: Path) -> None:
    problem = Problem(ProblemKind.SYNTAX, "invalid syntax", Location("train.py", 3, 1))
    (finding,) = judged(hand_made(problems=(problem,)), "GPU001").findings
    assert (str(finding.location), "invalid syntax" in finding.message) == ("train.py:3", True)


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("config/ds_config_TEMPLATE.json", 0),
        ("ds.template.yaml", 0),
        ("ds_config.json", 1),
        ("templates/ds_config.json", 1),
        ("template.py", 1),
    ],
)
def test_a_configuration_to_fill_in_is_no_mistake(path: str, told: int) -> None:
    problem = Problem(ProblemKind.SYNTAX, "unexpected GB_SIZE", Location(path, 2, 24))
    assert len(judged(hand_made(problems=(problem,)), "GPU001").findings) == told


def test_what_a_reader_gives_up_on_is_no_mistake() -> None:
    problem = Problem(ProblemKind.UNSUPPORTED, "a construct", Location("train.sh", 3, 1))
    large = Problem(ProblemKind.TOO_LARGE, "data", Location("train.json", 1, 1))
    assert judged(hand_made(problems=(problem, large)), "GPU001").findings == ()


def test_comments_in_a_deepspeed_file_are_refused(tmp_path: Path) -> None:
    config = (
        '{\n  // the stage\n  "zero_optimization": {"stage": 2},\n  "train_batch_size": "auto"\n}\n'
    )
    script = SWIFT.format("--deepspeed ds.json")
    (found,) = messages(tmp_path, "GPU002", ds_json=config, train_sh=script)
    assert found.startswith("ds.json:2 remove it, json.load refuses the file")


def test_a_blank_after_the_backslash_cuts_the_command(tmp_path: Path) -> None:
    script = "swift sft \\\n  --model Qwen/Qwen2.5-7B \\  \n  --attn_impl flash_attn\n"
    (found,) = messages(tmp_path, "GPU003", train_sh=script)
    assert found.startswith("train.sh:2 ")


def test_a_key_given_twice_is_told_at_the_one_that_does_not_count(tmp_path: Path) -> None:
    config = (
        "model: Qwen/Qwen2.5-7B-Instruct\ntuner_type: lora\nlearning_rate: 1e-4\n"
        "attn_impl: flash_attn\nlearning_rate: 1e-5\ndataset: data.jsonl\n"
    )
    script = "swift sft --config sft.yaml\n"
    (found,) = messages(tmp_path, "GPU004", sft_yaml=config, train_sh=script)
    assert found.startswith("sft.yaml:3 remove one of the two: 'learning_rate'")


# --- precision ---


@pytest.mark.parametrize(
    ("version", "told"),
    [("0.9.3", "only the last one counts"), ("0.9.5", "LLaMA-Factory 0.9.5 refuses the file")],
)
def test_omegaconf_refuses_a_key_given_twice(tmp_path: Path, version: str, told: str) -> None:
    files = {
        "train.sh": "llamafactory-cli train sft.yaml\n",
        "sft.yaml": "stage: sft\ndo_train: true\nlearning_rate: 1.0e-4\nlearning_rate: 5.0e-5\n",
        "requirements.txt": f"llamafactory=={version}\n",
    }
    (finding,) = findings(runs_of(tmp_path, files), "GPU004")
    assert finding.message.endswith(told)


def test_fp16_and_bf16_together_are_refused() -> None:
    assert len(trained("bf16=True,\n    fp16=True,", "GPU010")) == 1


@pytest.mark.parametrize(
    "line", ["bf16=True,", "bf16=True, fp16=False,", "bf16=True, fp16=not has_bf16(),", ""]
)
def test_one_precision_is_no_conflict(line: str) -> None:
    assert trained(line, "GPU010") == []


def test_deepspeed_refuses_both_precisions(tmp_path: Path) -> None:
    config = (
        '{\n  "fp16": {"enabled": true},\n  "bf16": {"enabled": true},\n'
        '  "zero_optimization": {"stage": 2},\n  "train_micro_batch_size_per_gpu": "auto"\n}\n'
    )
    script = SWIFT.format("--deepspeed ds.json")
    (found,) = messages(tmp_path, "GPU010", ds_json=config, train_sh=script)
    assert found.startswith("ds.json:2 ")


# --- workers ---


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("dataloader_prefetch_factor=2,", 1),
        ("dataloader_persistent_workers=True,", 1),
        ("dataloader_prefetch_factor=2, dataloader_num_workers=4,", 0),
        ("dataloader_prefetch_factor=2, dataloader_num_workers=workers,", 0),
        ("dataloader_prefetch_factor=None,", 0),
    ],
)
def test_worker_options_of_the_trainer_need_workers(line: str, count: int) -> None:
    assert len(trained(line, "GPU011")) == count


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        ("prefetch_factor=4", 1),
        ("num_workers=0, persistent_workers=True", 1),
        ("num_workers=0, persistent_workers=False, prefetch_factor=None", 0),
        ("num_workers=n, prefetch_factor=4", 0),
        ("prefetch_factor=4, **options", 0),
        ("num_workers=2, prefetch_factor=4, persistent_workers=True", 0),
    ],
)
def test_worker_options_of_a_loader_need_workers(arguments: str, count: int) -> None:
    text = (
        "import torch\n\nmodel = model.cuda()\n"
        f"loader = torch.utils.data.DataLoader(data, batch_size=8, {arguments})\n"
        "for batch in loader:\n    loss = model(batch)\n    loss.backward()\n    optimizer.step()\n"
    )
    assert len(findings(runs_alone(text), "GPU011")) == count


def test_swift_turns_persistent_workers_off_by_itself(tmp_path: Path) -> None:
    flags = "--dataloader_num_workers 0 --dataloader_persistent_workers true"
    assert messages(tmp_path, "GPU011", train_sh=SWIFT.format(flags)) == []


# --- DeepSpeed ---

ZERO = (
    '{{\n  "bf16": {{"enabled": "auto"}},\n  "zero_optimization": {{"stage": {stage}}},\n'
    '  "train_micro_batch_size_per_gpu": {micro},\n  "gradient_accumulation_steps": {steps},\n'
    '  "train_batch_size": {total}\n}}\n'
)


@pytest.mark.parametrize(("stage", "count"), [(1, 1), (2, 1), (3, 0)])
def test_offload_param_is_for_stage_3(stage: int, count: int, tmp_path: Path) -> None:
    config = (
        f'{{\n  "zero_optimization": {{"stage": {stage},\n'
        '    "offload_param": {"device": "cpu", "pin_memory": true}},\n'
        '  "train_micro_batch_size_per_gpu": "auto"\n}\n'
    )
    script = SWIFT.format("--deepspeed ds.json")
    assert len(messages(tmp_path, "GPU012", ds_json=config, train_sh=script)) == count


@pytest.mark.parametrize(("micro", "count"), [("4", 1), ("2", 0), ('"auto"', 0)])
def test_deepspeed_must_agree_with_the_trainer(micro: str, count: int, tmp_path: Path) -> None:
    config = ZERO.format(stage=2, micro=micro, steps='"auto"', total='"auto"')
    script = SWIFT.format("--deepspeed ds.json --per_device_train_batch_size 2")
    found = messages(tmp_path, "GPU013", ds_json=config, train_sh=script)
    assert len(found) == count
    assert all(message.startswith("ds.json:4 ") for message in found)


@pytest.mark.parametrize(("total", "count"), [("64", 1), ("128", 0), ('"auto"', 0)])
def test_the_batch_is_the_product(total: str, count: int, tmp_path: Path) -> None:
    config = ZERO.format(stage=2, micro="4", steps="4", total=total)
    script = SWIFT.format("--deepspeed ds.json")
    found = messages(tmp_path, "GPU014", ds_json=config, train_sh=script)
    assert len(found) == count
    assert all("set train_batch_size to 128" in message for message in found)


@pytest.mark.parametrize(("total", "count"), [(32, 1), (16, 0)])
def test_auto_in_the_batch_is_what_the_trainer_has(total: int, count: int, tmp_path: Path) -> None:
    config = ZERO.format(stage=2, micro='"auto"', steps='"auto"', total=total)
    program = TRAINER.format('bf16=True, per_device_train_batch_size=2, deepspeed="ds.json",')
    files = {"ds_json": config, "train_py": program, "run_sh": LAUNCH.format(ranks=8)}
    assert len(messages(tmp_path, "GPU014", **files)) == count


def test_the_batch_is_not_reckoned_without_the_number_of_ranks(tmp_path: Path) -> None:
    config = ZERO.format(stage=2, micro="4", steps="4", total="64")
    script = "NPROC_PER_NODE=$GPUS swift sft --model Qwen/Qwen2.5-7B --deepspeed ds.json\n"
    assert messages(tmp_path, "GPU014", ds_json=config, train_sh=script) == []


# --- the best model ---


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ('eval_strategy="epoch", load_best_model_at_end=True,', 1),
        ("load_best_model_at_end=True,", 1),
        ('eval_strategy="epoch", save_strategy="epoch", load_best_model_at_end=True,', 0),
        ('eval_strategy="epoch", save_strategy="best", load_best_model_at_end=True,', 0),
        ("eval_strategy=when, load_best_model_at_end=True,", 0),
        ("load_best_model_at_end=True, **options,", 0),
        ("load_best_model_at_end=best,", 0),
        (
            'eval_strategy="steps", eval_steps=300, save_steps=500, load_best_model_at_end=True,',
            1,
        ),
        (
            'eval_strategy="steps", eval_steps=250, save_steps=500, load_best_model_at_end=True,',
            0,
        ),
    ],
)
def test_the_best_model_needs_an_evaluation_for_every_checkpoint(line: str, count: int) -> None:
    assert len(trained(line, "GPU015")) == count


# --- what excludes each other ---


@pytest.mark.parametrize(
    ("flags", "count"),
    [
        ("--packing true", 1),
        ("--padding_free true --attn_impl sdpa", 1),
        ("--packing true --attn_impl flash_attn", 0),
        ("--packing true --attn_impl flash_attention_3", 0),
        ("--packing true --attn_impl $ATTN", 0),
        ("--packing false", 0),
    ],
)
def test_packing_under_swift_needs_a_flash_kernel(flags: str, count: int, tmp_path: Path) -> None:
    assert len(messages(tmp_path, "GPU016", train_sh=SWIFT.format(flags))) == count


def test_megatron_packs_with_its_own_kernels(tmp_path: Path) -> None:
    script = "NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen2.5-7B --packing true\n"
    assert messages(tmp_path, "GPU016", train_sh=script) == []


def test_unsloth_and_liger_exclude_each_other(tmp_path: Path) -> None:
    flags = "--tuner_backend unsloth --use_liger_kernel true"
    assert len(messages(tmp_path, "GPU017", train_sh=SWIFT.format(flags))) == 1


@pytest.mark.parametrize(("ranks", "count"), [(8, 1), (1, 0)])
def test_device_map_is_for_one_process(ranks: int, count: int, tmp_path: Path) -> None:
    program = (
        "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
        'model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", device_map="auto")\n'
        'args = TrainingArguments(output_dir="out", bf16=True)\n'
        "Trainer(model=model, args=args, train_dataset=data).train()\n"
    )
    script = LAUNCH.format(ranks=ranks)
    found = messages(tmp_path, "GPU018", train_sh=script, train_py=program)
    assert len(found) == count


@pytest.mark.parametrize(("launcher", "count"), [("accelerate launch", 1), ("torchrun", 0)])
def test_device_map_in_a_program_that_accelerate_prepares(
    launcher: str, count: int, tmp_path: Path
) -> None:
    program = (
        "import torch\nfrom accelerate import Accelerator\n"
        "from transformers import AutoModelForCausalLM\n"
        'model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", device_map="auto")\n'
        "accelerator = Accelerator()\n"
        "optimizer = torch.optim.AdamW(model.parameters())\n"
        "model, optimizer, data = accelerator.prepare(model, optimizer, loader)\n"
        "for batch in data:\n    accelerator.backward(model(**batch).loss)\n    optimizer.step()\n"
    )
    flags = "--num_processes 4" if launcher.startswith("acc") else "--nproc_per_node 1"
    script = f"{launcher} {flags} train.py\n"
    assert len(messages(tmp_path, "GPU018", train_sh=script, train_py=program)) == count


@pytest.mark.parametrize(
    ("flags", "count"),
    [
        ("--fsdp fsdp2 --deepspeed zero2", 1),
        ("--packing true --attn_impl flash_attn --lazy_tokenize true", 1),
        ("--streaming true --max_steps 1000 --lazy_tokenize true", 1),
        ("--fsdp fsdp2 --save_only_model true", 1),
        ("--deepspeed zero2 --save_only_model true --lazy_tokenize true", 0),
        ("--packing true --attn_impl flash_attn --lazy_tokenize false", 0),
    ],
)
def test_options_that_swift_refuses_together(flags: str, count: int, tmp_path: Path) -> None:
    assert len(messages(tmp_path, "GPU019", train_sh=SWIFT.format(flags))) == count


# --- hardware ---


@pytest.mark.parametrize(
    ("gpu", "attention", "count"),
    [
        ("V100-32G", "flash_attention_2", 1),
        ("T4", "flash_attention_2", 1),
        ("A100-80G", "flash_attention_2", 0),
        ("A100-80G", "flash_attention_3", 0),  # builds for it exist
        ("A6000", "flash_attention_3", 1),
        ("L40S", "flash_attention_3", 1),
        ("B200", "flash_attention_3", 1),
        ("H100", "flash_attention_3", 0),
        ("H100", "flash_attention_4", 0),
        ("RTX4090", "flash_attention_4", 1),
        ("Ascend910B", "flash_attention_2", 0),
        ("V100-32G", "sdpa", 0),
    ],
)
def test_attention_that_the_gpu_lacks(gpu: str, attention: str, count: int) -> None:
    run = hand_made(practices={"attention": attention}, hardware=Hardware(gpu))
    assert len(judged(run, "GPU020").findings) == count


def test_hardware_named_in_a_comment_is_no_ground_for_a_mistake() -> None:
    hardware = Hardware("V100-32G", weak=True)
    run = hand_made(practices={"attention": "flash_attention_2"}, hardware=hardware)
    assert judged(run, "GPU020").findings == ()


@pytest.mark.parametrize(("ranks", "degree", "count"), [(4, 8, 1), (6, 4, 1), (8, 4, 0), (8, 1, 0)])
def test_parallel_sizes_divide_the_ranks(ranks: int, degree: int, count: int) -> None:
    run = hand_made(processes=ranks, practices={"sequence_parallel": degree})
    assert len(judged(run, "GPU021").findings) == count


def test_parallel_sizes_without_a_number_of_ranks_are_not_judged() -> None:
    run = hand_made(practices={"sequence_parallel": 8})
    assert judged(run, "GPU021").findings == ()
    unknown = hand_made(processes=4, practices={"sequence_parallel": Unknown("?")})
    assert judged(unknown, "GPU021").findings == ()


@pytest.mark.parametrize(
    ("generation", "attention", "count"),
    [
        ("Volta", "flash_attention_2", 1),
        ("Ampere", "flash_attention_2", 0),
        ("Ampere", "flash_attention_3", 0),
        ("Ada", "flash_attention_3", 1),
    ],
)
def test_a_generation_is_enough_to_tell_that_attention_is_lacking(
    generation: str, attention: str, count: int
) -> None:
    hardware = Hardware(architecture=generation)
    run = hand_made(practices={"attention": attention}, hardware=hardware)
    assert len(judged(run, "GPU020").findings) == count


@pytest.mark.parametrize(
    ("code", "flags", "silent", "told"),
    [
        ("GPU016", "--packing true", "3.3.1", "3.4.1"),
        ("GPU016", "--padding_free true", "3.4.1", "3.5.3"),
        ("GPU019", "--streaming true --max_steps 9 --lazy_tokenize true", "3.6.4", "3.7.3"),
    ],
)
def test_older_releases_of_swift_do_not_refuse(
    code: str, flags: str, silent: str, told: str, tmp_path: Path
) -> None:
    for version, count in ((silent, 0), (told, 1)):
        pins = {"train.sh": SWIFT.format(flags), "requirements.txt": f"ms-swift=={version}\n"}
        assert len(findings(runs_of(tmp_path / version, pins), code)) == count


def test_packing_on_a_gpu_without_flash_attention_is_dropped() -> None:
    run = hand_made(
        practices={"packing": True, "attention": "sdpa"},
        settings={"packing": True},
        hardware=Hardware("V100-32G"),
    )
    (finding,) = judged(run, "GPU016").findings
    assert finding.message.startswith("drop --packing")
    assert judged(run, "GPU301").findings == ()


def test_one_instruction_mends_packing_without_flash_attention() -> None:
    run = hand_made(
        practices={"packing": True, "attention": "sdpa", "max_length": 4096},
        settings={"packing": True},
    )
    assert len(judged(run, "GPU016").findings) == 1
    assert judged(run, "GPU301").findings == ()


def test_an_optimizer_in_deepspeed_must_be_the_trainer_s(tmp_path: Path) -> None:
    config = (
        '{"zero_optimization": {"stage": 2}, "train_batch_size": "auto", "optimizer": {"type": '
        '"AdamW", "params": {"lr": "auto", "betas": [0.9, 0.999], "eps": 1e-8}}, "scheduler": '
        '{"type": "WarmupLR", "params": {"warmup_num_steps": 100}}}\n'
    )
    flags = "--deepspeed ds.json --adam_beta2 0.95 --adam_epsilon 1e-8 --warmup_steps 50"
    found = messages(tmp_path, "GPU013", ds_json=config, train_sh=SWIFT.format(flags))
    assert [one.partition("DeepSpeed says ")[2][:23] for one in found] == [
        "0.999, adam_beta2 says ",
        "100, warmup_steps says ",
    ]


@pytest.mark.parametrize(("size", "told"), [(4, 0), (7, 0), (8, 1), (3, 1)])
def test_tensor_parallel_ranks_share_the_attention_heads(
    size: int, told: int, tmp_path: Path
) -> None:
    # Qwen2.5-7B has 28 attention heads.
    command = f"NPROC_PER_NODE={size} megatron sft --model Qwen/Qwen2.5-7B-Instruct"
    command += f" --dataset d.jsonl --tensor_model_parallel_size {size}\n"
    found = findings(runs_of(tmp_path, {"run.sh": command}), "GPU021")
    assert len(found) == told
    if told:
        assert "28 attention heads" in found[0].message


def test_one_process_that_a_launcher_may_multiply_is_no_mistake(tmp_path: Path) -> None:
    script = "pretrain_gpt.py --tensor-model-parallel-size 4 --num-layers 24 --hidden-size 1024"
    script += " --num-attention-heads 16 --seq-length 1024 --max-position-embeddings 1024"
    script += " --train-iters 100 --micro-batch-size 1 --global-batch-size 8"
    files = {"run.sh": f"torchrun $DISTRIBUTED {script}\n"}
    assert findings(runs_of(tmp_path / "open", files), "GPU021") == []
    files = {"run.sh": f"torchrun --nproc_per_node 2 {script}\n"}
    assert len(findings(runs_of(tmp_path / "few", files), "GPU021")) == 1


@pytest.mark.parametrize(
    ("files", "instruction"),
    [
        (
            {"train.sh": "swift sft --model org/m --dataset d.jsonl --packing true\n"},
            "set --attn_impl flash_attn: packing needs flash attention",
        ),
        (
            {
                "train.sh": "swift sft sft.yaml\n",
                "sft.yaml": "model: org/m\ndataset: d.jsonl\npacking: true\n",
            },
            "set attn_impl to flash_attn: packing needs flash attention",
        ),
    ],
)
def test_packing_asks_for_the_kernel_where_it_is_written(
    tmp_path: Path, files: dict[str, str], instruction: str
) -> None:
    (one,) = findings(runs_of(tmp_path, files), "GPU016")
    assert one.message.startswith(instruction)
    assert one.message.endswith("ms-swift refuses to start")
