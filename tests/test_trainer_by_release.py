"""What the Trainer's audit says by the release at hand, and of completions that vLLM samples."""

from __future__ import annotations

from pathlib import Path

import pytest
from audit_cases import ADVISED, NA, OFF, ON, QWEN, UNKNOWN, Case
from audit_cases_trainer import constructor
from test_trainer_audit import judged

from flake8_gpu_training.checks.base import Status
from report_builder.scoring import ScoredItem

_GRPO = """\
from trl import GRPOConfig, GRPOTrainer

args = GRPOConfig(output_dir="out", num_generations=8{more})
GRPOTrainer(model="{model}", args=args, reward_funcs=[len], train_dataset=data).train()
"""
_LOADS = """\
from transformers import AutoConfig, AutoModelForSequenceClassification, Trainer, TrainingArguments

config = AutoConfig.from_pretrained("klue/bert-base"{more})
{then}
model = AutoModelForSequenceClassification.from_pretrained("klue/bert-base", config=config)
Trainer(model=model, args=TrainingArguments(output_dir="out")).train()
"""
_OLDEST = {"requirements.txt": "transformers==4.25.1\ntorch==1.13.0\n"}
_COMMAND = f"trl sft --model_name_or_path {QWEN} --dataset_name trl-lib/Capybara --output_dir o "


def item_of(root: Path, name: str, files: dict[str, str]) -> ScoredItem:
    return judged(root, Case(name, ON, "python", files))[0]


@pytest.mark.parametrize(
    ("item", "word"),
    [
        *(
            (f"{kind}-kv-cache", "pages a KV cache")
            for kind in ("static", "offloaded", "quantized")
        ),
        ("speculative-decoding", "a setting of its engine"),
        ("prompt-lookup", "a setting of its engine"),
        ("compiled-forward", "compiles the forward pass itself"),
        ("prefill-chunking", "chunks the prefill itself"),
    ],
)
def test_completions_that_vllm_samples_are_not_called_none(
    item: str, word: str, tmp_path: Path
) -> None:
    engine = _GRPO.format(model=QWEN, more=', use_vllm=True, vllm_mode="colocate"')
    found = item_of(tmp_path / "a", item, {"train.py": engine})
    assert found.status is NA
    assert found.current.en.startswith("vLLM generates the completions")
    assert word in found.current.en
    own = _GRPO.format(model=QWEN, more="")
    never = item == "compiled-forward"
    assert item_of(tmp_path / "b", item, {"train.py": own}).status is (NA if never else OFF)
    plain = item_of(tmp_path / "c", item, dict(constructor({"bf16": True})))
    assert (plain.status, plain.current.en) == (NA, "the run generates nothing")


def test_trl_compiles_no_generation_and_pages_the_cache_of_batches(tmp_path: Path) -> None:
    static = ', generation_kwargs={"cache_implementation": "static"}'
    files = {"train.py": _GRPO.format(model=QWEN, more=static)}
    found = item_of(tmp_path / "a", "compiled-forward", files)
    assert (found.status, "disable_compile=True" in found.current.en) == (NA, True)
    assert item_of(tmp_path / "b", "static-kv-cache", files).status is ON
    old = {"train.py": _GRPO.format(model=QWEN, more=""), "requirements.txt": "trl==0.18.2\n"}
    assert item_of(tmp_path / "c", "compiled-forward", old).status is OFF
    for value, item, status in (
        (True, "static-kv-cache", NA),
        (True, "compiled-forward", NA),
        (False, "static-kv-cache", OFF),
    ):
        more = f", use_transformers_continuous_batching={value}"
        batched = {"train.py": _GRPO.format(model=QWEN, more=more)}
        assert item_of(tmp_path / f"{item}{value}", item, batched).status is status


@pytest.mark.parametrize(
    ("item", "status"),
    [
        ("torch-compile", NA),
        ("fused-adamw", NA),
        ("adamw-8bit", OFF),
        ("save-only-model", NA),
        ("gradient-clipping", ON),
    ],
)
def test_what_an_old_release_lacks_is_not_advised(
    item: str, status: Status, tmp_path: Path
) -> None:
    files = dict(constructor({"fp16": True}, files=_OLDEST))
    assert item_of(tmp_path, item, files).status is status


def test_the_same_is_advised_where_the_release_has_it(tmp_path: Path) -> None:
    newer = {"requirements.txt": "transformers==4.46.1\ntorch==2.4.0\n"}
    files = dict(constructor({"bf16": True}, files=newer))
    assert item_of(tmp_path, "fused-adamw", files).status is ADVISED


@pytest.mark.parametrize("pin", ["4.25.1", "4.46.1", "5.24.0"])
def test_the_releases_of_a_default_are_around_the_pinned_one(pin: str, tmp_path: Path) -> None:
    files = dict(constructor({}, files={"requirements.txt": f"transformers=={pin}\n"}))
    for item in ("gradient-clipping", "pin-memory", "remove-unused-columns"):
        found = item_of(tmp_path / item, item, files)
        text = found.evidence[0].text
        first, last = text.partition("transformers ")[2].replace(",", "").split(" ")[:3:2]
        kept = [tuple(map(int, one.split("."))) for one in (first, pin, last)]
        assert kept == sorted(kept), text


@pytest.mark.parametrize(
    ("more", "then", "status"),
    [
        ("", "config.num_labels = 6", ON),
        (', attn_implementation="eager"', "", UNKNOWN),
        ("", 'config._attn_implementation = "eager"', OFF),
    ],
)
def test_a_configuration_that_says_nothing_of_the_attention_leaves_the_default(
    more: str, then: str, status: Status, tmp_path: Path
) -> None:
    files = {"train.py": _LOADS.format(more=more, then=then)}
    assert item_of(tmp_path, "sdpa", files).status is status


@pytest.mark.parametrize(
    ("config", "item", "status"),
    [
        ("zero2", "zero2", ON),
        ("zero3", "zero3", ON),
        ("fsdp2", "fsdp2", ON),
        ("multi_gpu", "ddp-settings", ON),
        ("single_gpu", "zero2", NA),
        ("lost.yaml", "zero2", UNKNOWN),
    ],
)
def test_files_of_accelerate_that_trl_knows_by_name(
    config: str, item: str, status: Status, tmp_path: Path
) -> None:
    files = {"run.sh": f"{_COMMAND}--accelerate_config {config}\n"}
    assert item_of(tmp_path, item, files).status is status


_BINDS = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
from unsloth import FastLanguageModel

model, tokenizer = FastLanguageModel.from_pretrained("unsloth/mistral-7b", load_in_4bit=True)
model = FastLanguageModel.get_peft_model(model, r=16)
{then}
Trainer(model=model, args=TrainingArguments(output_dir="out")).train()
model, tokenizer = FastLanguageModel.from_pretrained("unsloth/mistral-7b", load_in_8bit=True)
model = FastLanguageModel.get_peft_model(model, r=16)
"""


def test_the_model_that_is_trained_is_the_one_that_was_bound_last(tmp_path: Path) -> None:
    again = 'model = AutoModelForCausalLM.from_pretrained("facebook/opt-350m")'
    files = {"train.py": _BINDS.format(then=again)}
    assert item_of(tmp_path / "a", "lora", files).status is OFF
    assert item_of(tmp_path / "b", "qlora-4bit", files).status is NA
    files = {"train.py": _BINDS.format(then="")}
    assert item_of(tmp_path / "c", "lora", files).status is ON
    assert item_of(tmp_path / "d", "qlora-4bit", files).status is ON


_FIRE = """\
import fire
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments


def train(name: str = "Qwen/Qwen2.5-0.5B", rate: float = 1e-4):
    model = AutoModelForCausalLM.from_pretrained(name)
    args = TrainingArguments(output_dir="out", learning_rate=rate{more})
    Trainer(model=model, args=args).train()


if __name__ == "__main__":
    fire.Fire(train)
"""


def test_what_a_function_that_fire_calls_leaves_out_is_the_default(tmp_path: Path) -> None:
    files = {"train.py": _FIRE.format(more=""), "run.sh": "python train.py --rate 2e-4\n"}
    assert item_of(tmp_path / "a", "gradient-clipping", files).status is ON
    files["train.py"] = "from elsewhere import more\n" + _FIRE.format(more=", **more()")
    assert item_of(tmp_path / "b", "gradient-clipping", files).status is UNKNOWN
