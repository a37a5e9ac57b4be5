"""What TRL's configurations say of a model that its trainer loads by name."""

from __future__ import annotations

from collections.abc import Mapping

from flake8_gpu_training.facts import Argument, Call, Origin, Setting, Unknown
from flake8_gpu_training.frameworks.hub_models import attention_of
from flake8_gpu_training.runs.model import Run


def initialization(run: Run) -> list[tuple[Call, Argument]]:
    """Calls of TRL's configurations with ``model_init_kwargs``, and that argument."""
    calls = (call for file in run.python for call in file.calls)
    given = [(call, call.keywords.get("model_init_kwargs")) for call in calls]
    return [(c, a) for c, a in given if a is not None and a.value is not None]


def attention_told(run: Run) -> dict[str, Setting]:
    """The attention of a model that TRL loads by name with ``model_init_kwargs``.

    Its trainers refuse them beside a model that is loaded already: other loads are of others.
    """
    for call, argument in initialization(run):
        told = argument.value
        if isinstance(told, Mapping):
            value = told.get("attn_implementation")
            if value is None:
                return {}
            value = attention_of(value)
        else:
            value = Unknown("model_init_kwargs are not all known")
        note = f"{call.method}: model_init_kwargs"
        place = argument.location
        return {"attention": Setting("attention", value, place, Origin.CONSTRUCTOR, note)}
    return {}
