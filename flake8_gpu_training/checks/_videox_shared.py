"""How VideoX-Fun does what checks ask of every framework."""

from __future__ import annotations

from dataclasses import replace
from typing import Optional

from flake8_gpu_training.checks._judging import (
    Snippet,
    advise,
    by_code,
    cannot_apply,
    cannot_tell,
    off,
    on,
    seen,
)
from flake8_gpu_training.checks._programs import calls, first_call, imports, says
from flake8_gpu_training.checks._scale import (
    GIB,
    architecture,
    billions,
    gpus,
    has_flash_kernel,
    has_fp8,
    is_cuda,
    memory_gib,
    text,
)
from flake8_gpu_training.checks._settings import is_on
from flake8_gpu_training.checks._videox import (
    flag,
    is_deepspeed,
    is_fsdp,
    is_lora,
    of_videox,
    script,
    tokens,
    unless_lora,
    without,
)
from flake8_gpu_training.checks._videox_samples import prompts_only
from flake8_gpu_training.checks.base import Impact, Judgement, Priority
from flake8_gpu_training.facts import Setting, known
from flake8_gpu_training.frameworks.videox_fun import blocks
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

NOT_CUDA = Text("非 CUDA 设备", "not a CUDA device")
ONE_GPU = Text("单卡训练", "one GPU")
FULL_TUNING_ONLY = Text("仅用于全参训练", "for full tuning only")

# --- GPU203, GPU205: activations --------------------------------------------------------------

_LONG = 4096  # tokens from which the activations of a sample outweigh what recomputing costs
_LARGE_BILLIONS = 3.0


@of_videox
def recomputation(run: Run) -> Judgement:
    """``--gradient_checkpointing``, which the scripts leave off."""
    setting = run.practice("gradient_checkpointing")
    if not setting.known:
        return cannot_tell(setting)
    if setting.value is True:
        return on(setting)
    length, size = tokens(run), billions(run)
    if length is None and size is None:
        return cannot_tell(Text("模型规模与样本长度未知", "neither model nor samples are known"))
    if (length or 0) < _LONG and (size or 0) < _LARGE_BILLIONS:
        return off(Text("样本短、模型小，可不启用", "short samples of a small model"), setting)
    each = f"{length} tokens a sample" if length is not None else f"{size:.0f}B parameters"
    said = f"每个样本 {length} 个 token" if length is not None else f"模型 {size:.0f}B"
    return advise(
        run,
        f"{each}: the layers keep all activations for the backward pass; recomputing them takes "
        "20-30% of the step time",
        Text(f"未启用激活重计算（{said}）", f"activations are kept ({each})"),
        Text("启用 --gradient_checkpointing", "set --gradient_checkpointing"),
        practices={"gradient_checkpointing": True},
    )


@of_videox
def accumulation(run: Run) -> Judgement:
    """``--gradient_accumulation_steps``: what batch a run learns from is its own choice."""
    setting = run.practice("gradient_accumulation_steps")
    if not setting.known:
        return cannot_tell(setting)
    if isinstance(setting.value, (int, float)) and setting.value > 1:
        return on(setting)
    return off(
        Text(
            "可选：显存不变，增大有效批大小", "optional: a larger batch with the memory of a small"
        ),
        setting,
    )


# --- GPU226: optimizers of few bytes ----------------------------------------------------------

_BYTES, _BYTES_IN_8_BITS = 8, 6
"""Of a parameter in BF16, its gradient and Adam's two moments: of 2 bytes, or of 1 byte each."""


@of_videox
def lean_optimizer(run: Run) -> Judgement:
    """``--use_8bit_adam``, which is asked first, or ``--use_came``."""
    setting = run.practice("optimizer")
    name = text(run, "optimizer")
    if name in ("adamw_8bit", "came"):
        return on(setting, "adamw-8bit" if name == "adamw_8bit" else "came")
    trained = is_lora(run)
    if trained is None or not setting.known:
        return cannot_tell(run.practice("tuning") if trained is None else setting)
    if text(run, "offload_optimizer") in ("cpu", "nvme"):
        return cannot_apply(Text("优化器状态已卸载", "the optimizer states are offloaded"))
    if trained:
        return off(
            Text(
                "可选；LoRA 的优化器状态很小",
                "optional: adapters have small optimizer states as it is",
            ),
            setting,
        )
    held, lean, memory = _held(run, _BYTES), _held(run, _BYTES_IN_8_BITS), memory_gib(run)
    plain = not is_deepspeed(run) and not is_fsdp(run)
    if (
        not plain
        or held is None
        or lean is None
        or memory is None
        or held < memory
        or lean >= memory
    ):
        return off(Text("可选：8 位 Adam 或 CAME", "optional: 8-bit Adam, or CAME"), setting)
    return advise(
        run,
        f"weights, gradients and moments take {held:.0f} GiB of {memory:g} GiB; moments of 8 bits "
        f"leave {lean:.0f} GiB (pip install bitsandbytes)",
        Text(
            f"权重、梯度与动量约 {held:.0f} GiB，超过 {memory:g} GiB 显存",
            f"weights, gradients and moments take {held:.0f} GiB of {memory:g} GiB",
        ),
        Text(
            f"启用 --use_8bit_adam（先 pip install bitsandbytes），降到约 {lean:.0f} GiB",
            f"set --use_8bit_adam (pip install bitsandbytes): about {lean:.0f} GiB",
        ),
        parameters={"use_8bit_adam": True},
        variant="adamw-8bit",
        priority=Priority.HIGH,
    )


def _held(run: Run, size: int) -> Optional[float]:
    parameters = run.model.parameters
    return None if parameters is None else parameters * size / GIB


# --- GPU301: attention --------------------------------------------------------------------------

_FLASH_2 = frozenset({"flash-attn", "flash-attention"})
_FLASH_3 = frozenset({"flash-attn-3", "flash-attn-interface"})


def _named(run: Run) -> set[str]:
    """Distributions that the project's requirements and install commands name."""
    return {
        name.lower().replace("_", "-") for name in (*run.versions, *run.limits, *run.unreleased)
    }


@of_videox
def attention(run: Run) -> Judgement:
    """The newest flash kernel that is installed, unless VIDEOX_ATTENTION_TYPE says otherwise."""
    setting = run.practice("attention")
    if not setting.known:
        return cannot_tell(setting)
    if not is_cuda(run):
        return cannot_apply(NOT_CUDA)
    if not has_flash_kernel(run):
        return on(setting, "sdpa")
    if text(run, "attention") == "auto":
        return _installed(run, setting)
    answer = advise(
        run,
        "SDPA drops the padding mask and its flash kernel is not asked for; FLASH_ATTENTION takes "
        "the newest flash-attn that is installed",
        Text(
            f"VIDEOX_ATTENTION_TYPE={setting.value}：使用 SDPA，且忽略填充掩码",
            f"VIDEOX_ATTENTION_TYPE={setting.value}: SDPA, which drops the padding mask",
        ),
        Text(
            "设 VIDEOX_ATTENTION_TYPE=FLASH_ATTENTION（或去掉该变量），并安装 flash-attn",
            "set VIDEOX_ATTENTION_TYPE=FLASH_ATTENTION (or drop it), and install flash-attn",
        ),
        snippet=Snippet(
            "set VIDEOX_ATTENTION_TYPE=FLASH_ATTENTION, or drop it",
            "export VIDEOX_ATTENTION_TYPE=FLASH_ATTENTION",
            "bash",
        ),
        variant="sdpa",
        at=setting,
        share=0.5,
        priority=Priority.MEDIUM,
    )
    hopper = architecture(run) == "Hopper"
    return replace(answer, better="flash-attention-3" if hopper else "flash-attention-2")


def _installed(run: Run, setting: Setting) -> Judgement:
    """What the pins of the project show; FlashAttention-3 goes before 2."""
    names = _named(run)
    if names & _FLASH_3 and architecture(run) in (None, "Hopper"):
        return on(setting, "flash-attention-3")
    if _FLASH_2 & names:
        return on(setting, "flash-attention-2")
    return cannot_tell(
        Text(
            "由安装的内核决定（依赖文件、Dockerfile 与脚本均未安装 flash-attn）",
            "the best kernel that is installed is taken (no requirements file, Dockerfile or "
            "script of the project installs flash-attn)",
        )
    )


def takes_flash(run: Run) -> Optional[bool]:
    """Whether a flash kernel attends; None where that depends on what is installed."""
    setting = run.practice("attention")
    if not setting.known:
        return None
    if not is_cuda(run) or not has_flash_kernel(run) or text(run, "attention") == "sdpa":
        return False
    return True if _named(run) & (_FLASH_2 | _FLASH_3) else None


# --- GPU616, GPU640: rates and clipping ----------------------------------------------------------


@of_videox
def second_rate(run: Run) -> Judgement:
    """``--trainable_modules_low_learning_rate``: modules that learn at half the rate."""
    name = "trainable_modules_low_learning_rate"
    setting = flag(run, name, default=None)
    if setting.explicit and setting.known and is_on(setting) and setting.value not in ([], "[]"):
        return on(setting)
    if is_lora(run) is True:
        return cannot_apply(FULL_TUNING_ONLY)
    lacking = without(run, name)
    if lacking is not None:
        return lacking
    return off(Text("可选：部分模块用一半学习率", "optional: some modules at half the rate"))


_AUTOMATIC = "auto"
_DEEPSPEED_FILE = Text("DeepSpeed 配置", "the DeepSpeed file")
_CLIPS = "accelerate 1.12.0, accelerator.py (clip_grad_norm_, _prepare_deepspeed)"


@of_videox
def clipping(run: Run) -> Judgement:
    """``--max_grad_norm``; under DeepSpeed its own gradient_clipping decides instead."""
    setting = run.practice("max_grad_norm")
    if not setting.known:
        return cannot_tell(setting)
    if not is_deepspeed(run):
        if is_on(setting):
            return on(setting)
        return off(Text("梯度裁剪已关闭", "gradients are not clipped, on purpose"), setting)
    named = run.launcher.options.get("deepspeed_config_file")
    if run.deepspeed is None and named is None:
        return on(f"gradient_clipping=1.0 ({_CLIPS})")
    clipped = _clipped_by_deepspeed(run, named)
    if clipped is None:
        return cannot_tell(Text("未读到 DeepSpeed 配置", "the DeepSpeed file was not read"))
    if clipped:
        return on(clipped)
    limit = setting.value if is_on(setting) else 1.0
    path = run.deepspeed.path if run.deepspeed is not None else named and named.value
    is_file = isinstance(path, str) and path.endswith(".json")
    file = Text(str(path), str(path)) if is_file else _DEEPSPEED_FILE
    return advise(
        run,
        "under DeepSpeed --max_grad_norm clips nothing, and the file has no gradient_clipping",
        Text(
            "DeepSpeed 下 --max_grad_norm 不起作用，而配置文件没有 gradient_clipping：梯度未裁剪",
            "under DeepSpeed --max_grad_norm clips nothing, and the file has no gradient_clipping",
        ),
        Text(
            f"在 {file.zh} 中写入 gradient_clipping: {limit}",
            f"write gradient_clipping: {limit} in {file.en}",
        ),
        snippet=Snippet(
            f'write "gradient_clipping": {limit} in {file.en}',
            f'"gradient_clipping": {limit},',
            "json",
        ),
        at=named,
        impact=Impact(source=_CLIPS),
    )


def _clipped_by_deepspeed(run: Run, named: Optional[Setting]) -> Optional[str]:
    """What DeepSpeed clips by, as evidence; "" where nothing says it, None where unread."""
    if run.deepspeed is not None:
        node = run.deepspeed.get("gradient_clipping")
        if node is None:
            return ""
        if node.value == _AUTOMATIC:
            return f"gradient_clipping=1.0 ({_CLIPS})"
        return f"gradient_clipping={node.value}" if known(node.value) and node.value else None
    name = str(named.value).rpartition("/")[2] if named is not None and named.known else ""
    if not name.startswith("zero_stage"):
        return None
    # Of VideoX-Fun's own files those of stage 3 have "auto", that of stage 2 nothing.
    return f"gradient_clipping=1.0 ({_CLIPS})" if "stage3" in name else ""


# --- GPU302, GPU304, GPU305: compilation and kernels ----------------------------------------------


def varies(run: Run) -> Optional[Setting]:
    """The flag by which samples vary in size, or None: without buckets none does."""
    buckets = flag(run, "enable_bucket")
    if buckets.known and not is_on(buckets):
        return None
    for name in ("enable_bucket", "random_hw_adapt", "training_with_video_token_length"):
        setting = flag(run, name)
        if setting.known and is_on(setting):
            return setting
    return None


_BLOCKS_COMPILED = """\
# before accelerator.prepare(...)
for module in transformer3d.modules():
    if type(module).__name__ in {names}:
        module.compile(dynamic=True)"""


@of_videox
def compilation(run: Run) -> Judgement:
    """torch.compile, which no script calls."""
    setting = run.practice("torch_compile")
    if setting.known and setting.value is True:
        return on(setting)
    called = first_call(run, "torch.compile") or next(calls(run, ".compile_repeated_blocks"), None)
    if called is not None:
        return seen(called)
    if not is_cuda(run):
        return cannot_apply(NOT_CUDA)
    vary = varies(run) is not None
    return by_code(
        Text(
            "脚本不调用 torch.compile" + ("（分桶时形状多变，需 dynamic=True）" if vary else ""),
            "the script does not call torch.compile"
            + (" (buckets vary the shapes: dynamic=True)" if vary else ""),
        ),
        _BLOCKS_COMPILED.format(names=sorted(blocks(run)) or ["WanAttentionBlock"]),
    )


@of_videox
def graphs(run: Run) -> Judgement:
    """CUDA graphs, which take samples of one size."""
    called = first_call(
        run, "torch.cuda.graph", "torch.cuda.CUDAGraph", "torch.cuda.make_graphed_callables"
    )
    if called is None:
        called = next(
            (c for c in calls(run, "torch.compile") if "reduce-overhead" in str(c.keywords)), None
        )
    if called is not None:
        return seen(called)
    if not is_cuda(run):
        return cannot_apply(NOT_CUDA)
    if prompts_only(run) and not script(run).rewards and not _is_fixed(run):
        return cannot_apply(
            Text("脚本随机选取每步的样本尺寸", "the script draws the size of each step's samples")
        )
    by = varies(run)
    if by is not None:
        return cannot_apply(
            Text(f"--{by.name}：样本形状多变", f"--{by.name}: samples vary in shape")
        )
    return by_code(
        Text("脚本不用 CUDA Graph", "the script uses no CUDA graphs"),
        'transformer3d = torch.compile(transformer3d, mode="reduce-overhead")',
    )


def _is_fixed(run: Run) -> bool:
    """Whether a script that draws the size of what it makes is told one, or draws none."""
    size = flag(run, "fix_sample_size", default=None)
    if size.known and size.value is not None:
        return True
    return script(run).family == "z_image" and not is_on(flag(run, "random_hw_adapt"))


_RMS_NORMS = """\
from liger_kernel.transformers import LigerRMSNorm

for parent in list(transformer3d.modules()):
    for name, norm in list(parent.named_children()):
        if "RMSNorm" in type(norm).__name__ and getattr(norm, "weight", None) is not None:
            made = LigerRMSNorm(norm.weight.numel(), eps=norm.eps)
            made.weight = norm.weight
            setattr(parent, name, made)"""
_LAYER_NORMS = """\
from liger_kernel.transformers import LigerLayerNorm

for parent in list(transformer3d.modules()):
    for name, norm in list(parent.named_children()):
        if type(norm) is torch.nn.LayerNorm and norm.bias is not None:
            made = LigerLayerNorm(norm.weight.numel(), eps=norm.eps)
            made.weight, made.bias = norm.weight, norm.bias
            setattr(parent, name, made)"""


@of_videox
def liger(run: Run) -> Judgement:
    """Liger's norms: its patches know language models, not these transformers."""
    found = imports(run, "liger_kernel")
    if found is not None:
        return on(f"import {found.dotted}")
    if not is_cuda(run):
        return cannot_apply(NOT_CUDA)
    family = script(run).family
    if not family:
        lacks = Text("Liger 没有扩散 Transformer 的补丁", "Liger patches no diffusion transformer")
        return by_code(lacks, _RMS_NORMS)
    # Of all models here CogVideoX alone has no RMSNorm (cogvideox_transformer3d.py).
    layered = family.startswith("cogvideox")
    kind = "LayerNorm" if layered else "RMSNorm"
    return by_code(
        Text(
            f"Liger 没有扩散 Transformer 的补丁，只能逐个替换模型的 {kind}",
            f"Liger patches no diffusion transformer; its {kind} can take the place of the "
            f"model's {kind}s one by one",
        ),
        _LAYER_NORMS if layered else _RMS_NORMS,
    )


# --- GPU105, GPU202, GPU605: what takes other layers ---------------------------------------------

_FOUR_BITS = """\
import bitsandbytes as bnb

# between from_pretrained(...) and inject_adapter_in_model(...)
for name, module in list(transformer3d.named_modules()):
    if isinstance(module, torch.nn.Linear):
        parent, _, child = name.rpartition(".")
        quantized = bnb.nn.LinearNF4(
            module.in_features, module.out_features, module.bias is not None,
            compute_dtype=weight_dtype,
        )
        quantized.load_state_dict(module.state_dict())
        setattr(transformer3d.get_submodule(parent), child, quantized)"""


@of_videox
def four_bits(run: Run) -> Judgement:
    """A quantized base model, which no script loads."""
    called = first_call(run, ".LinearNF4", ".Linear4bit", ".BitsAndBytesConfig")
    if called is not None:
        return seen(called)
    trained = unless_lora(run)
    if trained is not None:
        return trained
    weights, memory = _held(run, 2), memory_gib(run)
    lacks = Text("脚本只加载 16 位基座", "the scripts load the base model in 16 bits")
    if weights is None or memory is None or weights < memory or (gpus(run) or 2) > 1:
        return by_code(lacks, _FOUR_BITS)
    return advise(
        run,
        f"16-bit weights take {weights:.0f} GiB of a {memory:g} GiB GPU; no flag quantizes them",
        Text(
            f"16 位权重约 {weights:.0f} GiB，超过 {memory:g} GiB 显存；{lacks.zh}，需改动代码",
            f"16-bit weights take {weights:.0f} GiB of {memory:g} GiB; {lacks.en}: takes a change "
            "of the code",
        ),
        Text(
            "改动脚本：把基座的线性层换成 4 位（NF4）",
            "change the script: the base model's linear layers in 4 bits (NF4)",
        ),
        snippet=Snippet("load the base model's linear layers in 4 bits", _FOUR_BITS),
        priority=Priority.HIGH,
    )


_FP8 = """\
from torchao.float8 import convert_to_float8_training

# before accelerator.prepare(...): dimensions must be multiples of 16
convert_to_float8_training(transformer3d)"""
_FP8_OF_FROZEN = Text(
    "脚本只有 fp16 与 bf16；LoRA 下冻结线性层的前向与输入梯度乘法可用 FP8",
    "the scripts take fp16 and bf16 only; under LoRA, FP8 serves the forward and the "
    "input-gradient products of the frozen linear layers",
)
_ULYSSES = """\
from deepspeed.sequence.layer import DistributedAttention

# in the model: each rank holds a part of the tokens, all heads meet in the attention
self.attention = DistributedAttention(local_attention, sequence_group)"""


@of_videox
def sequence_parallel(run: Run) -> Judgement:
    """Ulysses and ring attention: VideoX-Fun has them for inference alone."""
    called = first_call(run, ".DistributedAttention", ".set_multi_gpus_devices")
    if called is not None and called.method == "DistributedAttention":
        return seen(called)
    setting = run.practice("sequence_parallel")
    if setting.known and isinstance(setting.value, int) and setting.value > 1:
        return on(setting)
    if gpus(run) == 1:
        return cannot_apply(ONE_GPU)
    return by_code(
        Text(
            "videox_fun/dist 的序列并行没有反向，只用于推理",
            "the sequence parallelism of videox_fun/dist has no backward pass: inference only",
        ),
        _ULYSSES,
    )


@of_videox
def fp8(run: Run) -> Judgement:
    """Products in FP8, for which the launcher and the scripts have no flag."""
    called = first_call(run, ".convert_to_float8_training", ".fp8_autocast")
    if called is not None:
        return seen(called)
    if has_fp8(run) is False:
        return cannot_apply(Text("该 GPU 没有 FP8 张量核", "the GPU has no FP8 tensor cores"))
    if is_lora(run) is True:
        return by_code(_FP8_OF_FROZEN, _FP8)
    return by_code(Text("脚本只有 fp16 与 bf16", "the scripts take fp16 and bf16 only"), _FP8)


# --- GPU314: a fused optimizer -------------------------------------------------------------------

_FUSED = "optimizer_cls = functools.partial(torch.optim.AdamW, fused=True)"


@of_videox
def fused_optimizer(run: Run) -> Judgement:
    """AdamW as the scripts make it: one kernel a group of tensors, not one for all."""
    made = next(
        (c for c in calls(run, ".AdamW", "functools.partial") if says(c, "fused", True)), None
    )
    if made is not None:
        return seen(made)
    called = first_call(run, ".FusedAdam", ".DeepSpeedCPUAdam")
    if called is not None:
        return seen(called)
    setting = run.practice("optimizer")
    if not setting.known:
        return cannot_tell(setting)
    if text(run, "optimizer") != "adamw":
        return off(Text(f"优化器为 {setting.value}", f"the optimizer is {setting.value}"), setting)
    if text(run, "offload_optimizer") in ("cpu", "nvme"):
        return cannot_apply(Text("优化器已卸载到 CPU", "the optimizer runs on the CPU, offloaded"))
    return by_code(Text("脚本的 AdamW 未融合", "the scripts' AdamW is not fused"), _FUSED)
