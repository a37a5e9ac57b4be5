"""What several rules of LLaMA-Factory ask."""

from __future__ import annotations

from typing import Any, Optional

from flake8_gpu_training.facts import known
from flake8_gpu_training.frameworks.reading import truth
from flake8_gpu_training.frameworks.refusals.base import Options, UndecidedError
from flake8_gpu_training.runs.model import PlaceKind

HPARAMS = "llamafactory/hparams"
PARSER = f"{HPARAMS}/parser.py"
TRAIN_ARGS = f"{PARSER}, get_train_args"
TRAIN = ("train",)
LEAST = 1e-6
"""From here on a share counts as given."""


def on(options: Options, name: str) -> bool:
    """Whether a switch is on; one that the release does not have is off."""
    if not options.takes(name):
        return False
    value = options[name]
    if value is not None and truth(value) is None:
        raise UndecidedError(name)  # a word of a file counts as true, whatever it says
    return truth(value) is True


def any_on(options: Options, *names: str) -> bool:
    """Whether one of the switches is on."""
    return any(on(options, name) for name in names)


def given(options: Options, name: str) -> bool:
    """Whether a parameter that the release has is other than None."""
    return options.takes(name) and options[name] is not None


def listed(options: Options, name: str) -> Optional[list[Any]]:
    """The parts of a value that commas separate, or None."""
    value = options[name] if options.takes(name) else None
    if value is None or isinstance(value, list):
        return value
    if isinstance(value, str):
        return [part.strip() for part in value.split(",")]
    raise UndecidedError(name)


def is_read_from_file(options: Options) -> bool:
    """Whether a YAML or JSON file gives the values, which no parser of flags then compares."""
    return options.run.place.kind in (PlaceKind.YAML, PlaceKind.JSON)


def no_choice(options: Options, name: str) -> bool:
    """Whether a file gives a word that is none of the parameter's."""
    parameter = options.accepted.parameter(name)
    value = options[name]
    return (
        is_read_from_file(options)
        and parameter is not None
        and bool(parameter.choices)
        and isinstance(value, str)
        and value not in parameter.choices
    )


def choices(options: Options, name: str) -> str:
    """The words that a parameter takes."""
    parameter = options.accepted.parameter(name)
    return ", ".join(map(str, parameter.choices)) if parameter is not None else ""


def subcommand(options: Options) -> str:
    """The command that is run: ``train``, ``export`` …; "" when none is seen."""
    command = options.run.command
    words = [word.text for word in command.words[:4]] if command is not None else []
    return next(
        (w for w in words if w in ("train", "api", "chat", "webchat", "export", "eval")), ""
    )


def zero3(options: Options) -> bool:
    """Whether DeepSpeed partitions the parameters."""
    if not options["deepspeed"]:
        if options.run.launcher.name == "accelerate":
            raise UndecidedError("deepspeed")  # its configuration may name DeepSpeed
        return False
    stage = options.run.value("zero_stage")
    if stage is None:
        raise UndecidedError("deepspeed")
    return bool(stage == 3)


def is_distributed(options: Options) -> bool:
    """Whether torch.distributed starts the processes, be it one."""
    run, launcher = options.run, options.run.launcher
    world = launcher.world_size
    if "USE_RAY" in run.environment or world is None:
        raise UndecidedError("processes")
    if world > 1 or launcher.name in ("torchrun", "deepspeed"):
        return True
    if launcher.name not in ("python", "llamafactory"):
        raise UndecidedError("processes")
    forced = ("FORCE_TORCHRUN", "NPROC_PER_NODE", "LOCAL_RANK", "WORLD_SIZE")
    if any(name in run.environment for name in forced):
        raise UndecidedError("processes")
    return False


def single_process(options: Options) -> bool:
    """Whether one process is started that torch.distributed knows nothing of."""
    return not is_distributed(options)


def reports_to(options: Options) -> list[Any]:
    """The trackers, as Transformers leaves them."""
    value = options["report_to"]
    if value is None or value in ("all", ["all"]):
        raise UndecidedError("report_to")  # all that are installed
    trackers = value if isinstance(value, list) else [value]
    if not all(known(one) and isinstance(one, str) for one in trackers):
        raise UndecidedError("report_to")
    return [] if trackers == ["none"] else trackers


def evaluates(options: Options) -> bool:
    """``do_eval``, which a strategy of evaluation turns on."""
    for name in ("eval_strategy", "evaluation_strategy"):
        if name in options.given:
            value = options[name]
            if value is None:
                raise UndecidedError(name)
            if value is not False and str(value) != "no":
                return True
    return on(options, "do_eval")


def has_no_evaluation_data(options: Options) -> bool:
    """Whether neither a set nor a share of the training set is there to evaluate on."""
    return not given(options, "eval_dataset") and options["val_size"] < LEAST
