"""What VideoX-Fun's audit says of each item, as flags that every front end can write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from audit_cases import A100, A100_40G, ADVISED, H100, NA, OFF, ON, PARTLY, UNKNOWN, V100

from flake8_gpu_training.checks.base import Status

WAN_14B = "models/Wan2.1-T2V-14B"
WAN_1B = "models/Wan2.1-T2V-1.3B"
FULL, LORA = "wan2.1/train", "wan2.1/train_lora"
INPAINT = "wan2.1_fun/train"
REWARD = "wan2.1/train_reward_lora"
DISTILL = "wan2.1/train_distill"
FLUX = "flux/train_lora"
COG = "cogvideox_fun/train_lora"
CONTROL_DISTILL = "flux2_fun/train_control_distill"
FLASH_HEAD = "flashhead/train_s2v"
OWN_DATA = "ReasoningDataset"
UNCOUNTED = "--mixed_precision bf16"
EIGHT = "--num_processes 8"
ONE = "--num_processes 1"
DEEPSPEED = f"{EIGHT} --use_deepspeed --deepspeed_config_file config/zero_stage"
ZERO2 = f"{DEEPSPEED}2_config.json"
ZERO3 = f"{DEEPSPEED}3_config.json"
OFFLOADED = f"{DEEPSPEED}3_config_cpu_offload.json"
OWN = f"{EIGHT} --use_deepspeed --deepspeed_config_file ds.json"
SHARDED = f"{EIGHT} --use_fsdp --fsdp_sharding_strategy FULL_SHARD"
BY_CLASS = (
    f"{SHARDED} --fsdp_auto_wrap_policy TRANSFORMER_BASED_WRAP --fsdp_transformer_layer_cls_to_wrap"
)
FSDP = f"{BY_CLASS}=WanAttentionBlock --fsdp_backward_prefetch BACKWARD_PRE"
RTX4090 = "gres=gpu:rtx4090:1"
BUCKETS = {"enable_bucket": True}
ADAPTED = {**BUCKETS, "random_hw_adapt": True}
BY_TOKENS = {**ADAPTED, "training_with_video_token_length": True}
PROMPTS = {"validation_prompts": "a cat"}


def ds(text: str) -> Mapping[str, str]:
    """A DeepSpeed file of the project's own."""
    return {"ds.json": f'{{"zero_optimization": {{"stage": 3}}{text}}}'}


@dataclass(frozen=True)
class Case:
    """Flags of a script, and what the audit says of one item of the run.

    ``launcher``: flags of ``accelerate launch``; ``code``: lines in the script of a checkout,
    which only that front end has. A ``None`` among the flags takes one away.
    """

    item: str
    status: Status
    flags: Mapping[str, Any] = field(default_factory=dict)
    script: str = LORA
    launcher: str = ONE
    before: str = ""
    directives: tuple[str, ...] = ()
    model: str = WAN_14B
    code: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    shows: str = ""
    writes: str = ""

    @property
    def id(self) -> str:
        """Item, status, and what sets it."""
        marks = "-".join(f"{name}={value}" for name, value in self.flags.items())
        launch = self.launcher.removeprefix("--num_processes")[:60]
        where = f"{self.script}{self.before}{''.join(self.directives)}{self.model}{self.code}"
        return f"{self.item}-{self.status.value}-{marks}-{launch}-{where}".replace("/", "_")


SDPA = "VIDEOX_ATTENTION_TYPE=SDPA "
SAGE = "VIDEOX_ATTENTION_TYPE=SAGE_ATTENTION "
PINNED = {"requirements.txt": "flash-attn==2.7.4\n"}
NPU = "ASCEND_RT_VISIBLE_DEVICES=0 "
NO_PRECISION = {"mixed_precision": None}
LINES = {"gradient_checkpointing": True}

CASES: tuple[Case, ...] = (
    # A mixed precision and quantization
    Case("mixed-precision-bf16", ON, shows="mixed_precision"),
    Case("mixed-precision-bf16", ON, NO_PRECISION, launcher=f"{ONE} --mixed_precision bf16"),
    Case("mixed-precision-bf16", ADVISED, NO_PRECISION, writes="--mixed_precision=bf16"),
    Case("mixed-precision-bf16", ADVISED, {"mixed_precision": "no"}),
    Case("mixed-precision-bf16", NA, {"mixed_precision": "fp16"}, directives=(V100,)),
    Case("mixed-precision-fp16", ON, {"mixed_precision": "fp16"}, directives=(V100,)),
    Case("mixed-precision-fp16", PARTLY, {"mixed_precision": "fp16"}, directives=(A100,)),
    Case("mixed-precision-fp16", ADVISED, NO_PRECISION, directives=(V100,)),
    Case("mixed-precision-fp16", OFF),
    Case("tf32", ON, {"allow_tf32": True}),
    Case("tf32", OFF),
    Case("tf32", NA, directives=(V100,)),
    Case("fp8-inference", NA),
    Case("fp8-inference", ON, code="convert_model_weight_to_float8(transformer3d)"),
    Case("adam-8bit", ON, {"use_8bit_adam": True}, FULL),
    Case("adam-8bit", ADVISED, LINES, FULL, directives=(V100,), model="models/Wan2.2-TI2V-5B"),
    Case("adam-8bit", OFF, LINES, FULL, directives=(A100,), model=WAN_1B),
    Case("adam-8bit", OFF),
    Case("adam-8bit", NA, {}, FULL, OFFLOADED),
    Case("came", ON, {"use_came": True}, FULL),
    Case("came", OFF, {"use_8bit_adam": True, "use_came": True}, FULL),
    Case("came", OFF, {}, FULL),
    Case("came", OFF),
    Case("came", NA, {}, FULL, OFFLOADED),
    # B activations
    Case("gradient-checkpointing", ON, LINES, shows="gradient_checkpointing"),
    Case("gradient-checkpointing", ADVISED, writes="--gradient_checkpointing"),
    Case("gradient-checkpointing", OFF, {"video_sample_n_frames": 1}, model=WAN_1B),
    Case("fractional-checkpointing", OFF, LINES, writes="checkpointing"),
    Case("fractional-checkpointing", OFF),
    Case("fractional-checkpointing", ON, LINES, code="apply_checkpointing(transformer3d, p=0.5)"),
    Case("gradient-accumulation", ON, {"gradient_accumulation_steps": 4}),
    Case("gradient-accumulation", OFF),
    # C offload
    Case("low-vram", ON, {"low_vram": True}),
    Case("low-vram", ADVISED, directives=(RTX4090,), writes="--low_vram"),
    Case("low-vram", OFF),
    Case("low-vram", OFF, directives=(A100,)),
    Case("vae-mini-batch", ON, {"vae_mini_batch": 1}),
    Case("vae-mini-batch", ADVISED, {"train_batch_size": 4}, writes="--vae_mini_batch=1"),
    Case("vae-mini-batch", ADVISED, {**BY_TOKENS, "auto_tile_batch_size": True}),
    Case("vae-mini-batch", OFF, {"train_batch_size": 2}),
    Case("vae-mini-batch", NA),
    Case("vae-mini-batch", NA, {}, REWARD),
    Case("vae-mini-batch", NA, {"vae_mini_batch": 1}, DISTILL),
    Case("vae-mini-batch", ON, {"vae_mini_batch": 1, "train_mode": "i2v"}, DISTILL),
    Case("vae-mini-batch", NA, {"vae_mini_batch": 1}, "z_image/train_distill"),
    Case("multi-stream-vae", ON, {"multi_stream": True, "train_mode": "inpaint"}, INPAINT),
    Case("multi-stream-vae", OFF, {"train_mode": "inpaint"}, INPAINT),
    Case("multi-stream-vae", NA, {"multi_stream": True}),
    Case("multi-stream-vae", NA),
    Case("multi-stream-vae", OFF, {}, "wan2.2/train_animate"),
    Case("multi-stream-vae", ON, {"multi_stream": True}, "fantasytalking/train"),
    Case("multi-stream-vae", NA, {"multi_stream": True}, "wan2.2/train_s2v"),
    Case("multi-stream-vae", NA, {"multi_stream": True}, "cogvideox_fun/train_control"),
    Case("multi-stream-vae", NA, {}, FLUX),
    # D distributed
    Case("zero2", ON, {}, FULL, ZERO2),
    Case("zero2", ADVISED, {}, FULL, EIGHT, writes="config/zero_stage2_config.json"),
    Case("zero2", OFF, {}, FULL, FSDP),
    Case("zero2", NA),
    Case("zero2", ADVISED, {}, FULL, UNCOUNTED, writes="config/zero_stage2_config.json"),
    Case("zero2", OFF, {}, LORA, UNCOUNTED),
    Case("zero2", OFF, {}, FULL, UNCOUNTED, model="models/My-Own-Video"),
    Case("zero2", OFF, {"trainable_modules": "audio"}, FULL, UNCOUNTED),
    Case("zero2", OFF, {"trainable_modules": "control"}, FULL, UNCOUNTED),
    Case("zero3", ON, {}, FULL, ZERO3),
    Case("zero3", ON, {}, FULL, OFFLOADED),
    Case("zero3", OFF, {}, FULL, ZERO2),
    Case("zero3", NA),
    Case("zero3", OFF, {}, FULL, UNCOUNTED),
    Case("fsdp-full-shard", ON, {}, FULL, FSDP),
    Case("fsdp-full-shard", ON, {}, COG, f"{BY_CLASS} CogVideoXBlock"),
    Case(
        "fsdp-full-shard",
        ON,
        {},
        FLUX,
        f"{BY_CLASS} FluxSingleTransformerBlock,FluxTransformerBlock",
    ),
    Case("fsdp-full-shard", ON, {}, "wan2.2/train_s2v_lora", f"{BY_CLASS} WanS2VAttentionBlock"),
    Case(
        "fsdp-full-shard",
        ON,
        {},
        FULL,
        f"{SHARDED} --fsdp_auto_wrap_policy SIZE_BASED_WRAP --fsdp_min_num_params 100000000",
    ),
    Case(
        "fsdp-full-shard",
        PARTLY,
        {},
        FULL,
        f"{BY_CLASS} CogVideoXBlock",
        writes="cls_to_wrap WanAttentionBlock",
    ),
    Case("fsdp-full-shard", PARTLY, {}, FULL, SHARDED, writes="WanAttentionBlock"),
    Case(
        "fsdp-full-shard",
        ADVISED,
        launcher=EIGHT,
        directives=("gres=gpu:rtx4090:8",),
        writes="WanAttentionBlock",
    ),
    Case(
        "fsdp-full-shard",
        ADVISED,
        {},
        FULL,
        EIGHT,
        directives=(A100_40G,),
        writes="WanAttentionBlock",
    ),
    Case("fsdp-full-shard", OFF, {}, FULL, ZERO2),
    Case("fsdp-full-shard", NA),
    Case("fsdp-full-shard", OFF, {}, DISTILL, UNCOUNTED, model=WAN_1B),
    Case(
        "fsdp-full-shard",
        ADVISED,
        {},
        "flux2/train_lora",
        UNCOUNTED,
        model="models/FLUX.2-dev",
        writes="Flux2TransformerBlock",
    ),
    Case("zero3-cpu-offload", ON, {}, FULL, OFFLOADED),
    Case("zero3-cpu-offload", OFF, {}, FULL, ZERO3),
    Case("zero3-cpu-offload", OFF),
    Case("fsdp-backward-prefetch", ON, {}, FULL, FSDP),
    Case("fsdp-backward-prefetch", ADVISED, {}, FULL, f"{BY_CLASS} WanAttentionBlock"),
    Case("fsdp-backward-prefetch", NA, {}, FULL, ZERO2),
    # E LoRA
    Case("peft-lora", ON, {"use_peft_lora": True, "target_name": "q,k,v"}),
    Case("peft-lora", OFF),
    Case("peft-lora", NA, {}, FULL),
    Case("peft-lora", ADVISED, {}, FULL, "--num_processes 4", directives=("gres=gpu:rtx4090:4",)),
    Case("kohya-lora", ON, shows="train_lora"),
    Case("kohya-lora", OFF, {"use_peft_lora": True, "target_name": "q,k,v"}),
    Case("kohya-lora", NA, {}, FULL),
    Case("lora-targets", ON, {"target_name": "q,k,v,ffn.0,ffn.2"}),
    Case("lora-targets", ON, shows="all linear layers"),
    Case("lora-targets", ON, {}, REWARD),
    Case("lora-targets", ADVISED, {"use_peft_lora": True}, writes="q,k,v,ffn.0,ffn.2"),
    Case("lora-targets", ADVISED, {"use_peft_lora": True}, FLUX, writes="ff_context.0"),
    Case("lora-targets", NA, {}, FULL),
    *(
        Case(f"{name}-dropout", status, flags, script, code=code)
        for name in ("rank", "module")
        for status, flags, script, code in (
            (OFF, {}, LORA, ""),
            (NA, {"use_peft_lora": True, "target_name": "q"}, LORA, ""),
            (NA, {}, FULL, ""),
            (ON, {}, LORA, f"create_network(1.0, 64, 32, None, transformer3d, {name}_dropout=0.1)"),
        )
    ),
    # F attention
    Case("flash-attention-2", ON, files=PINNED),
    Case("flash-attention-2", UNKNOWN),
    Case("flash-attention-2", ADVISED, before=SDPA),
    Case("flash-attention-2", OFF, before=SDPA, directives=(H100,)),
    Case("flash-attention-2", NA, before=NPU),
    Case("flash-attention-3", ON, directives=(H100,), files={"requirements.txt": "flash-attn-3\n"}),
    Case("flash-attention-3", ADVISED, before=SDPA, directives=(H100,)),
    Case("flash-attention-3", OFF, files=PINNED),
    Case("flash-attention-3", NA, before=NPU),
    Case("sdpa", ON, directives=(V100,)),
    Case("sdpa", PARTLY, before=SDPA, writes="VIDEOX_ATTENTION_TYPE=FLASH_ATTENTION"),
    Case("sdpa", OFF, files=PINNED),
    Case("sdpa", NA, before=NPU),
    Case("varlen-attention", ON, files=PINNED),
    Case("varlen-attention", OFF, before=SDPA),
    Case("varlen-attention", NA, directives=(V100,)),
    Case("varlen-attention", UNKNOWN),
    Case("sage-attention", ON, before=SAGE),
    Case("sage-attention", OFF, PROMPTS),
    Case("sage-attention", NA),
    Case("sparse-linear-attention", ON, {}, "turbodiffusion/train_distill"),
    Case("sparse-linear-attention", NA),
    # G data
    Case("dataloader-workers", ON, {"dataloader_num_workers": 8}),
    Case("dataloader-workers", PARTLY, {"dataloader_num_workers": 1}),
    Case("dataloader-workers", ADVISED, {"dataloader_num_workers": 0}),
    Case("dataloader-workers", ADVISED, writes="--dataloader_num_workers=4"),
    Case("persistent-workers", ON, {"dataloader_num_workers": 8}),
    Case("persistent-workers", OFF),
    Case("bucketing", ON, BUCKETS),
    Case("bucketing", OFF),
    Case("bucketing", OFF, {"random_hw_adapt": True, "image_sample_size": "320 640"}),
    Case("bucketing", ADVISED, {"random_hw_adapt": True}, writes="--enable_bucket"),
    Case("bucketing", NA, {}, REWARD),
    Case("bucketing", NA, BUCKETS, DISTILL),
    Case("random-hw-adapt", ON, BY_TOKENS, DISTILL),
    Case("random-hw-adapt", NA, ADAPTED, DISTILL),
    Case("random-hw-adapt", ON, ADAPTED),
    Case("random-hw-adapt", OFF, BUCKETS),
    Case("random-hw-adapt", NA, {"random_hw_adapt": True}),
    Case("random-hw-adapt", NA, {**ADAPTED, "fix_sample_size": "480 832"}),
    Case("video-token-length", ON, BY_TOKENS),
    Case("video-token-length", OFF, ADAPTED),
    Case("video-token-length", NA, BUCKETS),
    Case("video-token-length", NA, ADAPTED, FLUX),
    Case("auto-tile-batch", ON, {**BY_TOKENS, "auto_tile_batch_size": True}),
    Case("auto-tile-batch", OFF, BY_TOKENS),
    Case("auto-tile-batch", NA, {"auto_tile_batch_size": True}),
    Case("auto-tile-batch", NA, {**BY_TOKENS, "auto_tile_batch_size": True}, FULL, ZERO3),
    Case("same-token-length", ON, {"keep_all_node_same_token_length": True}, FULL, ZERO2),
    Case("same-token-length", OFF, {}, FULL, ZERO2),
    Case("same-token-length", NA),
    Case("frame-stride", ON, {"video_sample_stride": 2}),
    Case("frame-stride", ON, shows="video_sample_stride"),
    Case("frame-stride", OFF, {"video_sample_stride": 1}),
    Case("frame-stride", NA, {}, FLUX),
    Case("frame-stride", NA, {"video_sample_stride": 2}, DISTILL),
    Case("random-frame-crop", ON, {"random_frame_crop": True}),
    Case("random-frame-crop", OFF),
    Case("random-frame-crop", NA, {"video_sample_n_frames": 1}),
    Case("preencoded-dataset", OFF, writes="ImageVideoSafetensorsDataset"),
    Case("preencoded-dataset", NA, {}, REWARD),
    Case("preencoded-dataset", NA, {}, DISTILL),
    Case(
        "preencoded-dataset", ON, code="train_dataset = ImageVideoSafetensorsDataset('a.json', 'b')"
    ),
    Case("text-dropout", ON, shows="text_drop_ratio=0.1"),
    Case("text-dropout", NA, {}, REWARD),
    Case("text-dropout", OFF, {}, DISTILL),
    Case("text-dropout", ON, {}, CONTROL_DISTILL),
    Case("text-dropout", NA, {}, FLASH_HEAD),
    Case("text-dropout", ON, code=f"train_dataset = {OWN_DATA}('a.json', text_drop_ratio=0.1)"),
    Case("text-dropout", OFF, code=f"train_dataset = {OWN_DATA}('a.json', text_drop_ratio=0)"),
    Case("text-dropout", OFF, code=f"train_dataset = {OWN_DATA}('a.json', text_drop_ratio=-1)"),
    Case("text-dropout", UNKNOWN, code=f"train_dataset = {OWN_DATA}('a.json')"),
    Case(
        "text-dropout",
        ON,
        code="train_dataset = ImageVideoDataset('a.json')",
        shows="default of ImageVideoDataset",
    ),
    Case("text-dropout", ON, code="ImageVideoDataset('a.json', 'b', text_drop_ratio=0.2)"),
    Case("text-dropout", OFF, code="ImageVideoDataset('a.json', 'b', text_drop_ratio=0.0)"),
    # H strategy
    Case("lr-scheduler", ON, {"lr_scheduler": "cosine", "lr_warmup_steps": 100}),
    Case("lr-scheduler", ON, {"lr_scheduler": "constant_with_warmup"}),
    Case("lr-scheduler", PARTLY, {"lr_scheduler": "cosine", "lr_warmup_steps": 0}),
    Case("lr-scheduler", OFF),
    Case("warmup", ON, {"lr_scheduler": "constant_with_warmup", "lr_warmup_steps": 100}),
    Case("warmup", ON, {"lr_scheduler": "cosine"}),
    Case("warmup", ADVISED, {"lr_warmup_steps": 100}, writes="constant_with_warmup"),
    Case("warmup", OFF),
    Case("warmup", OFF, {"lr_scheduler": "cosine", "lr_warmup_steps": 0}),
    Case("gradient-clipping", ON, {"max_grad_norm": 0.05}),
    Case("gradient-clipping", ON, {}, FULL, ZERO3),
    Case("gradient-clipping", ON, {}, FULL, OWN, files=ds(', "gradient_clipping": 0.05')),
    Case("gradient-clipping", ON, {}, FULL, OWN, files=ds(', "gradient_clipping": "auto"')),
    Case("gradient-clipping", ADVISED, {"max_grad_norm": 0.05}, FULL, ZERO2, writes="0.05"),
    Case("gradient-clipping", ADVISED, {}, FULL, OWN, files=ds(""), writes="gradient_clipping"),
    Case("gradient-clipping", OFF, {"max_grad_norm": 0}),
    Case("abnormal-norm-clip", ON, {"abnormal_norm_clip_start": 500}, FULL, ONE),
    Case("abnormal-norm-clip", ON, {}, FULL, ONE),
    Case("abnormal-norm-clip", NA, {}, FULL, ZERO2),
    Case("abnormal-norm-clip", NA, {"use_deepspeed": True}, FULL, ONE),
    Case("abnormal-norm-clip", NA, {}, FULL, FSDP),
    Case("abnormal-norm-clip", NA),
    Case("abnormal-norm-clip", NA, {}, CONTROL_DISTILL, ONE),
    Case("ema", ON, {"use_ema": True}, FULL),
    Case("ema", OFF, {}, FULL),
    Case("ema", NA, {"use_ema": True}),
    Case("ema", NA, {"use_ema": True}, CONTROL_DISTILL),
    Case("uniform-sampling", ON, {"uniform_sampling": True}),
    Case("uniform-sampling", OFF),
    Case("uniform-sampling", NA, {}, REWARD),
    Case("motion-sub-loss", ON, {"motion_sub_loss": True}),
    Case("motion-sub-loss", OFF),
    Case("motion-sub-loss", NA, {"video_sample_n_frames": 1, "motion_sub_loss": True}),
    Case("motion-sub-loss", NA, {}, FLUX),
    Case("motion-sub-loss", NA, {"motion_sub_loss": True}, DISTILL),
    Case("timestep-weighting", ON, {"weighting_scheme": "logit_normal"}),
    Case("timestep-weighting", OFF),
    Case("timestep-weighting", OFF, {"weighting_scheme": "mode", "uniform_sampling": True}),
    Case("timestep-weighting", ON, {"weighting_scheme": "cosmap", "uniform_sampling": True}),
    Case("timestep-weighting", NA, {}, REWARD),
    Case("dual-learning-rate", ON, {"trainable_modules_low_learning_rate": "ffn"}, FULL),
    Case("dual-learning-rate", OFF, {}, FULL),
    Case("dual-learning-rate", NA),
    Case("reward-lora", ON, {}, REWARD),
    Case("reward-lora", OFF),
    Case("reward-lora", NA, {}, FULL),
    Case("reward-lora", NA, {}, FLUX),
    # I by changing the code
    Case("torch-compile", OFF, writes="module.compile"),
    Case("torch-compile", NA, before=NPU),
    Case("torch-compile", ON, code="transformer3d = torch.compile(transformer3d)"),
    Case("torch-compile", ON, launcher=f"{ONE} --dynamo_backend inductor"),
    Case("liger-kernel", OFF, writes="LigerRMSNorm"),
    Case("liger-kernel", NA, before=NPU),
    Case("liger-kernel", OFF, {}, COG, writes="LigerLayerNorm"),
    Case("liger-kernel", ON, code="from liger_kernel.transformers import LigerRMSNorm"),
    Case("cuda-graph", OFF, writes="reduce-overhead"),
    Case("cuda-graph", NA, BUCKETS),
    Case("cuda-graph", NA, {}, DISTILL),
    Case("cuda-graph", OFF, {"random_hw_adapt": True}),
    Case("cuda-graph", ON, code="graphed = torch.cuda.make_graphed_callables(transformer3d, ())"),
    Case("qlora-4bit", OFF, writes="LinearNF4"),
    Case("qlora-4bit", ADVISED, directives=(RTX4090,), writes="LinearNF4"),
    Case("qlora-4bit", NA, {}, FULL),
    Case("qlora-4bit", ON, code="layer = bnb.nn.LinearNF4(4096, 4096, False)"),
    Case("vae-spatial-tiling", OFF, {}, COG, writes="enable_tiling"),
    Case("vae-spatial-tiling", NA),
    Case("vae-spatial-tiling", NA, {}, "z_image/train_distill"),
    Case("vae-spatial-tiling", ON, {}, "hunyuanvideo/train"),
    Case("vae-spatial-tiling", OFF, {}, "flux2/train", writes="use_tiling = True"),
    Case("vae-spatial-tiling", ON, {}, COG, code="vae.enable_tiling()"),
    Case("preencoded-text", OFF, {"low_vram": True}, writes="prompt_embeds"),
    Case("preencoded-text", OFF, {"enable_text_encoder_in_dataloader": True}),
    Case("preencoded-text", OFF),
    Case("preencoded-text", OFF, {"validation_prompts": "a cat"}),
    Case("preencoded-text", NA, {"train_text_encoder": True}),
    Case("preencoded-text", OFF, {}, REWARD),
    Case("preencoded-text", NA, {}, FLASH_HEAD),
    Case("fp8-training", OFF, {}, FULL, directives=(H100,), writes="torchao"),
    Case("fp8-training", NA, {}, FULL, directives=(A100,)),
    Case("fp8-training", OFF, directives=(H100,), writes="torchao"),
    Case("fp8-training", NA, directives=(A100,)),
    Case("fp8-training", ON, {}, FULL, code="convert_to_float8_training(transformer3d)"),
    Case(
        "zero-plus-plus",
        ON,
        {},
        FULL,
        OWN,
        files={"ds.json": '{"zero_optimization": {"stage": 3, "zero_hpz_partition_size": 8}}'},
    ),
    Case(
        "zero-plus-plus",
        ADVISED,
        {},
        FULL,
        f"{OWN.replace('8', '16', 1)} --num_machines 2",
        files=ds(""),
        writes="zero_hpz_partition_size",
    ),
    Case("zero-plus-plus", NA, {}, FULL, ZERO2),
    Case(
        "nvme-offload",
        ON,
        {},
        FULL,
        OWN,
        files={
            "ds.json": '{"zero_optimization": {"stage": 3, "offload_param": '
            '{"device": "nvme", "nvme_path": "/nvme"}}}'
        },
    ),
    Case("nvme-offload", OFF, {}, FULL, OFFLOADED, writes="nvme_path"),
    Case("nvme-offload", NA, {}, FULL, ZERO2),
    Case("fused-optimizer", OFF, {}, FULL, writes="fused=True"),
    Case("fused-optimizer", OFF, {"use_came": True}, FULL),
    Case("fused-optimizer", NA, {}, FULL, OFFLOADED),
    Case("fused-optimizer", ON, code="optimizer = torch.optim.AdamW(params, lr=1e-5, fused=True)"),
    Case("prefetch-factor", ON, {"dataloader_num_workers": 8}, shows="prefetch_factor"),
    Case("prefetch-factor", OFF),
    Case("sequence-parallel-training", OFF, {}, FULL, ZERO2, writes="DistributedAttention"),
    Case("sequence-parallel-training", NA),
    Case(
        "sequence-parallel-training",
        ON,
        {},
        FULL,
        ZERO2,
        code="attention = DistributedAttention(local, group)",
    ),
    Case("teacache-training", OFF, PROMPTS, writes="enable_teacache"),
    Case("teacache-training", NA),
    Case("teacache-training", ON, code="pipeline.transformer.enable_teacache([1.0], 25, 0.1)"),
)

_OPTIONAL = "a run may do without it: whether it helps shows in the run"
_BY_CODE = "no flag of the scripts has it: the report shows the change"
NEVER_ADVISED: Mapping[str, str] = {
    **dict.fromkeys(
        """
        tf32 fp8-inference came fractional-checkpointing gradient-accumulation multi-stream-vae
        kohya-lora rank-dropout module-dropout varlen-attention sage-attention
        sparse-linear-attention random-hw-adapt video-token-length auto-tile-batch
        same-token-length frame-stride random-frame-crop preencoded-dataset text-dropout
        abnormal-norm-clip ema uniform-sampling motion-sub-loss timestep-weighting
        dual-learning-rate reward-lora persistent-workers prefetch-factor
        """.split(),  # noqa: SIM905
        _OPTIONAL,
    ),
    **dict.fromkeys(
        """
        torch-compile liger-kernel cuda-graph vae-spatial-tiling preencoded-text fp8-training
        nvme-offload fused-optimizer sequence-parallel-training teacache-training
        """.split(),  # noqa: SIM905
        _BY_CODE,
    ),
    "zero3": "FSDP is advised in its place, as VideoX-Fun's READMEs do",
    "zero3-cpu-offload": "no estimate of a video model's activations says that it is needed",
    "sdpa": "advised against, in part",
}
ALWAYS_APPLIES: Mapping[str, str] = {
    **dict.fromkeys(
        """
        mixed-precision-fp16 gradient-checkpointing gradient-accumulation
        low-vram zero3-cpu-offload dataloader-workers lr-scheduler warmup gradient-clipping
        prefetch-factor persistent-workers fractional-checkpointing
        """.split(),  # noqa: SIM905
        "every script has it, whatever it trains",
    ),
}
NEVER_OFF: Mapping[str, str] = {
    "sparse-linear-attention": "the model has it or not",
    "fp8-inference": "it is for inference",
    "abnormal-norm-clip": "the scripts have it on by default",
    "lora-targets": "without a name all linear layers are trained",
    "preencoded-text": "on would be another script",
}
NEVER_ON = {"preencoded-text": "a flag of a fork's own alone, in a test of its own"}
