"""Practices that follow from a call and its arguments, with the place of either."""

from __future__ import annotations

from typing import Any, Optional

from flake8_gpu_training.facts import Argument, Call, Origin, Setting, known


def given(name: str, value: Any, call: Call, argument: Optional[Argument] = None) -> Setting:
    """The practice ``name`` as ``argument`` of ``call`` sets it, or as the call itself does.

    An argument that is not known leaves the practice unknown, whatever ``value`` is.
    """
    if argument is None:
        return Setting(name, value, call.location, Origin.CONSTRUCTOR, f"{call.name}(...)")
    keyword = next((key for key, item in call.keywords.items() if item is argument), call.method)
    return Setting(
        name,
        value if known(argument.value) else argument.value,
        argument.location,
        Origin.CONSTRUCTOR,
        f"{keyword}={argument.written}",
        argument.text,
        argument.value_location if argument.text else None,
    )
