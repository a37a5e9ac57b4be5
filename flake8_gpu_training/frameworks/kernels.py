"""The attention kernels that a program's own code calls, and what else may be its attention.

A kernel is that of the trained model only where nothing else in the code that is run could be:
no attention by hand, none of PyTorch's layers, no library that brings models of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Optional

from flake8_gpu_training.facts import Call, Import, Origin, PythonFile, Setting, Unknown, known
from flake8_gpu_training.frameworks.reading import version_of
from flake8_gpu_training.runs.model import Run
from flake8_gpu_training.sources.python import HAS_KERNEL

_FLASH = "flash_attention_2"
_KERNELS: Mapping[str, str] = {
    "flash_attn_func": _FLASH,
    "flash_attn_qkvpacked_func": _FLASH,
    "flash_attn_kvpacked_func": _FLASH,
    "flash_attn_varlen_func": _FLASH,
    "flash_attn_varlen_qkvpacked_func": _FLASH,
    "flash_attn_varlen_kvpacked_func": _FLASH,
    "memory_efficient_attention": "xformers",
    "flex_attention": "flex_attention",
    "scaled_dot_product_attention": "sdpa",
    "sageattn": "sage",
}
_SWITCH = "enable_xformers_memory_efficient_attention"
"""What a model of diffusers is told; a kernel is called only inside it."""
_OWNERS = (
    "torch.nn.functional",
    "torch.nn.attention.flex_attention",
    "flash_attn",
    "flash_attn_interface",
    "flash_attn_2_cuda",
    "xformers",
    "sageattention",
)
_LAYERS: Mapping[str, str] = {
    "attention by hand": "eager",
    "multihead attention": "eager",
    "attention layers": "eager",
    "attention table": "",
}
"""Words about other attention in a file, and the kernel that it stands for."""
_BRING_MODELS = frozenset(
    """
    open_clip clip x_transformers vit_pytorch monai segmentation_models_pytorch fairseq fairseq2
    espnet espnet2 esm sentence_transformers whisper speechbrain nemo torchtune transformer_engine
    performer_pytorch linformer reformer_pytorch mamba_ssm fla natten sam2 segment_anything
    ultralytics torch_geometric pytorch_forecasting lerobot unsloth megatron mmengine mmdet mmcv
    mmseg detectron2 allennlp flair simpletransformers litgpt xtuner vllm rotary_transformer
    """.split()  # noqa: SIM905
)
_PARTS_OF_TIMM = (
    "timm.layers",
    "timm.models.layers",
    "timm.utils",
    "timm.data",
    "timm.optim",
    "timm.scheduler",
    "timm.loss",
    "timm.models.registry",
)


def kernel_of_code(run: Run, loaded: Optional[Setting]) -> Optional[Setting]:
    """The attention by the kernels that the code calls; ``loaded``: that of a loaded model.

    None where it calls none, or where a loaded model was told its attention.
    """
    if loaded is not None and loaded.explicit:
        return None
    switch = next((c for c in _calls(run) if c.method == _SWITCH), None)
    kernels = [(file, call) for file in run.python for call in file.calls if _is_kernel(call)]
    if not kernels:
        return _switched(switch) if switch is not None else None
    first = kernels[0][1]
    values = {_kernel(file, call) for file, call in kernels}
    others = {value for value in _others(run, loaded) if value not in values}
    if switch is not None:
        others.add("xformers")
    told = sorted({*values, *others} - {""})
    if all(_undecided(run, file, call) for file, call in kernels):
        reason = f"it depends on {first.conditions[-1].text or 'a branch'}"
    elif "" in values:
        reason = f"{first.method} is no kernel of a library"
    elif len(values) > 1 or others - {""}:
        reason = "several kinds of attention in the code"
    elif others:
        reason = "other code may bring attention of its own"
    else:
        return _from(first, values.pop())
    return _from(first, Unknown(reason, tuple(told)))


def other_attention(run: Run) -> Optional[str]:
    """What in the code that is run is attention beside that of a loaded model; None: nothing."""
    for file in run.python:
        words = file.mentions or frozenset()
        for word in (*_LAYERS, "attention class"):
            if word in words:
                return f"{file.path} has {word}"
    return None


def _undecided(run: Run, file: PythonFile, call: Call) -> bool:
    """Whether branches around a call are open; PyTorch has its kernel from 2.0 on."""
    is_new = version_of(run, "torch") >= (2,)
    switches = {name for name in _switches(file) if is_new}
    return any(
        not condition.holds or condition.text.rpartition(".")[2].lower() not in switches
        for condition in call.conditions
    )


def _switches(file: PythonFile) -> set[str]:
    """Names that tell whether PyTorch has its kernel; by hand it is done where it has none."""
    words = file.mentions or ()
    return {word[len(HAS_KERNEL) :] for word in words if word.startswith(HAS_KERNEL)}


def _calls(run: Run) -> Iterator[Call]:
    return (call for file in run.python for call in file.calls)


def _is_kernel(call: Call) -> bool:
    return call.method in _KERNELS


def _kernel(file: PythonFile, call: Call) -> str:
    """The library's kernel that a call is one of; empty for a function of the program's own."""
    if not any(_is_from(call.name, owner) for owner in _OWNERS):
        imported = (item for item in file.imports if item.name == call.name)
        if not any(_is_of_a_library(item) for item in imported):
            return ""
    if call.name.startswith("flash_attn_interface"):
        return "flash_attention_3"
    return _KERNELS[call.method]


def _is_of_a_library(item: Import) -> bool:
    return any(_is_from(item.module, owner) for owner in _OWNERS)


def _is_from(name: str, owner: str) -> bool:
    return name == owner or name.startswith(f"{owner}.")


def _others(run: Run, loaded: Optional[Setting]) -> Iterator[str]:
    """Kernels of other attention in the code; empty where only running it tells which."""
    for file in run.python:
        if file.mentions is None:
            yield ""
        has_both = bool(_switches(file)) and version_of(run, "torch") >= (2,)
        for word in file.mentions or ():
            if word == "attention by hand" and has_both:
                continue
            if word in _LAYERS:
                yield _LAYERS[word]
            elif word == "made by name":
                yield ""
        for item in file.imports:
            if _brings_models(item):
                yield ""
    if loaded is not None:
        yield loaded.value if known(loaded.value) else ""


def _brings_models(item: Import) -> bool:
    """Whether an import is one of models, which have attention of their own."""
    root = item.module.partition(".")[0]
    if root in _BRING_MODELS:
        return True
    if root == "timm":
        return not item.dotted.startswith(_PARTS_OF_TIMM)
    return item.dotted.startswith("torchvision.models")


def _switched(call: Call) -> Setting:
    if call.conditions:
        reason = f"it depends on {call.conditions[-1].text or 'a branch'}"
        return _from(call, Unknown(reason, ("xformers",)))
    return _from(call, "xformers")


def _from(call: Call, value: Any) -> Setting:
    note = f"{call.name}(...)"
    return Setting("attention", value, call.location, Origin.CONSTRUCTOR, note)
