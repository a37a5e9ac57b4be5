"""Which inference engine a run uses: its own, or one that a training framework starts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Optional

from flake8_gpu_training.facts import Call, Origin, Setting, Unknown, known
from flake8_gpu_training.frameworks import slime, swift_commands, verl
from flake8_gpu_training.frameworks.at_hand import AtHand, at_hand, built, version_at_hand
from flake8_gpu_training.frameworks.called import given
from flake8_gpu_training.frameworks.engine_hosts import SGLANG_HOSTS, VLLM_HOSTS
from flake8_gpu_training.frameworks.engines import Engine, Host, Kind, Mode
from flake8_gpu_training.frameworks.reading import find, is_true, truth
from flake8_gpu_training.frameworks.sglang import KIND as SGLANG
from flake8_gpu_training.frameworks.swift_releases import is_before_vllm_mode
from flake8_gpu_training.frameworks.vllm import KIND as VLLM
from flake8_gpu_training.models import model_of
from flake8_gpu_training.runs.model import Run, RunKind, once_per_run

_KINDS: Mapping[str, Kind] = MappingProxyType({"vllm": VLLM, "sglang": SGLANG})
_HOSTS: Mapping[str, Mapping[str, Host]] = MappingProxyType(
    {"vllm": VLLM_HOSTS, "sglang": SGLANG_HOSTS}
)
# Constructors of an engine within a program, and the groups of the tables that they take.
_CONSTRUCTORS: Mapping[str, tuple[re.Pattern[str], Mapping[str, tuple[str, ...]]]] = {
    "vllm": (
        re.compile(r"(?:LLM|(?:Async)?EngineArgs)"),
        {"LLM": ("LLM", "engine")},
    ),
    "sglang": (re.compile(r"(?:Engine|Runtime|ServerArgs)"), {}),
}
# What only a job that trains asks of an engine: new weights, and their transfer.
_UPDATES = re.compile(
    r"update_weights?\w*|(?:re)?load_weights|init_weights?_\w+|start_weight_update"
    r"|update_named_param|pause_generation|resume_generation|sleep|wake_up"
    r"|(?:release|resume)_memory_occupation"
)
_TELLING = re.compile(
    r"init_weight_transfer_engine|start_weight_update|(?:pause|resume)_generation|wake_up"
    r"|init_weights_update_group|update_weights_from_\w+|(?:release|resume)_memory_occupation"
)
"""Methods that nothing else has."""
_SLEEPS = re.compile(r"(?:pause|resume)_generation|sleep|wake_up|\w+_memory_occupation")
# Groups of the tables that a server takes. SGLang's older releases have the names of their
# flags in one and those of the arguments in the other.
_SERVED: Mapping[str, tuple[str, ...]] = MappingProxyType({"sglang": ("serve", "engine")})
_SHARES = re.compile(r"sleep|wake_up|memory_occupation|ipc")
"""What only an engine on the training GPUs is asked for."""
_ROUTER = re.compile(r"(?:vllm|sglang)[-_]router(?:\.(?!launch_server)\w+)*")
_SERVERS = re.compile(r"sglang_router[./]launch_server(?:\.py)?")


def is_router(run: Run) -> bool:
    """Whether the run is a router, which hands requests on and loads no model."""
    words = run.command.words if run.command is not None else ()
    return any(
        _ROUTER.fullmatch(word.text.rpartition("/")[2]) or "vllm_router/app.py" in word.text
        for word in words[:4]
    )


def starts_router(run: Run) -> bool:
    """Whether the run starts servers and the router before them."""
    words = run.command.words if run.command is not None else ()
    return any(_SERVERS.search(word.text) for word in words[:4])


@once_per_run
def engine_of(run: Run) -> Optional[Engine]:
    """The engine of ``run``; None when it uses none, or that cannot be told."""
    launched = slime.as_launched(run)
    if launched is not None:
        return _of_slime(launched) if slime.samples(launched.settings) else None
    if run.framework in _KINDS:
        return _own(run, _KINDS[run.framework])
    if run.framework == "hf_trainer" and run.kind is RunKind.SERVE:
        return _of_host(run, "vllm", "trl-serve", Mode.RLHF_SERVER)
    if run.framework == "swift":
        return _of_swift(run)
    if run.framework == "llamafactory":
        return _by_backend(run, "llamafactory", Mode.INTEGRATED)
    if verl.trainer_of(run).startswith(("main_ppo", verl.FULLY_ASYNC)):
        return _of_verl(run)
    if verl.generates(run):
        return _of_verls_generation(run)
    if _is_openrlhf(run):
        return _of_openrlhf(run)
    if run.framework == "hf_trainer" and run.value("rollout_engine") == "vllm":
        return _of_trl(run)
    return _within(run)


_CHECKPOINT = re.compile(r".*/(?=[^/]*\d)([A-Za-z][\w.+-]*)/?[\"']?")
"""A path that ends in a name with a number."""


def _named_by_folder(run: Run, name: str) -> Run:
    """The run with the model that the last folder of an otherwise unknown path names."""
    setting = find(run, name)
    if setting is None or not isinstance(setting.value, Unknown) or run.model.kind != "unknown":
        return run
    found = _CHECKPOINT.fullmatch(setting.value.reason)
    model = model_of(found[1]) if found is not None else run.model
    return run if model.kind == "unknown" else replace(run, model=model)


def _own(run: Run, kind: Kind) -> Optional[Engine]:
    if _starts_none(run):
        return None
    run = _named_by_folder(run, "model_path" if kind is SGLANG else "model")
    run = _with_default_model(run, kind)
    if is_router(run):
        return Engine(kind, run, Mode.ROUTER)
    call = run.place.call
    by = _asks_for_updates(run)
    if run.kind is RunKind.SERVE and call is None:
        mode = Mode.RLHF_SERVER if by is not None else Mode.SERVE
        return Engine(kind, run, mode, _SERVED.get(kind.name, ("serve",)), by=by)
    groups = _groups(kind.name, call.method if call is not None else "")
    if by is None:
        return Engine(kind, run, Mode.OFFLINE, groups)
    shares = kind is SGLANG or _SHARES.search(f"{by.written} {by.note}") is not None
    mode = Mode.RLHF_COLOCATE if shares else Mode.RLHF_SERVER
    return Engine(kind, run, mode, groups, by=by)


def _starts_none(run: Run) -> bool:
    """Whether a benchmark only sends requests to a server (``vllm bench serve``) or starts other
    commands, or help is asked for."""
    words = [word.text for word in run.command.words] if run.command is not None else []
    if words[1:3] in (["bench", "serve"], ["bench", "sweep"]):
        return True
    return any(word.partition("=")[0] == "--help" for word in words)


def _with_default_model(run: Run, kind: Kind) -> Run:
    """``run`` with the model that vLLM serves where nobody names one."""
    if kind is not VLLM or run.kind is not RunKind.SERVE or run.place.call is not None:
        return run
    named = find(run, "model", "model_tag", "config")
    words = [word.text for word in run.command.words] if run.command is not None else []
    is_served = words[1:2] == ["serve"] or any(w.startswith("vllm.entrypoints.") for w in words)
    is_given = words[1:2] == ["serve"] and bool(words[2:]) and not words[2].startswith("-")
    is_told = run.model.name or named is not None or is_given
    if is_told or run.is_open or run.is_cut_short or not is_served:
        return run
    engine = Engine(kind, run, Mode.SERVE)
    parameter = engine.parameter("model") if engine.release is not None else None
    if parameter is None or not isinstance(parameter.default, str):
        return run
    return replace(run, model=model_of(parameter.default))


def _groups(engine: str, constructor: str) -> tuple[str, ...]:
    return _CONSTRUCTORS[engine][1].get(constructor, ("engine", "serve"))


def _asks_for_updates(run: Run) -> Optional[Setting]:
    """What says that the engine's weights are replaced while it runs, or its memory lent."""
    told = find(run, "weight_transfer_config", "enable_memory_saver")
    if told is not None and (not known(told.value) or truth(told.value) is not False):
        return told
    sleeps = run.settings.get("enable_sleep_mode")
    if is_true(sleeps):
        return sleeps
    call = next(updates(run), None)
    if call is None:
        return None
    asked = call.positional[0].written if call.positional else ""
    return replace(given(call.method, True, call), note=f"{call.name}({asked})")


def updates(run: Run, sleeps: bool = True) -> Iterator[Call]:
    """Calls that replace an engine's weights; ``sleeps``: also those that lend its memory."""
    for program in run.python:
        for call in program.calls:
            is_engines = call.receiver.startswith(("vllm.", "sglang."))
            asked = call.method if is_engines or _TELLING.fullmatch(call.method) else ""
            if call.method == "collective_rpc" and call.positional:
                asked = str(call.positional[0].value)
            if _UPDATES.fullmatch(asked) and (sleeps or not _SLEEPS.fullmatch(asked)):
                yield call


def _of_host(
    run: Run, engine: str, host: str, mode: Optional[Mode], by: Optional[Setting] = None
) -> Optional[Engine]:
    described = _HOSTS[engine].get(host)
    if described is None:
        return None
    groups = ("engine", "serve")
    return Engine(_KINDS[engine], run, mode, groups, described, by)


def _of_swift(run: Run) -> Optional[Engine]:
    if swift_commands.subcommand(run) == "rollout":
        return _by_backend(run, "swift", Mode.RLHF_SERVER, "vllm")
    if run.kind is not RunKind.TRAIN:
        return _by_backend(run, "swift", Mode.INTEGRATED)
    if run.value("rollout_engine") != "vllm":
        return None
    mode = vllm_mode_of(run)
    if mode == OWN_GPUS:
        by = find(run, "num_infer_workers", "vllm_device", "use_vllm")
        return Engine(VLLM, run, Mode.RLHF_SERVER, ("engine", "serve"), VLLM_HOSTS["swift"], by)
    return _sampling(run, "swift", mode if known(mode) else None)


OWN_GPUS = "own GPUs"
"""ms-swift 3.1 to 3.5: the training processes build the engine, on GPUs beside their own."""


def vllm_mode_of(run: Run) -> Any:
    """The ``vllm_mode`` of a trainer; where none is given, a server's address means a server."""
    if run.framework == "swift" and is_of_ray(run):
        return "colocate" if find(run, "colocate_groups") is not None else OWN_GPUS
    setting = find(run, "vllm_mode")
    if setting is not None:
        return setting.value
    if find(run, "vllm_server_host", "vllm_server_base_url"):
        return "server"
    if run.framework == "swift" and is_before_vllm_mode(run):
        return _by_workers(run)
    return "colocate"


def is_of_ray(run: Run) -> bool:
    """Whether Ray starts the job: a section says which GPUs the rollout has, and the training
    shares them by ``colocate_groups`` alone (swift/ray/megatron/driver_utils.py)."""
    return any(name.startswith("rollout.") for name in run.settings)


def _by_workers(run: Run) -> Any:
    """Engines on the training GPUs are as many as processes (rlhf_args.py of 3.2 to 3.4,
    _check_grpo); by default it is one, on GPUs of its own (3.1 knew no other)."""
    setting = find(run, "num_infer_workers")
    workers = setting.value if setting is not None else 1
    processes = run.launcher.processes.value
    if not known(workers) or not known(processes):
        return Unknown("how many engines there are")
    gpus = run.hardware.gpus_per_node or processes
    return "colocate" if workers == processes and workers == gpus else OWN_GPUS


def _by_backend(run: Run, host: str, mode: Mode, default: str = "") -> Optional[Engine]:
    """The engine that ``infer_backend`` names."""
    setting = find(run, "infer_backend")
    value = setting.value if setting is not None else default
    # LLaMA-Factory's members of EngineName are their names in lower case.
    name = str(value).lower() if known(value) else ""
    return _of_host(run, name, host, mode, setting) if name in _KINDS else None


def samples_ahead(run: Run) -> bool:
    """Whether TRL's asynchronous trainer samples, by a server of vLLM alone."""
    return run.framework == "hf_trainer" and run.practice("algorithm").note == "AsyncGRPOConfig"


def packs_ahead(run: Run) -> bool:
    """Whether that trainer packs its samples, for FlashAttention-3's kernel and without Liger: trl
    1.10 to 1.16 do, experimental/async_grpo/async_grpo_trainer.py; 1.0.0 does not."""
    return samples_ahead(run) and version_at_hand(run, "trl")[:2] >= (1, 10)


def _of_trl(run: Run) -> Optional[Engine]:
    setting = find(run, "vllm_mode")
    host = _TRL_HOSTS.get(str(run.value("algorithm")), "trl")
    if samples_ahead(run):
        return _sampling(run, host, "server")
    if setting is not None:
        mode = setting.value if known(setting.value) else None
        return _sampling(run, host, mode)
    found = at_hand(run, "trl")
    if found is None and run.versions.get("trl"):
        found = built(run, "trl")  # a copy of the named release, or a build beside its pin
    allowed = [found.table.versions[index] for index in found.allowed] if found is not None else []
    modes = {_mode_in(found, release, run) for release in allowed if found is not None}
    mode = modes.pop() if len(modes) == 1 else None
    return _in_process(run) if mode == _DEVICE else _sampling(run, host, mode)


_DEVICE = "device"
"""TRL 0.14 and 0.15: the main process builds the engine, on a GPU of its own or the only one."""
_SAMPLERS = MappingProxyType(
    {
        "rloo": "RLOOConfig",
        **dict.fromkeys(("online_dpo", "nash_md", "xpo"), "OnlineDPOConfig"),
        "gold": "GOLDConfig",
    }
)
_TRL_HOSTS = MappingProxyType(
    {**dict.fromkeys(("online_dpo", "nash_md", "xpo"), "trl-online"), "gold": "trl-gold"}
)
"""Trainers of TRL that give the engine other defaults than GRPO's."""


def trl_config_of(run: Run) -> str:
    """The class of TRL's parameters for a trainer that samples."""
    return _SAMPLERS.get(str(run.value("algorithm")), "GRPOConfig")


def _mode_in(found: AtHand, release: str, run: Run) -> Optional[str]:
    """Where a release of TRL has its engine when nobody says so; None where that is not known."""
    parameters = found.table.parameters(trl_config_of(run), release)
    if "vllm_mode" in parameters:
        return str(parameters["vllm_mode"].default)
    if "vllm_server_host" in parameters:
        return "server"
    return _DEVICE if "vllm_device" in parameters else None


def _in_process(run: Run) -> Engine:
    alone = run.hardware.gpus == 1
    mode = Mode.RLHF_COLOCATE if alone else Mode.RLHF_SERVER
    by = find(run, "vllm_device", "use_vllm")
    return Engine(VLLM, run, mode, ("engine", "serve"), VLLM_HOSTS["trl-device"], by)


def _sampling(run: Run, host: str, mode: object) -> Engine:
    """The engine of a training run that samples; that of another job is out of sight."""
    modes = {"colocate": Mode.RLHF_COLOCATE, "server": Mode.RLHF_SERVER}
    found = modes.get(str(mode))
    by = find(run, "vllm_mode", "use_vllm")
    return Engine(
        VLLM,
        run,
        found,
        ("engine", "serve"),
        VLLM_HOSTS[host],
        by,
        is_remote=found is not Mode.RLHF_COLOCATE,
    )


def _of_slime(run: Run) -> Optional[Engine]:
    together = slime.is_colocated(run.settings)
    mode = Mode.RLHF_COLOCATE if together else Mode.RLHF_SERVER
    return _of_host(run, "sglang", "slime-colocate" if together else "slime", mode)


def _of_verl(run: Run) -> Optional[Engine]:
    setting = run.practice("rollout_engine")
    name = str(setting.value) if setting.known else ""
    if find(run, verl.ROLLOUT_NAME) is None and verl.names_vllm(run):
        release = verl.release_of(run)
        note = f"{verl.ROLLOUT_NAME}=vllm (verl {release}, trainer/config)"
        name, setting = "vllm", Setting(verl.ROLLOUT_NAME, "vllm", None, Origin.DEFAULT, note)
    if name not in _KINDS:
        return None
    apart = find(run, "actor_rollout_ref.hybrid_engine", "rollout.nnodes")
    mode = Mode.RLHF_SERVER if apart is not None and apart.value is not True else None
    if verl.trainer_of(run) == verl.FULLY_ASYNC:
        mode = Mode.RLHF_SERVER
    run = _named_by_folder(run, "actor_rollout_ref.model.path")
    return _of_host(run, name, "verl", mode or Mode.RLHF_COLOCATE, setting)


def _of_verls_generation(run: Run) -> Optional[Engine]:
    setting = find(run, verl.ROLLOUT_NAME)
    name = str(setting.value) if setting is not None and setting.known else ""
    if name not in _KINDS:
        return None
    run = _named_by_folder(run, "actor_rollout_ref.model.path")
    return _of_host(run, name, "verl", Mode.INTEGRATED, setting)


_OPENRLHF = re.compile(r"(?:.*[./])?openrlhf[./]cli[./]train_ppo(?:_ray)?(?:\.py)?")


def _is_openrlhf(run: Run) -> bool:
    words = run.command.words if run.command is not None else ()
    return run.kind is RunKind.TRAIN and any(_OPENRLHF.fullmatch(word.text) for word in words)


def _of_openrlhf(run: Run) -> Optional[Engine]:
    """The engines of OpenRLHF: on the training GPUs, or on their own."""
    count = find(run, "vllm.num_engines", "vllm_num_engines")
    if count is None or count.value in (0, None):
        return None
    names = ("train.colocate_all", "colocate_all_models", "vllm.enable_sleep", "vllm_enable_sleep")
    shares = next((s for name in names if is_true(s := run.settings.get(name))), None)
    shared = shares is not None and not is_true(find(run, "train.async_enable", "async_train"))
    host = "openrlhf" if "." in count.name else "openrlhf-0.9"
    actor = find(run, VLLM_HOSTS[host].written("model"))
    if actor is not None and isinstance(actor.value, str) and not run.model.name:
        run = replace(run, model=replace(model_of(actor.value), location=actor.location))
    mode = Mode.RLHF_COLOCATE if shared else Mode.RLHF_SERVER
    return _of_host(run, "vllm", host, mode, shares if shared else count)


def _within(run: Run) -> Optional[Engine]:
    """An engine that the program of another run builds."""
    for name in _KINDS:
        call = next(_constructors(run, name), None)
        if call is not None:
            by = given(call.method, True, call)
            mode = Mode.RLHF_COLOCATE if _trains(run) else Mode.INTEGRATED
            groups = _groups(name, call.method)
            return Engine(_KINDS[name], run, mode, groups, None, by, call)
    return None


def _trains(run: Run) -> bool:
    """Whether the program trains: the engine's own ``step()`` is no training step."""
    if run.kind is not RunKind.TRAIN:
        return False
    methods = {call.method for program in run.python for call in program.calls}
    return run.framework != "generic" or bool(methods & {"backward", "manual_backward", "fit"})


def _constructors(run: Run, engine: str) -> Iterator[Call]:
    pattern = _CONSTRUCTORS[engine][0]
    for program in run.python:
        for call in program.calls:
            if call.name.startswith(f"{engine}.") and pattern.fullmatch(call.method):
                yield call
