"""What a run is: one training or serving job, its settings with their origin, its profile."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from types import MappingProxyType
from typing import Any, Optional, TypeVar

from flake8_gpu_training.facts import (
    Call,
    Command,
    Document,
    Location,
    Origin,
    Problem,
    ProblemKind,
    PythonFile,
    Setting,
    Unknown,
    known,
)
from flake8_gpu_training.sources._shell_text import COMMENTED


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


class RunKind(enum.Enum):
    """What a run does with the GPU."""

    TRAIN = "train"
    SERVE = "serve"
    INFER = "infer"
    OTHER = "other"


# The profile: what a run does, in one vocabulary for all frameworks. A framework module
# maps its own parameters to these names and values (see frameworks/base.py). "none" is the
# string "none" where the values are names, and None where they are numbers.
PRACTICES: Mapping[str, str] = MappingProxyType(
    {
        "precision": "compute precision: bf16, fp16, fp32, pure-bf16, fp8",
        "tf32": "bool: TensorFloat-32 matrix products",
        "attention": "flash_attention_2, flash_attention_3, flash_attention_4, sdpa, "
        "flex_attention, xformers, sage, eager, auto (the framework picks the best installed)",
        "gradient_checkpointing": "bool: activations recomputed in the backward pass",
        "vit_gradient_checkpointing": "bool: the same for the vision tower alone",
        "reentrant_checkpointing": "bool: use_reentrant of torch.utils.checkpoint",
        "micro_batch_size": "int: samples per device and step",
        "gradient_accumulation_steps": "int",
        "max_length": "int: tokens per sample",
        "tuning": "full, lora, adalora, freeze, oft, … (lower case)",
        "quantization_method": "bnb, hqq, eetq, gptq, awq, fp8, torchao, or none",
        "quantization_bits": "int, or none",
        "lora_rank": "int",
        "packing": "bool",
        "padding_free": "bool",
        "group_by_length": "bool",
        "liger_kernel": "bool",
        "unsloth": "bool",
        "torch_compile": "bool",
        "optimizer": "name as the framework has it, lower case",
        "zero_stage": "int 0..3; 0 when DeepSpeed is not used",
        "offload_optimizer": "none, cpu, nvme",
        "offload_param": "none, cpu, nvme",
        "overlap_comm": "bool",
        "zero_hpz_partition_size": "int: ZeRO++ secondary partition; 1 is off",
        "autotp_size": "int: DeepSpeed AutoTP; 1 is off",
        "fsdp": "none, full_shard, shard_grad_op, hybrid_shard, no_shard",
        "fsdp_version": "int: 1 or 2",
        "fsdp_offload": "bool",
        "ddp": "bool: plain DistributedDataParallel",
        "find_unused_parameters": "bool",
        "device_map": "str, or none: layers spread over devices by Accelerate",
        "tensor_parallel": "int; 1 is off",
        "pipeline_parallel": "int; 1 is off",
        "sequence_parallel": "int (Ulysses, ring attention, context parallel); 1 is off",
        "expert_parallel": "int; 1 is off",
        "megatron": "bool: Megatron-core drives the run",
        "dataloader_workers": "int",
        "pin_memory": "bool",
        "persistent_workers": "bool",
        "prefetch_factor": "int, or none",
        "preprocessing_workers": "int, or none",
        "streaming": "bool",
        "pretokenized": "bool: tokens come from a cache made beforehand",
        "save_steps": "int, float ratio, or none when saving goes by epoch or not at all",
        "logging_steps": "int",
        "report_to": "str or list: trackers; none when off",
        "lr_scheduler": "name",
        "warmup": "number > 0 when the learning rate warms up (steps or ratio)",
        "max_grad_norm": "number",
        "algorithm": "pt, sft, dpo, kto, orpo, simpo, cpo, grpo, ppo, gkd, rm, …",
        "rollout_engine": "vllm, sglang, or none (RLHF runs)",
        "freeze_vision": "bool: vision encoder frozen (multimodal runs)",
        "model": "name or path as given",
        "dataset": "name(s) or path(s) as given",
        "dataset_samples": "int: training samples, where the data lie in the project",
        "output_dir": "path",
    }
)


@dataclass(frozen=True)
class Launcher:
    """Who starts the processes, and how many.

    ``processes`` (per node) and ``nodes`` are settings, so that each carries its place.
    ``options`` are the launcher's own flags (dashes as underscores) over the keys of its
    configuration file: ``mixed_precision`` of ``accelerate launch`` and the like. ``is_open``:
    it may be given more flags than could be read.
    """

    name: str = "python"
    processes: Setting = Setting("processes", Unknown("no launcher was seen"))
    nodes: Setting = Setting("nodes", Unknown("no launcher was seen"))
    options: Mapping[str, Setting] = field(default_factory=_nothing)
    is_open: bool = False

    @property
    def world_size(self) -> Optional[int]:
        """Number of ranks, or None when unknown."""
        if known(self.processes.value) and known(self.nodes.value):
            return int(self.processes.value) * int(self.nodes.value)
        return None


@dataclass(frozen=True)
class Hardware:
    """The GPUs of a run; None where nothing was written about them.

    ``gpu`` is a name of ``hardware.GPUS`` (``A100-80G``); ``memory_gib`` per GPU;
    ``weak``: read from a comment or the like.
    """

    gpu: Optional[str] = None
    gpus_per_node: Optional[int] = None
    nodes: Optional[int] = None
    memory_gib: Optional[float] = None
    source: str = ""
    location: Optional[Location] = None
    weak: bool = False
    architecture: Optional[str] = None
    """``Ampere``, ``Hopper`` …, also when several variants of the GPU leave its memory open."""
    cpus: Optional[Setting] = None
    """Cores that the job asks for: of a task, or of a container."""
    shared_memory: Optional[Setting] = None
    """Of a job's containers, as its file says; compose's default where it does not."""

    @property
    def gpus(self) -> Optional[int]:
        """GPUs in all, or None."""
        if self.gpus_per_node is None:
            return None
        return self.gpus_per_node * (self.nodes or 1)


@dataclass(frozen=True)
class Model:
    """The model of a run; None where it cannot be told.

    ``kind``: LLM, MLLM, video, image, audio, embedding, encoder, encoder-decoder, vision, or
    unknown.
    """

    name: Optional[str] = None
    kind: str = "unknown"
    parameters: Optional[int] = None
    active_parameters: Optional[int] = None
    layers: Optional[int] = None
    hidden_size: Optional[int] = None
    heads: Optional[int] = None
    kv_heads: Optional[int] = None
    vocabulary: Optional[int] = None
    intermediate_size: Optional[int] = None
    """Width of the feed-forward layer (of one expert, in a mixture)."""
    head_size: Optional[int] = None
    is_moe: bool = False
    is_hf_family: bool = False
    """A Transformers architecture (Liger kernels may exist for it)."""
    source: str = ""
    location: Optional[Location] = None
    family: str = ""
    """A name of the kind that hubs give, where ``name`` tells nothing and another setting does."""

    @property
    def known_as(self) -> str:
        """The name that says what kind of model it is, or an empty text."""
        # ModelScope writes a dot in a folder's name as three underscores.
        return (self.family or self.name or "").replace("___", ".")


class PlaceKind(enum.Enum):
    """The language in which a run's settings are written."""

    FLAGS = "flags"
    YAML = "yaml"
    JSON = "json"
    PYTHON = "python"


@dataclass(frozen=True)
class Place:
    """Where a user would write a setting that is missing.

    FLAGS: the end of the command; YAML/JSON: the first line of the document; PYTHON: the
    constructor (``call``).
    """

    kind: PlaceKind
    location: Location
    command: Optional[Command] = None
    call: Optional[Call] = None
    document: Optional[Document] = None


@dataclass(frozen=True)
class Mount:
    """What stands behind the folder ``path`` of a run, as a script or job file says.

    ``kind``: ``object-store`` (a bucket shown as a folder), ``network`` (NFS and its kin),
    ``bind`` (the host's folder ``source``), ``copy`` (fetched from ``source`` before the run),
    ``local`` (a disk of the node).
    """

    path: str
    source: str
    kind: str
    location: Location


class RefusalKind(enum.Enum):
    """Why a command-line parser stops."""

    UNKNOWN = "unknown"
    MISSING = "missing"
    VALUELESS = "valueless"
    CHOICE = "choice"
    TYPE = "type"


@dataclass(frozen=True)
class RefusedWord:
    """What the program's own command-line parser stops at.

    ``text``: the word, or the flag that lacks its value, or that must be given; ``flag``: whose
    value it is. ``known``: the flags that the parser has, or the choices. ``parser``: the file
    that declares them.
    """

    kind: RefusalKind
    text: str
    location: Optional[Location] = None
    flag: str = ""
    known: tuple[str, ...] = ()
    wanted: str = ""
    parser: str = ""


@dataclass(frozen=True)
class Absent:
    """A file that a command names and that is not there; ``near``: one like it; ``folder``: where
    it should be, "" where only a name is written."""

    setting: Setting
    near: str = ""
    folder: str = ""


@dataclass(frozen=True)
class Checkout:
    """What the source of a run's framework declares in its project: ``parameters`` with their
    defaults, and ``models`` that have an adapter, and whether it takes a pipeline of Diffusers."""

    parameters: Mapping[str, Setting] = field(default_factory=_nothing)
    models: Mapping[str, bool] = field(default_factory=_nothing)


_NEAR = 12
"""Lines (comments, mostly) that may stand between a command and the flags cut off from it."""


def cuts(problem: Problem, command: Optional[Command]) -> bool:
    """Whether ``problem`` is that ``command`` ends by accident: its user means to give it what
    follows, too. A comment that is taken apart cuts nothing off."""
    if problem.kind is not ProblemKind.CUT_SHORT or problem.message == COMMENTED:
        return False
    end = command.end if command is not None else None
    if end is None or problem.location.path != end.path:
        return False
    return end.line <= problem.location.line <= end.line + _NEAR


@dataclass(frozen=True)
class Run:
    """One job: command, script, configuration and DeepSpeed/accelerate files linked.

    ``settings``: the framework's own parameter names (dashes as underscores, leading
    ``--`` removed), the strongest origin winning. ``overridden``: weaker settings of the
    same names, for conflicts. ``is_open``: parameters may be set that we could not read, so
    an absent one proves nothing. ``profile``: the same run in the names of PRACTICES.
    """

    id: str
    kind: RunKind
    framework: str
    location: Location
    place: Place
    launcher: Launcher = field(default_factory=Launcher)
    command: Optional[Command] = None
    entry: Optional[str] = None
    files: tuple[str, ...] = ()
    settings: Mapping[str, Setting] = field(default_factory=_nothing)
    overridden: tuple[Setting, ...] = ()
    environment: Mapping[str, Setting] = field(default_factory=_nothing)
    profile: Mapping[str, Setting] = field(default_factory=_nothing)
    python: tuple[PythonFile, ...] = ()
    deepspeed: Optional[Document] = None
    accelerate: Optional[Document] = None
    hardware: Hardware = field(default_factory=Hardware)
    model: Model = field(default_factory=Model)
    versions: Mapping[str, str] = field(default_factory=_nothing)
    limits: Mapping[str, tuple[str, ...]] = field(default_factory=_nothing)
    """Versions that the project takes of what it does not pin (PEP 440), by distribution; each
    of its files may say something else."""
    perhaps: Mapping[str, tuple[str, ...]] = field(default_factory=_nothing)
    """Versions of environments that the run may be started in, and may be not."""
    unreleased: frozenset[str] = frozenset()
    """Distributions whose source the project holds or installs from a repository: what they
    take, no release can tell."""
    trunk: frozenset[str] = frozenset()
    """Of those, what is installed from its own repository as it is: newer than all releases."""
    held: Mapping[str, str] = field(default_factory=_nothing)
    """Versions of sources that the project holds and the run is started from."""
    declared: Mapping[str, Mapping[str, Setting]] = field(default_factory=_nothing)
    """By command and parameter, the defaults in the source that the project carries (ms-swift,
    LLaMA-Factory); by class and parameter those of VideoX-Fun's data sets."""
    checkout: Optional[Checkout] = None
    problems: tuple[Problem, ...] = ()
    """What could not be read in the run's files."""
    unexported: tuple[Setting, ...] = ()
    """Variables for programs that the script assigns before the command and does not export."""
    absent: tuple[Absent, ...] = ()
    unregistered: tuple[Absent, ...] = ()
    """Data sets that the register in ``folder`` lacks."""
    """Configuration files that the command names, in folders of the project that lack them."""
    refused: tuple[RefusedWord, ...] = ()
    """Words of the command at which the script's own parser stops."""
    mounts: tuple[Mount, ...] = ()
    started_like: Optional[Location] = None
    """The command that starts files like the run's, when none names it: all of its framework's
    launches are alike."""
    is_open: bool = False
    handed_over: Optional[Location] = None
    """Where the model goes through code that is out of sight: it may come back sharded, cast,
    frozen or with adapters."""
    meant: Optional[Run] = None
    """The same run with the words that its command loses, where that is cut short."""
    server: Optional[Run] = None
    """The command beside it that serves its completions."""
    primary: bool = False
    single_file: bool = False
    """Seen by flake8 alone: launcher and other files are out of sight."""

    @property
    def is_cut_short(self) -> bool:
        """Whether the command loses what is meant to be its own."""
        if self.command is None:
            return any(problem.kind is ProblemKind.CUT_SHORT for problem in self.problems)
        return any(cuts(problem, self.command) for problem in self.problems)

    def practice(self, name: str) -> Setting:
        """What the run does about ``name`` (a key of PRACTICES); Unknown when not known."""
        if name not in PRACTICES:
            raise KeyError(name)
        found = self.profile.get(name)
        if found is not None:
            return found
        return Setting(name, Unknown("nothing was read about it"), None, Origin.DERIVED)

    def value(self, name: str, default: Any = None) -> Any:
        """Value of a practice when known, else ``default``."""
        setting = self.practice(name)
        return setting.value if setting.known else default

    def setting(self, name: str) -> Optional[Setting]:
        """The framework's own parameter ``name``, or None when nobody sets it."""
        return self.settings.get(name)


_Told = TypeVar("_Told")


def once_per_run(function: Callable[[Run], _Told]) -> Callable[[Run], _Told]:
    """``function``, whose answer is kept with the run it is about; a changed run is another."""
    key = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def told(run: Run) -> _Told:
        kept = vars(run)
        if key not in kept:
            kept[key] = function(run)
        answer: _Told = kept[key]
        return answer

    return told
