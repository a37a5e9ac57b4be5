"""Values that come by a road that is not read: nothing is asserted in their place."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable, Optional

import pytest

from flake8_gpu_training.facts import known
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.find import find_runs
from flake8_gpu_training.runs.model import Run

MakeRun = Callable[..., Run]


@pytest.fixture
def run_of(tmp_path: Path) -> MakeRun:
    """The one run of a project made of ``files``, or of its launch command."""

    def make(files: dict[str, str], launch: Optional[str] = None) -> Run:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return find_runs(Project.open(tmp_path), launch)[0]

    return make


def _value(run: Run, name: str) -> Any:
    value = run.practice(name).value
    return value if known(value) else "unknown"


# --- a loop of the program's own ----------------------------------------------------------

LOOP = """\
import argparse
import json

import deepspeed
import torch
from contextlib import nullcontext
from functools import partial
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torchvision import models
from common.tools import load, Config, config


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--resume", default="last.pt")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--amp", action="store_true")
    args = parser.parse_args()
    {ARGUMENTS}
    model = {WRAPPED}
    loader = DataLoader(load("data"), batch_size=args.batch_size)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    {CONTEXT}
    for images, labels in loader:
        {STEP}
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


main()
"""
_LAUNCH = "torchrun --nproc_per_node 4 train.py --batch-size 16"


def _loop(arguments: str = "pass", **parts: str) -> dict[str, str]:
    text = LOOP.replace("{ARGUMENTS}", arguments)
    text = text.replace(
        "{WRAPPED}", parts.get("wrapped", "DistributedDataParallel(models.resnet50().cuda())")
    )
    text = text.replace("{CONTEXT}", parts.get("context", "pass"))
    return {"train.py": text.replace("{STEP}", parts.get("step", "loss = model(images).mean()"))}


@pytest.mark.parametrize(
    ("statement", "size"),
    [
        ("pass", 16),
        ("print(args)", 16),
        ("args = torch.load(args.resume)['args']", "unknown"),
        ("args = Config(args)", "unknown"),
        ("args = Config(args).get()", "unknown"),
        ("args, rest = load(args)", "unknown"),
        ("args = argparse.Namespace(**json.load(open('last.json')))", "unknown"),
        ("args.seed, args.name = load(args)", 16),
    ],
)
def test_arguments_that_are_made_anew_have_any_value(
    run_of: MakeRun, statement: str, size: Any
) -> None:
    assert _value(run_of(_loop(statement), _LAUNCH), "micro_batch_size") == size


@pytest.mark.parametrize(
    ("wrapped", "precision"),
    [
        ("DistributedDataParallel(models.resnet50().cuda())", "fp32"),
        ("FullyShardedDataParallel(models.resnet50().cuda(), use_orig_params=True)", "fp32"),
        ("FullyShardedDataParallel(models.resnet50().cuda(), **config)", "unknown"),
        ("deepspeed.initialize(model=models.resnet50().cuda(), config=config)[0]", "unknown"),
        ("deepspeed.initialize(args=args, model=models.resnet50().cuda())[0]", "unknown"),
    ],
)
def test_engines_with_an_unread_configuration_have_any_precision(
    run_of: MakeRun, wrapped: str, precision: str
) -> None:
    text = _loop(wrapped=wrapped)["train.py"]
    if "deepspeed.init" not in wrapped:
        text = text.replace("import deepspeed\n", "")
    assert _value(run_of({"train.py": text}, _LAUNCH), "precision") == precision


@pytest.mark.parametrize(
    ("flags", "step", "precision"),
    [
        ("", "torch.cuda.amp.autocast(args.amp)", "fp32"),
        ("--amp", "torch.cuda.amp.autocast(args.amp)", "fp16"),
        ("--amp", "torch.autocast('cuda', torch.bfloat16, args.amp)", "bf16"),
        ("", "torch.autocast('cuda', torch.bfloat16, args.amp)", "fp32"),
        ("", "torch.autocast('cuda', torch.bfloat16, load('amp'))", "unknown"),
    ],
)
def test_autocast_is_switched_by_place_too(
    run_of: MakeRun, flags: str, step: str, precision: str
) -> None:
    files = _loop(step=f"with {step}:\n            loss = model(images).mean()")
    assert _value(run_of(files, f"{_LAUNCH} {flags}"), "precision") == precision


@pytest.mark.parametrize(
    ("switch", "precision"),
    [
        ("not torch.cuda.is_available()", "bf16"),
        ("args.device == 'cpu'", "bf16"),
        ("load('plain')", "unknown"),
    ],
)
def test_a_context_by_an_unread_switch_is_not_autocast_for_certain(
    run_of: MakeRun, switch: str, precision: str
) -> None:
    files = _loop(
        context=f"context = nullcontext() if {switch} else torch.autocast('cuda', torch.bfloat16)",
        step="with context:\n            loss = model(images).mean()",
    )
    assert _value(run_of(files, _LAUNCH), "precision") == precision


def test_gradcache_takes_a_batch_in_chunks(run_of: MakeRun) -> None:
    step = "GradCache([model], chunk_sizes=4)(images)\n        loss = model(images).mean()"
    text = "from grad_cache import GradCache\n" + _loop(step=step)["train.py"]
    assert _value(run_of({"train.py": text}, _LAUNCH), "micro_batch_size") == "unknown"


# --- launchers ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        ("torchrun --nproc_per_node ${GPUS:-4} train.py", 4),
        ("source ~/.bashrc\ntorchrun --nproc_per_node ${GPUS:-4} train.py", 4),
        ("source venv/bin/activate\ntorchrun --nproc_per_node ${GPUS:-4} train.py", 4),
        ("source cluster.sh\ntorchrun --nproc_per_node ${GPUS:-4} train.py", None),
        ("export $(cat .env | xargs)\ntorchrun --nproc_per_node ${GPUS:-4} train.py", None),
        ('eval "$(python options.py)"\ntorchrun --nproc_per_node ${GPUS:-4} train.py', None),
        ("GPUS=2\nsource cluster.sh\ntorchrun --nproc_per_node ${GPUS:-4} train.py", 2),
        ("torchrun $FLAGS train.py", None),
        ("torchrun $FLAGS --nproc_per_node 4 --nnodes 1 train.py", 4),
    ],
)
def test_what_an_unread_file_may_set_is_not_the_default(
    run_of: MakeRun, lines: str, count: Optional[int]
) -> None:
    run = run_of({**_loop(), "run.sh": f"{lines}\n"}, "bash run.sh")
    assert run.launcher.world_size == count


# --- updates and what the optimizer is given ----------------------------------------------


@pytest.mark.parametrize(
    ("guard", "steps"),
    [
        ("if torch.isfinite(loss):", 1),
        ("if load('scaler') is not None:", 1),
        ("if is_update:", "unknown"),
        ("if len(losses) == 4:", "unknown"),
        ("if counter.ready():", "unknown"),
    ],
)
def test_an_update_that_waits_for_a_count_is_no_step_of_its_own(
    run_of: MakeRun, guard: str, steps: Any
) -> None:
    text = _loop()["train.py"].replace(
        "        optimizer.step()\n", f"        {guard}\n            optimizer.step()\n"
    )
    text = text.replace("import deepspeed\n", "")
    assert _value(run_of({"train.py": text}, _LAUNCH), "gradient_accumulation_steps") == steps


@pytest.mark.parametrize(
    ("parameters", "tuning"),
    [
        ("model.parameters()", "full"),
        ("model.module.parameters()", "full"),
        ("filter(lambda p: p.requires_grad, model.parameters())", "full"),
        ("[p for n, p in model.named_parameters() if p.requires_grad]", "full"),
        ("[{'params': model.stem.parameters()}, {'params': model.head.parameters()}]", "full"),
        ("model.head.parameters()", "unknown"),
        ("model.module.layer4.parameters()", "unknown"),
        ("[p for n, p in model.named_parameters() if 'head' in n]", "unknown"),
    ],
)
def test_an_optimizer_of_a_part_does_not_train_the_whole(
    run_of: MakeRun, parameters: str, tuning: str
) -> None:
    text = _loop()["train.py"].replace("SGD(model.parameters()", f"SGD({parameters}")
    assert _value(run_of({"train.py": text}, _LAUNCH), "tuning") == tuning


# --- Transformers --------------------------------------------------------------------------

TRAINER = """\
import json
import torch
import transformers
from dataclasses import dataclass, field
from peft import LoraConfig, PrefixTuningConfig, get_peft_model
from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, TrainingArguments
from transformers.models.llama import modeling_llama
from common.tools import load, override, replace_llama_attn


@dataclass
class Model:
    use_lora: bool = field(default=False)


def main():
    parser = HfArgumentParser((Model, TrainingArguments))
    model_args, training_args = parser.parse_args_into_dataclasses()
    {ARGUMENTS}
    model = AutoModelForCausalLM.from_pretrained("meta-llama/Llama-2-7b-hf")
    {MODEL}
    Trainer(model=model, args=training_args).train()


main()
"""
_FLAGS = "torchrun --nproc_per_node 4 train.py --output_dir out --per_device_train_batch_size 2"


def _trainer(arguments: str = "pass", model: str = "pass") -> dict[str, str]:
    return {
        "train.py": TRAINER.replace("{ARGUMENTS}", arguments).replace("{MODEL}", model),
        "requirements.txt": "transformers==4.44.0\ntorch==2.3.0\n",
    }


@pytest.mark.parametrize(
    ("statement", "size"),
    [
        ("pass", 2),
        ("print(training_args)", 2),
        ("training_args.seed = load('seed')", 2),
        ("override(training_args)", "unknown"),
        ("training_args = override(training_args)", "unknown"),
        ("model_args, training_args = load(model_args, training_args)", "unknown"),
        ("training_args = torch.load('training_args.bin')", "unknown"),
        ("vars(training_args).update(load('file'))", "unknown"),
        ("[setattr(training_args, k, v) for k, v in [load('pair')]]", "unknown"),
    ],
)
def test_flags_may_be_overruled_by_what_is_not_read(
    run_of: MakeRun, statement: str, size: Any
) -> None:
    assert _value(run_of(_trainer(statement), _FLAGS), "micro_batch_size") == size


@pytest.mark.parametrize(
    ("statement", "tuning"),
    [
        ("pass", "full"),
        ("if model_args.use_lora:\n        model = get_peft_model(model, LoraConfig(r=8))", "full"),
        ("model = get_peft_model(model, LoraConfig(r=8))", "lora"),
        ("model = get_peft_model(model, load('adapter'))", "unknown"),
        ("model.add_lora_layers(8)", "unknown"),
    ],
)
def test_an_adapter_beside_a_switch_that_is_off_counts(
    run_of: MakeRun, statement: str, tuning: str
) -> None:
    assert _value(run_of(_trainer(model=statement), _FLAGS), "tuning") == tuning


@pytest.mark.parametrize(
    ("statement", "attention"),
    [
        ("pass", "sdpa"),
        ("replace_llama_attn()", "unknown"),
        ("modeling_llama.LlamaAttention.forward = load('forward')", "unknown"),
    ],
)
def test_attention_that_is_exchanged_is_not_the_default(
    run_of: MakeRun, statement: str, attention: str
) -> None:
    assert _value(run_of(_trainer(statement), _FLAGS), "attention") == attention


# --- other frameworks ------------------------------------------------------------------------


def test_shards_of_unread_arguments_have_any_strategy(run_of: MakeRun) -> None:
    text = (
        "import torch\nimport lightning as L\nfrom lightning.pytorch.strategies import"
        " FSDPStrategy\nfrom common.tools import config, Net, loader\n"
        "trainer = L.Trainer(devices=4, strategy=FSDPStrategy(**config))\n"
        "trainer.fit(Net(), loader)\n"
    )
    assert _value(run_of({"train.py": text}, "python train.py"), "fsdp") == "unknown"
