"""Rules of frameworks/refusals/transformers: what is refused, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from checks_support import findings, runs_alone, runs_of

HEAD = """\
import torch
from transformers import AcceleratorConfig, EarlyStoppingCallback, Trainer, TrainingArguments
from transformers import AutoModelForCausalLM, IntervalStrategy

"""
TRAINER = HEAD + (
    'args = TrainingArguments(output_dir="out", {})\n'
    "Trainer(model=model, args=args, eval_dataset=data, {}).train()\n"
)


def messages(arguments: str, trainer: str = "", **versions: str) -> list[str]:
    source = TRAINER.format(arguments, trainer)
    return [f.message for f in findings(runs_alone(source, **versions), "GPU024")]


BEST = "load_best_model_at_end=True, eval_strategy='steps', "
MIN_LR = "lr_scheduler_type='cosine_with_min_lr'"
GALORE = "optim='galore_adamw_layerwise', optim_target_modules='all-linear'"
FSDP = "fsdp='full_shard auto_wrap', fsdp_config="
OLD, NEW = "4.57.6", "5.24.0"


@pytest.mark.parametrize(
    ("release", "refused", "taken", "instruction"),
    [
        (
            OLD,
            "logging_steps=0",
            "logging_steps=0, logging_strategy='no'",
            "give logging_steps more than 0",
        ),
        (
            OLD,
            "eval_strategy='steps', logging_steps=0, logging_strategy='no'",
            "eval_strategy='steps', logging_steps=0, logging_strategy='no', eval_steps=5",
            "give eval_steps more than 0",
        ),
        (NEW, "logging_steps=2.5", "logging_steps=2.0", "give logging_steps a whole number"),
        (NEW, "logging_steps=2.5", "logging_steps=0.5", "give logging_steps a whole number"),
        (
            NEW,
            "eval_strategy='steps', eval_steps=2.5",
            "eval_strategy='epoch', eval_steps=2.5",
            "give eval_steps a whole number",
        ),
        (NEW, "save_steps=1.5", "save_steps=1.5, save_strategy='no'", "give save_steps a whole"),
        (
            NEW,
            BEST + "eval_steps=0.1, save_steps=500",
            BEST + "eval_steps=0.1, save_steps=0.2",
            "write save_steps and eval_steps both as steps",
        ),
        (
            NEW,
            BEST + "eval_steps=200",
            BEST + "eval_steps=250",
            "make save_steps a multiple of eval_steps (200)",
        ),
        (
            NEW,
            BEST + "eval_steps=0.2, save_steps=0.3",
            BEST + "eval_steps=0.1, save_steps=0.3",
            "make save_steps a multiple of eval_steps (0.2)",
        ),
        (
            NEW,
            "save_strategy='best', eval_strategy='epoch'",
            "save_strategy='best', eval_strategy='epoch', metric_for_best_model='f1'",
            "set metric_for_best_model",
        ),
        (
            NEW,
            "save_strategy='best', eval_strategy='epoch'",
            "save_strategy='best', eval_strategy='epoch', load_best_model_at_end=True",
            "set metric_for_best_model",
        ),
        (
            NEW,
            "fp16_full_eval=True, bf16_full_eval=True",
            "fp16_full_eval=False, bf16_full_eval=True",
            "drop fp16_full_eval or bf16_full_eval",
        ),
        (
            OLD,
            "bf16=True, half_precision_backend='apex'",
            "fp16=True, half_precision_backend='apex'",
            "drop half_precision_backend=apex",
        ),
        (
            NEW,
            "lr_scheduler_type='reduce_lr_on_plateau'",
            "lr_scheduler_type='reduce_lr_on_plateau', eval_strategy='epoch'",
            "set eval_strategy to steps or epoch",
        ),
        (
            NEW,
            "lr_scheduler_type='greedy'",
            "lr_scheduler_type='greedy', eval_strategy='epoch'",
            "set eval_strategy to steps or epoch",
        ),
        (
            NEW,
            "torch_empty_cache_steps=0",
            "torch_empty_cache_steps=4",
            "give torch_empty_cache_steps a whole number above 0",
        ),
        (OLD, "warmup_steps=0.1", "warmup_steps=10", "give warmup_steps a whole number"),
        (OLD, "warmup_steps=-1", "warmup_ratio=0.1", "give warmup_steps a whole number"),
        (NEW, "warmup_steps=-1", "warmup_steps=0.1", "give warmup_steps 0 or more"),
        (OLD, "warmup_ratio=10", "warmup_ratio=1.0", "give warmup_ratio 0 to 1"),
        (
            NEW,
            "accelerator_config=AcceleratorConfig",
            "accelerator_config={'split_batches': True}",
            "call it: AcceleratorConfig(...)",
        ),
        (
            NEW,
            "gradient_accumulation_steps=2, "
            "accelerator_config={'gradient_accumulation_kwargs': {'num_steps': 2}}",
            "accelerator_config={'gradient_accumulation_kwargs': {'num_steps': 2}}",
            "drop num_steps or gradient_accumulation_steps",
        ),
        (
            NEW,
            "optim='galore_adamw'",
            "optim='galore_adamw', optim_target_modules=['attn']",
            "set optim_target_modules=all-linear",
        ),
        (NEW, GALORE + ", gradient_accumulation_steps=2", GALORE, "set gradient_accumulation_"),
        (
            NEW,
            MIN_LR,
            MIN_LR + ", lr_scheduler_kwargs={'min_lr': 1e-6}",
            "give min_lr or min_lr_rate in lr_scheduler_kwargs",
        ),
        (
            NEW,
            MIN_LR + ", lr_scheduler_kwargs={'min_lr': 1e-6, 'min_lr_rate': 0.1}",
            MIN_LR + ", lr_scheduler_kwargs={'min_lr_rate': 0.1}",
            "drop min_lr or min_lr_rate",
        ),
        (
            NEW,
            "lr_scheduler_type='warmup_stable_decay', "
            "lr_scheduler_kwargs={'num_decay_steps': 5, 'decay_type': 'sqrt'}",
            "lr_scheduler_type='warmup_stable_decay', "
            "lr_scheduler_kwargs={'num_decay_steps': 5, 'decay_type': '1-sqrt'}",
            "choose linear, cosine or 1-sqrt",
        ),
        (
            NEW,
            "lr_scheduler_type='polynomial', learning_rate=1e-6, "
            "lr_scheduler_kwargs={'lr_end': 1e-5}",
            "lr_scheduler_type='polynomial', lr_scheduler_kwargs={'lr_end': 1e-5}",
            "give lr_end in lr_scheduler_kwargs less than learning_rate",
        ),
        (OLD, "fsdp='full_shards'", "fsdp='full_shard auto_wrap'", "write fsdp with full_shard"),
        (NEW, "fsdp='full_shards'", "fsdp='full_shard auto_wrap'", "write fsdp with full_shard"),
        (
            NEW,
            "fsdp='hybrid_shard'",
            "fsdp='hybrid_shard', fsdp_config={'version': 1}",
            "write full_shard or shard_grad_op",
        ),
        (OLD, "fsdp='offload'", "fsdp='full_shard offload'", 'write fsdp as "full_shard offload"'),
        (
            OLD,
            "fsdp='full_shard shard_grad_op'",
            "fsdp='shard_grad_op'",
            "drop full_shard or shard_grad_op",
        ),
        (
            OLD,
            FSDP + "{'min_num_params': 10, 'transformer_layer_cls_to_wrap': 'Block'}",
            FSDP + "{'transformer_layer_cls_to_wrap': 'Block'}",
            "drop min_num_params or transformer_layer_cls_to_wrap",
        ),
        (
            OLD,
            FSDP + "{'fsdp_cpu_ram_efficient_loading': True, 'sync_module_states': False}",
            FSDP + "{'fsdp_cpu_ram_efficient_loading': True}",
            "set sync_module_states to true",
        ),
        (
            NEW,
            "fsdp=True, fsdp_config={'auto_wrap_policy': 'transformer'}",
            "fsdp=True, fsdp_config={'auto_wrap_policy': 'SIZE_BASED_WRAP'}",
            "give auto_wrap_policy TRANSFORMER_BASED_WRAP",
        ),
        (
            NEW,
            "fsdp=True, fsdp_config={'reshard_after_forward': 'full_shard'}",
            "fsdp=True, fsdp_config={'reshard_after_forward': 'full_shard', 'version': 1}",
            "write true or false in fsdp_config",
        ),
        (
            OLD,
            FSDP + "{'activation_checkpointing': True}, gradient_checkpointing=True",
            FSDP + "{'activation_checkpointing': True}",
            "drop gradient_checkpointing",
        ),
        (
            NEW,
            FSDP + "{'activation_checkpointing': True}, activation_checkpointing=True",
            FSDP + "{}, activation_checkpointing=True",
            "drop gradient_checkpointing",
        ),
        (
            NEW,
            "save_only_model=True, load_best_model_at_end=True, eval_strategy='epoch', "
            "save_strategy='epoch', deepspeed='z2.json'",
            "save_only_model=True, load_best_model_at_end=True, eval_strategy='epoch', "
            "save_strategy='epoch'",
            "drop save_only_model or load_best_model_at_end",
        ),
        (
            NEW,
            FSDP + "{'state_dict_type': 'SHARDED_STATE_DICT'}, save_only_model=True",
            FSDP + "{'state_dict_type': 'FULL_STATE_DICT'}, save_only_model=True",
            "drop save_only_model, or set state_dict_type",
        ),
    ],
)
def test_an_argument(release: str, refused: str, taken: str, instruction: str) -> None:
    (message,) = messages(refused, transformers=release)
    assert message.startswith(instruction)
    stops = ("TrainingArguments raises", "Trainer raises", "training stops as it starts, where")
    assert any(one in message for one in stops)
    assert messages(taken, transformers=release) == []


WSD = "lr_scheduler_type='warmup_stable_decay'"
PHASES = WSD + ", lr_scheduler_kwargs={'num_stable_steps': 5, 'num_decay_steps': 5}"


@pytest.mark.parametrize(
    ("release", "refused", "taken", "instruction"),
    [
        (NEW, MIN_LR, MIN_LR + ", lr_scheduler_kwargs={'min_lr': 1e-6}", "give min_lr or min_lr"),
        (NEW, WSD, WSD + ", lr_scheduler_kwargs={'num_decay_steps': 5}", "give num_decay_steps in"),
        (
            "4.48.3",
            WSD + ", lr_scheduler_kwargs={'num_decay_steps': 5}",
            PHASES,
            "give num_stable_steps in",
        ),
        ("4.48.3", WSD, PHASES, "give num_stable_steps and num_decay_steps in"),
        (
            "4.46.3",
            "lr_scheduler_kwargs={'min_lr': 1e-6}",
            MIN_LR + ", lr_scheduler_kwargs={'min_lr': 1e-6}",
            "drop min_lr from lr_scheduler_kwargs",
        ),
        (
            NEW,
            "lr_scheduler_type='polynomial', lr_scheduler_kwargs={'num_cycles': 1}",
            "lr_scheduler_type='constant', lr_scheduler_kwargs={'num_cycles': 1}",
            "drop num_cycles from lr_scheduler_kwargs",
        ),
    ],
)
def test_a_schedule_stops_when_training_starts(
    release: str, refused: str, taken: str, instruction: str
) -> None:
    (message,) = messages(refused, transformers=release)
    assert message.startswith(instruction)
    assert "training stops as it starts, where the Trainer makes its scheduler" in message
    assert "raises" not in message
    assert messages(taken, transformers=release) == []


ARGUMENTS = f'args = TrainingArguments("out", {MIN_LR})\n'


@pytest.mark.parametrize(
    "rest",
    [
        "",
        "trainer = Trainer(model, args, eval_dataset=data)\ntrainer.evaluate()\n",
        "Trainer(model, args, optimizers=(optimizer, scheduler)).train()\n",
        "class Own(Trainer):\n    def create_scheduler(self, num_training_steps, optimizer=None):\n"
        "        return build(self)\n\n\nOwn(model, args).train()\n",
        "trainer = Trainer(model, args, train_dataset=data)\ntrainer.lr_scheduler = build()\n"
        "trainer.train()\n",
    ],
)
def test_no_trainer_makes_the_schedule(rest: str) -> None:
    assert _of(ARGUMENTS + rest, transformers=NEW) == []


@pytest.mark.parametrize(
    "rest",
    [
        "trainer = Trainer(model, args, train_dataset=data)\ntrainer.train()\n",
        "class Own(Trainer):\n    def log(self, logs):\n        print(logs)\n\n\n"
        "run = Own(model, args)\nrun.train()\n",
        "trainer = SFTTrainer(model, args, train_dataset=data)\ntrainer.train()\n",
    ],
)
def test_a_trainer_makes_the_schedule(rest: str) -> None:
    (message,) = _of(ARGUMENTS + rest, transformers=NEW)
    assert "the Trainer makes its scheduler" in message


@pytest.mark.parametrize(
    ("release", "refused", "taken", "instruction"),
    [
        (
            NEW,
            ("", "callbacks=[EarlyStoppingCallback(2)]"),
            (
                "eval_strategy='epoch', metric_for_best_model='f1'",
                "callbacks=[EarlyStoppingCallback(2)]",
            ),
            "set eval_strategy to steps or epoch",
        ),
        (
            NEW,
            ("eval_strategy='epoch'", "callbacks=[EarlyStoppingCallback(2)]"),
            (
                "eval_strategy='epoch', save_strategy='epoch', load_best_model_at_end=True",
                "callbacks=[EarlyStoppingCallback(2)]",
            ),
            "set metric_for_best_model",
        ),
        (
            "4.46.3",
            (
                "eval_strategy='epoch', metric_for_best_model='f1'",
                "callbacks=[EarlyStoppingCallback(2)]",
            ),
            ("eval_strategy='epoch', metric_for_best_model='f1'", ""),
            "set load_best_model_at_end=True",
        ),
        (
            NEW,
            ("fsdp='full_shard'", "optimizers=(optimizer, None)"),
            ("fsdp='full_shard'", "optimizers=(None, None)"),
            "drop the Trainer's optimizers",
        ),
        (
            NEW,
            ("", "model_init=build, optimizers=(optimizer, None)"),
            ("", "optimizers=(optimizer, None)"),
            "drop optimizers and override",
        ),
    ],
)
def test_the_trainer(
    release: str, refused: tuple[str, str], taken: tuple[str, str], instruction: str
) -> None:
    (message,) = messages(*refused, transformers=release)
    assert message.startswith(instruction)
    assert "Trainer raises" in message
    assert messages(*taken, transformers=release) == []


def _of(source: str, **versions: str) -> list[str]:
    return [f.message for f in findings(runs_alone(HEAD + source, **versions), "GPU024")]


EVALUATED = """\
args = TrainingArguments("out", {}="steps")
trainer = Trainer(model, args, {}train_dataset=data)
trainer.train()
"""


@pytest.mark.parametrize("data", ["", "eval_dataset=None, "])
def test_an_evaluation_without_data(data: str) -> None:
    (message,) = _of(EVALUATED.format("eval_strategy", data), transformers=NEW)
    assert message.startswith("pass eval_dataset to the Trainer, or set eval_strategy to no")
    assert _of(EVALUATED.format("evaluation_strategy", data), transformers="4.40.2") == []


@pytest.mark.parametrize("data", ["eval_dataset=data, ", "eval_dataset=d if more else None, "])
def test_an_evaluation_with_data(data: str) -> None:
    assert _of(EVALUATED.format("eval_strategy", data), transformers=NEW) == []


def test_trainers_of_the_project_and_several_of_them_are_left_alone() -> None:
    own = EVALUATED.format("eval_strategy", "").replace("Trainer(model", "MyTrainer(model")
    assert _of("class MyTrainer(Trainer):\n    pass\n\n" + own, transformers=NEW) == []
    twice = EVALUATED.format("eval_strategy", "")
    assert _of(twice + twice, transformers=NEW) == []


MODELS = """\
args = TrainingArguments("out")
{}
Trainer({}args=args, train_dataset=data).train()
"""


def test_the_models_of_a_trainer() -> None:
    made = 'model = AutoModelForCausalLM.from_pretrained("gpt2")'
    (twice,) = _of(
        MODELS.format("", "model=AutoModelForCausalLM.from_pretrained('gpt2'), model_init=build, "),
        transformers=NEW,
    )
    assert twice.startswith("pass model or model_init, not both")
    (none,) = _of(MODELS.format("", ""), transformers=NEW)
    assert none.startswith("pass model to the Trainer")
    assert _of(MODELS.format(made, "model=model, "), transformers=NEW) == []
    assert _of(MODELS.format("", "model_init=build, "), transformers=NEW) == []


@pytest.mark.parametrize(
    "unsure",
    [
        "logging_steps=n",
        "logging_steps=0, **more",
        "lr_scheduler_type='reduce_lr_on_plateau', eval_strategy=strategy",
        "fsdp='full_shard', fsdp_config='fsdp.json', gradient_checkpointing=True",
        "fsdp='full_shard', fsdp_config={'activation_checkpointing': c}, "
        "gradient_checkpointing=True",
        "lr_scheduler_type='cosine_with_min_lr', lr_scheduler_kwargs=kwargs",
    ],
)
def test_what_is_not_known_is_not_told(unsure: str) -> None:
    assert messages(unsure, transformers=OLD) == []


def test_members_of_an_enum_are_the_texts_that_they_stand_for() -> None:
    plateau = "lr_scheduler_type='reduce_lr_on_plateau', eval_strategy=IntervalStrategy."
    assert messages(plateau + "EPOCH", transformers=NEW) == []
    assert len(messages(plateau + "NO", transformers=NEW)) == 1


def test_a_release_without_the_rule_is_silent() -> None:
    assert messages("warmup_steps=0.1", transformers=NEW) == []
    assert messages("fsdp='offload'", transformers=NEW) == []
    assert messages("torch_empty_cache_steps=0", transformers="4.42.4") == []


# --- programs --------------------------------------------------------------------------

PROGRAM = """\
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments

(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
model = AutoModelForCausalLM.from_pretrained("gpt2")
Trainer(model=model, args=args, train_dataset=data, eval_dataset=data).train()
"""


def _launched(root: Path, command: str, **files: str) -> list[str]:
    found = {"train.py": PROGRAM, "train.sh": command + "\n"}
    found.update({name.replace("_json", ".json"): text for name, text in files.items()})
    return [f.message for f in findings(runs_of(root, found), "GPU024")]


@pytest.mark.parametrize(
    ("refused", "taken"),
    [
        (
            "python train.py --output_dir out --fsdp full_shard",
            "torchrun --nproc_per_node 2 train.py --output_dir out --fsdp full_shard",
        ),
        (
            "torchrun --nproc_per_node 2 train.py --output_dir out "
            "--optim galore_adamw_layerwise --optim_target_modules all-linear",
            "torchrun --nproc_per_node 1 train.py --output_dir out "
            "--optim galore_adamw_layerwise --optim_target_modules all-linear",
        ),
        (
            "python train.py --output_dir out --logging_steps 0",
            "python train.py --output_dir out --logging_steps 0 --logging_strategy no",
        ),
        (
            "python train.py --output_dir out --lr_scheduler_type cosine_with_min_lr",
            "python train.py --output_dir out --lr_scheduler_type cosine_with_min_lr "
            "--lr_scheduler_kwargs '{\"min_lr\": 1e-6}'",
        ),
    ],
)
def test_a_command(tmp_path: Path, refused: str, taken: str) -> None:
    (message,) = _launched(tmp_path / "refused", refused)
    assert "refuses to start" in message or "training stops as it starts" in message
    assert _launched(tmp_path / "taken", taken) == []


def test_a_batch_is_not_found_in_stage_3(tmp_path: Path) -> None:
    command = (
        "deepspeed --num_gpus 2 train.py --output_dir out --auto_find_batch_size true "
        "--deepspeed zero.json"
    )
    stage = '{{"zero_optimization": {{"stage": {}}}, "train_batch_size": "auto"}}'
    (message,) = _launched(tmp_path / "three", command, zero_json=stage.format(3))
    assert message.startswith("drop auto_find_batch_size, or use ZeRO stage 2")
    assert _launched(tmp_path / "two", command, zero_json=stage.format(2)) == []


def test_what_a_script_sets_after_parsing_is_not_validated(tmp_path: Path) -> None:
    files = {
        "train.py": PROGRAM.replace("model =", "args.logging_steps = 0\nmodel ="),
        "train.sh": "python train.py --output_dir out\n",
    }
    assert findings(runs_of(tmp_path, files), "GPU024") == []


WHOLE = (
    HEAD
    + """\
from datasets import load_dataset

args = TrainingArguments("out", {})
{}
trainer = Trainer(model, args, {})
{}
"""
)


@pytest.mark.parametrize(
    ("refused", "taken", "instruction"),
    [
        (
            ("", "", "eval_dataset=data", "trainer.train()"),
            ("", "", "eval_dataset=data", "trainer.evaluate()"),
            "pass train_dataset to the Trainer",
        ),
        (
            ("", "", "eval_dataset=data", "trainer.train()"),
            ("", "", "eval_dataset=data", "trainer.train_dataset = data\ntrainer.train()"),
            "pass train_dataset to the Trainer",
        ),
        (
            ("", "", "train_dataset=data", "trainer.evaluate()"),
            ("", "", "train_dataset=data", "trainer.evaluate(held_out)"),
            "pass eval_dataset to the Trainer",
        ),
        (
            ("", "", "train_dataset=data", "trainer.hyperparameter_search(n_trials=3)"),
            ("", "", "train_dataset=data", "trainer.train()"),
            "pass model_init to the Trainer",
        ),
        (
            (
                "",
                'data = load_dataset("c4", split="train", streaming=True)\ndata = data.map(f)',
                "train_dataset=data",
                "",
            ),
            (
                "max_steps=10",
                'data = load_dataset("c4", split="train", streaming=True)',
                "train_dataset=data",
                "",
            ),
            "set max_steps",
        ),
        (
            (
                "",
                'data = load_dataset("c4", split="train", streaming=True)',
                "train_dataset=data",
                "",
            ),
            ("", 'data = load_dataset("c4", split="train")', "train_dataset=data", ""),
            "set max_steps",
        ),
        (
            ("", "", "train_dataset=d, optimizers=(o, s), optimizer_cls_and_kwargs=(A, k)", ""),
            ("", "", "train_dataset=d, optimizer_cls_and_kwargs=(A, k)", ""),
            "pass optimizers or optimizer_cls_and_kwargs",
        ),
    ],
)
def test_a_whole_script(refused: tuple[str, ...], taken: tuple[str, ...], instruction: str) -> None:
    runs = runs_alone(WHOLE.format(*refused), transformers=NEW)
    (found,) = findings(runs, "GPU024")
    assert found.message.startswith(instruction)
    assert "Trainer raises" in found.message
    assert findings(runs_alone(WHOLE.format(*taken), transformers=NEW), "GPU024") == []


@pytest.mark.parametrize(
    ("refused", "taken", "instruction"),
    [
        (
            "optim='galore_adamw', optim_target_modules=True",
            "optim='galore_adamw', optim_target_modules='all-linear'",
            "give optim_target_modules a list",
        ),
        (
            "lr_scheduler_type='greedy', eval_strategy='epoch', lr_scheduler_kwargs={'factor': 1}",
            "lr_scheduler_type='greedy', eval_strategy='epoch', "
            "lr_scheduler_kwargs={'factor': 0.5}",
            "give factor less than 1",
        ),
        (
            "per_device_train_batch_size=0",
            "per_device_train_batch_size=1",
            "give per_device_train_batch_size 1 or more",
        ),
        ("dataloader_num_workers=-1", "dataloader_num_workers=0", "give dataloader_num_workers 0"),
        (
            "dataloader_num_workers=2, dataloader_prefetch_factor=-1",
            "dataloader_num_workers=2, dataloader_prefetch_factor=2",
            "give dataloader_prefetch_factor 1 or more",
        ),
        (
            "accelerator_config={'use_configured_state': True}",
            "accelerator_config={'use_configured_state': False}",
            "make PartialState() or an Accelerator before",
        ),
    ],
)
def test_more_arguments(refused: str, taken: str, instruction: str) -> None:
    (message,) = messages(refused, transformers=NEW)
    assert message.startswith(instruction)
    assert messages(taken, transformers=NEW) == []


def test_tf32_needs_ampere(tmp_path: Path) -> None:
    job = "#!/bin/bash\n#SBATCH --gres=gpu:{}:2\ntorchrun --nproc_per_node 2 train.py {}\n"
    arguments = "--output_dir out --tf32 true"
    for name, gpu, count in (("old", "v100", 1), ("new", "a100", 0)):
        files = {"train.py": PROGRAM, "train.slurm": job.format(gpu, arguments)}
        found = findings(runs_of(tmp_path / name, files), "GPU024")
        assert len(found) == count, name


# --- values of another kind -------------------------------------------------------------


@pytest.mark.parametrize(
    ("refused", "taken", "instruction"),
    [
        ("save_steps='500'", "save_steps=500", "write 500 for save_steps, without quotation marks"),
        (
            "save_steps=[5, 6]",
            "save_steps=[5, 6], save_strategy='no'",
            "give save_steps one number",
        ),
        ("eval_strategy='steps', eval_steps='9'", "eval_steps='9'", "write 9 for eval_steps"),
        ("learning_rate='5e-5'", "learning_rate=5e-5", "write 5.0e-5 for learning_rate"),
        ("num_train_epochs='3'", "num_train_epochs='3', max_steps=9", "write 3 for num_train"),
        ("warmup_steps='5%'", "warmup_steps=5", "write a number for warmup_steps"),
        ("ddp_timeout='1800'", "ddp_timeout=1800", "write 1800 for ddp_timeout"),
        ("weight_decay='<wd>', max_steps='9'", "weight_decay='<wd>'", "write 9 for max_steps"),
        ("fp16='false', bf16=True", "fp16='', bf16=True", "keep fp16 or bf16"),
        ("lr_scheduler_kwargs='a=1'", "lr_scheduler_kwargs='{\"last_epoch\": 5}'", "give lr_sched"),
        (
            "lr_scheduler_kwargs='a=1'",
            "lr_scheduler_kwargs='a=1', lr_scheduler_type='constant'",
            "give lr_scheduler_kwargs a mapping",
        ),
    ],
)
def test_texts_and_lists_are_no_numbers(refused: str, taken: str, instruction: str) -> None:
    (message,) = messages(refused, transformers=NEW)
    assert message.startswith(instruction)
    assert messages(taken, transformers=NEW) == []


@pytest.mark.parametrize("value", ["[]", "True", "{'a': 1}", "7"])
def test_an_output_directory_is_a_path(value: str) -> None:
    source = HEAD + "TrainingArguments(output_dir={})\n"
    (found,) = findings(runs_alone(source.format(value), transformers=NEW), "GPU024")
    assert found.message.startswith("give output_dir the path of a folder")
    assert findings(runs_alone(source.format("Path('a')"), transformers=NEW), "GPU024") == []


READS = """\
{}
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

cfg = {}(open("args.yaml"))
model = AutoModelForCausalLM.from_pretrained("gpt2")
Trainer(model, TrainingArguments(**cfg), train_dataset=data).train()
"""


def of_file(root: Path, head: str, load: str, text: str) -> list[tuple[str, str]]:
    files = {"train.py": READS.format(head, load), "args.yaml": f"output_dir: out\n{text}\n"}
    found = findings(runs_of(root, files), "GPU024")
    return [(str(one.location), one.message) for one in found]


def test_a_float_without_a_point_is_a_text_to_pyyaml(tmp_path: Path) -> None:
    plain = ("import yaml", "yaml.safe_load")
    ((place, message),) = of_file(tmp_path / "a", *plain, "learning_rate: 2e-5")
    assert place.startswith("args.yaml:2")
    assert message.startswith("write 2.0e-5 for learning_rate: 2e-5 is a text (to PyYAML")
    assert of_file(tmp_path / "b", *plain, "learning_rate: 2.0e-5") == []


def test_omegaconf_reads_it_as_a_number(tmp_path: Path) -> None:
    road = ("from omegaconf import OmegaConf", "OmegaConf.load")
    assert of_file(tmp_path, *road, "learning_rate: 2e-5") == []
