"""GPU7xx: multimodal and video models."""

from __future__ import annotations

from dataclasses import replace
from typing import Optional

from flake8_gpu_training.checks._impacts import by_class
from flake8_gpu_training.checks._judging import (
    advise,
    by_itself,
    cannot_apply,
    cannot_tell,
    of_training,
    off,
    on,
    seen,
    with_edits,
)
from flake8_gpu_training.checks._loaders import write_call
from flake8_gpu_training.checks._programs import calls, imports, keyword
from flake8_gpu_training.checks._settings import (
    NO_TOWER,
    TEXT_MODEL,
    has_no_tower,
    is_multimodal,
    is_on,
    is_text,
    is_unknown,
    parameter,
)
from flake8_gpu_training.checks.base import (
    Check,
    Evidence,
    Example,
    Finding,
    Impact,
    Item,
    Judgement,
    Priority,
    Status,
)
from flake8_gpu_training.facts import Call, Setting
from flake8_gpu_training.frameworks.reading import find
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

_SWIFT = "ms-swift 4.6.0, arguments/tuner_args.py and base_args/template_args.py"
_QWEN = "Qwen2-VL (Wang et al., 2024), arXiv:2409.12191"
_VISION = ("MLLM", "video", "image")
_ENCODERS = ("vision", "visual", "vit", "image_encoder", "vae")


def _is_visual(run: Run) -> bool:
    if run.framework == "swift":  # its freeze_vit is of towers for sound too
        return is_multimodal(run) is True
    if run.model.kind == "unknown":
        return not is_text(run)
    return run.model.kind in _VISION


def _not_visual(run: Run) -> Text:
    if run.model.kind == "unknown":
        return Text("未见多模态模型", "no multimodal model was seen")
    if is_text(run):
        return TEXT_MODEL
    return Text("不是多模态模型", "not a multimodal model")


@of_training(alone=True)
def _frozen_vision(run: Run) -> Judgement:
    if is_unknown(run):
        return cannot_tell(Text("模型未知", "the model is not known"))
    if not _is_visual(run) and not _embeds_images(run):
        return cannot_apply(_not_visual(run))
    if has_no_tower(run):
        return cannot_apply(NO_TOWER)
    setting = run.practice("freeze_vision")
    if setting.known:
        if is_on(setting):
            return on(setting, "vision")
        language = find(run, "freeze_llm") if run.framework == "swift" else None
        if language is not None and is_on(language):
            return on(language, "language")
        return off(Text("视觉编码器参与训练", "the vision encoder is trained"), setting)
    call = _freezing_call(run)
    if call is not None:
        return seen(call, "vision")
    if run.framework == "flow_factory":
        return replace(by_itself(_FROZEN_BY_FLOW), variant="vision")
    return cannot_tell(setting)


_FROZEN_BY_FLOW = Text(
    "只训练 target_components，VAE 与编码器已冻结",
    "it trains target_components only; VAE and encoders are frozen (models/abc.py)",
)


def _embeds_images(run: Run) -> bool:
    return run.model.kind == "embedding" and not is_text(run)


def _freezing_call(run: Run) -> Optional[Call]:
    """``vision_tower.requires_grad_(False)`` and the like."""
    for call in calls(run, ".requires_grad_"):
        argument = call.positional[0] if call.positional else None
        names_encoder = any(word in call.name.lower() for word in _ENCODERS)
        if names_encoder and argument is not None and argument.value is False:
            return call
    return None


_RESOLUTION = (
    "max_pixels",
    "image_max_pixels",
    "video_max_pixels",
    "enable_bucket",
    "random_hw_adapt",
    "dynamic_resolution",
    "min_pixels",
)
_RESOLUTION_ENVIRONMENT = ("MAX_PIXELS", "VIDEO_MAX_PIXELS", "IMAGE_MAX_TOKEN_NUM", "max_num")
MAX_PIXELS = 1003520  # 1280 tokens of 28 x 28 pixels


@of_training()
def _resolution(run: Run) -> Judgement:
    if not _is_visual(run):
        return cannot_apply(_not_visual(run))
    setting = find(run, *_RESOLUTION) or _from_environment(run) or _from_model_kwargs(run)
    if setting is not None:
        if run.framework == "videox_fun" and setting.name == "random_hw_adapt":
            return off(_NEEDS_BUCKETS, setting)
        if setting.known and not is_on(setting):
            return off(Text("固定分辨率", "a fixed resolution"), setting)
        return on(setting) if setting.known else cannot_tell(setting)
    if run.framework == "flow_factory":
        return _size_of_samples(run)
    if run.framework == "llamafactory" and run.model.kind == "MLLM":
        return on("image_max_pixels=768*768 (LlamaFactory's default)")
    if run.framework == "swift" and _is_qwen_vl(run) and not run.is_open:
        return _unbounded(run)
    processor = _unbounded_processor(run)
    if processor is not None:
        return _bound_processor(run, processor)
    return cannot_tell(Text("图像分辨率无法静态得知", "the resolution of images is not known"))


_NEEDS_BUCKETS = Text("未启用 --enable_bucket，不起作用", "it does nothing without --enable_bucket")


def _size_of_samples(run: Run) -> Judgement:
    """Flow-Factory makes and trains on samples of one size."""
    source = "Flow-Factory src/flow_factory/hparams/training_args.py: (512, 512)"
    names = ("train.resolution", "resolution")
    size = parameter(run, *names, default=(512, 512), source=source)
    return off(Text("固定分辨率", "a fixed resolution"), size) if size.known else cannot_tell(size)


def _is_qwen_vl(run: Run) -> bool:
    name = run.model.known_as.lower()
    return "qwen" in name and "vl" in name


def _from_environment(run: Run) -> Optional[Setting]:
    for name in _RESOLUTION_ENVIRONMENT:
        if name in run.environment:
            return run.environment[name]
    return None


def _from_model_kwargs(run: Run) -> Optional[Setting]:
    """ms-swift's ``--model_kwargs '{"max_pixels": …}'``."""
    setting = find(run, "model_kwargs")
    written = str(setting.value).lower() if setting is not None else ""
    return setting if any(name.lower() in written for name in _RESOLUTION_ENVIRONMENT) else None


def _unbounded(run: Run) -> Judgement:
    answer = advise(
        run,
        "a large image otherwise takes up to 16384 vision tokens",
        _NO_BOUND,
        _BOUND,
        parameters={"max_pixels": MAX_PIXELS},
    )
    return with_edits(answer)  # it changes what the model sees


def _unbounded_processor(run: Run) -> Optional[Call]:
    """The call that loads Qwen-VL's processor, where nothing bounds or resizes images."""
    words = [file.mentions for file in run.python]
    if run.is_open or not all(w is not None and w.isdisjoint(("_pixels", "resize")) for w in words):
        return None
    for call in calls(run, "transformers.AutoProcessor.from_pretrained"):
        name = str(keyword(call, "pretrained_model_name_or_path", 0)).lower()
        if "qwen" in name and "vl" in name and not call.is_open:
            return call
    return None


def _bound_processor(run: Run, call: Call) -> Judgement:
    change = replace(write_call(run, call, {"max_pixels": MAX_PIXELS}), edits=())
    message = (
        f"set max_pixels={MAX_PIXELS} at the processor: a large image otherwise takes up to 16384 "
        "vision tokens"
    )
    return Judgement(
        Status.RECOMMENDED,
        evidence=(Evidence(call.name, call.location),),
        findings=(Finding(call.location, message, change),),
        current=_NO_BOUND,
        action=_BOUND,
        change=change,
    )


_NO_BOUND = Text("图像分辨率没有上限", "nothing bounds the resolution of images")
_BOUND = Text(
    "限制每张图的像素数，保持动态分辨率的同时控制视觉 token 数",
    "bound the pixels per image: dynamic resolution with a bounded number of tokens",
)
_PRUNERS = ("fastv", "visionzip", "sparsevlm", "tome", "pyramiddrop", "prumerge")
_PRUNING = ("vision_token_pruning", "training_with_video_token_length", "video_max_frames")


@of_training(alone=True)
def _pruning(run: Run) -> Judgement:
    if not _is_visual(run):
        return cannot_apply(_not_visual(run))
    setting = find(run, *_PRUNING)
    if setting is not None and is_on(setting):
        idle = run.framework == "videox_fun" and not is_on(parameter(run, "enable_bucket"))
        return off(_NEEDS_BUCKETS, setting) if idle else on(setting)
    library = imports(run, *_PRUNERS)
    if library is not None:
        shown = Evidence(f"import {library.dotted}", library.location)
        said = Text(f"使用 {library.dotted}", f"uses {library.dotted}")
        return Judgement(Status.ENABLED, evidence=(shown,), current=said)
    return off(Text("未裁剪视觉 token（可选）", "vision tokens are not pruned (optional)"))


_SCRIPT = """\
swift sft \\
    --model Qwen/Qwen2.5-VL-7B-Instruct \\
    --tuner_type lora \\
    --torch_dtype bfloat16 \\
    --attn_impl flash_attn \\
    --use_liger_kernel true \\
    --dataset data/receipts.jsonl \\
    --max_length 8192 \\
    --dataloader_num_workers 8 \\
    --dataloader_persistent_workers true \\
    --logging_steps 10 \\
    --warmup_ratio 0.05 \\
    --output_dir output
"""
_BOUNDED = _SCRIPT.replace(
    "    --max_length", f"    --max_pixels {MAX_PIXELS} \\\n    --max_length"
)

CHECKS: tuple[Check, ...] = (
    Check(
        "GPU701",
        "vision-encoder-frozen",
        Text("视觉编码器冻结", "Vision encoder frozen"),
        Priority.LOW,
        _frozen_vision,
        why="A frozen vision encoder needs neither gradients nor optimizer states.",
        fix="Freeze it (freeze_vit, requires_grad_(False)) unless the image domain is new.",
        items=(
            Item("general", "H", "vision-encoder-frozen", 1, "", "vision"),
            Item("swift", "I", "multimodal-freezing", 1),
        ),
        impact=Impact(source=_SWIFT),
        sources=(_SWIFT,),
    ),
    Check(
        "GPU702",
        "dynamic-resolution",
        Text("动态分辨率", "Dynamic resolution"),
        Priority.LOW,
        _resolution,
        why="Models with dynamic resolution turn each image into tokens by its size; a few "
        "large images decide the peak of memory.",
        fix="Bound the pixels per image (max_pixels).",
        items=(Item("general", "H", "dynamic-resolution", 1),),
        impact=by_class(
            Priority.LOW, _QWEN, Text("取决于图像大小", "depends on the size of the images")
        ),
        examples=(Example("swift", "train.sh", _SCRIPT, _BOUNDED),),
        sources=(_QWEN, _SWIFT),
    ),
    Check(
        "GPU703",
        "vision-token-pruning",
        Text("视觉 Token 裁剪", "Vision token pruning"),
        Priority.LOW,
        _pruning,
        why="Most vision tokens carry little; pruning them shortens the sequence.",
        fix="Prune or merge vision tokens, or bound the number of video tokens.",
        items=(Item("general", "H", "vision-token-pruning", 1),),
        impact=Impact(source="FastV (Chen et al., 2024), arXiv:2403.06764"),
        difficulty="high",
        sources=("FastV (Chen et al., 2024), arXiv:2403.06764",),
    ),
)
