"""Why a real parser refused a configuration: which refusals no static check can foresee."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional


@dataclass(frozen=True)
class Reason:
    """Texts of refusals that are not counted, and why; of all frameworks unless some are named."""

    pattern: str
    why: str
    frameworks: tuple[str, ...] = ()


SET_ASIDE: tuple[Reason, ...] = (
    Reason(r"support bf16/gpu|GPU arch|requires? .*(GPU|CUDA)|No GPU|no NVIDIA", "no GPU is here"),
    Reason(
        r"pip install|not installed|is required|requires? (the|that you).*(install|package|librar)|"
        r"No module named|No package metadata|could not be found in your environment",
        "an optional package is missing here",
    ),
    Reason(
        r"cannot be downloaded here|Can't load|couldn't connect|offline|outgoing traffic|"
        r"No such file|does not exist|not a (local )?(file|folder|directory)|"
        r"HFValidationError|Repo id must|is not an adapter|Cannot find the requested|"
        r"Permission denied|Errno",
        "a file, model or data set is not here",
    ),
)
"""What says something of this machine, not of the configuration."""

UNDECIDABLE: tuple[Reason, ...] = (
    Reason(
        r"Default process group has not been initialized",
        "ddp_backend in one process; how many are started depends on the GPUs",
        ("trl", "llamafactory", "ms-swift"),
    ),
    Reason(
        r"global (eval )?batch size|must be divisible by num_generations",
        "how many processes trl starts depends on the GPUs",
        ("trl",),
    ),
    Reason(r"object has no attribute|unhashable type", "a crash of the parser's own on a shape"),
)
"""What depends on more than the project says, or is no refusal but a crash."""

LATER: tuple[Reason, ...] = (
    Reason(
        r"python starts one process that belongs|log_level(_replica)? one of",
        "transformers/trainer.py, Trainer.__init__",
    ),
    Reason(
        r"give a reward weight for each reward",
        "swift/rlhf_trainers/grpo_trainer.py, GRPOTrainer._prepare_rewards",
    ),
    Reason(
        r"there is no tracker",
        "transformers/integrations/integration_utils.py, get_reporting_integration_callbacks",
    ),
    Reason(
        r"for flash_attn: there is",
        "llamafactory/model/model_utils/attention.py, configure_attn_implementation",
    ),
    Reason(r"where the Trainer reckons with it", "transformers/trainer.py, torch/optim"),
    Reason(r"give min_lr or min_lr_rate", "transformers/optimization.py"),
    Reason(r"save_strategy=best has to know", "transformers/trainer.py, Trainer.__init__"),
    Reason(r"has to know which modules it is for", "transformers/trainer_optimizer.py"),
    Reason(r"padding_free alone does not cut|loss_type one of nll", "trl/trainer/sft_trainer.py"),
    Reason(r"KTO (estimates its KL|pairs each sample)", "trl/trainer/kto_trainer.py"),
    Reason(r"with an adapter there is no reference model", "trl/trainer/dpo_trainer.py"),
    Reason(
        r"there is no reference model|one of token, sequence|loss_type one of grpo",
        "trl/trainer/grpo_trainer.py",
    ),
    Reason(r"updates layer by layer|does not work in several", "transformers/trainer_optimizer.py"),
    Reason(
        r"takes one of them, and|needs a falling rate|greedy does not take",
        "transformers/optimization.py, the schedules",
    ),
    Reason(r"needs data to evaluate on", "transformers/trainer.py, Trainer.__init__"),
    Reason(
        r"the two cannot both be on|from whole checkpoints|does not go with (SHARDED|ZeRO)|"
        r"num_steps does not go with",
        "transformers/trainer.py, Trainer.create_accelerator_and_postprocess",
    ),
    Reason(
        r"how long a row is|selective (chooses|does not work)|fuses the head",
        "trl/trainer/sft_trainer.py, SFTTrainer.__init__",
    ),
    Reason(
        r"DPO has no loss|has none but reverse_kl|sorts the samples|exo_pair needs|"
        r"a fixed reference|weighs tokens and",
        "trl/trainer/*_trainer.py, __init__",
    ),
    Reason(r"GRPO has no (loss|reward)", "swift/rlhf_trainers/grpo_trainer.py"),
    Reason(
        r"stage=ppo (takes no data to evaluate|cannot resume)", "llamafactory/train/ppo/trainer.py"
    ),
    Reason(
        r"(bnb|hqq|eetq|GPTQ) does not know|ZeRO-3 does not split",
        "llamafactory/model/model_utils/quantization.py",
    ),
    Reason(r"there is no stage", "llamafactory/train/tuner.py, _training_function"),
    Reason(r"there is no strategy", "llamafactory/data/data_utils.py, merge_dataset"),
    Reason(r"no such template|does not take it, and LLaMA", "llamafactory/data/template.py"),
    Reason(r"layers, which \d+ does not divide", "llamafactory/model/adapter.py"),
    Reason(r"load one adapter|by LoRA alone|not know OFT", "llamafactory/model/adapter.py"),
    Reason(
        r"cannot accumulate|use_(galore|apollo) has no|a share of the parameters|asks a server",
        "llamafactory/train/trainer_utils.py",
    ),
    Reason(r"use_kt does not go with", "llamafactory/train/sft/workflow.py"),
    Reason(r"there is no tuner", "swift/pipelines/train/tuner.py"),
    Reason(r"make the parallel sizes divide", "swift/sequence_parallel, its device mesh"),
)
"""Our findings about what is refused after the arguments are parsed, and where: whether they
are right cannot be seen from the real parser, so each was read in the source."""


_OF_PARSERS = re.compile(
    r"not used by the HfArgumentParser|unrecognized arguments|remaining_argv|invalid choice|"
    r"unexpected keyword|is not a valid|expected (at least )?one argument"
)
"""Refusals that quote what the user wrote, whatever that is."""


def uncounted(answer: Mapping[str, Any], framework: str) -> Optional[str]:
    """Why a framework's refusal is not counted; None when it is."""
    text = f"{answer['type']}: {answer['text']}"
    if answer["type"] in ("ImportError", "ModuleNotFoundError", "PackageNotFoundError", "Died"):
        return "an optional package is missing here"
    if _OF_PARSERS.search(text):
        return None
    for reason in (*SET_ASIDE, *UNDECIDABLE):
        if reason.frameworks and framework not in reason.frameworks:
            continue
        if re.search(reason.pattern, text):
            return reason.why
    return None


def is_later(message: str) -> bool:
    """Whether a finding is about a step after the arguments are parsed."""
    return any(re.search(reason.pattern, message) for reason in LATER)


def kind_of(answer: Mapping[str, Any]) -> str:
    """The text of a refusal without its names and figures, to group by."""
    text = str(answer["text"]).strip().splitlines()
    line = text[0] if text else ""
    line = re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`", "…", line)
    line = re.sub(r"\[[^\]]*\]|\([^)]*\)|\{[^}]*\}", "…", line)
    line = re.sub(r"--?[\w-]+(?: \S+)?$", "…", line)
    line = re.sub(r"--[\w/-]+", "…", line)
    line = re.sub(r"-?\d[\d.e+-]*", "#", line)
    return f"{answer['type']}: {line[:140]}"
