"""What a script of VideoX-Fun reads its samples from, and how it encodes them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Optional

from flake8_gpu_training.checks._judging import by_itself, cannot_apply, cannot_tell, off, on
from flake8_gpu_training.checks._videox import DATA, flag, of_videox, script, takes
from flake8_gpu_training.checks.base import Judgement
from flake8_gpu_training.facts import Argument, Call, Origin, Setting, known
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

NO_SAMPLES = Text("只读取提示词", "it reads prompts only")

_OF_IMAGES_AND_VIDEOS = "videox_fun/data/dataset_image_video.py"
_OF_IMAGES = "videox_fun/data/dataset_image.py"
_OF_VIDEOS = "videox_fun/data/dataset_video.py"
# The classes of VideoX-Fun, all of which drop a tenth of the prompts, and their files.
_FILES = {
    "ImageVideoDataset": _OF_IMAGES_AND_VIDEOS,
    "ImageVideoControlDataset": _OF_IMAGES_AND_VIDEOS,
    "ImageEditDataset": _OF_IMAGES,
    "VideoDataset": _OF_VIDEOS,
    "VideoSpeechDataset": _OF_VIDEOS,
    "VideoSpeechControlDataset": _OF_VIDEOS,
    "VideoAnimateDataset": _OF_VIDEOS,
}
_OF_PROMPTS = "TextDataset"
_RATIO = "text_drop_ratio"
_USUAL = 0.1


def datasets(run: Run) -> list[Call]:
    """Where the run makes the data set that it trains on."""
    return [
        call
        for program in run.python
        for call in program.calls
        if call.method in _FILES
        or (call.assigned_to.startswith("train") and call.method.endswith("Dataset"))
        or (call.assigned_to == "train_dataset" and call.method[:1].isupper())
    ]


def prompts_only(run: Run) -> bool:
    """Whether the script reads prompts: it makes its samples itself."""
    of, made = script(run), datasets(run)
    if made:
        return all(call.method == _OF_PROMPTS for call in made)
    if of.rewards:
        return True
    if not of.distills or "control" in of.name:
        return False
    mode = flag(run, "train_mode", default="normal")
    return of.family == "z_image" or (mode.known and mode.value == "normal")


# --- prompts that are left out ---------------------------------------------------------------

_OF_ARGUMENTS = re.compile(r"\w+\.(\w+)")


@of_videox
def text_dropout(run: Run) -> Judgement:
    """``text_drop_ratio`` of the data set that the run makes, or its class's own."""
    if script(run).family == "flashhead":
        return cannot_apply(Text("FlashHead 不使用提示词", "FlashHead takes no prompts"))
    made = datasets(run)
    for call in made:
        if _RATIO in call.keywords:
            return _written_ratio(run, call.keywords[_RATIO])
    if made:
        return _own_ratio(run, made[0])
    if script(run).rewards:
        return cannot_apply(NO_SAMPLES)
    if prompts_only(run):
        return off(_ALL_KEPT)
    if not script(run).family:
        return cannot_tell(Text("未见数据集", "no data set is in sight"))
    return on(f"{_RATIO}={_USUAL} ({DATA})")


_ALL_KEPT = Text(
    "TextDataset 默认不丢弃提示词（text_drop_ratio=0.0）",
    "TextDataset drops no prompt by default (text_drop_ratio=0.0)",
)


def _written_ratio(run: Run, argument: Argument) -> Judgement:
    ratio = argument.value
    if not known(ratio):
        named = _OF_ARGUMENTS.fullmatch(argument.text)
        setting = flag(run, named[1], default=ratio) if named else None
        if setting is None or not setting.known:
            return cannot_tell(Text(f"{_RATIO} 由程序计算", f"{_RATIO} is computed"))
    else:
        setting = Setting(_RATIO, ratio, argument.location, Origin.CONSTRUCTOR)
    if _drops(setting.value):
        return on(setting)
    return off(Text("不丢弃提示词", "no prompt is dropped"), setting)


def _drops(ratio: object) -> bool:
    """Random numbers from 0 are compared with it: below that none is ever left out."""
    return isinstance(ratio, (int, float)) and ratio > 0


def _own_ratio(run: Run, call: Call) -> Judgement:
    """The default of the class: of the project's own copy, else of VideoX-Fun's."""
    name = call.method
    held = run.declared.get(name, {}).get(_RATIO)
    if call.is_open or (held is not None and not held.known):
        return cannot_tell(Text(f"{name} 的 {_RATIO} 未知", f"{_RATIO} of {name} is not known"))
    if held is not None and held.location is None:
        return off(Text(f"{name} 没有 {_RATIO}", f"{name} has no {_RATIO}"))
    if held is not None and _drops(held.value):
        note = f"{_RATIO}={held.value}, the default of {name}"
        return on(replace(held, note=note))
    if held is not None or name == _OF_PROMPTS:
        ratio = held.value if held is not None else 0.0
        return off(
            Text(
                f"{name} 默认不丢弃提示词（{_RATIO}={ratio}）",
                f"{name} drops no prompt by default ({_RATIO}={ratio})",
            ),
            held,
        )
    if name not in _FILES:
        return cannot_tell(Text(f"{name} 的 {_RATIO} 未知", f"{_RATIO} of {name} is not known"))
    note = f"{_RATIO}={_USUAL}, the default of {name} ({_FILES[name]})"
    return on(Setting(_RATIO, _USUAL, call.location, Origin.DEFAULT, note))


# --- streams on which the VAE encodes ----------------------------------------------------------

_MAKES = "torch.cuda.Stream"
_MODE = "train_mode"
# Of VideoX-Fun 1.0.1: scripts that make streams where --train_mode is not normal, those that
# encode one sample a step, and those that encode nothing on the streams that they make.
_BY_MODE = re.compile(
    r"(?:cogvideox_fun|hunyuanvideo)/.*|wan2\.[12](?:_fun)?/train(?:_lora)?|longcatvideo/train(?:_lora)?"
    r"|flux2/train|flux2_fun/.*|qwenimage_fun/.*|z_image_fun/train_control_distill|.*/train_distill.*"
)
_ONE = re.compile(r"(?:flux|flux2|qwenimage|z_image|ltx2(?:\.3)?)/train(?:_lora)?")
_IDLE = re.compile(r"wan2\.2/train_s2v(?:_lora)?|.*/train_distill.*")
_ONE_ENCODED = Text("每步只编码一路", "only one video is encoded per step")
_NOTHING_ON_STREAMS = Text(
    "脚本建立的 CUDA 流上没有任何编码", "the script encodes nothing on the streams that it makes"
)


def has_one_stream(run: Run) -> Optional[Text]:
    """Why streams for the VAE would do nothing, or None."""
    name = f"{script(run).family}/{script(run).name}"
    if prompts_only(run):
        return NO_SAMPLES
    made = [
        call
        for program in run.python
        for call in (*program.calls, *program.untaken)
        if call.name == _MAKES
    ]
    asks = any(_MODE in one.text for call in made for one in call.conditions)
    if asks or (not made and _BY_MODE.fullmatch(name)):
        why = _mode_is_normal(run)
        if why is not None:
            return why
    if _IDLE.fullmatch(name):
        return _NOTHING_ON_STREAMS
    return _ONE_ENCODED if _ONE.fullmatch(name) else None


def _mode_is_normal(run: Run) -> Optional[Text]:
    if takes(run, _MODE) is False:
        return Text(
            "脚本同时读取 args.train_mode，却没有声明它：启用即报错",
            "the script asks for args.train_mode with it and does not declare that: it would fail",
        )
    mode = flag(run, _MODE, default="normal")
    if mode.known and mode.value == "normal":
        return Text(
            "--train_mode=normal 时脚本不建立 CUDA 流",
            "the script makes no streams with --train_mode=normal",
        )
    return None


# --- tiles of the VAE --------------------------------------------------------------------------

# Whose VAE encodes in tiles where told (videox_fun/models/*_vae.py, and Diffusers' AutoencoderKL).
_TILED = ("cogvideox", "flux", "hunyuanvideo", "longcat", "ltx", "qwenimage", "z_image")
_TILES_BY_ITSELF = Text(
    "AutoencoderKLHunyuanVideo 默认分块（use_tiling=True，hunyuanvideo_vae.py）",
    "use_tiling=True by default in AutoencoderKLHunyuanVideo "
    "(videox_fun/models/hunyuanvideo_vae.py)",
)


def untiled(run: Run) -> Optional[Judgement]:
    """The answer for a VAE that no flag tells to work in tiles; None where code would tell it."""
    family = script(run).family
    if not family:
        return cannot_tell(Text("训练脚本未知", "the training script is not known"))
    if not family.startswith(_TILED):
        return cannot_apply(Text("该 VAE 不能分块", "this VAE cannot encode in tiles"))
    if prompts_only(run) and not script(run).rewards:
        return cannot_apply(Text("训练步不用 VAE 编码", "no step encodes anything with the VAE"))
    return by_itself(_TILES_BY_ITSELF) if family == "hunyuanvideo" else None


def how_to_tile(run: Run) -> str:
    """FLUX.2's VAE has the attribute, and no method that sets it."""
    by_attribute = script(run).family.startswith("flux2")
    return "vae.use_tiling = True" if by_attribute else "vae.enable_tiling()"
