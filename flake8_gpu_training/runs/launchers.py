"""Reads a command as a launch: who starts the processes, what they run, with which flags."""

from __future__ import annotations

import dataclasses
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Optional

from flake8_gpu_training.facts import EMPTY, Command, Origin, Setting, Unknown, Word, known
from flake8_gpu_training.frameworks.megatron import is_known_by, trains
from flake8_gpu_training.runs.model import RunKind
from flake8_gpu_training.runs.settings import is_flag, option_name, parse_arguments

# Flags that take no value; all others take one (accelerate 1.15 commands/launch.py,
# deepspeed 0.16 launcher/runner.py, torch 2.9 distributed/run.py).
_ACCELERATE_SWITCHES = frozenset(
    """
    h help quiet q cpu multi_gpu tpu ipex enable_cpu_affinity dynamo_use_fullgraph
    dynamo_use_dynamic dynamo_use_regional_compilation use_deepspeed use_fsdp
    use_parallelism_config use_megatron_lm same_network m module no_python tpu_cluster
    no_tpu_cluster tpu_use_sudo vm env downcast_bf16 fp8_use_autocast_during_eval debug use_xpu
    """.split()  # noqa: SIM905
)
_DEEPSPEED_SWITCHES = frozenset(
    """
    module no_python no_local_rank no_ssh no_ssh_check force_multi save_pid elastic_training
    bind_cores_to_rank h help
    """.split()  # noqa: SIM905
)
_TORCHRUN_SWITCHES = frozenset(
    "standalone m module no_python run_path virtual_local_rank use_env h help".split()  # noqa: SIM905
)
# argparse completes a flag that is cut short; accelerate launch forbids it (allow_abbrev=False).
_COMPLETED: Mapping[str, frozenset[str]] = {
    "torchrun": _TORCHRUN_SWITCHES
    | frozenset(
        """
        nnodes nproc_per_node rdzv_backend rdzv_endpoint rdzv_id rdzv_conf max_restarts
        monitor_interval start_method event_log_handler role log_dir redirects tee
        local_ranks_filter node_rank master_addr master_port local_addr logs_specs numa_binding
        signals_to_handle
        """.split()  # noqa: SIM905
    ),
    "deepspeed": _DEEPSPEED_SWITCHES
    | frozenset(
        """
        autotuning bind_core_list enable_each_rank_log exclude hostfile include launcher
        launcher_args log_level master_addr master_port max_elastic_nodes min_elastic_nodes
        node_rank num_accelerators num_gpus num_nodes ssh_port venv_script
        """.split()  # noqa: SIM905
    ),
}
_PYTHON_VALUE_FLAGS = frozenset({"-W", "-X", "--check-hash-based-pycs"})
# Modules that watch the program named behind them, and their flags with a value (debugpy 1.8.22
# server/cli.py; pdb, cProfile and profile of Python 3.12; torch 2.9 utils/bottleneck).
_PROFILE_FLAGS = frozenset({"-o", "--outfile", "-s", "--sort"})
_WATCHERS: Mapping[str, frozenset[str]] = {
    "debugpy": frozenset(
        """
        --listen --connect --log-to --configure-subProcess --configure-qt --parent-session-pid
        --adapter-access-token
        """.split()  # noqa: SIM905
    ),
    "pdb": frozenset({"-c", "--command"}),
    "cProfile": _PROFILE_FLAGS,
    "profile": _PROFILE_FLAGS,
    "torch.utils.bottleneck": frozenset(),
}

_ASKS = frozenset({"--help", "-h"})
_PYTHON = re.compile(r"(?:.*/)?(?:python|pypy)(?:\d(?:\.\d+)?)?(?:\.exe)?")
_PYTHON_RAW = re.compile(r"\$\{?\w*PYTHON\w*(?::?[-=].*)?\}?", re.IGNORECASE)

_TORCHRUN_MODULES = frozenset({"torch.distributed.run", "torch.distributed.launch"})
_ACCELERATE_MODULES = frozenset(
    {"accelerate.commands.launch", "accelerate.commands.accelerate_cli"}
)
_DEEPSPEED_MODULES = frozenset({"deepspeed.launcher.runner"})


@dataclass(frozen=True)
class Tool:
    """A known command-line program that trains or serves.

    ``subcommands`` says what each does; ``scripts`` are endings of paths and ``modules`` the
    module names that are the same program (``{}`` stands for the subcommand).
    """

    framework: str
    subcommands: Mapping[str, RunKind]
    default: str = ""


_TRAIN, _SERVE, _INFER, _OTHER = RunKind.TRAIN, RunKind.SERVE, RunKind.INFER, RunKind.OTHER
_SWIFT = Tool(
    "swift",
    {
        "sft": _TRAIN,
        "pt": _TRAIN,
        "rlhf": _TRAIN,
        "infer": _INFER,
        "eval": _INFER,
        "sample": _INFER,
        "deploy": _SERVE,
        "rollout": _SERVE,
        "app": _SERVE,
        "export": _OTHER,
    },
)
_MEGATRON_SWIFT = Tool(
    "swift",
    {"sft": _TRAIN, "pt": _TRAIN, "rlhf": _TRAIN, "export": _OTHER},
)
_LLAMAFACTORY = Tool(
    "llamafactory",
    {
        "train": _TRAIN,
        "sft": _TRAIN,  # these three with USE_V1 only
        "dpo": _TRAIN,
        "rm": _TRAIN,
        "api": _SERVE,
        "chat": _INFER,
        "webchat": _SERVE,
        "eval": _INFER,
        "export": _OTHER,
        "merge": _OTHER,  # with USE_V1 only
    },
)
_FLOW_FACTORY = Tool("flow_factory", {"train": _TRAIN}, "train")
_VLLM = Tool("vllm", {"serve": _SERVE, "run-batch": _INFER, "bench": _INFER})
_SGLANG = Tool("sglang", {"serve": _SERVE, "generate": _INFER})
_VLLM_ROUTER = Tool("vllm", {"route": _SERVE}, "route")
_SGLANG_ROUTER = Tool("sglang", {"route": _SERVE}, "route")
_TRL = Tool(
    "hf_trainer",
    {
        "sft": _TRAIN,
        "dpo": _TRAIN,
        "grpo": _TRAIN,
        "kto": _TRAIN,
        "rloo": _TRAIN,
        "reward": _TRAIN,
        "distillation": _TRAIN,
        "vllm-serve": _SERVE,
    },
)

_PROGRAMS: Mapping[str, tuple[str, Tool]] = {
    "swift": ("swift", _SWIFT),
    "megatron": ("megatron", _MEGATRON_SWIFT),
    "llamafactory-cli": ("llamafactory", _LLAMAFACTORY),
    "lmf": ("llamafactory", _LLAMAFACTORY),
    "ff-train": ("flow_factory", _FLOW_FACTORY),
    "flow-factory-train": ("flow_factory", _FLOW_FACTORY),
    "vllm": ("vllm", _VLLM),
    "sglang": ("sglang", _SGLANG),
    "vllm-router": ("vllm-router", _VLLM_ROUTER),
    "sglang-router": ("sglang-router", _SGLANG_ROUTER),
    "trl": ("trl", _TRL),
}

# Scripts and modules that are such a program: pattern of the normalised path or dotted name
# (dots and slashes alike), program, and its subcommand ("" : the first argument).
_SCRIPTS: tuple[tuple[re.Pattern[str], str, str], ...] = tuple(
    (re.compile(pattern), program, subcommand)
    for pattern, program, subcommand in (
        (r"(?:.*/)?swift/cli/_megatron/(sft|pt|rlhf|export)", "megatron", r"\1"),
        (
            r"(?:.*/)?swift/cli/(sft|pt|rlhf|infer|eval|deploy|rollout|app|export|sample)",
            "swift",
            r"\1",
        ),
        (r"(?:.*/)?swift/cli/main", "swift", ""),
        (r"(?:.*/)?llamafactory/(?:cli|launcher)", "llamafactory-cli", ""),
        (r"(?:.*/)?llamafactory/train/tuner", "llamafactory-cli", "train"),
        (r"(?:.*/)?src/train_bash", "llamafactory-cli", "train"),
        (r"(?:.*/)?flow_factory/(?:cli|train)", "ff-train", "train"),
        (r"(?:.*/)?vllm/entrypoints/(?:openai/)?api_server", "vllm", "serve"),
        (r"(?:.*/)?vllm/entrypoints/openai/run_batch", "vllm", "run-batch"),
        (r"(?:.*/)?vllm/entrypoints/cli/main", "vllm", ""),
        (r"(?:.*/)?vllm_router/(?:app|launch_router)", "vllm-router", "route"),
        (r"(?:.*/)?sglang_router/launch_router", "sglang-router", "route"),
        (r"(?:.*/)?sglang(?:_router)?/launch_server", "sglang", "serve"),
        (r"(?:.*/)?sglang/srt/entrypoints/http_server", "sglang", "serve"),
        (r"(?:.*/)?trl/scripts/(sft|dpo|grpo|kto|rloo|reward)", "trl", r"\1"),
        (r"(?:.*/)?trl/scripts/vllm_serve", "trl", "vllm-serve"),
    )
)
# Programs that start their own processes also when Python runs their module.
_SELF_STARTING = frozenset({"vllm", "sglang", "vllm-router", "sglang-router", "ff-train"})
_OPENRLHF = re.compile(r"openrlhf\.cli\.train_ppo(?:_ray)?")
_VERL_SCRIPT = re.compile(
    r"(?:.*/)?verl/trainer/(?:fsdp_sft_trainer|sft_trainer(?:_ray)?|main_ppo(?:_sync)?|main_eval)"
    r"|(?:.*/)?verl/experimental/\w+/fully_async_main"
    r"|(?:.*/)?verl/trainer/(?P<generates>main_generation_server)"
)


@dataclass(frozen=True)
class Launch:
    """A command taken apart.

    ``launcher`` starts the processes (``torchrun``, ``accelerate``, ``deepspeed``,
    ``python``, or the program itself when it does so, as ``swift`` does). ``program`` is
    a known program's name and ``subcommand`` what it is to do; else ``script`` is the
    word that names a Python file, or a module when ``is_module``.
    """

    command: Command
    launcher: str
    options: Mapping[str, Setting] = field(default_factory=lambda: EMPTY)
    program: str = ""
    framework: str = ""
    kind: RunKind = RunKind.TRAIN
    subcommand: str = ""
    script: Optional[Word] = None
    is_module: bool = False
    arguments: tuple[Word, ...] = ()
    is_open: bool = False
    is_unfollowed: bool = False
    """What the program does was not seen: no training in the code that was reached."""


_VIDEOX_FUN = re.compile(
    r"(?:.*/)?scripts/(?:wan2\.[12]\w*|cogvideox_fun|hunyuanvideo|longcatvideo|z_image\w*|qwenimage\w*"
    r"|flux2?(?:_fun)?|ltx2(?:\.3)?|mova|turbodiffusion|infinitetalk|flashhead|fantasytalking)"
    r"/train\w*\.py"
)


def of_unseen(launch: Launch) -> Optional[Launch]:
    """A launch whose script is out of sight, when its name and flags are a framework's.

    ``src/train.py`` of a LLaMA-Factory beside the project is told by ``--stage`` together with
    ``--finetuning_type``, or with its template for the data set; VideoX-Fun's scripts by their
    folder and ``--train_data_meta`` or ``--reward_fn``, Megatron-LM's by the shape of the model
    that only its parser takes.
    """
    words = {word.text.partition("=")[0] for word in launch.arguments}
    if "--stage" in words and ("--finetuning_type" in words or words >= _LLAMAFACTORY_FLAGS):
        kind = _TRAIN if "--do_train" in words else _INFER
        return _known_as(launch, "llamafactory", kind)
    script = launch.script.text if launch.script is not None else ""
    if _VIDEOX_FUN.fullmatch(script) and words & {"--train_data_meta", "--reward_fn"}:
        return _known_as(launch, "videox_fun", _TRAIN)
    if launch.is_module and _OPENRLHF.fullmatch(script):
        return _known_as(launch, "generic", _TRAIN)
    names = {option_name(word) for word in words if word.startswith("--")}
    if is_known_by(names):
        return _known_as(launch, "generic", _TRAIN if trains(names) else _INFER)
    return None


def of_recipe(launch: Launch) -> Optional[Launch]:
    """A launch of LLaMA-Factory's own ``src/train.py``, whose recipe is the first argument."""
    script = launch.script.text if launch.script is not None else ""
    if launch.is_module or _TRAIN_SCRIPT.fullmatch(script) is None:
        return None
    return _known_as(launch, "llamafactory", _TRAIN)


_TRAIN_SCRIPT = re.compile(r"(?:.*/)?src/train\.py")


_TRAINS = re.compile(r"(?i)train|tun(?:e|ing)|main|(?<![a-z])run|distil|sft|dpo|grpo|ppo")


def of_training(launch: Launch, is_asked: bool = False) -> Optional[Launch]:
    """A launch of several processes whose program nobody recognised, told by its name to train.

    One that is asked about may be of one process, too.
    """
    name = launch.script.text if launch.script is not None else ""
    name = name.rpartition(".")[2] if launch.is_module else posixpath.basename(name)
    is_one = is_asked and launch.launcher == "python" and _TRAINS.search(name) is not None
    if (launch.launcher not in _DISTRIBUTED and not is_one) or _OTHER_WORK.search(name):
        return None
    made = _known_as(launch, "generic", _TRAIN)
    return dataclasses.replace(made, is_open=True, is_unfollowed=True)


_DISTRIBUTED = frozenset({"torchrun", "accelerate", "deepspeed"})
_OTHER_WORK = re.compile(
    r"(?i)eval|infer|test|bench|serv|gen(?:erat|_)|predict|export|convert|process|download|demo"
    r"|sampl|encode|extract|merge|upload|score|rollout|rank|cache|prepare"
)
_LLAMAFACTORY_FLAGS = frozenset({"--template", "--dataset", "--do_train"})


def without_values(launch: Launch) -> Launch:
    """``launch`` with nothing known but what it starts: its flags never reach the program."""
    lost = Unknown("the command is cut short before its flags")
    options = {n: dataclasses.replace(s, value=lost) for n, s in launch.options.items()}
    words = (Word(lost, launch.command.location, "$@", True),)
    return dataclasses.replace(launch, options=options, arguments=words, is_open=True)


def _known_as(launch: Launch, framework: str, kind: RunKind) -> Launch:
    return dataclasses.replace(
        launch, program=framework, framework=framework, kind=kind, subcommand="train"
    )


def read_launch(command: Command) -> Optional[Launch]:
    """``command`` as a launch, or None when it starts no Python program we follow."""
    words = command.words
    if not words or _only_asks(words):
        return None
    name = posixpath.basename(words[0].text)
    if _PYTHON.fullmatch(words[0].text) or _PYTHON_RAW.fullmatch(words[0].raw):
        return _python(command, words[1:])
    if name == "torchrun":
        return _started(command, "torchrun", words[1:], _TORCHRUN_SWITCHES)
    if name == "deepspeed":
        return _started(command, "deepspeed", words[1:], _DEEPSPEED_SWITCHES)
    if name == "accelerate":
        if len(words) > 1 and words[1].text == "launch":
            return _started(command, "accelerate", words[2:], _ACCELERATE_SWITCHES)
        return None
    if name == "colossalai":
        return _colossalai(command, words[1:])
    if name in ("fabric", "lightning"):
        return _fabric(command, words)
    if name == "accelerate-launch":
        return _started(command, "accelerate", words[1:], _ACCELERATE_SWITCHES)
    if name in _PROGRAMS and known(words[0].value):
        return _program(command, "", EMPTY, name, "", words[1:])
    if name.endswith(".py") and known(words[0].value):  # ``uv run train.py``, ``./train.py``
        return _script(command, "python", EMPTY, words[0], False, words[1:])
    return None


def _fabric(command: Command, words: Sequence[Word]) -> Optional[Launch]:
    """``fabric run`` (``lightning run model`` before) starts torchrun (2.6 fabric/cli.py).

    Its options may also stand behind the script: click takes them wherever they are.
    """
    texts = [word.text for word in words[1:3]]
    if texts[:1] != ["run"]:
        return None
    own, rest = _taken(words[3 if texts[1:] == ["model"] else 2 :])
    launched = _started(command, "torchrun", [*own, *rest], _FABRIC)
    if launched is None:
        return None
    options = dict(launched.options)
    for name, known_as in (("devices", "nproc_per_node"), ("num_nodes", "nnodes")):
        if name in options:
            count = dataclasses.replace(options[name], value=_devices(options[name].value))
            options[known_as] = count
        elif parse_arguments(rest).is_open:
            options[known_as] = Setting(known_as, _UNREAD, command.location, Origin.FLAG)
    return dataclasses.replace(launched, options=options)


def _taken(words: Sequence[Word]) -> tuple[list[Word], list[Word]]:
    """The launcher's own options with their values, and what is left of the command."""
    own: list[Word] = []
    left: list[Word] = []
    at = 0
    while at < len(words) and words[at].text != "--":
        name, equals, _ = words[at].text.partition("=")
        is_own = name in _FABRIC_OPTIONS
        end = at + (2 if is_own and not equals else 1)
        (own if is_own else left).extend(words[at:end])
        at = end
    return own, [*left, *words[at:]]


_FABRIC_OPTIONS = frozenset(
    """
    --accelerator --strategy --devices --num-nodes --num_nodes --node-rank --node_rank
    --main-address --main_address --main-port --main_port --precision
    """.split()  # noqa: SIM905
)
_FABRIC: frozenset[str] = frozenset()


def _devices(value: Any) -> Any:
    """A number of devices; ``0,1`` lists them, -1 is all, and ``auto`` differs by version."""
    if isinstance(value, str) and re.fullmatch(r"[\d,]+", value):
        return len([part for part in value.split(",") if part])
    if value == -1:
        return "gpu"
    return Unknown("devices=auto") if value == "auto" else value


def _only_asks(words: Sequence[Word]) -> bool:
    """Whether a command is asked for its help or version instead of doing its work.

    ``--version v1`` is a script's own flag with a value.
    """
    texts = [word.text for word in words]
    return bool(_ASKS.intersection(texts)) or texts[-1] == "--version"


def _colossalai(command: Command, words: Sequence[Word]) -> Optional[Launch]:
    """``colossalai run`` starts torchrun on each of its hosts (0.5.0 cli/launcher/run.py)."""
    if not words or words[0].text != "run":
        return None
    launched = _started(command, "torchrun", words[1:], _TORCHRUN_SWITCHES)
    hosts = launched.options.get("host") or launched.options.get("H") if launched else None
    if launched is None or (hosts is None and "hostfile" not in launched.options):
        return launched
    named = hosts.value if hosts is not None else None
    count = len(named.split(",")) if isinstance(named, str) else Unknown("hosts out of sight")
    place = hosts or launched.options["hostfile"]
    nodes = dataclasses.replace(place, name="nnodes", value=count)
    return dataclasses.replace(launched, options={**launched.options, "nnodes": nodes})


def _python(
    command: Command, words: Sequence[Word], values: frozenset[str] = _PYTHON_VALUE_FLAGS
) -> Optional[Launch]:
    """What ``python`` is told to run; ``values`` are the flags before it that take a value."""
    at = 0
    while at < len(words):
        text = words[at].text
        if text in values:
            at += 2
            continue
        if text == "-m" or (text.startswith("-") and text.endswith("m") and len(text) == 3):
            return _module(command, words[at + 1 :])
        if text == "-c" or text == "-":
            return None
        if text == "--":
            at += 1
            break
        if not text.startswith("-"):
            break
        at += 1
    if at >= len(words):
        return None
    return _script(command, "python", EMPTY, words[at], False, words[at + 1 :])


def _module(command: Command, words: Sequence[Word]) -> Optional[Launch]:
    if not words:
        return None
    module, rest = words[0].text, words[1:]
    if module in _TORCHRUN_MODULES:
        return _started(command, "torchrun", rest, _TORCHRUN_SWITCHES)
    if module in _ACCELERATE_MODULES:
        if rest and rest[0].text == "launch":
            rest = rest[1:]
        return _started(command, "accelerate", rest, _ACCELERATE_SWITCHES)
    if module in _DEEPSPEED_MODULES:
        return _started(command, "deepspeed", rest, _DEEPSPEED_SWITCHES)
    if module in _WATCHERS:
        return _python(command, rest, _WATCHERS[module])
    return _script(command, "python", EMPTY, words[0], True, rest)


def _started(
    command: Command, launcher: str, words: Sequence[Word], switches: frozenset[str]
) -> Optional[Launch]:
    """A launch by a program whose own flags come before the script.

    argparse drops a ``--`` before the script, and one right behind it.
    """
    at = _first_positional(words, switches)
    own = parse_arguments(words[:at], switches=switches, single=True)
    left = words[at + 1 :] if words[at : at + 1] and words[at].text == "--" else words[at:]
    if not left:
        return None
    is_module = any(own.settings.get(name) is not None for name in ("m", "module"))
    target, rest = left[0], left[1:]
    rest = rest[1:] if rest and rest[0].text == "--" else rest
    no_python = own.settings.get("no_python") is not None
    options = _completed(own.settings, _COMPLETED.get(launcher, frozenset()))
    launched = _script(command, launcher, options, target, is_module, rest, no_python)
    if launched is None or not own.is_open:
        return launched
    counts = {
        name: Setting(name, _UNREAD, command.location, Origin.FLAG)
        for name in _COUNTS.get(launcher, ())
    }
    options = MappingProxyType({**counts, **launched.options})
    return dataclasses.replace(launched, is_open=True, options=options)


_UNREAD = Unknown("flags of the launcher are not all known")
_COUNTS: Mapping[str, Sequence[str]] = {
    "torchrun": ("nproc_per_node", "nnodes"),
    "accelerate": ("num_processes", "num_machines"),
}
"""Flags that say how many processes a launcher starts."""


def _completed(options: Mapping[str, Setting], names: frozenset[str]) -> Mapping[str, Setting]:
    """``options`` with those that are cut short (``--nnode 2``) under their whole name."""
    made = dict(options)
    for short in [name for name in options if name not in names and len(name) > 1]:
        whole = [name for name in names if name.startswith(short)]
        if len(whole) == 1 and whole[0] not in made:
            made[whole[0]] = dataclasses.replace(made.pop(short), name=whole[0])
    return made


def _first_positional(words: Sequence[Word], switches: frozenset[str]) -> int:
    at = 0
    while at < len(words):
        word = words[at]
        if is_flag(word.text):
            name, equals, _ = word.text.partition("=")
            at += 1 if equals or option_name(name) in switches else 2
        elif not known(word.value) and not _may_be_script(word):
            at += 1
        else:
            break
    return at


def _may_be_script(word: Word) -> bool:
    """Whether an unknown word in the script's place is a script rather than more flags."""
    return word.raw.strip("\"'").endswith(".py")


def _script(
    command: Command,
    launcher: str,
    options: Mapping[str, Setting],
    target: Word,
    is_module: bool,
    rest: Sequence[Word],
    no_python: bool = False,
) -> Optional[Launch]:
    text = target.text
    if is_module:
        path = text.replace(".", "/")
    else:
        path = text[:-3] if text.endswith(".py") else text
        name = posixpath.basename(text)
        if name in _PROGRAMS and (no_python or "/bin/" in text or "/" not in text):
            return _program(command, launcher, options, name, "", rest)
    for pattern, program, subcommand in _SCRIPTS:
        match = pattern.fullmatch(path)
        if match is not None:
            name = match.expand(subcommand)
            if launcher == "python" and (not subcommand or program in _SELF_STARTING):
                launcher = ""
            return _program(command, launcher, options, program, name, rest, target)
    verl = _VERL_SCRIPT.fullmatch(path)
    if verl is not None:
        # Hydra composes the rest of its configuration from files of the package.
        return Launch(
            command,
            "ray" if launcher == "python" else launcher,
            options,
            "verl",
            "generic",
            _INFER if verl["generates"] else _TRAIN,
            "generate" if verl["generates"] else "train",
            target,
            is_module,
            tuple(rest),
            is_open=True,
        )
    return Launch(
        command, launcher, options, script=target, is_module=is_module, arguments=tuple(rest)
    )


def _program(
    command: Command,
    launcher: str,
    options: Mapping[str, Setting],
    name: str,
    subcommand: str,
    words: Sequence[Word],
    script: Optional[Word] = None,
) -> Optional[Launch]:
    program, tool = _PROGRAMS[name]
    if not subcommand and tool.default:
        subcommand = tool.default
    if not subcommand:
        if not words:
            return None
        subcommand, words = words[0].text, words[1:]
    kind = tool.subcommands.get(subcommand)
    if kind is None:
        return None
    if program == "megatron":
        launcher = launcher or "megatron"
    return Launch(
        command,
        launcher or program,
        options,
        program,
        tool.framework,
        kind,
        subcommand,
        script,
        False,
        tuple(words),
    )
