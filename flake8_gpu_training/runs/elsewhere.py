"""Names practices in files that a run does not reach: they are told of, and never counted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Callable, Optional

from flake8_gpu_training.facts import Call, Command, Document, Location, PythonFile, known
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.configs import is_accelerate, is_deepspeed, recognise
from flake8_gpu_training.runs.launchers import read_launch
from flake8_gpu_training.runs.model import Run
from flake8_gpu_training.runs.python_entry import FRAMEWORK_PACKAGES, TRAINER_ARGUMENTS
from flake8_gpu_training.runs.settings import option_name, typed

MAX_READ = 40
"""Python files that are read only for what they hold of this kind."""
MAX_PLACES = 3
"""Places that are named for one item."""

Index = Mapping[str, Mapping[str, tuple[Location, ...]]]
"""Places by file and by item of the general audit."""

_CALLS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "ddp": ("DistributedDataParallel",),
        "fsdp": ("FullyShardedDataParallel", "fully_shard", "FullyShardedDataParallelPlugin"),
        "deepspeed-zero": ("deepspeed.initialize", "DeepSpeedPlugin"),
        "tensor-parallel": ("parallelize_module", "ColumnParallelLinear", "RowParallelLinear"),
        "pipeline-parallel": ("PipelineModule", "ScheduleGPipe", "Schedule1F1B"),
        "sequence-parallel": ("context_parallel", "DistributedAttention"),
        "mixed-precision": ("autocast", "GradScaler", "MixedPrecisionPolicy"),
        "fp8-training": ("fp8_autocast", "convert_to_float8_training"),
        "activation-checkpointing": (
            "torch.utils.checkpoint.checkpoint",
            "torch.utils.checkpoint.checkpoint_sequential",
            "gradient_checkpointing_enable",
            "enable_gradient_checkpointing",
            "apply_activation_checkpointing",
            "checkpoint_wrapper",
        ),
        "cpu-nvme-offload": ("CPUOffloadPolicy",),
        "flash-attention": (
            "flash_attn_func",
            "flash_attn_varlen_func",
            "flash_attn_qkvpacked_func",
            "flash_attn_varlen_qkvpacked_func",
            "flash_attn_with_kvcache",
        ),
        "torch-compile": ("torch.compile",),
        "triton-kernels": ("triton.jit", "triton.autotune"),
        "cuda-graph": ("make_graphed_callables", "CUDAGraph"),
        "liger-kernel": ("AutoLigerKernelForCausalLM.from_pretrained",),
        "gradient-compression": ("register_comm_hook",),
        "lora-qlora": ("get_peft_model",),
        "small-file-merging": ("webdataset.WebDataset", "WebLoader", "MDSWriter"),
        "offline-preprocessing": ("save_to_disk",),
        "packing": ("ConstantLengthDataset",),
        "memory-mapping": ("numpy.memmap",),
    }
)
"""Calls that are a practice, by the end of their dotted name."""

_WORDS_OFF = frozenset("none no false eager disabled auto sdpa".split())  # noqa: SIM905


def _is_on(value: Any) -> bool:
    return value is True or value in ("true", "True")


def _is_count(value: Any) -> bool:
    return type(value) is int and value > 0


def _is_named(value: Any) -> bool:
    return bool(value) and str(value).lower() not in _WORDS_OFF


_SETTINGS: Mapping[str, tuple[str, Callable[[Any], bool]]] = MappingProxyType(
    {
        "gradient_checkpointing": ("activation-checkpointing", _is_on),
        "activation_checkpointing": ("activation-checkpointing", _is_on),
        "fsdp_activation_checkpointing": ("activation-checkpointing", _is_on),
        "bf16": ("mixed-precision", _is_on),
        "fp16": ("mixed-precision", _is_on),
        "fsdp": ("fsdp", _is_named),
        "deepspeed": ("deepspeed-zero", _is_named),
        "torch_compile": ("torch-compile", _is_on),
        "use_liger_kernel": ("liger-kernel", _is_on),
        "enable_liger_kernel": ("liger-kernel", _is_on),
        "packing": ("packing", _is_on),
        "neat_packing": ("packing", _is_on),
        "streaming": ("streaming-dataset", _is_on),
        "dataloader_num_workers": ("worker-processes", _is_count),
        "num_workers": ("worker-processes", _is_count),
        "attn_implementation": ("flash-attention", _is_named),
        "attn_impl": ("flash-attention", _is_named),
        "flash_attn": ("flash-attention", _is_named),
    }
)
"""Parameters that are a practice: of constructors, configuration files and flags."""

_BY_METHOD: Mapping[str, tuple[tuple[str, str], ...]] = MappingProxyType(
    {
        name.rpartition(".")[2]: tuple(
            (item, other)
            for item, names in _CALLS.items()
            for other in names
            if other.rpartition(".")[2] == name.rpartition(".")[2]
        )
        for names in _CALLS.values()
        for name in names
    }
)
_TRACE = re.compile(
    rb"\b(?:" + "|".join(sorted(_BY_METHOD)).encode() + rb"|apply_liger_kernel_to_\w+)\b"
)
_CONSTRUCTORS = TRAINER_ARGUMENTS | {"DataLoader", "from_pretrained", "load_dataset", "Trainer"}
_FRAMEWORK = re.compile(rf"(?:src/)?(?:{'|'.join(sorted(FRAMEWORK_PACKAGES))})/")


def elsewhere(
    project: Project, run: Run, index: Optional[Index] = None
) -> Mapping[str, tuple[Location, ...]]:
    """Places of practices in files that ``run`` does not reach, by item of the general audit.

    At most three for an item, in the order of paths. Tests, documents and others' code are
    never named. ``index``: what :func:`practices_of` gave, to save doing it for each run.
    """
    found: dict[str, list[Location]] = {}
    reached = {*run.files, run.location.path}
    for path, items in (practices_of(project) if index is None else index).items():
        for item, places in items.items() if path not in reached else ():
            found.setdefault(item, []).extend(places)
    return MappingProxyType(
        {item: tuple(sorted(set(found[item]))[:MAX_PLACES]) for item in sorted(found)}
    )


def practices_of(project: Project) -> Index:
    """Practices in the project's files, wherever they stand.

    Facts of files that were read are used; other Python files are read when a scan of their
    bytes finds such a call, and not more than 40 of them.
    """
    found: dict[str, dict[str, list[Location]]] = {}
    for item, place in _all(project):
        if not project.is_auxiliary(place.path):
            found.setdefault(place.path, {}).setdefault(item, []).append(place)
    return {
        path: {item: tuple(sorted(set(places))[:MAX_PLACES]) for item, places in items.items()}
        for path, items in sorted(found.items())
    }


def _all(project: Project) -> Iterator[tuple[str, Location]]:
    for script in project.scripts():
        for command in script.commands:
            yield from _of_command(command)
    for config in project.configs():
        for document in config.documents:
            yield from _of_document(document)
    for file in _python(project):
        for call in file.calls:
            yield from _of_call(call)


def _python(project: Project) -> Iterator[PythonFile]:
    count = 0
    read = project.paths_read
    for path, content in project.python_sources(lambda path: _is_others(project, path)):
        if path not in read:
            if not isinstance(content, bytes) or count >= MAX_READ or not _TRACE.search(content):
                continue
            count += 1
        facts = project.read(path)
        if isinstance(facts, PythonFile):
            yield facts


def _is_others(project: Project, path: str) -> bool:
    return project.is_auxiliary(path) or _FRAMEWORK.match(path) is not None


def _of_call(call: Call) -> Iterator[tuple[str, Location]]:
    for item, name in _BY_METHOD.get(call.method, ()):
        if call.name == name or call.name.endswith(f".{name}"):
            yield item, call.location
    if call.method.startswith("apply_liger_kernel_to_"):
        yield "liger-kernel", call.location
    if call.method not in _CONSTRUCTORS:
        return
    for name, argument in call.keywords.items():
        item = _item(name, argument.value)
        if item:
            yield item, argument.location


def _of_command(command: Command) -> Iterator[tuple[str, Location]]:
    if read_launch(command) is None:
        return
    for word, following in zip(command.words, (*command.words[1:], None)):
        if not known(word.value) or not word.text.startswith("--"):
            continue
        flag, equals, text = word.text.partition("=")
        given = following is not None and not following.text.startswith("-")
        value: Any = typed(text) if equals else True
        if not equals and given and following is not None:
            value = typed(following.text) if known(following.value) else following.value
        item = _item(option_name(flag), value)
        if item:
            yield item, word.location


def _of_document(document: Document) -> Iterator[tuple[str, Location]]:
    if is_deepspeed(document):
        stage = document.root.mapping.get("zero_optimization")
        level = document.get("zero_optimization.stage")
        if stage is not None and level is not None and level.value in (1, 2, 3):
            yield "deepspeed-zero", stage.location
        return
    if is_accelerate(document):
        kind = document.root.mapping.get("distributed_type")
        for word, item in (("FSDP", "fsdp"), ("DEEPSPEED", "deepspeed-zero")):
            if kind is not None and kind.node.value == word:
                yield item, kind.location
    elif recognise(document) is None:
        return
    for setting in document.settings().values():
        item = _item(setting.name.rpartition(".")[2], setting.value)
        if item and setting.location is not None:
            yield item, setting.location


def _item(name: str, value: Any) -> str:
    """The item that a parameter switches on, or nothing."""
    found = _SETTINGS.get(name)
    if found is None or not known(value):
        return ""
    item, is_on = found
    return item if is_on(value) else ""
