"""What Flow-Factory's audit says of each item, as settings of its nested YAML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from audit_cases import ADVISED, H100, NA, OFF, ON, PARTLY, UNKNOWN, V100

from flake8_gpu_training.checks.base import Status

WAN = {
    "model.model_type": "wan2_t2v",
    "model.model_name_or_path": "Wan-AI/Wan2.1-T2V-14B-Diffusers",
}
SMALL_WAN = {**WAN, "model.model_name_or_path": "Wan-AI/Wan2.1-T2V-1.3B-Diffusers"}
WAN_22 = {**WAN, "model.model_name_or_path": "Wan-AI/Wan2.2-T2V-A14B-Diffusers"}
SD3 = {
    "model.model_type": "sd3-5",
    "model.model_name_or_path": "stabilityai/stable-diffusion-3.5-medium",
}
LTX2 = {"model.model_type": "ltx2_t2av", "model.model_name_or_path": "Lightricks/LTX-2"}
OWN_MODEL = {"model.model_type": "bagel", "model.model_name_or_path": "mine/unnamed"}
"""A model that only a fork has an adapter for."""
FULL = {"model.finetune_type": "full"}
ONE = {"num_processes": 1}
ODE = {"scheduler.dynamics_type": "ODE"}
NO_EMA = {"train.ema_decay": 0}
DISTILLED = {"train.trainer_type": "opd"}
"""A trainer of a fork's own, which learns from a teacher."""
TWO_REWARDS = (
    {"name": "a", "reward_model": "PickScore"},
    {"name": "b", "reward_model": "CLIP"},
)
SERVER = ({"name": "judge", "reward_model": "my.Judge", "server_url": "http://judge:8000"},)
# The reward's own limit of requests at once is 8.
RATIONAL = (
    {
        "name": "judge",
        "reward_model": "rational_rewards_edit",
        "api_base_url": "http://judge:8000/v1",
        "batch_size": 4,
    },
)


def accelerate(kind: str, section: str = "", machines: int = 1, processes: int = 8) -> str:
    """Accelerate's file."""
    return (
        f"distributed_type: {kind}\nnum_machines: {machines}\nnum_processes: {processes}\n"
        f"mixed_precision: bf16\n{section}"
    )


def zero(stage: int, more: str = "") -> Mapping[str, str]:
    """A file that turns ZeRO on."""
    section = f"deepspeed_config:\n  zero_stage: {stage}\n{more}"
    return {"acc.yaml": accelerate("DEEPSPEED", section)}


def fsdp(version: int, more: str = "") -> Mapping[str, str]:
    """A file that turns FSDP on."""
    section = f"fsdp_config:\n  fsdp_version: {version}\n"
    if version == 1:
        section += "  fsdp_sharding_strategy: FULL_SHARD\n  fsdp_backward_prefetch: BACKWARD_PRE\n"
    return {"acc.yaml": accelerate("FSDP", section + more)}


TWO_NODES = {"acc.yaml": accelerate("MULTI_GPU", machines=2, processes=16)}
OF_TWO_NODES = {"num_processes": 16, "num_machines": 2}


@dataclass(frozen=True)
class Case:
    """Settings of a recipe for FLUX with LoRA, and what the audit says of one item.

    A ``None`` among the settings takes one away. ``files``: ``acc.yaml`` is Accelerate's file;
    ``trainer``: lines of a program that starts the training itself.
    """

    item: str
    status: Status
    settings: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    before: str = ""
    directives: tuple[str, ...] = ()
    shows: str = ""
    writes: str = ""

    @property
    def id(self) -> str:
        """Item, status, and what sets it."""
        marks = "-".join(f"{name}={value}" for name, value in self.settings.items())[:90]
        file = self.files.get("acc.yaml", "").replace("\n", " ")[-40:]
        where = f"{self.before}{''.join(self.directives)}"
        return f"{self.item}-{self.status.value}-{marks}-{file}-{where}".replace("/", "_")


NPU = "ASCEND_RT_VISIBLE_DEVICES=0 "

CASES: tuple[Case, ...] = (
    # A mixed precision
    Case("mixed-precision-bf16", ON, shows="mixed_precision"),
    Case("mixed-precision-bf16", ON, {"mixed_precision": None}, shows="bf16"),
    Case("mixed-precision-bf16", ADVISED, {"mixed_precision": "no"}, writes="bf16"),
    Case("mixed-precision-bf16", OFF, {"mixed_precision": "fp16"}),
    Case("mixed-precision-bf16", NA, {"mixed_precision": "fp16"}, directives=(V100,)),
    Case("mixed-precision-fp16", ON, {"mixed_precision": "fp16"}, directives=(V100,)),
    Case("mixed-precision-fp16", ADVISED, {"mixed_precision": "no"}, directives=(V100,)),
    Case("mixed-precision-fp16", OFF),
    Case("master-weight-dtype", ON, shows="bfloat16"),
    Case("master-weight-dtype", ON, {"model.master_weight_dtype": "fp32"}, shows="fp32"),
    Case("master-weight-dtype", OFF, {"model.master_weight_dtype": "fp16"}),
    Case("latent-storage-dtype", ON, shows="fp16"),
    Case("latent-storage-dtype", ON, {"train.latent_storage_dtype": "bf16"}),
    Case("latent-storage-dtype", OFF, {"train.latent_storage_dtype": "fp32"}),
    Case(
        "latent-storage-dtype",
        ADVISED,
        {**WAN, "train.latent_storage_dtype": "fp32"},
        writes="latent_storage_dtype: fp16",
    ),
    Case("inference-dtype", ON),
    Case("inference-dtype", OFF, {"mixed_precision": "no"}),
    # B memory
    Case("gradient-checkpointing", ON, {"train.enable_gradient_checkpointing": True}),
    Case("gradient-checkpointing", ON, files=fsdp(2, "  fsdp_activation_checkpointing: true\n")),
    Case("gradient-checkpointing", ADVISED, {"train.resolution": 1024}, writes="checkpointing"),
    Case(
        "gradient-checkpointing",
        ADVISED,
        {**WAN, "train.resolution": [480, 832], "train.num_frames": 33},
    ),
    Case("gradient-checkpointing", OFF),
    Case("offload-samples", ON, {**WAN, "train.offload_samples_to_cpu": True}),
    Case("offload-samples", ADVISED, WAN, writes="offload_samples_to_cpu: true"),
    Case("offload-samples", OFF),
    Case("offload-samples", OFF, {**WAN, "train.num_frames": 1}),
    Case("offload-samples", ADVISED, {**WAN, "train.extra_kwargs.num_frames": 41}),
    Case("offload-samples", OFF, {**WAN, "train.extra_kwargs.num_frames": 1}),
    Case("ema-device-cpu", ON, {"train.ema_device": "cpu"}),
    Case("ema-device-cpu", ADVISED, {**FULL, **WAN}, writes="ema_device: cpu"),
    Case("ema-device-cpu", OFF),
    Case("ema-device-cpu", OFF, {**FULL, **WAN}, fsdp(2)),
    Case("ema-device-cpu", NA, NO_EMA),
    Case(
        "ref-param-device-cpu",
        ON,
        {**FULL, "train.trainer_type": "dpo", "train.ref_param_device": "cpu"},
    ),
    Case(
        "ref-param-device-cpu", ADVISED, {**FULL, **WAN, "train.trainer_type": "dgpo"}, writes="cpu"
    ),
    Case("ref-param-device-cpu", ADVISED, {**FULL, **WAN, "train.kl_beta": 0.01}),
    Case("ref-param-device-cpu", OFF, {**FULL, **SD3, "train.trainer_type": "dpo"}),
    Case("ref-param-device-cpu", OFF, {"train.trainer_type": "crd"}),
    Case("ref-param-device-cpu", NA, {**FULL, **WAN}),
    Case("ref-param-device-cpu", NA, {"train.trainer_type": "dpo"}),
    Case("ref-param-device-cpu", UNKNOWN, DISTILLED),
    Case("gradient-accumulation", ON, shows="auto"),
    Case("gradient-accumulation", ON, {"train.gradient_accumulation_steps": 4}),
    Case("gradient-accumulation", OFF, {"train.gradient_accumulation_steps": 1}),
    # C LoRA
    Case("lora", ON),
    Case("lora", OFF, FULL),
    Case(
        "lora",
        ADVISED,
        {**FULL, **WAN, "num_processes": 2},
        directives=("gres=gpu:rtx4090:2",),
        writes="finetune_type: lora",
    ),
    Case("lora-rank", ON),
    Case("lora-rank", ADVISED, {"model.lora_rank": None}, writes="lora_rank: 64"),
    Case("lora-rank", PARTLY, {"model.lora_rank": 24}),
    Case("lora-rank", OFF, {"model.lora_rank": 256}),
    Case("lora-rank", NA, FULL),
    Case("lora-alpha", ON, {"model.lora_alpha": 128}),
    Case("lora-alpha", ON, shows="2 * lora_rank"),
    Case("lora-alpha", OFF, {"model.lora_alpha": 16}),
    Case("lora-alpha", NA, FULL),
    Case("target-modules", ON, {"model.target_modules": "default"}),
    Case("target-modules", ON, shows="all"),
    Case("target-components", ON),
    Case(
        "target-components",
        ON,
        {**WAN_22, "model.target_components": ["transformer", "transformer_2"]},
    ),
    Case("target-components", PARTLY, WAN_22, writes="transformer_2"),
    # D distributed
    Case("fsdp2", ON, files=fsdp(2)),
    Case("fsdp2", OFF, files=fsdp(1)),
    Case("fsdp2", NA, ONE),
    Case("fsdp-full-shard", ON, files=fsdp(1)),
    Case("fsdp-full-shard", OFF, files=fsdp(2)),
    Case("fsdp-full-shard", NA, ONE),
    Case("zero2", ON, files=zero(2)),
    Case("zero2", OFF, files=zero(3)),
    Case("zero2", ADVISED, {**FULL, **WAN}, writes="zero_optimization"),
    Case("zero2", NA, ONE),
    Case("zero3", ON, files=zero(3)),
    Case("zero3", OFF, files=zero(2)),
    Case("zero3", NA, ONE),
    Case("zero1", ON, files=zero(1)),
    Case("zero1", OFF, files=zero(2)),
    Case("zero1", NA, ONE),
    Case("zero2-offload", ON, files=zero(2, "  offload_optimizer_device: cpu\n")),
    Case("zero2-offload", OFF, files=zero(2)),
    Case("multi-node", ON, OF_TWO_NODES, TWO_NODES),
    Case("multi-node", OFF),
    Case("multi-node", NA, ONE),
    Case("num-processes", ON),
    Case("num-processes", ON, {"num_processes": None}, shows="GPUs in sight"),
    # E attention
    Case("flash", ON),
    Case("flash", ON, {"model.attn_backend": "flash_hub"}),
    Case("flash", PARTLY, directives=(H100,), writes="_flash_3_hub"),
    Case("flash", OFF, {"model.attn_backend": "_native_cudnn"}, directives=(V100,)),
    Case("flash", NA, {**SD3, "model.attn_backend": "flash"}),
    Case("flash", NA, {**LTX2, "model.attn_backend": None}),
    Case("flash", ADVISED, {"model.attn_backend": None}),
    Case("flash-3", ON, {"model.attn_backend": "_flash_3_hub"}, directives=(H100,)),
    Case(
        "flash-3", ADVISED, {"model.attn_backend": None}, directives=(H100,), writes="_flash_3_hub"
    ),
    Case("flash-3", OFF),
    Case("flash-3", ADVISED, directives=(H100,)),
    Case("varlen", ON, {"model.attn_backend": "_flash_3_varlen_hub"}),
    Case("varlen", OFF),
    Case("sage", NA, {"model.attn_backend": "sage"}),
    Case("sage", NA),
    Case("xformers", NA, {**SD3, "model.attn_backend": "xformers"}),
    Case("xformers", ON, {"model.attn_backend": "xformers"}),
    Case("xformers", OFF),
    Case("default-sdpa", ON, {"model.attn_backend": None}, directives=(V100,)),
    Case("default-sdpa", ON, {**SD3, "model.attn_backend": None}, shows="diffusers 0.36.0"),
    Case("default-sdpa", ON, {**SD3, "model.attn_backend": "flash"}),
    Case("default-sdpa", ON, {**LTX2, "model.attn_backend": None}),
    Case("default-sdpa", ADVISED, {"model.attn_backend": "sage"}, writes="attn_backend: native"),
    Case("default-sdpa", UNKNOWN, {**OWN_MODEL, "model.attn_backend": None}),
    Case("flash", ON, OWN_MODEL),
    Case("default-sdpa", PARTLY, {"model.attn_backend": None}, writes="attn_backend: flash"),
    Case("default-sdpa", PARTLY, {"model.attn_backend": "native"}),
    Case("default-sdpa", OFF),
    *(
        Case(name, NA, before=NPU)
        for name in ("flash", "flash-3", "varlen", "sage", "xformers", "default-sdpa")
    ),
    # F optimizer
    Case("learning-rate", ON, {"train.learning_rate": 3e-4}),
    Case("learning-rate", ON, shows="1e-05"),
    Case("learning-rate", ON, {**FULL, "train.learning_rate": 1e-5}),
    Case(
        "learning-rate",
        PARTLY,
        {**FULL, "train.learning_rate": 1e-4},
        writes="learning_rate: 1.0e-05",
    ),
    Case("learning-rate", PARTLY, {"train.learning_rate": 1e-2}, writes="learning_rate: 0.0003"),
    Case("learning-rate", PARTLY, {"train.learning_rate": 1e-7}, writes="learning_rate: 1.0e-06"),
    Case("adam-parameters", ON),
    Case("gradient-clipping", ON, {"train.max_grad_norm": 0.5}),
    Case("gradient-clipping", ON),
    Case("gradient-clipping", OFF, {"train.max_grad_norm": 0}),
    Case("sample-group-size", ON),
    Case("sample-group-size", ADVISED, {"train.group_size": None}, writes="group_size: 8"),
    Case("sample-group-size", PARTLY, {"train.group_size": 2}),
    Case("sample-group-size", UNKNOWN, {"train.group_size": 1, "train.trainer_type": "opd"}),
    Case("lr-scheduler-gap", OFF),
    Case("epochs", ON, {"train.max_epochs": 100}),
    Case("epochs", OFF),
    Case("epochs", OFF, {"train.max_epochs": -1}),
    # G data
    Case("dataloader-workers", ON),
    Case("dataloader-workers", ADVISED, {"data.dataloader_num_workers": 0}),
    Case("preprocessing-batch-size", ON, {"data.preprocessing_batch_size": 16}),
    Case("preprocessing-batch-size", ON, shows="preprocessing_batch_size"),
    Case("preprocessing-batch-size", OFF, {"data.preprocessing_batch_size": 1}),
    Case("preprocessing-batch-size", NA, {"data.enable_preprocess": False}),
    Case("sampler-strategy", ON, shows="auto"),
    Case("sampler-strategy", ON, {"train.trainer_type": "dgpo"}, shows="group_distributed"),
    Case("sampler-strategy", OFF, {"data.sampler_type": "distributed_k_repeat"}),
    Case("data-cache", ON),
    Case("data-cache", ADVISED, {"data.force_reprocess": True}, writes="force_reprocess: false"),
    Case("data-cache", ADVISED, {"data.force_reprocess": None}),
    Case("data-cache", NA, {"data.enable_preprocess": False}),
    Case("preprocess-parallelism", ON, {"data.preprocess_parallelism": "global"}),
    Case("preprocess-parallelism", ON),
    Case("preprocess-parallelism", OFF, OF_TWO_NODES, TWO_NODES),
    Case("preprocess-parallelism", NA, ONE),
    Case("multi-source", ON, {"data.dataset_dir": ["a", "b"]}),
    Case("multi-source", ON, {"data.datasets": [{"dataset_dir": "a"}, {"dataset_dir": "b"}]}),
    Case("multi-source", NA, {"data.datasets": [{"dataset_dir": "${HOME}/a", "train": {}}]}),
    Case("multi-source", NA),
    # H rewards
    Case("async-reward", ON, {"rewards": ({**SERVER[0], "async_reward": True},)}),
    Case("async-reward", ADVISED, {"rewards": SERVER}, writes="num_workers: 8"),
    Case("async-reward", ADVISED, {"rewards": RATIONAL}, writes="num_workers: 2"),
    Case(
        "async-reward",
        ADVISED,
        {"rewards": ({**RATIONAL[0], "batch_size": 16},)},
        writes="num_workers: 1",
    ),
    Case("async-reward", OFF),
    Case("reward-batch-size", ON, {"rewards": ({**TWO_REWARDS[0], "batch_size": 64},)}),
    Case("reward-batch-size", ON),
    Case("reward-batch-size", OFF, {"rewards": ({**TWO_REWARDS[0], "batch_size": 1},)}),
    Case("reward-device", ON),
    Case("reward-device", OFF, {"rewards": ({**TWO_REWARDS[0], "device": "cpu"},)}),
    Case("reward-device", NA, {"rewards": SERVER}),
    Case("reward-dtype", ON),
    Case(
        "reward-dtype",
        ADVISED,
        {"rewards": ({**TWO_REWARDS[0], "dtype": "float32"},)},
        writes="bfloat16",
    ),
    Case("reward-dtype", OFF, {"rewards": ({"reward_model": "my.Judge", "dtype": "float32"},)}),
    Case("reward-dtype", NA, {"rewards": SERVER}),
    Case("reward-routing", ON, {"eval_rewards": TWO_REWARDS}),
    Case("reward-routing", OFF),
    Case("reward-routing", NA, {"eval.eval_freq": 0}),
    Case("reward-routing", NA, {"eval_rewards": TWO_REWARDS, "eval.eval_freq": 0}),
    Case("advantage-type", ON),
    Case("advantage-type", UNKNOWN, DISTILLED),
    Case("async-reward", NA, {**DISTILLED, "rewards": None}),
    Case("async-reward", OFF, DISTILLED),
    Case("advantage-type", OFF, {"train.advantage_aggregation": "sum", "rewards": TWO_REWARDS}),
    Case("advantage-type", NA, {"train.advantage_aggregation": "sum"}),
    # I average and scheduler
    Case("ema-decay", ON, {"train.ema_decay": 0.9}),
    Case("ema-decay", ON, shows="0.995"),
    Case("ema-decay", OFF, NO_EMA),
    *(
        case
        for name, setting in (
            ("ema-update-interval", {"train.ema_update_interval": 4}),
            ("ema-device", {"train.ema_device": "cpu"}),
            ("ema-schedule", {"train.ema_decay_schedule": "cosine"}),
        )
        for case in (Case(name, ON, setting), Case(name, ON), Case(name, NA, NO_EMA))
    ),
    Case("dynamics-type", ON),
    Case("dynamics-type", ON, {**ODE, "train.trainer_type": "nft"}),
    Case("dynamics-type", OFF, {"train.trainer_type": "nft"}),
    Case("dynamics-type", UNKNOWN, DISTILLED),
    Case("flow-shift", ON, {**WAN, "train.resolution": 480, "scheduler.flow_shift": 3.0}),
    Case("flow-shift", ON, {**WAN, "train.resolution": [720, 1280], "scheduler.flow_shift": 5.0}),
    Case(
        "flow-shift",
        ADVISED,
        {**WAN, "train.resolution": [720, 1280], "scheduler.flow_shift": 3.0},
        writes="flow_shift: 5.0",
    ),
    Case("flow-shift", ADVISED, {**WAN, "train.resolution": 256, "scheduler.flow_shift": 5.0}),
    Case("flow-shift", OFF, WAN),
    Case("flow-shift", NA),
    Case("sde-steps", ON, {"scheduler.sde_steps": [1, 2, 3]}),
    Case("sde-steps", OFF),
    Case("sde-steps", UNKNOWN, DISTILLED),
    Case("sde-steps", ON, {**DISTILLED, "scheduler.sde_steps": [1, 2, 3]}),
    Case("sde-steps", NA, ODE),
    # J by changing the code
    Case(
        "torch-compile",
        ON,
        files={"acc.yaml": accelerate("MULTI_GPU", "dynamo_config:\n  dynamo_backend: INDUCTOR\n")},
    ),
    Case("torch-compile", OFF),
    Case("torch-compile", OFF, ONE),
    Case("torch-compile", NA, before=NPU),
    Case("fused-adam", OFF, writes="fused=True"),
    Case("fused-adam", NA, files=zero(2, "  offload_optimizer_device: cpu\n")),
    Case("adam-8bit", OFF, FULL, writes="AdamW8bit"),
    Case("adam-8bit", OFF),
    Case(
        "adam-8bit",
        NA,
        FULL,
        zero(2, "  offload_optimizer_device: cpu\n"),
    ),
    Case("liger-kernel", OFF, writes="LigerRMSNorm"),
    Case("liger-kernel", NA, before=NPU),
    Case("qlora", OFF, writes="load_in_4bit"),
    Case("qlora", NA, FULL),
    Case("lr-scheduler", OFF, writes="get_scheduler"),
    Case("no-sync", ON),
    Case("no-sync", ON, files=zero(1)),
    Case("no-sync", ON, files=fsdp(2)),
    Case("no-sync", ON, files=fsdp(1)),
    Case("no-sync", NA, files=zero(2)),
    Case("no-sync", NA, files=zero(3)),
    Case("no-sync", NA, ONE),
    Case("dataloader-tuning", PARTLY, writes="persistent_workers"),
    Case("dataloader-tuning", OFF, {"data.dataloader_num_workers": 0}),
    Case("nccl-environment", ON, OF_TWO_NODES, TWO_NODES, "NCCL_SOCKET_IFNAME=eth0 "),
    Case("nccl-environment", ADVISED, OF_TWO_NODES, TWO_NODES),
    Case("nccl-environment", OFF),
    Case("nccl-environment", NA, ONE),
    Case(
        "zero-plus-plus",
        ADVISED,
        OF_TWO_NODES,
        {
            "acc.yaml": accelerate(
                "DEEPSPEED", "deepspeed_config:\n  zero_stage: 3\n", 2, 16
            ).replace("zero_stage: 3\n", "deepspeed_config_file: ds.json\n"),
            "ds.json": '{"zero_optimization": {"stage": 3}}',
        },
    ),
    Case(
        "zero-plus-plus",
        ON,
        OF_TWO_NODES,
        {
            "acc.yaml": accelerate(
                "DEEPSPEED", "deepspeed_config:\n  deepspeed_config_file: ds.json\n", 2, 16
            ),
            "ds.json": '{"zero_optimization": {"stage": 3, "zero_hpz_partition_size": 8}}',
        },
    ),
    Case("zero-plus-plus", NA, files=zero(2)),
)

_OPTIONAL = "a run may do without it: whether it helps shows in the run"
_BY_CODE = "no parameter has it: the report shows the change"
NEVER_ADVISED: Mapping[str, str] = {
    **dict.fromkeys(
        """
        master-weight-dtype inference-dtype gradient-accumulation lora-alpha target-modules
        zero2-offload multi-node num-processes adam-parameters gradient-clipping
        epochs
        preprocessing-batch-size sampler-strategy preprocess-parallelism multi-source
        reward-batch-size reward-device reward-routing advantage-type ema-decay
        ema-update-interval ema-device ema-schedule dynamics-type sde-steps no-sync
        """.split(),  # noqa: SIM905
        _OPTIONAL,
    ),
    **dict.fromkeys(
        """
        lr-scheduler-gap torch-compile fused-adam adam-8bit liger-kernel qlora lr-scheduler
        """.split(),  # noqa: SIM905
        _BY_CODE,
    ),
    **dict.fromkeys(
        "fsdp2 fsdp-full-shard zero3 zero1 varlen sage xformers".split(),  # noqa: SIM905
        "one of a group, of which another is advised",
    ),
}
ALWAYS_APPLIES = frozenset(
    """
    mixed-precision-fp16 master-weight-dtype latent-storage-dtype
    inference-dtype gradient-checkpointing offload-samples gradient-accumulation lora
    target-modules target-components zero2-offload num-processes learning-rate adam-parameters
    gradient-clipping sample-group-size lr-scheduler-gap epochs dataloader-workers
    sampler-strategy reward-batch-size ema-decay dynamics-type lr-scheduler dataloader-tuning
    """.split()  # noqa: SIM905
)
NEVER_ON = {"sage": "its kernels have no backward pass"}
NEVER_OFF: Mapping[str, str] = {
    "num-processes": "without a number a process is started for each GPU",
    "target-modules": "all layers are trained unless some are named",
    "adam-parameters": "AdamW has them by default",
    "multi-source": "one data set needs no routing",
    "ema-update-interval": "it has a default",
    "ema-device": "it has a default",
    "ema-schedule": "it has a default",
    "no-sync": "accumulate() does it wherever it applies",
    "sage": "it cannot apply",
}
BY_CHECKOUT = frozenset(
    """
    lr-scheduler-gap fused-adam adam-8bit liger-kernel qlora lr-scheduler dataloader-tuning
    """.split()  # noqa: SIM905
)
"""On only where a checkout's own trainer does it, which tests of programs show."""
