"""What LlamaFactory's v1 route takes of what the checks ask for, in arguments of its own."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Callable, Optional

from flake8_gpu_training.checks._judging import (
    TRIAL,
    advise,
    by_itself,
    cannot_apply,
    cannot_tell,
    excluding,
    off,
    on,
)
from flake8_gpu_training.checks._llamafactory import NO_WAY
from flake8_gpu_training.checks._scale import is_cuda, is_recurrent, is_trial, number
from flake8_gpu_training.checks._settings import algorithm
from flake8_gpu_training.checks.base import Judgement, Status
from flake8_gpu_training.frameworks.llamafactory_v1 import is_v1, kernels_of, part_of
from flake8_gpu_training.frameworks.reading import is_true
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run, RunKind

_NOT_TOLD = Text("v1 路线的写法尚未收录", "how the v1 route takes it is not covered")
_LORA_ONLY = Text("仅用于 LoRA", "for LoRA only")
_OPTIONAL = Text("未使用；可选", "off; optional")

# Arguments of the first route alone: llamafactory 0.9.6.dev0, v1/config, v1/plugins.
_ABSENT = frozenset(
    """
    GPU109 GPU111 GPU202 GPU211 GPU212 GPU213 GPU307 GPU311 GPU312 GPU509 GPU511 GPU514 GPU609
    GPU613 GPU614 GPU615 GPU617 GPU618 GPU619 GPU621 GPU622 GPU623 GPU625
    """.split()  # noqa: SIM905
)
# Whose advice is written in arguments that both routes have.
_ADVISED = frozenset({"GPU301", "GPU507", "GPU804"})


def of_route(code: str, run: Run, judge: Callable[[Run], Judgement]) -> Judgement:
    """The answer of a check, as far as it holds on the route that the run takes."""
    if not is_v1(run) or run.kind is not RunKind.TRAIN:
        return judge(run)
    own = _own(code, run)
    if own is not None:
        to_gain = own.status in (Status.RECOMMENDED, Status.PARTIAL)
        return replace(off(TRIAL), excluded=own.excluded) if to_gain and is_trial(run) else own
    if code == "GPU205" and is_trial(run):
        return off(TRIAL)
    answer = _as_route_takes_it(code, run, judge(run))
    to_gain = answer.status in (Status.RECOMMENDED, Status.PARTIAL)
    # What stops the run is told as it is; no advice in arguments that this route refuses.
    if to_gain and code not in _ADVISED and not code.startswith("GPU0"):
        return cannot_tell(_NOT_TOLD)
    return answer


def _own(code: str, run: Run) -> Optional[Judgement]:
    if code in _ABSENT:
        return cannot_apply(NO_WAY)
    if code in _SWITCHES:
        return _adapters(run, _SWITCHES[code])
    judge = _JUDGES.get(code)
    return judge(run) if judge is not None else None


_SWITCHES = {"GPU608": "use_dora", "GPU610": "use_rslora"}
"""Fields of v1's LoraParams (v1/plugins/model_plugins/peft.py)."""


def _adapters(run: Run, name: str) -> Judgement:
    tuning = run.practice("tuning")
    if not tuning.known:
        return cannot_tell(tuning)
    if tuning.value != "lora":
        return cannot_apply(_LORA_ONLY)
    switch = part_of(run, "peft_config", name, False)
    if switch is not None and not switch.known:
        return cannot_tell(switch)
    return on(switch) if switch is not None and is_true(switch) else off(_OPTIONAL)


def _lean(run: Run) -> Judgement:
    """Muon alone is registered (v1/plugins/trainer_plugins/optimizers)."""
    optimizer = run.practice("optimizer")
    if not optimizer.known:
        return cannot_tell(optimizer)
    answer = on(optimizer, "muon") if optimizer.value == "muon" else off(_OPTIONAL)
    return excluding(answer, NO_WAY, "galore", "badam", "apollo", "adam-mini")


# --- what the route has under other names ---

_UNFUSED = Text(
    "v1 路线固定使用 torch.optim.AdamW，无 fused 参数",
    "the v1 route takes torch.optim.AdamW, and has no parameter for its fused kernel",
)
_NO_CHOICE = Text(
    "v1 路线没有 auto（默认 sdpa）", "the v1 route has no such value (sdpa is its default)"
)
_ONE_TYPE = Text("v1 路线只有 bf16 开关", "the v1 route has the switch bf16 alone")


def _as_route_takes_it(code: str, run: Run, answer: Judgement) -> Judgement:
    """The answer of a check without what the route has no value for."""
    if code == "GPU301":
        attention = run.practice("attention")
        if answer.status is Status.DISABLED and attention.value == "sdpa":
            answer = on(attention, "sdpa")  # a trial run, to which nothing is advised
        elif answer.variant == "default-sdpa":
            answer = replace(answer, variant="sdpa")
        return excluding(answer, _NO_CHOICE, "auto", "default-auto")
    if code == "GPU201":
        name = part_of(run, "dist_config", "name")
        others = () if name is not None and name.value == "deepspeed" else ("fp16",)
        return excluding(answer, _ONE_TYPE, "pure-bf16", *others)
    return answer


def _fused(run: Run) -> Judgement:
    return cannot_apply(_UNFUSED)


def _prompts(run: Run) -> Judgement:
    """Loss weights of the answers alone (v1/core: rendering, 0.9.5 and 0.9.6.dev0)."""
    if not run.practice("algorithm").known:
        return cannot_tell(run.practice("algorithm"))
    if algorithm(run) != "sft":
        return cannot_apply(Text("仅用于 SFT", "for supervised tuning only"))
    return by_itself(
        Text(
            "v1 路线中提示词的损失权重为 0",
            "the v1 route gives prompts a loss weight of 0 (v1/core, rendering)",
        )
    )


# KernelPlugin in v1/plugins/model_plugins/kernels of 0.9.6.dev0; before it include_kernels names
# those of auto.
_OF_CUDA = ("flash-linear-attention", "cuda_fused_moe")


def _kernels(run: Run) -> Judgement:
    setting = part_of(run, "kernel_config", "name")
    if setting is not None and not setting.known:
        return cannot_tell(setting)
    names = kernels_of(run)
    if setting is not None and any(name in _OF_CUDA for name in names):
        return on(setting)
    if not is_cuda(run):
        is_on = setting is not None and any(name == "auto" or "npu" in name for name in names)
        hint = Text("可选：NPU 融合算子", "optional: fused kernels for NPUs")
        return on(setting) if is_on and setting is not None else off(hint)
    if run.model.is_moe or is_recurrent(run):
        kernel = _OF_CUDA[0 if is_recurrent(run) else 1]
        zh, en = "可选：在 kernel_config.name 中加入", "optional: kernel_config.name may list"
        return off(Text(f"{zh} {kernel}", f"{en} {kernel}"), setting)
    return cannot_apply(
        Text(
            "auto 只应用 NPU 算子，CUDA 算子面向 MoE 与线性注意力",
            "auto applies NPU kernels alone, and those for CUDA serve experts and linear attention",
        )
    )


# _LIGER_FN_BY_MODEL_TYPE in v1/plugins/model_plugins/kernels/liger_kernel_ops.py.
_LIGER_MODELS = re.compile(r"(?i)(?:^|[/_-])qwen-?3(?!-?(?:vl|omni|asr|tts|embedding|reranker))")


def _liger(run: Run) -> Judgement:
    setting = run.practice("liger_kernel")
    if not setting.known:
        return cannot_tell(setting)
    name = run.model.known_as
    if name and not _LIGER_MODELS.search(name):
        return cannot_apply(
            Text(
                "v1 路线的 Liger 只支持 Qwen3 与 Qwen3.5",
                "the v1 route applies Liger to Qwen3 and Qwen3.5 alone",
            )
        )
    if setting.value is True:
        return on(setting, "liger")
    return off(
        Text(
            "可选：kernel_config.name: liger_kernel（不含融合损失）",
            "optional: kernel_config.name liger_kernel (without its fused loss)",
        )
    )


def _batching(run: Run) -> Judgement:
    """``padding_free`` is what comes near to packing (v1/core/utils/batching.py)."""
    return excluding(_unpadded(run), NO_WAY, "packing")


def _unpadded(run: Run) -> Judgement:
    free = run.practice("padding_free")
    if free.value is True:
        return on(free, "padding_free")
    if not free.known:
        return cannot_tell(free)
    if not run.practice("algorithm").known:
        return cannot_tell(run.practice("algorithm"))
    if algorithm(run) != "sft":
        return off(Text("偏好训练中可选", "optional where answers are compared"))
    if run.value("packing") is not False:
        return off(
            Text("按 token 数组批", "batches are filled by their tokens"),
            run.practice("packing"),
        )
    if is_recurrent(run):
        return off(
            Text("含循环状态的模型不宜打包", "recurrent layers would mix packed samples"), free
        )
    if number(run, "micro_batch_size") == 1:
        return off(Text("微批只有一条样本，没有填充", "a micro-batch of one sample has no padding"))
    if not is_cuda(run):
        return off(Text("非 CUDA 设备", "not a CUDA device"))
    wanted = {"batching_strategy": "padding_free", "flash_attn": "flash_attention_2"}
    return advise(
        run,
        "short samples are padded to the longest of their micro-batch",
        Text("样本填充到微批内最长者", "samples are padded to the longest of their micro-batch"),
        Text(
            "设置 batching_strategy: padding_free（需 flash_attn: flash_attention_2）",
            "set batching_strategy to padding_free (needs flash_attn: flash_attention_2)",
        ),
        parameters=wanted,
        variant="padding_free",
        at=free if free.explicit else None,
    )


_JUDGES: dict[str, Callable[[Run], Judgement]] = {
    "GPU206": _lean,
    "GPU305": _liger,
    "GPU313": _kernels,
    "GPU314": _fused,
    "GPU507": _batching,
    "GPU624": _prompts,
}
