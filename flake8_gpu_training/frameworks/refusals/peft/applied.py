"""What LoRA refuses when it is put into a model: ranks, dropout, biases, initialisations."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any

from flake8_gpu_training.frameworks.refusals.base import Options, Refusal
from flake8_gpu_training.language import Text

_LORA = "LoraConfig"
_LAYER = "peft/tuners/lora/layer.py, LoraLayer"
_STOPS = "the run stops when the adapter is put into the model"
_INITIALISATIONS = (
    "gaussian",
    "eva",
    "olora",
    "pissa",
    "pissa_niter_16",
    "corda",
    "loftq",
    "orthogonal",
    "lora_ga",
    "mica",
)
"""Of all releases: a later one has more of them."""
_SOME_TEXT = re.compile(r"(?:pissa|corda).*|" + "|".join(_INITIALISATIONS))
_BIASES = ("none", "all", "lora_only")


def _no_rank(options: Options) -> bool:
    rank = options["r"]
    return isinstance(rank, int) and rank <= 0 and not options["rank_pattern"]


def _drops_more_than_all(options: Options) -> bool:
    return bool(options["lora_dropout"] > 1)


def _no_bias(options: Options) -> bool:
    return options["bias"] not in _BIASES


def _no_initialisation(options: Options) -> bool:
    value = options["init_lora_weights"]
    return isinstance(value, str) and not _SOME_TEXT.fullmatch(value.lower())


def _likely(options: Options) -> Mapping[str, Any]:
    value = str(options["init_lora_weights"]).lower()
    near = difflib.get_close_matches(value, _INITIALISATIONS, 1)
    return {"near": near[0] if near else "/".join(_INITIALISATIONS[:4])}


REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "lora-without-rank",
        f"{_LAYER}.update_layer",
        ("r",),
        _no_rank,
        Text("r 至少为 1，常用 8 至 64", "give r 1 or more, as a rule 8 to 64"),
        Text("r={r} 没有可训练的秩", "r={r} leaves no rank to train"),
        write=lambda options: {"r": 8},
        stops=_STOPS,
        groups=(_LORA,),
        since="0.9.0",
    ),
    Refusal(
        "lora-dropout-above-1",
        "torch/nn/modules/dropout.py, _DropoutNd.__init__",
        ("lora_dropout",),
        _drops_more_than_all,
        Text("lora_dropout 取 0 至 1，如 0.05", "give lora_dropout 0 to 1, like 0.05"),
        Text("{lora_dropout} 不是概率", "{lora_dropout} is no probability"),
        stops=_STOPS,
        groups=(_LORA,),
        since="0.9.0",
    ),
    Refusal(
        "lora-bias-unknown",
        "peft/tuners/tuners_utils.py, BaseTuner._mark_only_adapters_as_trainable",
        ("bias",),
        _no_bias,
        Text(f"bias 取 {'、'.join(_BIASES)} 之一", f"give bias one of {', '.join(_BIASES)}"),
        Text("不能取 {bias}", "it cannot be {bias}"),
        stops=_STOPS,
        groups=(_LORA,),
        since="0.9.0",
    ),
    Refusal(
        "lora-initialisation-unknown",
        f"{_LAYER}.reset_lora_parameters",
        ("init_lora_weights",),
        _no_initialisation,
        Text("init_lora_weights 改为 {near}", "give init_lora_weights {near}"),
        Text("没有名为 {init_lora_weights} 的初始化", "there is no {init_lora_weights}"),
        figures=_likely,
        stops=_STOPS,
        groups=(_LORA,),
        since="0.9.0",
    ),
)
