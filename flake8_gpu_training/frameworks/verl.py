"""verl: what is written in the overrides of ``verl.trainer.main_ppo`` and its SFT trainers.

Hydra composes the rest from files of the package. Of its defaults those are claimed that the
actor of ``main_ppo`` has had in all releases, where the command names no other configuration.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from flake8_gpu_training.facts import Setting, Unknown, Word, known
from flake8_gpu_training.frameworks.base import Spelling
from flake8_gpu_training.frameworks.reading import (
    find,
    number,
    parsed,
    practice,
    truth,
    unknown,
    version_of,
)
from flake8_gpu_training.runs.model import Run, RunKind

FLAG = "{name}={value}"

NAMING = ("config_path", "cp", "config_dir", "cd", "config_name", "cn")
"""What names a configuration on the command line (Hydra)."""
# verl 0.9.1, trainer/config: its configurations, and the groups that they choose from.
CONFIGURATIONS = "verl/trainer/config"
BASES = ("ppo_trainer", "ppo_megatron_trainer")
GROUPS = frozenset(
    [
        *("actor", "algorithm", "critic", "data", "distillation", "engine", "model"),
        *("model_engine", "npu_profile", "optim", "profiler", "ref", "reward", "rollout"),
        *("reward_model", "reward_manager", "transfer_queue"),
    ]
)

FULLY_ASYNC = "fully_async_main"
"""The trainer whose engines sample on GPUs of their own while it trains."""
_ENTRY = re.compile(
    r"(?:.*[./])?verl[./](?:trainer[./](main_ppo\w*|fsdp_sft_trainer|sft_trainer\w*?)"
    rf"|experimental[./]\w+[./]({FULLY_ASYNC}))(?:\.py)?"
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
            return found.group(1) or found.group(2)
    return ""


_GENERATES = re.compile(r"(?:.*[./])?verl[./]trainer[./]main_generation_server(?:\.py)?")


def generates(run: Run) -> bool:
    """Whether verl's engines answer prompts of a file, and nothing trains."""
    words = run.command.words if run.command is not None else ()
    return run.kind is RunKind.INFER and any(_GENERATES.fullmatch(word.text) for word in words)


_READ = "0.9.1"
"""The newest release whose configuration was read."""


_NAMING_VLLM, _NAMING_NONE, _NEWER_VLLM = "0.5.0", "0.6", (0, 10)
"""The last release read whose rollout is vLLM's by default, the first that asks for a name, and
the first vLLM that only came after the former."""
ROLLOUT_NAME = "actor_rollout_ref.rollout.name"


def release_of(run: Run) -> str:
    """verl's release: of the source that the project holds, the pinned one, the one of the time
    of a pinned vLLM, else the newest."""
    told = run.held.get("verl") or run.versions.get("verl")
    if told:
        return told
    return _NAMING_VLLM if (0,) < version_of(run, "vllm") < _NEWER_VLLM else _READ


def names_vllm(run: Run) -> bool:
    """Whether the release at hand takes vLLM where the command names no engine."""
    release = parsed(release_of(run))
    return (0,) < release < parsed(_NAMING_NONE) and find(run, *NAMING) is None


def engine_asked_for(run: Run) -> str:
    """What the release at hand installs as vLLM, where the project states nothing (PEP 440)."""
    stated = "vllm" in run.versions or "vllm" in run.limits or "vllm" in run.perhaps
    return "" if stated or not release_of(run).startswith("0.9") else "==0.24.0"


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
    if trainer == "main_ppo":
        found.update(_of_actor(run))
        found.update(_rolled_out(run))
    dynamic = find(run, f"{_ACTOR}.use_dynamic_bsz", "data.use_dynamic_bsz")
    if dynamic is not None and truth(dynamic.value) is not False:
        reason = "micro-batches are cut by their tokens"
        found["micro_batch_size"] = unknown("micro_batch_size", reason, at=dynamic.location)
    rank = find(run, f"{_MODEL}.lora_rank", "model.lora_rank")
    if rank is not None:
        tuning = "lora" if (number(rank.value) or 0) > 0 else "full"
        found["tuning"] = practice("tuning", tuning, rank)
    return found


_ARGUMENTS = re.compile(r"\"?\$(?:[@*]|\{[@*](?::\d+)?\})\"?")
"""Those of the script itself, which is started without any here."""
_ACTORS = "verl 0.2.0 to 0.9.1 workers"


def _of_actor(run: Run) -> dict[str, Setting]:
    """How the actor is sharded and computes, as FSDP's workers have it unless overridden."""
    strategy, named = find(run, f"{_ACTOR}.strategy"), find(run, "config_name")
    if may_tell_engine(run) or (named is not None and "megatron" in str(named.value)):
        return {}
    if strategy is not None and strategy.value not in ("fsdp", "fsdp2"):
        return {}
    found: dict[str, Setting] = {}
    size = find(run, f"{_ACTOR}.fsdp_config.fsdp_size")
    rollout = find(run, "actor_rollout_ref.rollout.name")
    kept = find(run, f"{_ACTOR}.fsdp_config.reshard_after_forward")
    if (
        kept is None
        and (size is None or size.value == -1)
        and (rollout is None or rollout.value != "hf")
    ):
        note = f"{_ACTORS}: FSDP shards the actor over all GPUs"
        found["fsdp"] = practice("fsdp", "full_shard", strategy, note)
        found["zero_stage"] = practice("zero_stage", 0, strategy, note)
    if not _is_overridden(run, f"{_ACTOR}.fsdp_config", "dtype", "mixed_precision"):
        found["precision"] = practice("precision", "bf16", None, f"{_ACTORS}: param_dtype bf16")
    if not _is_overridden(run, f"{_MODEL}.override_config", "attn_implementation", ""):
        note = f"{_ACTORS}: attn_implementation flash_attention_2"
        found["attention"] = practice("attention", "flash_attention_2", None, note)
    found["tuning"] = practice("tuning", "full", None, f"{_ACTORS}: lora_rank 0")
    for name in ("tensor_parallel", "pipeline_parallel"):  # of Megatron's workers alone
        found[name] = practice(name, 1, None, f"{_ACTORS}: FSDP shards the actor over all GPUs")
    split = find(
        run,
        f"{_ACTOR}.ulysses_sequence_parallel_size",
        f"{_ACTOR}.fsdp_config.ulysses_sequence_parallel_size",
    )
    if split is not None:
        found["sequence_parallel"] = practice("sequence_parallel", split.value, split)
    whole, world = find(run, f"{_ACTOR}.ppo_micro_batch_size"), run.launcher.world_size
    others = find(
        run, f"{_ACTOR}.ppo_micro_batch_size_per_gpu", f"{_ACTOR}.ulysses_sequence_parallel_size"
    )
    if whole is not None and isinstance(whole.value, int) and world and others is None:
        note = f"{whole.written} of {world} GPUs"
        found["micro_batch_size"] = practice("micro_batch_size", whole.value // world, whole, note)
    return found


def _rolled_out(run: Run) -> dict[str, Setting]:
    """The length of a prompt with its response, each of which has a limit of its own."""
    prompt, answer = find(run, "data.max_prompt_length"), find(run, "data.max_response_length")
    if prompt is None or answer is None:
        return {}
    limit, longest = number(prompt.value), number(answer.value)
    if limit is None or longest is None:
        return {}
    note = f"data.max_prompt_length {limit:g} + data.max_response_length {longest:g}"
    return {"max_length": practice("max_length", int(limit + longest), prompt, note)}


def may_say_more(run: Run) -> bool:
    """Whether another configuration is named, or a word of the command may be any override."""
    # what could be read of them is among the settings
    return find(run, *NAMING) is not None or _may_override(run)


def may_tell_engine(run: Run) -> bool:
    """The same where verl's own configurations are known: they say nothing of the engine but its
    name, nor, without Megatron, of the actor."""
    if _may_override(run):
        return True
    return may_say_more(run) and not _has_stock_configuration(run)


def _may_override(run: Run) -> bool:
    words = run.command.words if run.command is not None else ()
    return any(
        not known(word.value)
        and "=" not in word.text
        and not _ARGUMENTS.fullmatch(word.text)
        and not _is_read(run, word)
        for word in words
    )


def _is_read(run: Run, word: Word) -> bool:
    """Whether all that branches put into an array are overrides that the settings hold."""
    choices = word.value.candidates if isinstance(word.value, Unknown) else ()
    lists = [pieces for choice in choices if (pieces := str(choice).split())]
    pieces = [piece for one in lists for piece in one]
    if not lists or any("$" in piece or _NAMES_FILE.match(piece) for piece in pieces):
        return False
    # what is no override continues the quoted value of the one before
    pairs = [*(one[0] for one in lists), *filter(_PAIR.match, pieces)]
    return all(
        _PAIR.match(pair) is not None and pair.partition("=")[0].lstrip("+") in run.settings
        for pair in pairs
    )


_NAMES_FILE = re.compile(r"--(?:config|experimental)|-c")
_PAIR = re.compile(r"\+{0,2}[A-Za-z_][\w.]*=")


_STOCK = frozenset(
    """
    ppo_trainer ppo_megatron_trainer gsm8k_multiturn_grpo gsm8k_multiturn_grpo_w_interaction
    gsm8k_multiturn_megatron_grpo geo3k_multiturn_grpo geo3k_multiturn_megatron_grpo
    retool_multiturn_grpo search_multiturn_grpo search_multiturn_grpo_one_step_off
    fully_async_ppo_trainer fully_async_ppo_megatron_trainer
    """.split()  # noqa: SIM905
)
"""Of verl/trainer/config, examples/sglang_multiturn/config and verl/experimental."""
_STOCK_FOLDER = re.compile(
    r"(?:\./)?config/?|.*verl/trainer/config/?|.*examples/sglang_multiturn/config/?"
)


def _has_stock_configuration(run: Run) -> bool:
    folder, name = find(run, "config_path"), find(run, "config_name")
    if find(run, "config_dir", "cp", "cn", "cd") is not None:
        return False
    named = name is None or str(name.value).partition(".")[0] in _STOCK
    told = folder.text or str(folder.value) if folder is not None else "config"
    return named and _STOCK_FOLDER.fullmatch(told.strip("'\"")) is not None


def _is_overridden(run: Run, section: str, *names: str) -> bool:
    """Whether one of ``names`` in ``section``, or the section as a whole, is written."""
    keys = [key.lstrip("+") for key in run.settings]
    return any(
        key == section or any(key.startswith(f"{section}.{name}") for name in names) for key in keys
    )
