"""How to write a setting where this run's settings are written, as text and as edits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Optional

from flake8_gpu_training.checks.base import Change, Edit
from flake8_gpu_training.facts import (
    Argument,
    Call,
    Command,
    Entry,
    Location,
    Node,
    Origin,
    Setting,
)
from flake8_gpu_training.frameworks.base import Framework
from flake8_gpu_training.frameworks.registry import framework_of
from flake8_gpu_training.runs.model import Place, PlaceKind, Run

_LANGUAGE = {
    PlaceKind.FLAGS: "bash",
    PlaceKind.YAML: "yaml",
    PlaceKind.JSON: "json",
    PlaceKind.PYTHON: "python",
}

_OF_SUFFIX = {
    "json": PlaceKind.JSON,
    "yaml": PlaceKind.YAML,
    "yml": PlaceKind.YAML,
    "py": PlaceKind.PYTHON,
}

_COMMENT = {
    PlaceKind.FLAGS: "#",
    PlaceKind.YAML: "#",
    PlaceKind.JSON: "//",
    PlaceKind.PYTHON: "#",
}


def recommend(run: Run, practices: Mapping[str, Any]) -> Optional[Change]:
    """The change that sets ``practices`` (our names and values) in ``run``.

    None when the run's framework has no parameter for one of them.
    """
    spellings = framework_of(run.framework).spellings_of(run)
    written: dict[str, Any] = {}
    for practice, value in practices.items():
        spelling = spellings.get(practice)
        if spelling is None:
            return None
        written.update(spelling.parameters(value))
    return write(run, written)


def write(run: Run, parameters: Mapping[str, Any]) -> Change:
    """The change that sets the framework's own ``parameters`` in ``run``.

    A parameter that the run sets already is replaced where it stands; the others are added
    at the run's place. Edits are given only when every place is known exactly.
    """
    passed = _passed(run, parameters)
    if passed is not None:
        return passed
    framework = framework_of(run.framework).written_for(run)
    replaced: list[Edit] = []
    added: dict[str, Any] = {}
    exact = True
    for name, value in parameters.items():
        setting = run.settings.get(name)
        if setting is None or not setting.explicit:
            added[name] = value
        elif setting.value_location is not None and setting.text:
            new = _replacement(run.place.kind, setting, value)
            if new is None:
                exact = False
            else:
                replaced.append(Edit(setting.value_location, setting.text, new))
        else:
            exact = False
    kind, lines, others = _spelled(run, framework, parameters)
    marked = [f"{_COMMENT[kind]} {text} ({run.place.location})" for text in others]
    text = "\n".join([_join(kind, lines), *marked])
    insertion = _insertion(framework, run.place, added) if added else ()
    if insertion is None or not exact:
        return Change(_LANGUAGE[kind], text)
    return Change(_LANGUAGE[kind], text, (*replaced, *insertion))


def _spelled(
    run: Run, framework: Framework, parameters: Mapping[str, Any]
) -> tuple[PlaceKind, list[str], list[str]]:
    """``parameters`` as they are written where the first one stands, and that place's language.

    A program that reads a file of its own takes some of them from there: the last ones of the
    tuple are those that belong to the run's place all the same.
    """
    kind = _kind_of_file(run, next(iter(parameters), ""))
    if kind is None:
        lines = [line(framework, run.place.kind, n, v) for n, v in parameters.items()]
        return run.place.kind, lines, []
    own = {n: v for n, v in parameters.items() if _kind_of_file(run, n) is kind}
    others = [line(framework, run.place.kind, n, v) for n, v in parameters.items() if n not in own]
    return kind, [_keyed(kind, run.settings[n], v) for n, v in own.items()], others


def _kind_of_file(run: Run, name: str) -> Optional[PlaceKind]:
    """The kind of file, other than the run's place, that holds a parameter under its name."""
    setting = run.settings.get(name)
    if setting is None or setting.location is None or setting.value_location is None:
        return None
    kind = _OF_SUFFIX.get(setting.value_location.path.rpartition(".")[2].lower())
    if kind not in (PlaceKind.YAML, PlaceKind.JSON) or kind is run.place.kind or not setting.text:
        return None
    # The key itself is not kept: what lies between it and the value tells whether it is the name.
    width = len(name) + (4 if kind is PlaceKind.JSON else 2)
    is_alike = setting.location.line == setting.value_location.line
    return kind if is_alike and _gap(setting) in (width, width + 1) else None


def _gap(setting: Setting) -> int:
    """How far the value stands from its key, on the same line."""
    assert setting.location is not None
    assert setting.value_location is not None
    return setting.value_location.column - setting.location.column


def _keyed(kind: PlaceKind, setting: Setting, value: Any) -> str:
    """A key of a file with its new value, in quotes where the old one stands in quotes."""
    text = _value(kind, value)
    if kind is PlaceKind.JSON:
        return f'"{setting.name}": {text}'
    is_quoted = _gap(setting) > len(setting.name) + 2 and isinstance(value, str)
    return f'{setting.name}: "{text}"' if is_quoted else f"{setting.name}: {text}"


def write_in_call(
    run: Run, call: Call, given: Mapping[str, Argument], parameters: Mapping[str, Any]
) -> Change:
    """The change that passes ``parameters`` to ``call``, which has the arguments ``given``."""
    settings = {
        name: Setting(
            name,
            given[name].value,
            given[name].location,
            Origin.CONSTRUCTOR,
            text=given[name].text,
            value_location=given[name].value_location,
        )
        for name in parameters
        if name in given
    }
    place = Place(PlaceKind.PYTHON, call.location, call=call)
    return write(replace(run, place=place, settings=settings), parameters)


def instruction(run: Run, parameters: Mapping[str, Any]) -> str:
    """The framework's own ``parameters`` on one line, as a diagnostic names them."""
    passed = _passed(run, parameters)
    if passed is not None:
        return passed.text.lstrip("# ")
    framework = framework_of(run.framework).written_for(run)
    kind, lines, others = _spelled(run, framework, parameters)
    separator = " " if kind is PlaceKind.FLAGS else ", "
    return separator.join([*lines, *(f"{text} ({run.place.location})" for text in others)])


def _passed(run: Run, parameters: Mapping[str, Any]) -> Optional[Change]:
    """The change of a value that the program takes from a command-line option of its own.

    It is written for the file in which the value stands; None when no option gives one.
    """
    name, option = next(
        ((n, o) for n in parameters if (o := _option_of(run, n)) is not None), ("", "")
    )
    if not option:
        return None
    setting, value = run.settings[name], parameters[name]
    if setting.origin is Origin.DEFAULT:
        written = _value(PlaceKind.PYTHON, value)
        return Change("python", f'add_argument("{option}", default={written})')
    if isinstance(value, bool):
        others = {n: v for n, v in parameters.items() if n != name} or {name: value}
        framework = framework_of(run.framework).written_for(run)
        wanted = ", ".join(line(framework, PlaceKind.PYTHON, n, v) for n, v in others.items())
        return Change("bash", f"# {wanted} in the script instead of {option}")
    new = _value(PlaceKind.FLAGS, value)
    if len(parameters) > 1 or setting.value_location is None or not setting.text:
        return Change("bash", f"{option} {new}")
    return Change("bash", f"{option} {new}", (Edit(setting.value_location, setting.text, new),))


def _option_of(run: Run, name: str) -> Optional[str]:
    """The script's own option behind a constructor's value: its default, or a flag given."""
    setting = run.settings.get(name)
    if setting is None or run.place.kind is not PlaceKind.PYTHON:
        return None
    if setting.origin is Origin.DEFAULT:
        options = (o for program in run.python for o in program.options)
        found = next((o for o in options if o.flags and o.location == setting.location), None)
        return found.flags[-1] if found is not None else None
    if setting.origin is not Origin.FLAG or run.command is None:
        return None
    flag = next((w for w in run.command.words if w.location == setting.location), None)
    return flag.raw.partition("=")[0] if flag is not None and flag.raw.startswith("-") else None


def line(framework: Framework, kind: PlaceKind, name: str, value: Any) -> str:
    """One setting as written in the language of ``kind``."""
    if kind is PlaceKind.PYTHON:
        return f"{name}={_value(kind, value)}"
    if kind is PlaceKind.YAML:
        return f"{name}: {_value(kind, value)}"
    if kind is PlaceKind.JSON:
        return f'"{name}": {_value(kind, value)}'
    flag = framework.flag
    if framework.bare_switches and value is True and flag.startswith("--"):
        flag = flag.replace(" {value}", "").replace("={value}", "")
    return flag.format(name=name, dashed=name.replace("_", "-"), value=_value(kind, value))


def _value(kind: PlaceKind, value: Any) -> str:
    if kind is PlaceKind.PYTHON:
        if isinstance(value, str) and value.startswith("torch."):
            return value
        return json.dumps(value) if isinstance(value, str) else repr(value)
    if kind is PlaceKind.JSON or isinstance(value, (dict, list)):
        text = json.dumps(value)
        return f"'{text}'" if kind is PlaceKind.FLAGS else text
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    if kind is PlaceKind.YAML and isinstance(value, float) and "e" in text and "." not in text:
        return text.replace("e", ".0e")  # YAML 1.1 reads 1e-05 as text
    return text


def _replacement(kind: PlaceKind, setting: Setting, value: Any) -> Optional[str]:
    """What takes the place of a setting's text, in the language of the file it stands in."""
    assert setting.value_location is not None
    suffix = setting.value_location.path.rpartition(".")[2].lower()
    kind = _OF_SUFFIX.get(suffix, kind)
    text = _value(kind, value)
    if kind is not PlaceKind.JSON or not isinstance(setting.value, str):
        return text
    # A JSON string's text stands between its quotes.
    return text[1:-1] if isinstance(value, str) else None


def _join(kind: PlaceKind, lines: list[str]) -> str:
    if kind is PlaceKind.FLAGS:
        return " \\\n".join(lines)
    if kind in (PlaceKind.PYTHON, PlaceKind.JSON):
        return "\n".join(f"{text}," for text in lines)
    return "\n".join(lines)


def _insertion(
    framework: Framework, place: Place, added: Mapping[str, Any]
) -> Optional[tuple[Edit, ...]]:
    lines = [line(framework, place.kind, name, value) for name, value in added.items()]
    if place.kind is PlaceKind.FLAGS:
        if place.command is None or place.command.end is None:
            return None
        end = place.command.end
        if end.path.endswith((".yaml", ".yml")):
            return _flags_in_yaml(end, lines)
        indent = _indentation(place.command)
        new = "".join(f" \\\n{indent}{text}" for text in lines)
        return (Edit(end, "", new),)
    if place.kind is PlaceKind.PYTHON:
        return _keyword_insertion(place, lines)
    if place.kind is PlaceKind.YAML and any("." in name for name in added):
        return _nested_insertion(place, added)
    return _mapping_insertion(place, lines)


def _nested_insertion(place: Place, added: Mapping[str, Any]) -> Optional[tuple[Edit, ...]]:
    """``section.key`` goes into its section, where the file has one with keys below each other."""
    edits: list[Edit] = []
    for name, value in added.items():
        section, dot, key = name.partition(".")
        root = place.document.root if place.document is not None else None
        entry = root.mapping.get(section) if root is not None else None
        if not dot or "." in key or entry is None or entry.node.kind != "mapping":
            return None
        anchor = _last_plain_entry(entry.node, block=True)
        if anchor is None or anchor.location.line <= entry.location.line:
            return None
        at, indent = anchor.location, " " * (anchor.location.column - 1)
        edits.append(Edit(at, "", f"{key}: {_value(place.kind, value)}\n{indent}"))
    return tuple(edits)


def _indentation(command: Command) -> str:
    """What stands before the flags of a command that goes on over several lines."""
    last = command.words[-1].location
    begun = [word.location for word in command.words if word.location.path == last.path]
    columns = [place.column for place in begun if place.line == last.line]
    goes_on = any(place.line < last.line for place in begun)
    # One column may be a tab.
    return " " * (min(columns) - 1) if goes_on and min(columns) != 2 else "    "


def _flags_in_yaml(end: Location, lines: list[str]) -> Optional[tuple[Edit, ...]]:
    """Flags on the command's own line, which leaves a script in YAML its indentation."""
    new = "".join(f" {text}" for text in lines)
    if any(mark in new for mark in ("'", '"', ": ", " #")):
        return None
    return (Edit(end, "", new),)


def _keyword_insertion(place: Place, lines: list[str]) -> Optional[tuple[Edit, ...]]:
    call = place.call
    if call is None or call.insert_at is None:
        return None
    arguments = [*call.positional, *call.keywords.values()]
    own = [a for a in arguments if a.location.path == call.location.path]
    separator = ", "
    if own and all(a.location.line > call.location.line for a in own):
        separator = ",\n" + " " * (own[-1].location.column - 1)
    body = separator.join(lines)
    if not arguments:
        return (Edit(call.insert_at, "", body),)
    lead = separator[1:] if call.ends_with_comma else separator
    return (Edit(call.insert_at, "", lead + body + ("," if call.ends_with_comma else "")),)


def _mapping_insertion(place: Place, lines: list[str]) -> Optional[tuple[Edit, ...]]:
    if place.document is None:
        return None
    anchor = _last_plain_entry(place.document.root, block=place.kind is PlaceKind.YAML)
    if anchor is None:
        return None
    at = Location(anchor.location.path, anchor.location.line, anchor.location.column)
    indent = " " * (at.column - 1)
    end = f",\n{indent}" if place.kind is PlaceKind.JSON else f"\n{indent}"
    return (Edit(at, "", "".join(text + end for text in lines)),)


def _last_plain_entry(root: Node, block: bool) -> Optional[Entry]:
    """The last top-level key that starts a line of its own: new keys go right above it.

    In a ``block`` mapping the keys stand below each other; those merged from elsewhere do not.
    """
    own = [e for e in root.mapping.values() if not block or _starts_alike(e, root)]
    lines: dict[int, int] = {}
    for entry in own:
        lines[entry.location.line] = lines.get(entry.location.line, 0) + 1
    alone = [e for e in own if lines[e.location.line] == 1]
    return max(alone, key=lambda e: e.location.line, default=None)


def _starts_alike(entry: Entry, root: Node) -> bool:
    return entry.location.column == root.location.column
