"""VideoX-Fun: the flags of its training scripts (argparse, ``store_true`` switches)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from flake8_gpu_training.facts import Origin, Setting, known
from flake8_gpu_training.frameworks.accelerate import practices_of_run
from flake8_gpu_training.frameworks.base import Framework, Spelling
from flake8_gpu_training.frameworks.deepspeed import practices_from_deepspeed
from flake8_gpu_training.frameworks.launched import data_parallel, is_launch_unread, merged
from flake8_gpu_training.frameworks.pytorch_data import loading
from flake8_gpu_training.frameworks.reading import (
    by_default,
    dtype,
    find,
    is_off,
    is_true,
    number,
    practice,
    unknown,
)
from flake8_gpu_training.runs.model import Model, Run

_SCRIPT = "VideoX-Fun scripts/wan2.1_fun/train.py"

_SPELLINGS: dict[str, Spelling] = {
    "precision": Spelling("mixed_precision"),
    "tf32": Spelling("allow_tf32", default=False, source=f"{_SCRIPT}: store_true"),
    "gradient_checkpointing": Spelling(
        "gradient_checkpointing", default=False, source=f"{_SCRIPT}: store_true"
    ),
    "micro_batch_size": Spelling("train_batch_size", default=16, source=f"{_SCRIPT}: 16"),
    "gradient_accumulation_steps": Spelling(
        "gradient_accumulation_steps", default=1, source=f"{_SCRIPT}: 1"
    ),
    "lora_rank": Spelling("rank"),
    "dataloader_workers": Spelling("dataloader_num_workers", default=0, source=f"{_SCRIPT}: 0"),
    "save_steps": Spelling("checkpointing_steps", default=500, source=f"{_SCRIPT}: 500"),
    "report_to": Spelling("report_to", default="tensorboard", source=f"{_SCRIPT}: tensorboard"),
    "lr_scheduler": Spelling("lr_scheduler", default="constant", source=f"{_SCRIPT}: constant"),
    "warmup": Spelling("lr_warmup_steps"),
    "max_grad_norm": Spelling("max_grad_norm", default=1.0, source=f"{_SCRIPT}: 1.0"),
    "model": Spelling("pretrained_model_name_or_path"),
    "dataset": Spelling("train_data_meta", aliases=("train_data_dir",)),
    "output_dir": Spelling("output_dir"),
}


_LOADER = ("pin_memory", "persistent_workers", "prefetch_factor")
_OF_MODEL = re.compile(r"(?:.*/)?scripts/(?P<family>[\w.]+)/(?P<name>train\w*)\.py")


def script_of(run: Run) -> tuple[str, str]:
    """The folder (its models) and the name of the training script; "" where not known."""
    words = [word.text for word in run.command.words] if run.command is not None else []
    for path in (run.entry or "", *words):
        found = _OF_MODEL.fullmatch(path)
        if found is not None:
            return found["family"], found["name"]
    return "", (run.entry or "").rpartition("/")[2].removesuffix(".py")


_BY_TOKENS = ("enable_bucket", "random_hw_adapt", "training_with_video_token_length")


def takes_by_tokens(run: Run) -> bool:
    """Whether a sample's side varies, with as many frames as keep the tokens below a number.

    scripts/wan2.1_fun/train_control.py of 1.0.1: get_length_to_frame_num, and fix_sample_size.
    """
    fixed = find(run, "fix_sample_size")
    switches = (find(run, name) for name in _BY_TOKENS)
    return (fixed is None or fixed.value is None) and all(map(is_true, switches))


def takes_own_sides(run: Run) -> bool:
    """Whether a fork's height and width stand beside a video size that the run leaves alone."""
    images, videos = find(run, "image_sample_size"), find(run, "video_sample_size")
    if images is None or not isinstance(images.value, (list, tuple)) or len(images.value) < 2:
        return False
    return videos is None or videos.origin is Origin.DEFAULT


def _derive(run: Run, spelled: Mapping[str, Setting]) -> dict[str, Setting]:
    launched = practices_of_run(run)
    found: dict[str, Setting] = {}
    found.update(_precision(run, launched))
    if "torch_compile" in launched:
        found["torch_compile"] = launched["torch_compile"]
    found.update(_sharding(run, launched))
    found.update(_optimizer(run))
    found.update(_attention(run))
    found.update(_workers(run, spelled))
    seen = loading(run)
    found.update({name: seen[name] for name in _LOADER if name in seen and seen[name].known})
    found.update(_schedule(run, spelled))
    found.update(_tuning(run))
    found.update(data_parallel(run, merged(found, spelled)))
    return found


def _precision(run: Run, launched: Mapping[str, Setting]) -> dict[str, Setting]:
    """The script's flag, else Accelerate's (``Accelerator(mixed_precision=None)``)."""
    setting = find(run, "mixed_precision")
    if setting is not None and setting.value is not None:
        if not known(setting.value):
            return {"precision": practice("precision", setting.value, setting)}
        value = "fp32" if is_off(setting.value) else dtype(setting.value)
        return {"precision": practice("precision", value, setting)} if value else {}
    if "precision" in launched:
        return {"precision": launched["precision"]}
    if is_launch_unread(run):
        return {}
    return by_default(run, "precision", "fp32", f"{_SCRIPT}: mixed_precision None")


def _sharding(run: Run, launched: Mapping[str, Setting]) -> dict[str, Setting]:
    names = (
        "zero_stage",
        "offload_optimizer",
        "offload_param",
        "overlap_comm",
        "zero_hpz_partition_size",
        "fsdp",
        "fsdp_version",
        "fsdp_offload",
    )
    found = {name: value for name, value in launched.items() if name in names}
    if run.deepspeed is not None:
        read = practices_from_deepspeed(run.deepspeed)
        found.update({name: value for name, value in read.items() if name in names})
    elif "deepspeed_config_file" in run.launcher.options:
        return {**found, **_bundled(run.launcher.options["deepspeed_config_file"])}
    if is_launch_unread(run):
        return found
    if "zero_stage" not in found:
        found.update(by_default(run, "zero_stage", 0, "accelerate: DeepSpeed is off"))
    if "fsdp" not in found:
        found.update(by_default(run, "fsdp", "none", "accelerate: FSDP is off"))
    return found


# What the files of its own folder config say.
_BUNDLED_FILE = re.compile(
    r"(?:.*/)?config/zero_stage(?P<stage>[23])_config(?P<offload>_cpu_offload)?\.json"
)


def _bundled(setting: Setting) -> dict[str, Setting]:
    """The practices of a file that comes with VideoX-Fun; of any other unread file nothing."""
    named = _BUNDLED_FILE.fullmatch(setting.value) if isinstance(setting.value, str) else None
    if named is None:
        return {"zero_stage": unknown("zero_stage", "the DeepSpeed file", at=setting.location)}
    device = "cpu" if named["offload"] else "none"
    values: dict[str, Any] = {
        "zero_stage": int(named["stage"]),
        "offload_optimizer": device,
        "offload_param": device,
        "overlap_comm": True,
        "zero_hpz_partition_size": 1,
        "fsdp": "none",
    }
    return {name: practice(name, value, setting) for name, value in values.items()}


def _attention(run: Run) -> dict[str, Setting]:
    """Any flash kernel that is installed, else SDPA, unless the environment says otherwise."""
    setting = run.environment.get("VIDEOX_ATTENTION_TYPE")
    if setting is None:
        note = (
            "VideoX-Fun videox_fun/models/attention_utils.py: VIDEOX_ATTENTION_TYPE FLASH_ATTENTION"
        )
        return by_default(run, "attention", "auto", note)
    if not known(setting.value):
        return {"attention": practice("attention", setting.value, setting)}
    # SageAttention has no gradients: training goes on with what FLASH_ATTENTION gives.
    is_auto = str(setting.value) in ("FLASH_ATTENTION", "SAGE_ATTENTION")
    return {"attention": practice("attention", "auto" if is_auto else "sdpa", setting)}


def _workers(run: Run, spelled: Mapping[str, Setting]) -> dict[str, Setting]:
    """Workers, where there are any, are kept over epochs."""
    workers = spelled.get("dataloader_workers")
    count = number(workers.value) if workers is not None else None
    if count is None:
        return {}
    note = f"{_SCRIPT}: persistent_workers with workers"
    found = by_default(run, "persistent_workers", count > 0, note)
    note = f"{_SCRIPT}: DataLoader without pin_memory and prefetch_factor"
    found.update(by_default(run, "pin_memory", False, note))
    note = f"{_SCRIPT}: prefetch_factor=2"
    found.update(by_default(run, "prefetch_factor", 2 if count > 0 else None, note))
    return found


def _optimizer(run: Run) -> dict[str, Setting]:
    for flag, name in (("use_8bit_adam", "adamw_8bit"), ("use_came", "came")):
        setting = find(run, flag)
        if is_true(setting):
            return {"optimizer": practice("optimizer", name, setting)}
    return by_default(run, "optimizer", "adamw", f"{_SCRIPT}: torch.optim.AdamW")


def _schedule(run: Run, spelled: Mapping[str, Setting]) -> dict[str, Setting]:
    """The plain constant schedule has no warm-up, whatever ``lr_warmup_steps`` says."""
    schedule = spelled.get("lr_scheduler")
    if schedule is None or not known(schedule.value):
        return {}
    steps = find(run, "lr_warmup_steps")
    if schedule.value == "constant":
        note = "the constant schedule does not warm up"
        return {"warmup": Setting("warmup", 0, schedule.location, schedule.origin, note)}
    if steps is not None:
        return {"warmup": practice("warmup", steps.value, steps)}
    return by_default(run, "warmup", 500, f"{_SCRIPT}: lr_warmup_steps 500")


def _tuning(run: Run) -> dict[str, Setting]:
    """The script's name tells: ``train_lora.py`` and its kin train adapters."""
    entry = f"{script_of(run)[1]}.py"
    rank = find(run, "rank")
    if "lora" in entry or is_true(find(run, "use_peft_lora")):
        note = entry or "use_peft_lora"
        found = {"tuning": Setting("tuning", "lora", run.location, Origin.DERIVED, note)}
        if rank is not None and number(rank.value):
            found["lora_rank"] = practice("lora_rank", rank.value, rank)
        return found
    if entry.startswith("train"):
        return {"tuning": Setting("tuning", "full", run.location, Origin.DERIVED, entry)}
    return {}


# The class of the layers by the folder of the script, and where one folder has several models
# by the script (videox_fun/models/*_transformer*.py: the blocks that the model is made of).
_BLOCKS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "cogvideox_fun": ("CogVideoXBlock",),
        "fantasytalking": ("AudioAttentionBlock",),
        "flashhead": ("FlashHeadAttentionBlock",),
        "flux": ("FluxSingleTransformerBlock", "FluxTransformerBlock"),
        "flux2": ("Flux2SingleTransformerBlock", "Flux2TransformerBlock"),
        "flux2_fun": (
            "Flux2SingleTransformerBlock",
            "BaseFlux2TransformerBlock",
            "Flux2ControlTransformerBlock",
        ),
        "hunyuanvideo": ("HunyuanVideoTransformerBlock", "HunyuanVideoSingleTransformerBlock"),
        "infinitetalk": ("WanAttentionBlock",),
        "longcatvideo": ("LongCatSingleStreamBlock",),
        "longcatvideo/train_avatar": ("LongCatAvatarSingleStreamBlock",),
        "ltx2": ("LTX2VideoTransformerBlock",),
        "ltx2.3": ("LTX2VideoTransformerBlock",),
        "mova": ("WanAttentionBlock", "AudioWanAttentionBlock", "ConditionalCrossAttentionBlock"),
        "qwenimage": ("QwenImageTransformerBlock",),
        "qwenimage_fun": ("BaseQwenImageTransformerBlock", "QwenImageControlTransformerBlock"),
        "qwenimage_instantx": ("QwenImageTransformerBlock",),
        "turbodiffusion": ("WanAttentionBlock",),
        "wan2.1": ("WanAttentionBlock",),
        "wan2.1_fun": ("WanAttentionBlock",),
        "wan2.1_vace": ("VaceWanAttentionBlock", "BaseWanAttentionBlock"),
        "wan2.2": ("WanAttentionBlock",),
        "wan2.2/train_s2v": ("WanS2VAttentionBlock",),
        "wan2.2_fun": ("WanAttentionBlock",),
        "wan2.2_vace_fun": ("VaceWanAttentionBlock", "BaseWanAttentionBlock"),
        "z_image": ("ZImageTransformerBlock",),
        "z_image_fun": ("BaseZImageTransformerBlock", "ZImageControlTransformerBlock"),
    }
)
ALL_BLOCKS = frozenset(name for names in _BLOCKS.values() for name in names)


def blocks(run: Run) -> tuple[str, ...]:
    """Classes of the model's layers, which FSDP wraps one by one; () when not known."""
    family, name = script_of(run)
    return _BLOCKS.get(f"{family}/{name.removesuffix('_lora')}") or _BLOCKS.get(family, ())


_TWO_EXPERTS = re.compile(r"(?i)wan2\.2.*a14b")


def _one_expert(model: Model) -> Model:
    """Of Wan2.2's two experts a script loads the one that ``--boundary_type`` names, and trains
    it (VideoX-Fun scripts/wan2.2*/train*.py)."""
    if model.active_parameters is None or not _TWO_EXPERTS.search(model.name or ""):
        return model
    return replace(model, parameters=model.active_parameters)


FRAMEWORK = Framework(
    id="videox_fun",
    title="VideoX-Fun",
    audit="videox-fun",
    distribution="videox-fun",
    flag="--{name}={value}",
    bare_switches=True,
    spellings=_SPELLINGS,
    derive=_derive,
    loaded=_one_expert,
)
