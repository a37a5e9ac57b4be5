"""vLLM: engine arguments (``vllm serve`` flags, ``LLM(...)`` keywords)."""

from __future__ import annotations

from collections.abc import Mapping

from flake8_gpu_training.facts import Setting, known
from flake8_gpu_training.frameworks.base import Framework, Spelling
from flake8_gpu_training.frameworks.engines import Kind
from flake8_gpu_training.frameworks.reading import dtype, find, practice
from flake8_gpu_training.frameworks.vllm_defaults import computed
from flake8_gpu_training.runs.model import Run

_ARGS = "vLLM engine/arg_utils.py and config"

_SPELLINGS: dict[str, Spelling] = {
    "precision": Spelling("dtype"),
    "max_length": Spelling("max_model_len"),
    "quantization_method": Spelling("quantization"),
    "tensor_parallel": Spelling(
        "tensor_parallel_size",
        default=1,
        source=f"{_ARGS}: tensor_parallel_size 1",
        aliases=("tp",),
    ),
    "pipeline_parallel": Spelling(
        "pipeline_parallel_size",
        default=1,
        source=f"{_ARGS}: pipeline_parallel_size 1",
        aliases=("pp",),
    ),
    "model": Spelling("model", aliases=("model_tag",)),
}


def _derive(run: Run, spelled: Mapping[str, Setting]) -> dict[str, Setting]:
    found: dict[str, Setting] = {}
    setting = find(run, "dtype")
    value = dtype(setting.value) if setting is not None and known(setting.value) else None
    if setting is not None and value is not None:
        found["precision"] = practice("precision", value, setting)
    method = spelled.get("quantization_method")
    if method is not None and isinstance(method.value, str):
        found["quantization_method"] = practice("quantization_method", method.value.lower(), method)
    return found


FRAMEWORK = Framework(
    id="vllm",
    title="vLLM",
    audit="vllm",
    distribution="vllm",
    flag="--{dashed} {value}",
    bare_switches=True,
    spellings=_SPELLINGS,
    derive=_derive,
)

KIND = Kind(
    "vllm",
    "vLLM",
    builds_are_newest=True,
    shorthands={
        "optimization_level": ("O",),
        "compilation_config": ("cc",),
        "attention_config": ("ac",),
        "speculative_config": ("sc",),
    },
    computed=computed,
)
