"""GPU126, GPU230 to GPU235, GPU645 to GPU655: memory, adapters and training in VideoX-Fun."""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, Optional

from flake8_gpu_training.checks import _flow as flow
from flake8_gpu_training.checks import _sources as sources
from flake8_gpu_training.checks._by_framework import by_framework
from flake8_gpu_training.checks._judging import (
    Snippet,
    advise,
    by_code,
    by_itself,
    cannot_apply,
    cannot_tell,
    off,
    on,
    seen,
)
from flake8_gpu_training.checks._options import option_check
from flake8_gpu_training.checks._programs import calls, first_call, keyword
from flake8_gpu_training.checks._scale import memory_gib, number, text
from flake8_gpu_training.checks._settings import is_on
from flake8_gpu_training.checks._videox import (
    FULL_TUNING,
    LORA,
    README,
    SCRIPTS,
    figure,
    flag,
    frames,
    is_deepspeed,
    is_fsdp,
    is_lora,
    item,
    of_videox,
    script,
    switch,
    takes,
    trains_images,
    unless_lora,
    without,
)
from flake8_gpu_training.checks._videox_samples import NO_SAMPLES, has_one_stream, prompts_only
from flake8_gpu_training.checks._videox_shared import FULL_TUNING_ONLY
from flake8_gpu_training.checks.adapters import adapters
from flake8_gpu_training.checks.base import (
    Check,
    Example,
    Impact,
    Judgement,
    Priority,
    Status,
)
from flake8_gpu_training.facts import Origin, Setting, known
from flake8_gpu_training.frameworks.videox_fun import ALL_BLOCKS, blocks
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

# --- GPU126: the class that FSDP wraps ---------------------------------------------------------

_POLICY, _CLASSES = "fsdp_auto_wrap_policy", "fsdp_transformer_layer_cls_to_wrap"


def _launched(run: Run, name: str) -> Optional[Setting]:
    """An option of ``accelerate launch``, or what its file says."""
    written = run.launcher.options.get(name)
    if written is None and run.accelerate is not None:
        written = run.accelerate.settings().get(f"fsdp_config.{name}")
    return written


@of_videox
def _wrapped(run: Run) -> Judgement:
    if not is_fsdp(run):
        return cannot_apply(Text("未使用 FSDP", "FSDP is not in use"))
    right, policy, named = blocks(run), _launched(run, _POLICY), _launched(run, _CLASSES)
    if named is None:
        if not right or (policy is not None and not policy.known) or run.launcher.is_open:
            return cannot_tell(Text("FSDP 包装策略未知", "how FSDP wraps is not known"))
        if policy is not None and "SIZE" in str(policy.value).upper():
            return on(policy)
        return _advise_class(run, right, policy, "nothing names the layers to wrap")
    if not named.known or not right:
        return cannot_tell(named)
    given = {part.strip() for part in str(named.value).split(",")}
    strangers = sorted(given & ALL_BLOCKS - set(right))
    if strangers:
        return _advise_class(run, right, named, f"the model has no {', '.join(strangers)}")
    return on(named) if given & set(right) else cannot_tell(named)


def _advise_class(run: Run, right: tuple[str, ...], at: Optional[Setting], why: str) -> Judgement:
    wanted = ",".join(right)
    flags = f"--{_POLICY} TRANSFORMER_BASED_WRAP --{_CLASSES} {wanted}"
    return advise(
        run,
        f"{why}, so that FSDP does not gather them one by one",
        Text("FSDP 未按该模型的层包装", "FSDP does not wrap the layers of this model"),
        Text(f"包装类设为 {wanted}", f"wrap {wanted}"),
        snippet=Snippet(f"launch with {flags}", flags.replace(" --", " \\\n--"), "bash"),
        at=at,
        share=0.3,
    )


# --- GPU230, GPU232: weights in FP8, some layers recomputed -------------------------------------


@of_videox
def _fp8_weights(run: Run) -> Judgement:
    called = first_call(run, ".convert_model_weight_to_float8", ".convert_weight_dtype_wrapper")
    if called is not None:
        return seen(called)
    return cannot_apply(Text("仅用于推理（权重存为 FP8）", "for inference only (weights in FP8)"))


@of_videox
def _fractional(run: Run) -> Judgement:
    for call in calls(run, ".apply_checkpointing"):
        share = keyword(call, "p")
        if share is not None and known(share) and share != 1:
            return seen(call)
    setting = run.practice("gradient_checkpointing")
    if not setting.known:
        return cannot_tell(setting)
    if setting.value is not True:
        return off(Text("未启用梯度检查点", "gradient checkpointing is off"))
    return by_code(
        Text("模型对所有层都重计算", "the models recompute every layer"),
        "# in the model's forward: the first half of the layers keeps its activations\n"
        "if torch.is_grad_enabled() and self.gradient_checkpointing "
        "and index >= len(self.blocks) // 2:",
    )


# --- GPU233 to GPU235: where VAE and text encoder are, and how they run --------------------------

_SMALL_GIB = 24  # a GPU that the text encoder of these models fills by a third or more


@of_videox
def _low_vram(run: Run) -> Judgement:
    lacking = without(run, "low_vram")
    if lacking is not None:
        return lacking
    setting, memory = flag(run, "low_vram"), memory_gib(run)
    if not setting.known:
        return cannot_tell(setting)
    if is_on(setting):
        return on(setting)
    if memory is None or memory > _SMALL_GIB:
        return off(
            Text(
                "可选：显存不足时把 VAE 与文本编码器移到 CPU（每步搬运，较慢）",
                "optional: VAE and text encoder wait on the CPU where memory is short (slower)",
            ),
            setting,
        )
    return advise(
        run,
        f"VAE and text encoder stay on a GPU of {memory:g} GiB beside the transformer",
        Text(
            f"{memory:g} GiB 显存同时存放 VAE、文本编码器与 Transformer",
            f"{memory:g} GiB hold VAE, text encoder and transformer at once",
        ),
        Text("启用 --low_vram，用完即移回 CPU", "set --low_vram: they wait on the CPU"),
        parameters={"low_vram": True},
    )


_DEFAULT_MINI_BATCH = 32
_MANY = 4  # samples a step from which encoding them at once makes the peak of memory
_TILED = 4  # as --auto_tile_batch_size repeats short samples


@of_videox
def _mini_batch(run: Run) -> Judgement:
    lacking = without(run, "vae_mini_batch")
    if lacking is not None:
        return lacking
    setting = flag(run, "vae_mini_batch", default=_DEFAULT_MINI_BATCH)
    batch = number(run, "micro_batch_size")
    if not setting.known:
        return cannot_tell(setting)
    if prompts_only(run):
        return cannot_apply(NO_SAMPLES)
    size = figure(run, "vae_mini_batch", default=_DEFAULT_MINI_BATCH)
    if size is not None and size < _DEFAULT_MINI_BATCH:
        return on(setting)
    if batch is None:
        return cannot_tell(run.practice("micro_batch_size"))
    if is_on(flag(run, "auto_tile_batch_size")):
        batch *= _TILED
    if batch <= 1:
        return cannot_apply(Text("每步只有一个样本", "one sample a step"))
    if batch < _MANY or trains_images(run):
        return off(Text("可选：VAE 逐个编码样本", "optional: the VAE encodes one by one"), setting)
    return advise(
        run,
        f"the VAE encodes {batch:.0f} samples at once, {size or 0:.0f} are allowed",
        Text(f"VAE 一次编码 {batch:.0f} 个视频", f"the VAE encodes {batch:.0f} videos at once"),
        Text("设 --vae_mini_batch=1，逐个编码", "set --vae_mini_batch=1: one after the other"),
        parameters={"vae_mini_batch": 1},
        at=setting if setting.location is not None else None,
    )


_STREAMS = switch(
    "multi_stream",
    Text(
        "可选：两路 VAE 编码放在两个 CUDA 流", "optional: two VAE encodings on streams of their own"
    ),
    has_one_stream,
)

# --- GPU645 to GPU648: adapters -------------------------------------------------------------------


@of_videox
def _implementation(run: Run) -> Judgement:
    trained = is_lora(run)
    if trained is None:
        return cannot_tell(run.practice("tuning"))
    if not trained:
        advised = adapters(run)
        if advised.status is not Status.RECOMMENDED:
            return cannot_apply(FULL_TUNING)
        action = Text(f"{advised.action.zh}（见 GPU604）", f"{advised.action.en} (see GPU604)")
        return replace(advised, variant="peft", findings=(), change=None, action=action)
    setting = flag(run, "use_peft_lora")
    if not setting.known:
        return cannot_tell(setting)
    if is_on(setting):
        return on(setting, "peft")
    made = first_call(run, ".create_network")
    return on(run.practice("tuning"), "kohya") if made is None else seen(made, "kohya")


# The layers that VideoX-Fun's own READMEs train by the folder of the script.
_TARGETS = {
    "cogvideox_fun": "to_q,to_k,to_v,ff.0,ff.2",
    "flux": "to_q,to_k,to_v,ff.0,ff.2,ff_context.0,ff_context.2",
}
_TARGETS_OF_WAN = "q,k,v,ffn.0,ffn.2"


_ALL_LAYERS = Text(
    "默认训练所有线性层（lora_utils.py）", "all linear layers by default (lora_utils.py)"
)


@of_videox
def _targets(run: Run) -> Judgement:
    trained = unless_lora(run)
    if trained is not None:
        return trained
    if takes(run, "target_name") is False:
        return by_itself(_ALL_LAYERS)
    setting = flag(run, "target_name", default=None)
    if not setting.known:
        return cannot_tell(setting)
    if setting.value:
        return on(setting)
    if not is_on(flag(run, "use_peft_lora")):
        return by_itself(_ALL_LAYERS)
    family = script(run).family
    wanted = _TARGETS_OF_WAN if family.startswith("wan") else _TARGETS.get(family)
    if wanted is None:
        return cannot_tell(Text("该模型的目标层未知", "the layers of this model are not known"))
    return advise(
        run,
        "with --use_peft_lora the script splits the name of the layers, and stops at None",
        Text(
            "--use_peft_lora 未给 --target_name，启动即报错",
            "--use_peft_lora without --target_name fails at start",
        ),
        Text(f"设 --target_name={wanted}", f"set --target_name={wanted}"),
        parameters={"target_name": wanted},
        priority=Priority.HIGH,
    )


def _dropped(name: str, how: Text) -> Callable[[Run], Judgement]:
    """Judges a dropout of VideoX-Fun's own adapter modules, which no flag reaches."""

    @of_videox
    def judge(run: Run) -> Judgement:
        for call in calls(run, ".create_network", ".LoRANetwork", ".LoRAModule"):
            if isinstance(keyword(call, name), (int, float)) and keyword(call, name):
                return seen(call)
        trained = unless_lora(run)
        if trained is not None:
            return trained
        if is_on(flag(run, "use_peft_lora")):
            return cannot_apply(Text("PEFT 的 LoRA 没有此项", "PEFT's LoRA does not have it"))
        return by_code(how, f"lora = module_class(..., dropout=dropout, {name}=0.1)")

    return judge


_RANK_DROPOUT = _dropped(
    "rank_dropout",
    Text("create_network 不传 rank_dropout", "create_network does not pass rank_dropout on"),
)
_MODULE_DROPOUT = _dropped(
    "module_dropout",
    Text("create_network 不传 module_dropout", "create_network does not pass module_dropout on"),
)

# --- GPU649 to GPU655: how it learns --------------------------------------------------------------


@of_videox
def _warmup(run: Run) -> Judgement:
    schedule, steps = run.practice("lr_scheduler"), run.practice("warmup")
    if not schedule.known or not steps.known:
        return cannot_tell(schedule if not schedule.known else steps)
    if (number(run, "warmup") or 0) > 0:
        return on(steps)
    written = flag(run, "lr_warmup_steps", default=500)
    by_hand = written.explicit and written.origin is not Origin.DEFAULT
    if text(run, "lr_scheduler") != "constant":
        return off(Text("预热步数为 0", "no steps of warm-up"), steps)
    if not by_hand or not is_on(written):
        return off(Text("constant 调度没有预热", "the constant schedule has no warm-up"), schedule)
    return advise(
        run,
        f"--lr_warmup_steps={written.value} has no effect with the constant schedule",
        Text(
            f"--lr_warmup_steps={written.value} 在 constant 调度下不起作用",
            f"--lr_warmup_steps={written.value} has no effect with the constant schedule",
        ),
        Text("设 --lr_scheduler=constant_with_warmup", "set --lr_scheduler=constant_with_warmup"),
        parameters={"lr_scheduler": "constant_with_warmup"},
        at=written,
    )


@of_videox
def _abnormal(run: Run) -> Judgement:
    name = "abnormal_norm_clip_start"
    lacking = without(run, name)
    if lacking is not None:
        return lacking
    asked = (flag(run, name) for name in ("use_deepspeed", "use_fsdp"))
    if is_deepspeed(run) or is_fsdp(run) or any(one.known and is_on(one) for one in asked):
        return cannot_apply(
            Text(
                "DeepSpeed 与 FSDP 下脚本不使用（含 --use_deepspeed、--use_fsdp）",
                "the scripts leave it out under DeepSpeed and FSDP",
            )
        )
    setting = flag(run, name, default=1000)
    return on(setting) if setting.known else cannot_tell(setting)


def _keeps_adapters(run: Run) -> Optional[Text]:
    """Why no averaged weights are kept: the scripts for adapters declare the flag only."""
    return None if is_lora(run) is False else FULL_TUNING_ONLY


_EMA = switch(
    "use_ema",
    Text(
        "可选：保存滑动平均权重（多一份权重的显存）",
        "optional: averaged weights (a copy in memory)",
    ),
    _keeps_adapters,
)
_UNIFORM = switch(
    "uniform_sampling",
    Text("可选：时间步在各进程间均匀分布", "optional: time steps spread evenly over the ranks"),
)


def _has_one_frame(run: Run) -> Optional[Text]:
    one = trains_images(run) or frames(run) == 1
    return Text("只训练图像", "it trains images only") if one else None


_MOTION = switch(
    "motion_sub_loss",
    Text("可选：相邻帧差的损失，利于运动", "optional: a loss on differences of frames"),
    _has_one_frame,
)
_OF_SAMPLING = ("logit_normal", "mode")


@of_videox
def _weighting(run: Run) -> Judgement:
    lacking = without(run, "weighting_scheme")
    if lacking is not None:
        return lacking
    setting = flag(run, "weighting_scheme", default="none")
    if not setting.known:
        return cannot_tell(setting)
    if not is_on(setting):
        return off(Text("可选：按时间步加权或采样", "optional: time steps weighted"), setting)
    if setting.value in _OF_SAMPLING and is_on(flag(run, "uniform_sampling")):
        why = f"--weighting_scheme={setting.value}"
        return off(
            Text(
                f"--uniform_sampling 下 {why} 不起作用",
                f"{why} does nothing beside --uniform_sampling",
            ),
            setting,
        )
    return on(setting)


_REWARDED = ("cogvideox_fun", "wan2.1", "wan2.1_fun", "wan2.2_fun")


@of_videox
def _reward(run: Run) -> Judgement:
    of = script(run)
    if of.rewards:
        return on(f"scripts/{of.family}/{of.name}.py")
    if not of.family:
        return cannot_tell(Text("训练脚本未知", "the training script is not known"))
    if of.family not in _REWARDED:
        return cannot_apply(
            Text("该模型没有奖励训练脚本", "this model has no script that trains by rewards")
        )
    if is_lora(run) is not True:
        return cannot_apply(FULL_TUNING)
    path = f"scripts/{of.family}/train_reward_lora.py"
    return off(Text(f"可选：之后用 {path} 对齐偏好", f"optional: {path} afterwards"))


_LAUNCH = """\
accelerate launch --num_processes 8 --mixed_precision=bf16{} \\
    scripts/wan2.1_fun/{}.py \\
    --pretrained_model_name_or_path=models/Wan2.1-Fun-V1.1-14B-InP \\
    --train_data_meta=data/metadata.json --train_batch_size={} \\
    --gradient_checkpointing --dataloader_num_workers=8{}
"""


def _example(bad: str, good: str, script: str = "train", batch: int = 1) -> tuple[Example, ...]:
    """Flags of a launch that is to be mended, and mended."""
    before, after = (_LAUNCH.format("", script, batch, flags) for flags in (bad, good))
    return (Example("videox_fun", "train.sh", before, after),)


_FSDP = (
    " \\\n    --use_fsdp --fsdp_sharding_strategy FULL_SHARD --fsdp_backward_prefetch BACKWARD_PRE"
    " \\\n    --fsdp_auto_wrap_policy TRANSFORMER_BASED_WRAP"
    " --fsdp_transformer_layer_cls_to_wrap {}"
)
_WRAPPING = Example(
    "videox_fun",
    "train.sh",
    _LAUNCH.format(_FSDP.format("CogVideoXBlock"), "train", 1, ""),
    _LAUNCH.format(_FSDP.format("WanAttentionBlock"), "train", 1, ""),
)
_SMALL = "#!/bin/bash\n#SBATCH --gres=gpu:rtx4090:8\n"
_CROWDED = Example(
    "videox_fun",
    "train.sh",
    _SMALL + _LAUNCH.format("", "train_lora", 1, ""),
    _SMALL + _LAUNCH.format("", "train_lora", 1, " --low_vram"),
)

CHECKS: tuple[Check, ...] = (
    Check(
        "GPU126",
        "fsdp-wrap-class",
        Text("FSDP 包装类", "Class that FSDP wraps"),
        Priority.HIGH,
        _wrapped,
        why="FSDP gathers what it wraps as one piece. Without the layers' class it gathers the "
        "whole transformer at once; with one that the model lacks Accelerate stops.",
        fix="Name the class of the model's own layers: WanAttentionBlock for Wan, "
        "CogVideoXBlock for CogVideoX, both classes for models with two kinds.",
        items=(item("D", "fsdp-full-shard", 4, "sharding"),),
        impact=Impact(
            memory=(-70, -30),
            note=Text("每次只收集一层的权重", "one layer's weights are gathered at a time"),
            source=sources.PYTORCH_FSDP,
        ),
        examples=(_WRAPPING,),
        sources=(README, "VideoX-Fun 1.0.1, videox_fun/models", sources.PYTORCH_FSDP),
    ),
    option_check(
        "GPU230",
        "fp8-weights",
        Text("FP8 权重推理", "Weights in FP8 for inference"),
        _fp8_weights,
        item("A", "fp8-inference", 0.5),
        "Weights in FP8 take half the memory while samples are made; nothing learns in them.",
        "Call convert_model_weight_to_float8 where a program only samples.",
        "VideoX-Fun 1.0.1, videox_fun/utils/fp8_optimization.py",
    ),
    option_check(
        "GPU232",
        "fractional-checkpointing",
        Text("部分层重计算", "Partial checkpointing"),
        _fractional,
        item("B", "fractional-checkpointing", 0.5),
        "Layers that keep their activations need no second forward pass: memory that is left "
        "over buys time.",
        "Recompute every second layer in the model's forward.",
        sources.CHECKPOINTING,
    ),
    option_check(
        "GPU233",
        "low-vram",
        Text("低显存模式", "Low-memory mode"),
        _low_vram,
        item("C", "low-vram", 1),
        "The text encoder of a video model takes 9 GB or more, and works for a moment of each "
        "step.",
        "Set --low_vram on GPUs of 24 GB; leave it out where everything fits.",
        SCRIPTS,
        priority=Priority.HIGH,
        impact=Impact(
            memory=(-50, -20),
            throughput=(-20, -5),
            note=Text("每步搬运 VAE 与文本编码器", "VAE and text encoder move in every step"),
            source=f"range of the priority class, not a measurement; {SCRIPTS}",
        ),
        examples=(_CROWDED,),
    ),
    option_check(
        "GPU234",
        "vae-mini-batch",
        Text("VAE 小批编码", "VAE mini-batches"),
        _mini_batch,
        item("C", "vae-mini-batch", 1),
        "A VAE keeps the activations of all videos that it encodes at once.",
        "Set --vae_mini_batch=1 for videos.",
        SCRIPTS,
        priority=Priority.MEDIUM,
        examples=_example("", " --vae_mini_batch=1", batch=4),
    ),
    option_check(
        "GPU235",
        "multi-stream-vae",
        Text("VAE 多流编码", "Multi-stream VAE"),
        _STREAMS,
        item("C", "multi-stream-vae", 1),
        "Inpainting and control encode two videos a step, which do not wait for each other.",
        "Set --multi_stream where memory is left.",
        SCRIPTS,
    ),
    option_check(
        "GPU645",
        "lora-implementation",
        Text("LoRA 实现", "Implementation of LoRA"),
        _implementation,
        (
            item("E", "peft-lora", 3, "adapters", "peft"),
            item("E", "kohya-lora", 3, "adapters", "kohya"),
        ),
        "PEFT's adapters sit in the model; Kohya's are a network beside it, in the format of "
        "ComfyUI.",
        "Set --use_peft_lora with --rank, --network_alpha and --target_name.",
        LORA,
    ),
    option_check(
        "GPU646",
        "lora-targets",
        Text("LoRA 目标层", "LoRA target modules"),
        by_framework(_targets, flow_factory=flow.targets),
        (item("E", "lora-targets", 1), flow.item("C", "target-modules", 1)),
        "Adapters on attention and feed-forward layers learn most; the script does not start "
        "with PEFT and no name.",
        "Set --target_name as the READMEs do.",
        SCRIPTS,
        examples=_example(
            " --use_peft_lora",
            ' --use_peft_lora --target_name="q,k,v,ffn.0,ffn.2"',
            "train_lora",
        ),
    ),
    option_check(
        "GPU647",
        "rank-dropout",
        Text("秩 Dropout", "Rank dropout"),
        _RANK_DROPOUT,
        item("E", "rank-dropout", 0.5),
        "Adapters of a high rank overfit small data sets.",
        "Pass rank_dropout on to LoRAModule.",
        LORA,
    ),
    option_check(
        "GPU648",
        "module-dropout",
        Text("模块 Dropout", "Module dropout"),
        _MODULE_DROPOUT,
        item("E", "module-dropout", 0.5),
        "Adapters that are left out at random do not lean on each other.",
        "Pass module_dropout on to LoRAModule.",
        LORA,
    ),
    option_check(
        "GPU649",
        "warmup-steps",
        Text("学习率预热", "Warm-up"),
        _warmup,
        item("H", "warmup", 1.5),
        "The constant schedule ignores the steps of warm-up.",
        "Set --lr_scheduler=constant_with_warmup beside --lr_warmup_steps.",
        "diffusers 0.35, optimization.py (get_constant_schedule)",
        examples=_example(
            " --lr_warmup_steps=100", " --lr_warmup_steps=100 --lr_scheduler=constant_with_warmup"
        ),
    ),
    option_check(
        "GPU650",
        "abnormal-norm-clip",
        Text("异常梯度裁剪", "Abnormal-norm clipping"),
        _abnormal,
        item("H", "abnormal-norm-clip", 1),
        "A gradient of many times the usual norm is scaled down further.",
        "Leave --abnormal_norm_clip_start at its default of 1000 steps.",
        SCRIPTS,
    ),
    option_check(
        "GPU651",
        "ema",
        Text("EMA 滑动平均", "EMA weights"),
        by_framework(_EMA, flow_factory=flow.average),
        (item("H", "ema", 1), flow.item("I", "ema-decay", 1)),
        "Averaged weights sample more evenly than those of the last step.",
        "Set --use_ema where memory allows another copy of the weights.",
        SCRIPTS,
    ),
    option_check(
        "GPU652",
        "uniform-sampling",
        Text("时间步均匀采样", "Uniform timestep sampling"),
        _UNIFORM,
        item("H", "uniform-sampling", 1),
        "Each rank draws from a part of the time steps of its own, so that a batch covers all.",
        "Set --uniform_sampling.",
        "VideoX-Fun 1.0.1, videox_fun/utils/discrete_sampler.py",
    ),
    option_check(
        "GPU653",
        "motion-loss",
        Text("运动差分损失", "Motion sub-loss"),
        _MOTION,
        item("H", "motion-sub-loss", 0.5),
        "Differences of neighbouring frames weigh motion more.",
        "Set --motion_sub_loss, with --motion_sub_loss_ratio.",
        SCRIPTS,
    ),
    option_check(
        "GPU654",
        "timestep-weighting",
        Text("时间步加权", "Timestep weighting"),
        _weighting,
        item("H", "timestep-weighting", 0.5),
        "Time steps in the middle teach more than those at the ends.",
        "Set --weighting_scheme.",
        SCRIPTS,
    ),
    option_check(
        "GPU655",
        "reward-lora",
        Text("奖励 LoRA", "Reward LoRA"),
        _reward,
        item("H", "reward-lora", 1),
        "Gradients of a reward model reach the adapters through the last steps of sampling.",
        "Train with scripts/*/train_reward_lora.py.",
        SCRIPTS,
    ),
)
