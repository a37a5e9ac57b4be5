"""SGLang: server arguments (``sglang.launch_server`` flags, ``Engine(...)`` keywords)."""

from __future__ import annotations

from collections.abc import Mapping

from flake8_gpu_training.facts import Setting, known
from flake8_gpu_training.frameworks.base import Framework, Spelling
from flake8_gpu_training.frameworks.engines import Kind
from flake8_gpu_training.frameworks.reading import dtype, find, practice
from flake8_gpu_training.runs.model import Run

_ARGS = "sglang 0.5.23 srt/arg_groups/fields/parallel.py"

_SPELLINGS: dict[str, Spelling] = {
    "precision": Spelling("dtype"),
    "max_length": Spelling("context_length"),
    "quantization_method": Spelling("quantization"),
    "tensor_parallel": Spelling(
        "tp_size",
        default=1,
        source=f"{_ARGS}: tp_size 1",
        aliases=("tp", "tensor_parallel_size"),
    ),
    "pipeline_parallel": Spelling(
        "pp_size",
        default=1,
        source=f"{_ARGS}: pp_size 1",
        aliases=("pp", "pipeline_parallel_size"),
    ),
    "expert_parallel": Spelling(
        "ep_size", default=1, source=f"{_ARGS}: ep_size 1", aliases=("ep", "expert_parallel_size")
    ),
    "model": Spelling("model_path", aliases=("model",)),
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
    id="sglang",
    title="SGLang",
    audit="sglang",
    distribution="sglang",
    flag="--{dashed} {value}",
    bare_switches=True,
    spellings=_SPELLINGS,
    derive=_derive,
)

KIND = Kind(
    "sglang",
    "SGLang",
    builds_are_newest=True,
    shorthands={
        "tp_size": ("tp", "tensor_parallel_size"),
        "dp_size": ("dp", "data_parallel_size"),
        "pp_size": ("pp", "pipeline_parallel_size"),
        "ep_size": ("ep", "expert_parallel_size"),
    },
)
