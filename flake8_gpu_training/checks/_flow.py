"""What the checks of Flow-Factory share: its parameters, its models, and shared practices."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Callable, Optional

from flake8_gpu_training.checks import _sources as sources
from flake8_gpu_training.checks._impacts import by_class
from flake8_gpu_training.checks._judging import (
    Judge,
    advise,
    by_code,
    cannot_apply,
    cannot_tell,
    excluding,
    of_training,
    off,
    on,
    seen,
)
from flake8_gpu_training.checks._programs import calls, first_call, imports, says
from flake8_gpu_training.checks._scale import (
    architecture,
    gpus,
    has_flash_kernel,
    is_cuda,
    text,
)
from flake8_gpu_training.checks._settings import is_on, parameter
from flake8_gpu_training.checks.base import Item, Judgement, Priority
from flake8_gpu_training.facts import Origin, Setting
from flake8_gpu_training.frameworks.reading import find
from flake8_gpu_training.frameworks.reading import number as figure_of
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

HPARAMS = "Flow-Factory 0.1.0, hparams"
TRAINERS = "Flow-Factory 0.1.0, trainers"
MODELS = "Flow-Factory 0.1.0, models/abc.py"
EXAMPLES = "Flow-Factory 0.1.0, examples"
LOADER = "Flow-Factory 0.1.0, data_utils/loader.py"

_OTHER = Text("非 Flow-Factory 任务", "not a Flow-Factory run")
NOT_CUDA = Text("非 CUDA 设备", "not a CUDA device")
FULL_TUNING = Text("全参微调，没有适配器", "full tuning: no adapters")


def of_flow(judge: Judge) -> Judge:
    """``judge`` for training runs of Flow-Factory, whose parameters are its own."""

    @functools.wraps(judge)
    @of_training(alone=True)
    def judged(run: Run) -> Judgement:
        return judge(run) if run.framework == "flow_factory" else cannot_apply(_OTHER)

    return judged


def item(category: str, identifier: str, points: float, group: str = "", variant: str = "") -> Item:
    """An item of Flow-Factory's audit."""
    return Item("flow-factory", category, identifier, points, group, variant)


def option(run: Run, name: str, default: Any = None) -> Setting:
    """A parameter of the nested YAML, else its default in the checkout, or in the release."""
    found = parameter(run, name, default=default, source=HPARAMS)
    if found.explicit or not found.known or run.checkout is None:
        return found
    own = run.checkout.parameters.get(name)
    return own if own is not None and own.known else found


def lacks(run: Run, name: str) -> bool:
    """Whether the checkout that the run is started from has no such parameter."""
    return run.checkout is not None and name not in run.checkout.parameters


def needs(name: str) -> Callable[[Judge], Judge]:
    """For judges of one parameter, which a checkout of another age may lack."""

    def decorate(judge: Judge) -> Judge:
        @functools.wraps(judge)
        def judged(run: Run) -> Judgement:
            if run.framework == "flow_factory" and lacks(run, name):
                return cannot_apply(_lacking(name))
            return judge(run)

        return judged

    return decorate


def _lacking(name: str) -> Text:
    key = name.partition(".")[2]
    return Text(
        f"此处的 Flow-Factory 没有参数 {key}", f"this checkout of Flow-Factory has no {key}"
    )


def figure(run: Run, name: str, default: Optional[float] = None) -> Optional[float]:
    """A parameter that is a known number."""
    found = option(run, name, default)
    return figure_of(found.value) if found.known else None


def placed(run: Run, setting: Setting) -> Optional[Setting]:
    """``setting`` where it stands, else where its section of the YAML starts; None without."""
    if setting.location is not None:
        return setting
    section = setting.name.partition(".")[0]
    document = run.place.document
    entry = document.root.mapping.get(section) if document is not None else None
    if entry is None:
        return None
    note = f"{setting.name} {setting.value} unless set"
    return Setting(setting.name, setting.value, entry.location, Origin.DERIVED, note)


def model_type(run: Run) -> str:
    """``wan2_t2v``, ``flux1`` …, "" when not known."""
    found = option(run, "model.model_type")
    return found.value.lower() if isinstance(found.value, str) else ""


_MODELS = frozenset(
    """
    sd3-5 flux1 flux1-kontext flux2 flux2-klein qwen-image qwen-image-edit-plus z-image
    wan2_t2v wan2_i2v wan2_v2v ltx2_t2av ltx2_i2av
    """.split()  # noqa: SIM905
)


def is_of_release(kind: str) -> bool:
    """Whether Flow-Factory itself has an adapter for the model; a fork's may do otherwise."""
    return kind in _MODELS


def is_of_diffusers(run: Run) -> bool:
    """Whether the model's transformer is known to be Diffusers'."""
    kind = model_type(run)
    return is_of_release(kind) or (
        run.checkout is not None and run.checkout.models.get(kind, False)
    )


_VIDEO = ("wan", "ltx", "hunyuan", "cogvideo")


def makes_video(run: Run) -> bool:
    """Whether samples are videos."""
    kind = model_type(run)
    return kind.startswith(_VIDEO) if kind else run.model.kind == "video"


def is_lora(run: Run) -> Optional[bool]:
    """Whether adapters are trained; None when that is not known."""
    tuning = text(run, "tuning")
    return None if tuning is None else tuning == "lora"


def unless_lora(run: Run) -> Optional[Judgement]:
    """The answer for runs without adapters; None for those with them."""
    trained = is_lora(run)
    if trained is None:
        return cannot_tell(run.practice("tuning"))
    return None if trained else cannot_apply(FULL_TUNING)


def algorithm(run: Run) -> str:
    """``grpo``, ``nft`` …, "" when not known."""
    return text(run, "algorithm") or ""


def sides(run: Run) -> Optional[tuple[float, float]]:
    """Height and width of a sample; None when not known."""
    found = option(run, "train.resolution", 512)
    value = found.value if found.known else None
    if isinstance(value, (list, tuple)) and value and all(figure_of(v) is not None for v in value):
        return float(value[0]), float(value[-1])
    single = figure_of(value)
    return None if single is None else (single, single)


def frames(run: Run) -> Optional[float]:
    """Frames of a sample; keys that a section does not know are its ``extra_kwargs``."""
    inner = find(run, "train.extra_kwargs.num_frames")
    if inner is not None:
        return figure_of(inner.value) if inner.known else None
    return figure(run, "train.num_frames", None)


# Sides in pixels and frames of what becomes one token, by the VAE and the patches of a model.
_USUAL = (16, 4)
_OF_LTX2 = (32, 8)
# Models that also see reference images, of up to 1024 x 1024 pixels each.
_EDITING = ("flux1-kontext", "flux2", "qwen-image-edit")


def tokens(run: Run) -> Optional[int]:
    """Tokens that the transformer sees of one sample; None where that is not known."""
    kind, size = model_type(run), sides(run)
    if size is None or kind.startswith(_EDITING) or not is_of_release(kind):
        return None
    count = frames(run) if makes_video(run) else 1
    if count is None:
        return None
    pixels, each = _OF_LTX2 if kind.startswith("ltx2") else _USUAL
    latents = (count - 1) // each + 1
    return int(latents * (size[0] // pixels) * (size[1] // pixels))


def rewards(run: Run, name: str = "rewards") -> Optional[tuple[Mapping[str, Any], ...]]:
    """The reward models as the YAML lists them; None when that is not known."""
    nested = {
        key.partition(".")[2]: setting.value
        for key, setting in run.settings.items()
        if key.startswith(f"{name}.")
    }
    if nested:
        return (nested,)
    setting = find(run, name)
    if setting is None:
        return None if run.is_open else ()
    if not isinstance(setting.value, (list, tuple)):
        return None
    return tuple(one for one in setting.value if isinstance(one, dict))


def reward_place(run: Run, key: str = "") -> Optional[Setting]:
    """Where the rewards stand in the YAML, or a key of the only one of them."""
    found = find(run, f"rewards.{key}") if key else None
    if found is not None:
        return found
    first = next((s for k, s in run.settings.items() if k.startswith("rewards.")), None)
    return find(run, "rewards") or first


# --- GPU651: averaged weights ------------------------------------------------------------------

NO_AVERAGE = Text("未启用 EMA", "no averaged weights are kept")


def averages(run: Run) -> Optional[bool]:
    """Whether averaged weights are kept; None when that is not known."""
    decay = figure(run, "train.ema_decay", 0.995)
    return None if decay is None else decay > 0


@of_flow
@needs("train.ema_decay")
def average(run: Run) -> Judgement:
    """``train.ema_decay``, on unless it is 0."""
    setting, kept = option(run, "train.ema_decay", 0.995), averages(run)
    if kept is None:
        return cannot_tell(setting)
    return on(setting) if kept else off(NO_AVERAGE, setting)


# --- GPU203, GPU205: activations ---------------------------------------------------------------

_LONG = 4096  # tokens from which activations outweigh what recomputing costs
_RECOMPUTING = Text(
    "可选：重计算节省激活显存，每步慢 20~30%",
    "optional: recomputing saves the memory of activations for 20-30% of a step",
)


@of_flow
def recomputation(run: Run) -> Judgement:
    """``train.enable_gradient_checkpointing``, or FSDP's own checkpointing."""
    setting = run.practice("gradient_checkpointing")
    if not setting.known:
        return cannot_tell(setting)
    if setting.value is True:
        return on(setting)
    length = tokens(run)
    if length is None:
        return off(_RECOMPUTING, setting)
    if length < _LONG:
        return off(
            Text(
                f"可选：样本较短（{length} token），重计算使每步慢 20~30%",
                f"optional: short samples ({length} tokens); recomputing costs 20-30% of a step",
            ),
            setting,
        )
    return advise(
        run,
        f"{length} tokens a sample keep all activations for the backward pass; recomputing them "
        "takes 20-30% of the step time",
        Text(f"未启用激活重计算（每个样本 {length} 个 token）", f"off at {length} tokens a sample"),
        Text("启用 train.enable_gradient_checkpointing", "set train.enable_gradient_checkpointing"),
        practices={"gradient_checkpointing": True},
        at=setting,
    )


@of_flow
def accumulation(run: Run) -> Judgement:
    """``auto`` works it out from the samples of an epoch."""
    setting = option(run, "train.gradient_accumulation_steps", "auto")
    if not setting.known:
        return cannot_tell(setting)
    value = figure_of(setting.value)
    if value is None or value > 1:
        return on(setting)
    return off(
        Text("每个批次都更新一次", "an update after every batch"),
        setting,
    )


# --- GPU301: attention -------------------------------------------------------------------------

_KINDS = (
    ("varlen", "varlen"),
    ("sage", "sage"),
    ("xformers", "xformers"),
    ("flash_3", "flash-3"),
    ("flash", "flash"),
)
# Transformers that pass no mask to the attention (diffusers 0.36.0 to 0.42.1, models/transformers).
_UNMASKED = ("wan", "flux")
_FLASH_3 = "_flash_3_hub"
_DISPATCHED = "diffusers 0.36.0 to 0.42.1, attention_dispatch.py"
_SDPA = f"attn_backend=native ({_DISPATCHED})"
_FORWARD_ONLY = Text(
    "SageAttention 的算子没有反向传播，不能用于训练",
    "SageAttention's kernels have no backward pass: they cannot train",
)
_FIXED = Text(
    "SD3 的注意力处理器固定使用 SDPA，attn_backend 不起作用（diffusers 0.36.0 至 0.42.1）",
    "SD3's attention processors always call SDPA, whatever attn_backend says "
    "(diffusers 0.36.0 to 0.42.1)",
)
_MASKED = Text(
    "LTX-2 的注意力带提示词掩码，flash 后端不接受掩码",
    "LTX-2 masks its prompts' padding, and the flash back ends refuse a mask",
)
_OWN_MODEL = Text(
    "模型适配器不是 Flow-Factory 自带的，默认注意力实现未知",
    "the model's adapter is not one of Flow-Factory's: its attention by default is not known",
)


@of_flow
def attention(run: Run) -> Judgement:
    """``model.attn_backend``, which is Diffusers' native (SDPA) unless set."""
    setting = option(run, "model.attn_backend")
    if not is_cuda(run):
        return cannot_apply(NOT_CUDA)
    kind = model_type(run)
    if kind.startswith("sd3"):
        answer = on(_SDPA, "default-sdpa")
        return excluding(answer, _FIXED, "flash", "flash-3", "varlen", "sage", "xformers")
    if lacks(run, "model.attn_backend"):
        answer = on(_SDPA, "default-sdpa") if is_of_diffusers(run) else cannot_tell(_OWN_MODEL)
        others = ("flash", "flash-3", "varlen", "sage", "xformers")
        return excluding(answer, _lacking("model.attn_backend"), *others)
    answer = cannot_tell(setting) if not setting.known else _backend(run, setting, kind)
    if kind.startswith("ltx2"):
        answer = excluding(answer, _MASKED, "flash", "flash-3")
    return excluding(answer, _FORWARD_ONLY, "sage")


def _backend(run: Run, setting: Setting, model: str) -> Judgement:
    if setting.value is None and not is_of_diffusers(run):
        return cannot_tell(_OWN_MODEL)
    name = str(setting.value or "native").lower()
    kind = next((kind for part, kind in _KINDS if part in name.lstrip("_")), "default-sdpa")
    if "native" in name or name in ("flex", "_native_flash"):
        kind = "default-sdpa"
    if kind == "sage":
        return _advise_native(run, setting)
    hopper = architecture(run) == "Hopper" and model.startswith(_UNMASKED)
    if kind in ("flash", "default-sdpa") and hopper:
        return _advise_flash_3(run, setting, kind)
    if kind != "default-sdpa":
        return on(setting, kind)
    if not has_flash_kernel(run) or not model.startswith(_UNMASKED):
        return on(setting if setting.value else _SDPA, kind)
    answer = advise(
        run,
        "SDPA picks one of its kernels at run time; a back end that is named is a flash kernel for "
        "certain (pip install flash-attn)",
        Text("未设 attn_backend，使用 SDPA", "attn_backend is not set: SDPA"),
        Text(
            "设 model.attn_backend: flash（需安装 flash-attn；flash_hub 只需 pip install kernels）",
            "set model.attn_backend to flash (needs flash-attn; flash_hub needs kernels)",
        ),
        parameters={"model.attn_backend": "flash"},
        variant=kind,
        at=placed(run, setting),
        share=0.5,
        priority=Priority.LOW,
        impact=by_class(Priority.LOW, sources.PYTORCH_SDPA),
    )
    return replace(answer, better="flash")


def _advise_native(run: Run, setting: Setting) -> Judgement:
    return advise(
        run,
        "SageAttention's kernels have no backward pass, so that no gradient goes through the "
        "attention; SDPA has one",
        Text("SageAttention 没有反向传播，注意力处得不到梯度", "SageAttention cannot train"),
        Text("设 model.attn_backend: native（SDPA）", "set model.attn_backend to native (SDPA)"),
        parameters={"model.attn_backend": "native"},
        variant="default-sdpa",
        at=setting,
        priority=Priority.HIGH,
    )


def _advise_flash_3(run: Run, setting: Setting, kind: str) -> Judgement:
    now = "flash-attn 2" if kind == "flash" else "SDPA"
    answer = advise(
        run,
        f"{now} leaves half of a Hopper GPU idle; FlashAttention-3 is made for it "
        "(pip install kernels)",
        Text(f"Hopper 上使用 {now}", f"{now} on Hopper"),
        Text(
            f"设 model.attn_backend: {_FLASH_3}（先 pip install kernels）",
            f"set model.attn_backend to {_FLASH_3} (pip install kernels)",
        ),
        parameters={"model.attn_backend": _FLASH_3},
        variant=kind if kind == "flash" else "flash-3",
        at=placed(run, setting),
        share=0.7 if kind == "flash" else None,
        priority=Priority.MEDIUM,
        impact=by_class(Priority.MEDIUM, sources.FLASH_ATTENTION_3),
    )
    return replace(answer, better="flash-3") if kind == "flash" else answer


# --- GPU640, GPU646, GPU906: clipping, layers, groups ------------------------------------------


@of_flow
def clipping(run: Run) -> Judgement:
    """``train.max_grad_norm``; DeepSpeed clips by what Accelerate's file says, 1.0 by default."""
    setting = run.practice("max_grad_norm")
    if not setting.known:
        return cannot_tell(setting)
    if is_on(setting):
        return on(setting)
    return off(Text("梯度裁剪已关闭", "gradients are not clipped, on purpose"), setting)


@of_flow
@needs("model.target_modules")
def targets(run: Run) -> Judgement:
    """``model.target_modules``: all linear layers unless named."""
    setting = option(run, "model.target_modules", "all")
    return on(setting) if setting.known else cannot_tell(setting)


_FEW, _ENOUGH = 1, 4
_BY_ADVANTAGES = ("grpo", "grpo-guard", "nft", "awm", "dgpo", "dpo", "crd")
OTHER_TRAINER = Text(
    "不是 Flow-Factory 自带的训练器，学习方式未知",
    "not one of Flow-Factory's trainers: how it learns is not known",
)


def is_own_trainer(run: Run) -> bool:
    """Whether a release has the trainer; another may learn from a teacher, say."""
    return algorithm(run) in _BY_ADVANTAGES


@of_flow
def groups(run: Run) -> Judgement:
    """``train.group_size``: an advantage is a sample's place in its group.

    A trainer that no release has may learn from something else, such as a teacher.
    """
    setting = option(run, "train.group_size", 1)
    if not is_own_trainer(run):
        return cannot_tell(OTHER_TRAINER)
    size = figure(run, "train.group_size", 1)
    if size is None:
        return cannot_tell(setting)
    if size >= _ENOUGH:
        return on(setting)
    return advise(
        run,
        "the only sample of a group has no advantage over others"
        if size <= _FEW
        else f"{size:g} samples of a prompt tell little of its mean",
        Text(f"group_size={size:g}：组内样本太少", f"group_size={size:g}: too few samples a group"),
        Text("设 train.group_size: 8（4~8 或更多）", "set train.group_size to 8 (4 to 8, or more)"),
        parameters={"train.group_size": 8},
        at=placed(run, setting),
        share=0.3 if size > _FEW else None,
        priority=Priority.MEDIUM if size > _FEW else Priority.HIGH,
    )


# --- GPU514: preprocessing in groups -----------------------------------------------------------

_SMALL_GROUP = 4


@of_flow
@needs("data.preprocessing_batch_size")
def preprocessing_batch(run: Run) -> Judgement:
    """``data.preprocessing_batch_size``: prompts that an encoder takes at once."""
    if is_off_switch(option(run, "data.enable_preprocess", True)):
        return cannot_apply(Text("未启用预处理", "nothing is preprocessed"))
    setting = option(run, "data.preprocessing_batch_size", 8)
    size = figure(run, "data.preprocessing_batch_size", 8)
    if size is None:
        return cannot_tell(setting)
    if size >= _SMALL_GROUP:
        return on(setting)
    return off(Text("逐条编码提示词，启动较慢", "few prompts at once: a slow start"), setting)


def is_off_switch(setting: Setting) -> bool:
    """Whether a switch is known to be off."""
    return setting.known and not is_on(setting)


# --- what takes a change of the code -----------------------------------------------------------

_FUSED = "self.optimizer = torch.optim.AdamW(parameters, ..., fused=True)"
_LEAN = "self.optimizer = bitsandbytes.optim.AdamW8bit(parameters, ...)"
_FOUR_BITS = """\
from diffusers import BitsAndBytesConfig

quantization_config = BitsAndBytesConfig(
    load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16
)
transformer = WanTransformer3DModel.from_pretrained(
    path, subfolder="transformer", quantization_config=quantization_config
)"""
_SCHEDULE = """\
# src/flow_factory/trainers/abc.py, behind the optimizer; and step() behind optimizer.step()
self.lr_scheduler = diffusers.optimization.get_scheduler(
    "constant_with_warmup", self.optimizer, num_warmup_steps=100
)"""


@of_flow
def compilation(run: Run) -> Judgement:
    """torch.compile: Accelerate compiles what it prepares, by its file or its variables."""
    setting = run.practice("torch_compile")
    if setting.known and setting.value is True:
        return on(setting)
    called = first_call(run, "torch.compile", ".compile_repeated_blocks")
    if called is not None:
        return seen(called)
    if not is_cuda(run):
        return cannot_apply(NOT_CUDA)
    if gpus(run) == 1:  # ff-train starts a single process without accelerate launch
        return off(_BY_VARIABLE)
    return off(_BY_FILE)


_BY_FILE = Text(
    "可选：未启用；在 config_file 的 Accelerate 文件中写 "
    "dynamo_config: {dynamo_backend: INDUCTOR} 即可，先小规模测试",
    "optional: off; dynamo_config: {dynamo_backend: INDUCTOR} in Accelerate's file (config_file) "
    "turns it on: test it first",
)
_BY_VARIABLE = Text(
    "可选：未启用；设环境变量 ACCELERATE_DYNAMO_BACKEND=INDUCTOR 即可，先小规模测试",
    "optional: off; the variable ACCELERATE_DYNAMO_BACKEND=INDUCTOR turns it on: test it first",
)


@of_flow
def fused_optimizer(run: Run) -> Judgement:
    """AdamW as the trainers make it."""
    made = next((c for c in calls(run, ".AdamW") if says(c, "fused", True)), None)
    if made is not None:
        return seen(made)
    if text(run, "offload_optimizer") in ("cpu", "nvme"):
        return cannot_apply(Text("优化器已卸载到 CPU", "the optimizer runs on the CPU, offloaded"))
    return by_code(Text("训练器的 AdamW 未融合", "the trainers' AdamW is not fused"), _FUSED)


@of_flow
def lean_optimizer(run: Run) -> Judgement:
    """AdamW of 8 bits, which no parameter asks for."""
    called = first_call(run, ".AdamW8bit", ".PagedAdamW8bit")
    if called is not None:
        return seen(called, "adamw-8bit")
    trained = is_lora(run)
    if trained is None:
        return cannot_tell(run.practice("tuning"))
    if text(run, "offload_optimizer") in ("cpu", "nvme"):
        return cannot_apply(Text("优化器状态已卸载", "the optimizer states are offloaded"))
    if trained:
        return off(
            Text(
                "LoRA 的优化器状态很小，无需 8 bit",
                "adapters have small optimizer states: 8 bits would save next to nothing",
            )
        )
    return by_code(Text("训练器只用 AdamW", "the trainers take AdamW only"), _LEAN)


@of_flow
def liger(run: Run) -> Judgement:
    """Liger's norms: its patches know language models, not these transformers."""
    found = imports(run, "liger_kernel")
    if found is not None:
        return on(f"import {found.dotted}")
    if not is_cuda(run):
        return cannot_apply(NOT_CUDA)
    return by_code(
        Text(
            "Liger 没有扩散 Transformer 的补丁，只能逐个替换 RMSNorm",
            "Liger patches no diffusion transformer; its RMSNorm can take the place of each norm",
        ),
        "from liger_kernel.transformers import LigerRMSNorm\n\n"
        "attention.norm_q = LigerRMSNorm(attention.norm_q.weight.numel())",
    )


@of_flow
def four_bits(run: Run) -> Judgement:
    """A quantized base model, which no adapter of Flow-Factory loads."""
    called = first_call(run, ".BitsAndBytesConfig", ".PipelineQuantizationConfig")
    if called is not None:
        return seen(called)
    trained = unless_lora(run)
    if trained is not None:
        return trained
    return by_code(Text("只加载 16 位基座", "the base model is loaded in 16 bits only"), _FOUR_BITS)


@of_flow
def schedule(run: Run) -> Judgement:
    """A schedule of the learning rate, which no trainer has."""
    called = first_call(run, ".get_scheduler", ".LambdaLR", ".CosineAnnealingLR")
    if called is not None:
        return seen(called)
    return by_code(Text("训练器没有学习率调度", "the trainers have no schedule"), _SCHEDULE)


_WAN_22 = re.compile(r"(?i)wan2\.2.*a14b")


def has_two_transformers(run: Run) -> bool:
    """Whether the model is a Wan2.2 of two experts, each a transformer."""
    return _WAN_22.search(run.model.name or str(run.value("model", ""))) is not None
