"""What the libraries that programs make their configuration with give back."""

from __future__ import annotations

import json
import math
import posixpath
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Callable

from flake8_gpu_training.facts import Unknown
from flake8_gpu_training.runs import _followed_absl as absl
from flake8_gpu_training.runs._followed import (
    HOME,
    Class,
    Either,
    External,
    File,
    Given,
    PathText,
    Placed,
    Table,
    bare,
    items_of,
    joined_path,
    of_plain,
    plain,
)
from flake8_gpu_training.runs._followed_commands import App, run_function
from flake8_gpu_training.runs._followed_configs import omegaconf, python_config
from flake8_gpu_training.runs._followed_engines import is_of_engine, of_engine
from flake8_gpu_training.runs._followed_methods import method
from flake8_gpu_training.runs._followed_objects import TrainerArguments
from flake8_gpu_training.runs._followed_operators import one_of
from flake8_gpu_training.runs._followed_parsers import Parser, is_parser, texts_of

if TYPE_CHECKING:
    from flake8_gpu_training.runs.following import Follower, World

BUILTINS = frozenset(
    """
    int float str bool len dict list tuple set vars getattr setattr hasattr isinstance min max sum
    range zip enumerate sorted reversed open round abs print exit quit any all type super object
    property staticmethod classmethod Exception ValueError KeyError
    """.split()  # noqa: SIM905
)
LAUNCHERS_OWN = frozenset(
    """
    LOCAL_RANK RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK NODE_RANK MASTER_ADDR MASTER_PORT
    SLURM_PROCID SLURM_LOCALID SLURM_NTASKS OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_LOCAL_RANK
    """.split()  # noqa: SIM905
)
"""Environment variables that a launcher sets for each process."""
SCHEDULERS_OWN = ("SLURM_", "SLURMD_", "OMPI_", "PMI_", "PMIX_", "PBS_", "LSB_")
"""So begins what a scheduler or MPI gives each process; who submits it may be out of sight."""

_DICTS = frozenset(
    """
    dict OrderedDict SimpleNamespace Namespace EasyDict AttrDict Munch Box DotMap ConfigDict Dict
    CfgNode CN DotDict
    """.split()  # noqa: SIM905
)
_EXITS = frozenset({"exit", "quit", "sys.exit", "os._exit"})
_DOCUMENT = re.compile(
    r"(?:json|json5|tomllib|tomli|toml|pytoml|rtoml|commentjson|orjson|ujson|yaml|ruamel\.yaml)"
    r"\.(?:loads?|safe_load|full_load|unsafe_load)"
)
_PATHS = frozenset({"pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath"})
_SAME_PATH = frozenset(
    """
    os.path.abspath os.path.realpath os.path.normpath os.path.expanduser os.fspath
    hydra.utils.to_absolute_path os.path.expandvars
    """.split()  # noqa: SIM905
)


INTERPRETER = "python"
"""What stands for ``sys.executable`` in a command."""


def command_line(world: World) -> Any:
    """``sys.argv``."""
    if world.is_partial:
        return Unknown("sys.argv")
    return ["the script", *texts_of(world.arguments)]


# --- functions --------------------------------------------------------------------------


def call(follower: Follower, name: str, given: Given, text: str) -> Any:
    """What calling the function or class ``name`` of a library gives."""
    if name in _EXITS:
        return External("exit")
    if absl.defines(name):
        return absl.define(follower, name, given)
    if is_of_engine(name):
        return of_engine(follower, name, given, text)
    if name == "absl.app.run":
        return absl.main_of(follower, given)
    function = _FUNCTIONS.get(name)
    if function is not None:
        return function(follower, given, text)
    last = name.rpartition(".")[2]
    if name == "typer.Typer":
        return App()
    if name in ("typer.run", "fire.Fire"):
        return run_function(follower, given.get(0, "component"), name.partition(".")[0])
    if is_parser(name):
        return Parser(name, given)
    if _DOCUMENT.fullmatch(name):
        return _document(follower, given.get(0, "stream", "fp", "s", "f"), text)
    if name.startswith("omegaconf."):
        return omegaconf(follower, last, given, text)
    if name in _PATHS:
        return joined_path([bare(item) for item in given.positional], text)
    if name in _SAME_PATH:
        return bare(given.get(0))
    if last in _DICTS:
        return _dict(follower, given, text)
    if last == "partial" and given.positional:
        return Unknown(text)
    if name.startswith("mmengine.") and last == "fromfile":
        return python_config(follower, bare(given.get(0, "filename")), text)
    if name in ("importlib.import_module", "runpy.run_path", "importlib.__import__"):
        return _imported(follower, bare(given.get(0)), text)
    if last in ("parse_args", "parse_known_args"):
        return method(follower, Unknown(text), last, given, text)
    return Unknown(text)


def _document(follower: Follower, stream: Any, text: str) -> Any:
    """A configuration document from an open file, its name, or its text."""
    stream = bare(stream)
    if isinstance(stream, (File, PathText)):
        return follower.load(stream, follower.here)
    if isinstance(stream, str):
        if stream.lstrip()[:1] in "{[":
            return _of_json(stream, text)
        return follower.load(stream, follower.here)
    return Unknown(text)


def _of_json(stream: str, text: str) -> Any:
    try:
        return of_plain(json.loads(stream))
    except (ValueError, RecursionError):
        return Unknown(text)


def _open(follower: Follower, given: Given, text: str) -> Any:
    name = bare(given.get(0, "file"))
    mode = bare(given.get(1, "mode", default="r"))
    if not isinstance(name, str) or not isinstance(mode, str) or set(mode) & set("wax+"):
        return Unknown(text)
    return File(name)


def _dict(follower: Follower, given: Given, text: str) -> Any:
    made = Table(is_open=given.is_open)
    source = given.get(0)
    if isinstance(source, Table):
        made.is_open = made.is_open or source.is_open
        made.omega = source.omega
        for key in source.entries:
            value = follower.leaf(source, key)
            made.put(key, value.copy() if isinstance(value, Table) else value)
        if source in follower.configurations:
            follower.replaced(made, source)
    elif source is not None:
        pairs = items_of(source)
        made.is_open = made.is_open or pairs is None
        for pair in pairs or ():
            if isinstance(pair, list) and len(pair) == 2 and isinstance(bare(pair[0]), str):
                made.put(bare(pair[0]), pair[1])
            else:
                made.is_open = True
    for key, value in given.keywords.items():
        made.put(key, value)
    return made


def _vars(follower: Follower, given: Given, text: str) -> Any:
    owner = given.get(0)
    return owner if isinstance(owner, Table) else Unknown(text)


def _getattr(follower: Follower, given: Given, text: str) -> Any:
    owner, name = given.get(0), bare(given.get(1))
    if not isinstance(name, str):
        return Unknown(text)
    if isinstance(owner, Table) and name not in owner.entries:
        if owner.is_open or owner.kind is not None or len(given.positional) < 3:
            return follower.attribute(owner, name, text)
        return given.positional[2]
    return follower.attribute(owner, name, text)


def _setattr(follower: Follower, given: Given, text: str) -> Any:
    if len(given.positional) == 3:
        follower.put(given.positional[0], bare(given.positional[1]), given.positional[2])
    return None


def _hasattr(follower: Follower, given: Given, text: str) -> Any:
    owner, name = given.get(0), bare(given.get(1))
    if isinstance(owner, Class) and isinstance(name, str):
        is_whole = all(isinstance(base, Class) for item in owner.lineage() for base in item.bases)
        if owner.find(name) is not None or (is_whole and not name.startswith("__")):
            return owner.find(name) is not None
    if isinstance(owner, Table) and isinstance(name, str):
        if name in owner.entries:
            return True
        if not owner.is_open and owner.kind is None:
            return False
    return Unknown(text)


_TYPES: Mapping[str, tuple[type, ...]] = {
    "dict": (Table,),
    "str": (str,),
    "list": (list,),
    "tuple": (),
    "int": (int,),
    "float": (float,),
    "bool": (bool,),
}


def _isinstance(follower: Follower, given: Given, text: str) -> Any:
    value = given.get(0)
    value = value if isinstance(value, Table) else bare(value)
    kinds = given.get(1)
    kinds = kinds if isinstance(kinds, list) else [kinds]
    names = [kind.name for kind in kinds if isinstance(kind, External)]
    simple = (Table, Class, str, list, int, float, bool)
    if len(names) != len(kinds) or (value is not None and not isinstance(value, simple)):
        return Unknown(text)
    if isinstance(value, (PathText, Placed)) or any(name not in _TYPES for name in names):
        return Unknown(text)
    return any(isinstance(value, _TYPES[name]) for name in names)


def _converted(kind: Callable[[Any], Any]) -> Callable[[Follower, Given, str], Any]:
    def convert(follower: Follower, given: Given, text: str) -> Any:
        value = bare(given.get(0))
        if len(given.positional) != 1 or given.keywords:
            return Unknown(text)
        candidates = value.candidates if isinstance(value, Unknown) else (value,)
        results = []
        for candidate in candidates:
            if not isinstance(candidate, (bool, int, float, str)):
                return Unknown(text)
            try:
                results.append(kind(candidate))
            except (ValueError, OverflowError, TypeError):
                return Unknown(text)
        if not results:
            return Unknown(text)
        return one_of(results, text, value)

    return convert


def _str(follower: Follower, given: Given, text: str) -> Any:
    value = bare(given.get(0))
    if isinstance(value, Either) and len(value.candidates) == 1:
        value = value.candidates[0]
    if isinstance(value, PathText):
        return value
    return str(value) if isinstance(value, (bool, int, float, str)) else Unknown(text)


def _json(follower: Follower, given: Given, text: str) -> Any:
    """``json.dumps`` of what is all known."""
    value = plain(given.get(0, "obj"))
    if given.keywords or given.is_open or isinstance(value, Unknown):
        return Unknown(text)
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return Unknown(text)


def _len(follower: Follower, given: Given, text: str) -> Any:
    value = given.get(0)
    items = bare(value) if isinstance(bare(value), str) else items_of(value)
    return Unknown(text) if items is None else len(items)


def _extreme(choose: Callable[[Any], Any]) -> Callable[[Follower, Given, str], Any]:
    def extreme(follower: Follower, given: Given, text: str) -> Any:
        items = items_of(given.get(0)) if len(given.positional) == 1 else list(given.positional)
        numbers = [bare(item) for item in items or ()]
        if not numbers or given.keywords:
            return Unknown(text)
        if any(isinstance(n, bool) or not isinstance(n, (int, float)) for n in numbers):
            return Unknown(text)
        return choose(numbers)

    return extreme


def _range(follower: Follower, given: Given, text: str) -> Any:
    numbers = [bare(item) for item in given.positional]
    if not numbers or not all(type(number) is int for number in numbers) or len(numbers) > 3:
        return Unknown(text)
    try:
        made = range(*numbers)
    except ValueError:
        return Unknown(text)
    return list(made) if len(made) <= 64 else Unknown(text)


def _sequence(follower: Follower, given: Given, text: str) -> Any:
    if not given.positional:
        return []
    items = items_of(given.get(0))
    return Unknown(text) if items is None else list(items)


def _sorted(follower: Follower, given: Given, text: str) -> Any:
    items = [bare(item) for item in items_of(given.get(0)) or ()]
    if not items or given.keywords or not all(type(i) in (int, str, float) for i in items):
        return Unknown(text)
    try:
        return sorted(items)
    except TypeError:
        return Unknown(text)


def _enumerate(follower: Follower, given: Given, text: str) -> Any:
    items = items_of(given.get(0))
    return Unknown(text) if items is None else [[n, item] for n, item in enumerate(items)]


def _zip(follower: Follower, given: Given, text: str) -> Any:
    lists = [items_of(item) for item in given.positional]
    if not lists or any(items is None for items in lists):
        return Unknown(text)
    return [list(row) for row in zip(*(items or () for items in lists))]


def _environment(follower: Follower, given: Given, text: str) -> Any:
    name = bare(given.get(0, "key"))
    if not isinstance(name, str):
        return Unknown(text)
    found = follower.environ(name)
    return given.get(1, "default") if found is None else found


def _world_size(follower: Follower, given: Given, text: str) -> Any:
    size = follower.world.world_size
    return Unknown(text) if size is None or given.positional else size


def _accelerator(follower: Follower, given: Given, text: str) -> Any:
    """Accelerate's ``Accelerator``: what a program reads from it to share out a batch."""
    made = Table(is_open=True)
    if follower.world.world_size is not None:
        made.put("num_processes", follower.world.world_size)
    for name in ("gradient_accumulation_steps", "mixed_precision"):
        if name in given.keywords:
            made.put(name, given.keywords[name])
    return made


def _set_environment(follower: Follower, given: Given, text: str) -> Any:
    name = bare(given.get(0, "key"))
    if isinstance(name, str) and follower.environ(name) is None and not follower.doubt:
        follower.put(External("os.environ"), name, given.get(1, "value"))
    return _environment(follower, given, text)


def _join(follower: Follower, given: Given, text: str) -> Any:
    return joined_path([bare(item) for item in given.positional], text)


def _path_part(part: Callable[[str], str]) -> Callable[[Follower, Given, str], Any]:
    def read(follower: Follower, given: Given, text: str) -> Any:
        value = bare(given.get(0))
        return PathText(part(value)) if isinstance(value, str) else Unknown(text)

    return read


def _exists(follower: Follower, given: Given, text: str) -> Any:
    name = bare(given.get(0))
    if isinstance(name, str) and follower.world.document(name, follower.here) is not None:
        return True
    return Unknown(text)


def _copy(follower: Follower, given: Given, text: str) -> Any:
    value = given.get(0)
    return value.copy() if isinstance(value, Table) else value


def _asdict(follower: Follower, given: Given, text: str) -> Any:
    value = given.get(0)
    if not isinstance(value, Table):
        return Unknown(text)
    made = value.copy()
    made.kind = None
    return made


def _fields(follower: Follower, given: Given, text: str) -> Any:
    """``dataclasses.fields``: of each field its name."""
    owner = given.get(0)
    kind = owner.kind if isinstance(owner, Table) else owner
    if not isinstance(kind, Class):
        return Unknown(text)
    names = [name for item in reversed(list(kind.lineage())) for name in item.fields]
    return [Table({"name": name}) for name in dict.fromkeys(names)]


def _replace(follower: Follower, given: Given, text: str) -> Any:
    value = given.get(0)
    if not isinstance(value, Table):
        return Unknown(text)
    made = value.copy()
    made.is_open = made.is_open or given.is_open
    if isinstance(made, TrainerArguments):
        made.is_lost = made.is_lost or given.is_open
    for key, item in given.keywords.items():
        made.put(key, item)
    return made


def _imported(follower: Follower, name: Any, text: str) -> Any:
    """``importlib.import_module`` and ``runpy.run_path`` of a known name."""
    if not isinstance(name, str):
        return Unknown(text)
    if name.endswith(".py"):
        path = follower.world.module(name, -1, follower.here)
    else:
        dotted = name.lstrip(".")
        path = follower.world.module(dotted, len(name) - len(dotted), follower.here)
    if path is None:
        return External(name)
    follower.made.modules.append(path)
    return follower.module(path) or Unknown(text)


_HYDRA_S_OWN = frozenset({"_partial_", "_recursive_", "_convert_", "_args_"})


def _instantiate(follower: Follower, given: Given, text: str) -> Any:
    """``hydra.utils.instantiate``: the class or function that ``_target_`` names."""
    table = given.get(0, "config")
    if not isinstance(table, Table) or "_target_" not in table.entries:
        return Unknown(text)
    target = bare(follower.leaf(table, "_target_"))
    keywords = {
        key: follower.leaf(table, key)
        for key in table.entries
        if isinstance(key, str) and not (key.startswith("_") and key.endswith("_"))
    }
    keywords.update(given.keywords)
    keywords = {key: item for key, item in keywords.items() if key not in _HYDRA_S_OWN}
    arguments = Given((), keywords, given.is_open or table.is_open)
    if not isinstance(target, str):
        return Unknown(text)
    partial = bare(given.keywords.get("_partial_", table.entries.get("_partial_")))
    if partial is True and not isinstance(follower.located(target), External):
        return Unknown(text)  # who calls it may give other arguments
    return follower.target(target, arguments, table)


def _located(follower: Follower, given: Given, text: str) -> Any:
    """``hydra.utils.get_class``: a class or function of the project by its dotted name."""
    dotted = bare(given.get(0, "path"))
    return follower.located(dotted) if isinstance(dotted, str) else Unknown(text)


def _add_root(follower: Follower, given: Given, text: str) -> Any:
    """``sys.path.insert(0, folder)`` and ``sys.path.append(folder)``."""
    folder = bare(given.positional[-1]) if given.positional else None
    if isinstance(folder, str):
        inside = folder[len(HOME) + 1 :] if folder.startswith(f"{HOME}/") else folder
        follower.roots.append(posixpath.normpath(inside or "."))
    return None


_FUNCTIONS: Mapping[str, Callable[[Any, Any, str], Any]] = {
    "sys.path.insert": _add_root,
    "sys.path.append": _add_root,
    "open": _open,
    "io.open": _open,
    "dict": _dict,
    "vars": _vars,
    "getattr": _getattr,
    "setattr": _setattr,
    "hasattr": _hasattr,
    "isinstance": _isinstance,
    "int": _converted(int),
    "float": _converted(float),
    "bool": _converted(bool),
    "str": _str,
    "json.dumps": _json,
    "len": _len,
    "min": _extreme(min),
    "max": _extreme(max),
    "sum": _extreme(sum),
    "round": _converted(round),
    "abs": _converted(lambda value: abs(float(value)) if isinstance(value, str) else abs(value)),
    "math.sqrt": _converted(math.sqrt),
    "math.ceil": _converted(math.ceil),
    "math.floor": _converted(math.floor),
    "math.log": _converted(math.log),
    "math.log2": _converted(math.log2),
    "numpy.round": _converted(round),
    "numpy.ceil": _converted(math.ceil),
    "numpy.floor": _converted(math.floor),
    "torch.distributed.get_world_size": _world_size,
    "accelerate.Accelerator": _accelerator,
    "range": _range,
    "list": _sequence,
    "tuple": _sequence,
    "sorted": _sorted,
    "enumerate": _enumerate,
    "zip": _zip,
    "os.getenv": _environment,
    "os.environ.get": _environment,
    "os.environ.setdefault": _set_environment,
    "os.path.join": _join,
    "os.path.dirname": _path_part(posixpath.dirname),
    "os.path.basename": _path_part(posixpath.basename),
    "os.path.exists": _exists,
    "os.path.isfile": _exists,
    "os.getcwd": lambda follower, given, text: PathText("."),
    "copy.copy": _copy,
    "copy.deepcopy": _copy,
    "dataclasses.asdict": _asdict,
    "dataclasses.replace": _replace,
    "dataclasses.fields": _fields,
    "torch.cuda.is_available": lambda follower, given, text: True,
    "hydra.utils.instantiate": _instantiate,
    "hydra.utils.call": _instantiate,
    "hydra.utils.get_class": _located,
    "hydra.utils.get_method": _located,
    "hydra.utils.get_object": _located,
}
