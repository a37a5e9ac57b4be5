"""Templates of three frameworks against the parameter tables, release by release."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Optional

import pytest
import yaml
from test_report_scenarios import run_of

from flake8_gpu_training.frameworks.tables import Parameter, Table, table_of
from report_builder.report import Options, build
from report_builder.scenarios import Scenario, ScenarioFile, scenarios

PINS: tuple[tuple[str, dict[str, str]], ...] = (
    *(("llamafactory", {"llamafactory": v}) for v in ("0.9.0", "0.9.1", "0.9.3", "0.9.5")),
    *(("swift", {"ms-swift": v}) for v in ("3.8.3", "3.12.6", "4.0.4", "4.6.0")),
    ("hf_trainer", {}),
    ("hf_trainer", {"transformers": "4.41.2", "trl": "0.9.6"}),
    ("hf_trainer", {"transformers": "4.46.3", "trl": "0.12.2"}),
    ("hf_trainer", {"transformers": "4.57.6", "trl": "0.25.1"}),
    ("hf_trainer", {"transformers": "5.24.0", "trl": "1.16.0"}),
)
ALL = [
    (framework, pins, number)
    for framework, pins in PINS
    for number in range(len(scenarios(None, framework)))
]
_NAMES = [f"{f}-{'-'.join(p.values())}-{n}" for f, p, n in ALL]
_TYPES: Mapping[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (float, int),
    "bool": (bool,),
    "str": (str,),
    "dict": (dict,),
    "list": (list,),
}
# What the integration of Transformers fills in when it is "auto" (integrations/deepspeed.py).
_AUTO = "auto"


def scenario_of(framework: str, pins: Mapping[str, str], number: int) -> Scenario:
    run = replace(run_of(tuning="lora", gpus=8), framework=framework, versions=dict(pins))
    return scenarios(run, framework)[number]


def _table(distribution: str) -> Table:
    table = table_of(distribution)
    assert table is not None
    return table


def parameters(distribution: str, group: str, version: str) -> dict[str, Parameter]:
    found = dict(_table(distribution).parameters(group, version))
    for parameter in tuple(found.values()):
        found.update(dict.fromkeys(parameter.aliases, parameter))
    return found


def fits(value: Any, parameter: Parameter) -> bool:
    if value is None or not parameter.types:
        return True
    accepted = tuple(t for name in parameter.types for t in _TYPES.get(name, (object,)))
    if isinstance(value, bool) and bool not in accepted and object not in accepted:
        return False
    if isinstance(value, str) and parameter.choices and value not in parameter.choices:
        return False
    return isinstance(value, accepted)


def refused(given: Mapping[str, Any], taken: Mapping[str, Parameter]) -> list[str]:
    return [
        f"{name}={value!r}"
        for name, value in given.items()
        if name not in taken or not fits(value, taken[name])
    ]


def calls(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id, {k.arg: _value(k.value) for k in node.keywords if k.arg}


def _value(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None  # a name of the program's: no literal


def refused_by_python(text: str, pins: Mapping[str, str]) -> list[str]:
    of_transformers = pins.get("transformers", "")
    arguments = parameters("transformers", "TrainingArguments", of_transformers)
    taken = {
        "SFTConfig": {**parameters("trl", "SFTConfig", pins.get("trl", "")), **arguments},
        "SFTTrainer": parameters("trl", "SFTTrainer", pins.get("trl", "")),
        "LoraConfig": parameters("peft", "LoraConfig", ""),
        "BitsAndBytesConfig": parameters("transformers", "BitsAndBytesConfig", of_transformers),
    }
    made = list(calls(text))
    assert {"SFTConfig", "SFTTrainer"} <= {name for name, _ in made}
    return [one for name, given in made if name in taken for one in refused(given, taken[name])]


def refused_by_deepspeed(config: Mapping[str, Any]) -> list[str]:
    found = []
    for name, value in config.items():
        if name not in parameters("deepspeed", "config", ""):
            found.append(name)
        if isinstance(value, dict):
            found += refused_section(name, value)
    return found


def refused_section(group: str, section: Mapping[str, Any]) -> list[str]:
    taken = parameters("deepspeed", group, "")
    plain = {k: v for k, v in section.items() if v != _AUTO and not isinstance(v, dict)}
    found = refused(plain, taken) + [name for name in section if name not in taken]
    for name, value in section.items():
        inner = f"{group}.{name}"
        if isinstance(value, dict) and inner in _table("deepspeed").groups:
            found += refused_section(inner, value)
    return found


def as_flag(value: Any, parameter: Optional[Parameter]) -> Any:
    """A value of a recipe as ms-swift hands it on: on the command line (cli/main.py)."""
    if parameter is not None and isinstance(value, str):
        if "list" in parameter.types:
            return [value]
        if "float" in parameter.types:
            return float(value)
    return value


def refused_by_swift(written: Mapping[str, Any], version: str) -> list[str]:
    group = "rlhf" if "rlhf_type" in written else "sft"
    group = f"megatron {group}" if "micro_batch_size" in written else group
    declares = parameters("ms-swift", group, version)
    recipe = {name: as_flag(value, declares.get(name)) for name, value in written.items()}
    if group.startswith("megatron"):
        return refused(recipe, declares)
    base = _table("ms-swift").base_version("transformers", version)
    return refused(recipe, {**parameters("transformers", "TrainingArguments", base), **declares})


def refused_by_file(file: ScenarioFile, pins: Mapping[str, str]) -> Optional[list[str]]:
    text = file.text.en
    if "ms-swift" in pins:
        return refused_by_swift(yaml.safe_load(text), pins["ms-swift"])
    if file.language == "python":
        return refused_by_python(text, pins)
    data = json.loads(text) if file.language == "json" else yaml.safe_load(text)
    if file.language == "json":
        return refused_by_deepspeed(data)
    if "compute_environment" in data:
        return refused(data, parameters("accelerate", "config", ""))
    version = pins.get("llamafactory", "")
    base = _table("llamafactory").base_version("transformers", version)
    taken = parameters("transformers", "TrainingArguments", base)
    return refused(data, {**taken, **parameters("llamafactory", "train", version)})


@pytest.mark.parametrize(("framework", "pins", "number"), ALL, ids=_NAMES)
def test_every_name_and_type_of_a_template_is_in_the_tables(
    framework: str, pins: dict[str, str], number: int
) -> None:
    files = scenario_of(framework, pins, number).files
    assert [refused_by_file(file, pins) for file in files] == [[]] * len(files)


@pytest.mark.parametrize(("framework", "pins", "number"), ALL, ids=_NAMES)
def test_a_template_for_a_release_has_no_finding_and_leaves_nothing_to_gain(
    tmp_path: Path, framework: str, pins: dict[str, str], number: int
) -> None:
    scenario = scenario_of(framework, pins, number)
    for file in scenario.files:
        (tmp_path / file.name).write_text(file.text.en, encoding="utf-8")
    (tmp_path / "run.sh").write_text(f"{scenario.launch}\n")
    pinned = "".join(f"{name}=={version}\n" for name, version in pins.items())
    (tmp_path / "requirements.txt").write_text(pinned)
    report = build(tmp_path, "x", Options(), lambda step, done, total: None)
    assert [one.message for one in report.diagnostics] == []
    assert {audit.attainment for audit in report.audits} == {1.0}


@pytest.mark.parametrize("version", ["3.12.6", "4.0.4", "4.6.0"])
def test_templates_of_megatron_are_in_the_tables(version: str) -> None:
    run = run_of("Qwen/Qwen2.5-14B-Instruct", 8, megatron=True, tuning="full")
    found = scenarios(replace(run, versions={"ms-swift": version}), "swift")[:2]
    recipes = [yaml.safe_load(one.files[0].text.en) for one in found]
    assert all("micro_batch_size" in recipe for recipe in recipes)
    assert [refused_by_swift(recipe, version) for recipe in recipes] == [[], []]


def test_a_wrong_name_or_type_would_be_seen() -> None:
    taken = parameters("llamafactory", "train", "0.9.5")
    assert refused({"lora_rank": 8, "use_dora": True, "loraplus_lr_ratio": 16.0}, taken) == []
    wrong = {"lora_rank": "eight", "flash_attn": "fa9", "use_dora": 1, "lora_rnk": 8}
    assert len(refused(wrong, taken)) == 4
    assert refused_by_deepspeed({"zero_optimization": {"stage": 2, "overlapcomm": True}}) == [
        "overlapcomm=True",
        "overlapcomm",
    ]
