"""GPU128 to GPU130, GPU237 to GPU242, GPU656 to GPU664: training with Flow-Factory."""

from __future__ import annotations

from typing import Optional

from flake8_gpu_training.checks._flow import (
    EXAMPLES,
    HPARAMS,
    MODELS,
    NO_AVERAGE,
    TRAINERS,
    algorithm,
    averages,
    figure,
    frames,
    has_two_transformers,
    is_lora,
    is_own_trainer,
    item,
    makes_video,
    model_type,
    needs,
    of_flow,
    option,
    placed,
    schedule,
    unless_lora,
)
from flake8_gpu_training.checks._judging import (
    advise,
    by_itself,
    cannot_apply,
    cannot_tell,
    off,
    on,
)
from flake8_gpu_training.checks._options import option_check
from flake8_gpu_training.checks._scale import (
    ASSUMED_MEMORY_GIB,
    GIB,
    gpus,
    memory_gib,
    nodes,
    number,
    ranks,
    text,
)
from flake8_gpu_training.checks._settings import is_on
from flake8_gpu_training.checks._starting import ONE_GPU
from flake8_gpu_training.checks.base import Check, Example, Impact, Judgement, Priority, Status
from flake8_gpu_training.frameworks.reading import dtype
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

# --- GPU237 to GPU239: types -------------------------------------------------------------------


@of_flow
@needs("model.master_weight_dtype")
def _master_weights(run: Run) -> Judgement:
    setting = option(run, "model.master_weight_dtype", "bfloat16")
    if not setting.known:
        return cannot_tell(setting)
    if dtype(str(setting.value)) in ("bf16", "fp32"):
        return on(setting)
    return off(
        Text(
            "可训练权重为 FP16：小的更新会丢失；可用 bfloat16，或保留小更新的 fp32",
            "trained weights in FP16, which loses small updates: bfloat16 has FP32's range, fp32 "
            "keeps them",
        ),
        setting,
    )


@of_flow
@needs("train.latent_storage_dtype")
def _stored_latents(run: Run) -> Judgement:
    setting = option(run, "train.latent_storage_dtype", "fp16")
    if not setting.known:
        return cannot_tell(setting)
    if dtype(str(setting.value)) in ("bf16", "fp16"):
        return on(setting)
    if not makes_video(run):
        return off(Text("轨迹 latent 以 FP32 保存", "latents are kept in FP32"), setting)
    return advise(
        run,
        "the latents of every step of a video are kept: FP32 takes twice the memory of FP16",
        Text("视频轨迹的 latent 以 FP32 保存", "latents of videos are kept in FP32"),
        Text(
            "设 train.latent_storage_dtype: fp16（默认）", "set train.latent_storage_dtype to fp16"
        ),
        parameters={"train.latent_storage_dtype": "fp16"},
        at=setting,
    )


@of_flow
def _inference(run: Run) -> Judgement:
    setting = run.practice("precision")
    if not setting.known:
        return cannot_tell(setting)
    if setting.value in ("bf16", "fp16"):
        return on(setting)
    return off(
        Text("采样以 FP32 计算（见 GPU201）", "samples are computed in FP32 (see GPU201)"), setting
    )


# --- GPU240 to GPU242: where samples, averages and the reference are ---------------------------


@of_flow
@needs("train.offload_samples_to_cpu")
def _samples(run: Run) -> Judgement:
    setting = option(run, "train.offload_samples_to_cpu", False)
    if not setting.known:
        return cannot_tell(setting)
    if is_on(setting):
        return on(setting)
    if not makes_video(run):
        return off(
            Text("可选：图像样本较小，放在 GPU 即可", "optional: samples of images are small"),
            setting,
        )
    if frames(run) == 1:
        return off(Text("可选：每个样本只有 1 帧", "optional: samples of one frame"), setting)
    return advise(
        run,
        "samples of videos take gigabytes each, and all of an epoch stay on the GPU",
        Text("视频样本全部留在显存", "all videos of an epoch stay on the GPU"),
        Text("设 train.offload_samples_to_cpu: true", "set train.offload_samples_to_cpu to true"),
        parameters={"train.offload_samples_to_cpu": True},
        at=placed(run, setting),
    )


_SHARE = 0.2  # of a GPU's memory, from which a copy of the weights is worth moving
# What ``target_modules: default`` trains of a transformer (models/…, default_target_modules).
_TRAINED = {"flux1": 0.45, "qwen-image": 0.67, "sd3-5": 0.22}


def _copy_gib(run: Run) -> Optional[float]:
    """GiB of a copy of the trained weights on each GPU; None where ranks share it, or unknown."""
    if is_lora(run) is not False or run.model.parameters is None:
        return None
    if number(run, "zero_stage") == 3 or text(run, "fsdp") not in (None, "none", "no_shard"):
        return None
    full = option(run, "model.master_weight_dtype", "bfloat16")
    size = 4 if full.known and dtype(str(full.value)) == "fp32" else 2
    trained = option(run, "model.target_modules", "all").value
    part = _TRAINED.get(model_type(run), 1.0) if trained == "default" else 1.0
    return run.model.parameters * part * size / GIB


def _moved(run: Run, name: str, what: Text, plural: bool = False) -> Judgement:
    """A device where a copy of the weights waits, which may be the CPU."""
    setting = option(run, name, "cuda")
    if not setting.known:
        return cannot_tell(setting)
    if setting.value == "cpu":
        return on(setting)
    copy, memory = _copy_gib(run), memory_gib(run) or ASSUMED_MEMORY_GIB
    if copy is None or copy < _SHARE * memory:
        verb = "take" if plural else "takes"
        return off(
            Text(f"{what.zh}放在 GPU，占用不多", f"{what.en} on the GPU {verb} little"), setting
        )
    return advise(
        run,
        f"{what.en} takes {copy:.0f} GiB of every GPU, and is needed for a moment of an epoch",
        Text(f"{what.zh}每卡占用约 {copy:.0f} GiB", f"{what.en} takes {copy:.0f} GiB of a GPU"),
        Text(f"设 {name}: cpu", f"set {name} to cpu"),
        parameters={name: "cpu"},
        at=placed(run, setting),
    )


@of_flow
@needs("train.ema_device")
def average_on_cpu(run: Run) -> Judgement:
    """The average waits on the CPU where it takes much of a GPU."""
    kept = averages(run)
    if kept is None:
        return cannot_tell(option(run, "train.ema_decay"))
    if not kept:
        return cannot_apply(NO_AVERAGE)
    return _moved(run, "train.ema_device", Text("EMA 权重", "the EMA copy"))


_ALWAYS = ("dpo", "dgpo")
_KL = {"crd": 0.1}


def _refers(run: Run) -> Optional[bool]:
    """Whether the algorithm keeps a reference model's weights beside the trained ones."""
    how, trained = algorithm(run), is_lora(run)
    if how and not is_own_trainer(run):
        return None
    if trained is True and how and how != "crd":
        return False  # the adapters are switched off instead
    if how in _ALWAYS or how == "crd":
        return True
    beta = figure(run, "train.kl_beta", _KL.get(how, 0))
    return None if beta is None or not how else beta > 0


@of_flow
def _reference_device(run: Run) -> Judgement:
    refers = _refers(run)
    if refers is None:
        return cannot_tell(Text("是否需要参考模型未知", "whether it keeps a reference is unknown"))
    if not refers:
        return cannot_apply(
            Text("没有参考模型权重（LoRA 关闭适配器即可）", "no weights of a reference are kept")
        )
    if algorithm(run) == "crd" and is_lora(run):  # the adapters of old, and of sampling
        what = Text("CRD 的适配器快照", "the snapshots of the adapters")
        return _moved(run, "train.ref_param_device", what, plural=True)
    return _moved(run, "train.ref_param_device", Text("参考模型", "the reference"))


# --- GPU656 to GPU659: adapters ----------------------------------------------------------------

_RANKS = (32, 128)


@of_flow
def _rank(run: Run) -> Judgement:
    trained = unless_lora(run)
    if trained is not None:
        return trained
    setting = option(run, "model.lora_rank", 8)
    rank = figure(run, "model.lora_rank", 8)
    if rank is None:
        return cannot_tell(setting)
    if _RANKS[0] <= rank <= _RANKS[1]:
        return on(setting)
    if rank > _RANKS[1]:
        return off(Text("秩偏大，收益有限", "a large rank brings little more"), setting)
    return advise(
        run,
        f"rank {rank:g} leaves little room for what rewards teach; the examples take 32 to 64",
        Text(f"LoRA 秩为 {rank:g}", f"adapters of rank {rank:g}"),
        Text(
            "设 model.lora_rank: 64（强化学习常用 32~128）", "set model.lora_rank to 64 (32 to 128)"
        ),
        parameters={"model.lora_rank": 64},
        at=placed(run, setting),
        share=0.5 if rank > _RANKS[0] / 2 else None,
    )


@of_flow
def _alpha(run: Run) -> Judgement:
    trained = unless_lora(run)
    if trained is not None:
        return trained
    setting = option(run, "model.lora_alpha")
    if not setting.known:
        return cannot_tell(setting)
    if setting.value is None:
        return by_itself(
            Text("默认 lora_alpha = 2 * lora_rank", "lora_alpha = 2 * lora_rank by default")
        )
    alpha, rank = figure(run, "model.lora_alpha"), figure(run, "model.lora_rank", 8)
    if alpha is not None and rank is not None and alpha < rank:
        return off(
            Text("alpha 小于秩，更新被缩小", "smaller than the rank: updates shrink"), setting
        )
    return on(setting)


@of_flow
@needs("model.target_components")
def _components(run: Run) -> Judgement:
    setting = option(run, "model.target_components", "transformer")
    if not setting.known:
        return cannot_tell(setting)
    names = setting.value if isinstance(setting.value, (list, tuple)) else [setting.value]
    if not has_two_transformers(run) or len(names) > 1:
        return on(setting)
    return advise(
        run,
        "Wan2.2 A14B has a transformer for noisy steps and one for clean ones; one of them learns",
        Text(
            f"Wan2.2 有两个 Transformer，只训练 {names[0]}", f"{names[0]} alone is trained of two"
        ),
        Text(
            "设 model.target_components: [transformer, transformer_2]（显存不足时保留一个）",
            "set model.target_components to [transformer, transformer_2], memory permitting",
        ),
        parameters={"model.target_components": ["transformer", "transformer_2"]},
        at=placed(run, setting),
        share=0.5,
        priority=Priority.LOW,
    )


# --- GPU128 to GPU130: processes ---------------------------------------------------------------


@of_flow
def _nodes(run: Run) -> Judgement:
    count = nodes(run)
    if count is None:
        return cannot_tell(Text("节点数未知", "the number of nodes is not known"))
    if count > 1:
        source = run.launcher.nodes
        return on(source if source.location is not None else f"{count} nodes")
    of_file = run.launcher.options.get("num_machines")
    if of_file is not None and isinstance(of_file.value, int) and of_file.value > 1:
        return on(of_file)  # the platform's variables repeat it to ff-train
    if gpus(run) == 1:
        return cannot_apply(ONE_GPU)
    return off(Text("单机训练（可选多机）", "one node (more are optional)"))


@of_flow
def _processes(run: Run) -> Judgement:
    setting, count = run.launcher.processes, ranks(run)
    if count is None:
        if not run.is_open and option(run, "num_processes").value is None:
            return by_itself(
                Text("默认每张可见 GPU 一个进程", "a process for each of the GPUs in sight")
            )
        return cannot_tell(setting)
    return on(setting)


_EACH_BATCH = 2  # the ZeRO stage from which Accelerate's no_sync does nothing (accelerator.py)


@of_flow
def _no_sync(run: Run) -> Judgement:
    if gpus(run) == 1:
        return cannot_apply(ONE_GPU)
    stage, sharded = number(run, "zero_stage"), text(run, "fsdp")
    if stage is not None and stage >= _EACH_BATCH:
        return cannot_apply(
            Text(
                f"ZeRO-{stage:g} 每个批次都归约梯度",
                f"ZeRO-{stage:g} reduces the gradients of every batch",
            )
        )
    if run.value("ddp") is True or sharded not in (None, "none") or stage == 1:
        return by_itself(
            Text(
                "训练器使用 accelerator.accumulate，累积时不同步梯度",
                "the trainers use accelerator.accumulate: no sync while accumulating",
            )
        )
    ddp = run.practice("ddp")
    return cannot_tell(ddp if stage is not None else run.practice("zero_stage"))


# --- GPU660 to GPU664: how it learns -----------------------------------------------------------

_RATES = {False: (1e-6, 1e-5), True: (1e-6, 3e-4)}


def _plain(rate: float) -> str:
    """As YAML takes it for a number: 1e-05 without a dot would be text."""
    text = f"{rate:g}"
    return text if "." in text else text.replace("e", ".0e")


@of_flow
def _rate(run: Run) -> Judgement:
    setting, trained = option(run, "train.learning_rate", 1e-5), is_lora(run)
    rate = figure(run, "train.learning_rate", 1e-5)
    if rate is None or trained is None:
        return cannot_tell(setting if rate is None else run.practice("tuning"))
    low, high = _RATES[trained]
    if low <= rate <= high:
        return on(setting)
    usual, how = max(low, min(rate, high)), "adapters" if trained else "full tuning"
    return advise(
        run,
        f"the recipes of Flow-Factory take {low:g} to {high:g} for {how}, and rewards are noisy; "
        "keep another rate where a test shows that it learns better",
        Text(
            f"学习率 {rate:g} 超出常用范围 {low:g} 至 {high:g}",
            f"{rate:g} is beyond the usual {low:g} to {high:g}",
        ),
        Text(
            f"设 train.learning_rate: {_plain(usual)}，或先小规模测试现有值",
            f"set train.learning_rate to {_plain(usual)}, or test the present one first",
        ),
        parameters={"train.learning_rate": usual},
        at=placed(run, setting),
        share=0.5,
        priority=Priority.LOW,
    )


@of_flow
def _adam(run: Run) -> Judgement:
    for name, default in (("adam_betas", [0.9, 0.999]), ("adam_weight_decay", 1e-4)):
        setting = option(run, f"train.{name}", default)
        if not setting.known:
            return cannot_tell(setting)
    return on(option(run, "train.adam_betas", [0.9, 0.999]))


@of_flow
def _gap(run: Run) -> Judgement:
    scheduled = schedule(run)
    if scheduled.status is Status.ENABLED:
        return scheduled
    return off(
        Text(
            "学习率全程不变；改法见 J 类“学习率调度”",
            "the learning rate stays constant; category J shows how to add a schedule",
        )
    )


@of_flow
@needs("train.max_epochs")
def _epochs(run: Run) -> Judgement:
    setting = option(run, "train.max_epochs")
    if not setting.known:
        return cannot_tell(setting)
    count = figure(run, "train.max_epochs")
    if count is not None and count >= 0:
        return on(setting)
    return off(Text("未设上限，训练到手动停止", "no limit: it trains until it is stopped"), setting)


_VIDEO = """\
launcher: accelerate
num_processes: 8
mixed_precision: bf16
data:
  dataset_dir: dataset/pickscore
  dataloader_num_workers: 8
model:
  model_name_or_path: Wan-AI/Wan2.1-T2V-1.3B-Diffusers
  model_type: wan2_t2v
  finetune_type: {}
  attn_backend: flash
train:
  trainer_type: {}
  resolution: 256
  num_frames: 5
  group_size: 8
{}rewards:
  name: pick_score
  reward_model: PickScore
"""
_START = (("train.sh", "ff-train grpo.yaml\n"),)
_LORA = "lora\n  lora_rank: 64"


def example(bad: str, good: str, tuning: str = _LORA, how: str = "grpo") -> tuple[Example, ...]:
    """A recipe for videos with lines of ``train`` that are to be mended, and mended."""
    before, after = (_VIDEO.format(tuning, how, lines) for lines in (bad, good))
    return (Example("flow_factory", "grpo.yaml", before, after, _START),)


def _with(lines: str) -> str:
    return "  offload_samples_to_cpu: true\n" + lines


def _large(bad: str, good: str, how: str) -> tuple[Example, ...]:
    """The same for full tuning of the model of 14B."""
    before, after = (
        _VIDEO.format("full", how, _with(lines)).replace("1.3B", "14B") for lines in (bad, good)
    )
    return (Example("flow_factory", "grpo.yaml", before, after, _START),)


CHECKS: tuple[Check, ...] = (
    option_check(
        "GPU128",
        "several-nodes",
        Text("多机训练", "Multi-node"),
        _nodes,
        item("D", "multi-node", 1),
        "Sampling takes most of an epoch, and scales with the nodes.",
        "Set num_machines, or the variables of the platform, and start ff-train on each node.",
        "Flow-Factory 0.1.0, cli.py",
    ),
    option_check(
        "GPU129",
        "process-count",
        Text("进程数", "Number of processes"),
        _processes,
        item("D", "num-processes", 1),
        "Each process drives a GPU: those without stand idle.",
        "Set num_processes to the number of GPUs.",
        "Flow-Factory 0.1.0, cli.py",
    ),
    option_check(
        "GPU130",
        "accumulated-sync",
        Text("累积时不同步梯度（no_sync）", "no_sync while accumulating"),
        _no_sync,
        item("J", "no-sync", 0.5),
        "Gradients that are accumulated need no exchange before the last batch.",
        "Leave it to accelerator.accumulate.",
        TRAINERS,
    ),
    option_check(
        "GPU237",
        "master-weight-type",
        Text("可训练权重精度", "Dtype of trained weights"),
        _master_weights,
        item("A", "master-weight-dtype", 1),
        "Trained weights and Adam's moments in BF16 take half the memory of FP32.",
        "Leave model.master_weight_dtype at bfloat16; take fp32 where small updates are lost.",
        HPARAMS,
    ),
    option_check(
        "GPU238",
        "latent-storage-type",
        Text("轨迹 latent 精度", "Dtype of stored latents"),
        _stored_latents,
        item("A", "latent-storage-dtype", 1),
        "The latents of all steps are kept until the epoch's updates.",
        "Leave train.latent_storage_dtype at fp16.",
        HPARAMS,
        priority=Priority.MEDIUM,
        examples=example(_with("  latent_storage_dtype: fp32\n"), _with("")),
    ),
    option_check(
        "GPU239",
        "inference-type",
        Text("采样精度", "Dtype of sampling"),
        _inference,
        item("A", "inference-dtype", 0.5),
        "Samples, which take most of an epoch, are computed in the type of mixed_precision.",
        "Set mixed_precision to bf16.",
        MODELS,
    ),
    option_check(
        "GPU240",
        "sample-offload",
        Text("样本移到 CPU", "Samples offloaded to CPU"),
        _samples,
        item("B", "offload-samples", 1.5),
        "All samples of an epoch wait for the updates; videos take gigabytes each.",
        "Set train.offload_samples_to_cpu for video models.",
        HPARAMS,
        priority=Priority.HIGH,
        impact=Impact(
            memory=(-60, -20),
            note=Text(
                "每个 epoch 约多 100 毫秒的拷贝", "about 100 ms of copies an epoch, its makers say"
            ),
            source=HPARAMS,
        ),
        examples=example("", _with("")),
    ),
    option_check(
        "GPU241",
        "average-device",
        Text("EMA 权重放在 CPU", "EMA weights on CPU"),
        average_on_cpu,
        item("B", "ema-device-cpu", 0.5),
        "A copy of all weights is needed when the average is updated and sampled from.",
        "Set train.ema_device to cpu for full tuning of large models.",
        HPARAMS,
        priority=Priority.MEDIUM,
        examples=_large("  ema_device: cuda\n", "  ema_device: cpu\n", "grpo"),
    ),
    option_check(
        "GPU242",
        "reference-device",
        Text("参考模型放在 CPU", "Reference model on CPU"),
        _reference_device,
        item("B", "ref-param-device-cpu", 0.5),
        "Full tuning keeps the first weights for the KL term or the preference loss.",
        "Set train.ref_param_device to cpu for full tuning of large models.",
        HPARAMS,
        priority=Priority.MEDIUM,
        examples=_large("  ema_decay: 0\n", "  ema_decay: 0\n  ref_param_device: cpu\n", "dpo"),
    ),
    option_check(
        "GPU656",
        "adapter-rank",
        Text("LoRA 秩", "Rank of the adapters"),
        _rank,
        item("C", "lora-rank", 1),
        "Rewards move a model further than a small data set does.",
        "Set model.lora_rank between 32 and 128.",
        EXAMPLES,
        examples=(
            Example(
                "flow_factory",
                "grpo.yaml",
                _VIDEO.format("lora", "grpo", _with("")),
                _VIDEO.format(_LORA, "grpo", _with("")),
                _START,
            ),
        ),
    ),
    option_check(
        "GPU657",
        "adapter-alpha",
        Text("LoRA alpha", "Alpha of the adapters"),
        _alpha,
        item("C", "lora-alpha", 0.5),
        "Updates are scaled by alpha over the rank.",
        "Leave model.lora_alpha at twice the rank.",
        HPARAMS,
    ),
    option_check(
        "GPU659",
        "target-components",
        Text("训练的组件", "Target components"),
        _components,
        item("C", "target-components", 0.5),
        "Wan2.2 denoises with two transformers, one after the other.",
        "Name both in model.target_components.",
        EXAMPLES,
    ),
    option_check(
        "GPU660",
        "learning-rate",
        Text("学习率", "Learning rate"),
        _rate,
        item("F", "learning-rate", 1),
        "Rewards are noisy: full tuning takes 1e-6 to 1e-5, adapters up to 3e-4.",
        "Set train.learning_rate within that range.",
        EXAMPLES,
    ),
    option_check(
        "GPU661",
        "adam-parameters",
        Text("Adam 参数", "Adam parameters"),
        _adam,
        item("F", "adam-parameters", 0.5),
        "Moments and decay of AdamW.",
        "Leave train.adam_betas and train.adam_weight_decay at their defaults.",
        HPARAMS,
    ),
    option_check(
        "GPU663",
        "constant-rate",
        Text("缺少学习率调度", "No schedule of the rate"),
        _gap,
        item("F", "lr-scheduler-gap", 0.5),
        "Without warm-up the first noisy advantages move the weights at the full rate.",
        "Give the trainer a schedule.",
        TRAINERS,
    ),
    option_check(
        "GPU664",
        "epochs",
        Text("训练轮数上限", "Epoch limit"),
        _epochs,
        item("F", "epochs", 1),
        "Without a limit a job holds its GPUs until somebody stops it.",
        "Set train.max_epochs.",
        HPARAMS,
    ),
)
