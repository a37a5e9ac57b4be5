"""Items A (parallelism) and B (training framework) of the general audit, front end by front end."""

from __future__ import annotations

from audit_cases import (
    A100,
    A100_40G,
    ADVISED,
    DDP_LINE,
    EVALUATION,
    H100,
    NA,
    OFF,
    ON,
    PARTLY,
    QWEN,
    SERVING,
    SGLANG,
    TWO,
    UNKNOWN,
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

MOE = "Qwen/Qwen3-30B-A3B-Instruct-2507"
SMALL = "Qwen/Qwen2.5-0.5B-Instruct"
BIG = "Qwen/Qwen2.5-72B-Instruct"
ONE = "python train.py"
ONE_GPU = "CUDA_VISIBLE_DEVICES=0 python train.py"
ONE_CARD = "gres=gpu:a100-80g:1"
DDP_VISION = vision(DDP_LINE)
FULL_SWIFT = "tuner_type full --torch_dtype bfloat16"
DATA_PARALLEL = (
    Case("ddp", ON, "PyTorch", launched(DDP_VISION), "DistributedDataParallel(model"),
    Case("ddp", ON, "Accelerate", accelerate(ddp_yaml()), "num_processes: 8"),
    Case(
        "ddp",
        ON,
        "Accelerate flags",
        launched(accelerated(), "accelerate launch --multi_gpu --num_processes 4 train.py"),
        "--num_processes 4",
    ),
    Case("ddp", ON, "DeepSpeed", engine(zero(1)), "--num_gpus 8"),
    Case("ddp", ON, "Lightning", lightning('devices=8, strategy="ddp"'), 'strategy="ddp"'),
    Case("ddp", ON, "Lightning default", lightning("devices=4, num_nodes=2"), "devices=4"),
    Case(
        "ddp",
        ON,
        "Lightning object",
        lightning(
            "devices=8, strategy=DDPStrategy(static_graph=True)",
            "from lightning.pytorch.strategies import DDPStrategy",
        ),
        "DDPStrategy",
    ),
    Case("ddp", ON, "HF Trainer", launched(trainer("bf16=True")), "nproc_per_node=8"),
    Case("ddp", ON, "ms-swift", swift("tuner_type lora"), "NPROC_PER_NODE=8"),
    Case("ddp", ON, "LLaMA-Factory", llamafactory("finetuning_type: lora\n"), "NPROC_PER_NODE=8"),
    Case("ddp", ON, "Megatron-LM", megatron_lm("--bf16"), "--nproc_per_node 8"),
    Case("ddp", ON, "ColossalAI", colossalai("TorchDDPPlugin"), "TorchDDPPlugin"),
    Case("ddp", ON, "veScale", vescale(), "DDP(model"),
    Case(
        "ddp",
        ADVISED,
        "PyTorch",
        launched(vision(), ONE, A100),
        writes="torchrun --nproc_per_node=8 train.py",
    ),
    Case(
        "ddp",
        ADVISED,
        "HF Trainer",
        launched(trainer("bf16=True"), "CUDA_VISIBLE_DEVICES=0,1,2,3 python train.py"),
        writes="torchrun --nproc_per_node=4 train.py",
    ),
    Case(
        "ddp",
        ADVISED,
        "ms-swift",
        swift("tuner_type lora", before="CUDA_VISIBLE_DEVICES=0,1 "),
        writes="NPROC_PER_NODE=2",
    ),
    Case(
        "ddp",
        ADVISED,
        "Lightning",
        lightning("devices=1", command="python train.py") | {"train.sh": script(ONE, A100)},
        writes="devices=8",
    ),
    Case("ddp", NA, "PyTorch", launched(vision(), ONE, ONE_CARD), "one GPU"),
    Case("ddp", NA, "HF Trainer", launched(trainer("bf16=True"), ONE_GPU), "one GPU"),
    Case("ddp", NA, "ms-swift", swift("tuner_type lora", before="CUDA_VISIBLE_DEVICES=0 ")),
    Case("ddp", NA, "Lightning", lightning("devices=1") | {"train.sh": script(ONE, ONE_CARD)}),
    Case("ddp", UNKNOWN, "Lightning auto", lightning('devices="auto"')),
    Case("ddp", UNKNOWN, "PyTorch alone", {"train.py": vision()}),
)

FSDP_CALL = (
    "model = FullyShardedDataParallel(model, sharding_strategy=ShardingStrategy.FULL_SHARD)",
)
FSDP_IMPORT = "from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy"
FSDP2_CALL = ("for layer in model.model.layers:", "    fully_shard(layer)", "fully_shard(model)")
FSDP2_IMPORT = "from torch.distributed.fsdp import fully_shard"
FSDP = (
    Case(
        "fsdp",
        ON,
        "PyTorch FSDP1",
        launched(decoder(*FSDP_CALL, imports=FSDP_IMPORT)),
        "FULL_SHARD",
    ),
    Case(
        "fsdp",
        ON,
        "PyTorch FSDP2",
        launched(decoder(*FSDP2_CALL, imports=FSDP2_IMPORT)),
        "fully_shard",
    ),
    Case("fsdp", ON, "Accelerate", accelerate(fsdp_yaml()), "fsdp_reshard_after_forward"),
    Case(
        "fsdp",
        ON,
        "Accelerate flags",
        launched(
            accelerated(),
            "accelerate launch --use_fsdp --fsdp_sharding_strategy SHARD_GRAD_OP "
            "--num_processes 8 train.py",
        ),
        "SHARD_GRAD_OP",
    ),
    Case(
        "fsdp",
        ON,
        "Accelerate plugin",
        launched(
            accelerated(
                "fsdp_plugin=FullyShardedDataParallelPlugin(fsdp_version=2)",
                names="Accelerator, FullyShardedDataParallelPlugin",
            ),
            "accelerate launch --num_processes 8 train.py",
        ),
        "FullyShardedDataParallelPlugin",
    ),
    Case("fsdp", ON, "Lightning", lightning('devices=8, strategy="fsdp"'), 'strategy="fsdp"'),
    Case(
        "fsdp",
        ON,
        "Lightning object",
        lightning(
            'devices=8, strategy=FSDPStrategy(sharding_strategy="SHARD_GRAD_OP")',
            "from lightning.pytorch.strategies import FSDPStrategy",
        ),
        "SHARD_GRAD_OP",
    ),
    Case(
        "fsdp",
        ON,
        "HF Trainer",
        launched(trainer("bf16=True", 'fsdp="full_shard auto_wrap"')),
        "full_shard auto_wrap",
    ),
    Case("fsdp", ON, "ms-swift", swift("tuner_type full --fsdp fsdp2"), "--fsdp fsdp2"),
    Case(
        "fsdp",
        ON,
        "LLaMA-Factory",
        llamafactory("finetuning_type: full\n", before="accelerate launch --use_fsdp -m ")
        | {
            "accelerate.yaml": fsdp_yaml(),
            "train.sh": script(
                "accelerate launch --config_file accelerate.yaml src/train.py sft.yaml"
            ),
            "src/train.py": "from llamafactory.train.tuner import run_exp\n\nrun_exp()\n",
        },
        "fsdp_reshard_after_forward",
    ),
    Case(
        "fsdp",
        ON,
        "VideoX-Fun",
        videox_fun(
            "--gradient_checkpointing",
            "accelerate launch --mixed_precision=bf16 --use_fsdp "
            "--fsdp_sharding_strategy FULL_SHARD --num_processes 8",
        ),
        "FULL_SHARD",
    ),
    Case("fsdp", ON, "Megatron-LM", megatron_lm("--bf16 --use-torch-fsdp2"), "use-torch-fsdp2"),
    Case("fsdp", ON, "ColossalAI", colossalai("TorchFSDPPlugin"), "TorchFSDPPlugin"),
    Case(
        "fsdp",
        ADVISED,
        "PyTorch",
        launched(decoder(DDP_LINE), "torchrun --nproc_per_node=8 train.py", A100_40G),
        writes="fully_shard(model, ",
    ),
    Case(
        "fsdp",
        ADVISED,
        "Accelerate",
        accelerate(ddp_yaml(), accelerated(), A100_40G),
        writes="distributed_type: FSDP",
    ),
    Case(
        "fsdp",
        ADVISED,
        "Lightning",
        lightning(
            'devices=8, strategy="ddp", precision="bf16-mixed"',
            "from transformers import AutoModelForCausalLM",
            f'AutoModelForCausalLM.from_pretrained("{QWEN}")',
            "torch.optim.AdamW(self.parameters(), lr=1e-5)",
        )
        | {"train.sh": script(ONE, A100_40G)},
        writes='strategy="fsdp"',
    ),
    Case("fsdp", OFF, "PyTorch vision", launched(DDP_VISION)),
    Case("fsdp", NA, "PyTorch", launched(decoder(), ONE, ONE_CARD), "one GPU"),
    Case("fsdp", NA, "HF Trainer", launched(trainer("bf16=True"), ONE_GPU), "one GPU"),
    Case("fsdp", NA, "Lightning", lightning("devices=1"), "one GPU"),
)

ZERO_CONFIG = '{"train_batch_size": 64, "zero_optimization": {"stage": 2}}'
ZERO = (
    Case("deepspeed-zero", ON, "DeepSpeed JSON", engine(zero(2)), '"stage": 2'),
    Case("deepspeed-zero", ON, "DeepSpeed dict", engine(ZERO_CONFIG, "config"), '"stage": 2'),
    Case(
        "deepspeed-zero",
        ON,
        "Accelerate",
        accelerate(
            "distributed_type: DEEPSPEED\nnum_processes: 8\nnum_machines: 1\n"
            "mixed_precision: bf16\ndeepspeed_config:\n  zero_stage: 3\n"
        ),
        "zero_stage: 3",
    ),
    Case(
        "deepspeed-zero",
        ON,
        "Accelerate flags",
        launched(
            accelerated(),
            "accelerate launch --use_deepspeed --zero_stage 2 --num_processes 8 train.py",
        ),
        "--zero_stage 2",
    ),
    Case(
        "deepspeed-zero",
        ON,
        "Accelerate plugin",
        launched(
            accelerated(
                "deepspeed_plugin=DeepSpeedPlugin(zero_stage=3)",
                names="Accelerator, DeepSpeedPlugin",
            ),
            "accelerate launch --num_processes 8 train.py",
        ),
        "zero_stage=3",
    ),
    Case(
        "deepspeed-zero",
        ON,
        "Lightning",
        lightning('devices=8, strategy="deepspeed_stage_2"'),
        "deepspeed_stage_2",
    ),
    Case(
        "deepspeed-zero",
        ON,
        "Lightning object",
        lightning(
            "devices=8, strategy=DeepSpeedStrategy(stage=3)",
            "from lightning.pytorch.strategies import DeepSpeedStrategy",
        ),
        "stage=3",
    ),
    Case(
        "deepspeed-zero",
        ON,
        "HF Trainer",
        launched(trainer("bf16=True", 'deepspeed="ds.json"'), **{"ds.json": zero(3)}),
        '"stage": 3',
    ),
    Case(
        "deepspeed-zero",
        ON,
        "HF Trainer dict",
        launched(trainer("bf16=True", 'deepspeed={"zero_optimization": {"stage": 2}}')),
        '"stage": 2',
    ),
    Case(
        "deepspeed-zero",
        ON,
        "TRL",
        launched(sft('deepspeed="ds.json"'), **{"ds.json": zero(2)}),
        '"stage": 2',
    ),
    Case("deepspeed-zero", ON, "ms-swift", swift("tuner_type full --deepspeed zero3"), "zero3"),
    Case(
        "deepspeed-zero",
        ON,
        "LLaMA-Factory",
        llamafactory("finetuning_type: full\ndeepspeed: ds.json\n", **{"ds.json": zero(3)}),
        '"stage": 3',
    ),
    Case(
        "deepspeed-zero",
        ON,
        "VideoX-Fun",
        videox_fun(
            "",
            "accelerate launch --use_deepspeed --deepspeed_config_file ds.json",
            **{"ds.json": zero(2)},
        ),
        '"stage": 2',
    ),
    Case(
        "deepspeed-zero",
        ON,
        "Flow-Factory",
        flow_factory(
            "  learning_rate: 1e-5\n",
            "config_file: accelerate.yaml\nnum_processes: 8\n",
            **{
                "accelerate.yaml": "distributed_type: DEEPSPEED\nnum_processes: 8\n"
                "deepspeed_config:\n  zero_stage: 2\n"
            },
        ),
        "zero_stage: 2",
    ),
    Case(
        "deepspeed-zero", ON, "ColossalAI", colossalai("LowLevelZeroPlugin", "stage=2"), "stage=2"
    ),
    Case("deepspeed-zero", ON, "ColossalAI Gemini", colossalai("GeminiPlugin"), "GeminiPlugin"),
    Case("deepspeed-zero", ADVISED, "ms-swift", swift(FULL_SWIFT, A100_40G), writes="zero2"),
    Case(
        "deepspeed-zero",
        ADVISED,
        "HF Trainer",
        launched(
            trainer("bf16=True", "gradient_checkpointing=True"),
            "torchrun --nproc_per_node=8 train.py",
            A100_40G,
        ),
        writes="'stage': 2",
    ),
    Case(
        "deepspeed-zero",
        ADVISED,
        "LLaMA-Factory",
        llamafactory("finetuning_type: full\nbf16: true\n", A100),
        writes="deepspeed: ",
    ),
    Case("deepspeed-zero", NA, "ms-swift", swift(FULL_SWIFT, before="CUDA_VISIBLE_DEVICES=0 ")),
    Case("deepspeed-zero", NA, "LLaMA-Factory", llamafactory("", before="CUDA_VISIBLE_DEVICES=0 ")),
    Case("deepspeed-zero", NA, "PyTorch", launched(decoder(), ONE, ONE_CARD)),
    Case(
        "deepspeed-zero",
        UNKNOWN,
        "HF Trainer",
        launched(trainer("bf16=True", "deepspeed=choose_config()")),
    ),
    Case(
        "deepspeed-zero",
        UNKNOWN,
        "Lightning",
        lightning("devices=8, strategy=cfg.strategy", "from settings import cfg"),
    ),
)

TP_PLAN = 'parallelize_module(model, init_device_mesh("cuda", (8,)), plan)'
TP_IMPORT = (
    "from torch.distributed.device_mesh import init_device_mesh\n"
    "from torch.distributed.tensor.parallel import parallelize_module"
)
TENSOR = (
    Case(
        "tensor-parallel",
        ON,
        "PyTorch",
        launched(decoder(TP_PLAN, imports=TP_IMPORT)),
        "parallelize_module",
    ),
    Case(
        "tensor-parallel",
        ON,
        "Megatron-LM",
        megatron_lm("--bf16 --tensor-model-parallel-size 4"),
        "parallel-size 4",
    ),
    Case(
        "tensor-parallel",
        ON,
        "Megatron-SWIFT",
        megatron_swift("tensor_model_parallel_size 2"),
        "parallel_size 2",
    ),
    Case(
        "tensor-parallel",
        ON,
        "LLaMA-Factory",
        llamafactory("finetuning_type: full\nuse_mca: true\ntensor_model_parallel_size: 4\n"),
        "parallel_size: 4",
    ),
    Case(
        "tensor-parallel",
        ON,
        "DeepSpeed",
        engine('{"zero_optimization": {"stage": 1}, "tensor_parallel": {"autotp_size": 4}}'),
        '"autotp_size": 4',
    ),
    Case(
        "tensor-parallel",
        ON,
        "ms-swift",
        swift("tuner_type full --deepspeed zero1 --deepspeed_autotp_size 2"),
        "autotp_size 2",
    ),
    Case(
        "tensor-parallel",
        ON,
        "HF Trainer",
        launched(trainer("bf16=True", loading='tp_plan="auto"')),
        'tp_plan="auto"',
    ),
    Case(
        "tensor-parallel",
        ON,
        "Accelerate",
        accelerate(
            fsdp_yaml() + "use_parallelism_config: true\nparallelism_config:\n"
            "  parallelism_config_tp_size: 2\n"
        ),
        "tp_size: 2",
    ),
    Case(
        "tensor-parallel",
        ON,
        "Accelerate object",
        launched(
            accelerated(
                "parallelism_config=ParallelismConfig(tp_size=2, dp_shard_size=4)",
                names="Accelerator, ParallelismConfig",
            ),
            "accelerate launch --num_processes 8 train.py",
        ),
        "tp_size=2",
    ),
    Case(
        "tensor-parallel",
        ON,
        "Lightning",
        lightning(
            "devices=8, strategy=ModelParallelStrategy(tensor_parallel_size=4)",
            "from lightning.pytorch.strategies import ModelParallelStrategy",
        ),
        "tensor_parallel_size=4",
    ),
    Case(
        "tensor-parallel",
        ON,
        "ColossalAI",
        colossalai("HybridParallelPlugin", "tp_size=4, pp_size=1"),
        "tp_size=4",
    ),
    Case("tensor-parallel", ON, "veScale", vescale(), "parallelize_module"),
    Case(
        "tensor-parallel",
        ADVISED,
        "Megatron-SWIFT",
        megatron_swift(FULL_SWIFT, A100, model="Qwen/Qwen2.5-14B-Instruct"),
        writes="--tensor_model_parallel_size 2",
    ),
    Case(
        "tensor-parallel",
        ADVISED,
        "Megatron-LM",
        megatron_lm("--bf16 --use-distributed-optimizer", H100, layers=40, hidden=5120, heads=40),
        writes="--tensor-model-parallel-size 2",
    ),
    Case("tensor-parallel", OFF, "ms-swift", swift("tuner_type lora"), "not needed"),
    Case("tensor-parallel", NA, "ms-swift", swift("", before="CUDA_VISIBLE_DEVICES=0 "), "one GPU"),
    Case("tensor-parallel", NA, "PyTorch", launched(decoder(), ONE, ONE_CARD), "one GPU"),
    Case("tensor-parallel", NA, "Megatron-LM", megatron_lm("--bf16", gpus=1), "one GPU"),
)

STAGED = """\
import torch
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

stage = PipelineStage(model_chunk, rank, 4, device)
schedule = Schedule1F1B(stage, n_microbatches=8, loss_fn=loss_fn)
optimizer = torch.optim.AdamW(model_chunk.parameters(), lr=1e-4)
for batch in loader:
    schedule.step(batch.cuda())
    optimizer.step()
    optimizer.zero_grad()
"""
PIPED = """\
import deepspeed
from deepspeed.pipe import PipelineModule

model = PipelineModule(layers=layers, num_stages=4)
engine, _, _, _ = deepspeed.initialize(model=model, config="ds.json")
for step in range(1000):
    loss = engine.train_batch(data_iter=batches)
"""
PIPELINE = (
    Case("pipeline-parallel", ON, "PyTorch", launched(STAGED), "PipelineStage"),
    Case(
        "pipeline-parallel",
        ON,
        "DeepSpeed",
        launched(PIPED, "deepspeed --num_gpus 8 train.py", **{"ds.json": zero(1)}),
        "PipelineModule",
    ),
    Case(
        "pipeline-parallel",
        ON,
        "Megatron-LM",
        megatron_lm("--bf16 --pipeline-model-parallel-size 4"),
        "parallel-size 4",
    ),
    Case(
        "pipeline-parallel",
        ON,
        "Megatron-SWIFT",
        megatron_swift("pipeline_model_parallel_size 2"),
        "parallel_size 2",
    ),
    Case(
        "pipeline-parallel",
        ON,
        "LLaMA-Factory",
        llamafactory("finetuning_type: full\nuse_mca: true\npipeline_model_parallel_size: 2\n"),
        "parallel_size: 2",
    ),
    Case(
        "pipeline-parallel",
        ON,
        "ColossalAI",
        colossalai("HybridParallelPlugin", "tp_size=1, pp_size=4, num_microbatches=8"),
        "pp_size=4",
    ),
    Case(
        "pipeline-parallel",
        ADVISED,
        "Megatron-SWIFT",
        megatron_swift(
            f"{FULL_SWIFT} --tensor_model_parallel_size 4",
            A100,
            "nodes=4",
            model=BIG,
            before="NNODES=4 NODE_RANK=$SLURM_NODEID MASTER_ADDR=$HEAD NPROC_PER_NODE=8 ",
        ),
        writes="--pipeline_model_parallel_size 4",
    ),
    Case(
        "pipeline-parallel",
        ADVISED,
        "Megatron-LM",
        megatron_lm(
            "--bf16 --use-distributed-optimizer --tensor-model-parallel-size 8",
            A100,
            "nodes=8",
            nodes=8,
            layers=96,
            hidden=12288,
            heads=96,
        ),
        writes="--pipeline-model-parallel-size 4",
    ),
    Case("pipeline-parallel", OFF, "HF Trainer", launched(trainer("bf16=True"))),
    Case("pipeline-parallel", NA, "ms-swift", swift("", before="CUDA_VISIBLE_DEVICES=0 ")),
    Case("pipeline-parallel", NA, "PyTorch", launched(decoder(), ONE, ONE_CARD), "one GPU"),
)

SEQUENCE = (
    Case("sequence-parallel", ON, "ms-swift", swift("sequence_parallel_size 4"), "size 4"),
    Case(
        "sequence-parallel",
        ON,
        "Megatron-SWIFT",
        megatron_swift("context_parallel_size 2"),
        "parallel_size 2",
    ),
    Case(
        "sequence-parallel",
        ON,
        "Megatron-LM",
        megatron_lm("--bf16 --context-parallel-size 2"),
        "parallel-size 2",
    ),
    Case(
        "sequence-parallel",
        ON,
        "Accelerate",
        launched(
            accelerated(
                "parallelism_config=ParallelismConfig(cp_size=4, dp_shard_size=2)",
                names="Accelerator, ParallelismConfig",
            ),
            "accelerate launch --num_processes 8 train.py",
        ),
        "cp_size=4",
    ),
    Case(
        "sequence-parallel",
        ON,
        "HF Trainer",
        launched(
            trainer(
                "bf16=True",
                "parallelism_config=ParallelismConfig(cp_size=8)",
                imports="from accelerate import ParallelismConfig",
            )
        ),
        "cp_size=8",
    ),
    Case(
        "sequence-parallel",
        ON,
        "DeepSpeed",
        engine('{"zero_optimization": {"stage": 3}, "sequence_parallel_size": 4}'),
        '"sequence_parallel_size": 4',
    ),
    Case(
        "sequence-parallel",
        ON,
        "PyTorch",
        launched(
            decoder(
                "context_parallel(mesh, buffers=buffers, buffer_seq_dims=dims)",
                imports="from torch.distributed.tensor.experimental import context_parallel",
            )
        ),
        "context_parallel(",
    ),
    Case(
        "sequence-parallel",
        ON,
        "ColossalAI",
        colossalai(
            "HybridParallelPlugin",
            "tp_size=1, pp_size=1, sp_size=4, enable_sequence_parallelism=True, "
            'sequence_parallelism_mode="all_to_all"',
        ),
        "sp_size=4",
    ),
    Case(
        "sequence-parallel",
        ADVISED,
        "ms-swift",
        swift("max_length 262144 --attn_impl flash_attn --deepspeed zero3"),
        writes="--sequence_parallel_size 8",
    ),
    Case(
        "sequence-parallel",
        ADVISED,
        "Megatron-SWIFT",
        megatron_swift("max_length 262144"),
        writes="--context_parallel_size 8",
    ),
    Case("sequence-parallel", OFF, "ms-swift", swift("max_length 8192"), "128K"),
    Case("sequence-parallel", NA, "ms-swift", swift("", before="CUDA_VISIBLE_DEVICES=0 ")),
    Case("sequence-parallel", NA, "PyTorch", launched(decoder(), ONE, ONE_CARD), "one GPU"),
)

EXPERT = (
    Case(
        "expert-parallel",
        ON,
        "Megatron-SWIFT",
        megatron_swift("expert_model_parallel_size 4", model=MOE),
        "parallel_size 4",
    ),
    Case(
        "expert-parallel",
        ON,
        "Megatron-LM",
        megatron_lm("--bf16 --num-experts 64 --expert-model-parallel-size 8"),
        "parallel-size 8",
    ),
    Case(
        "expert-parallel",
        ON,
        "LLaMA-Factory",
        llamafactory(
            "finetuning_type: full\nuse_mca: true\nexpert_model_parallel_size: 8\n", model=MOE
        ),
        "parallel_size: 8",
    ),
    Case(
        "expert-parallel",
        ON,
        "DeepSpeed",
        launched(
            "import deepspeed\nfrom deepspeed.moe.layer import MoE\n\n"
            "layer = MoE(hidden_size=1024, expert=expert, num_experts=64, ep_size=8)\n"
            'engine, _, _, _ = deepspeed.initialize(model=layer, config="ds.json")\n'
            "for batch in loader:\n    engine.backward(engine(batch))\n    engine.step()\n",
            "deepspeed --num_gpus 8 train.py",
            **{"ds.json": zero(1)},
        ),
        "ep_size=8",
    ),
    Case(
        "expert-parallel",
        ON,
        "ColossalAI",
        colossalai("MoeHybridParallelPlugin", "tp_size=1, pp_size=1, ep_size=8", model=MOE),
        "ep_size=8",
    ),
    Case(
        "expert-parallel",
        ADVISED,
        "Megatron-SWIFT",
        megatron_swift("tuner_type lora", model=MOE),
        writes="--expert_model_parallel_size 8",
    ),
    Case(
        "expert-parallel",
        ADVISED,
        "Megatron-LM",
        megatron_lm("--bf16 --num-experts 64"),
        writes="--expert-model-parallel-size 8",
    ),
    Case("expert-parallel", OFF, "ms-swift", swift("tuner_type lora", model=MOE)),
    Case("expert-parallel", NA, "ms-swift", swift("tuner_type lora"), "mixture"),
    Case("expert-parallel", NA, "HF Trainer", launched(trainer("bf16=True")), "mixture"),
    Case("expert-parallel", NA, "Megatron-LM", megatron_lm("--bf16"), "mixture"),
    Case("expert-parallel", UNKNOWN, "PyTorch", launched(STAGED)),
)

OUTGROWN = decoder(DDP_LINE)
FRAMEWORKS = (
    Case("deepspeed", ON, "DeepSpeed", engine(zero(2)), '"stage": 2'),
    Case("deepspeed", ON, "DeepSpeed stage 0", engine('{"train_batch_size": 64}'), "ds.json"),
    Case("deepspeed", ON, "ms-swift", swift("deepspeed zero2"), "zero2"),
    Case("deepspeed", ON, "Lightning", lightning('devices=8, strategy="deepspeed"'), "deepspeed"),
    Case(
        "deepspeed",
        ON,
        "HF Trainer",
        launched(trainer("bf16=True", 'deepspeed="ds.json"'), **{"ds.json": zero(3)}),
        '"stage": 3',
    ),
    Case("deepspeed", OFF, "PyTorch", launched(DDP_VISION)),
    Case("deepspeed", OFF, "ms-swift", swift(FULL_SWIFT, A100)),
    Case("deepspeed", NA, "PyTorch", launched(vision(), ONE, ONE_CARD), "one GPU"),
    Case("deepspeed", NA, "Lightning", lightning("devices=1"), "one GPU"),
    Case("megatron", ON, "Megatron-LM", megatron_lm("--bf16"), "pretrain_gpt.py"),
    Case("megatron", ON, "Megatron-SWIFT", megatron_swift(""), "megatron sft"),
    Case(
        "megatron",
        ON,
        "LLaMA-Factory",
        llamafactory("finetuning_type: full\nuse_mca: true\n"),
        "use_mca",
    ),
    Case(
        "megatron",
        ON,
        "Accelerate",
        accelerate(
            "distributed_type: MEGATRON_LM\nnum_processes: 8\nnum_machines: 1\n"
            "megatron_lm_config:\n  megatron_lm_tp_degree: 2\n"
        ),
        "MEGATRON_LM",
    ),
    Case("megatron", OFF, "ms-swift", swift("deepspeed zero2")),
    Case("megatron", OFF, "PyTorch", launched(DDP_VISION)),
    Case("megatron", NA, "PyTorch", launched(vision(), ONE, ONE_CARD)),
    Case("megatron", NA, "vLLM", SERVING, "does not train"),
    Case(
        "accelerate",
        ON,
        "Accelerate",
        accelerate(ddp_yaml(), accelerated(model=SMALL)),
        "Accelerat",
    ),
    Case("accelerate", ON, "HF Trainer", launched(trainer("bf16=True", model=SMALL)), "Trainer"),
    Case("accelerate", ON, "ms-swift", swift("tuner_type lora"), "swift"),
    Case(
        "accelerate",
        PARTLY,
        "Accelerate large",
        accelerate(ddp_yaml(), accelerated(), A100_40G),
    ),
    Case("accelerate", OFF, "PyTorch", launched(DDP_VISION)),
    Case("accelerate", OFF, "Megatron-LM", megatron_lm("--bf16")),
    Case("accelerate", NA, "vLLM", SERVING, "does not train"),
    Case("accelerate", NA, "PyTorch", launched(vision(), ONE, ONE_CARD)),
    Case("colossalai", ON, "ColossalAI", colossalai("GeminiPlugin"), "colossalai"),
    Case(
        "colossalai",
        ON,
        "ColossalAI torchrun",
        colossalai("TorchDDPPlugin", command=TWO),
        "colossalai",
    ),
    Case("colossalai", OFF, "PyTorch", launched(DDP_VISION)),
    Case("colossalai", OFF, "ms-swift", swift("deepspeed zero2")),
    Case("colossalai", NA, "PyTorch", launched(vision(), ONE, ONE_CARD)),
    Case("colossalai", NA, "SGLang", SGLANG, "does not train"),
    Case(
        "pytorch-fsdp",
        ON,
        "PyTorch",
        launched(decoder(*FSDP2_CALL, imports=FSDP2_IMPORT)),
        "fully_shard",
    ),
    Case("pytorch-fsdp", ON, "Accelerate", accelerate(fsdp_yaml()), "reshard_after_forward"),
    Case("pytorch-fsdp", ON, "Lightning", lightning('devices=8, strategy="fsdp"'), "fsdp"),
    Case(
        "pytorch-fsdp",
        ON,
        "HF Trainer",
        launched(trainer("bf16=True", 'fsdp="full_shard auto_wrap"')),
        "full_shard",
    ),
    Case("pytorch-fsdp", ON, "ms-swift", swift("tuner_type full --fsdp fsdp2"), "fsdp2"),
    Case(
        "pytorch-fsdp",
        ADVISED,
        "PyTorch",
        launched(OUTGROWN, "torchrun --nproc_per_node=8 train.py", A100_40G),
        writes="fully_shard(model, ",
    ),
    Case(
        "pytorch-fsdp",
        ADVISED,
        "Lightning",
        lightning(
            'devices=8, strategy="ddp", precision="bf16-mixed"',
            "from transformers import AutoModelForCausalLM",
            f'AutoModelForCausalLM.from_pretrained("{QWEN}")',
            "torch.optim.AdamW(self.parameters(), lr=1e-5)",
        )
        | {"train.sh": script(ONE, A100_40G)},
        writes='strategy="fsdp"',
    ),
    Case("pytorch-fsdp", OFF, "PyTorch vision", launched(DDP_VISION)),
    Case("pytorch-fsdp", NA, "PyTorch", launched(vision(), ONE, ONE_CARD)),
    Case("pytorch-fsdp", NA, "HF evaluation", EVALUATION, "does not train"),
    Case("vescale", ON, "veScale", vescale(), "vescale"),
    Case("vescale", ON, "veScale two nodes", vescale(command=TWO), "vescale"),
    Case("vescale", OFF, "PyTorch", launched(DDP_VISION)),
    Case("vescale", OFF, "ms-swift", swift("deepspeed zero2")),
    Case("vescale", NA, "PyTorch", launched(vision(), ONE, ONE_CARD)),
    Case("vescale", NA, "vLLM", SERVING, "does not train"),
)

CASES = (
    *DATA_PARALLEL,
    *FSDP,
    *ZERO,
    *TENSOR,
    *PIPELINE,
    *SEQUENCE,
    *EXPERT,
    *FRAMEWORKS,
)
