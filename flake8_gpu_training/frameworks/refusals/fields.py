"""Rules about one field: what it may be, of which type, in which range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable

from flake8_gpu_training.facts import Origin
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal, UndecidedError
from flake8_gpu_training.language import Text

_KINDS = {
    int: Text("整数", "a whole number"),
    float: Text("带小数点的数", "a number with a decimal point"),
    bool: Text("True 或 False", "True or False"),
    str: Text("字符串", "a text"),
    list: Text("列表", "a list"),
    dict: Text("字典", "a dict"),
}


def _is_told_by_parser(options: Options, name: str) -> bool:
    """Whether a flag is compared with choices before the field is validated (GPU009)."""
    setting, parameter = options.given.get(name), options.accepted.parameters.get(name)
    is_flag = setting is not None and setting.origin is Origin.FLAG
    return is_flag and parameter is not None and bool(parameter.choices)


def satisfying(
    group: str,
    parameter: str,
    holds: Callable[[Any], bool],
    wanted: Text,
    source: str,
    *,
    when: Callable[[Options], bool] = lambda options: True,
    since: str = "",
    until: str = "",
) -> Refusal:
    """The field must satisfy ``holds``, where ``when`` tells that it is asked at all."""

    def refused(options: Options) -> bool:
        if _is_told_by_parser(options, parameter):
            return False
        return when(options) and not holds(options[parameter])

    return Refusal(
        f"{group}.{parameter}",
        source,
        (parameter,),
        refused,
        Text(f"{parameter} 应为{wanted.zh}", f"give {parameter} {wanted.en}"),
        Text(f"{parameter}={{{parameter}}} 不是", f"{parameter}={{{parameter}}} is not allowed"),
        groups=(group,),
        since=since,
        until=until,
    )


def among(
    group: str,
    parameter: str,
    choices: Sequence[Any],
    source: str,
    *,
    when: Callable[[Options], bool] = lambda options: True,
    since: str = "",
    until: str = "",
) -> Refusal:
    """The field must be one of the choices; None is one where it is listed."""
    shown = [str(one) for one in choices if one is not None]
    wanted = Text(
        f" {'、'.join(shown)} 之一" if len(shown) > 1 else f" {shown[0]}",
        f"one of {', '.join(shown)}" if len(shown) > 1 else shown[0],
    )

    def holds(value: Any) -> bool:
        return value in choices

    return satisfying(group, parameter, holds, wanted, source, when=when, since=since, until=until)


def typed(
    group: str,
    parameter: str,
    kind: type,
    source: str,
    *,
    optional: bool = False,
    since: str = "",
    until: str = "",
) -> Refusal:
    """The field must be of a type; where ``optional``, or None."""

    def holds(value: Any) -> bool:
        if kind is not str and isinstance(value, str) and "." in value:
            raise UndecidedError(parameter)  # the name of an object
        return isinstance(value, kind) or (optional and value is None)

    return satisfying(group, parameter, holds, _KINDS[kind], source, since=since, until=until)


def exclusive(
    group: str,
    name: str,
    dropped: str,
    kept: str,
    why: Text,
    source: str,
    *,
    since: str = "",
    until: str = "",
) -> Refusal:
    """Two switches that cannot both be on."""
    return Refusal(
        name,
        source,
        (dropped, kept),
        lambda options: bool(options[dropped]) and bool(options[kept]),
        Text(f"只保留 {kept} 或 {dropped}", f"drop {dropped} or {kept}"),
        why,
        groups=(group,),
        since=since,
        until=until,
    )
