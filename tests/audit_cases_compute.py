"""Items D (compute) and E (communication) of the general audit, front end by front end."""

from __future__ import annotations

from audit_cases import (
    ADVISED,
    DDP_LINE,
    EVALUATION,
    NA,
    OFF,
    ON,
    SERVING,
    SGLANG,
    TORCHRUN,
    TWO,
    UNKNOWN,
    V100,
    Case,
    accelerate,
    accelerated,
    colossalai,
    ddp_yaml,
    decoder,
    engine,
    flow_factory,
    fsdp_yaml,
    launched,
    lightning,
    llamafactory,
    megatron_lm,
    megatron_swift,
    script,
    sft,
    swift,
    trainer,
    vescale,
    videox_fun,
    vision,
    zero,
)

ONE = "python train.py"
ONE_CARD = "gres=gpu:a100-80g:1"
FLASH = 'attn_implementation="flash_attention_2"'
ASCEND = "ASCEND_RT_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 NPROC_PER_NODE=8 "
NPU = vision(imports="import torch_npu").replace(".cuda", ".npu")
KERNEL = """\
import torch
from flash_attn import flash_attn_func


class Attention(torch.nn.Module):
    def forward(self, query, key, value):
        return flash_attn_func(query, key, value, causal=True)


class Decoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()
"""
BACKEND = KERNEL.replace(
    "from flash_attn import flash_attn_func",
    "from torch.nn.attention import SDPBackend, sdpa_kernel",
).replace(
    "return flash_attn_func(query, key, value, causal=True)",
    "with sdpa_kernel(SDPBackend.FLASH_ATTENTION):\n"
    "            return torch.nn.functional.scaled_dot_product_attention(query, key, value)",
)
ATTENTION = (
    Case("flash-attention", ON, "PyTorch", launched(decoder(loading=FLASH)), "flash_attention_2"),
    Case(
        "flash-attention",
        ON,
        "PyTorch kernel",
        {**engine(zero(2)), "model.py": KERNEL},
        "flash_attn_func",
    ),
    Case(
        "flash-attention",
        ON,
        "PyTorch SDPA back end",
        {**engine(zero(2)), "model.py": BACKEND},
        "SDPBackend.FLASH_ATTENTION",
    ),
    Case(
        "flash-attention",
        ON,
        "HF Trainer",
        launched(trainer("bf16=True", loading=FLASH)),
        "flash_attention_2",
    ),
    Case(
        "flash-attention",
        ON,
        "HF Trainer hub kernel",
        launched(
            trainer("bf16=True", loading='attn_implementation="kernels-community/vllm-flash-attn3"')
        ),
        "vllm-flash-attn3",
    ),
    Case(
        "flash-attention",
        ON,
        "TRL",
        launched(sft('model_init_kwargs={"attn_implementation": "flash_attention_2"}')),
        "flash_attention_2",
    ),
    Case("flash-attention", ON, "ms-swift", swift("attn_impl flash_attn"), "flash_attn"),
    Case("flash-attention", ON, "Megatron-SWIFT default", megatron_swift(""), "flash"),
    Case("flash-attention", ON, "LLaMA-Factory", llamafactory("flash_attn: fa2\n"), "fa2"),
    Case(
        "flash-attention", ON, "Megatron-LM", megatron_lm("--bf16 --use-flash-attn"), "flash-attn"
    ),
    Case(
        "flash-attention",
        ON,
        "VideoX-Fun",
        videox_fun(
            "",
            "VIDEOX_ATTENTION_TYPE=FLASH_ATTENTION accelerate launch",
            **{"requirements.txt": "flash-attn==2.7.4\n"},
        ),
        "FLASH_ATTENTION",
    ),
    Case(
        "flash-attention",
        ON,
        "Flow-Factory",
        flow_factory("  learning_rate: 1e-5\n", model="  attn_backend: flash\n"),
        "attn_backend: flash",
    ),
    Case(
        "flash-attention",
        ON,
        "ColossalAI",
        colossalai("HybridParallelPlugin", "tp_size=2, pp_size=1, enable_flash_attention=True"),
        "enable_flash_attention=True",
    ),
    Case(
        "flash-attention",
        ADVISED,
        "PyTorch",
        launched(decoder(DDP_LINE)),
        writes='attn_implementation="flash_attention_2"',
    ),
    Case(
        "flash-attention",
        ADVISED,
        "HF Trainer",
        launched(trainer("bf16=True")),
        writes='attn_implementation="flash_attention_2"',
    ),
    Case(
        "flash-attention",
        ADVISED,
        "ms-swift",
        swift("max_length 8192"),
        writes="--attn_impl flash_attn",
    ),
    Case(
        "flash-attention",
        ADVISED,
        "LLaMA-Factory",
        llamafactory("flash_attn: disabled\ncutoff_len: 8192\n"),
        writes="flash_attn: fa2",
    ),
    Case(
        "flash-attention",
        ADVISED,
        "Megatron-LM",
        megatron_lm("--bf16 --transformer-impl local"),
        writes="--use-flash-attn",
    ),
    Case("flash-attention", NA, "ms-swift Ascend", swift("max_length 8192", before=ASCEND), "CUDA"),
    Case(
        "flash-attention",
        ON,
        "HF Trainer V100",
        launched(trainer("fp16=True"), TORCHRUN, V100),
        "sdpa",
    ),
    Case("flash-attention", ON, "ms-swift V100", swift("torch_dtype float16", V100), "sdpa"),
    Case(
        "flash-attention",
        NA,
        "PyTorch Ascend",
        launched(decoder(imports="import torch_npu")),
        "CUDA",
    ),
    Case("flash-attention", NA, "PyTorch convolutions", launched(vision(DDP_LINE)), "attention"),
    Case("flash-attention", UNKNOWN, "PyTorch", engine(zero(2))),
    Case("flash-attention", UNKNOWN, "VideoX-Fun", videox_fun("")),
)

COMPILE = (
    Case(
        "torch-compile",
        ON,
        "PyTorch",
        launched(vision(DDP_LINE, "model = torch.compile(model)")),
        "torch.compile(model)",
    ),
    Case(
        "torch-compile", ON, "PyTorch method", launched(vision("model.compile()")), "model.compile"
    ),
    Case(
        "torch-compile",
        ON,
        "Lightning",
        lightning("devices=8", model="torch.compile(resnet50())"),
        "torch.compile(resnet50())",
    ),
    Case(
        "torch-compile",
        ON,
        "Accelerate",
        accelerate(ddp_yaml() + "dynamo_config:\n  dynamo_backend: INDUCTOR\n"),
        "dynamo_backend: INDUCTOR",
    ),
    Case(
        "torch-compile",
        ON,
        "Accelerate flags",
        launched(
            accelerated(),
            "accelerate launch --dynamo_backend inductor --num_processes 8 train.py",
        ),
        "--dynamo_backend inductor",
    ),
    Case(
        "torch-compile",
        ON,
        "Accelerate API",
        launched(
            accelerated('dynamo_backend="inductor"'), "accelerate launch --num_processes 8 train.py"
        ),
        'dynamo_backend="inductor"',
    ),
    Case(
        "torch-compile",
        ON,
        "HF Trainer",
        launched(trainer("bf16=True", "torch_compile=True")),
        "torch_compile=True",
    ),
    Case("torch-compile", ON, "ms-swift", swift("torch_compile true"), "torch_compile true"),
    Case("torch-compile", ON, "LLaMA-Factory", llamafactory("torch_compile: true\n"), "true"),
    Case(
        "torch-compile",
        ADVISED,
        "PyTorch",
        launched(vision(DDP_LINE)),
        writes="model = torch.compile(model)",
    ),
    Case(
        "torch-compile",
        ADVISED,
        "Lightning",
        lightning('devices=8, strategy="ddp"'),
        writes="torch.compile(",
    ),
    Case(
        "torch-compile",
        ADVISED,
        "HF Trainer",
        launched(
            trainer(
                "bf16=True",
                model="google/vit-base-patch16-224",
                loader="AutoModelForImageClassification",
            )
        ),
        writes="torch_compile=True",
    ),
    Case("torch-compile", OFF, "ms-swift", swift("tuner_type full")),
    Case("torch-compile", NA, "Megatron-SWIFT", megatron_swift(""), "Megatron"),
    Case("torch-compile", NA, "Megatron-LM", megatron_lm("--bf16"), "Megatron"),
    Case("torch-compile", NA, "HF evaluation", EVALUATION, "does not train"),
)

TRITON = """\
import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(source, target, size, factor, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = index < size
    tl.store(target + index, tl.load(source + index, mask) * factor, mask)


class Decoder(torch.nn.Module):
    def forward(self, hidden):
        scale_kernel[(1,)](hidden, hidden, hidden.numel(), 0.5, BLOCK=1024)
        return hidden
"""
KERNELS = (
    Case(
        "triton-kernels",
        ON,
        "PyTorch",
        {**engine(zero(2)), "model.py": TRITON},
        "@triton.jit",
    ),
    Case(
        "triton-kernels",
        ON,
        "PyTorch library",
        launched(decoder(imports="from fla.layers import GatedLinearAttention")),
        "fla.layers",
    ),
    Case("triton-kernels", ON, "ms-swift", swift("use_liger_kernel true"), "liger_kernel true"),
    Case(
        "triton-kernels",
        ON,
        "HF Trainer",
        launched(trainer("bf16=True", "use_liger_kernel=True")),
        "use_liger_kernel=True",
    ),
    Case(
        "triton-kernels",
        ON,
        "LLaMA-Factory",
        llamafactory("use_unsloth: true\n"),
        "use_unsloth: true",
    ),
    Case("triton-kernels", OFF, "PyTorch", launched(vision(DDP_LINE))),
    Case("triton-kernels", OFF, "ms-swift", swift("tuner_type lora")),
    Case("triton-kernels", NA, "ms-swift Ascend", swift("", before=ASCEND), "CUDA"),
    Case("triton-kernels", NA, "PyTorch Ascend", launched(NPU), "CUDA"),
    Case("triton-kernels", NA, "vLLM", SERVING, "does not train"),
)

CAPTURED = """\
import torch
from torchvision.models import resnet50

model = resnet50().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
for batch in loader:
    images.copy_(batch)
    graph.replay()
"""
GRAPHS = (
    Case("cuda-graph", ON, "PyTorch", launched(CAPTURED), "CUDAGraph"),
    Case(
        "cuda-graph",
        ON,
        "PyTorch callables",
        launched(vision("model = torch.cuda.make_graphed_callables(model, (sample,))")),
        "make_graphed_callables",
    ),
    Case(
        "cuda-graph",
        ON,
        "PyTorch compiled",
        launched(vision('model = torch.compile(model, mode="reduce-overhead")')),
        "reduce-overhead",
    ),
    Case(
        "cuda-graph",
        ON,
        "HF Trainer",
        launched(trainer("bf16=True", 'torch_compile_mode="reduce-overhead"')),
        "reduce-overhead",
    ),
    Case(
        "cuda-graph",
        ON,
        "Accelerate",
        accelerate(
            ddp_yaml()
            + "dynamo_config:\n  dynamo_backend: INDUCTOR\n  dynamo_mode: reduce-overhead\n"
        ),
        "dynamo_mode: reduce-overhead",
    ),
    Case(
        "cuda-graph",
        ON,
        "Megatron-LM",
        megatron_lm("--bf16 --enable-cuda-graph"),
        "--enable-cuda-graph",
    ),
    Case("cuda-graph", OFF, "PyTorch", launched(vision(DDP_LINE)), "launch-bound"),
    Case("cuda-graph", OFF, "ms-swift", swift("tuner_type lora")),
    Case("cuda-graph", NA, "ms-swift Ascend", swift("", before=ASCEND), "CUDA"),
    Case("cuda-graph", NA, "PyTorch Ascend", launched(NPU), "CUDA"),
    Case("cuda-graph", NA, "SGLang", SGLANG, "does not train"),
)

LIGER = (
    Case(
        "liger-kernel",
        ON,
        "PyTorch",
        launched(
            decoder(
                "apply_liger_kernel_to_qwen2()",
                imports="from liger_kernel.transformers import apply_liger_kernel_to_qwen2",
            )
        ),
        "apply_liger_kernel_to_qwen2()",
    ),
    Case(
        "liger-kernel",
        ON,
        "PyTorch class",
        launched(
            decoder(
                imports="from liger_kernel.transformers import AutoLigerKernelForCausalLM"
            ).replace("AutoModelForCausalLM.from_p", "AutoLigerKernelForCausalLM.from_p")
        ),
        "AutoLigerKernelForCausalLM.from_pretrained",
    ),
    Case(
        "liger-kernel",
        ON,
        "HF Trainer",
        launched(trainer("bf16=True", "use_liger_kernel=True")),
        "use_liger_kernel=True",
    ),
    Case("liger-kernel", ON, "TRL", launched(sft("use_liger_kernel=True")), "use_liger_kernel"),
    Case("liger-kernel", ON, "ms-swift", swift("use_liger_kernel true"), "use_liger_kernel true"),
    Case(
        "liger-kernel",
        ON,
        "LLaMA-Factory",
        llamafactory("enable_liger_kernel: true\n"),
        "enable_liger_kernel: true",
    ),
    Case(
        "liger-kernel",
        ADVISED,
        "PyTorch",
        launched(decoder(DDP_LINE)),
        writes="AutoLigerKernelForCausalLM",
    ),
    Case(
        "liger-kernel",
        ADVISED,
        "HF Trainer",
        launched(trainer("bf16=True")),
        writes="use_liger_kernel=True",
    ),
    Case(
        "liger-kernel",
        ADVISED,
        "ms-swift",
        swift("tuner_type full --deepspeed zero3"),
        writes="--use_liger_kernel true",
    ),
    Case(
        "liger-kernel",
        ADVISED,
        "LLaMA-Factory",
        llamafactory("finetuning_type: full\n"),
        writes="enable_liger_kernel: true",
    ),
    Case("liger-kernel", NA, "Megatron-SWIFT", megatron_swift(""), "Megatron"),
    Case("liger-kernel", NA, "HF Trainer", launched(trainer(model="THUDM/chatglm3-6b")), "Liger"),
    Case("liger-kernel", NA, "PyTorch vision", launched(vision(DDP_LINE))),
    Case("liger-kernel", NA, "Lightning vision", lightning("devices=8")),
    Case("liger-kernel", UNKNOWN, "DeepSpeed", engine(zero(2))),
)

FUSED = "torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)"
APEX_ADAM = "FusedAdam(model.parameters(), lr=1e-5)"
OPEN_ADAM = "torch.optim.AdamW(model.parameters(), lr=1e-5, **extra_args)"
MAYBE_FUSED = "extra_args = dict(fused=True) if has_fused_kernel() else dict()"
OFFLOADED = zero(2, offload_optimizer={"device": "cpu"})
FUSION = (
    Case(
        "operator-fusion",
        UNKNOWN,
        "PyTorch, open keywords",
        launched(decoder(optimizer=OPEN_ADAM, imports=MAYBE_FUSED)),
    ),
    Case(
        "operator-fusion",
        NA,
        "ms-swift, offloaded",
        {**swift("deepspeed ds.json --optim adamw_torch_fused"), "ds.json": OFFLOADED},
        "offloaded",
    ),
    Case("operator-fusion", ON, "PyTorch", launched(decoder(optimizer=FUSED)), "fused=True"),
    Case(
        "operator-fusion",
        ON,
        "apex",
        launched(decoder(optimizer=APEX_ADAM, imports="from apex.optimizers import FusedAdam")),
        "FusedAdam(",
    ),
    Case(
        "operator-fusion",
        ON,
        "xformers",
        {
            **engine(zero(2)),
            "model.py": "import torch\nfrom xformers.ops import memory_efficient_attention\n\n\n"
            "class Decoder(torch.nn.Module):\n    def forward(self, query, key, value):\n"
            "        return memory_efficient_attention(query, key, value)\n",
        },
        "memory_efficient_attention(query",
    ),
    Case(
        "operator-fusion",
        ON,
        "DeepSpeed",
        engine(
            '{"zero_optimization": {"stage": 2},\n "optimizer": {"type": "AdamW", "params": {}}}'
        ),
        "AdamW",
    ),
    Case(
        "operator-fusion",
        ON,
        "HF Trainer",
        launched(trainer("bf16=True", 'optim="adamw_torch_fused"')),
        "adamw_torch_fused",
    ),
    Case("operator-fusion", ON, "ms-swift", swift("optim adamw_torch_fused"), "adamw_torch_fused"),
    Case("operator-fusion", ON, "Megatron-LM", megatron_lm("--bf16"), "pretrain_gpt.py"),
    Case("operator-fusion", ON, "Megatron-SWIFT", megatron_swift(""), "megatron sft"),
    Case("operator-fusion", ON, "VideoX-Fun", videox_fun("--use_8bit_adam"), "--use_8bit_adam"),
    Case("operator-fusion", ON, "ColossalAI", colossalai("LowLevelZeroPlugin"), "HybridAdam"),
    Case(
        "operator-fusion",
        ON,
        "Lightning",
        lightning("devices=8", optimizer="torch.optim.AdamW(self.parameters(), fused=True)"),
        "fused=True",
    ),
    Case(
        "operator-fusion",
        ADVISED,
        "HF Trainer",
        launched(trainer("bf16=True", 'optim="adamw_torch"')),
        writes='optim="adamw_torch_fused"',
    ),
    Case(
        "operator-fusion",
        ADVISED,
        "ms-swift",
        swift("optim adamw_torch"),
        writes="--optim adamw_torch_fused",
    ),
    Case(
        "operator-fusion",
        ADVISED,
        "PyTorch",
        launched(vision(DDP_LINE, optimizer="torch.optim.AdamW(model.parameters(), lr=1e-3)")),
        writes="fused=True",
    ),
    Case(
        "operator-fusion",
        ADVISED,
        "Lightning",
        lightning("devices=8", optimizer="torch.optim.AdamW(self.parameters(), lr=1e-3)"),
        writes="fused=True",
    ),
    Case("operator-fusion", OFF, "PyTorch SGD", launched(vision(DDP_LINE))),
    Case(
        "operator-fusion",
        NA,
        "ms-swift",
        swift("optim adamw_torch --deepspeed zero2_offload"),
        "CPU",
    ),
    Case(
        "operator-fusion",
        NA,
        "HF Trainer",
        launched(
            trainer("bf16=True", 'optim="adamw_torch"', 'deepspeed="ds.json"'),
            **{"ds.json": zero(2, offload_optimizer={"device": "cpu", "pin_memory": True})},
        ),
        "CPU",
    ),
    Case("operator-fusion", NA, "vLLM", SERVING, "does not train"),
)

RANKS = "NNODES=2 NODE_RANK=$SLURM_NODEID MASTER_ADDR=$HEAD NPROC_PER_NODE=8 "
RDMA = (
    Case(
        "gdrdma",
        ON,
        "PyTorch",
        launched(vision(DDP_LINE), f"export NCCL_IB_HCA=mlx5\n{TWO}"),
        "NCCL_IB_HCA=mlx5",
    ),
    Case(
        "gdrdma",
        ON,
        "HF Trainer",
        launched(trainer("bf16=True"), f"export NCCL_NET_GDR_LEVEL=2\n{TWO}"),
        "NCCL_NET_GDR_LEVEL=2",
    ),
    Case(
        "gdrdma",
        ON,
        "ms-swift",
        swift("", before=f"NCCL_IB_GID_INDEX=3 {RANKS}"),
        "NCCL_IB_GID_INDEX=3",
    ),
    Case(
        "gdrdma",
        ON,
        "Megatron-LM AWS",
        {
            **megatron_lm("--bf16", nodes=4),
            "pretrain.sh": megatron_lm("--bf16", nodes=4)["pretrain.sh"].replace(
                "torchrun", "export FI_EFA_USE_DEVICE_RDMA=1\ntorchrun"
            ),
        },
        "FI_EFA_USE_DEVICE_RDMA",
    ),
    Case("gdrdma", ADVISED, "PyTorch", launched(vision(DDP_LINE), TWO), writes="NCCL_IB_HCA"),
    Case("gdrdma", ADVISED, "Lightning", lightning("devices=8, num_nodes=2"), writes="NCCL_IB_HCA"),
    Case("gdrdma", ADVISED, "ms-swift", swift("", before=RANKS), writes="NCCL_IB_HCA"),
    Case(
        "gdrdma",
        ADVISED,
        "Accelerate disabled",
        {
            **accelerate(fsdp_yaml(processes=16, nodes=2)),
            "train.sh": script(
                "export NCCL_IB_DISABLE=1\naccelerate launch --config_file accelerate.yaml train.py"
            ),
        },
        writes="NCCL_IB_DISABLE=0",
    ),
    Case("gdrdma", ADVISED, "Megatron-LM", megatron_lm("--bf16", nodes=4), writes="NCCL_IB_HCA"),
    Case("gdrdma", NA, "PyTorch", launched(vision(DDP_LINE)), "one node"),
    Case("gdrdma", NA, "ms-swift", swift(""), "one node"),
    Case("gdrdma", NA, "Lightning", lightning("devices=8"), "one node"),
    Case("gdrdma", NA, "ms-swift Ascend", swift("", before=f"ASCEND_RT_VISIBLE_DEVICES=0 {RANKS}")),
    Case("gdrdma", UNKNOWN, "PyTorch alone", {"train.py": vision(DDP_LINE)}),
)

FSDP1 = "distributed_type: FSDP\nnum_machines: 1\nnum_processes: 8\nfsdp_config:\n"
OVERLAP = (
    Case("comm-overlap", ON, "PyTorch DDP", launched(vision(DDP_LINE)), "buckets"),
    Case(
        "comm-overlap",
        ON,
        "PyTorch FSDP2",
        launched(
            decoder("fully_shard(model)", imports="from torch.distributed.fsdp import fully_shard")
        ),
        "FSDP",
    ),
    Case(
        "comm-overlap", ON, "DeepSpeed", engine(zero(2, overlap_comm=True)), '"overlap_comm": true'
    ),
    Case("comm-overlap", ON, "DeepSpeed stage 3", engine(zero(3)), "overlap_comm"),
    Case(
        "comm-overlap",
        ON,
        "Accelerate FSDP1",
        accelerate(f"{FSDP1}  fsdp_version: 1\n  fsdp_backward_prefetch: BACKWARD_PRE\n"),
        "BACKWARD_PRE",
    ),
    Case("comm-overlap", ON, "Accelerate FSDP2", accelerate(fsdp_yaml()), "FSDP2"),
    Case("comm-overlap", ON, "Lightning", lightning('devices=8, strategy="ddp"'), "buckets"),
    Case(
        "comm-overlap",
        ON,
        "Lightning DeepSpeed",
        lightning('devices=8, strategy="deepspeed_stage_2"'),
        "deepspeed_stage_2",
    ),
    Case(
        "comm-overlap",
        ON,
        "HF Trainer",
        launched(trainer("bf16=True", model="Qwen/Qwen2.5-0.5B-Instruct")),
        "buckets",
    ),
    Case(
        "comm-overlap",
        ON,
        "Megatron-LM",
        megatron_lm("--bf16 --overlap-grad-reduce"),
        "--overlap-grad-reduce",
    ),
    Case(
        "comm-overlap",
        ON,
        "Megatron-SWIFT",
        megatron_swift("overlap_grad_reduce true"),
        "overlap_grad_reduce true",
    ),
    Case(
        "comm-overlap",
        ON,
        "ColossalAI",
        colossalai("LowLevelZeroPlugin", "stage=2"),
        "overlap_communication=True",
    ),
    Case("comm-overlap", ON, "veScale", vescale(), "overlap_grad_reduce=True"),
    Case(
        "comm-overlap",
        ADVISED,
        "DeepSpeed",
        engine(zero(2)),
        writes='"overlap_comm": true',
    ),
    Case(
        "comm-overlap",
        ADVISED,
        "HF Trainer",
        launched(
            trainer("bf16=True", 'deepspeed="ds.json"'),
            **{"ds.json": zero(2, overlap_comm=False)},
        ),
        writes='"overlap_comm": true',
    ),
    Case(
        "comm-overlap",
        ADVISED,
        "Accelerate FSDP1",
        accelerate(f"{FSDP1}  fsdp_version: 1\n  fsdp_backward_prefetch: NO_PREFETCH\n"),
        writes="fsdp_backward_prefetch: BACKWARD_PRE",
    ),
    Case(
        "comm-overlap",
        ADVISED,
        "Megatron-LM",
        megatron_lm("--bf16 --use-mcore-models"),
        writes="--overlap-grad-reduce",
    ),
    Case(
        "comm-overlap",
        ADVISED,
        "Megatron-SWIFT",
        megatron_swift("tuner_type full"),
        writes="--overlap_grad_reduce true",
    ),
    Case("comm-overlap", UNKNOWN, "Megatron-LM old", megatron_lm("--bf16")),
    Case("comm-overlap", NA, "PyTorch", launched(vision(), ONE, ONE_CARD), "one GPU"),
    Case("comm-overlap", NA, "ms-swift", swift("", before="CUDA_VISIBLE_DEVICES=0 "), "one GPU"),
    Case("comm-overlap", NA, "Lightning", lightning("devices=1"), "one GPU"),
)

HOOK = "model.register_comm_hook(state=None, hook=default_hooks.fp16_compress_hook)"
HOOKS = "from torch.distributed.algorithms.ddp_comm_hooks import default_hooks"
POWER = "model.register_comm_hook(powerSGD_hook.PowerSGDState(None), powerSGD_hook.powerSGD_hook)"
POWERS = "from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook"
COMPRESSION = (
    Case(
        "gradient-compression",
        ON,
        "PyTorch",
        launched(vision(DDP_LINE, HOOK, imports=HOOKS), TWO),
        "fp16_compress_hook",
    ),
    Case(
        "gradient-compression",
        ON,
        "PyTorch PowerSGD",
        launched(vision(DDP_LINE, POWER, imports=POWERS), TWO),
        "powerSGD_hook",
    ),
    Case(
        "gradient-compression",
        ON,
        "Lightning",
        lightning(
            "devices=8, num_nodes=2, "
            "strategy=DDPStrategy(ddp_comm_hook=default_hooks.fp16_compress_hook)",
            f"from lightning.pytorch.strategies import DDPStrategy\n{HOOKS}",
        ),
        "ddp_comm_hook",
    ),
    Case(
        "gradient-compression",
        ON,
        "Accelerate",
        launched(
            accelerated(
                "kwargs_handlers=[DistributedDataParallelKwargs("
                "comm_hook=DDPCommunicationHookType.FP16)]",
                names="Accelerator, DistributedDataParallelKwargs",
                imports="from accelerate.utils import DDPCommunicationHookType",
            ),
            "accelerate launch --num_processes 16 --num_machines 2 train.py",
        ),
        "comm_hook",
    ),
    Case(
        "gradient-compression",
        ON,
        "DeepSpeed",
        engine('{"communication_data_type": "fp16", "zero_optimization": {"stage": 2}}'),
        "communication_data_type",
    ),
    Case(
        "gradient-compression",
        ON,
        "DeepSpeed ZeRO++",
        engine(zero(3, zero_quantized_gradients=True)),
        "zero_quantized_gradients",
    ),
    Case(
        "gradient-compression",
        ON,
        "DeepSpeed 1-bit Adam",
        engine('{"optimizer": {"type": "OneBitAdam", "params": {"lr": 1e-4}}}'),
        "OneBitAdam",
    ),
    Case(
        "gradient-compression",
        ON,
        "Megatron-LM",
        megatron_lm("--bf16 --grad-reduce-in-bf16", nodes=2),
        "--grad-reduce-in-bf16",
    ),
    Case(
        "gradient-compression",
        ON,
        "ColossalAI",
        colossalai("TorchDDPPlugin", "fp8_communication=True", command=TWO),
        "fp8_communication=True",
    ),
    Case("gradient-compression", OFF, "PyTorch", launched(vision(DDP_LINE), TWO), "bandwidth"),
    Case("gradient-compression", OFF, "ms-swift", swift("", before=RANKS), "bandwidth"),
    Case("gradient-compression", NA, "PyTorch", launched(vision(DDP_LINE)), "node"),
    Case("gradient-compression", NA, "ms-swift", swift(""), "node"),
    Case("gradient-compression", NA, "Lightning", lightning("devices=8"), "node"),
)

NCCL = (
    Case(
        "nccl-tuning",
        ON,
        "PyTorch",
        launched(vision(DDP_LINE), f"export NCCL_SOCKET_IFNAME=eth0\n{TWO}"),
        "NCCL_SOCKET_IFNAME=eth0",
    ),
    Case(
        "nccl-tuning",
        ON,
        "ms-swift",
        swift("", before=f"NCCL_ALGO=Ring {RANKS}"),
        "NCCL_ALGO=Ring",
    ),
    Case(
        "nccl-tuning",
        ON,
        "PyTorch in code",
        launched(
            vision(DDP_LINE, imports='import os\n\nos.environ["NCCL_NSOCKS_PERTHREAD"] = "4"'), TWO
        ),
        "NCCL_NSOCKS_PERTHREAD",
    ),
    Case(
        "nccl-tuning",
        ADVISED,
        "PyTorch",
        launched(vision(DDP_LINE), TWO),
        writes="export NCCL_SOCKET_IFNAME",
    ),
    Case(
        "nccl-tuning",
        ADVISED,
        "Lightning",
        lightning("devices=8, num_nodes=2"),
        writes="export NCCL_SOCKET_IFNAME",
    ),
    Case(
        "nccl-tuning",
        ADVISED,
        "ms-swift",
        swift("", before=RANKS),
        writes="export NCCL_SOCKET_IFNAME",
    ),
    Case("nccl-tuning", OFF, "HF Trainer", launched(trainer("bf16=True")), "inside a node"),
    Case("nccl-tuning", NA, "PyTorch", launched(vision(), ONE, ONE_CARD), "one GPU"),
    Case("nccl-tuning", NA, "ms-swift", swift("", before="CUDA_VISIBLE_DEVICES=0 "), "one GPU"),
    Case("nccl-tuning", NA, "ms-swift Ascend", swift("", before=ASCEND), "CUDA"),
)

CASES = (
    *ATTENTION,
    *COMPILE,
    *KERNELS,
    *GRAPHS,
    *LIGER,
    *FUSION,
    *RDMA,
    *OVERLAP,
    *COMPRESSION,
    *NCCL,
)
