"""Small projects, one front end each, for the table of the general audit's items A to E."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flake8_gpu_training.checks.base import Status

Files = Mapping[str, str]
ON, ADVISED, OFF = Status.ENABLED, Status.RECOMMENDED, Status.DISABLED
NA, PARTLY, UNKNOWN = Status.NOT_APPLICABLE, Status.PARTIAL, Status.UNKNOWN


@dataclass(frozen=True)
class Case:
    """A project, and what the general audit says of one item of its first run.

    ``shows``: part of the line that is the evidence (of the default's name where nobody wrote
    it, of the reason where the item is off). ``writes``: part of the change that is advised.
    """

    item: str
    status: Status
    front: str
    files: Files
    shows: str = ""
    writes: str = ""

    @property
    def id(self) -> str:
        """Item, status and front end."""
        return f"{self.item}-{self.status.value}-{self.front}"


def script(command: str, *directives: str) -> str:
    """A launch script with ``#SBATCH`` directives."""
    head = "".join(f"#SBATCH --{directive}\n" for directive in directives)
    return f"#!/bin/bash\n{head}{command}\n"


A100 = "gres=gpu:a100-80g:8"
A100_40G = "gres=gpu:a100-40g:8"
H100 = "gres=gpu:h100:8"
V100 = "gres=gpu:v100-32g:8"
TWO_NODES = "nodes=2"
QWEN = "Qwen/Qwen2.5-7B-Instruct"
TORCHRUN = "torchrun --nproc_per_node=8 train.py"
TWO = "torchrun --nnodes=2 --nproc_per_node=8 --rdzv_endpoint=$HEAD:29500 train.py"


# --- plain PyTorch --------------------------------------------------------------------------

_VISION = """\
import torch
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torchvision.models import resnet50
{imports}

def main():
    torch.cuda.set_device(0)
    model = resnet50().cuda()
{setup}    loader = DataLoader(dataset, batch_size=256, num_workers=8, pin_memory=True)
    optimizer = {optimizer}
    for images, labels in loader:
        images, labels = images.cuda(non_blocking=True), labels.cuda(non_blocking=True)
        {step}
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
"""
PLAIN_STEP = "loss = torch.nn.functional.cross_entropy(model(images), labels)"
DDP_LINE = "model = DistributedDataParallel(model, device_ids=[0])"


def vision(
    *setup: str,
    imports: str = "",
    step: str = PLAIN_STEP,
    optimizer: str = "torch.optim.SGD(model.parameters(), lr=0.1)",
) -> str:
    """A training loop over a torchvision model."""
    lines = "".join(f"    {line}\n" for line in setup)
    return _VISION.format(imports=imports, setup=lines, step=step, optimizer=optimizer)


_DECODER = """\
import torch
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM
{imports}

def main():
    model = AutoModelForCausalLM.from_pretrained("{model}"{loading}).cuda()
{setup}    loader = DataLoader(dataset, batch_size={batch}, num_workers=8, pin_memory=True)
    optimizer = {optimizer}
    for batch in loader:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
"""


def decoder(
    *setup: str,
    imports: str = "",
    model: str = QWEN,
    loading: str = "",
    batch: int = 8,
    optimizer: str = "torch.optim.AdamW(model.parameters(), lr=1e-5)",
) -> str:
    """A training loop of one's own over a decoder of the hub."""
    if DDP_LINE in setup:
        imports = f"from torch.nn.parallel import DistributedDataParallel\n{imports}"
    lines = "".join(f"    {line}\n" for line in setup)
    loading = f", {loading}" if loading else ""
    return _DECODER.format(
        imports=imports,
        setup=lines,
        model=model,
        loading=loading,
        batch=batch,
        optimizer=optimizer,
    )


def launched(program: str, command: str = TORCHRUN, *directives: str, **more: str) -> Files:
    """``train.py`` with the script that starts it; ``more``: other files by name."""
    return {"train.py": program, "train.sh": script(command, *directives), **more}


# --- Accelerate, DeepSpeed -------------------------------------------------------------------

_ACCELERATED = """\
import torch
from accelerate import {names}
from torch.utils.data import DataLoader
from transformers import AutoModelForCausalLM
{imports}

def main():
    accelerator = Accelerator({arguments})
    model = AutoModelForCausalLM.from_pretrained("{model}")
{setup}    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    loader = DataLoader(dataset, batch_size={batch}, num_workers=8, pin_memory=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for batch in loader:
        with accelerator.accumulate(model):
            loss = model(**batch).loss
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    main()
"""


def accelerated(
    arguments: str = "",
    *setup: str,
    names: str = "Accelerator",
    imports: str = "",
    model: str = QWEN,
    batch: int = 8,
) -> str:
    """A loop of one's own that Accelerate prepares."""
    lines = "".join(f"    {line}\n" for line in setup)
    return _ACCELERATED.format(
        arguments=arguments, setup=lines, names=names, imports=imports, model=model, batch=batch
    )


def accelerate(config: str, program: str = "", *directives: str, flags: str = "") -> Files:
    """``accelerate launch`` with a configuration file."""
    return {
        "accelerate.yaml": config,
        "train.py": program or accelerated(),
        "train.sh": script(
            f"accelerate launch --config_file accelerate.yaml {flags}train.py", *directives
        ),
    }


FSDP_YAML = """\
distributed_type: FSDP
mixed_precision: bf16
num_machines: {nodes}
num_processes: {processes}
fsdp_config:
  fsdp_version: 2
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
{more}"""
DDP_YAML = """\
distributed_type: MULTI_GPU
mixed_precision: {precision}
num_machines: {nodes}
num_processes: {processes}
"""


def fsdp_yaml(*more: str, processes: int = 8, nodes: int = 1) -> str:
    """An Accelerate configuration of FSDP."""
    lines = "".join(f"  {line}\n" for line in more)
    return FSDP_YAML.format(more=lines, processes=processes, nodes=nodes)


def ddp_yaml(precision: str = "bf16", processes: int = 8, nodes: int = 1) -> str:
    """An Accelerate configuration of plain DDP."""
    return DDP_YAML.format(precision=precision, processes=processes, nodes=nodes)


def zero(stage: int, **more: Any) -> str:
    """A DeepSpeed configuration."""
    section = {"stage": stage, **more}
    return json.dumps(
        {
            "train_micro_batch_size_per_gpu": 8,
            "bf16": {"enabled": True},
            "zero_optimization": section,
        },
        indent=2,
    )


_ENGINE = """\
import deepspeed
from model import Decoder

{config}
engine, optimizer, _, _ = deepspeed.initialize(model=Decoder(), config={named})
for batch in loader:
    loss = engine(batch)
    engine.backward(loss)
    engine.step()
"""
_DECODER_MODULE = "import torch\n\n\nclass Decoder(torch.nn.Module):\n    pass\n"


def engine(config: str, named: str = '"ds.json"', command: str = "") -> Files:
    """A DeepSpeed program: its configuration in a file, or in a dict when it is ``named``."""
    in_code = f"config = {config}\n" if named == "config" else ""
    files = {
        "train.py": _ENGINE.format(config=in_code, named=named),
        "model.py": _DECODER_MODULE,
        "train.sh": script(command or "deepspeed --num_gpus 8 train.py"),
    }
    return files if in_code else {**files, "ds.json": config}


# --- Lightning --------------------------------------------------------------------------------

_LIGHTNING = """\
import lightning as L
import torch
from torch.utils.data import DataLoader
from torchvision.models import resnet50
{imports}

class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = {model}

    def training_step(self, batch, batch_idx):
        images, labels = batch
        return torch.nn.functional.cross_entropy(self.model(images), labels)

    def configure_optimizers(self):
        return {optimizer}


loader = DataLoader(dataset, batch_size=256, num_workers=8, pin_memory=True)
trainer = L.Trainer(accelerator="gpu", {arguments})
trainer.fit(Classifier(), loader)
"""


def lightning(
    arguments: str,
    imports: str = "",
    model: str = "resnet50()",
    optimizer: str = "torch.optim.SGD(self.parameters(), lr=0.1)",
    command: str = "python train.py",
) -> Files:
    """A LightningModule and its Trainer."""
    program = _LIGHTNING.format(
        arguments=arguments, imports=imports, model=model, optimizer=optimizer
    )
    return launched(program, command)


# --- Trainer, TRL ----------------------------------------------------------------------------

_TRAINER = """\
from transformers import {loader}, Trainer, TrainingArguments
{imports}
model = {loader}.from_pretrained("{model}"{loading})
{setup}args = TrainingArguments(
    output_dir="out",
    dataloader_num_workers=4,
{arguments})
trainer = Trainer(model=model, args=args, train_dataset=train_dataset)
trainer.train()
"""


def trainer(
    *arguments: str,
    model: str = QWEN,
    loading: str = "",
    loader: str = "AutoModelForCausalLM",
    imports: str = "",
    setup: str = "",
) -> str:
    """A program of Transformers' Trainer."""
    lines = "".join(f"    {argument},\n" for argument in arguments)
    loading = f", {loading}" if loading else ""
    setup = f"{setup}\n" if setup else ""
    return _TRAINER.format(
        loader=loader,
        model=model,
        loading=loading,
        arguments=lines,
        imports=imports,
        setup=setup,
    )


_SFT = """\
from trl import SFTConfig, SFTTrainer

config = SFTConfig(
    output_dir="out",
{arguments})
trainer = SFTTrainer(model="{model}", args=config, train_dataset=train_dataset)
trainer.train()
"""


def sft(*arguments: str, model: str = QWEN) -> str:
    """A program of TRL's SFTTrainer."""
    lines = "".join(f"    {argument},\n" for argument in arguments)
    return _SFT.format(arguments=lines, model=model)


# --- command-line frameworks ------------------------------------------------------------------


def swift(
    flags: str,
    *directives: str,
    model: str = QWEN,
    before: str = "NPROC_PER_NODE=8 ",
    what: str = "swift sft",
) -> Files:
    """An ms-swift command."""
    command = f"{before}{what} \\\n    --model {model} \\\n"
    lines = "".join(f"    --{flag} \\\n" for flag in flags.split(" --") if flag)
    return {
        "train.sh": script(command + lines + "    --dataset data/train.jsonl", *directives),
    }


def megatron_swift(flags: str, *directives: str, model: str = QWEN, before: str = "") -> Files:
    """An ms-swift command with its Megatron back end."""
    before = before or "NPROC_PER_NODE=8 "
    return swift(flags, *directives, model=model, before=before, what="megatron sft")


_PRETRAIN = """\
from megatron.core.enums import ModelType
from megatron.core.models.gpt import GPTModel
from megatron.training import pretrain


def model_provider(pre_process=True, post_process=True):
    return GPTModel(config, spec, vocab_size, max_sequence_length)


if __name__ == "__main__":
    pretrain(datasets_provider, model_provider, ModelType.encoder_or_decoder, forward_step)
"""
_GPT = """\
    --num-layers {layers} --hidden-size {hidden} --num-attention-heads {heads} \\
    --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 \\
    --global-batch-size 256 --train-iters 100000 --data-path data/corpus_text_document"""


def megatron_lm(
    flags: str,
    *directives: str,
    nodes: int = 1,
    gpus: int = 8,
    layers: int = 32,
    hidden: int = 4096,
    heads: int = 32,
) -> Files:
    """Megatron-LM's ``pretrain_gpt.py`` with its flags; ``flags`` may be empty."""
    shape = _GPT.format(layers=layers, hidden=hidden, heads=heads)
    more = f" \\\n    {flags}" if flags else ""
    command = f"torchrun --nproc_per_node {gpus} --nnodes {nodes} pretrain_gpt.py \\\n{shape}{more}"
    return {"pretrain.sh": script(command, *directives), "pretrain_gpt.py": _PRETRAIN}


def llamafactory(
    settings: str,
    *directives: str,
    model: str = QWEN,
    before: str = "FORCE_TORCHRUN=1 NPROC_PER_NODE=8 ",
    **more: str,
) -> Files:
    """A LLaMA-Factory recipe."""
    body = f"model_name_or_path: {model}\nstage: sft\ndo_train: true\ndataset: alpaca\n{settings}"
    run = script(f"{before}llamafactory-cli train sft.yaml", *directives)
    return {"sft.yaml": body, "train.sh": run, **more}


def videox_fun(flags: str, launcher: str = "", **more: str) -> Files:
    """A VideoX-Fun script, started as its README has it."""
    launcher = launcher or "accelerate launch --mixed_precision=bf16"
    command = (
        f"{launcher} scripts/wan2.1/train_lora.py \\\n"
        "    --pretrained_model_name_or_path models/Wan2.1-T2V-14B \\\n"
        "    --train_data_meta data/metadata.json --train_batch_size 1 --rank 64"
    )
    return {"train.sh": script(f"{command} \\\n    {flags}" if flags else command), **more}


def flow_factory(train: str, top: str = "", model: str = "", **more: str) -> Files:
    """A Flow-Factory configuration."""
    body = (
        f"{top}model:\n{model}  finetune_type: lora\n  model_type: wan2_t2v\n"
        "  model_name_or_path: Wan-AI/Wan2.1-T2V-1.3B-Diffusers\n"
        f"train:\n  trainer_type: grpo\n{train}"
    )
    return {"grpo.yaml": body, "train.sh": script("ff-train grpo.yaml"), **more}


# --- ColossalAI, veScale --------------------------------------------------------------------

_BOOSTED = """\
import colossalai
import torch
from colossalai.booster import Booster
from colossalai.booster.plugin import {plugin}
from colossalai.nn.optimizer import HybridAdam
from transformers import AutoModelForCausalLM

colossalai.launch_from_torch()
model = AutoModelForCausalLM.from_pretrained("{model}")
{setup}optimizer = HybridAdam(model.parameters(), lr=1e-5)
booster = Booster(plugin={plugin}({arguments}))
model, optimizer, _, loader, _ = booster.boost(model, optimizer, dataloader=loader)
for batch in loader:
    loss = model(**batch).loss
    booster.backward(loss, optimizer)
    optimizer.step()
    optimizer.zero_grad()
"""


def colossalai(
    plugin: str,
    arguments: str = "",
    setup: str = "",
    command: str = "colossalai run --nproc_per_node 8 train.py",
    model: str = QWEN,
) -> Files:
    """A ColossalAI program with one plugin."""
    setup = f"{setup}\n" if setup else ""
    return launched(
        _BOOSTED.format(plugin=plugin, arguments=arguments, setup=setup, model=model), command
    )


_VESCALE = """\
import torch
from vescale.ddp.distributed_data_parallel import DistributedDataParallel as DDP
from vescale.dmodule.api import parallelize_module
from vescale.dtensor.device_mesh import init_device_mesh
from vescale.optim.distributed_optimizer import DistributedOptimizer
from model import Decoder

mesh = init_device_mesh("cuda", (2, 4), mesh_dim_names=("DP", "TP"))
model = parallelize_module(Decoder().to(torch.bfloat16), mesh["TP"], sharding_plan)
model = DDP(model, mesh["DP"], overlap_grad_reduce={overlap})
optimizer = DistributedOptimizer(torch.optim.AdamW(model.parameters()), models=[model])
for batch in loader:
    loss = model(batch.cuda())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def vescale(overlap: bool = True, command: str = TORCHRUN) -> Files:
    """A veScale program."""
    return {**launched(_VESCALE.format(overlap=overlap), command), "model.py": _DECODER_MODULE}


# --- runs that do not train -----------------------------------------------------------------

SERVING = {"serve.sh": script("vllm serve Qwen/Qwen2.5-7B-Instruct --max-model-len 8192")}
SGLANG = {
    "serve.sh": script("python -m sglang.launch_server --model-path Qwen/Qwen2.5-7B-Instruct")
}
EVALUATION = {
    "evaluate.py": """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B-Instruct")
args = TrainingArguments(output_dir="out", per_device_eval_batch_size=8)
print(Trainer(model=model, args=args, eval_dataset=test_set).evaluate())
"""
}
