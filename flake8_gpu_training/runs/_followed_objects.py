"""Arguments objects of trainers, as a program changes them between making and passing them."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Optional

from flake8_gpu_training.facts import Call, Origin, Setting, Unknown
from flake8_gpu_training.runs._followed import (
    Class,
    External,
    Given,
    Placed,
    Table,
    doubt_all,
    joined,
    plain,
)
from flake8_gpu_training.runs._followed_operators import text_of
from flake8_gpu_training.runs.python_entry import TRAINER_ARGUMENTS

if TYPE_CHECKING:
    from flake8_gpu_training.runs.following import Follower, Outcome

Key = tuple[str, int, int]
"""The end of the call that made an object."""
BY_PARSER: Key = ("", 0, 0)
"""The object that a parser of dataclasses made."""


class TrainerArguments(Table):
    """An object of the Trainer's arguments: what was changed since it was made.

    ``doubt`` is the follower's when the object was made: what is certain there is certain here.
    ``is_lost``: code that is not followed may have set any attribute; ``is_changed``: it may
    have done so after flags had set them.
    """

    __slots__ = ("changed", "doubt", "is_changed", "is_lost", "is_made", "key")

    def __init__(self, doubt: int, key: Key = BY_PARSER) -> None:
        self.changed: set[str] = set()
        self.doubt = doubt
        self.is_made = False
        self.is_lost = False
        self.is_changed = False
        self.key = key
        super().__init__(is_open=True)

    def put(self, key: Any, value: Any, doubt: bool = False) -> None:
        """Set an attribute; in ``doubt`` it may as well have stayed what it was."""
        if self.is_made and isinstance(key, str):
            self.changed.add(key)
        super().put(key, value, doubt)

    def copy(self, depth: int = 0) -> TrainerArguments:
        """A copy that remembers where it comes from."""
        made = TrainerArguments(self.doubt, self.key)
        made.kind, made.omega = self.kind, self.omega
        for name, value in self.entries.items():
            made.put(name, value.copy(depth + 1) if isinstance(value, Table) else value)
        made.changed, made.is_made = set(self.changed), True
        made.is_lost, made.is_changed = self.is_lost, self.is_changed
        return made


def is_arguments(kind: Any) -> bool:
    """Whether a class is, or derives from, one of the Trainer's arguments."""
    if isinstance(kind, Class):
        return any(is_arguments(b) for c in kind.lineage() for b in c.bases if b is not kind)
    return isinstance(kind, External) and kind.name.rpartition(".")[2] in TRAINER_ARGUMENTS


def passed_through(owner: Table) -> Table:
    """What a function that is not followed gives back of an object it gets: the same, changed."""
    made = owner.copy()
    change_unseen(made)
    return made


def change_unseen(owner: Table) -> None:
    """Code that is not followed may set any key of ``owner``."""
    doubt_all(owner)
    if isinstance(owner, TrainerArguments):
        owner.is_lost = owner.is_changed = True


def are_lost(call: Optional[Call], outcome: Outcome) -> bool:
    """Whether code that is not followed may have set any attribute of a trainer's arguments."""
    table = _arguments_of(call, outcome)
    return table is not None and table.is_lost


def are_changed(call: Optional[Call], outcome: Outcome) -> bool:
    """Whether such code may have changed what flags had set."""
    table = _arguments_of(call, outcome)
    return table is not None and table.is_changed


def _arguments_of(call: Optional[Call], outcome: Outcome) -> Optional[TrainerArguments]:
    key = BY_PARSER
    if call is not None:
        if call.end is None:
            return None
        key = (call.location.path, call.end.line, call.end.column)
    return outcome.objects.get(key)


def arguments_of_library(
    follower: Follower, values: Mapping[Any, Any], key: Key = BY_PARSER
) -> TrainerArguments:
    """An object of a library's own class of arguments."""
    made = TrainerArguments(follower.doubt, key)
    for name, value in values.items():
        made.put(name, value)
    made.is_made = True
    return made


def note_trainer(follower: Follower, node: ast.Call, given: Given) -> None:
    """Note which arguments object a trainer is built with."""
    if not text_of(node.func).endswith("Trainer"):
        return
    objects = follower.made.objects
    for value in (*given.positional, *given.keywords.values()):
        if isinstance(value, TrainerArguments):
            other = objects.get(value.key, value)
            objects[value.key] = value if other is value else _either(other, value)


def _either(one: TrainerArguments, other: TrainerArguments) -> TrainerArguments:
    made = one.copy()
    made.is_lost = one.is_lost or other.is_lost
    made.is_changed = one.is_changed or other.is_changed
    made.changed |= other.changed
    for name in made.changed:
        missing = Unknown("set in a branch")
        values = (item.entries.get(name, missing) for item in (one, other))
        made.entries[name] = joined(*values)
    return made


# Parameters of the methods of TrainingArguments, and the attributes that they set.
_SETTERS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "set_training": {
            "learning_rate": "learning_rate",
            "batch_size": "per_device_train_batch_size",
            "weight_decay": "weight_decay",
            "num_epochs": "num_train_epochs",
            "max_steps": "max_steps",
            "gradient_accumulation_steps": "gradient_accumulation_steps",
            "seed": "seed",
            "gradient_checkpointing": "gradient_checkpointing",
        },
        "set_dataloader": {
            "train_batch_size": "per_device_train_batch_size",
            "eval_batch_size": "per_device_eval_batch_size",
            "drop_last": "dataloader_drop_last",
            "num_workers": "dataloader_num_workers",
            "pin_memory": "dataloader_pin_memory",
            "persistent_workers": "dataloader_persistent_workers",
            "prefetch_factor": "dataloader_prefetch_factor",
            "auto_find_batch_size": "auto_find_batch_size",
            "ignore_data_skip": "ignore_data_skip",
        },
        "set_optimizer": {
            "name": "optim",
            "learning_rate": "learning_rate",
            "weight_decay": "weight_decay",
        },
        "set_save": {
            "strategy": "save_strategy",
            "steps": "save_steps",
            "total_limit": "save_total_limit",
        },
        "set_logging": {
            "strategy": "logging_strategy",
            "steps": "logging_steps",
            "report_to": "report_to",
        },
        "set_evaluate": {
            "strategy": "eval_strategy",
            "steps": "eval_steps",
            "batch_size": "per_device_eval_batch_size",
        },
        "set_lr_scheduler": {
            "name": "lr_scheduler_type",
            "num_epochs": "num_train_epochs",
            "max_steps": "max_steps",
            "warmup_ratio": "warmup_ratio",
            "warmup_steps": "warmup_steps",
        },
    }
)


def set_by_method(follower: Follower, owner: Table, name: str, given: Given) -> bool:
    """Whether ``name`` is one of the arguments' own setters; what it sets is then set."""
    names = _SETTERS.get(name) if isinstance(owner, TrainerArguments) else None
    if names is None:
        return False
    # Releases differ in the order of the parameters behind the first three.
    values = {**dict(zip(names, given.positional[:3])), **given.keywords}
    for parameter, attribute in names.items():
        # What is not given becomes the method's own default, not what it was.
        follower.put(owner, attribute, values.get(parameter, Unknown(f"{name} sets it")))
    return True


def changed_settings(call: Optional[Call], outcome: Outcome) -> Optional[dict[str, Setting]]:
    """What a program changed in the arguments that ``call`` (or a parser) made.

    None when no trainer was seen to be built with them.
    """
    key = BY_PARSER
    if call is not None:
        if call.end is None:
            return None
        key = (call.location.path, call.end.line, call.end.column)
    table = outcome.objects.get(key)
    if table is None:
        return None
    found: dict[str, Setting] = {}
    for name in sorted(table.changed):
        value = table.entries.get(name, Unknown("deleted"))
        place = call.location if call is not None else None
        setting = Setting(name, plain(value), place, Origin.CONSTRUCTOR)
        if isinstance(value, Placed):
            setting = dataclasses.replace(
                value.setting, name=name, value=plain(value), origin=Origin.CONSTRUCTOR
            )
        found[name] = setting
    return found
