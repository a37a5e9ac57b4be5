"""Command-line options that a Python file declares: argparse, click and typer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import libcst as cst

from flake8_gpu_training.facts import Argument, Call, Location, Option, Unknown, known
from flake8_gpu_training.sources._python_scopes import Scope, dotted_name, resolve
from flake8_gpu_training.sources._python_walk import ParameterDraft


class _Builder(Protocol):
    def value(self, node: cst.BaseExpression, scope: Scope) -> Any: ...

    def argument(self, node: cst.BaseExpression, scope: Scope, place: cst.CSTNode) -> Argument: ...

    def at(self, node: cst.CSTNode) -> Location: ...


class OptionReader:
    """Gathers the options among a file's calls and parameters."""

    def __init__(self, builder: _Builder) -> None:
        self._builder = builder
        self._found: list[Option] = []
        self._defaults: dict[str, Any] = {}

    def options(self) -> list[Option]:
        """The options, with defaults that ``parser.set_defaults`` gives."""
        return [
            replace(option, default=self._defaults[option.name])
            if option.name in self._defaults
            else option
            for option in self._found
        ]

    def take(self, call: Call) -> bool:
        """Read an option out of a call; tell whether it declares one."""
        if call.method == "add_argument" and not call.is_decorator:
            return self._add(call, _flags(call), call.location)
        if call.name in ("click.option", "click.argument"):
            return self._add(call, _flags(call), call.location)
        if call.method == "set_defaults" and not call.positional:
            for name, argument in call.keywords.items():
                self._defaults[name] = argument.value
        return False

    def take_parameters(self, parameters: Sequence[ParameterDraft]) -> None:
        """Read typer's options: ``lr: float = typer.Option(1e-4, "--lr")``."""
        for draft in parameters:
            node = draft.default
            if not isinstance(node, cst.Call):
                continue
            if resolve(dotted_name(node.func), draft.scope) not in (
                "typer.Option",
                "typer.Argument",
            ):
                continue
            values = [
                self._builder.value(arg.value, draft.scope) for arg in node.args if _plain(arg)
            ]
            flags = [value for value in values[1:] if isinstance(value, str)]
            default = next(iter(values), None)
            for arg in node.args:
                if arg.keyword is not None and arg.keyword.value == "default":
                    default = self._builder.value(arg.value, draft.scope)
            required = isinstance(default, Unknown) and default.reason == "..."
            self._found.append(
                Option(
                    name=draft.name,
                    flags=tuple(flags) or (f"--{draft.name.replace('_', '-')}",),
                    location=self._builder.at(draft.node),
                    default=None if required else default,
                    required=required,
                )
            )

    def _add(self, call: Call, flags: tuple[str, ...], location: Location) -> bool:
        if not flags:
            return False
        keywords = call.keywords
        action = _text(keywords, "action").rpartition(".")[2]
        if not action and _is_true(keywords, "is_flag"):
            action = "store_true"
        default = keywords["default"].value if "default" in keywords else None
        if default is None and "default" not in keywords:
            default = {"store_true": False, "store_false": True}.get(action)
        choices = keywords["choices"].value if "choices" in keywords else ()
        positional = not flags[0].startswith("-")
        self._found.append(
            Option(
                name=_option_name(call, flags),
                flags=flags,
                location=location,
                default=default,
                type=keywords["type"].text if "type" in keywords else "",
                action=action,
                choices=tuple(choices) if isinstance(choices, (list, tuple)) else (),
                required=_is_true(keywords, "required") or positional,
            )
        )
        return True


def _plain(argument: cst.Arg) -> bool:
    return argument.keyword is None and not argument.star


def _flags(call: Call) -> tuple[str, ...]:
    values = [argument.value for argument in call.positional]
    return tuple(value for value in values if isinstance(value, str) and value)


def _option_name(call: Call, flags: tuple[str, ...]) -> str:
    if "dest" in call.keywords and isinstance(call.keywords["dest"].value, str):
        return str(call.keywords["dest"].value)
    plain = [flag for flag in flags if not flag.startswith("-")]
    if plain:
        # click names the parameter by a bare word among the flags.
        return plain[0].replace("-", "_")
    long = [flag for flag in flags if flag.startswith("--")]
    return (long or list(flags))[0].partition("/")[0].lstrip("-").replace("-", "_")


def _text(keywords: Any, name: str) -> str:
    if name not in keywords:
        return ""
    argument = keywords[name]
    return argument.value if isinstance(argument.value, str) else str(argument.text)


def _is_true(keywords: Any, name: str) -> bool:
    return name in keywords and known(keywords[name].value) and keywords[name].value is True
