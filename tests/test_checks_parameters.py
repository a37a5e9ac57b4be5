"""Parameters that a framework does not know, in the version at hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from checks_support import findings, runs_alone, runs_of

from flake8_gpu_training.patches import unified_diff

TRAINER = """\
from transformers import TrainingArguments, Trainer

args = TrainingArguments(output_dir="out", {})
Trainer(model=model, args=args).train()
"""
SWIFT = "swift sft --model Qwen/Qwen2.5-7B-Instruct --dataset data/train.jsonl {}\n"
CODES = ("GPU005", "GPU006", "GPU007", "GPU008", "GPU009")


def messages(root: Path, files: dict[str, str]) -> list[str]:
    """``code message`` of all findings about parameters."""
    runs = runs_of(root, files)
    assert runs, "the files are no run"
    return [f"{code} {f.message}" for code in CODES for f in findings(runs, code)]


def of_swift(root: Path, flags: str, version: str = "4.6.0") -> list[str]:
    pins = {"requirements.txt": f"ms-swift=={version}\n"} if version else {}
    return messages(root, {"train.sh": SWIFT.format(flags), **pins})


def of_trainer(arguments: str, **versions: str) -> list[str]:
    runs = runs_alone(TRAINER.format(arguments), **versions)
    return [f"{code} {f.message}" for code in CODES for f in findings(runs, code)]


# --- unknown names ---


def test_a_misspelt_flag_is_told_with_its_real_name(tmp_path: Path) -> None:
    (found,) = of_swift(tmp_path, "--gradient_acumulation_steps 2")
    assert found.startswith("GPU005 write --gradient_accumulation_steps: ms-swift 4.6.0 has no ")


def test_a_unique_beginning_of_a_flag_is_the_flag(tmp_path: Path) -> None:
    assert of_swift(tmp_path, "--gradient_accumulation 2 --neftune_noise 5") == []


@pytest.mark.parametrize(
    "entry", ["remove-unused-columns: false", "lora_ran: 8", "no_dataloader_pin_memory: true"]
)
def test_keys_of_a_file_that_become_flags_are_spelled_as_flags(entry: str, tmp_path: Path) -> None:
    text = f"model: Qwen/Qwen2.5-7B-Instruct\ndataset: a.jsonl\n{entry}\n"
    assert messages(tmp_path, {"sft.yaml": text, "train.sh": "swift sft sft.yaml\n"}) == []


def test_a_null_that_becomes_a_flag_is_the_word_none(tmp_path: Path) -> None:
    text = "model: Qwen/Qwen2.5-7B-Instruct\ndataset: a.jsonl\nlora_dropout: null\n"
    (found,) = messages(tmp_path, {"sft.yaml": text, "train.sh": "swift sft sft.yaml\n"})
    assert found.startswith("GPU008 give lora_dropout a number: ")


@pytest.mark.parametrize("value", ["None", "''", "null"])
def test_no_parser_of_flags_takes_these_for_a_number(value: str, tmp_path: Path) -> None:
    text = f"model: Qwen/Qwen2.5-7B-Instruct\ndataset: a.jsonl\nmax_length: {value}\n"
    (found,) = messages(tmp_path, {"sft.yaml": text, "train.sh": "swift sft sft.yaml\n"})
    assert found.startswith("GPU008 give max_length a whole number: ")


def test_none_is_a_choice_only_where_it_is_one(tmp_path: Path) -> None:
    (found,) = of_swift(tmp_path / "a", "--save_strategy none")
    assert found.startswith("GPU009 ")
    assert of_swift(tmp_path / "b", "--truncation_strategy None") == []


def test_flags_with_dashes_and_negated_flags_are_known(tmp_path: Path) -> None:
    flags = "--learning-rate 1e-4 --no_dataloader_pin_memory --max-length 2048"
    assert of_swift(tmp_path, flags) == []


def test_ignored_errors_and_ray_leave_it_open(tmp_path: Path) -> None:
    assert of_swift(tmp_path, "--ignore_args_error true --my_own 1") == []
    assert of_swift(tmp_path / "ray", "--use_ray true --my_own 1") == []


def test_an_unread_tail_of_arguments_hides_nothing_that_is_written(tmp_path: Path) -> None:
    (found,) = of_swift(tmp_path, '--lora_rnk 8 "$@"')
    assert found.startswith("GPU005 write --lora_rank:")


def test_a_misspelt_keyword_is_told_with_the_constructor(tmp_path: Path) -> None:
    (found,) = of_trainer("gradient_checkpoint=True", transformers="4.57.6")
    assert found.startswith("GPU005 write gradient_checkpointing: Transformers 4.57.6 has no ")
    assert found.endswith("and TrainingArguments raises TypeError")


def test_a_class_of_the_project_takes_what_it_declares() -> None:
    text = TRAINER.replace("args =", "class TrainingArguments(Base):\n    mine: int = 1\n\nargs =")
    text = text.replace("import TrainingArguments, ", "import ").format("mine=2")
    assert [f for code in CODES for f in findings(runs_alone(text), code)] == []


def test_unsloth_replaces_the_classes() -> None:
    text = "import unsloth\nfrom trl import SFTConfig, SFTTrainer\n"
    text += "SFTTrainer(model, args=SFTConfig(max_seq_length=512)).train()\n"
    assert [f for code in CODES for f in findings(runs_alone(text), code)] == []


def test_a_project_that_holds_the_framework_may_take_more(tmp_path: Path) -> None:
    files = {
        "sft.yaml": "model_name_or_path: a/b\nstage: sft\nfinetuning_type: lora\n"
        "do_train: true\nbrand_new: 1\n",
        "src/llamafactory/hparams/parser.py": "",
    }
    assert messages(tmp_path, files) == []


def test_a_framework_from_its_repository_may_take_more(tmp_path: Path) -> None:
    files = {
        "train.sh": SWIFT.format("--brand_new 1"),
        "requirements.txt": "git+https://github.com/modelscope/ms-swift.git\n",
    }
    runs = runs_of(tmp_path, files)
    assert [f.message for code in CODES for f in findings(runs, code)] == []


@pytest.mark.parametrize(
    "command",
    [
        "swift sft --model_type qwen-7b-chat --custom_train_dataset_path a.jsonl\n",
        "swift sft --model_id_or_path a/b --model_type qwen --check_dataset_strategy none\n",
        "python src/train_bash.py --stage sft --do_train --checkpoint_dir out --finetuning_type "
        "lora\n",
    ],
)
def test_what_is_older_than_the_tables_is_not_unknown(command: str, tmp_path: Path) -> None:
    found = findings(runs_of(tmp_path, {"train.sh": command}), "GPU005")
    assert found == []


# --- names of others ---


def test_a_name_of_transformers_is_translated_for_swift(tmp_path: Path) -> None:
    (found,) = of_swift(tmp_path, "--attn_implementation flash_attention_2")
    assert found.startswith("GPU006 write --attn_impl flash_attn: attn_implementation is a ")


def test_a_flag_of_another_command_is_named(tmp_path: Path) -> None:
    (found,) = of_swift(tmp_path, "--num_generations 8")
    assert "num_generations is a parameter of swift rlhf" in found


# --- versions ---


def test_a_pinned_version_that_dropped_a_name(tmp_path: Path) -> None:
    (found,) = of_trainer('evaluation_strategy="epoch"', transformers="4.57.6")
    assert found.startswith("GPU007 write eval_strategy: Transformers 4.57.6 no longer has")


def test_a_pinned_version_that_still_has_a_name() -> None:
    assert of_trainer('evaluation_strategy="epoch"', transformers="4.40.2") == []


def test_a_pinned_version_that_has_a_name_not_yet() -> None:
    (found,) = of_trainer('eval_strategy="epoch"', transformers="4.38.2")
    assert found.startswith("GPU007 install transformers>=4.41.2 or drop eval_strategy")


ROLLOUT = """\
swift rlhf \\
    --rlhf_type grpo \\
    --model Qwen/Qwen2.5-7B-Instruct \\
    --train_type lora \\
    --dataset AI-MO/NuminaMath-TIR \\
    {}--num_infer_workers 8 \\
    --gc_collect_after_offload true \\
    --output_dir out
"""


def of_rollout(root: Path, engine: str) -> tuple[list[str], str]:
    """Messages on the old names of a run that samples, and the patch that mends them."""
    runs = runs_of(root, {"train.sh": ROLLOUT.format(engine)})
    found = findings(runs, "GPU007")
    changes = [entry.change for entry in found if entry.change is not None]
    return [entry.message for entry in found], unified_diff(root, changes)


def test_names_of_several_releases_ask_for_the_one_that_has_them_all(tmp_path: Path) -> None:
    told, _ = of_rollout(tmp_path, "")
    assert len(told) == 3
    assert all(", or pin ms-swift<3.6: " in message for message in told)


def test_a_dropped_flag_is_taken_out_with_its_value(tmp_path: Path) -> None:
    _, patch = of_rollout(tmp_path, "")
    gone = [line for line in patch.splitlines() if line.startswith("-  ")]
    assert gone == [
        "-    --train_type lora \\",
        "-    --num_infer_workers 8 \\",
        "-    --gc_collect_after_offload true \\",
    ]
    assert [x for x in patch.splitlines() if x.startswith("+ ")] == ["+    --tuner_type lora \\"]


def test_the_last_flag_of_a_command_is_left_to_the_user(tmp_path: Path) -> None:
    flags = "--num_infer_workers 8"
    runs = runs_of(tmp_path, {"train.sh": SWIFT.format(flags).replace("sft", "rlhf")})
    (found,) = findings(runs, "GPU007")
    assert found.change is not None
    assert (found.change.text, found.change.edits) == ("- --num_infer_workers 8", ())


def test_workers_of_no_engine_are_dropped_without_a_word_on_engines(tmp_path: Path) -> None:
    told, _ = of_rollout(tmp_path, "")
    assert any(message.startswith("drop --num_infer_workers, or") for message in told)


def test_workers_of_a_sampling_engine_become_its_mode(tmp_path: Path) -> None:
    told, patch = of_rollout(tmp_path, "--use_vllm true \\\n    ")
    assert any(message.startswith("write --vllm_mode colocate") for message in told)
    assert "+    --vllm_mode colocate \\" in patch.splitlines()


def test_a_mode_that_is_given_is_not_written_again(tmp_path: Path) -> None:
    told, patch = of_rollout(
        tmp_path, "--use_vllm true --vllm_server_host 127.0.0.1 --vllm_mode server \\\n    "
    )
    assert any(message.startswith("drop --num_infer_workers") for message in told)
    assert "colocate" not in patch


def test_without_a_pin_the_message_offers_one(tmp_path: Path) -> None:
    runs = runs_of(tmp_path, {"train.sh": SWIFT.format("--train_type lora")})
    (found,) = findings(runs, "GPU007")
    assert found.priority is not None
    assert found.priority.value == "medium"
    assert found.message.startswith("write --tuner_type, or pin ms-swift<4.1: ms-swift 4.6.0, the ")


def test_an_upper_bound_names_the_version_at_hand(tmp_path: Path) -> None:
    files = {"train.sh": SWIFT.format("--train_type lora"), "requirements.txt": "ms-swift<4\n"}
    assert messages(tmp_path, files) == []


def test_a_pinned_base_names_the_version_of_what_builds_on_it(tmp_path: Path) -> None:
    script = "from trl import SFTConfig, SFTTrainer\n"
    script += "SFTTrainer(model, args=SFTConfig(max_seq_length=512)).train()\n"
    pinned = {"train.py": script, "requirements.txt": "trl==1.10.0\ntransformers==5.0.0\n"}
    (found,) = messages(tmp_path, pinned)
    assert found.startswith("GPU007 write max_length: TRL 1.10.0 no longer has")


def test_a_guarded_name_is_left_alone() -> None:
    text = """\
from transformers import TrainingArguments, Trainer
try:
    args = TrainingArguments(output_dir="out", eval_strategy="epoch")
except TypeError:
    args = TrainingArguments(output_dir="out", evaluation_strategy="epoch")
Trainer(model=model, args=args).train()
"""
    runs = runs_alone(text, transformers="4.57.6")
    assert [f for code in CODES for f in findings(runs, code)] == []


def test_a_file_that_asks_for_the_version_is_left_alone() -> None:
    text = "from trl import PPOConfig, PPOTrainer, __version__\nassert __version__ == '0.9.6'\n"
    text += "PPOTrainer(config=PPOConfig(model_name='a', ppo_epochs=1)).train()\n"
    runs = runs_alone(text)
    assert [f for code in CODES for f in findings(runs, code)] == []


# --- values ---


@pytest.mark.parametrize(
    "flag", ["--max_length 4e3", "--max_length 2048.5", "--lora_rank r8", "--learning_rate fast"]
)
def test_values_that_argparse_cannot_convert(flag: str, tmp_path: Path) -> None:
    (found,) = of_swift(tmp_path, flag)
    assert found.startswith("GPU008 ")


@pytest.mark.parametrize(
    "flag",
    ["--packing 1", "--packing yes", "--packing", "--learning_rate 1", "--max_length $LENGTH"],
)
def test_values_that_argparse_converts(flag: str, tmp_path: Path) -> None:
    assert of_swift(tmp_path, flag) == []


def test_a_place_to_fill_in_is_no_value(tmp_path: Path) -> None:
    assert of_swift(tmp_path, "--num_labels '<num-labels>' --seed YOUR_SEED") == []


def test_megatron_s_arguments_in_llamafactory_are_left_alone(tmp_path: Path) -> None:
    text = "model_name_or_path: a/b\nstage: sft\nfinetuning_type: full\ndo_train: true\n"
    text += "tensor_model_parallel_size: 2\nbias_activation_fusion: true\n"
    assert messages(tmp_path, {"sft.yaml": text}) == []


def test_a_truth_value_that_is_none(tmp_path: Path) -> None:
    (found,) = of_swift(tmp_path, "--packing 2")
    assert found.startswith("GPU008 give --packing true or false")


def test_a_bare_no_in_yaml_is_false(tmp_path: Path) -> None:
    text = "model_name_or_path: a/b\nstage: sft\nfinetuning_type: lora\ndo_train: true\n"
    files = {"sft.yaml": f"{text}eval_strategy: no\n", "requirements.txt": "llamafactory==0.9.5\n"}
    (found,) = messages(tmp_path, files)
    assert found.startswith('GPU009 write eval_strategy: "no" with quotes')


def test_a_word_for_another_is_no_choice() -> None:
    (found,) = of_trainer('lr_scheduler_type="cosin"', transformers="4.57.6")
    assert found.startswith("GPU009 write lr_scheduler_type=cosine")


# --- trl, accelerate ---


def of_trl(root: Path, flags: str, **files: str) -> list[str]:
    command = f"trl sft --model_name_or_path Qwen/Qwen2.5-0.5B --dataset_name a/b {flags}\n"
    named = {name.replace("_", "."): text for name, text in files.items()}
    return messages(root, {"train.sh": command, "requirements.txt": "trl==1.16.0\n", **named})


def test_the_command_of_trl_takes_its_classes_and_the_launcher(tmp_path: Path) -> None:
    flags = "--num_processes 4 --use_peft --packing --accelerate_config zero2 --streaming true"
    assert of_trl(tmp_path, flags) == []


def test_the_command_of_trl_refuses_what_nobody_knows(tmp_path: Path) -> None:
    (found,) = of_trl(tmp_path, "--lora_alhpa 32")
    assert found.startswith("GPU005 write --lora_alpha: TRL 1.16.0 has no parameter lora_alhpa")


def test_a_file_of_trl_is_read_as_its_flags(tmp_path: Path) -> None:
    text = "bf16: true\nenv:\n  A: b\npackingg: true\n"
    (found,) = of_trl(tmp_path, "--config sft.yaml", sft_yaml=text)
    assert found.startswith("GPU005 write packing: ")


def test_a_key_that_accelerate_does_not_know(tmp_path: Path) -> None:
    files = {
        "train.sh": "accelerate launch --config_file fsdp.yaml --num_proceses 4 train.py\n",
        "train.py": TRAINER.format("bf16=True"),
        "fsdp.yaml": "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\n"
        "fsdp_config:\n  anything: 1\nmix_precision: bf16\n",
        "requirements.txt": "accelerate==1.15.0\n",
    }
    found = messages(tmp_path, files)
    assert [one.partition(":")[0] for one in found] == [
        "GPU005 write --num_processes",
        "GPU005 write mixed_precision",
    ]


def test_what_is_exported_takes_the_arguments_of_inference(tmp_path: Path) -> None:
    command = "llamafactory-cli export --model_name_or_path a/b --export_dir out {}\n"
    pins = {"requirements.txt": "llamafactory==0.9.5\n"}
    assert messages(tmp_path, {"export.sh": command.format("--template qwen"), **pins}) == []
    (found,) = messages(tmp_path, {"export.sh": command.format("--learning_rate 1e-4"), **pins})
    assert "learning_rate" in found


# --- scripts with a parser of their own ---

OWN = """\
from dataclasses import dataclass, field
import transformers
from transformers import HfArgumentParser, Trainer


@dataclass
class DataArguments:
    data_path: str = None


@dataclass
class TrainingArguments(transformers.TrainingArguments):
    model_max_length: int = field(default=512)


parser = HfArgumentParser((DataArguments, TrainingArguments))
data_args, args = parser.parse_args_into_dataclasses({})
Trainer(model=model, args=args).train()
"""


def of_own(root: Path, flags: str, how: str = "") -> list[str]:
    files = {
        "train.sh": f"torchrun train.py --output_dir out {flags}\n",
        "train.py": OWN.replace("{}", how),
        "requirements.txt": "transformers==4.57.6\n",
    }
    return messages(root, files)


def test_a_script_takes_the_fields_of_its_classes(tmp_path: Path) -> None:
    assert of_own(tmp_path, "--data_path d --model_max_length 9 --bf16 --fsdp full_shard") == []


def test_a_script_refuses_what_none_of_its_classes_has(tmp_path: Path) -> None:
    (found,) = of_own(tmp_path, "--per_device_train_batchsize 4")
    assert found.startswith("GPU005 write --per_device_train_batch_size: ")
    (former,) = of_own(tmp_path, "--evaluation_strategy steps")
    assert former.startswith("GPU007 write --eval_strategy: Transformers 4.57.6 no longer has")


def test_a_script_that_returns_what_it_does_not_know_takes_anything(tmp_path: Path) -> None:
    assert of_own(tmp_path, "--mine 4", "return_remaining_strings=True") == []


@pytest.mark.parametrize(("older", "refused"), [("3.8.0", False), ("4.2.0", True)])
def test_files_that_ask_for_different_versions_are_as_many_environments(
    tmp_path: Path, older: str, refused: bool
) -> None:
    files = {
        "train.sh": SWIFT.format("--train_type lora"),
        "requirements.txt": f"ms-swift=={older}\n",
        "requirements-new.txt": "ms-swift==4.6.0\n",
    }
    assert bool(findings(runs_of(tmp_path, files), "GPU007")) is refused


# --- given twice ---


def test_the_earlier_of_two_flags_is_lost(tmp_path: Path) -> None:
    runs = runs_of(
        tmp_path, {"train.sh": SWIFT.format("--learning_rate 1e-4 --learning_rate 1e-5")}
    )
    (found,) = findings(runs, "GPU023")
    assert found.message.startswith("remove one of the two: --learning_rate 0.0001 is lost")


@pytest.mark.parametrize(
    "script",
    [
        SWIFT.format("--learning_rate 1e-4 --learning_rate 1e-4"),
        'COMMON="--learning_rate 1e-4"\n' + SWIFT.format("$COMMON --learning_rate 1e-5"),
        SWIFT.format("--learning_rate $A --learning_rate 1e-5"),
    ],
)
def test_overrides_that_are_meant_are_left_alone(script: str, tmp_path: Path) -> None:
    assert findings(runs_of(tmp_path, {"train.sh": script}), "GPU023") == []


def test_a_member_of_an_enum_is_a_choice() -> None:
    text = TRAINER.replace("import ", "import IntervalStrategy, SchedulerType, ", 1)
    text = text.format(
        "eval_strategy=IntervalStrategy.EPOCH, lr_scheduler_type=SchedulerType.COSINE"
    )
    runs = runs_alone(text, transformers="4.57.6")
    assert [f for code in CODES for f in findings(runs, code)] == []


def test_a_precision_that_accelerate_does_not_know() -> None:
    text = "from accelerate import Accelerator\naccelerator = Accelerator(mixed_precision='bf61')\n"
    text += "for batch in loader:\n    accelerator.backward(model(batch))\n    optimizer.step()\n"
    (found,) = findings(runs_alone(text, accelerate="1.15.0"), "GPU009")
    assert found.message.startswith("write mixed_precision=bf16: Accelerate 1.15.0 does not know")


# --- files whose values a parser converts ---


def test_a_file_of_trl_holds_defaults_which_argparse_converts(tmp_path: Path) -> None:
    text = "max_length: {}\nlearning_rate: 1e-4\n"
    bad = of_trl(tmp_path / "bad", "--config sft.yaml", sft_yaml=text.format("4k"))
    assert [m.partition(":")[0] for m in bad] == ["GPU008 give max_length a whole number"]
    for taken in ("4096", '"4096"', "null"):
        folder = tmp_path / taken.strip('"')
        assert of_trl(folder, "--config sft.yaml", sft_yaml=text.format(taken)) == []


def test_keys_that_become_flags_may_be_cut_short(tmp_path: Path) -> None:
    text = "model: a/b\ndataset: a.jsonl\ngradient_accumulation: 4\n"
    files = {"sft.yaml": text, "requirements.txt": "ms-swift==4.6.0\n"}
    assert messages(tmp_path, {"train.sh": "swift sft sft.yaml\n", **files}) == []


def test_a_percentage_is_no_number(tmp_path: Path) -> None:
    (found,) = of_swift(tmp_path, "--weight_decay 5%")
    assert found.startswith("GPU008 give --weight_decay a number")


@pytest.mark.parametrize("value", ["''", "'[]'", "'{\"value\": 1}'"])
def test_nothing_and_containers_are_no_number(tmp_path: Path, value: str) -> None:
    (found,) = of_swift(tmp_path, f"--max_length {value}")
    assert found.startswith("GPU008 give --max_length a whole number")


@pytest.mark.parametrize("value", ["'[LENGTH]'", "'{length}'", "'<length>'", "'%(length)s'"])
def test_what_is_to_be_filled_in_is_no_mistake(tmp_path: Path, value: str) -> None:
    assert of_swift(tmp_path, f"--max_length {value}") == []


def test_the_parser_of_an_imported_module_is_not_that_of_the_script(tmp_path: Path) -> None:
    files = {
        "lib/__init__.py": "",
        "lib/train.py": "from transformers import HfArgumentParser, Trainer, TrainingArguments\n"
        "\n\ndef train():\n"
        "    args = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()[0]\n"
        "    Trainer(model=build(), args=args).train()\n",
        "evaluate.py": "import argparse\n\nfrom lib.train import build\n\n"
        "parser = argparse.ArgumentParser()\nparser.add_argument('--question-file')\n"
        "args = parser.parse_args()\nbuild().generate(args.question_file)\n",
        "start.py": "from lib.train import train\n\ntrain()\n",
        "eval.sh": "python evaluate.py --question-file a.json\n",
        "train.sh": "torchrun start.py --output_dir out --question-file a.json\n",
    }
    found = findings(runs_of(tmp_path, files), "GPU005")
    assert [f.location.path for f in found] == ["train.sh"]


def test_the_parser_of_trl_takes_the_word_none(tmp_path: Path) -> None:
    assert of_trl(tmp_path / "trl", "--dataloader_prefetch_factor None") == []
    (found,) = of_swift(tmp_path / "swift", "--dataloader_prefetch_factor None")
    assert found.startswith("GPU008 give --dataloader_prefetch_factor a whole number")


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ("--log_level warnng", "GPU009 write --log_level warning"),
        ("--debug underflow", "GPU009 choose one of underflow_overflow"),
        ("--debug underflow_overflow", ""),
        ("--log_level_replica passive", ""),
    ],
)
def test_choices_that_the_source_computes(tmp_path: Path, flags: str, told: str) -> None:
    assert [f[: len(told)] for f in of_swift(tmp_path, flags)] == ([told] if told else [])


def test_debug_options_are_words_of_one_text() -> None:
    assert of_trainer('debug="underflow_overflow tpu_metrics_debug"') == []
    (found,) = of_trainer('debug="underflow_overflow tpu"')
    assert found.startswith("GPU009 ")


def test_a_family_of_models_is_no_path_of_one(tmp_path: Path) -> None:
    script = (
        "from dataclasses import dataclass\n\n"
        "from transformers import HfArgumentParser, Trainer, TrainingArguments\n\n\n"
        "@dataclass\nclass Mine:\n    model_name_or_path: str = ''\n\n\n"
        "mine, args = HfArgumentParser((Mine, TrainingArguments)).parse_args_into_dataclasses()\n"
        "Trainer(model=model, args=args).train()\n"
    )
    command = "python train.py --model_type vit_mae --output_dir out\n"
    (found,) = messages(tmp_path, {"train.py": script, "train.sh": command})
    assert found.startswith("GPU006 drop --model_type: ")


# --- constructors of trainers ---

SFT = """\
from trl import SFTConfig, SFTTrainer

trainer = SFTTrainer(
    model=model,
    train_dataset=data,
    {},
    args=SFTConfig(output_dir="out"),
)
trainer.train()
"""


def of_sft(arguments: str, **versions: str) -> list[str]:
    runs = runs_alone(SFT.format(arguments), **versions)
    return [f"{code} {f.message}" for code in CODES for f in findings(runs, code)]


@pytest.mark.parametrize("name", ["dataset_text_field", "packing", "max_seq_length"])
def test_what_moved_out_of_a_trainer_is_given_to_its_arguments(name: str) -> None:
    (found,) = of_sft(f"{name}=value", trl="0.13.0")
    assert found == (
        f"GPU007 move {name} into SFTConfig: TRL 0.13.0 no longer has {name} (the last was "
        "0.12.2), and SFTTrainer raises TypeError"
    )
    assert of_sft(f"{name}=value", trl="0.12.2") == []


def test_what_moved_is_told_at_its_own_line() -> None:
    runs = runs_alone(SFT.format('dataset_text_field="text"'), trl="0.13.0")
    (found,) = findings(runs, "GPU007")
    assert found.location.line == 6


def test_what_moved_and_was_renamed_there_is_told_with_its_new_name() -> None:
    (found,) = of_sft("max_seq_length=512", trl="1.0.0")
    assert found.startswith("GPU007 give max_length in SFTConfig instead of max_seq_length: ")


def test_what_no_class_takes_any_more_is_dropped_with_its_advice() -> None:
    text = "from trl import DPOTrainer\nDPOTrainer(model, max_prompt_length=9).train()\n"
    (found,) = findings(runs_alone(text, trl="1.16.0"), "GPU007")
    assert found.message.startswith("drop max_prompt_length (filter long prompts out of the ")


def test_without_a_pin_an_older_release_would_take_it() -> None:
    (found,) = of_sft("packing=True")
    assert found.startswith("GPU007 move packing into SFTConfig, or pin trl<0.13: ")


def test_the_tokenizer_of_a_trainer_is_a_processing_class() -> None:
    (found,) = of_sft("tokenizer=tok", trl="0.16.0")
    assert found.startswith("GPU007 write processing_class: TRL 0.16.0 no longer has")
    for version in ("0.11.4", "0.13.0", "0.15.2"):
        assert of_sft("tokenizer=tok", trl=version) == []  # some take it for processing_class


def test_a_former_name_beside_the_new_one_is_dropped() -> None:
    (found,) = of_sft("tokenizer=tok, processing_class=tok", trl="0.16.0")
    assert found.startswith("GPU007 drop tokenizer: ")


@pytest.mark.parametrize(
    ("version", "taken"), [("4.45.2", True), ("4.57.6", True), ("5.0.0", False)]
)
@pytest.mark.parametrize("trainer", ["Trainer", "Seq2SeqTrainer"])
def test_transformers_took_a_tokenizer_until_5(trainer: str, version: str, taken: bool) -> None:
    text = f"from transformers import {trainer}, TrainingArguments\n"
    text += f"{trainer}(model, args=TrainingArguments('out'), tokenizer=tok).train()\n"
    runs = runs_alone(text, transformers=version)
    assert len([f for code in CODES for f in findings(runs, code)]) == (0 if taken else 1)


def test_a_trainer_is_asked_for_what_only_newer_ones_have() -> None:
    text = TRAINER.replace("args=args", "args=args, processing_class=tok").format("")
    (found,) = findings(runs_alone(text, transformers="4.45.2"), "GPU007")
    assert found.message.startswith("install transformers>=4.46.3 or drop processing_class: ")


@pytest.mark.parametrize(
    ("trainer", "given", "version", "told"),
    [
        ("DPOTrainer", "beta=0.1", "0.13.0", "GPU007 move beta into DPOConfig: "),
        ("DPOTrainer", "max_length=512", "0.13.0", "GPU007 move max_length into DPOConfig: "),
        ("RewardTrainer", "max_length=512", "0.15.2", "GPU007 move max_length into RewardConfig: "),
        ("KTOTrainer", "tokenizer=tok", "0.17.0", "GPU007 write processing_class: "),
        ("KTOTrainer", "tokenizer=tok", "1.0.0", "GPU007 write processing_class: "),
        ("GRPOTrainer", "tokenizer=tok", "0.17.0", "GPU005 write processing_class: "),
        ("GRPOTrainer", "beta=0.1", "0.17.0", "GPU005 move beta into GRPOConfig: "),
        ("ORPOTrainer", "tokenizer=tok", "0.16.1", "GPU007 write processing_class: "),
        ("CPOTrainer", "tokenizer=tok", "0.14.0", "GPU007 write processing_class: "),
        ("PPOTrainer", "config=config", "0.15.2", "GPU007 write args: "),
        ("RLOOTrainer", "policy=model", "0.25.1", "GPU007 write model: "),
    ],
)
def test_other_trainers(trainer: str, given: str, version: str, told: str) -> None:
    text = f"from trl import {trainer}\n{trainer}({given}).train()\n"
    runs = runs_alone(text, trl=version)
    (found,) = [f"{code} {f.message}" for code in CODES for f in findings(runs, code)]
    assert found.startswith(told)


def test_a_setting_that_a_trainer_never_took_belongs_to_its_arguments() -> None:
    (found,) = of_sft("learning_rate=1e-4", trl="0.13.0")
    assert found.startswith("GPU005 move learning_rate into SFTConfig: TRL 0.13.0 has no ")
    text = TRAINER.replace("args=args", "args=args, learning_rate=1e-4").format("")
    (other,) = findings(runs_alone(text, transformers="4.57.6"), "GPU005")
    assert other.message.startswith("move learning_rate into TrainingArguments: ")


@pytest.mark.parametrize(
    "text",
    [
        "from mine import SFTTrainer\nSFTTrainer(model, packing=True).train()\n",
        "from trl.experimental.sft import SFTTrainer\nSFTTrainer(model, packing=True).train()\n",
        "from trl import SFTTrainer as Base\n\n\nclass SFTTrainer(Base):\n"
        "    def __init__(self, packing, **kwargs):\n        super().__init__(**kwargs)\n\n\n"
        "SFTTrainer(model=model, packing=True).train()\n",
        "from trl import SFTTrainer\n\n\nclass Mine(SFTTrainer):\n"
        "    def __init__(self, packing, **kwargs):\n        super().__init__(**kwargs)\n\n\n"
        "Mine(model=model, packing=True).train()\n",
        "import unsloth\nfrom trl import SFTTrainer\nSFTTrainer(model, packing=True).train()\n",
        "from trl import SFTTrainer\n\ntry:\n    t = SFTTrainer(model, processing_class=tok)\n"
        "except TypeError:\n    t = SFTTrainer(model, tokenizer=tok)\nt.train()\n",
        "from trl import SFTTrainer\nSFTTrainer(model, **given).train()\n",
    ],
    ids=["same name", "experimental", "subclass", "other name", "unsloth", "fallback", "open"],
)
def test_other_constructors_are_not_those_of_the_tables(text: str) -> None:
    runs = runs_alone(text, trl="0.17.0")
    assert [f for code in CODES for f in findings(runs, code)] == []


def test_unsloth_in_another_file_of_the_run_replaces_the_trainers(tmp_path: Path) -> None:
    files = {
        "train.py": "from model import load\n" + SFT.format("packing=True"),
        "model.py": "from unsloth import FastLanguageModel\n\n\ndef load():\n    return 1\n",
        "requirements.txt": "trl==0.17.0\n",
    }
    assert messages(tmp_path, files) == []


@pytest.mark.parametrize(
    ("flag", "version", "instruction"),
    [
        (
            "--max-model-len abc",
            "0.33.0",
            "give --max-model-len a whole number like 4096, 4k or 4K",
        ),
        ("--max-model-len 25.6K", "0.33.0", "write --max-model-len 25.6k"),
        ("--max_model_len 4kb", "0.33.0", "give --max_model_len a whole number"),
        ("--max-model-len 4k", "0.33.0", ""),
        ("--max-model-len 1M", "0.8.5.post1", ""),
        ("--max-model-len 25.6k", "0.33.0", ""),
        ("--max-model-len auto", "0.33.0", ""),
        ("--max-model-len -1", "0.33.0", ""),
        ("--max-model-len auto", "0.10.2", "give --max-model-len a whole number"),
        ("--max-model-len 4k", "0.7.3", "give --max-model-len a whole number"),
        ("--max-model-len $LENGTH", "0.33.0", ""),
        ("--max-model-len <length>", "0.33.0", ""),
        ("--max-num-batched-tokens 8x", "0.33.0", "give --max-num-batched-tokens a whole number"),
        ("--max-num-batched-tokens auto", "0.33.0", "give --max-num-batched-tokens a whole num"),
        ("--max-num-batched-tokens 8k", "0.33.0", ""),
    ],
)
def test_numbers_with_a_suffix(tmp_path: Path, flag: str, version: str, instruction: str) -> None:
    files = {"serve.sh": f"vllm serve org/m {flag}\n", "requirements.txt": f"vllm=={version}\n"}
    found = [one.message for one in findings(runs_of(tmp_path, files), "GPU008")]
    assert len(found) == bool(instruction)
    assert all(one.startswith(instruction) and "refuses to start" in one for one in found)


@pytest.mark.parametrize(
    ("version", "number"), [("0.9.2", 0), ("0.10.2", 0), ("0.20.2", 1), ("0.33.0", 0)]
)
def test_a_flag_of_the_server_that_went_and_came_back(
    tmp_path: Path, version: str, number: int
) -> None:
    files = {"serve.sh": "vllm serve org/m --disable-log-requests\n"}
    files["requirements.txt"] = f"vllm=={version}\n"
    found = [one.message for one in findings(runs_of(tmp_path, files), "GPU007")]
    assert len(found) == number
    assert all("--enable-log-requests" in one for one in found)


@pytest.mark.parametrize(
    ("flags", "instruction"),
    [
        ("--max-num-sequence 4 --nothing-alike 1", "write --max-num-seqs"),
        ("--gpu-memory-limit 0.9", "drop --gpu-memory-limit (there is --gpu-memory-utilization"),
        ("--zzzz 1", "drop --zzzz: "),
    ],
)
def test_flags_that_there_are_stand_behind_one_that_is_not_known(
    tmp_path: Path, flags: str, instruction: str
) -> None:
    files = {"serve.sh": f"vllm serve org/m {flags}\n", "requirements.txt": "vllm==0.33.0\n"}
    found = findings(runs_of(tmp_path, files), "GPU005")
    assert found[0].message.startswith(instruction), found[0].message


def test_a_flag_is_spelled_with_the_dashes_that_the_user_writes(tmp_path: Path) -> None:
    for number, flag in enumerate(("--lora_rnk", "--lora-rnk")):
        files = {"train.sh": f"swift sft --model org/m {flag} 8\n"}
        (found,) = findings(runs_of(tmp_path / str(number), files), "GPU005")
        assert found.message.startswith(f"write {flag[:-3]}rank: ")
        assert "has no parameter lora_rnk" in found.message


# --- programs that ask what is installed ------------------------------------------------

ASKING = {
    "by an if": """\
import inspect
from trl import SFTConfig, SFTTrainer
params = inspect.signature(SFTConfig.__init__).parameters
kw = {"output_dir": "o"}
if "max_seq_length" in params:
    kw["max_seq_length"] = 10
else:
    kw["max_length"] = 10
SFTTrainer(model="Qwen/Qwen2.5-0.5B", args=SFTConfig(**kw), train_dataset=d).train()
""",
    "by a filter": """\
import inspect
from trl import GRPOConfig, GRPOTrainer
kw = dict(output_dir="o", vllm_device="auto", num_generations=4, per_device_train_batch_size=4)
ok = set(inspect.signature(GRPOConfig).parameters)
kw = {k: v for k, v in kw.items() if k in ok}
GRPOTrainer(model="a/b", args=GRPOConfig(**kw), reward_funcs=r, train_dataset=d).train()
""",
    "in a function": """\
import dataclasses
from trl import SFTConfig, SFTTrainer
def build(**kw):
    names = {f.name for f in dataclasses.fields(SFTConfig)}
    if "max_seq_length" not in names and "max_seq_length" in kw:
        kw["max_length"] = kw.pop("max_seq_length")
    return SFTConfig(**kw)
args = build(output_dir="o", max_seq_length=10)
SFTTrainer(model="Qwen/Qwen2.5-0.5B", args=args, train_dataset=d).train()
""",
    "by the version": """\
import transformers
from transformers import Trainer, TrainingArguments
def chosen():
    old = int(transformers.__version__.split(".")[1]) < 41
    return {"evaluation_strategy": "no"} if old else {"eval_strategy": "no"}
Trainer(model=m, args=TrainingArguments("o", **chosen()), train_dataset=d).train()
""",
    "by elif": """\
import inspect
from trl import SFTConfig, SFTTrainer
sig = inspect.signature(SFTTrainer.__init__)
kw = dict(model="Qwen/Qwen2.5-0.5B", args=SFTConfig("o"), train_dataset=d)
if "tokenizer" in sig.parameters:
    kw["tokenizer"] = tok
elif "processing_class" in sig.parameters:
    kw["processing_class"] = tok
SFTTrainer(**kw).train()
""",
}


@pytest.mark.parametrize("how", sorted(ASKING))
def test_what_a_program_chooses_by_what_is_installed_is_left_alone(
    tmp_path: Path, how: str
) -> None:
    assert messages(tmp_path, {"train.py": ASKING[how]}) == []


def test_what_stands_in_the_call_itself_is_told_all_the_same(tmp_path: Path) -> None:
    source = ASKING["by an if"].replace("SFTConfig(**kw)", 'SFTConfig("o", max_seq_length=10)')
    (message,) = messages(tmp_path, {"train.py": source})
    assert message.startswith("GPU007 write max_length")


@pytest.mark.parametrize("indent", ["", "  "])
def test_a_new_flag_stands_below_the_others(indent: str, tmp_path: Path) -> None:
    text = f"swift sft \\\n{indent}--model Qwen/Qwen2.5-7B-Instruct \\\n{indent}--dataset a.jsonl\n"
    runs = runs_of(tmp_path, {"train.sh": text})
    (found,) = findings(runs, "GPU301")
    assert found.change is not None
    patch = unified_diff(tmp_path, [found.change])
    assert f"+{indent}--attn_impl flash_attn" in patch.splitlines()


@pytest.mark.parametrize(
    ("pin", "text", "expected"),
    [
        (
            "sglang==0.5.10",
            'import sglang as sgl\nllm = sgl.Engine(model_path="a/b", tp=2)\nllm.generate("a")\n',
            "write tp_size:",
        ),
        (
            "transformers==4.57.1",
            "from transformers import Trainer, TrainingArguments\n"
            "a = TrainingArguments(output_dir='o', per_device_batch_size=2)\n"
            "Trainer(model=m, args=a, train_dataset=d).train()\n",
            "write per_device_train_batch_size:",
        ),
    ],
)
def test_short_names_are_what_they_stand_for(
    tmp_path: Path, pin: str, text: str, expected: str
) -> None:
    runs = runs_of(tmp_path, {"s.py": text, "requirements.txt": pin})
    assert [expected in one.message for one in findings(runs, "GPU005")] == [True]


def test_many_unknown_names_are_all_told_and_soon(tmp_path: Path) -> None:
    flags = " ".join(f"--max-model-length{index} 1" for index in range(300))
    runs = runs_of(tmp_path, {"run.sh": f"vllm serve Qwen/Qwen3-8B {flags}\n"})
    told = [one.message for one in findings(runs, "GPU005")]
    assert len(told) == 300
    assert told[0].startswith("write --max-model-len:")
    assert told[-1].startswith("drop --max-model-length299:")


def test_a_flag_given_many_times_is_told_once(tmp_path: Path) -> None:
    flags = " ".join(f"--max-num-seqs {index}" for index in range(1, 9))
    runs = runs_of(tmp_path, {"run.sh": f"vllm serve Qwen/Qwen3-8B {flags}\n"})
    assert len(findings(runs, "GPU023")) == 1
