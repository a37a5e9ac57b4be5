"""What the checks of VideoX-Fun share: its script, what that takes, and the model it trains."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Callable, Optional

from flake8_gpu_training.checks._judging import (
    Judge,
    cannot_apply,
    cannot_tell,
    of_training,
    off,
    on,
)
from flake8_gpu_training.checks._scale import text
from flake8_gpu_training.checks._settings import is_on, parameter
from flake8_gpu_training.checks.base import (
    Item,
    Judgement,
)
from flake8_gpu_training.facts import Setting
from flake8_gpu_training.frameworks.reading import number
from flake8_gpu_training.frameworks.tables import table_of
from flake8_gpu_training.frameworks.videox_fun import (
    script_of,
    takes_by_tokens,
    takes_own_sides,
)
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run

SCRIPTS = "VideoX-Fun 1.0.1, scripts/*/train*.py"
README = "VideoX-Fun 1.0.1, scripts/wan2.1_fun/README_TRAIN.md"
LORA = "VideoX-Fun 1.0.1, videox_fun/utils/lora_utils.py"
ATTENTION = "VideoX-Fun 1.0.1, videox_fun/models/attention_utils.py"
DATA = "VideoX-Fun 1.0.1, videox_fun/data/dataset_image_video.py"

_OTHER = Text("非 VideoX-Fun 任务", "not a VideoX-Fun run")
FULL_TUNING = Text(
    "脚本训练模型自身的权重，没有适配器",
    "the script trains weights of the model itself: no adapters",
)
_UNDECLARED = Text("该训练脚本没有此参数", "this training script does not have the flag")
# Flags that scripts of VideoX-Fun 1.0.1 declare and never read, for scripts out of sight.
UNREAD: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        "use_ema": re.compile(r".*_lora|(?:flux2_fun|z_image|z_image_fun)/.*_distill"),
        "abnormal_norm_clip_start": re.compile(r"(?:flux2_fun|z_image_fun)/train_control_distill"),
        "vae_mini_batch": re.compile(r"z_image/train_distill(?:_lora)?"),
        "weighting_scheme": re.compile(r"(?:z_image|z_image_fun)/.*_distill(?:_lora)?"),
        "motion_sub_loss": re.compile(r"(?:turbodiffusion|wan2\.[12])/train_distill(?:_lora)?"),
        "video_sample_stride": re.compile(r"wan2\.2_fun/train_reward_lora"),
        "trainable_modules_low_learning_rate": re.compile(r".*/train_s2v_lora"),
    }
)
_IMAGES = frozenset({"flux", "flux2", "flux2_fun", "z_image", "z_image_fun"})


def of_videox(judge: Judge) -> Judge:
    """``judge`` for training runs of VideoX-Fun, whose flags are its own."""

    @functools.wraps(judge)
    @of_training(alone=True)
    def judged(run: Run) -> Judgement:
        return judge(run) if run.framework == "videox_fun" else cannot_apply(_OTHER)

    return judged


def item(category: str, identifier: str, points: float, group: str = "", variant: str = "") -> Item:
    """An item of VideoX-Fun's audit."""
    return Item("videox-fun", category, identifier, points, group, variant)


# --- the script -------------------------------------------------------------------------


@dataclass(frozen=True)
class Script:
    """A training script: the folder of its model family, and its name."""

    family: str
    name: str

    @property
    def rewards(self) -> bool:
        """Whether it learns from a reward model: it reads prompts, no samples."""
        return "reward" in self.name

    @property
    def distills(self) -> bool:
        """Whether it distills steps: it reads samples or prompts."""
        return "distill" in self.name


def script(run: Run) -> Script:
    """The script as the command names it; of a script of another name all is unknown."""
    family, name = script_of(run)
    return Script(family, name)


def takes(run: Run, name: str) -> Optional[bool]:
    """Whether the run's script has a flag; None where neither script nor table tells."""
    if name in run.settings:
        return True
    declared = {
        flag for program in run.python for option in program.options for flag in option.flags
    }
    if declared:
        return f"--{name}" in declared
    table = table_of("videox-fun")
    of = script(run)
    group = f"{of.family}/{of.name}"
    if table is None or group not in table.groups:
        return None
    release = len(table.versions) - 1
    return any(table.knows(part, name, release) for part in (group, "common"))


def flag(run: Run, name: str, default: Any = False) -> Setting:
    """A flag of the script, with where its default was read."""
    return parameter(run, name, default=default, source=SCRIPTS)


def without(run: Run, name: str) -> Optional[Judgement]:
    """The answer for scripts that lack a flag; None for those that have it."""
    answer = takes(run, name)
    if answer is None:
        return cannot_tell(
            Text(f"脚本是否有 --{name} 未知", f"whether it takes --{name} is unknown")
        )
    if not answer:
        return cannot_apply(_UNDECLARED)
    if is_unread(run, name):
        return cannot_apply(
            Text(
                f"脚本声明了 --{name}，但从不读取它",
                f"the script declares --{name} and never reads it",
            )
        )
    return None


def is_unread(run: Run, name: str) -> bool:
    """Whether a flag is declared only: the script's code does nothing with it."""
    declared = [
        program
        for program in run.python
        if any(f"--{name}" in option.flags for option in program.options)
    ]
    if declared:
        return all(name in program.unread for program in declared)
    scripts, of = UNREAD.get(name), script(run)
    return scripts is not None and scripts.fullmatch(f"{of.family}/{of.name}") is not None


def is_lora(run: Run) -> Optional[bool]:
    """Whether adapters are trained; None when that is not known."""
    tuning = text(run, "tuning")
    return None if tuning is None else tuning == "lora"


def unless_lora(run: Run) -> Optional[Judgement]:
    """The answer for runs without adapters; None for those with them."""
    trained = is_lora(run)
    if trained is None:
        return cannot_tell(run.practice("tuning"))
    return None if trained else cannot_apply(FULL_TUNING)


# --- the samples -------------------------------------------------------------------------


def trains_images(run: Run) -> bool:
    """Whether the script's model makes images only."""
    family = script(run).family
    return family in _IMAGES or family.startswith("qwenimage") or run.model.kind == "image"


def figure(run: Run, *names: str, default: Optional[float] = None) -> Optional[float]:
    """A flag that is a known number."""
    found = parameter(run, *names, default=default)
    return number(found.value) if found.known else None


def frames(run: Run) -> Optional[float]:
    """Frames of a sample."""
    if trains_images(run):
        return 1
    return figure(run, "video_sample_n_frames", "video_length")


def side(run: Run) -> Optional[float]:
    """Pixels of a side of a sample, at most."""
    if trains_images(run):
        return figure(run, "image_sample_size")
    if takes_by_tokens(run):
        return figure(run, "token_sample_size", default=512)
    if takes_own_sides(run):
        return None
    return figure(run, "video_sample_size", "train_sample_height")


# VAEs of Wan2.1, CogVideoX and HunyuanVideo: 4 frames and 8 x 8 pixels to a latent, of which the
# transformer takes 2 x 2 to a token; FLUX, Qwen-Image and Z-Image alike for one frame
# (videox_fun/models: *_vae.py, patch_size of *_transformer*.py).
_PIXELS_A_TOKEN = 16
_FRAMES_A_LATENT = 4
_COARSER = ("ltx", "longcat")


def tokens(run: Run) -> Optional[int]:
    """Tokens that the transformer sees of one sample; None where the VAE is another."""
    count, size = frames(run), side(run)
    if count is None or size is None or script(run).family.startswith(_COARSER):
        return None
    latents = (count - 1) // _FRAMES_A_LATENT + 1
    return int(latents * (size / _PIXELS_A_TOKEN) ** 2)


# --- sharding ------------------------------------------------------------------------------


def is_fsdp(run: Run) -> bool:
    """Whether FSDP shards the transformer."""
    return text(run, "fsdp") not in (None, "none", "no_shard")


def is_deepspeed(run: Run) -> bool:
    """Whether DeepSpeed is known to drive the run."""
    setting = run.practice("zero_stage")
    return setting.known and (setting.location is not None or bool(setting.value))


# --- switches ----------------------------------------------------------------------------------

Obstacle = Callable[[Run], Optional[Text]]


def switch(name: str, hint: Text, obstacle: Optional[Obstacle] = None) -> Judge:
    """Judges a flag that a run may do without; ``obstacle`` says why it would do nothing."""

    @of_videox
    def judge(run: Run) -> Judgement:
        lacking = without(run, name)
        if lacking is not None:
            return lacking
        setting = flag(run, name)
        if not setting.known:
            return cannot_tell(setting)
        why = obstacle(run) if obstacle is not None else None
        if why is not None:
            return cannot_apply(why)
        return on(setting) if is_on(setting) else off(hint, setting)

    return judge
