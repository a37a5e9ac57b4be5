"""How checks ask about the inference engine of a run, and the rules of advice about it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Callable, Optional

from flake8_gpu_training.checks._judging import (
    Judge,
    advise,
    cannot_apply,
    cannot_tell,
    off,
    on,
)
from flake8_gpu_training.checks._scale import is_for_tpus, is_trial
from flake8_gpu_training.checks.base import (
    Change,
    Edit,
    Evidence,
    Finding,
    Impact,
    Item,
    Judgement,
    Priority,
    Status,
)
from flake8_gpu_training.facts import Origin, Setting, known
from flake8_gpu_training.frameworks.engine_of import engine_of
from flake8_gpu_training.frameworks.engines import Engine, Mode
from flake8_gpu_training.frameworks.reading import find, is_off, truth
from flake8_gpu_training.frameworks.verl import NAMING
from flake8_gpu_training.frameworks.vllm_defaults import is_cacheless, pools
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import PlaceKind, Run, RunKind, once_per_run

EngineJudge = Callable[[Engine], Judgement]

NO_ENGINE = Text("未使用推理引擎", "the run uses no inference engine")
_OTHER = Text("该项不属于本任务的推理引擎", "the run's engine has no such item")
ROUTER = Text("路由进程不加载模型", "a router loads no model")
_REMOTE = Text(
    "引擎由另一个任务提供服务，其参数写在那里",
    "another job serves the engine: its parameters stand there",
)
_NO_MODE = Text(
    "vllm_mode 未知，引擎可能由另一个任务提供服务",
    "vllm_mode is not known: another job may serve the engine",
)
UNREAD = Text("并非所有参数都已读到", "not all settings could be read")
_DIFFUSION = Text(
    "图像、视频模型的服务另有参数", "models of images and videos have servers of their own"
)
FOREIGN = Text("不在 NVIDIA GPU 上运行", "it does not run on NVIDIA GPUs")
_MEASURED = Text(
    "可选：收益只在 NVIDIA GPU 上测过", "optional: what it brings was measured on NVIDIA's GPUs"
)
_TRIAL = Text("试运行（极小的模型或压测）", "a trial run (a tiny model, or a benchmark)")
_CUT = Text("命令被截断，其后的参数未生效", "the command is cut short: what follows it is lost")
# verl 0.9.1, workers/config/rollout.py: NotImplementedError for more than one.
NO_PIPELINE = Text(
    "verl 的采样引擎不支持流水线并行", "verl's rollouts take no pipeline parallelism"
)
LACKS = Text("此版本没有该参数", "this release has no such parameter")
_UNTOLD = Text("推理引擎版本未知", "the release of the engine is not known")
UNSPREAD = Text("未做张量并行", "the model is not spread over GPUs")

_TINY = re.compile(r"(?i)opt-125m|opt-350m|(?:^|[/_-])(?:tiny|dummy|test)(?:[/_-]|$)|gpt2$")
_FOREIGN_GPU = re.compile(r"(?i)^(?:mi\d|ascend|910|gaudi|tpu)")
_FOREIGN_NAMES = ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES")
_FOREIGN_PREFIXES = (
    *("ASCEND_", "NPU_", "HABANA_", "PT_HPU_"),
    *("VLLM_ROCM_", "VLLM_CPU_", "SGLANG_USE_MLX"),
)
_FOREIGN_SCRIPT = re.compile(r"(?i)(?:^|[/_.-])(?:npu|ascend|rocm|amd|hpu|gaudi|xpu)(?=[/_.-]|$)")
_FOREIGN_BACKEND = re.compile(r"(?i)rocm|aiter|^(?:ascend|wave|intel_amx|intel_xpu)$")
"""Backends of attention for hardware of others."""
_FOREIGN_DEVICES = frozenset({"cpu", "tpu", "xpu", "hpu", "neuron", "npu"})


def of_engine(
    routers: bool = False,
    remote: bool = False,
    needs: tuple[str, ...] = (),
    decodes: bool = False,
    caches: bool = False,
    nvidia: bool = False,
    **judges: EngineJudge,
) -> Judge:
    """One judge of several engines', each under the engine's name.

    ``routers``: whether a router is judged too; ``remote``: whether a training run is whose
    engine another job serves; ``needs``: parameters of vLLM of which a host must hand one on;
    ``decodes``, ``caches``: whether it takes a model that generates, or one with a cache of keys
    and values; ``nvidia``: whether other hardware has nothing of the kind. Advice obeys the rules
    that hold for all engines: none for trial runs, for commands that are cut short, for hardware
    of other makers.
    """

    def judged(run: Run) -> Judgement:
        engine = engine_of(run)
        if engine is None:
            return cannot_apply(NO_ENGINE)
        judge = judges.get(engine.name)
        if judge is None:
            return cannot_apply(_OTHER)
        if engine.mode is Mode.ROUTER and not routers:
            return cannot_apply(ROUTER)
        if engine.is_remote and not remote:
            return cannot_apply(_REMOTE) if engine.mode is not None else cannot_tell(_NO_MODE)
        if engine.host is None and (run.model.kind in ("image", "video") or _denoises(engine)):
            return cannot_apply(_DIFFUSION)
        if nvidia and engine.name == "vllm" and (is_foreign(run) or is_for_tpus(run)):
            return cannot_apply(FOREIGN)
        judgement = _barred(engine, needs, decodes, caches) or judge(engine)
        if engine.name == "vllm" and needs and not engine.hands_on(*needs):
            return not_handed(engine, judgement, needs[0])
        if judgement.status in (Status.RECOMMENDED, Status.PARTIAL):
            return _withheld(engine, judgement) or judgement
        if judgement.status is Status.UNKNOWN and _is_untold(judgement):
            if engine.is_open:
                return cannot_tell(_unread(engine))
            return judgement if engine.release is not None else cannot_tell(_UNTOLD)
        return judgement

    return judged


def _denoises(engine: Engine) -> bool:
    """Whether ``sglang serve --model-type diffusion`` starts its other server (cli/serve.py)."""
    kind = engine.run.setting("model_type") if engine.name == "sglang" else None
    return kind is not None and kind.value == "diffusion"


def _barred(
    engine: Engine, needs: tuple[str, ...], decodes: bool, caches: bool
) -> Optional[Judgement]:
    """The answer where the model rules the item out, and nobody asks for it all the same."""
    if engine.name != "vllm" or (needs and engine.written(*needs) is not None):
        return None
    if decodes and pools(engine):
        return cannot_apply(_GENERATES_NOTHING)
    return cannot_apply(_CACHELESS) if caches and is_cacheless(engine) else None


def not_handed(engine: Engine, judgement: Judgement, name: str) -> Judgement:
    """``judgement``, or that the host has no way to give the engine what would be on."""
    if judgement.status in (Status.ENABLED, Status.PARTIAL, Status.NOT_APPLICABLE):
        return judgement
    title = engine.host.title if engine.host is not None else ""
    return cannot_apply(
        Text(f"{title} 没有传递 {name} 的参数", f"{title} has no parameter to hand {name} on")
    )


_GENERATES_NOTHING = Text("不生成的模型", "the model generates nothing")
_CACHELESS = Text(
    "双向注意力的模型，没有 KV 缓存", "attention goes both ways: there is no KV cache"
)


def _is_untold(judgement: Judgement) -> bool:
    """Whether it is only said that something is not known, or not read."""
    return judgement.current == UNREAD or judgement.current.en.endswith(": not known")


def _unread(engine: Engine) -> Text:
    """Why more may be set than could be read: in one place for all that depends on it."""
    run = engine.run
    named = find(run, "config_name", "cn", *NAMING)
    if named is not None:
        told = f"={named.value}" if named.known else ""
        shown = f"`--{named.name.replace('_', '-')}{told}`"
        return Text(
            f"{shown} 指定的配置不在项目中，其中可能设置了该项",
            f"the configuration of {shown} is not in the project, and may set it",
        )
    words = run.command.words if run.command is not None and engine.call is None else ()
    rest = next((w.text for w in words if not known(w.value) and "=" not in w.text), "")
    if not rest:
        return UNREAD
    return Text(f"命令中的 `{rest}` 可能传入该项", f"`{rest}` in the command may set it")


def _withheld(engine: Engine, judgement: Judgement) -> Optional[Judgement]:
    """The answer where nothing may be advised; None where advice is due."""
    run = engine.run
    if is_foreign(run) or is_for_tpus(run):
        return _elsewhere(judgement)
    if run.is_cut_short:
        return cannot_tell(_CUT)
    trains = run.kind is RunKind.TRAIN
    if _TINY.search(run.model.name or "") or _measures(run) or (trains and is_trial(run)):
        return off(_TRIAL)
    return None


def _elsewhere(judgement: Judgement) -> Judgement:
    """The answer on other makers' hardware: what somebody switched off there is off, and whether
    it would help was measured on NVIDIA's only."""
    if not judgement.evidence:
        return off(_MEASURED)
    if judgement.status is Status.PARTIAL:
        return replace(
            judgement, status=Status.ENABLED, findings=(), change=None, action=Text("", "")
        )
    return replace(off(judgement.current), evidence=judgement.evidence)


def _measures(run: Run) -> bool:
    words = run.command.words[:3] if run.command is not None else ()
    return any(word.text in ("bench", "benchmark") for word in words)


@once_per_run
def is_foreign(run: Run) -> bool:
    """Whether the run is for GPUs or processors of another maker than NVIDIA."""
    device = find(run, "device")
    if device is not None and str(device.value).lower() in _FOREIGN_DEVICES:
        return True
    backend = find(run, "attention_backend", "prefill_attention_backend")
    if backend is not None and _FOREIGN_BACKEND.search(str(backend.value)):
        return True
    if any(n in _FOREIGN_NAMES or n.startswith(_FOREIGN_PREFIXES) for n in run.environment):
        return True
    if run.hardware.gpu is None and _FOREIGN_SCRIPT.search(run.location.path):
        return True
    return _FOREIGN_GPU.match(run.hardware.gpu or "") is not None


def is_on_cpus(run: Run) -> bool:
    """Whether the run asks vLLM for processors instead of GPUs."""
    device = find(run, "device")
    if device is not None and str(device.value).lower() == "cpu":
        return True
    return any(name.startswith("VLLM_CPU_") for name in run.environment)


def answer(engine: Engine, name: str, off_text: Text, variant: str = "") -> Judgement:
    """On, off or unknown by one switch of the engine."""
    setting = engine.option(name)
    if not setting.known:
        return cannot_tell(setting)
    return on(setting, variant) if is_set(setting) else off(off_text, setting)


def is_lacking(engine: Engine, *names: str) -> bool:
    """Whether nobody wrote one of the parameters, and the release is not known to have one."""
    if engine.written(*names) is not None:
        return False
    return all(engine.parameter(n) is None and not engine.is_off_anyway(n) for n in names)


def lacks(engine: Engine) -> Judgement:
    """The answer about a parameter that the release at hand does not have."""
    return cannot_apply(LACKS) if engine.release is not None else cannot_tell(_UNTOLD)


def is_set(setting: Setting) -> bool:
    """Whether a known setting is on: true, a number but zero, a name, an object."""
    value = truth(setting.value)
    return value if value is not None else not is_off(setting.value)


def propose(
    engine: Engine,
    reason: str,
    current: Text,
    action: Text,
    values: Mapping[str, Any],
    at: Optional[Setting] = None,
    **more: Any,
) -> Judgement:
    """The advice to give the engine ``values``, as the run's framework writes them.

    What the release, or the host, has no parameter for is not advised.
    """
    if not all(engine.takes(name) for name in values):
        return off(LACKS) if engine.release is not None else cannot_tell(_UNTOLD)
    return advise(
        engine.run,
        reason,
        current,
        action,
        parameters=engine.parameters(**values),
        at=at,
        call=engine.call,
        **more,
    )


def propose_fp8(engine: Engine, current: Text, priority: Optional[Priority] = None) -> Judgement:
    """The advice to quantize 16-bit weights to FP8 when they are loaded."""
    return propose(
        engine,
        "the tensor cores multiply FP8 twice as fast, and the weights take half the memory",
        current,
        Text("FP8 在线量化，先比较精度", "quantize to FP8 on loading; compare the answers"),
        {"quantization": "fp8"},
        variant="fp8",
        priority=priority,
    )


def propose_without(
    engine: Engine,
    setting: Setting,
    reason: str,
    current: Text,
    action: Text,
    instead: Mapping[str, Any],
    *,
    variant: str = "",
    priority: Optional[Priority] = None,
    impact: Optional[Impact] = None,
) -> Judgement:
    """The advice to leave a switch out; ``instead``: what says the same where values stand.

    A flag is dropped; in code and files its value is replaced.
    """
    flag = _flag(engine.run, setting)
    if not flag:
        return propose(
            engine,
            reason,
            current,
            action,
            instead,
            at=setting,
            variant=variant,
            priority=priority,
            impact=impact,
        )
    assert setting.location is not None
    change = Change("diff", f"- {flag}", _dropped(engine.run, setting, flag))
    return Judgement(
        Status.RECOMMENDED,
        variant,
        evidence=(Evidence.of(setting),),
        findings=(Finding(setting.location, f"drop {flag}: {reason}", change),),
        current=current,
        action=action,
        change=change,
        priority=priority,
        impact=impact,
    )


def _flag(run: Run, setting: Setting) -> str:
    """The flag as written that gives ``setting``; "" where it is no bare flag."""
    if setting.origin is not Origin.FLAG or run.command is None:
        return ""
    word = next((w for w in run.command.words if w.location == setting.location), None)
    if word is None or not word.text.startswith("-") or "=" in word.text:
        return ""
    return "" if setting.value_location is not None else word.text


def _dropped(run: Run, setting: Setting, flag: str) -> tuple[Edit, ...]:
    """The edit that takes a flag out of a shell command."""
    if setting.location is None or setting.location.path.endswith((".yaml", ".yml", ".py")):
        return ()
    in_script = setting.location.path.endswith((".sh", ".bash", ".slurm", ".sbatch"))
    if run.place.kind is not PlaceKind.FLAGS and not in_script:
        return ()
    return (Edit(setting.location, flag, ""),)


def vllm_item(
    category: str, identifier: str, points: float, group: str = "", variant: str = ""
) -> tuple[Item, ...]:
    """An item of vLLM's audit."""
    return (Item("vllm", category, identifier, points, group, variant),)


def sglang_item(
    category: str, identifier: str, points: float, group: str = "", variant: str = ""
) -> tuple[Item, ...]:
    """An item of SGLang's audit."""
    return (Item("sglang", category, identifier, points, group, variant),)
