"""What ms-swift's audit says of each item, as settings that every front end can write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from audit_cases import A100, ADVISED, H100, NA, OFF, ON, PARTLY, UNKNOWN, V100

from flake8_gpu_training.checks.base import Status

QWEN = "Qwen/Qwen2.5-7B-Instruct"
QWEN_72B = "Qwen/Qwen2.5-72B-Instruct"
VISION = "Qwen/Qwen2.5-VL-7B-Instruct"
EXPERTS = "Qwen/Qwen3-30B-A3B-Instruct-2507"
ONE = "CUDA_VISIBLE_DEVICES=0 "
TWO = "CUDA_VISIBLE_DEVICES=0,1 "
EIGHT = "NPROC_PER_NODE=8 "
NODES = "NNODES=2 NODE_RANK=$RANK MASTER_ADDR=node0 NPROC_PER_NODE=8 "
NPU = "ASCEND_RT_VISIBLE_DEVICES=0 "
ONE_A100, ONE_4090 = "gres=gpu:a100-80g:1", "gres=gpu:rtx4090:1"
FULL = {"tuner_type": "full"}
LORA = {"tuner_type": "lora"}
FLASH = {"attn_impl": "flash_attn"}
BF16 = {"torch_dtype": "bfloat16"}
RLHF, MEGATRON, M_RLHF = "swift rlhf", "megatron sft", "megatron rlhf"
INFER = "swift infer"
DPO, KTO = {"rlhf_type": "dpo"}, {"rlhf_type": "kto"}
GRPO = {"rlhf_type": "grpo", "reward_funcs": "accuracy"}
COLOCATE = {**GRPO, "use_vllm": True, "vllm_mode": "colocate"}
SERVER = {**GRPO, "use_vllm": True, "vllm_mode": "server", "vllm_server_host": "127.0.0.1"}
FSDP_FILE = """\
{"fsdp": "full_shard auto_wrap",
 "fsdp_config": {"fsdp_version": 2, "activation_checkpointing": false,
                 "activation_cpu_offload": true}}
"""


def pinned(version: str, **more: str) -> dict[str, str]:
    """A project with this ms-swift, and ``more`` distributions."""
    lines = [f"ms-swift=={version}", *(f"{name}=={one}" for name, one in more.items())]
    return {"requirements.txt": "\n".join(lines) + "\n"}


@dataclass(frozen=True)
class Case:
    """Settings, and what the audit says of one item of the run that they describe.

    ``before`` stands before the command, ``command`` in its place.
    """

    item: str
    status: Status
    settings: Mapping[str, Any] = field(default_factory=dict)
    before: str = ONE
    directives: tuple[str, ...] = ()
    command: str = "swift sft"
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """Item, status and what sets it."""
        marks = "-".join(f"{k}={v}".rpartition("/")[2] for k, v in self.settings.items())
        where = f"{self.command}{self.before.strip()}{self.directives}"
        return f"{self.item}-{self.status.value}-{marks}-{where}{''.join(self.files.values())}"


def _megatron(item: str, status: Status, before: str = EIGHT, **settings: Any) -> Case:
    return Case(item, status, settings, before, (), MEGATRON)


def _tuned(item: str, switch: str, value: Any = True) -> tuple[Case, ...]:
    """A switch of LoRA that ``swift`` alone has."""
    return (
        Case(item, ON, {switch: value}),
        Case(item, OFF),
        Case(item, NA, FULL),
        _megatron(item, NA, tuner_type="lora"),
    )


def _quantized(item: str, method: str, bits: int) -> tuple[Case, ...]:
    return (
        Case(item, ON, {"quant_method": method, "quant_bits": bits}),
        Case(item, OFF, {}, ONE, (H100,)),
        Case(item, NA, FULL),
        Case(item, NA, {"model": f"{QWEN}-GPTQ-Int4"}),
        _megatron(item, NA, tuner_type="lora"),
    )


def _sharded(item: str, name: str) -> tuple[Case, ...]:
    return (
        Case(item, ON, {**FULL, "deepspeed": name, **FLASH}, EIGHT),
        Case(item, OFF, {}, EIGHT),
        Case(item, NA),
        _megatron(item, NA),
    )


def _of_vllm(item: str, name: str, value: Any) -> tuple[Case, ...]:
    """What a colocated engine has, of GRPO by ``swift`` and by Megatron."""
    return (
        Case(item, ON, {**COLOCATE, name: value}, EIGHT, (), RLHF),
        Case(item, ON, {**COLOCATE, name: value}, EIGHT, (), M_RLHF),
        Case(item, NA, {**SERVER, name: value}, EIGHT, (), RLHF),
        Case(item, NA, GRPO, EIGHT, (), RLHF),
        Case(item, NA, DPO, EIGHT, (), RLHF),
        Case(item, NA),
    )


CASES = (
    # A adapters
    Case("lora", ON),
    Case("lora", ON, LORA),
    Case("lora", ON, {"train_type": "lora"}, files=pinned("3.12.6")),
    Case("lora", ADVISED, {**FULL, "model": QWEN_72B}, ONE, (ONE_A100,)),
    Case("lora", OFF, FULL),
    Case("lora", NA, {}, command=INFER),
    _megatron("lora", OFF),
    _megatron("lora", ON, tuner_type="lora"),
    _megatron("lora", ON, adapters="output/checkpoint-100"),
    *_quantized("qlora-bnb", "bnb", 4),
    *_quantized("qlora-hqq", "hqq", 4),
    *_quantized("qlora-eetq", "eetq", 8),
    Case("qlora-eetq", NA, {"init_weights": "olora"}),
    Case("qlora-bnb", OFF, {"init_weights": "olora"}),
    Case("qlora-bnb", OFF, {"tuner_type": "adalora"}),
    Case("qlora-hqq", NA, {"tuner_type": "adalora"}),
    Case("qlora-eetq", NA, {"tuner_type": "ia3"}),
    Case("qlora-eetq", NA, {"tuner_type": "fourierft"}),
    Case("qlora-hqq", OFF, {"tuner_type": "vera"}),
    Case("qlora-eetq", OFF, {"tuner_type": "adapter"}),
    Case("qlora-bnb", NA, {"tuner_type": "llamapro"}),
    Case("qlora-bnb", UNKNOWN, {"tuner_type": "our_tuner"}),
    Case(
        "qlora-bnb",
        ADVISED,
        {"tuner_type": "adalora", "model": "Qwen/Qwen2.5-32B-Instruct"},
        ONE,
        (ONE_4090,),
    ),
    Case("qlora-bnb", NA, {"init_weights": "pissa"}),
    Case("qlora-bnb", NA, {"model": QWEN_72B, "init_weights": "pissa_niter_4"}, ONE, (ONE_4090,)),
    Case("pissa", NA, {"quant_method": "bnb", "quant_bits": 4}),
    *_quantized("fp8-quantization", "fp8", 8),
    Case("fp8-quantization", NA, {}, ONE, (A100,)),
    Case("qlora-bnb", ADVISED, {"model": "Qwen/Qwen2.5-32B-Instruct"}, ONE, (ONE_4090,)),
    Case("qlora-bnb", ADVISED, {"quant_bits": 4}),
    *_tuned("dora", "use_dora"),
    *_tuned("lora-plus", "lorap_lr_ratio", 16),
    Case("rslora", ON, {"use_rslora": True}),
    Case("rslora", OFF),
    Case("rslora", NA, FULL),
    _megatron("rslora", ON, tuner_type="lora", use_rslora=True),
    _megatron("rslora", OFF, tuner_type="lora"),
    *_tuned("pissa", "init_weights", "pissa"),
    *_tuned("lora-ga", "init_weights", "lora-ga"),
    Case("adalora", ON, {"tuner_type": "adalora"}),
    Case("adalora", OFF),
    _megatron("adalora", NA, tuner_type="lora"),
    Case("lisa", ON, {**FULL, "lisa_activated_layers": 2}),
    Case("lisa", OFF, FULL),
    Case("lisa", NA),
    _megatron("lisa", NA),
    *(
        case
        for item in ("unsloth", "unsloth-backend")
        for case in (
            Case(item, ON, {"tuner_backend": "unsloth"}),
            Case(item, ADVISED),
            Case(item, OFF, {"packing": True, **FLASH}),
            Case(item, NA, FULL),
            Case(item, NA, {"use_liger_kernel": True}),
            Case(item, NA, {"tuner_type": "adalora"}),
            Case(item, NA, {"tuner_type": "longlora"}),
            Case(item, NA, {"model": "Qwen/Qwen2.5-7B-Instruct-AWQ"}),
            Case(item, NA, {"model": "Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4"}),
            Case(item, NA, {"quant_method": "hqq", "quant_bits": 4}),
            Case(item, ADVISED, {"quant_method": "bnb", "quant_bits": 4}),
            _megatron(item, NA, tuner_type="lora"),
        )
    ),
    # B precision
    Case("bf16", ON, BF16),
    Case("bf16", ON, {"bf16": True}),
    Case("bf16", ON, {"model": "/data/models/Qwen3-VL-8B-Instruct"}),
    Case("bf16", ON, {"model": "/data/stage1", "model_type": "qwen2_5_vl"}),
    Case("bf16", ON, {"model": "Qwen/Qwen3-Embedding-8B", "task_type": "embedding"}),
    Case("bf16", UNKNOWN, {"model": "BAAI/bge-m3", "task_type": "embedding"}),
    Case("bf16", UNKNOWN, {"model": "/data/stage1"}),
    Case("layered-learning-rate", NA, {"model": "/data/stage1"}, command=INFER),
    Case("vllm-rollout", OFF, {**GRPO, "model": "stepfun-ai/GOT-OCR2_0"}, EIGHT, (), RLHF),
    Case("bf16", ADVISED, {"torch_dtype": "float32", "fp16": False}),
    Case("bf16", OFF, {"torch_dtype": "float16"}),
    Case("bf16", NA, {"torch_dtype": "float16"}, ONE, (V100,)),
    Case("bf16", NA, BF16, command=INFER),
    Case("fp16", ON, {"torch_dtype": "float16"}, ONE, (V100,)),
    Case("fp16", PARTLY, {"torch_dtype": "float16"}, ONE, (A100,)),
    Case("fp16", ADVISED, BF16, ONE, (V100,)),
    Case("fp16", NA, BF16, command=INFER),
    Case("fp8-training", ON, {"fp8_format": "e4m3"}, EIGHT, (H100,), MEGATRON),
    Case("fp8-training", ADVISED, BF16, EIGHT, (H100,), MEGATRON),
    Case("fp8-training", NA, BF16, ONE, (H100,)),
    Case("fp8-training", NA, BF16, ONE, (A100,)),
    # C activations
    Case("gradient-checkpointing", ON),
    Case("gradient-checkpointing", ADVISED, {"gradient_checkpointing": False, "max_length": 16384}),
    Case("gradient-checkpointing", OFF, {"gradient_checkpointing": False, "max_length": 1024}),
    Case("gradient-checkpointing", NA, command=INFER),
    Case(
        "gradient-checkpointing",
        OFF,
        {**FULL, "fsdp": "fsdp.json", "gradient_checkpointing": False},
        EIGHT,
        files={"fsdp.json": FSDP_FILE},
    ),
    _megatron("gradient-checkpointing", ON),
    _megatron(
        "gradient-checkpointing",
        ON,
        recompute_granularity="full",
        recompute_method="uniform",
        recompute_num_layers=1,
    ),
    _megatron("gradient-checkpointing", ADVISED, recompute_granularity="none", max_length=16384),
    Case("vit-gradient-checkpointing", ON, {"model": VISION}),
    Case("vit-gradient-checkpointing", OFF, {"model": VISION, "vit_gradient_checkpointing": False}),
    Case(
        "vit-gradient-checkpointing",
        ADVISED,
        {"model": VISION, "freeze_vit": False, "vit_gradient_checkpointing": False},
    ),
    Case("vit-gradient-checkpointing", NA),
    Case("vit-gradient-checkpointing", UNKNOWN, {"model": "/data/stage1"}),
    Case("vit-gradient-checkpointing", ON, {"model": "/data/stage1", "model_type": "internvl3"}),
    Case("multimodal-freezing", UNKNOWN, {"model": "/data/stage1"}),
    Case("multimodal-freezing", OFF, {"model": "/data/stage1", "freeze_vit": False}),
    Case("multimodal-freezing", ON, {"model": "/data/stage1", "model_type": "gemma3_vision"}),
    Case("layered-learning-rate", UNKNOWN, {"model": "/data/stage1"}),
    Case("layered-learning-rate", NA, {"model": "/data/stage1", "model_type": "qwen3_moe"}),
    Case(
        "flash-attention-2",
        ADVISED,
        {"model": "/data/stage1", "model_type": "qwen3", "max_length": 16384},
    ),
    Case("flash-attention-2", ADVISED, {"model": "/data/stage1", "model_type": "got_ocr2"}),
    Case("flash-attention-2", OFF, {"model": "/data/stage1", "model_type": "got_ocr2_hf"}),
    Case("sdpa", OFF, {"model": "/data/stage1", "model_type": "got_ocr2_hf"}),
    Case("sdpa", ON, {"model": "google/gemma-3-12b-it"}),
    Case("sdpa", ON, {"model": "/data/stage1", "model_type": "llama4"}),
    Case("logits-to-keep", OFF, {"model": "stepfun-ai/GOT-OCR2_0"}),
    Case("logits-to-keep", ON, {"model": "stepfun-ai/GOT-OCR-2.0-hf"}),
    _megatron("fp8-training", OFF),
    Case("liger-kernel", ADVISED, {"model": "/data/stage1", "model_type": "qwen2_5"}, EIGHT),
    Case("liger-kernel", UNKNOWN, {"model": "/data/stage1", "model_type": "yi"}, EIGHT),
    Case("liger-kernel", NA, {"model": "/data/stage1", "model_type": "got_ocr2"}, EIGHT),
    Case("liger-kernel", NA, {"model": "Kwai-Keye/Keye-VL-8B-Preview"}, EIGHT),
    _megatron("vit-gradient-checkpointing", OFF, model=VISION),
    _megatron("vit-gradient-checkpointing", ON, model=VISION, freeze_vit=False),
    Case(
        "vit-gradient-checkpointing", ON, {"model": VISION}, EIGHT, (), MEGATRON, pinned("3.12.6")
    ),
    Case("gradient-accumulation", ON),
    Case("gradient-accumulation", ON, {"gradient_accumulation_steps": 8}),
    Case("gradient-accumulation", ADVISED, {"gradient_accumulation_steps": 1}),
    Case("gradient-accumulation", OFF, {"per_device_train_batch_size": 16}),
    Case("gradient-accumulation", OFF, GRPO, EIGHT, (), RLHF),
    Case("gradient-accumulation", NA, command=INFER),
    _megatron("gradient-accumulation", ON, global_batch_size=64),
    _megatron("gradient-accumulation", OFF, global_batch_size=8),
    Case("logits-to-keep", ON),
    Case("logits-to-keep", ON, {"use_logits_to_keep": True}),
    Case("logits-to-keep", ON, DPO, ONE, (), RLHF),
    Case("logits-to-keep", ADVISED, {"use_logits_to_keep": False}),
    Case("logits-to-keep", ON, {"model": VISION}),
    Case("logits-to-keep", OFF, {"model": VISION}, files=pinned("3.12.6")),
    Case("logits-to-keep", OFF, {"model": "Kwai-Keye/Keye-VL-1_5-8B"}),
    Case("logits-to-keep", OFF, {"model": "Qwen/Qwen2.5-Omni-7B"}),
    Case("logits-to-keep", UNKNOWN, {"model": "Kwai-Keye/Keye-VL-8B-Preview"}),
    Case("logits-to-keep", UNKNOWN, {"model": "/data/runs/stage1/checkpoint-155"}),
    Case("logits-to-keep", ON, {"model": "/data/runs/stage1", "model_type": "qwen2_5_vl"}),
    Case("logits-to-keep", ON, {"model": "/data/runs/stage1", "model_type": "qwen2_5"}),
    Case("logits-to-keep", OFF, {"model": VISION}, files=pinned("4.5.3", transformers="4.57.1")),
    Case("logits-to-keep", ON, {"model": VISION}, files=pinned("4.5.3", transformers="5.12.0")),
    Case("logits-to-keep", NA, {"sequence_parallel_size": 8, **FLASH}, EIGHT),
    Case("logits-to-keep", NA, {"rlhf_type": "rm"}, ONE, (), RLHF),
    _megatron("logits-to-keep", NA),
    Case(
        "activation-cpu-offload",
        ON,
        {**FULL, "fsdp": "fsdp2", "callbacks": "activation_cpu_offload"},
        EIGHT,
    ),
    Case(
        "activation-cpu-offload",
        ON,
        {**FULL, "fsdp": "fsdp.json"},
        EIGHT,
        files={"fsdp.json": FSDP_FILE},
    ),
    Case("activation-cpu-offload", OFF, {**FULL, "fsdp": "fsdp2"}, EIGHT),
    Case("activation-cpu-offload", NA, FULL, EIGHT),
    _megatron("activation-cpu-offload", NA),
    # D distributed
    *_sharded("zero2", "zero2"),
    Case("zero2", UNKNOWN, {**FULL, "model": "models/ours"}, EIGHT),
    *_sharded("zero3", "zero3"),
    *_sharded("zero2-offload", "zero2_offload"),
    *_sharded("zero3-offload", "zero3_offload"),
    Case(
        "zero2",
        ON,
        {**FULL, "deepspeed": "ds.json"},
        EIGHT,
        files={"ds.json": '{"zero_optimization": {"stage": 2}}'},
    ),
    Case("zero2", ADVISED, {**FULL, "model": "Qwen/Qwen2.5-14B"}, EIGHT, (A100,)),
    Case("zero3", ADVISED, {**FULL, "model": "Qwen/Qwen2.5-32B"}, EIGHT, (A100,)),
    Case(
        "zero-plus-plus",
        ON,
        {**FULL, "deepspeed": "zero3", "zero_hpz_partition_size": 8},
        NODES,
    ),
    Case("zero-plus-plus", ADVISED, {**FULL, "deepspeed": "zero3"}, NODES),
    Case("zero-plus-plus", NA, {**FULL, "deepspeed": "zero3"}, EIGHT),
    Case("zero-plus-plus", NA, {**FULL, "deepspeed": "zero2"}, NODES),
    _megatron("zero-plus-plus", NA, NODES),
    Case("autotp", ON, {**FULL, "deepspeed": "zero2", "deepspeed_autotp_size": 2}, EIGHT),
    Case("autotp", PARTLY, {**FULL, "deepspeed": "zero3", "deepspeed_autotp_size": 2}, EIGHT),
    Case("autotp", OFF, {**FULL, "deepspeed": "zero2"}, EIGHT),
    Case("autotp", NA, {**FULL, "deepspeed": "zero3"}, EIGHT),
    Case("autotp", NA, {}, EIGHT),
    Case(
        "autotp",
        NA,
        {"train_type": "full", "deepspeed": "zero2"},
        EIGHT,
        files=pinned("3.5.3"),
    ),
    _megatron("autotp", NA),
    Case("fsdp2", ON, {**FULL, "fsdp": "fsdp2"}, EIGHT),
    Case("fsdp2", ON, {**FULL, "fsdp": "fsdp.json"}, EIGHT, files={"fsdp.json": FSDP_FILE}),
    Case("fsdp2", OFF, FULL, EIGHT),
    Case("fsdp2", NA),
    _megatron("fsdp2", NA),
    Case("device-map", ON, {"model": QWEN_72B, "device_map": "auto"}, TWO),
    Case("device-map", ON, {"model": QWEN_72B}, TWO),
    Case("device-map", PARTLY, {}, TWO),
    Case("device-map", ON, {"model": EXPERTS}, TWO),
    Case("device-map", PARTLY, {"model": EXPERTS}, TWO, ("gres=gpu:a100-80g:2",)),
    Case("device-map", PARTLY, {}, "NPROC_PER_NODE=2 CUDA_VISIBLE_DEVICES=0,1,2,3 "),
    Case("device-map", NA, {}, EIGHT),
    Case("device-map", NA),
    _megatron("device-map", NA),
    _megatron("megatron", ON),
    _megatron("megatron", ON, ONE, tuner_type="lora"),
    _megatron("megatron", PARTLY, use_distributed_optimizer=False),
    Case("megatron", OFF, FULL, EIGHT),
    Case("megatron", NA, {**FULL, "task_type": "reranker"}, EIGHT),
    Case("megatron", NA, {**FULL, "task_type": "embedding"}, EIGHT, files=pinned("3.12.6")),
    Case("megatron", OFF, {**FULL, "task_type": "embedding"}, EIGHT),
    Case("megatron", NA, {**FULL, "rlhf_type": "ppo"}, EIGHT, (), RLHF),
    Case("megatron", NA, {"tuner_type": "longlora"}, EIGHT),
    Case("megatron", NA, {"quant_method": "bnb", "quant_bits": 4}, EIGHT),
    Case("megatron", NA),
    # E optimizers
    Case("galore", ON, {**FULL, "use_galore": True}),
    Case("galore", OFF, FULL),
    Case("galore", NA),
    _megatron("galore", NA),
    Case("q-galore", ON, {**FULL, "use_galore": True, "galore_quantization": True}),
    Case("q-galore", OFF, FULL),
    Case("q-galore", NA),
    _megatron("q-galore", NA),
    # F attention
    Case("flash-attention-2", ON, FLASH),
    Case("flash-attention-2", ADVISED),
    Case("flash-attention-2", ADVISED, {"attn_impl": "eager"}),
    Case("flash-attention-2", NA, {}, NPU),
    Case("flash-attention-2", UNKNOWN, {"model": "models/ours"}),
    Case("flash-attention-2", NA, {}, ONE, (V100,)),
    _megatron("flash-attention-2", ON),
    _megatron("flash-attention-2", ADVISED, attention_backend="unfused"),
    Case("flash-attention-3", ON, {"attn_impl": "flash_attention_3"}, ONE, (H100,)),
    Case("flash-attention-3", OFF, FLASH, ONE, (H100,)),
    Case("flash-attention-3", NA, FLASH, ONE, (A100,)),
    Case("flash-attention-3", ON, {"attention_backend": "flash_3"}, EIGHT, (H100,), MEGATRON),
    Case("sdpa", ON, {"attn_impl": "sdpa"}, ONE, (V100,)),
    Case("sdpa", ON, {}, ONE, (V100,)),
    Case("sdpa", PARTLY, {"attn_impl": "sdpa"}, ONE, (A100,)),
    Case("sdpa", PARTLY),
    Case("sdpa", PARTLY, {"model": "google/gemma-7b", "max_length": 8192}),
    Case("sdpa", UNKNOWN, {"model": "models/ours"}),
    Case("sdpa", OFF, {"packing": True}),
    Case("sdpa", OFF, {"attn_impl": "eager"}),
    Case("sdpa", OFF, {"model": "bigscience/bloom-7b1"}),
    Case("sdpa", OFF, FLASH),
    Case("sdpa", NA, {}, NPU),
    _megatron("sdpa", ON, attention_backend="fused"),
    Case("flex-attention", ON, {"attn_impl": "flex_attention"}),
    Case("flex-attention", OFF, FLASH),
    Case("flex-attention", NA, {}, NPU),
    Case("sequence-parallel", ON, {"sequence_parallel_size": 4, **FLASH}, EIGHT),
    Case("sequence-parallel", ADVISED, {"max_length": 262144, **FLASH}, EIGHT),
    Case("sequence-parallel", OFF, FLASH, EIGHT),
    Case("sequence-parallel", NA),
    Case("sequence-parallel", NA, KTO, EIGHT, (), RLHF),
    _megatron("sequence-parallel", ON, context_parallel_size=2),
    _megatron("sequence-parallel", ON, tensor_model_parallel_size=2, sequence_parallel=True),
    _megatron("sequence-parallel", ADVISED, tensor_model_parallel_size=2),
    _megatron("sequence-parallel", OFF),
    # G engines
    Case("liger-kernel", ON, {"use_liger_kernel": True}),
    Case("liger-kernel", ADVISED, {}, EIGHT),
    Case("liger-kernel", ADVISED, FULL),
    Case("liger-kernel", OFF, {**FULL, "enable_dft_loss": True}),
    Case("liger-kernel", NA, {"tuner_backend": "unsloth"}),
    Case("liger-kernel", NA, {"model": QWEN_72B}, TWO),
    _megatron("liger-kernel", NA),
    Case("torch-compile", ON, {**FULL, "torch_compile": True}),
    Case("torch-compile", OFF),
    Case("torch-compile", NA, {}, NPU),
    _megatron("torch-compile", NA),
    # H data
    Case("packing", ON, {"packing": True, **FLASH}),
    Case("packing", ADVISED),
    Case("packing", OFF, KTO, ONE, (), RLHF),
    Case("packing", NA, {"rlhf_type": "rm"}, ONE, (), RLHF),
    Case("packing", NA, {"rlhf_type": "orpo"}, ONE, (), RLHF),
    _megatron("packing", ON, packing=True),
    Case("padding-free", ON, {"padding_free": True, **FLASH}),
    Case("padding-free", NA, {"model": "Kwai-Keye/Keye-VL-8B-Preview"}),
    Case("packing", NA, {"model": "/data/stage1", "model_type": "got_ocr2"}),
    Case("packing", NA, {"model": "llava-hf/llava-1.5-7b-hf"}),
    Case("packing", NA, {**GRPO, "model": "stepfun-ai/GOT-OCR2_0"}, EIGHT, (), RLHF),
    Case("packing", OFF, {"model": VISION}),
    Case("packing", OFF, {"model": "OpenGVLab/InternVL3-8B"}),
    Case("padding-free", ADVISED, DPO, ONE, (), RLHF),
    Case("padding-free", ADVISED, {"lazy_tokenize": True}),
    Case("padding-free", OFF, KTO, ONE, (), RLHF),
    Case("padding-free", NA, {"rlhf_type": "rm"}, ONE, (), RLHF),
    _megatron("padding-free", ON),
    _megatron("padding-free", OFF, padding_free=False, group_by_length=True),
    Case("streaming", ON, {"streaming": True, "max_steps": 1000}),
    Case("streaming", ADVISED, {"dataset": "HuggingFaceFW/fineweb"}, EIGHT, (), "swift pt"),
    Case("streaming", OFF),
    Case("streaming", NA, command=INFER),
    Case("lazy-tokenize", ON, {"lazy_tokenize": True}),
    Case("lazy-tokenize", ON, {"model": VISION}),
    Case("lazy-tokenize", ON, {"model": "/data/stage1", "model_type": "got_ocr2"}),
    Case("lazy-tokenize", ON, {"model": "Qwen/Qwen3-VL-Embedding-2B", "task_type": "embedding"}),
    Case("lazy-tokenize", OFF, {"model": "/data/stage1", "model_type": "qwen3"}),
    Case("lazy-tokenize", UNKNOWN, {"model": "/data/stage1"}),
    Case("lazy-tokenize", OFF, {"model": "/data/stage1", "lazy_tokenize": False}),
    _megatron("lazy-tokenize", ON, model=VISION),
    Case("lazy-tokenize", OFF, {"model": VISION}, EIGHT, (), MEGATRON, pinned("3.6.4")),
    Case("preprocessing-workers", ADVISED, {"model": VISION}, EIGHT, (), MEGATRON, pinned("3.6.4")),
    Case("preprocessing-workers", ADVISED, {"model": VISION, "group_by_length": True}),
    Case("lazy-tokenize", OFF),
    Case("lazy-tokenize", OFF, {"model": VISION, "group_by_length": True}),
    Case("lazy-tokenize", NA, {"packing": True, **FLASH}),
    Case("lazy-tokenize", NA, {"streaming": True, "max_steps": 1000}),
    Case("preprocessing-workers", ON, {"dataset_num_proc": 8}),
    Case("preprocessing-workers", ADVISED),
    Case("preprocessing-workers", OFF, {"dataset": "AI-ModelScope/alpaca-gpt4-data-zh#100"}),
    Case("preprocessing-workers", ADVISED, {"dataset": "AI-ModelScope/alpaca-gpt4-data-zh#5000"}),
    Case("preprocessing-workers", NA, {"streaming": True, "max_steps": 1000}),
    Case("preprocessing-workers", NA, {"model": VISION}),
    Case("dataloader-workers", ON, {"dataloader_num_workers": 4}),
    Case("dataloader-workers", PARTLY),
    Case("dataloader-workers", ADVISED, {"dataloader_num_workers": 0}),
    Case("dataloader-workers", OFF, {"streaming": True, "max_steps": 1000}),
    Case("dataloader-workers", NA, command=INFER),
    _megatron("dataloader-workers", ON),
    Case("persistent-workers", ON),
    Case("persistent-workers", ADVISED, {"num_train_epochs": 3}, files=pinned("3.12.6")),
    Case("persistent-workers", ADVISED, {"num_train_epochs": 3}, files=pinned("4.1.3")),
    Case("persistent-workers", OFF, {"dataloader_num_workers": 0}),
    Case("persistent-workers", NA, {"batch_size": 2}, files=pinned("2.6.1")),
    Case("persistent-workers", ON, {}, EIGHT, (), MEGATRON, pinned("4.1.3")),
    Case("prefetch-factor", ON),
    Case("prefetch-factor", ON, {"dataloader_prefetch_factor": 4}),
    Case("prefetch-factor", ADVISED, {"dataloader_prefetch_factor": 1}),
    Case("prefetch-factor", NA, command=INFER),
    # I strategy
    Case("loss-scale", ON),
    Case("loss-scale", ON, {"loss_scale": "last_round"}),
    Case("loss-scale", ON, DPO, ONE, (), RLHF),
    Case("loss-scale", NA, {}, command="swift pt"),
    Case("loss-scale", NA, {"rlhf_type": "rm"}, ONE, (), RLHF),
    Case("neftune", ON, {"neftune_noise_alpha": 5}),
    Case("neftune", OFF),
    Case("neftune", NA, DPO, ONE, (), RLHF),
    _megatron("neftune", NA),
    Case("rope-scaling", ON, {"rope_scaling": "yarn", "max_length": 65536}),
    Case("rope-scaling", OFF, {"max_length": 65536}),
    Case("rope-scaling", NA),
    Case("dft-loss", ON, {"enable_dft_loss": True}),
    Case("dft-loss", OFF),
    Case("dft-loss", NA, DPO, ONE, (), RLHF),
    Case("dft-loss", NA, {}, files=pinned("3.5.3")),
    _megatron("dft-loss", ON, enable_dft_loss=True),
    Case("multimodal-freezing", ON, {"model": VISION}),
    Case("multimodal-freezing", ON, {"model": VISION, "freeze_vit": False, "freeze_llm": True}),
    Case("multimodal-freezing", OFF, {"model": VISION, "freeze_vit": False}),
    Case("multimodal-freezing", NA),
    Case("layered-learning-rate", ON, {"model": VISION, "freeze_vit": False, "vit_lr": 1e-6}),
    Case("layered-learning-rate", OFF, {"model": VISION, "freeze_vit": False}),
    Case("layered-learning-rate", NA, {"model": VISION}),
    Case("layered-learning-rate", NA),
    # J rollouts
    Case("vllm-rollout", ON, COLOCATE, EIGHT, (), RLHF),
    Case("vllm-rollout", ON, SERVER, EIGHT, (), RLHF),
    Case("vllm-rollout", ON, {**GRPO, "vllm_mode": "colocate"}, EIGHT, (), M_RLHF),
    Case("vllm-rollout", ADVISED, GRPO, EIGHT, (), RLHF),
    Case("vllm-rollout", NA, DPO, EIGHT, (), RLHF),
    Case("vllm-rollout", NA),
    Case("async-generate", ON, {**SERVER, "async_generate": True}, EIGHT, (), RLHF),
    Case("async-generate", OFF, SERVER, EIGHT, (), RLHF),
    Case("async-generate", NA, COLOCATE, EIGHT, (), RLHF),
    Case("async-generate", NA, SERVER, EIGHT, (), M_RLHF),
    Case("async-generate", NA),
    *_of_vllm("offload-optimizer", "offload_optimizer", True),
    *_of_vllm("offload-model", "offload_model", True),
    *_of_vllm("sleep-level", "sleep_level", 1),
    *_of_vllm("prefix-caching", "vllm_enable_prefix_caching", True),
    Case("offload-optimizer", OFF, COLOCATE, EIGHT, (), RLHF),
    Case("offload-model", OFF, COLOCATE, EIGHT, (), RLHF),
    Case("sleep-level", ADVISED, COLOCATE, EIGHT, (), RLHF),
    Case("prefix-caching", ON, COLOCATE, EIGHT, (), RLHF),
    Case(
        "prefix-caching",
        ADVISED,
        {**COLOCATE, "vllm_enable_prefix_caching": False},
        EIGHT,
        (),
        RLHF,
    ),
    Case("grpo-sampling", ON, GRPO, EIGHT, (), RLHF),
    Case("grpo-sampling", ON, {**COLOCATE, "num_generations": 16}, EIGHT, (), M_RLHF),
    Case("grpo-sampling", ADVISED, {**GRPO, "num_generations": 2}, EIGHT, (), RLHF),
    Case("grpo-sampling", NA, {"rlhf_type": "gkd"}, EIGHT, (), RLHF),
    Case("grpo-sampling", NA),
    Case("dynamic-sampling", ON, {**COLOCATE, "dynamic_sample": True}, EIGHT, (), RLHF),
    Case("dynamic-sampling", OFF, COLOCATE, EIGHT, (), RLHF),
    Case("dynamic-sampling", NA, {"rlhf_type": "gkd"}, EIGHT, (), RLHF),
    Case("dynamic-sampling", NA),
)

NEVER_ADVISED = {
    "qlora-hqq": "one of a group: bitsandbytes is advised",
    "qlora-eetq": "as HQQ",
    "fp8-quantization": "as HQQ",
    "dora": "slower for a quality that only an experiment shows",
    "lora-plus": "a learning rate is the user's",
    "rslora": "for large ranks, by choice",
    "pissa": "takes a decomposition of the weights first",
    "lora-ga": "takes gradients of the data first",
    "adalora": "one of a group: LoRA is advised",
    "lisa": "one of a group, as AdaLoRA",
    "activation-cpu-offload": "for where memory is short",
    "zero2-offload": "GPU204 advises offloading",
    "zero3-offload": "as ZeRO-2 with it",
    "fsdp2": "one of a group: ZeRO is advised",
    "galore": "LoRA saves more, and needs no other optimizer",
    "q-galore": "as GaLore",
    "flash-attention-3": "one of a group: FlashAttention-2 needs no build of its own",
    "flex-attention": "one of a group",
    "torch-compile": "samples of varying length are compiled again and again",
    "lazy-tokenize": "tokenising ahead is faster; for data that do not fit",
    "loss-scale": "on by default",
    "neftune": "changes what is learnt",
    "rope-scaling": "the model's own context is not known",
    "dft-loss": "changes what is learnt",
    "multimodal-freezing": "off by choice",
    "layered-learning-rate": "a learning rate is the user's",
    "async-generate": "learns from older weights",
    "offload-optimizer": "for where memory is short",
    "offload-model": "for where memory is short",
    "dynamic-sampling": "changes what is learnt",
}
"""Items that are never recommended, and why; they are shown disabled instead."""

MOE = Case("sequence-parallel", ADVISED, {"model": EXPERTS, "tensor_model_parallel_size": 2}, EIGHT)
