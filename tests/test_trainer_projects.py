"""What public projects of Transformers' Trainer and TRL do, and what is told of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from checks_support import findings, judged, runs_of, status

from flake8_gpu_training.checks.base import Status
from flake8_gpu_training.memory import estimate
from flake8_gpu_training.runs.model import Run
from flake8_gpu_training.runs.names import PRACTICE_NAMES
from report_builder.picture import picture
from report_builder.report import Options, build
from report_builder.run_words import RunWords
from report_builder.scenarios import scenarios

GRPO = """\
from transformers import AutoModelForCausalLM
from trl import GRPOConfig, GRPOTrainer


def main():
    model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-3B-Instruct")
    {enable}
    args = GRPOConfig(output_dir="out", per_device_train_batch_size=8{more})
    GRPOTrainer(model=model, reward_funcs=len, args=args, train_dataset=[]).train()


if __name__ == "__main__":
    main()
"""
OLD, NEW = "transformers==4.48.3\n", "trl==1.16.0\n"
SHARED = GRPO.format(enable="pass", more=", num_generations=3") + "\n\ndef extract(text): ...\n"


def _run(root: Path, requirements: str, more: str = "", enable: str = "pass") -> Run:
    files = {
        "train.py": GRPO.format(more=more, enable=enable),
        "run.sh": "CUDA_VISIBLE_DEVICES=0 python train.py\n",
        "requirements.txt": requirements,
    }
    (run,) = runs_of(root, files)
    return run


def test_main_of_an_imported_script_is_not_that_of_the_script_which_runs(tmp_path: Path) -> None:
    files = {
        "base.py": SHARED,
        "train.py": "from base import extract\n"
        + GRPO.format(enable="extract('')", more=", num_generations=5"),
        "run.sh": "python train.py\n",
        "requirements.txt": NEW,
    }
    (run,) = runs_of(tmp_path, files)
    assert [f.location.path for f in findings((run,), "GPU024")] == ["train.py"]


def test_main_of_an_imported_script_that_is_called_is_reached(tmp_path: Path) -> None:
    files = {
        "base.py": SHARED,
        "train.py": "import base\n\nbase.main()\n",
        "run.sh": "python train.py\n",
        "requirements.txt": NEW,
    }
    (run,) = runs_of(tmp_path, files)
    assert [f.location.path for f in findings((run,), "GPU024")] == ["base.py"]


@pytest.mark.parametrize(
    ("requirements", "more", "length"),
    [
        (OLD, "", 768),
        (OLD, ", max_prompt_length=1536, max_completion_length=512", 2048),
        (OLD, ", max_prompt_length=None", None),
        ("trl==0.24.0\n", ", max_completion_length=1024", 1536),
        (NEW, "", None),
        (NEW, ", max_completion_length=1024", None),
    ],
)
def test_a_prompt_and_its_completion_have_limits_of_their_own(
    tmp_path: Path, requirements: str, more: str, length: int | None
) -> None:
    run = _run(tmp_path, requirements, more)
    assert run.value("max_length") == length
    told = RunWords("en").no_memory(run)
    assert ("prompts have no limit" in told) == (length is None)


def test_only_completions_have_logits(tmp_path: Path) -> None:
    more = ", max_prompt_length=1536, max_completion_length={}"
    short = estimate(_run(tmp_path / "short", OLD, more.format(512)))
    long = estimate(_run(tmp_path / "long", OLD, more.format(1024)))
    assert short is not None
    assert long is not None
    assert long.parts["logits"] == pytest.approx(2 * short.parts["logits"])
    assert short.sample_length == short.max_length == 2048


def test_the_release_of_trl_follows_from_that_of_transformers(tmp_path: Path) -> None:
    assert _run(tmp_path / "old", OLD).value("gradient_checkpointing") is False
    assert _run(tmp_path / "new", NEW).value("gradient_checkpointing") is True


def test_a_call_that_recomputes_activations_is_better_evidence_than_a_default(
    tmp_path: Path,
) -> None:
    run = _run(tmp_path, NEW, enable="model.gradient_checkpointing_enable()")
    setting = run.practice("gradient_checkpointing")
    assert setting.value is True
    assert setting.location is not None


@pytest.mark.parametrize(
    ("requirements", "written"),
    [(OLD, ""), ("trl==0.15.2\n", "use_vllm=True"), (NEW, 'vllm_mode="colocate"')],
)
def test_vllm_is_advised_as_the_release_takes_it(
    tmp_path: Path, requirements: str, written: str
) -> None:
    found = findings((_run(tmp_path, requirements),), "GPU901")
    texts = [f.change.text for f in found if f.change is not None]
    assert bool(texts) == bool(written)
    assert all(written in text for text in texts)


def test_a_program_on_another_machine_is_named_by_its_place_in_the_project(tmp_path: Path) -> None:
    files = {
        "src/train.py": GRPO.format(enable="pass", more=""),
        "run.sh": "/home/me/env/bin/python /home/me/project/src/train.py\n",
    }
    (run,) = runs_of(tmp_path, files)
    assert RunWords("en").mode_of(run) == "`python src/train.py`"


ENCODER = """\
from transformers import (
    AutoModelForSequenceClassification, AutoTokenizer, DataCollatorWithPadding, Trainer,
    TrainingArguments,
)

tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
model = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased")
data = data.map(lambda rows: tokenizer(rows["text"], truncation=True{padding}))
args = TrainingArguments(output_dir="out", save_strategy="epoch", logging_strategy="{strategy}")
Trainer(model=model, args=args, train_dataset=data{collator}).train()
"""
COLLATED = ", data_collator=DataCollatorWithPadding(tokenizer)"


@pytest.mark.parametrize(
    ("padding", "collator", "advised"),
    [
        ("", COLLATED, False),
        (", padding=True", "", False),
        (', padding="max_length"', COLLATED, True),
        (", pad_to_max_length=True", "", True),
        ("", "", True),
    ],
)
def test_batches_of_varying_length_are_not_compiled(
    tmp_path: Path, padding: str, collator: str, advised: bool
) -> None:
    code = ENCODER.format(padding=padding, collator=collator, strategy="epoch")
    runs = runs_of(tmp_path, {"train.py": code, "run.sh": "python train.py\n"})
    assert bool(findings(runs, "GPU302")) is advised


@pytest.mark.parametrize(("strategy", "shown"), [("epoch", "each epoch"), ("no", "never")])
def test_what_is_done_by_no_number_of_steps_is_told(
    tmp_path: Path, strategy: str, shown: str
) -> None:
    code = ENCODER.format(padding="", collator="", strategy=strategy)
    (run,) = runs_of(tmp_path, {"train.py": code, "run.sh": "python train.py\n"})
    rows = {row.name: row.value for row in picture(run, "en")}
    names = (PRACTICE_NAMES["logging_steps"].en, PRACTICE_NAMES["save_steps"].en)
    logged, saved = (rows[name] for name in names)
    assert (logged, saved) == (shown, "each epoch")


@pytest.mark.parametrize(("padding", "compiles"), [("", False), (', padding="max_length"', True)])
def test_the_template_compiles_only_what_is_padded_to_one_length(
    tmp_path: Path, padding: str, compiles: bool
) -> None:
    code = ENCODER.format(padding=padding, collator=COLLATED, strategy="no")
    (run,) = runs_of(tmp_path, {"train.py": code, "run.sh": "python train.py\n"})
    (template,) = scenarios(run, "hf_trainer")
    assert ("torch_compile=True" in template.files[0].text.en) is compiles


@pytest.mark.parametrize(
    ("pins", "model", "said"),
    [
        ("transformers==4.36.0\ntorch==2.0.1\n", "bert-base-uncased", "release at hand has eager"),
        ("transformers==4.57.6\ntorch==2.8.0\n", "microsoft/deberta-v3-base", "eager attention"),
    ],
)
def test_an_encoder_that_has_no_sdpa_yet_is_told_why(
    tmp_path: Path, pins: str, model: str, said: str
) -> None:
    code = ENCODER.format(padding="", collator="", strategy="no")
    files = {"train.py": code.replace("bert-base-uncased", model), "requirements.txt": pins}
    (run,) = runs_of(tmp_path, {**files, "run.sh": "python train.py\n"})
    assert said in judged(run, "GPU301").current.en


@pytest.mark.parametrize(
    ("pins", "written"),
    [("transformers==4.36.0\n", "warmup_ratio=0.05"), ("", "warmup_steps=100")],
)
def test_a_warm_up_is_a_share_of_the_steps_where_the_release_takes_one(
    tmp_path: Path, pins: str, written: str
) -> None:
    code = ENCODER.format(padding="", collator="", strategy="no")
    files = {"train.py": code, "requirements.txt": pins, "run.sh": "python train.py\n"}
    (run,) = runs_of(tmp_path, files)
    (found,) = findings((run,), "GPU601")
    assert found.message.startswith(f"set {written}: ")
    (template,) = scenarios(run, "hf_trainer")
    assert f"    {written},\n" in template.files[0].text.en


def test_an_encoder_learns_no_preference(tmp_path: Path) -> None:
    code = ENCODER.format(padding="", collator="", strategy="no")
    (run,) = runs_of(tmp_path, {"train.py": code, "run.sh": "python train.py\n"})
    assert status(run, "GPU607") is Status.NOT_APPLICABLE


def test_adapters_are_told_of_the_base_weights_not_of_all_states(tmp_path: Path) -> None:
    more = ", report_to='none'"
    lora = "import peft; model = peft.get_peft_model(model, peft.LoraConfig())"
    run = _run(tmp_path, OLD, more, lora)
    assert judged(run, "GPU204").current.en.startswith("the base weights take about 5.7 GiB")
    assert judged(run, "GPU403").current.en == "the run uses one GPU"


def test_an_encoder_is_named_so_and_not_estimated(tmp_path: Path) -> None:
    code = ENCODER.format(padding="", collator="", strategy="no")
    (run,) = runs_of(tmp_path, {"train.py": code, "run.sh": "python train.py\n"})
    assert RunWords("zh").model_kind(run) == "编码器（BERT 类）"
    assert "language models that generate" in RunWords("en").no_memory(run)


def test_runs_of_one_script_share_what_is_said_of_it(tmp_path: Path) -> None:
    code = ENCODER.format(padding="", collator="", strategy="no")
    for name, text in (
        ("train.py", code),
        ("a.sh", "python train.py\n"),
        ("b.sh", "python train.py\n"),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
    report = build(tmp_path, "x", Options(), lambda step, done, total: None)
    first, second = report.codes.values()
    assert first == second
    assert first["GPU201"] == 1


LLAVA = """\
from dataclasses import dataclass, field
from typing import Optional
import torch
import transformers
from transformers import CLIPVisionModel, LlamaForCausalLM


@dataclass
class ModelArguments:
    model_name_or_path: Optional[str] = field(default="facebook/opt-125m")
    input_model: Optional[str] = field(default=None)
    vision_tower: Optional[str] = field(default=None)


@dataclass
class TrainingArguments(transformers.TrainingArguments):
    model_max_length: int = field(default=512)


class LlavaLlamaForCausalLM(LlamaForCausalLM):
    pass


class Tower(torch.nn.Module):
    def __init__(self, name):
        super().__init__()
        self.vision_tower = CLIPVisionModel.from_pretrained(name, attn_implementation="eager")
        self.vision_tower.requires_grad_(False)


def tokenize(strings, tokenizer):
    return tokenizer(strings, truncation=True, max_length={limit})


def train(attn_implementation=None):
    parser = transformers.HfArgumentParser((ModelArguments, TrainingArguments))
    model_args, training_args = parser.parse_args_into_dataclasses()
    model = LlavaLlamaForCausalLM.from_pretrained(
        model_args.{name}, attn_implementation=attn_implementation
    )
    model.tower = Tower(model_args.vision_tower)
    tokenizer = transformers.AutoTokenizer.from_pretrained(
        model_args.{name}, model_max_length=training_args.model_max_length
    )
    data = [tokenize(text, tokenizer) for text in open("data.txt")]
    transformers.Trainer(model=model, args=training_args, train_dataset=data).train()
"""
STARTED = """\
from train import train

if __name__ == "__main__":
    train(attn_implementation="flash_attention_2")
"""


def _llava(
    root: Path, flags: str, limit: str = "tokenizer.model_max_length", name: str = ""
) -> Run:
    code = LLAVA.replace("{limit}", limit).replace("{name}", name or "model_name_or_path")
    flags += " --model_max_length 2048 --output_dir out"
    files = {
        "train.py": code,
        "train_mem.py": STARTED,
        "run.sh": f"deepspeed train_mem.py {flags}\n",
    }
    (run,) = runs_of(root, files)
    return run


def test_a_language_model_behind_a_vision_tower(tmp_path: Path) -> None:
    flags = "--model_name_or_path lmsys/vicuna-13b-v1.5"
    seeing = _llava(tmp_path / "seeing", f"{flags} --vision_tower openai/clip-vit-large-patch14")
    assert seeing.model.kind == "MLLM"
    assert seeing.value("attention") == "flash_attention_2"
    assert seeing.value("tuning") == "full"
    assert _llava(tmp_path / "text", flags).model.kind == "LLM"


@pytest.mark.parametrize(
    ("limit", "length"),
    [("tokenizer.model_max_length", 2048), ("1024", 1024), ("longest", None)],
)
def test_samples_are_cut_to_what_the_tokenizer_is_loaded_with(
    tmp_path: Path, limit: str, length: int | None
) -> None:
    run = _llava(tmp_path, "--model_name_or_path lmsys/vicuna-13b-v1.5", limit)
    assert run.value("max_length") == length


def test_what_is_loaded_is_the_model_where_only_a_default_names_another(tmp_path: Path) -> None:
    flags = "--input_model meta-llama/Llama-3.2-3B-Instruct"
    run = _llava(tmp_path / "other", flags, name="input_model")
    assert run.model.name == "meta-llama/Llama-3.2-3B-Instruct"
    assert _llava(tmp_path / "own", flags).model.name == "facebook/opt-125m"


PLAIN = """\
import argparse
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

parser = argparse.ArgumentParser()
parser.add_argument("--gradient_checkpointing", action="store_true")
parser.add_argument("--accumulation_steps", type=int, default=4)
args = parser.parse_args()


class Net(nn.Module):
    def forward(self, x):
        for layer in self.layers:
            if {asked}:
                x = checkpoint(layer, x, use_reentrant=False)
            else:
                x = layer(x)
        return x


def update(model, optimizer, batches):
    total = torch.zeros((), device="cuda")
    for micro in range({count}):
        loss = model(batches[micro].cuda())
        loss.backward()
        total += loss{read}
    optimizer.step()
    return total


torch.distributed.init_process_group("nccl")
model = DistributedDataParallel(Net().cuda())
optimizer = torch.optim.AdamW(model.parameters(), fused=True)
while True:
    update(model, optimizer, torch.randn(4, 8))
"""


def _plain(root: Path, flags: str = "", **parts: str) -> tuple[Run, ...]:
    given = {"asked": "args.gradient_checkpointing", "count": "4", "read": ".detach()", **parts}
    command = f"torchrun --nproc_per_node 8 train.py {flags}\n"
    return runs_of(root, {"train.py": PLAIN.format(**given), "run.sh": command})


@pytest.mark.parametrize(
    ("flags", "asked", "expected"),
    [
        ("", "args.gradient_checkpointing", False),
        ("--gradient_checkpointing", "args.gradient_checkpointing", True),
        ("", "self.training", True),
    ],
)
def test_activations_are_kept_where_the_switch_of_a_program_is_off(
    tmp_path: Path, flags: str, asked: str, expected: bool
) -> None:
    if "args" not in asked:  # without a switch the call itself is the evidence
        switch = 'parser.add_argument("--gradient_checkpointing", action="store_true")\n'
        code = PLAIN.replace(switch, "")
        code = code.format(asked=asked, count="4", read="")
        runs = runs_of(tmp_path, {"train.py": code, "run.sh": "torchrun train.py\n"})
    else:
        runs = _plain(tmp_path, flags, asked=asked)
    assert (status(runs[0], "GPU203") is Status.ENABLED) is expected


@pytest.mark.parametrize(
    ("count", "read", "found"),
    [
        ("args.accumulation_steps", ".item()", True),
        ("args.accumulation_steps", ".detach()", False),
        ("args.epochs", ".item()", False),
    ],
)
def test_each_micro_batch_of_an_update_is_a_step(
    tmp_path: Path, count: str, read: str, found: bool
) -> None:
    assert bool(findings(_plain(tmp_path, count=count, read=read), "GPU350")) is found


@pytest.mark.parametrize(
    ("pin", "expected"),
    [("deepspeed==0.12.6", Status.NOT_APPLICABLE), ("deepspeed==0.14.4", Status.RECOMMENDED)],
)
def test_old_releases_of_deepspeed_overlap_nothing_at_stage_1(
    tmp_path: Path, pin: str, expected: Status
) -> None:
    code = ENCODER.format(padding="", collator="", strategy="no").replace(
        'output_dir="out"', 'output_dir="out", deepspeed="ds.json"'
    )
    files = {
        "train.py": code,
        "ds.json": '{"zero_optimization": {"stage": 1, "overlap_comm": false}}',
        "run.sh": "deepspeed --num_gpus 8 train.py\n",
        "requirements.txt": f"{pin}\n",
    }
    (run,) = runs_of(tmp_path, files)
    assert status(run, "GPU402") is expected


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("torchrun --nproc_per_node 8 train.py", "`torchrun train.py`"),
        ("accelerate launch --num_processes 8 train.py", "`accelerate launch train.py`"),
        ("deepspeed --num_gpus 8 train.py", "`deepspeed train.py`"),
        ("python train.py", "`python train.py`"),
    ],
)
def test_a_launcher_is_shown_with_its_program(tmp_path: Path, command: str, shown: str) -> None:
    code = PLAIN.format(asked="self.training", count="4", read="")
    (run,) = runs_of(tmp_path, {"train.py": code, "run.sh": f"{command}\n"})
    assert RunWords("en").mode_of(run) == shown


PARSED = """\
from trl import {name}, {name_of_trainer}, ModelConfig, TrlParser

dataclass_types = ({name}, ModelConfig)
parser = TrlParser({given})
args, model_args = parser.parse_args_and_config()
trainer = {name_of_trainer}(model=model_args.model_name_or_path, args=args)
trainer.train()
"""


@pytest.mark.parametrize("given", ["dataclass_types", "(SFTConfig, ModelConfig)"])
@pytest.mark.parametrize(
    ("flags", "method"), [("", "none"), ("--load_in_4bit", "bnb"), ("--load_in_8bit", "bnb")]
)
def test_flags_of_trl_tell_the_method_and_the_quantization(
    tmp_path: Path, given: str, flags: str, method: str
) -> None:
    code = PARSED.format(name="SFTConfig", name_of_trainer="SFTTrainer", given=given)
    command = f"accelerate launch train.py --model_name_or_path Qwen/Qwen3-8B {flags}\n"
    (run,) = runs_of(tmp_path, {"train.py": code, "run.sh": command})
    assert run.value("algorithm") == "sft"
    assert run.value("quantization_method") == method


def test_a_class_of_trl_beyond_its_usual_ones_extends_the_trainers(tmp_path: Path) -> None:
    code = PARSED.format(
        name="DistillationConfig", name_of_trainer="DistillationTrainer", given="dataclass_types"
    )
    command = "accelerate launch train.py --model_name_or_path Qwen/Qwen3-8B\n"
    (run,) = runs_of(tmp_path, {"train.py": code, "run.sh": command, "requirements.txt": NEW})
    assert run.value("algorithm") == "distillation"
    assert run.value("precision") == "bf16"


READ = """\
from trl import SFTConfig, SFTTrainer, ModelConfig, TrlParser

args, model_args = TrlParser((SFTConfig, ModelConfig)).parse_args_and_config()
SFTTrainer(model=model_args.model_name_or_path, args=args).train()
"""


@pytest.mark.parametrize("command", ["accelerate launch train.py", "trl sft"])
@pytest.mark.parametrize(("release", "refused"), [("0.15.2", False), ("0.24.0", True)])
def test_old_releases_of_trl_drop_keys_that_they_do_not_know(
    tmp_path: Path, command: str, release: str, refused: bool
) -> None:
    files = {
        "train.py": READ,
        "config.yaml": "model_name_or_path: Qwen/Qwen3-8B\noutput_dir: out\nsystem_promt: x\n",
        "run.sh": f"{command} --config config.yaml\n",
        "requirements.txt": f"trl=={release}\n",
    }
    found = findings(runs_of(tmp_path, files)[:1], "GPU005")
    assert bool(found) is refused


def test_a_script_that_trains_by_shared_code_is_named_itself(tmp_path: Path) -> None:
    script = (
        "import torch\nfrom misc import Scaler\n\nif __name__ == '__main__':\n"
        "    scaler = Scaler()  # calls backward()\n    scaler(model(data))\n"
    )
    files = {
        "misc.py": "import torch\n\n\nclass Scaler:\n    def __call__(self, loss):\n"
        "        loss.backward()\n",
        "pretrain.py": script,
        "finetune.py": script,
    }
    found = {run.id for run in runs_of(tmp_path, files)}
    assert found == {"pretrain.py:1", "finetune.py:1"}
