"""Fields of pydantic's ``BaseSettings``: the environment goes before their defaults."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any, Optional

from flake8_gpu_training.facts import Unknown
from flake8_gpu_training.runs._followed import Class, External, Table, bare
from flake8_gpu_training.runs._followed_operators import text_of

if TYPE_CHECKING:
    from flake8_gpu_training.runs.following import Follower

_PREFIX = re.compile(r"env_prefix\s*=\s*(?:'(\w*)'|\"(\w*)\")")
_TRUTHS = {"1": True, "true": True, "yes": True, "on": True, "t": True, "y": True}
_LIES = {"0": False, "false": False, "no": False, "off": False, "f": False, "n": False}
_ALIASES = ("env", "alias", "validation_alias")


def fill_from_environment(follower: Follower, made: Table, kind: Class) -> None:
    """Set the fields of settings that environment variables give.

    Where a file of variables or the command line may give more, no default is certain.
    """
    if not _is_settings(kind):
        return
    configuration = _configuration(kind)
    for item in kind.lineage():
        for name in item.fields:
            found = _of_environment(follower, item, name, configuration)
            if found is not None:
                made.put(name, found)
            elif re.search(r"env_file|secrets_dir|cli_parse|\bcustomise", configuration):
                old = bare(made.entries.get(name, Unknown(name)))
                told = () if isinstance(old, Unknown) else (old,)
                made.put(name, Unknown(f"{name} may be set outside of the program", told))


def _is_settings(kind: Class) -> bool:
    bases = [base for item in kind.lineage() for base in item.bases]
    return any(isinstance(b, External) and b.name.endswith(".BaseSettings") for b in bases)


def _configuration(kind: Class) -> str:
    """What ``model_config`` and the class ``Config`` say, as text."""
    texts = ["customise" for item in kind.lineage() if item.find("settings_customise_sources")]
    told = kind.find("model_config")
    if isinstance(told, Unknown):
        texts.append(told.reason)
    elif isinstance(told, Table):
        texts += [f"{name}={bare(value)!r}" for name, value in told.entries.items()]
    inner = kind.find("Config")
    if isinstance(inner, Class):
        texts += [f"{name}={bare(value)!r}" for name, value in inner.attributes.items()]
    return "; ".join(texts)


def _of_environment(follower: Follower, kind: Class, name: str, configuration: str) -> Any:
    """What a variable gives a field, in whatever letters its name is; None without one."""
    match = _PREFIX.search(configuration)
    prefix = (match.group(1) or match.group(2) or "") if match is not None else ""
    names = _named(kind.fields[name]) or (f"{prefix}{name}",)
    for written in names:
        for variable in (written, written.upper(), written.lower()):
            value = follower.environ(variable)
            if value is not None:
                return _converted(value, kind, name)
    return None


def _named(default: Optional[ast.expr]) -> tuple[str, ...]:
    """Names of the variable that ``Field(env="X")`` gives."""
    if not isinstance(default, ast.Call):
        return ()
    return tuple(
        item.value.value
        for item in default.keywords
        if item.arg in _ALIASES
        and isinstance(item.value, ast.Constant)
        and isinstance(item.value.value, str)
    )


def _converted(value: Any, kind: Class, name: str) -> Any:
    if not isinstance(value, str):
        return value
    statement = kind.annotated.get(name)
    wanted = text_of(statement.annotation) if statement is not None else ""
    wanted = re.sub(r"Optional\[(\w+)\]|(\w+)\s*\|\s*None", r"\1\2", wanted)
    try:
        if wanted == "bool":
            return {**_TRUTHS, **_LIES}.get(value.lower(), Unknown(name))
        return {"int": int, "float": float}.get(wanted, str)(value)
    except ValueError:
        return Unknown(name)
