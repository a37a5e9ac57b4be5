"""What the rules of ms-swift ask of the options, and the words that they share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable, Optional

from flake8_gpu_training.facts import known
from flake8_gpu_training.frameworks.refusals.base import Options, UndecidedError
from flake8_gpu_training.language import Text

SFT = ("sft", "pt", "rlhf")
RLHF = ("rlhf",)
MEGATRON = ("megatron sft", "megatron pt", "megatron rlhf")
MEGATRON_RLHF = ("megatron rlhf",)
TRAIN = (*SFT, *MEGATRON)
INFER = ("infer", "deploy", "rollout", "eval")


def value(options: Options, name: str, otherwise: Any = None) -> Any:
    """A value, or ``otherwise`` where the release does not have the parameter."""
    return options[name] if options.takes(name) else otherwise


def items(options: Options, name: str) -> list[Any]:
    """The items of a parameter that takes several; one that is not known leaves it undecided."""
    found = value(options, name)
    if found is None:
        return []
    listed = found if isinstance(found, list) else [found]
    if not all(map(known, listed)):
        raise UndecidedError(name)
    return listed


def none_of(options: Options, *names: str) -> bool:
    """Whether nothing sets any of ``names``, and no name that is not known may be meant for it."""
    for name in options.given:
        if "." not in name and not options.accepted.takes(name, flag=True):
            raise UndecidedError(name)
    return not any(items(options, name) for name in names)


def tuner(options: Options) -> Any:
    """How the model is tuned; ``train_type`` before ms-swift 4."""
    return options["tuner_type"] if options.takes("tuner_type") else options["train_type"]


def tuner_name(options: Options) -> Mapping[str, Any]:
    """The name of the parameter for it, and its value."""
    name = "tuner_type" if options.takes("tuner_type") else "train_type"
    return {"tuner_name": name, "tuner": tuner(options)}


def world(options: Options) -> int:
    """Number of processes, where it is written: NPROC_PER_NODE may come from outside, but one
    GPU takes one process."""
    launcher = options.run.launcher
    size = launcher.world_size
    if size is not None and launcher.processes.location is not None:
        return size
    if size == 1 and visible_gpus(options) == 1:
        return 1
    raise UndecidedError("world size")


def visible_gpus(options: Options) -> int:
    """GPUs that CUDA_VISIBLE_DEVICES leaves visible."""
    setting = options.run.environment.get("CUDA_VISIBLE_DEVICES")
    if setting is None or not known(setting.value):
        raise UndecidedError("CUDA_VISIBLE_DEVICES")
    listed = [one.strip() for one in str(setting.value).split(",") if one.strip()]
    if not all(one.isdigit() for one in listed):
        raise UndecidedError("CUDA_VISIBLE_DEVICES")
    return len(listed)


def has_plugins(options: Options) -> bool:
    """Whether files of the user may register names of their own."""
    return bool(items(options, "external_plugins") or items(options, "custom_register_path"))


def drop(name: str) -> Text:
    """The instruction to leave a parameter out."""
    return Text(f"去掉 {name}", f"drop {name}")


def off(*names: str) -> Callable[[Options], Mapping[str, Any]]:
    """The change that turns parameters off."""
    return lambda options: dict.fromkeys(names, False)


def setting(**values: Any) -> Callable[[Options], Mapping[str, Any]]:
    """The change that writes ``values``."""
    return lambda options: values


Asked = Callable[[Options], Any]
ROLLOUTS = ("grpo", "gkd")
"""Algorithms whose training generates samples."""


def of_grpo(holds: Asked) -> Callable[[Options], bool]:
    """``holds``, asked of GRPO alone."""
    return lambda options: options["rlhf_type"] == "grpo" and bool(holds(options))


def batch(options: Options, name: str, otherwise: Optional[int] = None) -> int:
    """A number of samples or steps; ``otherwise`` stands for None."""
    found = value(options, name)
    if found is None:
        found = otherwise
    if isinstance(found, bool) or not isinstance(found, int):
        raise UndecidedError(name)
    return found


def evaluates(options: Options) -> bool:
    """Whether there is something to evaluate; nothing is unless data are set aside."""
    if options["eval_strategy"] == "no" or _saves_not(options):
        return False
    if any(items(options, n) for n in ("eval_dataset", "val_dataset", "cached_val_dataset")):
        return True
    return options["split_dataset_ratio"] > 0 and not options["streaming"]


def _saves_not(options: Options) -> bool:
    """Evaluation follows saving unless it is set."""
    return options["eval_strategy"] is None and value(options, "save_strategy", "steps") == "no"
