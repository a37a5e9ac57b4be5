"""What the linter notes about a value, in Chinese: its default, why it is unknown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Optional

_WHOLE: Mapping[str, str] = MappingProxyType(
    {
        # Defaults, and what follows from other settings.
        "DeepSpeed wraps the model": "模型由 DeepSpeed 包装",
        "Megatron wraps the model": "模型由 Megatron 包装",
        "DeepSpeed: parameters are offloaded at stage 3 only": "DeepSpeed 仅在 Stage 3 卸载参数",
        "FSDP2 gathers the next layer's weights ahead": "FSDP2 提前收集下一层权重",
        "from Transformers 5 on the checkpoint decides the type, before it is float32": (
            "Transformers 5 起由检查点决定精度，此前为 FP32"
        ),
        "Megatron runs without DeepSpeed": "Megatron 不使用 DeepSpeed",
        "Megatron-LM runs without DeepSpeed": "Megatron-LM 不使用 DeepSpeed",
        "Megatron-LM trains all weights": "Megatron-LM 训练全部权重",
        "accelerate: DeepSpeed is off": "Accelerate 未启用 DeepSpeed",
        "accelerate: FSDP is off": "Accelerate 未启用 FSDP",
        "fsdp is off": "未启用 FSDP",
        "ms-swift takes bf16 or fp16 from the model's configuration": (
            "ms-swift 按模型配置取 bf16 或 fp16"
        ),
        "nothing in the code is distributed": "代码中没有分布式训练",
        "packing turns padding_free on": "packing 会自动开启 padding_free",
        "the constant schedule does not warm up": "constant 调度没有预热",
        "sdpa where supported": "支持时用 sdpa",
        "eager": "eager",
        "eager before PyTorch 2.1.1": "PyTorch 2.1.1 之前用 eager",
        "Flow-Factory: attn_backend unset leaves Diffusers' native (SDPA) attention": (
            "Flow-Factory 未设 attn_backend 时用 Diffusers 自带注意力（SDPA）"
        ),
        "on for PreTrainedModel without gradient checkpointing": (
            "PreTrainedModel 未开梯度检查点时为开启"
        ),
        "overlap_comm is on at stage 3 and off below unless set": (
            "未设置时 Stage 3 开启 overlap_comm，其余关闭"
        ),
        "attn_impl None chooses between sdpa and eager": "attn_impl 未设置时选 sdpa 或 eager",
        "vit_gradient_checkpointing None becomes gradient_checkpointing": (
            "vit_gradient_checkpointing 随 gradient_checkpointing"
        ),
        "persistent_workers with workers": "有加载进程时开启 persistent_workers",
        "True with workers": "有加载进程时为 True",
        "off with LoRA": "LoRA 时关闭",
        "not reentrant with FSDP2": "FSDP2 下为非重入式",
        "packing None is on for stage pt alone": "packing 未设置时仅预训练（stage pt）开启",
        "documents are joined to sequences of seq_length": "文档拼接为长度 seq_length 的序列",
        "DataLoader without pin_memory and prefetch_factor": (
            "DataLoader 未设 pin_memory 与 prefetch_factor"
        ),
        "strategy auto is ddp, or a single device": "strategy=auto 即 DDP 或单卡",
        "float32 products do not use TF32 unless told": "未设置时 float32 矩阵乘不用 TF32",
        "autocast's float16 unless dtype is set": "未设 dtype 时为 autocast 的 float16",
        "float16 on CUDA unless dtype is given": "未给 dtype 时 CUDA 上为 float16",
        "unsloth is not in the code": "代码中没有 unsloth",
        "num_layers, hidden_size and num_attention_heads of the command": (
            "命令中的 num_layers、hidden_size 与 num_attention_heads"
        ),
        "Accelerator(mixed_precision=None) is no": "Accelerator 默认不用混合精度",
        # Processes and nodes.
        "micro-batches are cut by their tokens": "微批按 token 数切分",
        "bf16 where the GPU has it": "GPU 支持时用 bf16",
        "one process": "单进程",
        "a notebook is one process": "notebook 为单进程",
        "this node alone without a hostfile": "没有 hostfile 时只用本机",
        "this node unless hosts are given": "未给出主机时只用本机",
        "one process on one GPU": "单卡单进程",
        "one GPU unless a parallel size is set": "未设并行规模时用 1 张 GPU",
        "slots of the hostfile": "hostfile 中的 slots",
        "SLURM spreads the tasks over nodes": "SLURM 将任务分布到各节点",
        "every GPU of the node": "节点上的全部 GPU",
        "every GPU of the node but those excluded": "节点上除排除项外的全部 GPU",
        "every slot of the hosts": "各主机的全部 slots",
        "its own configuration file says how many": "由其自身配置文件决定",
        "Ray starts the workers": "由 Ray 启动工作进程",
        "Ray starts the processes of its device groups": "由 Ray 按设备组启动进程",
        # Why a value is not known.
        "no launcher was seen": "未见启动器",
        "nothing was read about it": "未读到相关设置",
        "the DeepSpeed configuration was not found": "未找到 DeepSpeed 配置",
        "the FSDP configuration was not read": "未能读取 FSDP 配置",
        "the Accelerate configuration was not found": "未找到 Accelerate 配置",
        "the launcher's configuration file was not found": "未找到启动器的配置文件",
        "the default configuration of the user's account may say it": (
            "可能由用户账户下的默认配置决定"
        ),
        "the checkpoint decides the type of the weights": "权重类型由 checkpoint 决定",
        "the type of the weights is not a literal": "权重类型不是字面值",
        "arguments of the call are not all known": "调用的参数不全可知",
        "arguments of the Trainer are not all known": "Trainer 的参数不全可知",
        "arguments of the DataLoader are not all known": "DataLoader 的参数不全可知",
        "arguments of autocast are not all known": "autocast 的参数不全可知",
        "the stage is not a literal": "Stage 不是字面值",
        "the strategy is not a literal": "strategy 不是字面值",
        "dtype is not a literal": "dtype 不是字面值",
        "offloading is not a literal": "卸载设置不是字面值",
        "several attention kernels in the code": "代码中有多种注意力实现",
        "several optimizers in the code": "代码中有多个优化器",
        "models are loaded in several ways": "代码以多种方式加载模型",
        "the code has both DDP and FSDP": "代码中同时有 DDP 与 FSDP",
        "the loop decides": "由训练循环决定",
        "set in a branch": "在分支中设置",
        "it depends on a branch": "取决于分支",
        "it depends on a branch of the script": "取决于脚本中的分支",
        "it must be given": "须由命令行给出",
        "unread arguments of the command": "命令的参数未能全部读出",
        "something out of sight may change it": "可能在看不到的地方被修改",
        "the model may bring code of its own": "模型可能自带代码",
    }
)
_ABSENT: Mapping[str, str] = MappingProxyType(
    {
        "PEFT": "PEFT",
        "autocast, scaler or 16-bit type": "autocast、GradScaler 或 16 位类型",
        "activation checkpointing": "激活重计算",
        "Liger kernel": "Liger Kernel",
        "gradient accumulation": "梯度累积",
        "gradient clipping": "梯度裁剪",
        "adapters": "适配器",
        "quantization": "量化",
        "schedule": "学习率调度",
        "warm-up": "预热",
        "tensor parallel": "张量并行",
        "pipeline parallel": "流水线并行",
        "sequence parallel": "序列并行",
        "expert parallel": "专家并行",
    }
)
_COUNTED: Mapping[str, str] = MappingProxyType(
    {
        "process": "1 个进程",
        "process per GPU": "每卡 1 个进程",
        "node": "1 个节点",
        "nnodes": "1 个节点",
        "nproc_per_node": "每节点 1 个进程",
        "machine": "1 台机器",
        "task": "1 个任务",
        "GPU": "1 张 GPU",
    }
)
_FORMS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"verl (\S+) to (\S+) workers: FSDP shards the actor over all GPUs"),
        r"verl \1–\2：FSDP 把 actor 切分到所有 GPU",
    ),
    (re.compile(r"verl (\S+) to (\S+) workers: (\S+) (\S+)"), r"verl \1–\2：\3=\4"),
    (re.compile(r"(\d+) processes, nothing shards the model"), r"\1 个进程，模型未被切分"),
    (re.compile(r"(\w+) splits the model"), r"模型由 \1 切分"),
    (re.compile(r"torch_dtype of (\S+)'s config\.json: (\w+)"), r"\1 的 config.json 中为 \2"),
    (re.compile(r"_supports_sdpa of (\w+)"), r"\1 类的 _supports_sdpa 决定"),
    (re.compile(r"([\d,]+) samples in (.+)"), r"\2 共 \1 条样本"),
    (re.compile(r"(.+): its trainer is built on Accelerate"), r"\1 的训练器基于 Accelerate"),
    (re.compile(r"one process with (\S+) GPUs in sight"), r"单进程，可见 GPU 为 \1"),
    (re.compile(r"strategy auto on (\S+) devices"), r"strategy=auto，\1 张卡"),
    (re.compile(r"(\S+) starts the processes"), r"由 \1 启动进程"),
    (re.compile(r"(\S+) moves tensors by need"), r"\1 按需移动张量"),
    (re.compile(r"(\S+) is off"), r"\1 关闭"),
    (re.compile(r"([\w.]+) at (\S+): (\w+) (\S+) unless set"), r"\2 的 \1 未设 \3，默认 \4"),
    (re.compile(r"([\w.]+) (\S+) unless set"), r"未设置时 \1=\2"),
    (
        re.compile(r"ceil\(16 / batch size / world size\) = (\d+)"),
        r"⌈16 ÷ 每卡批大小 ÷ 总进程数⌉ = \1",
    ),
    (re.compile(r"the environment variable (\S+)"), r"取决于环境变量 \1"),
    (re.compile(r"it depends on (.+)"), r"取决于 \1"),
    (re.compile(r"(\S+) is changed later"), r"\1 之后被修改"),
    (
        re.compile(r"global_batch_size=(\S+), (\S+) samples on (\S+) data-parallel ranks"),
        r"global_batch_size=\1，\3 个数据并行 rank 各 \2 条",
    ),
    (
        re.compile(r"global_batch_size (\S+) / micro_batch_size (\S+) / data parallel size"),
        r"global_batch_size \1 ÷ micro_batch_size \2 ÷ 数据并行数",
    ),
)
_NAMED_MODEL = "trl loads a model given by name; "
_ABSENCE = re.compile(
    r"no (?P<what>.+?) (?:in use|in the (?:reachable )?code(?: that is run| or its launch)?)"
)
_COUNT = re.compile(r"one (?P<what>[\w ]+?) unless (?:(?P<variable>[A-Z_]+) is )?set")
_OWNED = re.compile(r"(?P<owner>[\w.+-]+(?: [\w./*<>=, -]+?)?): (?P<rest>.+)")


def chinese_note(note: str) -> Optional[str]:
    """``note`` in Chinese; None for what is code, or of a form that is not known."""
    whole = _WHOLE.get(note)
    if whole is not None:
        return whole
    if note.startswith(_NAMED_MODEL):
        loaded = note[len(_NAMED_MODEL) :]
        return f"trl 按名称加载模型；{chinese_note(loaded) or loaded}"
    absence = _ABSENCE.fullmatch(note)
    if absence is not None:
        return absent(absence["what"])
    count = _COUNT.fullmatch(note)
    if count is not None and count["what"] in _COUNTED:
        unset = f"未设 {count['variable']} 时" if count["variable"] else "未设置时"
        return f"{unset}为 {_COUNTED[count['what']]}".replace("为 每", "为每")
    for form, chinese in _FORMS:
        found = form.fullmatch(note)
        if found is not None:
            return found.expand(chinese)
    owned = _OWNED.fullmatch(note)
    rest = chinese_note(owned["rest"]) if owned is not None else None
    return f"{owned['owner']}：{rest}" if owned is not None and rest is not None else None


def absent(what: str) -> str:
    """That the code is without ``what``."""
    said = _ABSENT.get(what, what)
    return f"代码中没有{' ' if said[0].isascii() else ''}{said}"
