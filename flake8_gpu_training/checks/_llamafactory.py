"""What LlamaFactory has in place of practices that all frameworks know: its own optimizers."""

from __future__ import annotations

import re
from typing import Optional

from flake8_gpu_training.checks._judging import (
    cannot_apply,
    cannot_tell,
    excluding,
    of_training,
    off,
    on,
)
from flake8_gpu_training.checks._scale import number, ranks, text
from flake8_gpu_training.checks.base import Judgement
from flake8_gpu_training.frameworks.at_hand import lacks
from flake8_gpu_training.frameworks.llamafactory import NAMED, is_unreleased, release_of
from flake8_gpu_training.frameworks.llamafactory_v1 import is_v1
from flake8_gpu_training.frameworks.reading import parsed
from flake8_gpu_training.frameworks.tables import table_of
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

_NOT_V1 = Text("v1 路线没有 Megatron 后端", "the v1 route has no Megatron back end")
NO_WAY = Text("v1 路线没有此功能", "the v1 route does not have it")
OLDER = Text("该版本没有此参数", "this release does not have the parameter")

SWITCHES = {
    "galore": "use_galore",
    "badam": "use_badam",
    "apollo": "use_apollo",
    "adam-mini": "use_adam_mini",
    "muon": "use_muon",
}
"""LlamaFactory's own optimizers, and the switch that it has for each."""
_ADAPTERS = ("lora", "oft")
_BASE_ONLY = Text("只用于全参与冻结微调", "for full and freeze tuning only")
_WHOLE_HEADS = Text(
    "按完整的注意力头分块，不适用于适配器", "its blocks are whole attention heads: no adapters"
)
_NOT_DEEPSPEED = Text("DeepSpeed 不支持", "not with DeepSpeed")
_ZERO3_ALONE = Text("分布式训练时只支持 ZeRO-3", "in distributed training with ZeRO-3 only")
# train/trainer_utils.py, _create_muon_optimizer (0.9.4, 0.9.5): param.ndim == 2.
_NO_MATRICES = Text(
    "ZeRO-3 切分后的权重不是矩阵，会全部交给 AdamW",
    "weights that ZeRO-3 has split are no matrices: AdamW would take them all",
)
TRAINS_ALL = Text("Megatron-core 后端只支持全参训练", "it trains full models only")
_ANOTHER = Text("Megatron 自有优化器", "Megatron has an optimizer of its own")


def source_of(run: Run, file: str) -> str:
    """Where a default was read that all releases from 0.7.1 on have: in the one at hand."""
    release = release_of(run)
    is_older = bool(release) and parsed(release) < NAMED
    return f"llamafactory {release if is_older else '0.9.1 to 0.9.5'}, {file}"


def takes_tuning(run: Run, name: str) -> bool:
    """Whether the release at hand has a ``finetuning_type`` of that name, as far as known."""
    if is_v1(run):
        return name in ("lora", "freeze", "full")
    table, release = table_of("llamafactory"), release_of(run)
    if table is None or not release:
        return True
    choices = table.parameters("train", release)["finetuning_type"].choices
    return not choices or name in choices


@of_training()
def lean_optimizer(run: Run) -> Judgement:
    """GaLore and what LlamaFactory has beside it; most of them update the base model's weights.

    As hparams/finetuning_args.py, hparams/parser.py and train/trainer_utils.py of 0.7.1 to 0.9.5
    refuse them.
    """
    if run.value("megatron") is True:
        return cannot_apply(_ANOTHER)
    chosen = text(run, "optimizer") or ""
    variant = next((name for name in SWITCHES if name in chosen), None)
    if variant is not None:
        return on(run.practice("optimizer"), variant)
    if not run.practice("tuning").known:
        return cannot_tell(run.practice("tuning"))
    answer = off(Text("可选", "optional"))
    if text(run, "tuning") == "full":
        answer = off(
            Text(
                "可选：全参训练显存不足时使用",
                "optional, for full tuning that is short of memory",
            )
        )
    for name, switch in SWITCHES.items():
        why = OLDER if lacks(run, "llamafactory", "train", switch) else _refused(run, name)
        if why is not None:
            answer = excluding(answer, why, name)
    return answer


def _refused(run: Run, name: str) -> Optional[Text]:
    """Why the run cannot take one of the optimizers."""
    if text(run, "tuning") in _ADAPTERS and name != "muon":  # which takes any matrix
        return _WHOLE_HEADS if name == "adam-mini" else _BASE_ONLY
    stage = number(run, "zero_stage")
    if name == "muon" and stage == 3 and text(run, "tuning") not in _ADAPTERS:
        return _NO_MATRICES
    if name in ("galore", "apollo") and stage is not None and _uses_deepspeed(run):
        return _NOT_DEEPSPEED
    if name == "badam" and stage is not None and stage != 3 and _is_split_over_ranks(run):
        return _ZERO3_ALONE
    return None


def _is_split_over_ranks(run: Run) -> bool:
    """Whether torchrun or its kin starts the processes, be it one (ParallelMode.DISTRIBUTED)."""
    forced = run.environment.get("FORCE_TORCHRUN")
    is_forced = forced is not None and str(forced.value).lower() in ("true", "y", "1")
    if is_forced or run.launcher.name in ("torchrun", "accelerate", "deepspeed"):
        return True
    return (ranks(run) or 1) > 1 or text(run, "fsdp") not in (None, "none", "no_shard")


def without_megatron_core(run: Run) -> Optional[Text]:
    """Why Megatron-core cannot drive the run (train/mca/workflow.py, 0.9.4 and 0.9.5)."""
    if run.framework != "llamafactory":
        return None
    if is_v1(run):
        return _NOT_V1
    if lacks(run, "llamafactory", "train", "use_mca"):
        return OLDER
    stage = run.value("algorithm")
    if isinstance(stage, str) and stage not in _MEGATRON_STAGES:
        return _NOT_ITS_STAGE
    with_adapters = ("lora",) if is_unreleased(run) else ()
    if text(run, "tuning") in ("oft", "freeze") or (
        text(run, "tuning") == "lora" and not with_adapters
    ):
        return TRAINS_ALL if not with_adapters else _FULL_OR_LORA
    return _NOT_QUANTIZED if is_quantized(run) else None


# train/tuner.py: the route of Megatron-core has these stages, and Megatron-Bridge the first two.
_MEGATRON_STAGES = ("pt", "sft", "dpo")
_NOT_ITS_STAGE = Text("Megatron 路线没有该训练阶段", "Megatron's route does not have this stage")
_FULL_OR_LORA = Text(
    "Megatron 路线只支持全参与 LoRA", "Megatron's route has full tuning and LoRA only"
)
_NOT_QUANTIZED = Text("Megatron 路线不支持量化权重", "Megatron's route takes no quantized weights")
_QUANTIZED_AHEAD = re.compile(
    r"(?i)(?<![a-z])(?:awq|gptq|aqlm|bnb|eetq|hqq|fp8|(?:int|w)[48]|[48]-?bit)"
)
_BY_BNB = re.compile(r"(?i)(?<![a-z])bnb")


def is_quantized_ahead(run: Run) -> bool:
    """Whether the checkpoint itself is quantized, by its name."""
    return _QUANTIZED_AHEAD.search(run.model.name or "") is not None


def is_quantized(run: Run) -> bool:
    """Whether the base's weights are quantized, ahead or as they are loaded."""
    return is_quantized_ahead(run) or bool(number(run, "quantization_bits"))


def is_quantized_for_good(run: Run) -> bool:
    """Whether a checkpoint is quantized by other means than bitsandbytes (PTQ)."""
    return is_quantized_ahead(run) and _BY_BNB.search(run.model.name or "") is None


def _uses_deepspeed(run: Run) -> bool:
    """Whether a configuration is given, be it of stage 0."""
    return run.practice("zero_stage").explicit or run.deepspeed is not None
