"""verl: what is written in the overrides of ``verl.trainer.main_ppo`` and its SFT trainers.

Hydra composes the rest from files of the package, so no default is claimed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from flake8_gpu_training.facts import Setting
from flake8_gpu_training.frameworks.base import Spelling
from flake8_gpu_training.frameworks.reading import find, number, practice
from flake8_gpu_training.runs.model import Run, RunKind

FLAG = "{name}={value}"

_ENTRY = re.compile(
    r"(?:.*[./])?verl[./]trainer[./](main_ppo\w*|fsdp_sft_trainer|sft_trainer\w*?)(?:\.py)?"
)
_MODEL = "actor_rollout_ref.model"
_ACTOR = "actor_rollout_ref.actor"

_PPO: Mapping[str, Spelling] = {
    "dataloader_workers": Spelling("data.dataloader_num_workers"),
    "micro_batch_size": Spelling(f"{_ACTOR}.ppo_micro_batch_size_per_gpu"),
    "padding_free": Spelling(f"{_MODEL}.use_remove_padding"),
    "gradient_checkpointing": Spelling(f"{_MODEL}.enable_gradient_checkpointing"),
    "liger_kernel": Spelling(f"{_MODEL}.use_liger"),
    "lr_scheduler": Spelling(
        f"{_ACTOR}.optim.lr_scheduler_type", aliases=(f"{_ACTOR}.optim.warmup_style",)
    ),
    "warmup": Spelling(
        f"{_ACTOR}.optim.lr_warmup_steps_ratio", aliases=(f"{_ACTOR}.optim.lr_warmup_steps",)
    ),
    "rollout_engine": Spelling("actor_rollout_ref.rollout.name"),
    "save_steps": Spelling("trainer.save_freq"),
    "report_to": Spelling("trainer.logger"),
    "model": Spelling(f"{_MODEL}.path"),
    "dataset": Spelling("data.train_files"),
    "output_dir": Spelling("trainer.default_local_dir"),
}
_SFT: Mapping[str, Spelling] = {
    "dataloader_workers": Spelling("data.num_workers"),
    "micro_batch_size": Spelling("data.micro_batch_size_per_gpu"),
    "max_length": Spelling("data.max_length"),
    "padding_free": Spelling("model.use_remove_padding", aliases=("use_remove_padding",)),
    "gradient_checkpointing": Spelling("model.enable_gradient_checkpointing"),
    "liger_kernel": Spelling("model.use_liger"),
    "lr_scheduler": Spelling("optim.lr_scheduler_type", aliases=("optim.lr_scheduler",)),
    "warmup": Spelling("optim.lr_warmup_steps_ratio", aliases=("optim.warmup_steps_ratio",)),
    "save_steps": Spelling("trainer.save_freq"),
    "report_to": Spelling("trainer.logger"),
    "model": Spelling("model.path", aliases=("model.partial_pretrain",)),
    "dataset": Spelling("data.train_files"),
    "output_dir": Spelling("trainer.default_local_dir"),
}


def trainer_of(run: Run) -> str:
    """``main_ppo``, ``sft_trainer`` … of a verl run; empty for others."""
    if run.framework != "generic" or run.kind is not RunKind.TRAIN or run.command is None:
        return ""
    for word in run.command.words:
        found = _ENTRY.fullmatch(word.text)
        if found is not None:
            return found.group(1)
    return ""


def spellings(trainer: str) -> Mapping[str, Spelling]:
    """How the trainer spells practices."""
    return _SFT if "sft" in trainer else _PPO


def practices(run: Run, trainer: str) -> dict[str, Setting]:
    """What takes more than a renaming."""
    found: dict[str, Setting] = {}
    estimator = find(run, "algorithm.adv_estimator")
    if "sft" in trainer:
        found["algorithm"] = Setting("algorithm", "sft", run.location, note=trainer)
    elif estimator is not None:
        value = estimator.value if estimator.value in ("grpo", "rloo") else "ppo"
        found["algorithm"] = practice("algorithm", value, estimator)
    else:
        found["algorithm"] = Setting("algorithm", "ppo", run.location, note=trainer)
    saving = find(run, "trainer.save_freq")
    if saving is not None and saving.known and (number(saving.value) or 0) <= 0:
        found["save_steps"] = practice("save_steps", None, saving)
    rank = find(run, f"{_MODEL}.lora_rank", "model.lora_rank")
    if rank is not None and rank.known:
        tuning = "lora" if (number(rank.value) or 0) > 0 else "full"
        found["tuning"] = practice("tuning", tuning, rank)
    return found
