"""Values of a kind that TrainingArguments and the Trainer cannot reckon with: texts, lists."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Callable, Optional

from flake8_gpu_training.facts import Location, Origin, Setting, known
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal, UndecidedError
from flake8_gpu_training.frameworks.refusals.transformers.arguments import GROUPS, evaluation
from flake8_gpu_training.frameworks.refusals.transformers.training import trains
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

_ARGUMENTS = "transformers/training_args.py, TrainingArguments.__post_init__"
_TRAINER = "transformers/trainer.py, Trainer"
_STARTS = "training stops as it starts, where the Trainer reckons with it"
_TO_FILL_IN = re.compile(r"(?i)[<>{}$]|%\w|your|xx|todo")

# --- who converts what a file holds -----------------------------------------------------

_PLAIN = frozenset({"yaml", "json", "transformers.HfArgumentParser"})
"""Who leaves a value the type it is written with; to PyYAML 1e-4 is a text."""
_CONVERTERS = re.compile(
    r"^(?:argparse|click|fire|hydra|jsonargparse|omegaconf|ruamel|typer|yacs)\b|"
    r"\b(?:TrlParser|H4ArgumentParser)$"
)
"""Who may turn a text into a number on the way."""


def _stays_as_written(run: Run) -> bool:
    """Whether values of the run's files reach the arguments with the type they are written with."""
    imports = [item for file in run.python for item in file.imports]
    names = {f"{item.module}.{item.name}".rstrip(".") for item in imports}
    return not _PLAIN.isdisjoint(names) and not any(_CONVERTERS.search(name) for name in names)


def _raw(options: Options, name: str) -> Any:
    """The value as it reaches the arguments; raises UndecidedError where it may be converted."""
    setting = options.given.get(name)
    if setting is None or not known(setting.value) or not _reaches(options, setting):
        raise UndecidedError(name)
    return setting.value


def _reaches(options: Options, setting: Setting) -> bool:
    if any(part.distribution == "ms-swift" for part in options.accepted.parts):
        return False  # its file becomes flags
    if setting.origin not in (Origin.CONSTRUCTOR, Origin.FILE):
        return False
    if not isinstance(setting.value, str) or _LITERAL.fullmatch(setting.text.strip()):
        return True
    return _stays_as_written(options.run)


_LITERAL = re.compile(r"""[rRuU]?("[^"\\]*"|'[^'\\]*')""")


def _in_file(name: str) -> Callable[[Options], Optional[Location]]:
    """Where a file has the value that code hands on; None where code has it."""

    def place(options: Options) -> Optional[Location]:
        given, written = options.given.get(name), options.run.settings.get(name)
        if given is None or written is None or given.text or written.origin is not Origin.FILE:
            return None
        return written.location if written.value == given.value else None

    return place


# --- numbers ----------------------------------------------------------------------------


def _is_no_number(value: Any) -> bool:
    if isinstance(value, str):
        return not _TO_FILL_IN.search(value)
    return isinstance(value, (list, dict))


def _how(options: Options, name: str) -> Mapping[str, Any]:
    """How to write the number, and what it is now, in both languages."""
    value = _raw(options, name)
    if not isinstance(value, str):
        return {
            "zh": f"{name} 写成一个数字",
            "en": f"give {name} one number",
            "kind_zh": "列表或映射",
            "kind_en": "a list or mapping",
        }
    figure = _figure(value)
    plain = options.given[name].text == "" and bool(_NO_FLOAT.fullmatch(value))
    return {
        "zh": f"{name} 写成 {figure or '一个数字'}" + ("" if plain or not figure else "，不带引号"),
        "en": f"write {figure or 'a number'} for {name}"
        + ("" if plain or not figure else ", without quotation marks"),
        "kind_zh": "文本（PyYAML 只把带小数点的写法读作浮点数）" if plain else "文本",
        "kind_en": "a text (to PyYAML a float has a point)" if plain else "a text",
    }


_NO_FLOAT = re.compile(r"([+-]?\d+)[eE]([+-]?)(\d+)")
"""What is a number to people, and a text to PyYAML."""


def _figure(text: str) -> str:
    """The number that a text stands for, as YAML 1.1 and Python both read it; "" for none."""
    bare = text.strip()
    try:
        number = float(bare)
    except ValueError:
        return ""
    power = _NO_FLOAT.fullmatch(bare)
    if power is not None:
        return f"{power[1]}.0e{power[2] or '+'}{power[3]}"
    return bare if re.fullmatch(r"[+-]?\d+", bare) else str(number)


def _always(options: Options) -> bool:
    return True


def _in_training(options: Options) -> bool:
    trains(options)
    return True


def _by_steps(kind: str) -> Callable[[Options], bool]:
    def holds(options: Options) -> bool:
        asked = evaluation(options) if kind == "eval" else options[f"{kind}_strategy"]
        return bool(asked == "steps")

    return holds


def _by_epochs(options: Options) -> bool:
    trains(options)
    return bool(options["max_steps"] <= 0)


def _number(
    name: str, when: Callable[[Options], bool] = _always, stops: str = "", since: str = ""
) -> Refusal:
    """A parameter that has to be a number, and is not converted into one."""
    return Refusal(
        f"{name.replace('_', '-')}-no-number",
        _TRAINER if stops else _ARGUMENTS,
        (name,),
        lambda options: _is_no_number(_raw(options, name)) and when(options),
        Text("{zh}", "{en}"),
        Text(f"{{{name}}} 是{{kind_zh}}，不是数字", f"{{{name}}} is {{kind_en}}, not a number"),
        figures=lambda options: _how(options, name),
        at=_in_file(name),
        stops=stops,
        groups=GROUPS,
        since=since,
    )


# --- the rest ---------------------------------------------------------------------------


def _is_no_path(options: Options) -> bool:
    return isinstance(_raw(options, "output_dir"), (bool, int, float, list, dict))


def _halves_twice(options: Options) -> bool:
    """Both are on by the rules of Python, one at least as a text; GPU010 tells the rest."""
    values = [_truth(options, "fp16"), _truth(options, "bf16")]
    return all(values) and any(isinstance(value, str) for value in values)


def _truth(options: Options, name: str) -> Any:
    value = _raw(options, name)
    return value if isinstance(value, (bool, str)) else False


REFUSALS: tuple[Refusal, ...] = (
    _number("logging_steps", _by_steps("logging")),
    _number("eval_steps", _by_steps("eval")),
    _number("save_steps", _by_steps("save")),
    _number("warmup_steps", since="5.0.0"),
    _number("ddp_timeout"),
    _number("dataloader_num_workers", _in_training, _STARTS),
    _number("learning_rate", _in_training, _STARTS),
    _number("num_train_epochs", _by_epochs, _STARTS),
    _number("max_steps", _in_training, _STARTS),
    _number("per_device_train_batch_size", _in_training, _STARTS),
    _number("gradient_accumulation_steps", _in_training, _STARTS),
    _number("weight_decay", _in_training, _STARTS),
    _number("max_grad_norm", _in_training, _STARTS),
    Refusal(
        "output-directory-no-path",
        _ARGUMENTS,
        ("output_dir",),
        _is_no_path,
        Text("output_dir 写成一个路径", "give output_dir the path of a folder"),
        Text("{output_dir} 不是路径", "{output_dir} is not allowed"),
        groups=GROUPS,
    ),
    Refusal(
        "half-precision-by-text",
        _ARGUMENTS,
        ("fp16", "bf16"),
        _halves_twice,
        Text(
            "fp16 与 bf16 只保留一个，另一个写成不带引号的 false",
            "keep fp16 or bf16, and write false without quotation marks for the other",
        ),
        Text(
            "任何非空文本都算开启，fp16 与 bf16 不能同时开启",
            "a text counts as on whatever it says, and both cannot be on",
        ),
        groups=GROUPS,
    ),
)
