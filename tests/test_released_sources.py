"""Released sources become parameter tables without being imported."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

from released.archives import Module, Release, releases
from released.classes import NOTHING, ClassReader, Field
from released.mappings import KeyReader
from released.options import KeywordTables, annotated, named_in
from released.parsers import arguments, names, signature
from released.spans import dumped, shared, table

ENUMS = """\
from enum import Enum

class Strategy(str, Enum):
    NO = "no"
    STEPS = "steps"
"""
CONSTANTS = """\
ZERO = "zero"
STAGE = "stage"
STAGE_DEFAULT = 0
"""
SECTIONS = """\
from typing import Optional
from pydantic import BaseModel, Field
from .constants import *

class Model(BaseModel):
    class Config:
        extra = "forbid"

class Offload(Model):
    device: str = "none"

class Zero(Model):
    size: int = Field(pp_int(5e8), alias="stage3_size")
    offload: Optional[Offload] = None

class Open(BaseModel):
    level: int = 0

def get_stage(param_dict):
    if ZERO in param_dict.keys():
        section = param_dict[ZERO]
        return get_scalar_param(section, STAGE, STAGE_DEFAULT)

def get_type(param_dict, key="type"):
    for name in ["kind", "kinds"]:
        if name in param_dict:
            return param_dict.get(name, "plain")
    return get_scalar_param(param_dict, key, None)
"""
ENGINE = """\
from typing import TYPE_CHECKING, Any, Literal
from other import torch

if TYPE_CHECKING:
    from other import Method
else:
    Method = str

Half = Literal["half"]
DType = Literal["auto", Half]

@config
class ModelConfig:
    dtype: DType | torch.dtype = "auto"
    length: int | None = None
    method: Method | None = None
    eager: bool = False
    share: float = Field(default=0.9, gt=0)
    kind: Literal["a", "b"] | str = "a"
    seqs: int = 128

@dataclass
class EngineArgs:
    share: float = ModelConfig.share
    names: list[str] = get_field(ModelConfig, "seqs")

def get_kwargs(cls):
    for name in cls:
        if name == "length":
            return human_readable_int

def add(parser):
    model_kwargs = get_kwargs(ModelConfig)
    model_kwargs["seqs"]["type"] = parse
    parser.add_argument("--dtype", **model_kwargs["dtype"])
    parser.add_argument("--max-length", "-l", **model_kwargs["length"])
    parser.add_argument("--method", **model_kwargs["method"])
    parser.add_argument("--eager", **{**model_kwargs["eager"], "default": None})
    parser.add_argument("--share", **model_kwargs["share"], deprecated=True)
    parser.add_argument("--kind", **model_kwargs["kind"])
    seqs = model_kwargs["seqs"]
    parser.add_argument("--seqs", **seqs)
"""
ANNOTATED = """\
POLICIES = ["lru", "lfu"]

class Memory(Struct):
    policy: A[str, Arg(help="which", choices=POLICIES, aliases=["--evict"])] = "lru"
    tp_size: A[int, Arg(cli_name="--tensor-size")] = 1
    off: A[bool, "Turns it off."] = False
    extra: A[Optional[dict], Arg(type_parser=json.loads)] = None
    hidden: A[bool, Arg(no_cli=True)] = False
    plain: int = 0
"""
CLASSES = """\
import argparse
from dataclasses import dataclass, field
from typing import Literal, Optional, Union

from .enums import Strategy
from other import Elsewhere

WIDTH = 4 * 1024

@dataclass
class Base:
    bf16: bool = False
    strategy: Union[Strategy, str] = field(default="no", metadata={"help": "when"})

@dataclass
class Arguments(Base, Elsewhere):
    bf16: bool = True
    width: int = WIDTH
    mode: Optional[Literal["fast", "safe"]] = None
    names: list[str] = field(default_factory=list)
    evaluate: "Strategy | str" = Strategy.STEPS
    space: str | Literal[False] | None = None
    seed: int = field(init=False, default=1)
    made: str = field(default_factory=lambda: compute())

def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tp-size", "--tensor-parallel-size", type=int, default=1)
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--dtype", choices=["auto", "half"], default="auto")
    parser.add_argument("--ids", nargs="+", type=int)

class Loader:
    def __init__(self, data, batch_size: Optional[int] = 1, *, workers: int = 0): ...
"""


def wheel(folder: Path, version: str, files: dict[str, str]) -> None:
    with zipfile.ZipFile(folder / f"some_pkg-{version}-py3-none-any.whl", "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)


@pytest.fixture
def reader(tmp_path: Path) -> ClassReader:
    wheel(tmp_path, "1.0", {"pkg/__init__.py": "", "pkg/a.py": CLASSES, "pkg/enums.py": ENUMS})
    (release,) = releases(tmp_path, "some-pkg")
    return ClassReader(release)


def test_fields_have_types_defaults_and_choices_through_bases_and_imports(
    reader: ClassReader,
) -> None:
    module = reader.release.module("pkg/a.py")
    assert module is not None
    found = reader.find(module, "Arguments")
    assert found is not None
    fields, foreign = reader.fields(found)
    assert foreign == [("other", "Elsewhere")]
    assert fields == {
        "strategy": Field("strategy", ("str",), False, "no", ("no", "steps")),
        "bf16": Field("bf16", ("bool",), False, True),
        "width": Field("width", ("int",), False, 4096),
        "mode": Field("mode", ("str",), True, None, ("fast", "safe")),
        "names": Field("names", ("list",), False, []),
        "evaluate": Field("evaluate", ("str",), False, "steps", ("no", "steps")),
        "space": Field("space", ("bool", "str"), True, None),
        "made": Field("made", ("str",), False, NOTHING),
    }


def test_options_and_signatures_are_parameters(reader: ClassReader) -> None:
    module = reader.release.module("pkg/a.py")
    assert module is not None
    assert arguments(reader, module) == {
        "tp_size": Field("tp_size", ("int",), False, 1, (), ("tensor_parallel_size",)),
        "fast": Field("fast", ("bool",), False, False),
        "dtype": Field("dtype", ("str",), False, "auto", ("auto", "half")),
        "ids": Field("ids", ("list",), False, None),
    }
    assert signature(reader, module, "Loader.__init__") == {
        "data": Field("data"),
        "batch_size": Field("batch_size", ("int",), True, 1),
        "workers": Field("workers", ("int",), False, 0),
    }


def test_keys_that_code_reads_from_a_dictionary_stand_in_their_sections(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg/constants.py").write_text(CONSTANTS)
    (tmp_path / "pkg/config.py").write_text(SECTIONS)
    reader = ClassReader(Release("some-pkg", Version("1.0"), tmp_path))
    module = reader.release.module("pkg/config.py")
    assert module is not None
    assert KeyReader(reader, module, {"param_dict": ()}).keys() == {
        ("zero",): Field("zero"),
        ("zero", "stage"): Field("stage", default=0),
        ("kind",): Field("kind", default="plain"),
        ("type",): Field("type", default=None),
    }


def test_models_refuse_other_names_as_their_bases_do(tmp_path: Path) -> None:
    (tmp_path / "config.py").write_text(SECTIONS)
    reader = ClassReader(Release("some-pkg", Version("1.0"), tmp_path))
    module = reader.release.module("config.py")
    assert module is not None
    zero, other = reader.find(module, "Zero"), reader.find(module, "Open")
    assert zero is not None
    assert other is not None
    assert reader.refuses_others(zero)
    assert not reader.refuses_others(other)
    assert [name for name, _ in reader.models(zero)] == ["offload"]
    assert reader.fields(zero)[0]["size"] == Field(
        "size", ("int",), default=500000000, aliases=("stage3_size",)
    )


def read(folder: Path, text: str) -> tuple[ClassReader, Module]:
    (folder / "engine.py").write_text(text)
    reader = ClassReader(Release("some-pkg", Version("1.0"), folder), literals_only=True)
    module = reader.release.module("engine.py")
    assert module is not None
    return reader, module


def test_options_spread_from_a_class_have_its_types_and_defaults(tmp_path: Path) -> None:
    reader, module = read(tmp_path, ENGINE)
    tables = KeywordTables(reader, module, named_in(module, "get_kwargs"))
    assert arguments(reader, module, tables.option) == {
        "dtype": Field("dtype", ("str",), False, "auto", ("auto", "half")),
        "max_length": Field("max_length", ("?",), True, None, (), ("-l",)),
        "method": Field("method", ("str",), True, None),
        "eager": Field("eager", ("bool",), False, None, negatable=True),
        "share": Field("share", ("float",), False, 0.9, deprecated=True),
        "kind": Field("kind", ("str",), False, "a"),
        "seqs": Field("seqs", ("?",), False, 128),
    }
    found = reader.find(module, "EngineArgs")
    assert found is not None
    assert {n: f.default for n, f in reader.fields(found)[0].items()} == {
        "share": 0.9,
        "names": 128,
    }


def test_annotated_fields_are_options(tmp_path: Path) -> None:
    reader, module = read(tmp_path, ANNOTATED)
    found = reader.find(module, "Memory")
    assert found is not None
    assert list(annotated(reader, found)) == [
        Field("policy", ("str",), False, "lru", ("lru", "lfu"), ("evict",)),
        Field("tensor_size", ("int",), False, 1),
        Field("off", ("bool",), False, False),
        Field("extra", ("?",), True, None),
    ]


def test_versions_that_agree_are_one_span() -> None:
    old: dict[str, Any] = {"G": {"a": Field("a", ("int",), default=1), "b": Field("b")}}
    new: dict[str, Any] = {"G": {"a": Field("a", ("int",), default=2), "b": Field("b")}}
    data = table(
        "pkg",
        ["1.0", "1.1", "2.0"],
        [old, old, new],
        {"G": [["base", "B"]]},
        [{}, {"base": "<2"}, {}],
        [{"G"}, {"G"}, set()],
    )
    assert data["groups"]["G"] == {
        "since": 0,
        "until": 2,
        "extends": [["base", "B"]],
        "closed": [[0, 1]],
        "parameters": {
            "a": [[0, 1, {"type": "int", "default": 1}], [2, 2, {"type": "int", "default": 2}]],
            "b": [[0, 2, {}]],
        },
    }


def test_spans_that_several_parameters_have_are_told_once() -> None:
    long = Field("a", ("int",), default=1, choices=(1, 2, 3))
    data = table("pkg", ["1.0"], [{"G": {"a": long}, "H": {"a": long, "b": Field("b")}}], {})
    told = json.loads(dumped(shared(data)))
    spans = [[0, 0, {"type": "int", "default": 1, "choices": [1, 2, 3]}]]
    assert told["shared"] == [spans]
    assert told["groups"]["G"]["parameters"] == {"a": 0}
    assert told["groups"]["H"]["parameters"] == {"a": 0, "b": [[0, 0, {}]]}


def test_only_final_releases_of_the_distribution_are_read(tmp_path: Path) -> None:
    for version in ("1.10", "1.9", "2.0rc1"):
        wheel(tmp_path, version, {})
    (tmp_path / "other-3.0-py3-none-any.whl").write_bytes(b"")
    assert [str(r.version) for r in releases(tmp_path, "some-pkg")] == ["1.9", "1.10"]


def test_a_folder_of_sources_is_a_release_too(tmp_path: Path) -> None:
    folder = tmp_path / "some_pkg-1.0.1" / "src" / "pkg"
    folder.mkdir(parents=True)
    (folder / "a.py").write_text("X = 1")
    (release,) = releases(tmp_path, "some-pkg")
    assert str(release.version) == "1.0.1"
    assert list(release.paths(r"pkg/\w+\.py")) == ["pkg/a.py"]
    assert release.module("pkg/a.py") is not None
    assert release.requirement("torch") == ""


def test_a_table_says_which_bases_each_release_asks_for() -> None:
    data = table("pkg", ["1.0", "1.1"], [{}, {}], {}, [{}, {"base": "<2"}])
    assert data["requires"] == {"base": ["", "<2"]}


TRAINERS = """\
class Trainer:
    @deprecate_kwarg("tokenizer", "0.16.0", "processing_class")
    def __init__(self, model=None, *, processing_class=None):
        def __init__(inner): ...

class Same(Trainer):
    pass

class More(Trainer):
    def __init__(self, teacher, *args, **kwargs):
        super().__init__(*args, **kwargs)

class Anything(Elsewhere):
    def __init__(self, **kwargs): ...
"""


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("Trainer", {"model", "processing_class", "tokenizer"}),
        ("Same", {"model", "processing_class", "tokenizer"}),
        ("More", {"model", "processing_class", "tokenizer", "teacher"}),
        ("Anything", set()),
    ],
)
def test_a_constructor_takes_its_own_names_and_those_that_it_hands_on(
    name: str, taken: set[str], tmp_path: Path
) -> None:
    wheel(tmp_path, "1.0", {"pkg/trainer.py": TRAINERS})
    (release,) = releases(tmp_path, "some-pkg")
    module = release.module("pkg/trainer.py")
    assert module is not None
    reader = ClassReader(release)
    found = names(reader, reader.find(module, name))
    assert found.keys() == taken
    assert all(field.deprecated == (key == "tokenizer") for key, field in found.items())
