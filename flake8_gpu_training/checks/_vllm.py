"""What several checks ask of vLLM: how it compiles, whether it runs eagerly, its variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from flake8_gpu_training.checks._engine import is_set
from flake8_gpu_training.checks._judging import cannot_tell
from flake8_gpu_training.checks.base import Judgement, Status
from flake8_gpu_training.facts import Origin, Setting, Unknown, known
from flake8_gpu_training.frameworks.engines import Engine
from flake8_gpu_training.frameworks.vllm_defaults import is_v1, pools
from flake8_gpu_training.language import Text

DOCS = "https://docs.vllm.ai/en/latest"
OPTIMIZATION = f"{DOCS}/configuration/optimization.html"
CONSERVING = f"{DOCS}/configuration/conserving_memory.html"
V1 = "https://blog.vllm.ai/2025/01/27/v1-alpha-release.html"

LEVELS = (0, 12)
"""The first release with levels of optimization beside the configuration of the compiler."""


def level(engine: Engine) -> Setting:
    """``-O``: how much is optimized; before 0.12 the level of compilation."""
    for number in range(4):
        short = engine.run.settings.get(f"O{number}")
        if short is not None and engine.host is None:
            return Setting("O", number, short.location, short.origin, f"-O{number}")
    if engine.version >= LEVELS:
        return _numbered(engine.option("optimization_level"))
    found = engine.entry("compilation_config", "level", "mode") or engine.written("O")
    whole = engine.written("compilation_config")
    if found is None and whole is not None and engine.mapping(whole) is None:
        found = whole
    if found is not None:
        return _numbered(found)
    if engine.is_open:
        return Setting("compilation_config", Unknown("not all settings could be read"))
    v1 = is_v1(engine)
    if v1 is None:
        return Setting("compilation_config", Unknown("VLLM_USE_V1 is not known"))
    value = 3 if v1 else 0
    note = f"compilation level {value} ({engine.called}, {'V1' if v1 else 'V0'})"
    return Setting("compilation_config", value, None, Origin.DEFAULT, note)


def _numbered(setting: Setting) -> Setting:
    value = setting.value
    if not known(value):
        return setting
    digits = str(value).rpartition("O")[2]
    number: Any = int(digits) if digits.isdigit() else Unknown("what it is told is not known")
    return Setting(
        setting.name,
        number,
        setting.location,
        setting.origin,
        setting.note or setting.written,
        setting.text,
        setting.value_location,
    )


def compilation(engine: Engine, *names: str) -> Optional[Setting]:
    """An entry of ``compilation_config`` that somebody wrote; Unknown where it is an object."""
    found = engine.entry("compilation_config", *names)
    if found is not None:
        return found
    whole = engine.written("compilation_config")
    if whole is None or known(whole.value):
        return None
    if engine.object(whole, "compilation_config") is not None or _says_none(whole.value, names):
        return None
    return Setting(names[0], whole.value, whole.location, whole.origin, whole.note)


def _says_none(value: Any, names: tuple[str, ...]) -> bool:
    """Whether what a branch would set has none of the entries."""
    told = value.candidates if value.reason == "set in a branch" else ()
    return bool(told) and all(isinstance(one, dict) and not set(names) & set(one) for one in told)


def eager(engine: Engine) -> Setting:
    """``enforce_eager``: no CUDA graphs, and no compilation."""
    return engine.option("enforce_eager")


def by_eager(engine: Engine) -> Optional[Judgement]:
    """The answer of what ``enforce_eager`` switches off, along with CUDA graphs."""
    setting = eager(engine)
    if not setting.known:
        return cannot_tell(setting)
    if not is_set(setting) or (engine.version < LEVELS and is_v1(engine) is False):
        return None  # V0 compiles nothing by itself
    if pools(engine):
        return Judgement(Status.DISABLED, current=Text("被 enforce_eager 关闭", "enforce_eager"))
    return Judgement(
        Status.RECOMMENDED,
        current=Text("被 enforce_eager 关闭", "switched off by enforce_eager"),
        action=Text("随 CUDA Graph 一并恢复", "it comes back with CUDA graphs"),
    )


def variable(engine: Engine, name: str) -> Optional[Setting]:
    """A variable of the environment that the run sets."""
    return engine.run.environment.get(name)


def entries(engine: Engine, name: str) -> Mapping[str, Any]:
    """The entries of a parameter that takes a dict; empty where nobody writes it."""
    return engine.mapping(engine.written(name)) or {}
