"""GPU901 to GPU908: engines that generate completions within RLHF runs."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from flake8_gpu_training.checks import _flow as flow
from flake8_gpu_training.checks import _sglang_operations
from flake8_gpu_training.checks._by_framework import by_framework
from flake8_gpu_training.checks._engine import (
    LACKS,
    of_engine,
    propose,
    sglang_item,
    vllm_item,
)
from flake8_gpu_training.checks._impacts import by_class
from flake8_gpu_training.checks._judging import (
    Judge,
    advise,
    by_itself,
    cannot_apply,
    cannot_tell,
    of_training,
    off,
    on,
)
from flake8_gpu_training.checks._programs import imports
from flake8_gpu_training.checks._settings import ROLLOUT, SAMPLING, algorithm, is_on, parameter
from flake8_gpu_training.checks.base import (
    Check,
    Example,
    Impact,
    Item,
    Judgement,
    Priority,
    Status,
)
from flake8_gpu_training.facts import Setting, known
from flake8_gpu_training.frameworks import verl
from flake8_gpu_training.frameworks.at_hand import lacks, version_at_hand
from flake8_gpu_training.frameworks.called import given
from flake8_gpu_training.frameworks.engine_of import (
    OWN_GPUS,
    engine_of,
    is_of_ray,
    samples_ahead,
    trl_config_of,
    updates,
    vllm_mode_of,
)
from flake8_gpu_training.frameworks.engines import Engine, Mode
from flake8_gpu_training.frameworks.reading import find, is_off, number, parsed
from flake8_gpu_training.frameworks.swift_commands import is_megatron
from flake8_gpu_training.frameworks.swift_releases import default_of, is_before_vllm_mode, release
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import PlaceKind, Run

_NO_ROLLOUT = Text("训练中不生成回答", "the run generates no completions")
_NO_ENGINE = Text("未使用 vLLM 生成", "completions do not come from vLLM")
_SERVER = Text("vLLM 为独立服务", "vLLM is a server of its own")
_MIXIN = "ms-swift 3.12.6 and 4.6.0: rollout arguments of the GRPO trainer"
_TRL = "trl 1.16, grpo_config.py"
_VLLM_SLEEP = "https://docs.vllm.ai/en/latest/features/sleep_mode.html"
_VLLM_PREFIX = "https://docs.vllm.ai/en/latest/features/automatic_prefix_caching.html"
_GRPO = "DeepSeekMath (Shao et al., 2024), arXiv:2402.03300"
_TRL_VLLM = "https://huggingface.co/docs/trl/vllm_integration"


def _of_rollout(judge: Judge) -> Judge:
    """``judge`` for runs that generate completions while they train."""

    @of_training(alone=True)
    def judged(run: Run) -> Judgement:
        how = algorithm(run)
        if how is None and _names_no_algorithm(run):
            return cannot_apply(_NO_ROLLOUT)
        if how is None:
            return cannot_tell(Text("训练阶段未知", "the training stage is not known"))
        if run.framework == "hf_trainer" and how in SAMPLING and how not in ROLLOUT:
            return judge(run) if is_on(_use_vllm(run)) else cannot_apply(_NO_ENGINE)
        if how not in ROLLOUT or run.framework not in ("swift", "hf_trainer"):
            return cannot_apply(_NO_ROLLOUT)
        return judge(run)

    return judged


def _names_no_algorithm(run: Run) -> bool:
    """Whether a file of ms-swift's parameters alone trains by sft, pt or, the default, DPO."""
    named = "rlhf_type" in run.settings or run.is_open
    return run.framework == "swift" and run.place.kind is not PlaceKind.PYTHON and not named


def _of_vllm(judge: Judge) -> Judge:
    """``judge`` for ms-swift runs whose completions come from vLLM."""

    @_of_rollout
    def judged(run: Run) -> Judgement:
        if run.framework != "swift":
            return Judgement(Status.NOT_APPLICABLE)  # another check says more of it
        engine = _use_vllm(run)
        if not engine.known:
            return cannot_tell(engine)
        return judge(run) if is_on(engine) else cannot_apply(_NO_ENGINE)

    return judged


def _use_vllm(run: Run) -> Setting:
    megatron = run.framework == "swift" and is_megatron(run)
    return parameter(run, "use_vllm", default=megatron, source=_MIXIN)


def _shares_gpus(run: Run) -> bool:
    """Whether vLLM is known to live in the training processes."""
    if run.framework == "hf_trainer":
        engine = engine_of(run)
        return engine is not None and engine.mode is Mode.RLHF_COLOCATE
    mode = vllm_mode_of(run)
    return known(mode) and mode not in ("server", OWN_GPUS)


def _apart(run: Run) -> Judgement:
    """That vLLM shares no GPU with the training, where that is known."""
    if run.framework == "swift":
        mode = vllm_mode_of(run)
        if not known(mode):
            return cannot_tell(Text("vLLM 所在的 GPU 未知", "where vLLM runs is not known"))
        if mode == OWN_GPUS:
            return cannot_apply(Text("vLLM 使用单独的 GPU", "vLLM has GPUs of its own"))
    return cannot_apply(_SERVER)


@_of_rollout
def _rollout(run: Run) -> Judgement:
    engine = _use_vllm(run)
    if not engine.known:
        return cannot_tell(engine)
    if is_on(engine):
        return on(engine)
    if run.value("rollout_engine", "none") not in ("none", None):
        return on(run.practice("rollout_engine"))
    if algorithm(run) == "ppo" or (algorithm(run) == "gkd" and not _samples_itself(run)):
        return off(Text("该算法未提供或不需要 vLLM", "the trainer does not need vLLM"), engine)
    if run.framework == "swift" and run.model.kind not in ("LLM", "MLLM", "audio"):
        return off(_OF_ITSELF, engine)
    if run.framework == "hf_trainer" and imports(run, "unsloth") is not None:
        return off(
            Text(
                "Unsloth 自行加速生成；模型支持时可在 from_pretrained 中设 fast_inference=True",
                "Unsloth speeds generation up itself; fast_inference=True of from_pretrained "
                "takes vLLM for the models that it can",
            ),
            engine,
        )
    if not is_served(run):
        return off(Text("vLLM 不支持该模型", "vLLM does not serve this model"), engine)
    if _ENGINE_LESS.search(run.model.known_as) is not None:
        return off(Text("vLLM 对该模型支持有限", "off; vLLM serves parts of this model"), engine)
    if _takes_gpus_of_its_own(run) and run.hardware.gpus in (1, None):
        return off(
            Text(
                "TRL 0.16、0.17 的 vLLM 须另占 GPU；升级到 0.18 或更新的版本即可与训练同卡",
                "TRL 0.16 and 0.17 take other GPUs for vLLM; from 0.18 on it can share the "
                "training's",
            ),
            engine,
        )
    return advise(
        run,
        "the training model itself generates the completions, which takes most of a step",
        Text("用训练模型自身生成回答", "the training model itself generates completions"),
        _OTHER_GPUS if _takes_gpus_of_its_own(run) else _SAME_GPUS,
        parameters=_with_vllm(run),
        at=engine,
    )


_OF_ITSELF = Text(
    "由训练模型自身生成；模型未知，vLLM 可能不支持",
    "the model itself generates; it is not known, and vLLM may not serve it",
)
_ENGINE_LESS = re.compile(r"(?i)omni|audio|tts|janus")
# No architecture of it in the registries of vLLM 0.5.5 to 0.33.0.
_UNSERVED = re.compile(r"(?i)got-ocr")


_SAME_GPUS = Text("用 vLLM 生成（与训练同卡）", "generate with vLLM on the training GPUs")
_OTHER_GPUS = Text(
    "用 vLLM 生成：留出一部分 GPU，用 trl vllm-serve 启动服务；TRL 0.18 起可与训练同卡",
    "generate with vLLM: leave some GPUs to `trl vllm-serve`; from TRL 0.18 on it can share them",
)


def _takes_gpus_of_its_own(run: Run) -> bool:
    """Whether the release only asks a server, which shares no GPU (TRL 0.16.1 and 0.17.0,
    grpo_trainer.py: VLLMClient); the ones before take the training's where it is the only one."""
    is_trl = run.framework == "hf_trainer"
    return is_trl and (0, 16) <= version_at_hand(run, "trl") < _FIRST_WITH_MODES


_FIRST_WITH_MODES = (0, 18)


def is_served(run: Run) -> bool:
    """Whether nothing is known that keeps vLLM from generating with the run's model."""
    return _UNSERVED.search(run.model.known_as) is None


def _with_vllm(run: Run) -> dict[str, Any]:
    """The switch, and the mode unless the run speaks the dialect of before there were modes."""
    if run.framework == "hf_trainer" and version_at_hand(run, "trl") < _FIRST_WITH_MODES:
        return {"use_vllm": True}
    if any(run.setting(name) is not None for name in ("vllm_device", "num_infer_workers")):
        return {"use_vllm": True}
    return {"use_vllm": True, "vllm_mode": "colocate", **_asleep_from_start(run)}


def _asleep_from_start(run: Run) -> dict[str, Any]:
    if run.framework == "swift":
        return {"sleep_level": 1}
    has_sleep = version_at_hand(run, "trl") >= (0, 23)
    return {"vllm_enable_sleep_mode": True} if has_sleep else {}


def _samples_itself(run: Run) -> bool:
    """GKD generates only for the on-policy share ``lmbda``."""
    share = parameter(run, "lmbda", default=0.5)
    return (number(share.value) or 0) > 0 if share.known else False


def _async(run: Run) -> Judgement:
    is_other = run.framework == "hf_trainer" or _drives_engine(run)
    return _async_engine(run) if is_other else _async_swift(run)


_APART = Text(
    "verl 的全异步训练器一边训练一边采样",
    "verl's fully asynchronous trainer samples while it trains",
)


def _has_trainer_modes(engine: Engine) -> bool:
    """Whether the engine is of a verl whose trainers may be chosen by name: of 0.9.1, and of
    0.3.0 to 0.7.0 none (trainer/config/ppo_trainer.yaml)."""
    if engine.host is None or engine.host.id != "verl":
        return False
    if parsed(verl.release_of(engine.run)) < (0, 9):
        return False
    chosen = find(engine.run, "trainer.use_v1")
    return chosen is None or not is_off(chosen.value)


def _by_trainer_mode(engine: Engine) -> Judgement:
    """verl 0.9.1, trainer/config/ppo_trainer.yaml: one of three trainers, the synchronous one
    unless another is named."""
    mode = find(engine.run, "trainer.v1.trainer_mode")
    if mode is not None and not mode.known:
        return cannot_tell(mode)
    if mode is not None and mode.value in ("colocate_async", "separate_async"):
        return on(mode)
    return off(
        Text(
            "可选：trainer.v1.trainer_mode=colocate_async（verl 0.9.1 默认 sync）",
            "optional: trainer.v1.trainer_mode=colocate_async (sync by default in verl 0.9.1)",
        )
    )


def _asynchronous(engine: Engine) -> Judgement:
    if engine.mode is None:
        return cannot_tell(Text("vllm_mode 未知", "vllm_mode is not known"))
    if not engine.mode.samples:
        return cannot_apply(_NO_ROLLOUT)
    paused = next((c for c in updates(engine.run) if c.method == "pause_generation"), None)
    if paused is not None and engine.host is None:
        return on(given("pause_generation", True, paused))
    asked = find(engine.run, "async_train", "train.async_enable")
    if asked is not None and is_on(asked):
        return on(asked)
    if samples_ahead(engine.run):
        return by_itself(
            Text("AsyncGRPOTrainer 采样与训练重叠", "AsyncGRPOTrainer samples while it trains")
        )
    if engine.host is not None and verl.trainer_of(engine.run) == verl.FULLY_ASYNC:
        return by_itself(_APART)
    if engine.mode is Mode.RLHF_COLOCATE and _has_trainer_modes(engine):
        return _by_trainer_mode(engine)
    if engine.mode is Mode.RLHF_COLOCATE:
        return cannot_apply(Text("需要独立的推理 GPU", "it needs GPUs of the engine's own"))
    return off(Text("可选：采样与训练重叠", "optional: sampling while the model trains"))


_async_engine = of_engine(remote=True, vllm=_asynchronous)


@_of_vllm
def _async_swift(run: Run) -> Judgement:
    if is_megatron(run) or algorithm(run) != "grpo":
        return cannot_apply(Text("仅用于 swift rlhf 的 GRPO", "for GRPO by swift rlhf only"))
    setting = parameter(run, "async_generate", default=False)
    if not setting.known:
        return cannot_tell(setting)
    if is_on(setting):
        return on(setting)
    if _shares_gpus(run):
        if is_before_vllm_mode(run):
            return cannot_apply(Text("需要 vLLM 使用单独的 GPU", "it needs GPUs of vLLM's own"))
        return cannot_apply(Text("需要 vLLM server 模式", "it needs vLLM in server mode"))
    return off(Text("可选：使用旧权重异步生成", "optional: generates with older weights"), setting)


def _sleep(run: Run) -> Judgement:
    return _sleep_engine(run) if _drives_engine(run) else _sleep_rollout(run)


@_of_rollout
def _sleep_rollout(run: Run) -> Judgement:
    return _sleep_trl(run) if run.framework == "hf_trainer" else _sleep_swift(run)


def _drives_engine(run: Run) -> bool:
    """Whether the program itself, or verl, has the engine that samples for it."""
    engine = engine_of(run)
    own = engine is not None and (
        engine.host is None or engine.host.id in ("verl", "openrlhf", "slime")
    )
    return own and engine is not None and engine.mode is not None and engine.mode.samples


def _sleeps(engine: Engine) -> Judgement:
    if engine.mode is not Mode.RLHF_COLOCATE:
        setting = engine.written("enable_sleep_mode")
        return on(setting) if setting is not None and is_on(setting) else cannot_apply(_SERVER)
    setting = engine.option("enable_sleep_mode")
    if not setting.known:
        return cannot_tell(setting)
    if is_on(setting):
        return on(setting)
    if engine.host is None:  # the program may have placed it on GPUs of its own
        return off(
            Text("可选：与训练同卡时让引擎休眠", "optional: where it shares the GPUs"), setting
        )
    return propose(
        engine,
        "the engine keeps its weights and KV cache on the training GPUs during the update",
        Text("训练时引擎不释放显存", "the engine keeps its memory while the model trains"),
        Text("训练阶段让引擎休眠，释放显存", "let the engine sleep during the update"),
        {"enable_sleep_mode": True},
        at=setting if setting.explicit else None,
    )


_sleep_engine = of_engine(vllm=_sleeps, sglang=_sglang_operations.memory_saver)


@_of_vllm
def _sleep_swift(run: Run) -> Judgement:
    if is_of_ray(run) and _shares_gpus(run) and find(run, "sleep_level") is None:
        return on(f"sleep_level=1 (ms-swift {release(run)}, ray/megatron/driver_utils.py)")
    return _asleep(run, parameter(run, "sleep_level", default=0, source=_MIXIN), 1)


_NO_SLEEP = Text("TRL 自 0.23 起才有休眠模式", "TRL has no sleep mode before 0.23")


def _sleep_trl(run: Run) -> Judgement:
    if samples_ahead(run):
        return cannot_apply(_SERVER)
    engine = _use_vllm(run)
    if not engine.known:
        return cannot_tell(engine)
    if not is_on(engine) or version_at_hand(run, "trl") < (0, 23):
        return cannot_apply(_NO_ENGINE if not is_on(engine) else _NO_SLEEP)
    name = "vllm_enable_sleep_mode"
    declared = trl_config_of(run)
    if lacks(run, "trl", declared, name):
        return cannot_apply(LACKS)
    source = _TRL if declared == "GRPOConfig" else f"trl 1.16, {declared}"
    return _asleep(run, parameter(run, name, default=False, source=source), True)


def _asleep(run: Run, setting: Setting, wanted: Any) -> Judgement:
    if not _shares_gpus(run):
        return _apart(run)
    if not setting.known:
        return cannot_tell(setting)
    if is_on(setting):
        return on(setting)
    return advise(
        run,
        "vLLM keeps its weights and KV cache on the training GPUs during the update",
        Text("训练时 vLLM 不释放显存", "vLLM keeps its memory while the model trains"),
        Text("训练阶段让 vLLM 休眠，释放显存", "let vLLM sleep during the update"),
        parameters={setting.name: wanted},
        at=setting,
    )


def _offload(name: str, what: Text) -> Judge:
    @_of_vllm
    def judge(run: Run) -> Judgement:
        if not _shares_gpus(run) and not (is_of_ray(run) and find(run, name) is not None):
            return _apart(run)
        setting = parameter(run, name, default=False)
        if not setting.known:
            return cannot_tell(setting)
        return on(setting) if is_on(setting) else off(what, setting)

    return judge


_OFFLOAD_OPTIMIZER = _offload(
    "offload_optimizer",
    Text("可选：生成时优化器移到 CPU", "optional: optimizer states on the CPU while generating"),
)
_OFFLOAD_MODEL = _offload(
    "offload_model",
    Text("可选：生成时训练权重移到 CPU", "optional: training weights on the CPU while generating"),
)

_GROUP = 8
_SMALLEST_GROUP = 4


@_of_rollout
def _sampling(run: Run) -> Judgement:
    if algorithm(run) != "grpo":
        return cannot_apply(Text("仅用于 GRPO", "for GRPO only"))
    setting = parameter(run, "num_generations", default=_GROUP, source=_MIXIN)
    if not setting.known:
        return cannot_tell(setting)
    group = number(setting.value)
    if group == 1:
        return off(Text("每个提示只采样一次", "one completion per prompt, on purpose"), setting)
    if group is None or group >= _SMALLEST_GROUP:
        return on(setting)
    return advise(
        run,
        f"a group of {group:g} completions gives a noisy advantage",
        Text(f"每组 {group:g} 个回答", f"{group:g} completions per prompt"),
        Text("每个提示采样 8 个回答", "sample 8 completions per prompt"),
        parameters={"num_generations": _GROUP},
        at=setting,
    )


@_of_rollout
def _dynamic(run: Run) -> Judgement:
    if algorithm(run) != "grpo" or run.framework != "swift":
        return cannot_apply(Text("仅用于 ms-swift 的 GRPO", "for GRPO in ms-swift only"))
    setting = parameter(run, "dynamic_sample", default=False)
    if not setting.known:
        return cannot_tell(setting)
    if is_on(setting):
        return on(setting)
    return off(Text("可选：过滤全对、全错的组", "optional: drops groups without a signal"), setting)


_LEFT_TO_VLLM = Text(
    "swift rollout 服务：vllm_enable_prefix_caching 未设置，由 vLLM 默认开启",
    "the swift rollout server leaves vllm_enable_prefix_caching to vLLM, where it is on",
)


def _prefix_of_server(run: Run, server: Run) -> Judgement:
    """What the ``swift rollout`` command says that serves the run's completions."""
    written = find(server, "vllm_enable_prefix_caching")
    default = default_of(server, "vllm_enable_prefix_caching")
    if written is None and parsed(release(server)) < (4,):
        return _apart(run)
    if written is None and default is not None and default.value is False:
        return off(
            Text("可选：生成服务未开前缀缓存", "optional: the server does not cache prefixes")
        )
    if written is None:
        place = server.location if server.command is None else server.command.location
        at = Setting("rollout", True, place, note="swift rollout")
        return replace(on(at), current=_LEFT_TO_VLLM)
    if not written.known:
        return cannot_tell(written)
    if is_on(written):
        return on(written)
    text = Text("生成服务关闭了前缀缓存", "the rollout server switches prefix caching off")
    return off(text, written)


@_of_vllm
def _prefix(run: Run) -> Judgement:
    if not _shares_gpus(run) and vllm_mode_of(run) != OWN_GPUS:
        server = run.server if known(vllm_mode_of(run)) else None
        return _apart(run) if server is None else _prefix_of_server(run, server)
    setting = parameter(run, "vllm_enable_prefix_caching", default=True, source=_MIXIN)
    if not setting.known:
        return cannot_tell(setting)
    if is_on(setting):
        return on(setting)
    return advise(
        run,
        "the completions of a group share their prompt, which is computed for each of them",
        Text("前缀缓存被关闭", "prefix caching is switched off"),
        Text("启用前缀缓存", "use prefix caching"),
        parameters={"vllm_enable_prefix_caching": True},
        at=setting,
    )


def _item(identifier: str, points: float, group: str = "") -> tuple[Item, ...]:
    return (Item("swift", "J", identifier, points, group),)


_GRPO_SCRIPT = """\
NPROC_PER_NODE=8 swift rlhf \\
    --rlhf_type grpo \\
    --model Qwen/Qwen2.5-7B-Instruct \\
    --tuner_type lora \\
    --torch_dtype bfloat16 \\
    --attn_impl flash_attn \\
    --use_liger_kernel true \\
    --deepspeed zero2 \\
    --dataset math.jsonl \\
    --dataset_num_proc 8 \\
    --dataloader_num_workers 4 \\
    --reward_funcs accuracy \\
    --per_device_train_batch_size 4 \\
    --max_length 4096 \\
{rollout}    --output_dir output/grpo
"""
_COLOCATE = (
    "    --use_vllm true \\\n    --vllm_mode colocate \\\n    --sleep_level 1 \\\n"
    "    --num_generations 8 \\\n"
)


def _script(bad: str) -> tuple[Example, ...]:
    return (
        Example(
            "swift",
            "grpo.sh",
            _GRPO_SCRIPT.replace("{rollout}", bad),
            _GRPO_SCRIPT.replace("{rollout}", _COLOCATE),
        ),
    )


CHECKS: tuple[Check, ...] = (
    Check(
        "GPU901",
        "rollout-engine",
        Text("vLLM 生成", "An inference engine generates completions"),
        Priority.HIGH,
        _rollout,
        why="In GRPO and its kin most of a step is generation; Transformers' generate pads the "
        "batch and schedules token by token, an engine batches continuously.",
        fix="Set use_vllm with vllm_mode colocate (or a server on GPUs of its own).",
        ignore="Completions are a few tokens long.",
        items=_item("vllm-rollout", 2),
        impact=by_class(Priority.HIGH, _TRL_VLLM),
        difficulty="medium",
        examples=_script(""),
        sources=(_TRL_VLLM, _MIXIN, _TRL),
    ),
    Check(
        "GPU902",
        "async-generation",
        Text("异步生成", "Asynchronous generation"),
        Priority.LOW,
        _async,
        why="Generation by a server can overlap the update, with weights one step old.",
        fix="Set async_generate with vllm_mode server.",
        items=(*_item("async-generate", 1, "overlap"), *vllm_item("H", "async-rl", 1)),
        impact=Impact(source=_MIXIN),
        difficulty="medium",
        sources=(_MIXIN,),
    ),
    Check(
        "GPU903",
        "engine-sleep",
        Text("Sleep Level", "The engine sleeps during updates"),
        Priority.MEDIUM,
        _sleep,
        why="A colocated engine reserves a large part of the GPU that the update could use.",
        fix="Set sleep_level 1 (weights to CPU, KV cache dropped) or 2.",
        items=(
            *_item("sleep-level", 1, "overlap"),
            *vllm_item("H", "sleep-mode", 2),
            *sglang_item("H", "memory-saver", 2.5),
        ),
        impact=Impact(
            memory=(-90, -30),
            note=Text(
                "训练阶段释放 vLLM 占用的份额（vllm_gpu_memory_utilization）",
                "during the update: the share given to vLLM (vllm_gpu_memory_utilization)",
            ),
            source=_VLLM_SLEEP,
        ),
        examples=_script(_COLOCATE.replace("    --sleep_level 1 \\\n", "")),
        sources=(_VLLM_SLEEP, _MIXIN),
    ),
    Check(
        "GPU904",
        "rollout-optimizer-offload",
        Text("优化器 CPU 卸载", "Optimizer offloaded while generating"),
        Priority.LOW,
        _OFFLOAD_OPTIMIZER,
        why="Optimizer states idle while the engine generates.",
        fix="Set offload_optimizer where the engine lacks memory.",
        items=_item("offload-optimizer", 0.5),
        impact=Impact(source=_MIXIN),
        sources=(_MIXIN,),
    ),
    Check(
        "GPU905",
        "rollout-model-offload",
        Text("模型 CPU 卸载", "Weights offloaded while generating"),
        Priority.LOW,
        _OFFLOAD_MODEL,
        why="The training copy of the weights idles while the engine generates.",
        fix="Set offload_model where the engine lacks memory.",
        items=_item("offload-model", 0.5),
        impact=Impact(source=_MIXIN),
        sources=(_MIXIN,),
    ),
    Check(
        "GPU906",
        "group-sampling",
        Text("GRPO 采样", "Group sampling"),
        Priority.LOW,
        by_framework(_sampling, flow_factory=flow.groups),
        why="GRPO takes a completion's advantage from its group; small groups are noisy.",
        fix="Sample 8 or more completions per prompt.",
        items=(
            *_item("grpo-sampling", 1),
            Item("flow-factory", "F", "sample-group-size", 1),
        ),
        impact=Impact(
            throughput=(0, 0),
            note=Text("收敛更稳定，不影响吞吐", "steadier convergence, the same throughput"),
            source=_GRPO,
        ),
        examples=_script(_COLOCATE.replace("num_generations 8", "num_generations 2")),
        sources=(_GRPO, _MIXIN, _TRL),
    ),
    Check(
        "GPU907",
        "dynamic-sampling",
        Text("动态采样", "Dynamic sampling"),
        Priority.LOW,
        _dynamic,
        why="Groups that are all right or all wrong give no gradient.",
        fix="Set dynamic_sample to draw others instead.",
        items=_item("dynamic-sampling", 0.5),
        impact=Impact(source="DAPO (Yu et al., 2025), arXiv:2503.14476"),
        sources=("DAPO (Yu et al., 2025), arXiv:2503.14476",),
    ),
    Check(
        "GPU908",
        "rollout-prefix-caching",
        Text("前缀缓存", "Prefix caching in rollouts"),
        Priority.LOW,
        _prefix,
        why="All completions of a group start from the same prompt.",
        fix="Leave vllm_enable_prefix_caching on.",
        items=(*_item("prefix-caching", 0.5), *vllm_item("E", "prefix-caching", 1.5)),
        impact=by_class(Priority.LOW, _VLLM_PREFIX),
        examples=_script(_COLOCATE + "    --vllm_enable_prefix_caching false \\\n"),
        sources=(_VLLM_PREFIX, _MIXIN),
    ),
)
