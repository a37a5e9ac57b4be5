"""Which models the kernel libraries know, and which of them suits a run."""

from __future__ import annotations

import re
from typing import Optional

from flake8_gpu_training.checks._scale import ranks, text
from flake8_gpu_training.runs.model import Run

# Families behind MODEL_TYPE_TO_APPLY_LIGER_FN of liger-kernel 0.8.5, by how their
# checkpoints are named on the hubs.
_LIGER_FAMILIES = re.compile(
    r"(?i)(?:^|/)(?:meta-)?(?:"
    r"llama-?(?:2|3|4)|codellama|vicuna|tinyllama|"
    r"qwen-?(?:2|3)|qwq|"
    r"mistral|mixtral|ministral|pixtral|"
    r"(?:code)?gemma-?(?:[1234]|7b)|paligemma|"
    r"phi-?(?:3|4)|"
    r"granite-?3|"
    r"olmo-?(?:2|3)|"
    r"glm-?4(?!-9b)|"
    r"smollm3|"
    r"gpt-oss|"
    r"exaone-?4|"
    r"deepseek-(?:v2|v3|llm|r1-distill)|"
    r"falcon-h1|"
    r"hunyuan-.*instruct|"
    r"llava-(?:1\.5|v1\.5)"
    r")"
)


def liger_supports(run: Run) -> Optional[bool]:
    """Whether liger-kernel patches the run's model; None when the model is not known."""
    if run.model.name is None:
        return None
    return _LIGER_FAMILIES.search(run.model.name.strip().rstrip("/")) is not None


def prefers_unsloth(run: Run) -> bool:
    """Whether Unsloth suits the run better than Liger: LoRA on one GPU under ms-swift."""
    return (
        run.framework == "swift"
        and text(run, "tuning") == "lora"
        and ranks(run) == 1
        and text(run, "algorithm") in (None, "pt", "sft")
        and run.value("megatron") is not True
        and run.model.kind == "LLM"
        and not run.model.is_moe
    )
