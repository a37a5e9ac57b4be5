"""Items C (memory) of the general audit, front end by front end."""

from __future__ import annotations

from audit_cases import (
    A100,
    ADVISED,
    DDP_LINE,
    EVALUATION,
    H100,
    NA,
    OFF,
    ON,
    QWEN,
    SERVING,
    SGLANG,
    TORCHRUN,
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
    sft,
    swift,
    trainer,
    videox_fun,
    vision,
    zero,
)

AUTOCAST = (
    'with torch.autocast("cuda", dtype=torch.bfloat16):\n'
    "            loss = torch.nn.functional.cross_entropy(model(images), labels)"
)
SCALED = AUTOCAST.replace("torch.bfloat16", "torch.float16")
MIXED_POLICY = (
    "policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16)",
    "fully_shard(model, mp_policy=policy)",
)
MIXED_IMPORT = "from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard"
MIXED_SHARDS = (
    "model = FullyShardedDataParallel(",
    "    model, mixed_precision=MixedPrecision(param_dtype=torch.bfloat16)",
    ")",
)
SHARDS_IMPORT = "from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision"
APEX = 'model, optimizer = amp.initialize(model, optimizer, opt_level="O2")'
PURE_TENSORS = """\
import torch

points = torch.rand(1000, 3, device="cuda", requires_grad=True)
optimizer = torch.optim.Adam([points], lr=0.01)
for step in range(2000):
    loss = (points.norm(dim=1) - 1).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
MIXED_PRECISION = (
    Case("mixed-precision", ON, "PyTorch", launched(vision(DDP_LINE, step=AUTOCAST)), "bfloat16"),
    Case("mixed-precision", ON, "PyTorch fp16", launched(vision(step=SCALED)), "float16"),
    Case(
        "mixed-precision",
        ON,
        "PyTorch FSDP2",
        launched(vision(*MIXED_POLICY, imports=MIXED_IMPORT)),
        "param_dtype=torch.bfloat16",
    ),
    Case(
        "mixed-precision",
        ON,
        "PyTorch FSDP1",
        launched(vision(*MIXED_SHARDS, imports=SHARDS_IMPORT)),
        "param_dtype=torch.bfloat16",
    ),
    Case(
        "mixed-precision",
        ON,
        "apex",
        launched(
            vision(imports="from apex import amp").replace(
                "    for images", f"    {APEX}\n    for images"
            )
        ),
        "amp.initialize",
    ),
    Case("mixed-precision", ON, "Accelerate", accelerate(ddp_yaml()), "mixed_precision: bf16"),
    Case(
        "mixed-precision",
        ON,
        "Accelerate API",
        launched(
            accelerated('mixed_precision="bf16"'), "accelerate launch --num_processes 8 train.py"
        ),
        'mixed_precision="bf16"',
    ),
    Case(
        "mixed-precision",
        ON,
        "Accelerate flags",
        launched(
            accelerated(), "accelerate launch --mixed_precision fp16 --num_processes 8 train.py"
        ),
        "--mixed_precision fp16",
    ),
    Case("mixed-precision", ON, "DeepSpeed", engine(zero(2)), '"enabled": true'),
    Case(
        "mixed-precision",
        ON,
        "Lightning",
        lightning('devices=8, precision="bf16-mixed"'),
        "bf16-mixed",
    ),
    Case("mixed-precision", ON, "Lightning int", lightning("devices=8, precision=16"), "16"),
    Case(
        "mixed-precision",
        ON,
        "Lightning plugin",
        lightning(
            'devices=8, plugins=[MixedPrecision("bf16-mixed", device="cuda")]',
            "from lightning.pytorch.plugins import MixedPrecision",
        ),
        'MixedPrecision("bf16-mixed"',
    ),
    Case("mixed-precision", ON, "HF Trainer", launched(trainer("bf16=True")), "bf16=True"),
    Case("mixed-precision", ON, "TRL", launched(sft("fp16=True")), "fp16=True"),
    Case("mixed-precision", ON, "ms-swift", swift("torch_dtype bfloat16"), "bfloat16"),
    Case("mixed-precision", ON, "LLaMA-Factory", llamafactory("pure_bf16: true\n"), "pure_bf16"),
    Case("mixed-precision", ON, "Megatron-LM", megatron_lm("--bf16"), "--bf16"),
    Case("mixed-precision", ON, "VideoX-Fun", videox_fun(""), "--mixed_precision=bf16"),
    Case(
        "mixed-precision",
        ON,
        "Flow-Factory",
        flow_factory("  learning_rate: 1e-5\n", "mixed_precision: bf16\n"),
        "mixed_precision: bf16",
    ),
    Case(
        "mixed-precision",
        ON,
        "ColossalAI",
        colossalai("LowLevelZeroPlugin", 'precision="bf16"'),
        'precision="bf16"',
    ),
    Case(
        "mixed-precision",
        ADVISED,
        "PyTorch",
        launched(vision(DDP_LINE)),
        writes='torch.autocast("cuda", dtype=torch.bfloat16)',
    ),
    Case(
        "mixed-precision",
        ADVISED,
        "Lightning",
        lightning("devices=8"),
        writes='precision="bf16-mixed"',
    ),
    Case(
        "mixed-precision",
        ADVISED,
        "HF Trainer",
        launched(trainer("gradient_checkpointing=True")),
        writes="bf16=True",
    ),
    Case(
        "mixed-precision",
        ADVISED,
        "Accelerate",
        accelerate(
            ddp_yaml("'no'"),
            # From 5.0 on Transformers loads weights in the type they are stored in.
            accelerated(model=f'{QWEN}", dtype="float32'),
        ),
        writes="mixed_precision: bf16",
    ),
    Case("mixed-precision", ADVISED, "Megatron-LM", megatron_lm(""), writes="--bf16"),
    Case(
        "mixed-precision",
        ADVISED,
        "LLaMA-Factory",
        llamafactory("finetuning_type: full\n"),
        writes="bf16: true",
    ),
    Case("mixed-precision", NA, "HF evaluation", EVALUATION, "does not train"),
    Case("mixed-precision", NA, "vLLM", SERVING, "does not train"),
    Case("mixed-precision", UNKNOWN, "PyTorch tensors", launched(PURE_TENSORS, "python train.py")),
    Case(
        "mixed-precision",
        UNKNOWN,
        "Lightning",
        lightning("devices=8, precision=cfg.precision", "from settings import cfg"),
    ),
)

TE_STEP = (
    "with te.fp8_autocast(enabled=True):\n"
    "            loss = torch.nn.functional.cross_entropy(model(images), labels)"
)
FP8 = (
    Case(
        "fp8-training",
        ON,
        "TransformerEngine",
        launched(vision(step=TE_STEP, imports="import transformer_engine.pytorch as te")),
        "fp8_autocast",
    ),
    Case(
        "fp8-training",
        ON,
        "torchao",
        launched(
            decoder(
                "convert_to_float8_training(model)",
                imports="from torchao.float8 import convert_to_float8_training",
            )
        ),
        "convert_to_float8_training",
    ),
    Case(
        "fp8-training",
        ON,
        "MS-AMP",
        launched(
            decoder(
                'model, optimizer = msamp.initialize(model, optimizer, opt_level="O2")',
                imports="import msamp",
            )
        ),
        "msamp",
    ),
    Case("fp8-training", ON, "Accelerate", accelerate(ddp_yaml("fp8")), "mixed_precision: fp8"),
    Case(
        "fp8-training",
        ON,
        "Accelerate API",
        launched(
            accelerated('mixed_precision="fp8"'), "accelerate launch --num_processes 8 train.py"
        ),
        'mixed_precision="fp8"',
    ),
    Case(
        "fp8-training",
        ON,
        "Lightning",
        lightning('devices=8, precision="transformer-engine"'),
        "transformer-engine",
    ),
    Case("fp8-training", ON, "LLaMA-Factory", llamafactory("fp8: true\n"), "fp8: true"),
    Case("fp8-training", ON, "Megatron-LM", megatron_lm("--bf16 --fp8-format hybrid"), "hybrid"),
    Case(
        "fp8-training",
        ON,
        "Megatron-SWIFT",
        megatron_swift("fp8_format e4m3 --fp8_recipe blockwise"),
        "fp8_format e4m3",
    ),
    Case(
        "fp8-training",
        ON,
        "ColossalAI",
        colossalai("LowLevelZeroPlugin", 'precision="bf16", use_fp8=True'),
        "use_fp8=True",
    ),
    Case(
        "fp8-training",
        ADVISED,
        "Megatron-SWIFT",
        megatron_swift("torch_dtype bfloat16", H100),
        writes="--fp8_format",
    ),
    Case(
        "fp8-training",
        ADVISED,
        "Megatron-LM",
        megatron_lm("--bf16 --use-mcore-models", H100),
        writes="--fp8-format",
    ),
    Case("fp8-training", OFF, "HF Trainer", launched(trainer("bf16=True"), TORCHRUN, H100)),
    Case("fp8-training", NA, "ms-swift", swift("torch_dtype bfloat16", A100), "FP8"),
    Case("fp8-training", NA, "PyTorch", launched(vision(step=AUTOCAST), TORCHRUN, A100), "FP8"),
    Case("fp8-training", NA, "Megatron-LM", megatron_lm("--fp16", V100), "FP8"),
    Case("fp8-training", NA, "vLLM", SERVING, "does not train"),
)

WRAPPED = "apply_activation_checkpointing(model, check_fn=is_block)"
WRAPPED_IMPORT = (
    "from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (\n"
    "    apply_activation_checkpointing,\n)"
)
RECOMPUTED = """\
import torch
from torch.utils.checkpoint import checkpoint


class Decoder(torch.nn.Module):
    def forward(self, hidden):
        for layer in self.layers:
            hidden = checkpoint(layer, hidden, use_reentrant=False)
        return hidden
"""
RECOMPUTATION = (
    Case(
        "activation-checkpointing",
        ON,
        "PyTorch",
        launched(decoder("model.gradient_checkpointing_enable()")),
        "gradient_checkpointing_enable",
    ),
    Case(
        "activation-checkpointing",
        ON,
        "PyTorch module",
        {**engine(zero(2)), "model.py": RECOMPUTED},
        "checkpoint(layer",
    ),
    Case(
        "activation-checkpointing",
        ON,
        "PyTorch wrapper",
        launched(decoder(WRAPPED, imports=WRAPPED_IMPORT)),
        "apply_activation_checkpointing",
    ),
    Case(
        "activation-checkpointing",
        ON,
        "Accelerate",
        accelerate(fsdp_yaml("fsdp_activation_checkpointing: true")),
        "fsdp_activation_checkpointing: true",
    ),
    Case(
        "activation-checkpointing",
        ON,
        "Accelerate plugin",
        launched(
            accelerated(
                "fsdp_plugin=FullyShardedDataParallelPlugin(activation_checkpointing=True)",
                names="Accelerator, FullyShardedDataParallelPlugin",
            ),
            "accelerate launch --num_processes 8 train.py",
        ),
        "activation_checkpointing=True",
    ),
    Case(
        "activation-checkpointing",
        ON,
        "Lightning",
        lightning(
            "devices=8, strategy=FSDPStrategy(activation_checkpointing_policy={Block})",
            "from lightning.pytorch.strategies import FSDPStrategy\nfrom model import Block",
        ),
        "activation_checkpointing_policy",
    ),
    Case(
        "activation-checkpointing",
        ON,
        "HF Trainer",
        launched(trainer("bf16=True", "gradient_checkpointing=True")),
        "gradient_checkpointing=True",
    ),
    Case(
        "activation-checkpointing",
        ON,
        "HF Trainer FSDP",
        launched(
            trainer(
                "bf16=True",
                'fsdp="full_shard"',
                'fsdp_config={"activation_checkpointing": True}',
            )
        ),
        "activation_checkpointing",
    ),
    Case("activation-checkpointing", ON, "TRL default", launched(sft()), "gradient_checkpointing"),
    Case("activation-checkpointing", ON, "ms-swift default", swift(""), "gradient_checkpointing"),
    Case(
        "activation-checkpointing",
        ON,
        "LLaMA-Factory default",
        llamafactory("finetuning_type: lora\n"),
        "disable_gradient_checkpointing False",
    ),
    Case(
        "activation-checkpointing",
        ON,
        "VideoX-Fun",
        videox_fun("--gradient_checkpointing"),
        "--gradient_checkpointing",
    ),
    Case(
        "activation-checkpointing",
        ON,
        "Flow-Factory",
        flow_factory("  enable_gradient_checkpointing: true\n"),
        "enable_gradient_checkpointing: true",
    ),
    Case(
        "activation-checkpointing",
        ON,
        "Megatron-LM",
        megatron_lm("--bf16 --recompute-granularity selective"),
        "selective",
    ),
    Case(
        "activation-checkpointing",
        ON,
        "Megatron-LM short",
        megatron_lm("--bf16 --recompute-activations"),
        "--recompute-activations",
    ),
    Case(
        "activation-checkpointing",
        ON,
        "ColossalAI",
        colossalai("GeminiPlugin", setup="model.gradient_checkpointing_enable()"),
        "gradient_checkpointing_enable",
    ),
    Case(
        "activation-checkpointing",
        ADVISED,
        "HF Trainer",
        launched(trainer("bf16=True")),
        writes="gradient_checkpointing=True",
    ),
    Case(
        "activation-checkpointing",
        ADVISED,
        "PyTorch",
        launched(decoder(DDP_LINE)),
        writes="model.gradient_checkpointing_enable()",
    ),
    Case(
        "activation-checkpointing",
        ADVISED,
        "ms-swift",
        swift("max_length 16384 --gradient_checkpointing false"),
        writes="--gradient_checkpointing true",
    ),
    Case(
        "activation-checkpointing",
        ADVISED,
        "LLaMA-Factory",
        llamafactory(
            "finetuning_type: full\ncutoff_len: 16384\ndisable_gradient_checkpointing: true\n"
        ),
        writes="disable_gradient_checkpointing: false",
    ),
    Case("activation-checkpointing", OFF, "PyTorch vision", launched(vision(step=AUTOCAST))),
    Case("activation-checkpointing", NA, "HF evaluation", EVALUATION, "does not train"),
    Case("activation-checkpointing", NA, "SGLang", SGLANG, "does not train"),
)

OFFLOADED = zero(3, offload_optimizer={"device": "cpu", "pin_memory": True})
NVME = zero(3, offload_param={"device": "nvme", "nvme_path": "/local_nvme"})
OFFLOAD = (
    Case("cpu-nvme-offload", ON, "DeepSpeed", engine(OFFLOADED), '"device": "cpu"'),
    Case("cpu-nvme-offload", ON, "DeepSpeed NVMe", engine(NVME), '"device": "nvme"'),
    Case(
        "cpu-nvme-offload",
        ON,
        "HF Trainer",
        launched(trainer("bf16=True", 'deepspeed="ds.json"'), **{"ds.json": OFFLOADED}),
        '"device": "cpu"',
    ),
    Case(
        "cpu-nvme-offload",
        ON,
        "Accelerate FSDP",
        accelerate(fsdp_yaml("fsdp_offload_params: true")),
        "fsdp_offload_params: true",
    ),
    Case(
        "cpu-nvme-offload",
        ON,
        "Accelerate flags",
        launched(
            accelerated(),
            "accelerate launch --use_deepspeed --zero_stage 2 --offload_optimizer_device cpu "
            "--num_processes 8 train.py",
        ),
        "--offload_optimizer_device cpu",
    ),
    Case(
        "cpu-nvme-offload",
        ON,
        "PyTorch FSDP1",
        launched(
            decoder(
                "model = FullyShardedDataParallel(",
                "    model, cpu_offload=CPUOffload(offload_params=True)",
                ")",
                imports="from torch.distributed.fsdp import CPUOffload, FullyShardedDataParallel",
            )
        ),
        "cpu_offload",
    ),
    Case(
        "cpu-nvme-offload",
        ON,
        "PyTorch FSDP2",
        launched(
            decoder(
                "fully_shard(model, offload_policy=CPUOffloadPolicy())",
                imports="from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard",
            )
        ),
        "offload_policy",
    ),
    Case(
        "cpu-nvme-offload",
        ON,
        "Lightning",
        lightning('devices=8, strategy="deepspeed_stage_3_offload"'),
        "deepspeed_stage_3_offload",
    ),
    Case(
        "cpu-nvme-offload",
        ON,
        "Lightning FSDP",
        lightning(
            "devices=8, strategy=FSDPStrategy(cpu_offload=True)",
            "from lightning.pytorch.strategies import FSDPStrategy",
        ),
        "cpu_offload=True",
    ),
    Case("cpu-nvme-offload", ON, "ms-swift", swift("deepspeed zero3_offload"), "zero3_offload"),
    Case(
        "cpu-nvme-offload",
        ON,
        "LLaMA-Factory",
        llamafactory("finetuning_type: full\ndeepspeed: ds.json\n", **{"ds.json": OFFLOADED}),
        '"device": "cpu"',
    ),
    Case(
        "cpu-nvme-offload",
        ON,
        "Megatron-LM",
        megatron_lm("--bf16 --optimizer-cpu-offload"),
        "--optimizer-cpu-offload",
    ),
    Case(
        "cpu-nvme-offload",
        ON,
        "ColossalAI",
        colossalai("LowLevelZeroPlugin", "stage=2, cpu_offload=True"),
        "cpu_offload=True",
    ),
    Case(
        "cpu-nvme-offload",
        ADVISED,
        "ms-swift",
        swift(
            "tuner_type full --deepspeed zero3",
            "gres=gpu:v100-32gb:4",
            model="Qwen/Qwen3-8B",
            before="NPROC_PER_NODE=4 ",
        ),
        writes="zero3_offload",
    ),
    Case(
        "cpu-nvme-offload",
        ADVISED,
        "HF Trainer",
        launched(
            trainer("fp16=True", 'deepspeed="ds.json"', model="Qwen/Qwen3-8B"),
            "torchrun --nproc_per_node=4 train.py",
            "gres=gpu:v100-32gb:4",
            **{"ds.json": '{"zero_optimization": {"stage": 3}}'},
        ),
        writes='"offload_optimizer"',
    ),
    Case(
        "cpu-nvme-offload",
        ADVISED,
        "Accelerate",
        accelerate(
            fsdp_yaml(processes=4),
            accelerated(model="Qwen/Qwen3-8B"),
            "gres=gpu:v100-32gb:4",
        ),
        writes="fsdp_offload_params: true",
    ),
    Case("cpu-nvme-offload", OFF, "ms-swift", swift("tuner_type lora", A100), "no offload needed"),
    Case("cpu-nvme-offload", NA, "HF evaluation", EVALUATION, "does not train"),
    Case("cpu-nvme-offload", NA, "vLLM", SERVING, "does not train"),
)

BY_HAND = """\
import argparse
import torch
from transformers import AutoModelForCausalLM

parser = argparse.ArgumentParser()
parser.add_argument("--gradient_accumulation_steps", type=int, default=1)
args = parser.parse_args()
model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B-Instruct").cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
for step, batch in enumerate(loader):
    loss = model(**batch).loss / args.gradient_accumulation_steps
    loss.backward()
    if (step + 1) % args.gradient_accumulation_steps == 0:
        optimizer.step()
        optimizer.zero_grad()
"""
ACCUMULATION = (
    Case(
        "gradient-accumulation",
        ON,
        "PyTorch",
        launched(BY_HAND, f"{TORCHRUN} --gradient_accumulation_steps 8"),
        "--gradient_accumulation_steps 8",
    ),
    Case(
        "gradient-accumulation",
        ON,
        "Accelerate API",
        launched(
            accelerated("gradient_accumulation_steps=4"),
            "accelerate launch --num_processes 8 train.py",
        ),
        "gradient_accumulation_steps=4",
    ),
    Case(
        "gradient-accumulation",
        ON,
        "Accelerate",
        accelerate(
            "distributed_type: DEEPSPEED\nnum_processes: 8\nnum_machines: 1\n"
            "deepspeed_config:\n  zero_stage: 2\n  gradient_accumulation_steps: 4\n"
        ),
        "gradient_accumulation_steps: 4",
    ),
    Case(
        "gradient-accumulation",
        ON,
        "DeepSpeed",
        engine('{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 16}'),
        '"gradient_accumulation_steps": 16',
    ),
    Case(
        "gradient-accumulation",
        ON,
        "Lightning",
        lightning("devices=8, accumulate_grad_batches=4"),
        "accumulate_grad_batches=4",
    ),
    Case(
        "gradient-accumulation",
        ON,
        "HF Trainer",
        launched(trainer("bf16=True", "gradient_accumulation_steps=8")),
        "gradient_accumulation_steps=8",
    ),
    Case(
        "gradient-accumulation",
        ON,
        "ms-swift",
        swift("gradient_accumulation_steps 16"),
        "gradient_accumulation_steps 16",
    ),
    Case("gradient-accumulation", ON, "ms-swift default", swift(""), "ceil(16"),
    Case(
        "gradient-accumulation",
        ON,
        "LLaMA-Factory",
        llamafactory("gradient_accumulation_steps: 8\n"),
        "gradient_accumulation_steps: 8",
    ),
    Case(
        "gradient-accumulation",
        ON,
        "VideoX-Fun",
        videox_fun("--gradient_accumulation_steps 4"),
        "--gradient_accumulation_steps 4",
    ),
    Case(
        "gradient-accumulation",
        ON,
        "Flow-Factory",
        flow_factory("  gradient_accumulation_steps: 4\n"),
        "gradient_accumulation_steps: 4",
    ),
    Case("gradient-accumulation", ON, "Megatron-LM", megatron_lm("--bf16"), "global-batch-size"),
    Case(
        "gradient-accumulation",
        ADVISED,
        "HF Trainer",
        launched(
            trainer("bf16=True", "per_device_train_batch_size=1"),
            "torchrun --nproc_per_node=2 train.py",
        ),
        writes="gradient_accumulation_steps=8",
    ),
    Case(
        "gradient-accumulation",
        ADVISED,
        "ms-swift",
        swift("gradient_accumulation_steps 1", before="NPROC_PER_NODE=2 "),
        writes="--gradient_accumulation_steps 8",
    ),
    Case(
        "gradient-accumulation",
        ADVISED,
        "LLaMA-Factory",
        llamafactory(
            "per_device_train_batch_size: 1\n", before="FORCE_TORCHRUN=1 NPROC_PER_NODE=4 "
        ),
        writes="gradient_accumulation_steps: 4",
    ),
    Case("gradient-accumulation", OFF, "PyTorch vision", launched(vision(DDP_LINE)), "2048"),
    Case("gradient-accumulation", NA, "HF evaluation", EVALUATION, "does not train"),
    Case("gradient-accumulation", NA, "vLLM", SERVING, "does not train"),
)

CASES = (*MIXED_PRECISION, *FP8, *RECOMPUTATION, *OFFLOAD, *ACCUMULATION)
