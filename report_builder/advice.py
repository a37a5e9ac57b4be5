"""Advice on flash attention, and on DeepSpeed and the distributed set-up, for one run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Optional

from flake8_gpu_training.checks.base import Change, Judgement, Status
from flake8_gpu_training.checks.changes import recommend
from flake8_gpu_training.facts import Origin, Setting, known
from flake8_gpu_training.frameworks import verl
from flake8_gpu_training.frameworks.attention_defaults import FIRST_CHOICE, sdpa_since
from flake8_gpu_training.frameworks.llamafactory_v1 import is_v1
from flake8_gpu_training.frameworks.reading import parsed
from flake8_gpu_training.frameworks.tables import table_of
from flake8_gpu_training.hardware import Gpu, gpu_named
from flake8_gpu_training.language import Text
from flake8_gpu_training.memory import GIB, estimate, lora_parameters, missing, model_states
from flake8_gpu_training.runs.model import Run, RunKind
from flake8_gpu_training.weights import weights_type
from report_builder.loaders import OF_KINDS, loader_of

# Cards the tables show when the hardware is not known: name and GiB.
_HF_INTEGRATION = frozenset({"swift", "llamafactory", "hf_trainer"})


@dataclass(frozen=True)
class FlashAdvice:
    """Which attention to use; ``version`` is FA2, FA3, FA4, SDPA, or eager where a model has
    no other, which takes no installation."""

    version: str
    reason: Text
    install: str
    integration: Change
    needs: Text


@dataclass(frozen=True)
class StateRow:
    """GiB of model states per GPU at each ZeRO stage, for one number of GPUs."""

    gpus: int
    stages: tuple[float, float, float, float]


@dataclass(frozen=True)
class DeepSpeedAdvice:
    """The ZeRO stage to use, with a complete configuration.

    ``stage`` is None where distributed training advice does not apply (serving).
    """

    stage: Optional[int]
    offload: bool
    reason: Text
    offload_reason: Text
    config: Mapping[str, Any]
    hardware_known: bool
    table: tuple[StateRow, ...] = ()


# --- flash attention ----------------------------------------------------------------

_INSTALL = MappingProxyType(
    {
        "FA2": "pip install flash-attn --no-build-isolation",
        "FA3": "git clone https://github.com/Dao-AILab/flash-attention.git\n"
        "cd flash-attention/hopper && python setup.py install",
        "FA4": "pip install flash-attn-4",
        "SDPA": 'pip install "torch>=2.2"',
    }
)
_TORCH = '"torch>=2.2"'
_PRACTICE = MappingProxyType(
    {
        "FA2": "flash_attention_2",
        "FA3": "flash_attention_3",
        "FA4": "flash_attention_4",
        "SDPA": "sdpa",
    }
)
_REASON = MappingProxyType(
    {
        "FA2": Text(
            "{gpu}（{architecture}）支持 FlashAttention-2",
            "{gpu} ({architecture}) is served by FlashAttention-2",
        ),
        "FA3": Text(
            "{gpu}（{architecture}）可用 FlashAttention-3；FA2 同样可用，作为稳妥的后备",
            "{gpu} ({architecture}) is served by FlashAttention-3; FA2 works too and is the "
            "safe fallback",
        ),
        "FA4": Text(
            "{gpu}（{architecture}）对应 FlashAttention-4（预发布版本）；框架尚未支持时退回 SDPA",
            "{gpu} ({architecture}) is served by FlashAttention-4 (a pre-release); fall back to "
            "SDPA where the framework does not know it yet",
        ),
        "SDPA": Text(
            "{gpu}（{architecture}）不支持 FlashAttention-2 及更新版本，使用 PyTorch SDPA",
            "{gpu} ({architecture}) has no FlashAttention-2 or newer; use PyTorch's SDPA",
        ),
    }
)
_UNKNOWN_GPU = Text(
    "未能从项目推断 GPU 型号，需根据实际硬件调整：Ampere/Ada/Hopper 用 FA2，"
    "Hopper（H100/H200/H20/H800）可用 FA3，Blackwell 用 FA4，Volta/Turing 用 SDPA",
    "the project does not say which GPU it runs on, so adjust to the actual hardware: FA2 on "
    "Ampere, Ada and Hopper; FA3 is possible on Hopper (H100, H200, H20, H800); FA4 on "
    "Blackwell; SDPA on Volta and Turing",
)
_NEEDS = Text(
    "packing 与 padding_free 需要 flash attention（变长接口），否则样本之间会互相注意；"
    "计算精度须为 bf16 或 fp16",
    "packing and padding-free batches need a flash kernel (its variable-length interface), or "
    "samples attend to each other; the compute precision must be bf16 or fp16",
)
_NEEDS_OF_LLAMAFACTORY = Text(
    "neat_packing 在 FA2 下按样本边界计算，在 SDPA 与 eager 下用 4D 掩码（更慢、更占显存）；"
    "计算精度须为 bf16 或 fp16",
    "packed samples are kept apart (neat_packing) by their bounds under FA2, and by a 4-D mask, "
    "which takes more time and memory, under SDPA and eager; the compute precision must be bf16 "
    "or fp16",
)
_NEEDS_OF_V1 = Text(
    "batching_strategy: padding_free 需要 flash_attention_2；计算精度须为 bf16 或 fp16",
    "batching_strategy: padding_free needs flash_attention_2; the compute precision must be bf16 "
    "or fp16",
)
_NEEDS_PRECISION = Text("计算精度须为 bf16 或 fp16", "the compute precision must be bf16 or fp16")
_DIFFUSION = frozenset({"videox_fun", "flow_factory"})
_NO_ATTENTION = Text(
    "；模型不含注意力层时不适用，q、k、v 的形状为（batch, length, heads, head_size）",
    "; it does not apply to a model without attention; q, k and v have the shape "
    "(batch, length, heads, head_size)",
)
_SERVING = Text(
    "推理引擎自带注意力内核，通常无需另行安装；仅在需要指定后端时设置",
    "inference engines ship their own attention kernels; set a backend only to override "
    "their choice",
)


def flash_attention(run: Optional[Run], judged: Optional[Judgement] = None) -> FlashAdvice:
    """Version, installation and the switch of this run's framework.

    ``judged``: what the check of flash attention says of the run; the advice follows it.
    """
    if run is not None and judged is not None and _is_optional(run, judged):
        return _of_small_model(run, judged)
    gpu = gpu_named(run.hardware.gpu) if run is not None and run.hardware.gpu else None
    version = _version(gpu)
    if run is not None and run.framework in _ENGINE_SWITCH:
        return _of_engine(run, version, gpu)
    if gpu is None:
        reason = _UNKNOWN_GPU
    else:
        reason = _REASON[version].fill(gpu=gpu.name, architecture=gpu.architecture)
    install, needs = _INSTALL[version], _NEEDS
    if run is not None and run.framework == "llamafactory":
        needs = _NEEDS_OF_V1 if is_v1(run) else _NEEDS_OF_LLAMAFACTORY
    packs = run is None or run.framework in _HF_INTEGRATION
    if run is not None and (not packs or run.value("algorithm") in _GENERATED):
        needs = _NEEDS_PRECISION
    if run is not None and run.framework in _DIFFUSION:
        needs = _NEEDS_PRECISION
        if run.framework == "flow_factory" and version == "FA3":
            install = "pip install kernels"  # for _flash_3_hub, the switch below
    if run is not None and run.framework == "generic" and not run.model.is_hf_family:
        reason = Text(f"{reason.zh}{_NO_ATTENTION.zh}", f"{reason.en}{_NO_ATTENTION.en}")
    return FlashAdvice(
        version,
        reason,
        install,
        _integration(run, version),
        needs,
    )


_GENERATED = frozenset({"grpo", "rloo", "ppo"})
"""Algorithms whose samples are neither packed nor flattened."""
_BY_DEFAULT = Text(
    "；支持 SDPA 的版本默认启用，不必设置",
    "; releases that have it for the model take it by default, nothing has to be set",
)
_NOT_YET = Text(
    "，升级后自动启用 SDPA",
    "; a newer one takes SDPA by itself",
)


def _is_optional(run: Run, judged: Judgement) -> bool:
    """Whether a model that is no decoder of text may do without a flash kernel."""
    is_small = run.framework == "hf_trainer" and run.model.kind in OF_KINDS
    return is_small and judged.status is Status.DISABLED and bool(judged.current.en)


def _of_small_model(run: Run, judged: Judgement) -> FlashAdvice:
    is_late = run.value("attention") == "eager" and not run.practice("attention").explicit
    more = _NOT_YET if is_late else _BY_DEFAULT
    reason = Text(judged.current.zh + more.zh, judged.current.en + more.en)
    version, install = "SDPA", _upgrade(run) if is_late else _INSTALL["SDPA"]
    if is_late and sdpa_since(run.model.known_as) is None:
        version, reason, install = "eager", judged.current, ""
    asked = "" if is_late else ', attn_implementation="sdpa"'
    loader, name = loader_of(run), run.model.name or "google-bert/bert-base-uncased"
    return FlashAdvice(
        version,
        reason,
        install,
        Change(
            "python",
            f"from transformers import {loader}\n\n"
            f'model = {loader}.from_pretrained("{name}"{asked})',
        ),
        _NEEDS_PRECISION if not is_late else Text("", ""),
    )


def _upgrade(run: Run) -> str:
    """To releases that have SDPA for the model, and still take the run's own arguments.

    Trainer asks for a newer Accelerate than old projects pin (transformers, setup.py).
    """
    since = sdpa_since(run.model.known_as)
    least = ".".join(map(str, since or FIRST_CHOICE))
    last = _last_release_for(run)
    return f'pip install -U "transformers>={least}{last}" accelerate {_TORCH}'


def _last_release_for(run: Run) -> str:
    """``,<=`` the last release that takes the run's TrainingArguments; "" for the newest."""
    table = table_of("transformers")
    if table is None:
        return ""
    written = [name for name, setting in run.settings.items() if setting.explicit]
    spans = [table.span("TrainingArguments", name) for name in written]
    last = min((parsed(span[1]), span[1]) for span in (*spans, ("", table.versions[-1])) if span)
    return f",<={last[1]}" if last[1] != table.versions[-1] else ""


# From the engines' own pages (docs.vllm.ai, design/attention_backends; docs.sglang.io,
# advanced_features/attention_backend).
# Engine: its package, and the switch that names the backend, by version of flash attention.
_ENGINE_SWITCH: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "vllm": {
            "FA2": "FLASH_ATTN",
            "FA3": "FLASH_ATTN",
            "FA4": "FLASHINFER",
            "SDPA": "TRITON_ATTN",
        },
        "sglang": {"FA2": "flashinfer", "FA3": "fa3", "FA4": "trtllm_mha", "SDPA": "triton"},
    }
)


_ENGINE_CHOICE: Mapping[str, Text] = MappingProxyType(
    {
        # vLLM 0.19.1 and 0.33.0, platforms/cuda.py, _get_backend_priorities
        "vllm": Text(
            "未能从项目推断 GPU 型号；不设置时 vLLM 自行选择：B200 等优先 FlashInfer，其余优先 "
            "FlashAttention（Hopper 上为 FA3），不支持时用 FlashInfer 或 Triton",
            "the project does not say which GPU it runs on; left alone, vLLM takes FlashInfer on "
            "B200 and its kin and FlashAttention elsewhere (FA3 on Hopper), or FlashInfer or "
            "Triton where that does not run",
        ),
        # srt/arg_groups/model_override_base.py, get_default_attn_backend
        "sglang": Text(
            "未能从项目推断 GPU 型号；不设置时 SGLang 自行选择：Hopper 用 fa3，B200 等用 "
            "trtllm_mha，其余用 flashinfer（未安装时用 triton）",
            "the project does not say which GPU it runs on; left alone, SGLang takes fa3 on "
            "Hopper, trtllm_mha on B200 and its kin, and flashinfer elsewhere (triton where it is "
            "not installed)",
        ),
    }
)


def _of_engine(run: Run, version: str, gpu: Optional[Gpu]) -> FlashAdvice:
    """Inference engines bring their kernels and choose among them themselves."""
    reason = _ENGINE_CHOICE[run.framework]
    if gpu is not None:
        reason = _REASON[version].fill(gpu=gpu.name, architecture=gpu.architecture)
    backend = _ENGINE_SWITCH[run.framework][version]
    return FlashAdvice(
        version,
        reason,
        f"pip install {run.framework}",
        Change("bash", f"--attention-backend {backend}"),
        _SERVING,
    )


def _version(gpu: Optional[Gpu]) -> str:
    if gpu is None:
        return "FA2"
    return {2: "FA2", 3: "FA3", 4: "FA4"}.get(gpu.flash_attention, "SDPA")


def _integration(run: Optional[Run], version: str) -> Change:
    if run is not None:
        change = recommend(run, {"attention": _PRACTICE[version]})
        if change is not None and _takes_flag(run):
            return change
        if run.framework == "videox_fun":
            # Read by videox_fun/models/attention_utils.py; FA2 or FA3 as installed.
            backend = "SDPA" if version == "SDPA" else "FLASH_ATTENTION"
            return Change("bash", f"export VIDEOX_ATTENTION_TYPE={backend}")
    if run is not None and verl.trainer_of(run).startswith("main_ppo"):
        # verl/workers/config/model.py
        override = "+actor_rollout_ref.model.override_config.attn_implementation"
        return Change("bash", f"{override}={_PRACTICE[version]}")
    if run is not None and "model_init_kwargs" in run.settings:
        # TRL's trainers load the model by its name, with these.
        return Change(
            "python",
            f'model_init_kwargs={{"torch_dtype": "bfloat16", '
            f'"attn_implementation": "{_PRACTICE[version]}"}}',
        )
    if version == "SDPA":
        return Change(
            "python",
            "import torch.nn.functional as F\n\n"
            "out = F.scaled_dot_product_attention(q, k, v, is_causal=True)",
        )
    if run is not None and run.framework == "generic" and not run.model.is_hf_family:
        module = "flash_attn_interface" if version == "FA3" else "flash_attn"
        module = "flash_attn.cute" if version == "FA4" else module
        return Change(
            "python",
            f"from {module} import flash_attn_func\n\nout = flash_attn_func(q, k, v, causal=True)",
        )
    name = (run.model.name if run is not None else "") or "Qwen/Qwen2.5-7B-Instruct"
    loader = loader_of(run)
    return Change(
        "python",
        f"import torch\nfrom transformers import {loader}\n\n"
        f"model = {loader}.from_pretrained(\n"
        f'    "{name}",\n'
        "    torch_dtype=torch.bfloat16,\n"
        f'    attn_implementation="{_PRACTICE[version]}",\n'
        ")",
    )


def _takes_flag(run: Run) -> bool:
    """Whether the run can be told its attention: a script with a parser of its own may not have
    the argument, and loads the model in its code."""
    own = run.framework == "hf_trainer" and bool(run.python)
    return not own or run.setting("attn_implementation") is not None


# --- DeepSpeed ----------------------------------------------------------------------


def deepspeed(
    run: Optional[Run],
    sharding: Optional[Judgement] = None,
    offloading: Optional[Judgement] = None,
) -> DeepSpeedAdvice:
    """The lowest stage that fits, and a configuration for it.

    ``sharding``, ``offloading``: what the checks of model-state sharding and of offload say of
    the run; the advice follows them.
    """
    if run is None or run.kind in (RunKind.SERVE, RunKind.INFER):
        return DeepSpeedAdvice(None, False, _NO_TRAINING, _NO_TRAINING, MappingProxyType({}), False)
    if run.value("megatron") is True:
        return DeepSpeedAdvice(None, False, _MEGATRON, _MEGATRON, MappingProxyType({}), False)
    if verl.trainer_of(run):
        return DeepSpeedAdvice(None, False, _VERL, _VERL, MappingProxyType({}), False)
    judged = _judged(run, sharding) if sharding is not None else None
    stage, offload, reason, offload_reason = judged or _choice(run)
    if offload and offloading is not None and _drops_offload(run, offloading):
        offload, offload_reason = False, offloading.action
    memory_known = run.hardware.memory_gib is not None
    table = () if (memory_known and run.hardware.gpus) or _gpus(run) == 1 else _table(run)
    # Where sharding may turn out to be needed after all, the configuration is that of ZeRO-2.
    shown = 2 if stage == 0 and reason is _UNSURE_SIZE else stage
    unsharded = shown == 0 and run.deepspeed is None
    config = MappingProxyType({} if unsharded else _with_own(run, _config(run, shown, offload)))
    return DeepSpeedAdvice(stage, offload, reason, offload_reason, config, memory_known, table)


_NO_TRAINING = Text("没有训练运行", "there is no training run")
_FITS_ONE = Text(
    "单卡训练，预计每卡 {need:.0f} GiB，小于 {memory:.0f} GiB，不需要 ZeRO 分片",
    "one GPU, about {need:.0f} GiB of {memory:.0f} GiB: nothing to shard",
)
_LOWEST = Text(
    "{gpus} 卡下 Stage {stage} 是放得下的最低档"
    "（预计每卡约 {need:.0f} GiB，显存 {memory:.0f} GiB）；Stage 2 的通信量与普通数据并行相同，"
    "Stage 3 约为其 1.5 倍",
    "stage {stage} is the lowest that fits on {gpus} GPUs (about {need:.0f} of {memory:.0f} GiB "
    "each); stage 2 moves as much data as plain data parallelism, stage 3 about 1.5 times that",
)
_ROOM_FOR_PLAIN = Text(
    "普通 DDP 已放得下；Stage {stage} 的通信量与其相同而更省显存"
    "（{gpus} 卡下预计每卡约 {need:.0f} GiB，显存 {memory:.0f} GiB），两者皆可",
    "plain DDP fits already; stage {stage} moves as much data and takes less memory (about "
    "{need:.0f} of {memory:.0f} GiB on each of {gpus} GPUs): either will do",
)
_BESIDE = Text(
    "；按模型状态粗估，不含推理引擎占用的显存",
    "; a rough figure from the model states, without what the inference engine takes",
)
_NOTHING_FITS = Text(
    "按估算，ZeRO-3 加卸载在 {gpus} 张 {memory:.0f} GiB 卡上仍可能放不下："
    "增加 GPU、改用 LoRA/QLoRA，或减小批大小与序列长度",
    "by the estimate even ZeRO-3 with offload may not fit on {gpus} GPUs of {memory:.0f} GiB: "
    "take more GPUs, LoRA or QLoRA, or a smaller batch and shorter sequences",
)
_UNSURE_LORA = Text(
    "LoRA 只训练少量参数，多卡首选 ZeRO-2（通信量与 DDP 相同）；单卡放得下时普通 DDP 也可以；"
    "需根据实际硬件调整",
    "LoRA trains few parameters, so ZeRO-2 is the first choice on several GPUs (it moves as "
    "much data as DDP); plain DDP will do where one GPU holds the model; adjust to the actual "
    "hardware",
)
_PURE = Text(
    "本次运行用 pure_bf16（每参数 8 字节，模型状态约 {states:.0f} GiB），80 GiB 单卡放得下；"
    "DeepSpeed 另存 FP32 主权重（每参数 16 字节），需要分片时改用 bf16: true 与 ZeRO-3；"
    "需根据实际硬件调整",
    "the run is in pure BF16 (8 bytes a parameter, about {states:.0f} GiB of states), which one "
    "GPU of 80 GiB holds; DeepSpeed keeps FP32 master weights beside (16 bytes a parameter): "
    "where the states must be split, write bf16: true with ZeRO-3; adjust to the actual hardware",
)
_PURE_BYTES = 8
_ROOM_GIB = 72.0  # of 80 GiB, for the states alone
_UNSURE_FULL = Text(
    "全参训练的模型状态为每参数 16 字节，通常需要 ZeRO-3 分片；需根据实际硬件调整",
    "full training holds 16 bytes of model states per parameter, which mostly calls for "
    "ZeRO-3; adjust to the actual hardware",
)
_UNSURE = Text(
    "未能推断微调方式：单卡放得下时用 DDP 即可，放不下时从 ZeRO-2 开始；需根据实际硬件调整",
    "the way of tuning is not known: DDP will do where one GPU holds the model, else start with "
    "ZeRO-2; adjust to the actual hardware",
)
_ONE_GPU = Text(
    "单卡训练，没有可供分片的其他 GPU；显存不足时用优化器卸载、QLoRA 或更小的微批",
    "one GPU has no other to shard over; when memory runs out take optimizer offload, QLoRA or a "
    "smaller micro-batch",
)
_ONE_GPU_DIFFUSION = Text(
    "单卡训练，没有可供分片的其他 GPU；显存不足时减小微批、分辨率或帧数",
    "one GPU has no other to shard over; when memory runs out take a smaller micro-batch, lower "
    "resolution or fewer frames",
)
_SMALL = Text(
    "模型状态共约 {states:.1f} GiB，常见的单卡即可放下，普通 DDP 足够",
    "all model states together take about {states:.1f} GiB, which any common card holds: plain "
    "DDP will do",
)
_SMALL_ONE = Text(
    "单卡训练，模型状态共约 {states:.1f} GiB，不需要分片",
    "one GPU, and all model states together take about {states:.1f} GiB: nothing to shard",
)
_SMALL_GIB = 10.0
_UNSURE_SIZE = Text(
    "模型规模未知：单卡放得下时用 DDP 即可，不需要分片（全参训练的权重、梯度与优化器约为每参数"
    " 16 字节）；放不下时从 ZeRO-2 开始，配置如下；需根据实际硬件调整",
    "the model's size is not known: DDP without sharding will do where one GPU holds the model "
    "(full training takes about 16 bytes per parameter for weights, gradients and optimizer); "
    "where it does not, start with ZeRO-2 as configured below; adjust to the actual hardware",
)
_NOTHING_SHARDED = Text("不分片时不需要卸载", "nothing is sharded, so nothing is offloaded")
_NO_OFFLOAD = Text("不卸载即可放下，卸载会拖慢训练", "it fits without, and offload slows training")
_OFFLOAD = Text(
    "不卸载预计放不下，将优化器状态放到 CPU 内存",
    "it does not fit without optimizer states on the CPU",
)
_OFFLOAD_UNSURE = Text(
    "默认不启用；显存不足时再启用优化器卸载（需根据实际硬件调整）",
    "not at first; turn on optimizer offload when memory runs out (adjust to the actual hardware)",
)

_MEGATRON = Text(
    "Megatron-core 自带分布式优化器与并行策略，不使用 DeepSpeed",
    "Megatron-core has a distributed optimizer and parallelism of its own; DeepSpeed is not used",
)
_VERL = Text(
    "verl 用 FSDP 或 Megatron-core 分片（actor_rollout_ref.actor.strategy），不使用 DeepSpeed",
    "sharding is by FSDP or Megatron-core (actor_rollout_ref.actor.strategy): verl does not use "
    "DeepSpeed",
)
_KEEP = Text(
    "保持当前的 Stage {stage}：{evidence}",
    "keep stage {stage}, which the run uses: {evidence}",
)
_KEEP_WEAK = Text(
    "保持当前的 Stage {stage}：GPU 型号（{gpu}）只见于注释；若属实，{lighter} 即可放下且更快",
    "keep stage {stage}, which the run uses: only a comment names the GPU ({gpu}); if it is right, "
    "{lighter} holds the run too and is faster",
)
_KEEP_NEED = Text(
    "预计每卡约 {need:.0f} GiB，显存 {memory:.0f} GiB",
    "about {need:.0f} of {memory:.0f} GiB per GPU",
)
_KEEP_UNSURE = Text(
    "是否可以降档需根据实际硬件调整",
    "whether less sharding would do depends on the actual hardware",
)
_FSDP = Text(
    "本次运行已由 FSDP 分片（相当于 Stage 3），无需再启用 DeepSpeed；以下为等价的 DeepSpeed 配置",
    "FSDP shards this run already, as stage 3 would; DeepSpeed is not needed, and the "
    "configuration below is its equivalent",
)
_OFFLOAD_KEPT = Text(
    "当前已启用，显存充足时可关闭以提速", "it is on; turn it off for speed where memory allows"
)


def _drops_offload(run: Run, offloading: Judgement) -> bool:
    """Whether the run offloads, and the check of it says that it need not."""
    is_on = any(
        run.value(name) in ("cpu", "nvme") for name in ("offload_optimizer", "offload_param")
    )
    return is_on and offloading.status in (Status.RECOMMENDED, Status.PARTIAL)


def _judged(run: Run, sharding: Judgement) -> Optional[tuple[int, bool, Text, Text]]:
    """The choice that the check of sharding implies; None where it leaves it open."""
    variant = sharding.variant
    if sharding.status is Status.ENABLED and variant.startswith("fsdp"):
        return 3, False, _FSDP, _OFFLOAD_UNSURE
    stage = re.match(r"zero(\d)", variant)
    if stage is None:
        return None
    number, offload = int(stage.group(1)), variant.endswith("-offload")
    if sharding.status is Status.PARTIAL and run.value("zero_stage"):
        return _lighter(sharding)
    if sharding.status is Status.RECOMMENDED:
        return number, offload, _joined(sharding), _OFFLOAD if offload else _OFFLOAD_UNSURE
    if sharding.status is not Status.ENABLED:
        return None
    memory, gpus = run.hardware.memory_gib, _gpus(run)
    need = _need(run, number, offload, gpus) if gpus is not None else None
    if offload and memory is not None:
        return _kept_or_lighter(run, number)
    if memory is None or need is None:
        evidence = _KEEP_UNSURE
    elif need > memory:
        return None
    else:
        evidence = _KEEP_NEED.fill(need=need, memory=memory)
    reason = Text(
        _KEEP.zh.format(stage=number, evidence=evidence.zh),
        _KEEP.en.format(stage=number, evidence=evidence.en),
    )
    unsure = _OFFLOAD_UNSURE if memory is None else _NO_OFFLOAD
    return number, offload, reason, _OFFLOAD_KEPT if offload else unsure


def _kept_or_lighter(run: Run, stage: int) -> Optional[tuple[int, bool, Text, Text]]:
    """Whether offload is needed is looked at anew, unless a comment alone names the GPU."""
    lighter, offload, _, _ = _choice(run)
    if not run.hardware.weak or (lighter, offload) == (stage, True):
        return None
    name = f"Stage {lighter}" + (" + offload" if offload else "")
    reason = _KEEP_WEAK.fill(stage=stage, gpu=run.hardware.gpu or "?", lighter=name)
    return stage, True, reason, _OFFLOAD_KEPT


def _lighter(sharding: Judgement) -> Optional[tuple[int, bool, Text, Text]]:
    """The stage that the check of sharding names instead of a heavier one."""
    named = re.search(r"ZeRO-(\d)( \+ offload)?", sharding.action.en)
    if named is None:
        return None
    offload = named.group(2) is not None
    return int(named.group(1)), offload, _joined(sharding), _OFFLOAD if offload else _NO_OFFLOAD


def _joined(sharding: Judgement) -> Text:
    """Current state and action in one sentence."""
    return Text(
        f"{sharding.current.zh}；{sharding.action.zh}",
        f"{sharding.current.en}; {sharding.action.en}",
    )


# Lowest first: stage and where optimizer states and weights go.
_LADDER = ((0, False), (1, False), (2, False), (2, True), (3, False), (3, True))


def _choice(run: Run) -> tuple[int, bool, Text, Text]:
    memory, gpus = run.hardware.memory_gib, _gpus(run)
    if memory is not None and gpus is not None:
        for stage, offload in _LADDER:
            need = _need(run, stage, offload, gpus)
            if need is None:
                break
            if gpus == 1 and stage > 0 and not offload:
                continue  # nothing to shard over
            if gpus > 1 and stage < 2:
                continue  # stage 2 communicates no more than plain data parallelism
            if need < 0.92 * memory:
                text = _FITS_ONE if gpus == 1 and stage == 0 else _LOWEST
                plain = _need(run, 0, False, gpus)
                if (stage, offload) == (2, False) and plain is not None and plain < 0.92 * memory:
                    text = _ROOM_FOR_PLAIN
                filled = text.fill(gpus=gpus, stage=stage, need=need, memory=memory)
                if missing(run) == ("rollout",):
                    filled = Text(filled.zh + _BESIDE.zh, filled.en + _BESIDE.en)
                return stage, offload, filled, _OFFLOAD if offload else _NO_OFFLOAD
        else:
            return 3, True, _NOTHING_FITS.fill(gpus=gpus, memory=memory), _OFFLOAD
    states = _states(run, 1, 0)
    if gpus == 1:
        small = states is not None and states < _SMALL_GIB
        crowded = _ONE_GPU_DIFFUSION if run.framework in _DIFFUSION else _ONE_GPU
        reason = _SMALL_ONE.fill(states=states or 0.0) if small else crowded
        return 0, False, reason, _NOTHING_SHARDED
    if states is None and (run.framework == "generic" or run.value("tuning") == "full"):
        return 0, False, _UNSURE_SIZE, _NOTHING_SHARDED
    if states is not None and states < _SMALL_GIB:
        return 0, False, _SMALL.fill(states=states), _NOTHING_SHARDED
    tuning = run.value("tuning")
    if tuning is None:
        return 2, False, _UNSURE, _OFFLOAD_UNSURE
    is_pure = tuning == "full" and run.value("precision") == "pure-bf16"
    if is_pure and states is not None and states <= _ROOM_GIB:
        return 0, False, _PURE.fill(states=states), _NOTHING_SHARDED
    if tuning == "full":
        return 3, False, _UNSURE_FULL, _OFFLOAD_UNSURE
    return 2, False, _UNSURE_LORA, _OFFLOAD_UNSURE


def _gpus(run: Run) -> Optional[int]:
    return run.hardware.gpus or run.launcher.world_size


def _need(run: Run, stage: int, offload: bool, gpus: int) -> Optional[float]:
    """GiB per GPU when the run used this stage; by model states alone where that is all."""
    device = "cpu" if offload else "none"
    profile = {
        **run.profile,
        "zero_stage": _assumed("zero_stage", stage),
        "offload_optimizer": _assumed("offload_optimizer", device),
        "offload_param": _assumed("offload_param", device if stage == 3 else "none"),
        "fsdp": _assumed("fsdp", "none"),
    }
    found = estimate(replace(run, profile=profile))
    if found is not None:
        return found.full_total or found.total
    states = _states(run, gpus, stage)
    if states is None:
        return None
    if offload:
        states = _states(run, gpus, 3) or states
    return states * 1.3 + 2.0  # activations and buffers, roughly


def _states(run: Run, gpus: int, stage: int) -> Optional[float]:
    if not run.model.parameters:
        return None
    trained: Optional[float] = None
    if run.value("tuning", "full") != "full":
        rank = run.value("lora_rank", 8)
        trained = lora_parameters(run.model, rank if isinstance(rank, int) else 8)
        if trained is None:
            trained = 0.005 * run.model.parameters
    masterless = weights_type(run) in ("bf16", "fp16") and run.framework not in _DIFFUSION
    if stage == 0 and trained is None and masterless:
        return run.model.parameters * _PURE_BYTES / GIB
    bits = run.value("quantization_bits")
    frozen = bits / 8 if isinstance(bits, int) and bits else 2.0
    return model_states(run.model.parameters, gpus, stage, trained, frozen)


def _table(run: Run) -> tuple[StateRow, ...]:
    rows = []
    for gpus in (1, 2, 4, 8, 16):
        stages = [_states(run, gpus, stage) for stage in range(4)]
        if any(size is None for size in stages):
            return ()
        zero, one, two, three = (size or 0.0 for size in stages)
        rows.append(StateRow(gpus, (zero, one, two, three)))
    return tuple(rows)


def _assumed(name: str, value: Any) -> Setting:
    return Setting(name, value, None, Origin.DERIVED)


def _config(run: Run, stage: int, offload: bool) -> dict[str, Any]:
    """A complete ``ds_config.json``; "auto" only where the Trainer fills it in."""
    automatic = run.framework in _HF_INTEGRATION
    config: dict[str, Any] = {}
    if automatic:
        config["train_batch_size"] = "auto"
        config["train_micro_batch_size_per_gpu"] = "auto"
        config["gradient_accumulation_steps"] = "auto"
        config["gradient_clipping"] = "auto"
        config["bf16"] = {"enabled": "auto"}
        config["fp16"] = {"enabled": "auto"}
    else:
        config["train_micro_batch_size_per_gpu"] = _number(run, "micro_batch_size", 1)
        accumulated: Any = _number(run, "gradient_accumulation_steps", 1)
        if run.framework == "flow_factory" and run.value("gradient_accumulation_steps") is None:
            accumulated = "auto"  # worked out from the samples of an epoch; Accelerate fills it in
        config["gradient_accumulation_steps"] = accumulated
        config["gradient_clipping"] = _number(run, "max_grad_norm", 1.0)
        gpu = gpu_named(run.hardware.gpu) if run.hardware.gpu else None
        half = run.value("precision") == "fp16" or (gpu is not None and not gpu.bf16)
        config["fp16" if half else "bf16"] = {"enabled": True}
    config["zero_optimization"] = _zero(run, stage, offload, automatic)
    if offload and automatic:
        parameters = dict.fromkeys(("lr", "betas", "eps", "weight_decay"), "auto")
        config["optimizer"] = {"type": "AdamW", "params": parameters}
    config["steps_per_print"] = 100
    config["wall_clock_breakdown"] = False
    return config


_CHOSEN = frozenset({"stage", "offload_optimizer", "offload_param", "overlap_comm"})
"""What the advice decides of ``zero_optimization``."""
_HALVES = ("bf16", "fp16")


def _with_own(run: Run, config: dict[str, Any]) -> dict[str, Any]:
    """The configuration with what the run's own file says and the advice does not decide: its
    optimizer and scheduler, batch sizes, precision, and sizes of buckets at the same stage."""
    own = _known_parts(run.deepspeed.root.plain()) if run.deepspeed is not None else None
    if not isinstance(own, dict):
        return config
    if any(name in own for name in _HALVES):
        config = {name: value for name, value in config.items() if name not in _HALVES}
    zero, theirs = config["zero_optimization"], own.get("zero_optimization")
    if isinstance(theirs, dict) and theirs.get("stage") == zero["stage"]:
        kept = {name: value for name, value in theirs.items() if name not in _CHOSEN}
        zero = {**zero, **kept}
    return {**config, **own, "zero_optimization": zero}


def _known_parts(value: Any) -> Any:
    """A value without the entries of its mappings that the files leave open."""
    if not isinstance(value, dict):
        return value
    return {key: _known_parts(inner) for key, inner in value.items() if known(inner)}


def _number(run: Run, practice: str, default: float) -> float:
    value = run.value(practice)
    usable = isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0
    return value if usable else default


def _zero(run: Run, stage: int, offload: bool, automatic: bool) -> dict[str, Any]:
    zero: dict[str, Any] = {"stage": stage}
    if stage == 0:
        return zero
    zero.update(overlap_comm=True, contiguous_gradients=True)
    if stage < 3:
        zero.update(
            allgather_partitions=True,
            allgather_bucket_size=200_000_000,
            reduce_scatter=True,
            reduce_bucket_size=200_000_000,
        )
    else:
        hidden = run.model.hidden_size
        if automatic:
            zero.update(
                reduce_bucket_size="auto",
                stage3_prefetch_bucket_size="auto",
                stage3_param_persistence_threshold="auto",
            )
        elif hidden:
            # The values the HF integration computes for "auto".
            zero.update(
                reduce_bucket_size=hidden * hidden,
                stage3_prefetch_bucket_size=int(0.9 * hidden * hidden),
                stage3_param_persistence_threshold=10 * hidden,
            )
        zero.update(
            sub_group_size=1_000_000_000,
            stage3_max_live_parameters=1_000_000_000,
            stage3_max_reuse_distance=1_000_000_000,
            stage3_gather_16bit_weights_on_model_save=True,
        )
        nodes, per_node = run.hardware.nodes, run.hardware.gpus_per_node
        if nodes is not None and nodes > 1 and per_node:
            zero["zero_hpz_partition_size"] = per_node
    if offload:
        zero["offload_optimizer"] = {"device": "cpu", "pin_memory": True}
        if stage == 3:
            zero["offload_param"] = {"device": "cpu", "pin_memory": True}
    return zero
