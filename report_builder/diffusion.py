"""What the reports say of a run that trains a model of images or videos: model, mode, samples."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Optional

from flake8_gpu_training.facts import known
from flake8_gpu_training.frameworks.videox_fun import (
    script_of,
    takes_by_tokens,
    takes_own_sides,
)
from flake8_gpu_training.language import Text
from flake8_gpu_training.memory import GIB
from flake8_gpu_training.runs.model import Run
from flake8_gpu_training.weights import weights_type
from report_builder.marks import code

Fact = tuple[Text, str]
_SERIES = MappingProxyType(
    {
        "wan2.1": "Wan2.1",
        "wan2.1_fun": "Wan2.1-Fun",
        "wan2.1_vace": "Wan2.1-VACE",
        "wan2.2": "Wan2.2",
        "wan2.2_fun": "Wan2.2-Fun",
        "wan2.2_vace_fun": "Wan2.2-VACE-Fun",
        "cogvideox_fun": "CogVideoX-Fun",
        "hunyuanvideo": "HunyuanVideo",
        "flux": "FLUX.1",
        "flux2": "FLUX.2",
        "flux2_fun": "FLUX.2-Fun",
        "qwenimage": "Qwen-Image",
        "qwenimage_fun": "Qwen-Image-Fun",
        "qwenimage_instantx": "Qwen-Image (InstantX)",
        "z_image": "Z-Image",
        "z_image_fun": "Z-Image-Fun",
        "longcatvideo": "LongCat-Video",
        "ltx2": "LTX-2",
        "ltx2.3": "LTX-2.3",
        "mova": "MOVA",
        "turbodiffusion": "TurboDiffusion",
        "infinitetalk": "InfiniteTalk",
        "flashhead": "FlashHead",
        "fantasytalking": "FantasyTalking",
    }
)
_MODEL = Text("模型系列", "Series")
_SCRIPT = Text("训练脚本", "Script")
_MODE = Text("train_mode", "train_mode")
_SAMPLES = Text("样本", "Samples")
_BY_TOKENS = Text(
    "token 数至多相当于 {}；边长与帧数随样本变化",
    "at most the tokens of {}; sides and length vary",
)
_BACKEND = Text("分布式后端", "Distributed backend")
_TYPE = Text("model_type", "model_type")


# Bytes per parameter: in 16 bits weights, gradient and two moments, or with FP32 masters
# (Rajbhandari et al., 2020); frozen weights in 16 bits, or in 4 with double quantization
# (Dettmers et al., 2023: 0.127 bits a parameter of constants).
_STATES = (
    (Text("全参，BF16 权重与 Adam（脚本自身）", "full, all in BF16 (the scripts)"), 8.0),
    (Text("全参，FP32 主权重（DeepSpeed、FSDP）", "full, FP32 masters (DeepSpeed, FSDP)"), 16.0),
    (Text("LoRA，16 位基座", "LoRA, base model in 16 bits"), 2.0),
    (Text("LoRA，4 位基座（需改动代码）", "LoRA, base in 4 bits (needs a code change)"), 0.516),
)
_SIZES = (1.3, 5.0, 14.0)


def memory_rows(run: Optional[Run], lang: str) -> list[list[str]]:
    """A table of model states of diffusion models, with the run's own; [] for other runs."""
    if run is None or run.framework not in ("videox_fun", "flow_factory"):
        return []
    own = run.model.parameters
    sizes = [(f"{size:g}B", size) for size in _SIZES]
    if own and not any(abs(own / 1e9 - size) < 0.05 * size for size in _SIZES):
        shown = Text(f"本模型（{own / 1e9:.1f}B）", f"this model ({own / 1e9:.1f}B)").say(lang)
        sizes = [(shown, own / 1e9), *sizes]
    head = [Text("方法", "Method").say(lang), *(name for name, _ in sizes)]
    rows = [
        [method.say(lang), *(f"{size * 1e9 * each / GIB:.1f}" for _, size in sizes)]
        for method, each in _STATES
    ]
    return [head, *rows]


def deepspeed_usage(run: Optional[Run]) -> Text:
    """How a run takes a DeepSpeed file: by Accelerate, which its launcher or its YAML names."""
    if run is not None and run.framework == "videox_fun":
        return Text(
            "启用：`accelerate launch --use_deepspeed --deepspeed_config_file ds_config.json …`"
            "（写在训练脚本之前；`--mixed_precision` 等仍由脚本参数给出）。脚本自己的参数里也要有 "
            "`--use_deepspeed`：较早的脚本只凭它决定梯度裁剪与检查点的保存方式。",
            "Use it by `accelerate launch --use_deepspeed --deepspeed_config_file ds_config.json "
            "…`, before the training script. Give the script `--use_deepspeed` as well: older "
            "scripts clip gradients and save checkpoints by that flag alone.",
        )
    if run is not None and run.framework == "flow_factory":
        return Text(
            "启用：`config_file` 指向一个 Accelerate 配置，其中 `distributed_type: DEEPSPEED`，"
            "`deepspeed_config` 下只写 `deepspeed_config_file: ds_config.json`："
            "若仍留有 `zero_stage`、`offload_optimizer_device` 等键，Accelerate 启动时报错。",
            "Use it by a `config_file` of Accelerate with `distributed_type: DEEPSPEED` and, "
            "below `deepspeed_config`, nothing but `deepspeed_config_file: ds_config.json`: beside "
            "`zero_stage`, `offload_optimizer_device` and the like Accelerate refuses it at start.",
        )
    return Text("", "")


_MASTERS = Text(
    "不分片时按 16 位权重计（每参数 8 字节）；ZeRO 各列含 FP32 主权重（每参数 16 字节）。",
    "Unsharded, the weights are 16-bit (8 bytes a parameter); under ZeRO there are FP32 masters "
    "too (16 bytes a parameter).",
)


def table_note(run: Optional[Run]) -> Text:
    """What the states by stage assume where the scripts themselves hold less."""
    if run is None or weights_type(run) not in ("bf16", "fp16") or run.value("tuning") != "full":
        return Text("", "")
    if run.framework not in ("videox_fun", "flow_factory"):
        return _MASTERS
    if not memory_rows(run, "en"):
        return Text("", "")
    return Text(
        "上表按 FP32 主权重计（每参数 16 字节，DeepSpeed 与 FSDP 如此）；"
        "脚本自身以 16 位权重训练且不分片时为每参数 8 字节。",
        "The table is for FP32 masters (16 bytes a parameter), which DeepSpeed and FSDP keep; "
        "unsharded, the scripts themselves train 16-bit weights at 8 bytes a parameter.",
    )


def facts(run: Optional[Run], lang: str) -> list[Fact]:
    """Label and value of what is particular to the run; [] for other frameworks."""
    if run is not None and run.framework == "videox_fun":
        return _of_videox(run, lang)
    if run is not None and run.framework == "flow_factory":
        return _of_flow(run, lang)
    return []


def _of_videox(run: Run, lang: str) -> list[Fact]:
    family, name = script_of(run)
    found: list[Fact] = []
    if family in _SERIES:
        found.append((_MODEL, _SERIES[family]))
    if name:
        found.append((_SCRIPT, code(f"{family}/{name}.py" if family else f"{name}.py")))
    mode = _value(run, "train_mode")
    if mode is not None:
        found.append((_MODE, code(str(mode))))
    found += _videox_samples(run, lang)
    return [*found, (_BACKEND, _backend(run, lang))]


def _videox_samples(run: Run, lang: str) -> list[Fact]:
    frames, is_video = (
        _value(run, "video_sample_n_frames", "video_length"),
        run.model.kind == "video",
    )
    size = _value(run, "video_sample_size", "train_sample_height") if frames else None
    images = _value(run, "image_sample_size")
    size = size if size is not None else images
    if frames and takes_by_tokens(run):
        said = _samples(frames, _value(run, "token_sample_size") or 512, lang, is_video)
        return [(label, _BY_TOKENS.say(lang).format(value)) for label, value in said]
    if frames and takes_own_sides(run):
        said = _samples(frames, images, lang, is_video)
        return [(label, f"image_sample_size {value}") for label, value in said]
    return _samples(frames, size, lang, is_video)


def _of_flow(run: Run, lang: str) -> list[Fact]:
    found: list[Fact] = []
    kind = _value(run, "model.model_type")
    if kind is not None:
        found.append((_TYPE, code(str(kind))))
    size = _value(run, "train.resolution")
    frames = _value(run, "train.extra_kwargs.num_frames", "train.num_frames")
    found += _samples(frames, 512 if size is None else size, lang, run.model.kind == "video")
    return [*found, (_BACKEND, _backend(run, lang))]


def _samples(frames: Any, size: Any, lang: str, is_video: bool) -> list[Fact]:
    if size is None:
        return []
    sides = [str(side) for side in (size if isinstance(size, (list, tuple)) else (size, size))]
    said = " × ".join(sides)
    if frames is not None and (is_video or frames != 1):
        said = Text(f"{said}，{frames} 帧", f"{said}, {frames} frames").say(lang)
        said = said.replace(", 1 frames", ", 1 frame")
    return [(_SAMPLES, said)]


def _backend(run: Run, lang: str) -> str:
    """FSDP, ZeRO, DDP, or one process."""
    stage, fsdp = run.value("zero_stage"), run.value("fsdp")
    if isinstance(stage, int) and stage > 0:
        return f"DeepSpeed ZeRO-{stage}"
    if fsdp not in (None, "none", "no_shard"):
        return "FSDP2" if run.value("fsdp_version") == 2 else "FSDP"
    if run.value("ddp") is True:
        return "DDP"
    if run.launcher.world_size == 1:
        return Text("单进程", "one process").say(lang)
    return Text("未知", "unknown").say(lang)


def _value(run: Run, *names: str) -> Any:
    """The first of the framework's own settings that is known and not null, else None."""
    for name in names:
        setting = run.setting(name)
        if setting is not None and known(setting.value) and setting.value is not None:
            return setting.value
    return None
