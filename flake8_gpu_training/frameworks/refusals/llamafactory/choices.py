"""Values of a file that LLaMA-Factory reads as any text, and finds unknown later."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, Callable

from flake8_gpu_training.facts import Origin
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal
from flake8_gpu_training.frameworks.refusals.llamafactory.asked import TRAIN
from flake8_gpu_training.frameworks.refusals.node_ranks import is_forced, rank_beyond
from flake8_gpu_training.language import Text


def _choices(options: Options, name: str) -> list[str]:
    parameter = options.accepted.parameters.get(name)
    return [str(one) for one in parameter.choices] if parameter is not None else []


def _is_unknown(name: str) -> Callable[[Options], bool]:
    def refused(options: Options) -> bool:
        setting, choices = options.given.get(name), _choices(options, name)
        if setting is None or setting.origin is not Origin.FILE or not choices:
            return False  # argparse compares a flag with the choices itself
        value = options[name]
        return isinstance(value, str) and value not in choices

    return refused


def _attention(options: Options) -> Mapping[str, Any]:
    value, choices = str(options["flash_attn"]).lower(), _choices(options, "flash_attn")
    third = "fa3" if "fa3" in choices and value.endswith("3") else "fa2"
    meant = third if value.startswith(("fa", "flash")) else "auto"
    if value == "eager" and "disabled" in choices:
        meant = "disabled"
    return {"meant": meant, "choices": ", ".join(choices)}


def _loss(options: Options) -> Mapping[str, Any]:
    choices = _choices(options, "pref_loss")
    near = difflib.get_close_matches(str(options["pref_loss"]).lower(), choices, 1)
    return {"meant": near[0] if near else "sigmoid", "choices": ", ".join(choices)}


def _compares_losses(options: Options) -> bool:
    return options["stage"] == "dpo" and _is_unknown("pref_loss")(options)


REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "attention-of-no-name",
        "llamafactory/model/model_utils/attention.py, configure_attn_implementation",
        ("flash_attn",),
        _is_unknown("flash_attn"),
        Text("flash_attn 写成 {meant}", "write {meant} for flash_attn"),
        Text("只有 {choices}，没有 {flash_attn}", "there is {choices}, not {flash_attn}"),
        write=lambda options: {"flash_attn": _attention(options)["meant"]},
        figures=_attention,
        groups=TRAIN,
        since="0.8.3",
    ),
    Refusal(
        "loss-of-no-name",
        "llamafactory/train/dpo/trainer.py, and trl's DPOTrainer.dpo_loss",
        ("pref_loss",),
        _compares_losses,
        Text("pref_loss 写成 {meant}", "write {meant} for pref_loss"),
        Text("只有 {choices}，没有 {pref_loss}", "there is {choices}, not {pref_loss}"),
        write=lambda options: {"pref_loss": _loss(options)["meant"]},
        figures=_loss,
        stops="training stops at its first step",
        groups=TRAIN,
        since="0.8.3",
    ),
    rank_beyond("llamafactory-node-rank", "llamafactory/launcher.py, launch", is_forced, "0.9.2"),
)
