"""GPU507: short samples share a sequence instead of being padded."""

from __future__ import annotations

from typing import Any, Optional

from flake8_gpu_training.checks._data_examples import LLAMAFACTORY, swift_lacks, trainer_lacks
from flake8_gpu_training.checks._impacts import by_class
from flake8_gpu_training.checks._judging import (
    advise,
    cannot_apply,
    cannot_tell,
    of_training,
    off,
    on,
    seen,
)
from flake8_gpu_training.checks._programs import decoder_loads_vision, first_call, imports
from flake8_gpu_training.checks._scale import (
    has_no_flash_code,
    is_cuda,
    is_recurrent,
    number,
    text,
)
from flake8_gpu_training.checks._settings import (
    algorithm,
    has,
    is_on,
    is_text,
    may_use_flash_attention,
    parameter,
)
from flake8_gpu_training.checks.base import (
    Check,
    Example,
    Impact,
    Item,
    Judgement,
    Priority,
)
from flake8_gpu_training.facts import Setting
from flake8_gpu_training.frameworks.transformers import configuration_class
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

_PACKING = "https://huggingface.co/blog/packing-with-FA2"


# --- GPU507: packing and padding-free batches ---

_FLASH = ("flash_attention_2", "flash_attention_3", "flash_attention_4")
_PACKS = ("pt", "sft", "dpo", "kto", "grpo", "gkd")


@of_training(alone=True)
def _packing(run: Run) -> Judgement:
    for variant in ("packing", "padding_free"):
        if run.value(variant) is True:
            return on(run.practice(variant), variant)
    if not has(run, "packing"):
        return _packing_by_hand(run)
    setting = run.practice("packing")
    if not setting.known:
        return cannot_tell(setting)
    return _unpacked(run, setting)


def _packing_by_hand(run: Run) -> Judgement:
    packed = first_call(run, ".ConstantLengthDataset", ".DataCollatorWithFlattening")
    if packed is not None:
        return seen(packed)
    if not is_text(run):
        return cannot_apply(Text("非文本数据", "the data are not text"))
    return cannot_tell(Text("样本如何组批无法静态得知", "how samples form batches is not known"))


def _unpacked(run: Run, setting: Setting) -> Judgement:
    task = parameter(run, "task_type", default="causal_lm")
    if task.known and str(task.value).lower() != "causal_lm":
        return cannot_apply(Text(f"任务类型 {task.value}", f"task type {task.value}"))
    how = algorithm(run)
    if how is None:
        return cannot_tell(Text("训练阶段未知", "the training stage is not known"))
    if how not in ("pt", "sft"):
        return off(Text(f"{how} 训练", f"a {how} run"), setting)
    if run.model.kind == "unknown" and run.framework != "hf_trainer":
        return cannot_tell(Text("模型未知", "the model is not known"))
    if not is_text(run) or next(decoder_loads_vision(run), None) is not None:
        return off(Text("多模态训练中可选", "optional in multimodal training"), setting)
    obstacle = _packing_obstacle(run)
    if obstacle is not None:
        return off(obstacle, setting)
    if not may_use_flash_attention(run):
        return cannot_apply(Text("该加速卡没有 Flash Attention", "no flash attention on this card"))
    if not _takes_packing(run):
        return cannot_apply(Text("该参数类没有 packing", "its arguments have no packing"))
    return _pack(run, setting)


_UNPACKED_TUNING = ("longlora", "reft")


def _packing_obstacle(run: Run) -> Optional[Text]:
    """Why packed samples would not be kept apart in this run."""
    if has_no_flash_code(run):
        return Text("该模型的代码没有 Flash Attention", "the model's code has no flash attention")
    if not is_cuda(run):
        return Text("非 CUDA 设备", "not a CUDA device")
    if is_recurrent(run):
        return Text("含循环状态的模型不宜打包", "recurrent layers would mix packed samples")
    if text(run, "tuning") in _UNPACKED_TUNING:
        return Text("该微调方式不支持打包", "this tuning does not go with packing")
    if run.value("unsloth") is True or imports(run, "unsloth") is not None:
        return Text("Unsloth 自行组批", "Unsloth forms batches itself")
    if is_on(parameter(run, "use_kt", default=False)):
        return Text("KTransformers 后端不支持", "not with the KTransformers back end")
    return None


def _takes_packing(run: Run) -> bool:
    """Transformers' own arguments have no packing; TRL's SFTConfig has."""
    if run.framework != "hf_trainer":
        return True
    return configuration_class(run) == "SFTConfig"


def _pack(run: Run, setting: Setting) -> Judgement:
    wanted: dict[str, Any] = {"packing": True}
    needs = ""
    if run.framework == "swift" and text(run, "attention") not in _FLASH:
        wanted["attention"] = "flash_attention_2"
        needs = " (packing needs a flash kernel, attn_impl)"
    elif run.framework == "hf_trainer" and text(run, "attention") not in _FLASH:
        needs = " (load the model with a flash kernel, which keeps packed samples apart)"
    elif run.framework == "llamafactory":
        wanted["padding_free"] = True
        needs = " (neat_packing keeps packed samples apart)"
    single = number(run, "micro_batch_size") == 1
    waste = (
        "a step computes one sample, however short"
        if single
        else "short samples are padded to the longest of their batch"
    )
    return advise(
        run,
        f"{waste}{needs}",
        Text("样本未打包，短样本浪费算力", "samples are not packed")
        if single
        else Text("样本未打包，存在填充浪费", "samples are padded, not packed"),
        Text(
            "将多条短样本打包为定长序列（需 Flash Attention）",
            "pack short samples into full sequences (needs flash attention)",
        ),
        practices=wanted,
        variant="packing",
        at=setting,
        impact=by_class(Priority.MEDIUM, _PACKING) if single else None,
    )


CHECKS: tuple[Check, ...] = (
    Check(
        "GPU507",
        "packing",
        Text("序列打包", "Sequences are packed"),
        Priority.MEDIUM,
        _packing,
        why="Padding is computed like any other token. Packing fills each sequence with "
        "several samples, and a variable-length flash kernel keeps them apart.",
        fix="Set packing (or padding_free) together with a flash attention kernel.",
        ignore="Samples are about as long as max_length, or exact batch composition matters.",
        items=(
            Item("general", "F", "packing", 1),
            Item("swift", "H", "packing", 2, "packing", "packing"),
            Item("swift", "H", "padding-free", 2, "packing", "padding_free"),
        ),
        impact=Impact(
            throughput=(40, 100),
            memory=(-20, -6),
            note=Text(
                "7B–8B 模型实测：FLAN 2 倍，OrcaMath 1.4 倍；长度差异越大收益越高",
                "measured at 7B to 8B: twice on FLAN, 1.4 times on OrcaMath; the more lengths vary",
            ),
            source=_PACKING,
        ),
        examples=(
            swift_lacks("packing true"),
            Example(
                "llamafactory",
                "train.yaml",
                LLAMAFACTORY.replace("packing: true\nneat_packing: true\n", ""),
                LLAMAFACTORY,
            ),
            trainer_lacks("packing=True"),
        ),
        sources=(_PACKING, "ms-swift 4.6.0, arguments/sft_args.py", "trl 1.16, sft_config.py"),
    ),
)
