"""Commands that run another command (``srun``, ``docker run``, ``bash -c`` …).

Launchers that give training its processes (``torchrun``, ``accelerate``, ``deepspeed``)
are no wrappers: what they are told belongs to the run.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Optional

from ._job_images import entrypoint_of

SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh", "ash"})

WRAP = "--wrap="
"""``sbatch``'s flag whose value is shell text."""

_ENV_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


@dataclass(frozen=True)
class Unwrapped:
    """``count`` words belong to the wrapper; the rest is the command.

    ``kind``: ``words`` (the rest is a command), ``script`` (word ``script`` holds shell
    text), ``joined`` (the rest joined by spaces is shell text), ``stdin`` (nothing follows:
    what is fed to it is shell text).
    """

    kind: str
    count: int
    script: int = 0
    assignments: tuple[int, ...] = ()
    end: Optional[int] = None


@dataclass(frozen=True)
class _Wrapper:
    """How many values each flag takes, and how many operands stand before the command."""

    values: Mapping[str, int] = field(default_factory=dict)
    operands: int = 0
    assigns: bool = False
    kind: str = "words"
    subcommands: tuple[str, ...] = ()
    needs_dashes: bool = False


def _flags(text: str, two: str = "") -> dict[str, int]:
    found = dict.fromkeys(text.split(), 1)
    found.update(dict.fromkeys(two.split(), 2))
    return found


_SRUN = _flags(
    """-A -c -C -d -D -e -G -i -J -L -m -M -n -N -o -O -p -q -r -S -t -T -u -w -W -x
    --account --cpus-per-task --constraint --dependency --chdir --error --gpus --input
    --job-name --licenses --distribution --clusters --ntasks --nodes --output --partition
    --qos --relative --time --threads --nodelist --wait --exclude --gres --mem --mem-per-cpu
    --mem-per-gpu --gpus-per-node --gpus-per-task --gpus-per-socket --ntasks-per-node
    --ntasks-per-gpu --ntasks-per-socket --cpus-per-gpu --container-image --container-mounts
    --container-workdir --container-name --container-env --mpi --cpu-bind --gpu-bind --mem-bind
    --jobid --export --reservation --network --open-mode --signal --threads-per-core
    --comment --het-group --begin --mail-type --mail-user --task-prolog --task-epilog"""
)
for _boolean in ("-O", "-u"):
    del _SRUN[_boolean]

_MPI = _flags(
    """-n -np -c -N -npernode --npernode --n --np -ppn -perhost -H -host --host -hosts -hostfile
    --hostfile -machinefile --machinefile -f -x -map-by --map-by -bind-to --bind-to -rank-by
    --rank-by -rf --rankfile -wdir --wdir -wd --prefix -prefix -genvlist -envlist -launcher
    -bootstrap --output-filename -output-filename --timeout -iface""",
    "-mca --mca -gmca --gmca -env -genv",
)
_DOCKER = _flags(
    """-v --volume -e --env --env-file --name -w --workdir --gpus --shm-size --network --net
    --ipc --ulimit -u --user -p --publish --entrypoint --runtime --device --mount --hostname
    -h --cap-add --cap-drop --security-opt --memory -m --cpus --cpuset-cpus --cpuset-mems
    --add-host --label -l --log-driver --log-opt --pid --restart --tmpfs --platform --pull
    -a --attach --memory-swap --group-add --dns --link --volumes-from --uts --userns
    --device-cgroup-rule --expose --stop-signal -c --cpu-shares --annotation --label-file
    --cgroup-parent --cgroupns --cidfile --cpu-period --cpu-quota --dns-option --dns-search
    --domainname --health-cmd --health-interval --health-retries --health-start-period
    --health-timeout --ip --ip6 --isolation --mac-address --memory-reservation
    --memory-swappiness --network-alias --oom-score-adj --pids-limit --stop-timeout
    --storage-opt --sysctl --context -H --host --config --namespace"""
)
_SINGULARITY = _flags(
    "-B --bind --pwd --cwd -H --home --env --env-file -W --workdir --overlay -S --scratch --mount"
)
_NSYS = _flags(
    """-o --output -t --trace -s --sample -c --capture-range -b --backtrace -f --force-overwrite
    -w --show-output -x --stop-on-exit -y --delay -d --duration -e --env-var -n
    --inherit-environment -p --nvtx-capture --capture-range-end
    --gpu-metrics-device --gpu-metrics-devices
    --gpu-metrics-set --cuda-memory-usage --cudabacktrace --python-sampling --cpuctxsw --stats
    --wait --export --kill --session --session-new --python-backtrace --cuda-graph-trace"""
)
_NCU = _flags(
    """-o --export --set --target-processes -k --kernel-name -c --launch-count -s --launch-skip
    --section --metrics --nvtx-include --nvtx-exclude --replay-mode --clock-control
    --cache-control --profile-from-start --config-file --page --import --log-file"""
)
_SSH = _flags("-i -p -l -o -F -L -R -D -J -b -c -E -e -I -m -O -Q -S -W -w")
_UV = _flags(
    """--with --with-requirements --with-editable --python -p --extra --group --project
    --directory --env-file --index-url --extra-index-url --index --package --only-group
    --no-group --no-extra --refresh-package --find-links --config-file --cache-dir"""
)
_SUDO = _flags("-u --user -g --group -h --host -p --prompt -C -r -t -T -U -D --chdir")
_RAY = _flags(
    """--address --working-dir --runtime-env --runtime-env-json --submission-id --job-id
    --entrypoint-num-cpus --entrypoint-num-gpus --entrypoint-resources --headers --verify
    --metadata-json --log-style --log-color --entrypoint-memory"""
)

_WRAPPERS: Mapping[str, _Wrapper] = {
    "srun": _Wrapper(_SRUN),
    "mpirun": _Wrapper(_MPI),
    "mpiexec": _Wrapper(_MPI),
    "orterun": _Wrapper(_MPI),
    "mpiexec.hydra": _Wrapper(_MPI),
    "conda": _Wrapper(_flags("-n --name -p --prefix --cwd"), subcommands=("run",)),
    "mamba": _Wrapper(_flags("-n --name -p --prefix --cwd"), subcommands=("run",)),
    "micromamba": _Wrapper(_flags("-n --name -p --prefix --cwd -r"), subcommands=("run",)),
    "docker": _Wrapper(_DOCKER, 1, subcommands=("run", "exec", "container")),
    # What the ROCm documents have for `docker run` and its devices.
    "drun": _Wrapper(_DOCKER, 1),
    "podman": _Wrapper(_DOCKER, 1, subcommands=("run", "exec", "container")),
    "nerdctl": _Wrapper(_DOCKER, 1, subcommands=("run", "exec", "container")),
    "nvidia-docker": _Wrapper(_DOCKER, 1, subcommands=("run", "exec")),
    "singularity": _Wrapper(_SINGULARITY, 1, subcommands=("exec", "run")),
    "apptainer": _Wrapper(_SINGULARITY, 1, subcommands=("exec", "run")),
    # A wrapper that names the image itself, as the clusters of CSC have it.
    "singularity_wrapper": _Wrapper(_SINGULARITY, subcommands=("exec", "run")),
    "apptainer_wrapper": _Wrapper(_SINGULARITY, subcommands=("exec", "run")),
    "uv": _Wrapper(_UV, subcommands=("run",)),
    "poetry": _Wrapper(_flags("-C --directory -P --project"), subcommands=("run",)),
    "pipenv": _Wrapper(subcommands=("run",)),
    "pdm": _Wrapper(_flags("-p --project"), subcommands=("run",)),
    "pixi": _Wrapper(_flags("-e --environment --manifest-path"), subcommands=("run",)),
    "rye": _Wrapper(subcommands=("run",)),
    "kubectl": _Wrapper(_flags("-n --namespace -c --container"), 1, subcommands=("exec",)),
    "ray": _Wrapper(_RAY, subcommands=("job",), needs_dashes=True),
    "env": _Wrapper(_flags("-u --unset -C --chdir"), assigns=True),
    "sudo": _Wrapper(_SUDO, assigns=True),
    "nohup": _Wrapper(),
    "setsid": _Wrapper(),
    "unbuffer": _Wrapper(),
    "caffeinate": _Wrapper(),
    "tini": _Wrapper(),
    "dumb-init": _Wrapper(),
    "gosu": _Wrapper(operands=1),
    "exec": _Wrapper(_flags("-a")),
    "builtin": _Wrapper(),
    "command": _Wrapper(),
    "coproc": _Wrapper(),
    "time": _Wrapper(_flags("-f --format -o --output")),
    "timeout": _Wrapper(_flags("-s --signal -k --kill-after"), 1),
    "stdbuf": _Wrapper(_flags("-i -o -e --input --output --error")),
    "taskset": _Wrapper(operands=1),
    "numactl": _Wrapper(
        _flags(
            """-N --cpunodebind -m --membind -C --physcpubind -i --interleave -p --preferred
            -P --preferred-many -w --weighted-interleave"""
        )
    ),
    "nice": _Wrapper(_flags("-n --adjustment")),
    "ionice": _Wrapper(_flags("-c --class -n --classdata")),
    "chrt": _Wrapper(operands=1),
    "strace": _Wrapper(_flags("-e -o -s -P -u")),
    "py-spy": _Wrapper(_flags("-o --output -r --rate -f --format"), subcommands=("record",)),
    "nsys": _Wrapper(_NSYS, subcommands=("profile", "launch")),
    "ncu": _Wrapper(_NCU),
    "nv-nsight-cu-cli": _Wrapper(_NCU),
    "compute-sanitizer": _Wrapper(_flags("--tool --log-file --target-processes --save")),
    "ssh": _Wrapper(_SSH, 1, kind="joined"),
    "sshpass": _Wrapper(_flags("-p -f -d -P")),
    "pdsh": _Wrapper(_flags("-w -x -f -l -R -u -t -g -X"), kind="joined"),
    "xargs": _Wrapper(_flags("-n -P -I -d -a -L -s -E --max-args --max-procs --replace")),
    "parallel": _Wrapper(
        _flags(
            """-j --jobs -a --arg-file -C --colsep -N -n -L --delay --timeout --joblog --results
            --tmpdir --workdir --wd -S --sshlogin --slf --env"""
        )
    ),
}


def unwrap(words: Sequence[str]) -> Optional[Unwrapped]:
    """How ``words`` wrap another command, or None when they are a command of their own.

    A word that is not known is given as written (``$FLAGS``).
    """
    if not words:
        return None
    name = posixpath.basename(words[0])
    if name in SHELLS:
        return _shell(words)
    if name == "sbatch":
        return _sbatch(words)
    wrapper = _WRAPPERS.get(name)
    if wrapper is None:
        return None
    return _unwrap(name, wrapper, words)


def _unwrap(name: str, wrapper: _Wrapper, words: Sequence[str]) -> Optional[Unwrapped]:
    at = 1
    if wrapper.subcommands:
        at = _skip_flags(wrapper, words, at)
        if at >= len(words) or words[at] not in wrapper.subcommands:
            return None
        at += 1
        if words[at - 1] in ("container", "job"):
            # "docker container run", "ray job submit"
            if at >= len(words) or words[at] not in ("run", "exec", "submit"):
                return None
            at += 1
    if name == "command" and len(words) > 1 and words[1] in ("-v", "-V"):
        return None
    assignments: list[int] = []
    while True:
        at = _skip_flags(wrapper, words, at)
        if not wrapper.assigns or at >= len(words) or not _ENV_ASSIGNMENT.match(words[at]):
            break
        assignments.append(at)
        at += 1
    # A flag that ends the command has no value to skip.
    at = min(at, len(words))
    dashes = at > 1 and words[at - 1] == "--"
    if not dashes:
        at += wrapper.operands
        if at < len(words) and words[at] == "--":
            at, dashes = at + 1, True
    if wrapper.needs_dashes and not dashes:
        return None
    if at >= len(words):
        if at == len(words) and wrapper.values is _DOCKER and entrypoint_of(words[-1]):
            return Unwrapped("words", at)  # the image alone: it has a program of its own
        return Unwrapped("stdin", len(words)) if name == "ssh" else None
    kind = wrapper.kind
    if kind == "joined" and name == "ssh" and words[at:] and words[at] in SHELLS:
        kind = "words"
    end = next((i for i, word in enumerate(words) if word.startswith(":::")), None)
    end = end if name == "parallel" else None
    return Unwrapped(kind, at, assignments=tuple(assignments), end=end)


def _may_be_flags(wrapper: _Wrapper, word: str) -> bool:
    """Whether an unknown word stands for flags, rather than for an image or a host.

    ``$FLAGS`` does, ``$HOME/torch.sif`` does not; where an operand comes before the command,
    ``$IMAGE`` is it.
    """
    if wrapper.assigns or not _VARIABLE.fullmatch(word):
        return False
    return not wrapper.operands or _NAMES_FLAGS.search(word) is not None


_VARIABLE = re.compile(r"\"?\$\{?\w+(?:\[[@*]\]|:?[-+=][^}]*)?\}?\"?")
_NAMES_FLAGS = re.compile(r"(?i)arg|opt|flag|extra|param|bind|mount|vol|env|[@*]")


def _skip_flags(wrapper: _Wrapper, words: Sequence[str], at: int) -> int:
    while at < len(words):
        word = words[at]
        if word == "--":
            return at + 1
        if word.startswith("-") and len(word) > 1:
            at += 1 + wrapper.values.get(word, 0)
        elif _may_be_flags(wrapper, word) and at + 1 < len(words):
            at += 1
        else:
            break
    return at


def _shell(words: Sequence[str]) -> Optional[Unwrapped]:
    """``bash -lc 'text'``; a shell that is given a script file is a command of its own."""
    at = 1
    has_script = False
    while at < len(words) and words[at][:1] in ("-", "+") and len(words[at]) > 1:
        word = words[at]
        if word == "--":
            at += 1
            break
        if not word.startswith("--"):
            has_script = has_script or "c" in word[1:]
            at += 1 if word[-1] in ("o", "O") else 0
        elif word in ("--rcfile", "--init-file"):
            at += 1
        if word == "-s":
            return Unwrapped("stdin", len(words))
        at += 1
    if has_script and at < len(words):
        return Unwrapped("script", at, script=at)
    if at >= len(words) and not has_script:
        return Unwrapped("stdin", len(words))
    return None


def _sbatch(words: Sequence[str]) -> Optional[Unwrapped]:
    for at, word in enumerate(words):
        if word == "--wrap" and at + 1 < len(words):
            return Unwrapped("script", at + 1, script=at + 1)
        if word.startswith(WRAP):
            return Unwrapped("script", at, script=at)
    return None
