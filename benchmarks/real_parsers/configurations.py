"""Configurations of the four frameworks: what is set, and the small project that sets it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml


class Raw(str):
    """A value that is written as it is, without quotes."""

    __slots__ = ()


@dataclass(frozen=True)
class Item:
    """One setting as it is written; ``is_bare``: a flag without a value."""

    name: str
    value: Any
    is_bare: bool = False


@dataclass(frozen=True)
class Configuration:
    """``form``: ``flags``, ``yaml``, ``json`` or ``keywords``. ``kind``: the mutation, "valid"
    for none; ``touched``: the names that it is about."""

    framework: str
    command: str
    form: str
    items: tuple[Item, ...]
    kind: str = "valid"
    touched: tuple[str, ...] = field(default=())

    @property
    def names(self) -> frozenset[str]:
        """All names that are set."""
        return frozenset(item.name for item in self.items)

    def written(self) -> Mapping[str, str]:
        """The files of the project, by name."""
        return {name: text for name, text in _FILES[self.framework](self) if text}

    def argv(self) -> Sequence[str]:
        """The command, as the words that a process gets."""
        return shlex.split(self.written()["run.sh"].replace("\\\n", " "))

    def shown(self) -> str:
        """The settings, for a reader."""
        return "; ".join(f"{one.name}={_for_yaml(one.value)}" for one in self.items)


def write(one: Configuration, folder: Path, versions: Mapping[str, str]) -> None:
    """Write the project, pinned to ``versions``."""
    folder.mkdir(parents=True)
    pins = "".join(f"{name}=={version}\n" for name, version in versions.items())
    (folder / "requirements.txt").write_text(pins, encoding="utf-8")
    for name, text in one.written().items():
        (folder / name).write_text(text, encoding="utf-8")


# --- files ----------------------------------------------------------------------------


def _of_transformers(one: Configuration) -> Iterator[tuple[str, str]]:
    if one.form == "keywords":
        yield "train.py", _CONSTRUCTED.format(name=one.command, arguments=_keywords(one.items))
        yield "run.sh", "python train.py\n"
        return
    yield "train.py", _PARSED.format(name=one.command)
    yield from _with_file(one, "python train.py", "")


def _of_trl(one: Configuration) -> Iterator[tuple[str, str]]:
    yield from _with_file(one, f"trl {one.command}", "--config ")


def _of_llamafactory(one: Configuration) -> Iterator[tuple[str, str]]:
    yield from _with_file(one, "llamafactory-cli train", "")


def _of_swift(one: Configuration) -> Iterator[tuple[str, str]]:
    yield from _with_file(one, f"swift {one.command}", "")


_FILES = {
    "transformers": _of_transformers,
    "trl": _of_trl,
    "llamafactory": _of_llamafactory,
    "ms-swift": _of_swift,
}


def _with_file(one: Configuration, command: str, lead: str) -> Iterator[tuple[str, str]]:
    if one.form == "flags":
        yield "run.sh", " \\\n    ".join([command, *map(_flag, one.items)]) + "\n"
    elif one.form == "json":
        yield "args.json", _json(one.items)
        yield "run.sh", f"{command} {lead}args.json\n"
    else:
        yield "args.yaml", "".join(f"{i.name}: {_for_yaml(i.value)}\n" for i in one.items)
        yield "run.sh", f"{command} {lead}args.yaml\n"


def _flag(item: Item) -> str:
    if item.is_bare:
        return f"--{item.name}"
    if isinstance(item.value, list):
        return " ".join([f"--{item.name}", *(shlex.quote(_word(part)) for part in item.value)])
    return f"--{item.name} {shlex.quote(_word(item.value))}"


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value) if isinstance(value, dict) else str(value)


def _for_yaml(value: Any) -> str:
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, (dict, list)):
        return json.dumps(value)
    return yaml.safe_dump(value, width=1000).removesuffix("\n").removesuffix("\n...")


def _json(items: Sequence[Item]) -> str:
    lines = (f"  {json.dumps(i.name)}: {json.dumps(_plain(i.value))}" for i in items)
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _keywords(items: Sequence[Item]) -> str:
    return "".join(f"        {i.name}={_plain(i.value)!r},\n" for i in items)


def _plain(value: Any) -> Any:
    return yaml.safe_load(value) if isinstance(value, Raw) else value


_PARSED = """\
import sys

from transformers import AutoModelForCausalLM, HfArgumentParser, Trainer, {name}


def main():
    parser = HfArgumentParser({name})
    if len(sys.argv) == 2 and sys.argv[1].endswith(".json"):
        (args,) = parser.parse_json_file(sys.argv[1])
    elif len(sys.argv) == 2 and sys.argv[1].endswith(".yaml"):
        (args,) = parser.parse_yaml_file(sys.argv[1])
    else:
        (args,) = parser.parse_args_into_dataclasses()
    model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")
    Trainer(model=model, args=args, train_dataset=load(), eval_dataset=load("test")).train()


if __name__ == "__main__":
    main()
"""
_CONSTRUCTED = """\
from transformers import AutoModelForCausalLM, Trainer, {name}


def main():
    args = {name}(
{arguments}    )
    model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-0.5B")
    Trainer(model=model, args=args, train_dataset=load(), eval_dataset=load("test")).train()


if __name__ == "__main__":
    main()
"""
