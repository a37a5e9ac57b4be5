"""Keeps keys, tokens and passwords out of runs and of what is shown of them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any

from flake8_gpu_training.facts import Setting, Unknown, Word, known
from flake8_gpu_training.runs.model import Run
from flake8_gpu_training.runs.settings import option_name

MASK = "***"
_SHORTEST = 6
"""A variable's value of fewer characters is not looked for in a command's text."""
_SECRET = re.compile(
    r"(?i)(?:.*[_.-])?(?:(?:api|access|secret|private|auth|account|client|encryption|license|wandb"
    r"|swanlab|openai|azure|aws|storage|ssh)[_-]?key(?:_id)?"
    r"|(?:hub|hf|hugging_?face|hugging_?face_hub|api|auth|access|use_auth|wandb|swanlab|modelscope|ms"
    r"|sdk|github|gitlab|git|bearer|bot|session|webhook|telegram|slack|refresh|id|login|feishu|lark)"
    r"[_-]?token|.*secret|.*password|.*passwd|.*credentials?|(?:lark|feishu|swanlab)_.*secret)"
)
# In the environment every name that ends so is one; parameters have ``eos_token`` and the like.
_SECRET_VARIABLE = re.compile(r"(?:.*_)?(?:KEY|KEYS|TOKEN|SECRET|PASSWORD|PASSWD|PWD|CREDENTIALS?)")
_NOT_SECRET = frozenset({"PWD", "OLDPWD"})
# Tokens that tell themselves by their form, wherever they stand.
_FORMS = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{20,}|sk-[\w-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|AKIA\w{16})\b"
)
_URL_PASSWORD = re.compile(r"(?<=://)[^/@\s:]+:[^/@\s]+(?=@)")


def is_secret(name: str) -> bool:
    """Whether a parameter or variable of this name holds a secret."""
    if name in _NOT_SECRET:
        return False
    return bool(_SECRET.fullmatch(name) or _SECRET_VARIABLE.fullmatch(name))


def hidden(setting: Setting) -> Setting:
    """``setting``, its value unknown when it is a secret."""
    value = setting.value
    if not known(value) or value is None or isinstance(value, bool) or value == "":
        return setting
    if isinstance(value, Mapping):
        return _hidden_within(setting, value)
    formed = isinstance(value, str) and masked(value) != value
    if not formed and not is_secret(setting.name):
        return setting
    return dataclasses.replace(
        setting, value=Unknown("secret"), note="", text="", value_location=None
    )


def _hidden_within(setting: Setting, value: Mapping[str, Any]) -> Setting:
    inner = {key: Unknown("secret") for key, item in value.items() if _is_told(key, item)}
    if not inner:
        return setting
    return dataclasses.replace(setting, value={**value, **inner}, note="", text="")


def _is_told(key: Any, item: Any) -> bool:
    return isinstance(key, str) and isinstance(item, str) and item != "" and is_secret(key)


def without_secrets(settings: Mapping[str, Setting]) -> Mapping[str, Setting]:
    """``settings`` with every secret's value unknown."""
    found = {name: hidden(setting) for name, setting in settings.items()}
    return found if any(found[name] is not settings[name] for name in found) else settings


def masked(text: str) -> str:
    """``text`` without what is a token by its form, or the password of an address."""
    return _URL_PASSWORD.sub(MASK, _FORMS.sub(MASK, text))


def shown_command(run: Run) -> str:
    """The text of the run's command as a report may show it; empty when it has none."""
    if run.command is None:
        return ""
    text = " ".join(_shown(run.command.words))
    for name, setting in run.command.environment.items():
        value = setting.value
        if is_secret(name) and isinstance(value, str) and len(value) >= _SHORTEST:
            text = text.replace(value, MASK)
    return text


def _shown(words: tuple[Word, ...]) -> Iterator[str]:
    is_value = False
    for word in words:
        text = word.text
        name, equals, value = text.partition("=")
        if is_value and not text.startswith("-"):
            yield MASK if known(word.value) else text
        elif equals and value and is_secret(option_name(name)):
            yield f"{name}={MASK}"
        else:
            yield masked(text)
        is_value = text.startswith("-") and not equals and is_secret(option_name(text))
