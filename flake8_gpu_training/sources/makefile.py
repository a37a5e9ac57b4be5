"""Reads Makefiles: recipes as shell, with make's variables expanded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Optional, Union

from ..facts import Location, Problem, ScriptFile, Setting, Unknown, Word
from ._shell_interpreter import Interpreter
from ._shell_parse import parse_program
from ._shell_text import decoded
from ._shell_values import Chunk, Composed, Source, Value, Variable, plain, text_of

_ASSIGNMENT = re.compile(
    r"(?P<export>export[ \t]+)?(?:override[ \t]+)?(?P<name>[^\s:#=$+?!]+)[ \t]*"
    r"(?P<sign>:{0,3}=|\+=|\?=|!=)[ \t]*"
)
_RULE = re.compile(r"(?P<targets>[^:=#\t][^:=#]*?)[ \t]*::?(?!=)[ \t]*(?P<rest>[^\n]*)", re.DOTALL)
_CONDITION = re.compile(r"[ ]*(ifeq|ifneq|ifdef|ifndef|else|endif)\b")
_REFERENCE = re.compile(r"[A-Za-z_.][\w.\-]*\Z")
_HARMLESS = re.compile(r"\$[({][\w ./:%=+*-]+[)}]\Z")
_MAX_DEPTH = 20
_MAX_REFERENCES = 5_000
_MAX_EXPANSION = 20_000
"""Longest expansion, in characters, that is followed."""


@dataclass(frozen=True)
class _Line:
    """A logical line: its pieces with their places; a recipe's keep their line breaks."""

    value: Value
    recipe: bool = False

    @property
    def text(self) -> str:
        return text_of(self.value)


@dataclass(frozen=True)
class _Variable:
    """``value`` of a recursive variable is expanded where it is used."""

    value: Value
    recursive: bool
    place: Value
    candidates: tuple[str, ...] = ()
    conditional: bool = False


@dataclass
class _Rule:
    """A target under way."""

    target: str
    needs: tuple[str, ...]
    conditional: bool
    lines: list[_Line] = field(default_factory=list)
    others: tuple[str, ...] = ()
    """Further targets of the same recipe."""


@dataclass(frozen=True)
class MakeCall:
    """``make goals NAME=value``, and the variables of the environment it is called in.

    A value that is not known is Unknown. Without goals the first target is made.
    """

    goals: tuple[str, ...] = ()
    variables: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class _Make:
    """A walk over the lines."""

    variables: dict[str, _Variable] = field(default_factory=dict)
    exported: set[str] = field(default_factory=set)
    rules: list[_Rule] = field(default_factory=list)
    fixed: frozenset[str] = frozenset()
    """Variables that the call sets: assignments do not change them."""
    of_targets: dict[str, dict[str, _Variable]] = field(default_factory=dict)
    """Variables that hold for one target, and what it needs, only."""
    sourced: list[Word] = field(default_factory=list)
    one_shell: bool = False
    exports_all: bool = False
    depth: int = 0
    """How many conditionals are open."""
    references: int = 0
    """How many were expanded so far."""


def read_makefile(
    text: Union[str, bytes], path: str, call: Optional[MakeCall] = None
) -> ScriptFile:
    """Facts of a Makefile. Never raises: what cannot be read is a Problem.

    A command's ``function`` is its target. With a ``call`` the commands are those that it
    runs; without one they are those of all targets.
    """
    problems: list[Problem] = []
    content = decoded(text, path, 1, problems, takes_crlf=True)
    source = Source(content, path)
    comments: list[Setting] = []
    make = _Make()
    if call is not None:
        _preset(make, call, source)
    for line in _lines(content, source, comments):
        _read(make, line)
    interpreter = Interpreter("", parse_program)
    for name in make.variables:
        exported = make.exports_all or name in make.exported
        # The shell sees only what is exported; but what depends on a condition is left to it.
        if exported or make.variables[name].conditional:
            value = _expand_name(make, name, {}, 0)
            place = make.variables[name].place
            location = place[0].location if place else None
            interpreter.state.set(name, Variable(value, location, exported))
    for rule, target in _chosen(make, call):
        _run(make, rule, target, interpreter)
    return ScriptFile(
        path=path,
        commands=tuple(interpreter.commands),
        assignments=dict(_settings(make)),
        heredocs=tuple(interpreter.heredocs),
        sourced=tuple(make.sourced),
        comments=tuple(comments),
        problems=tuple(problems + interpreter.problems),
    )


def _preset(make: _Make, call: MakeCall, source: Source) -> None:
    """Variables that the environment sets, and those that the call fixes."""
    for name, value in {**call.environment, **call.variables}.items():
        unknown = value if isinstance(value, Unknown) else None
        text = str(value) if unknown is None else f"${{{name}}}"
        chunk = Chunk(text, source, 0, unknown, False)
        make.variables[name] = _Variable((chunk,), False, ())
    make.fixed = frozenset(call.variables)
    make.exported.update(call.variables, call.environment)


def _chosen(make: _Make, call: Optional[MakeCall]) -> list[tuple[_Rule, str]]:
    """The rules that run, in order, each with its target."""
    if call is None:
        return [(rule, rule.target) for rule in make.rules]
    found: list[tuple[_Rule, str]] = []
    seen: set[str] = set()

    def need(target: str, depth: int) -> None:
        if target in seen or depth > _MAX_DEPTH:
            return
        seen.add(target)
        rules = [rule for rule in make.rules if target in (rule.target, *rule.others)]
        rules = rules or [r for r in make.rules if _stem(r.target, target) is not None][:1]
        for rule in rules:
            for name, variable in make.of_targets.get(target, {}).items():
                for needed in rule.needs:
                    make.of_targets.setdefault(needed, {}).setdefault(name, variable)
            for needed in rule.needs:
                need(needed, depth + 1)
        found.extend((rule, target) for rule in rules)

    for goal in call.goals or _default_goals(make):
        need(goal, 0)
    return found


def _default_goals(make: _Make) -> list[str]:
    named = make.variables.get(".DEFAULT_GOAL")
    if named is not None:
        return [text_of(named.value).strip()]
    targets = (r.target for r in make.rules if r.target[:1] != "." and "%" not in r.target)
    return list(targets)[:1]


def _stem(pattern: str, target: str) -> Optional[str]:
    """What ``%`` of a pattern rule stands for."""
    before, percent, behind = pattern.partition("%")
    if not percent or not target.startswith(before) or not target.endswith(behind):
        return None
    stem = target[len(before) : len(target) - len(behind)]
    return stem or None


def _settings(make: _Make) -> Iterator[tuple[str, Setting]]:
    for name, variable in make.variables.items():
        value: Any = plain(_expand_name(make, name, {}, 0))
        location = variable.place[0].location if variable.place else None
        yield name, Setting(name, value, location)


# --- lines --------------------------------------------------------------------------


def _lines(text: str, source: Source, comments: list[Setting]) -> Iterator[_Line]:
    """Logical lines without comments; bodies of ``define`` are left out."""
    start = 0
    in_define = False
    while start < len(text):
        end = _logical_end(text, start)
        raw = text[start:end]
        bare = raw.lstrip(" ")
        recipe = raw.startswith("\t")
        if in_define:
            in_define = not bare.startswith("endef")
        elif bare.startswith("define ") and not recipe:
            in_define = True
        elif bare.strip().startswith("#"):
            offset = start + raw.index("#")
            note = raw.strip().lstrip("#").strip()
            comments.append(Setting("#", note, source.location(offset)))
        elif recipe:
            yield _Line(tuple(_recipe_pieces(raw, start, source)), recipe=True)
        elif bare.strip():
            yield _Line(tuple(_pieces(_uncommented(raw), start, source)))
        start = end + 1


def _logical_end(text: str, start: int) -> int:
    end = start
    while True:
        end = text.find("\n", end)
        if end < 0:
            return len(text)
        slashes = 0
        while end - slashes > start and text[end - 1 - slashes] == "\\":
            slashes += 1
        if slashes % 2 == 0:
            return end
        end += 1


def _uncommented(raw: str) -> str:
    match = re.search(r"(?<!\\)#", raw)
    return raw if match is None else raw[: match.start()]


def _pieces(raw: str, start: int, source: Source) -> Iterator[Chunk]:
    """A line outside recipes: a line break with the blanks around it is one space."""
    at = 0
    for match in re.finditer(r"[ \t]*\\\n[ \t]*", raw):
        yield source.piece(raw[at : match.start()], start + at)
        yield Chunk(" ", source, start + match.start(), None, False)
        at = match.end()
    yield source.piece(raw[at:].rstrip(), start + at)


def _recipe_pieces(raw: str, start: int, source: Source) -> Iterator[Chunk]:
    """A recipe line goes to the shell with its line breaks, less the tab after each."""
    at = 1
    for match in re.finditer(r"\\\n\t?", raw):
        yield source.piece(raw[at : match.start() + 2], start + at)
        at = match.end()
    yield source.piece(raw[at:], start + at)


# --- meaning ------------------------------------------------------------------------


def _read(make: _Make, line: _Line) -> None:
    if line.recipe:
        if make.rules:
            make.rules[-1].lines.append(line)
        return
    text = line.text
    condition = _CONDITION.match(text)
    if condition is not None:
        word = condition.group(1)
        make.depth += 1 if word.startswith("if") else 0
        make.depth = max(0, make.depth - 1) if word == "endif" else make.depth
        return
    match = _ASSIGNMENT.match(text.lstrip(" "))
    if match is not None:
        _assign(make, line, match, len(text) - len(text.lstrip(" ")))
    elif text.startswith("export"):
        names = text.split()[1:]
        make.exported.update(names)
        make.exports_all = make.exports_all or not names
    elif re.match(r"-?s?include\b", text):
        for found in list(re.finditer(r"\S+", text))[1:]:
            place = Composed(line.value).location(found.start())
            make.sourced.append(Word(found.group(), place, found.group()))
    else:
        _rule(make, line)


def _assign(make: _Make, line: _Line, match: re.Match[str], indent: int) -> None:
    name, sign = match["name"], match["sign"]
    value = _tail(line.value, indent + match.end())
    place = _tail(line.value, indent + match.start("name"))
    if match["export"]:
        make.exported.add(name)
    before = make.variables.get(name)
    if name in make.fixed:
        return
    if sign == "?=" and before is not None and not before.conditional:
        return
    if sign == "!=":
        text = f"$(shell {text_of(value)})"
        value = (Chunk(text, place[0].source, place[0].offset, None, False),) if place else ()
    recursive = sign in ("=", "?=", "!=")
    if sign == "+=" and before is not None:
        recursive = before.recursive
        space = Chunk(" ", value[0].source, value[0].offset, None, False) if value else None
        tail = value if recursive else _expand(make, value, {}, 0)
        value = (*before.value, *((space,) if space else ()), *tail)
    elif not recursive:
        value = _expand(make, value, {}, 0)
    made = _Variable(value, recursive, place)
    if make.depth:
        made = _conditional(make, before, made)
    make.variables[name] = made


def _conditional(make: _Make, before: Optional[_Variable], made: _Variable) -> _Variable:
    """Assigned in a branch: what it holds is one of several."""
    seen = before.candidates if before is not None else ()
    if before is not None and not before.conditional:
        seen = (text_of(before.value),)
    candidates = tuple(dict.fromkeys((*seen, text_of(made.value))))
    return _Variable(made.value, made.recursive, made.place, candidates, True)


def _tail(value: Value, cut: int) -> Value:
    made: list[Chunk] = []
    for chunk in value:
        size = len(chunk.text)
        if cut < size:
            made.append(chunk.part(cut, size))
        cut = max(0, cut - size)
    return tuple(made)


def _rule(make: _Make, line: _Line) -> None:
    match = _RULE.match(line.text)
    if match is None:
        return
    targets = match["targets"].split()
    if ".ONESHELL" in targets:
        make.one_shell = True
    needs, semicolon, command = match["rest"].partition(";")
    assigned = _ASSIGNMENT.match(needs.lstrip())
    if assigned is not None:
        _assign_for(make, line, match, targets)
        return
    if targets and targets[0].startswith(".") and targets[0].isupper():
        return
    target = targets[0] if targets else ""
    rule = _Rule(target, tuple(needs.split()), make.depth > 0, others=tuple(targets[1:]))
    if semicolon and command.strip():
        cut = match.start("rest") + len(needs) + 1
        rule.lines.append(_Line(_tail(line.value, cut), recipe=True))
    make.rules.append(rule)


def _assign_for(make: _Make, line: _Line, match: re.Match[str], targets: list[str]) -> None:
    """``target: NAME = value``."""
    rest = _tail(line.value, match.start("rest"))
    text = text_of(rest)
    bare = _tail(rest, len(text) - len(text.lstrip(" \t")))
    inner = _ASSIGNMENT.match(text_of(bare))
    name = inner["name"] if inner is not None else ""
    before = make.variables.get(name)
    if inner is not None:
        _assign(make, _Line(bare), inner, 0)
    made = make.variables.get(name)
    if made is not None and made is not before:
        for target in targets:
            make.of_targets.setdefault(target, {})[name] = made
        make.variables.pop(name)
        if before is not None:
            make.variables[name] = before


def _automatic(rule: _Rule, target: str) -> dict[str, str]:
    """``$@`` and its kin, where they are known."""
    stem = _stem(rule.target, target)
    if "%" in target:
        return {}
    found = {"@": target, "*": target if stem is None else stem, "?": " ".join(rule.needs)}
    found["^"] = found["+"] = " ".join(rule.needs)
    found["<"] = rule.needs[0] if rule.needs else ""
    return found


def _run(make: _Make, rule: _Rule, target: str, interpreter: Interpreter) -> None:
    before = make.variables
    make.variables = {**before, **make.of_targets.get(target, {})}
    try:
        _run_lines(make, rule, target, interpreter)
    finally:
        make.variables = before


def _run_lines(make: _Make, rule: _Rule, target: str, interpreter: Interpreter) -> None:
    automatic = _automatic(rule, target)
    values = []
    for line in rule.lines:
        text = line.text
        prefix = len(text) - len(text.lstrip("@-+ \t"))
        values.append(_expand(make, _tail(line.value, prefix), automatic, 0))
    if make.one_shell and values:
        joined: list[Chunk] = []
        for value in values:
            joined.extend(value)
            if value:
                joined.append(Chunk("\n", value[-1].source, value[-1].offset, None, False))
        values = [tuple(joined)]
    for line, value in zip(rule.lines, values):
        if not text_of(value).strip():
            continue
        noted = len(interpreter.commands)
        interpreter.run_text(value, function=target, conditional=rule.conditional)
        for index in range(noted, len(interpreter.commands)):
            made = interpreter.commands[index]
            interpreter.commands[index] = replace(made, location=_placed(made.location, rule, line))


def _placed(location: Location, rule: _Rule, line: _Line) -> Location:
    """Where a command stands in its recipe, though a variable may hold its first word."""
    recipe = [chunk.location for each in rule.lines for chunk in each.value if chunk.text.strip()]
    first = _tail(line.value, len(line.text) - len(line.text.lstrip("@-+ \t")))
    if not recipe or not first or recipe[0].line <= location.line <= recipe[-1].line:
        return location
    return first[0].location


# --- expansion ----------------------------------------------------------------------


def _expand(make: _Make, value: Value, automatic: Mapping[str, str], depth: int) -> Value:
    """``$(NAME)`` and ``$$`` replaced; what make alone could tell stays as written."""
    source = Composed(value)
    text = source.text
    chunks: list[Chunk] = []
    at = size = 0
    while at < len(text) and size < _MAX_EXPANSION:
        dollar = text.find("$", at)
        dollar = len(text) if dollar < 0 else dollar
        if dollar > at:
            chunks.append(Chunk(text[at:dollar], source, at))
            size += dollar - at
        if dollar + 1 >= len(text):
            break
        char = text[dollar + 1]
        if char in "({":
            close = _close(text, dollar + 1)
            name = text[dollar + 2 : close]
        else:
            close, name = dollar + 1, char
        at = close + 1
        if name == "$" and char == "$":
            chunks.append(Chunk("$", source, dollar + 1))
            continue
        raw = text[dollar:at]
        found = _refer(make, name, raw, source, dollar, automatic, depth)
        size += sum(len(chunk.text) for chunk in found)
        chunks.extend(found)
    return tuple(chunks)


def _close(text: str, opening: int) -> int:
    """Index of the parenthesis that closes a reference; make knows no quotes."""
    end = text.find("\n", opening)
    end = len(text) if end < 0 else end
    left, right = ("(", ")") if text[opening] == "(" else ("{", "}")
    level = 0
    for i in range(opening, len(text)):
        if text[i] == left:
            level += 1
        elif text[i] == right:
            level -= 1
            if not level:
                return i
    return len(text) - 1


def _refer(
    make: _Make,
    name: str,
    raw: str,
    source: Source,
    offset: int,
    automatic: Mapping[str, str],
    depth: int,
) -> Value:
    if name in automatic:
        return (Chunk(automatic[name], source, offset, None, False),)
    if name == "MAKE":
        return (Chunk("make", source, offset, None, False),)
    if name in ("CURDIR", "shell pwd"):
        return (Chunk(".", source, offset, None, False),)
    make.references += 1
    if name in make.variables and depth < _MAX_DEPTH and make.references < _MAX_REFERENCES:
        return _expand_name(make, name, automatic, depth + 1, source, offset)
    if not _REFERENCE.match(name) or depth >= _MAX_DEPTH:
        # Its text may mean something else to the shell; this is unknown to both.
        shown = (
            raw if _HARMLESS.match(raw) else f"$(make:{name.split()[0] if name.split() else ''})"
        )
        return (Chunk(shown, source, offset, Unknown("a function of make"), False),)
    # make takes what it does not know from the environment, as the shell does.
    unknown = Unknown(f"$({name}) is not set in the Makefile")
    return (Chunk(f"${{{name}}}", source, offset, unknown, False),)


def _expand_name(
    make: _Make,
    name: str,
    automatic: Mapping[str, str],
    depth: int,
    source: Optional[Source] = None,
    offset: int = 0,
) -> Value:
    variable = make.variables[name]
    if variable.conditional:
        place = variable.place[0]
        unknown = Unknown(f"$({name}) depends on a condition", variable.candidates)
        return (Chunk(f"${{{name}}}", source or place.source, offset, unknown, False),)
    if not variable.recursive:
        return variable.value
    return _expand(make, variable.value, automatic, depth)
