"""Expansion of shell words over what is known of the script's variables."""

from __future__ import annotations

import ast
import fnmatch
import operator
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Callable, Optional

from ..facts import EMPTY, NO_ARGUMENTS, Origin, Setting, Unknown
from ._shell_parse import PLACEHOLDER
from ._shell_syntax import Span
from ._shell_values import (
    MAX_CANDIDATES,
    Chunk,
    Field,
    Source,
    Value,
    Variable,
    is_known,
    plain,
    text_of,
)
from ._shell_words import Calculation, Literal, Parameter, Part, Substitution, parse_word

MAX_VALUE = 100_000
"""Longest value, in characters, that is followed."""
MAX_ELEMENTS = 4096
_MAX_DEPTH = 20
_MAX_PATTERN = 4096
_MAX_EXPRESSION = 200

Evaluate = Callable[[Substitution, Source], Optional[Value]]


class State:
    """Variables, directory and arguments at one point of a script."""

    def __init__(self, path: str = "") -> None:
        self.path = path
        self.variables: dict[str, Variable] = {}
        self.directory = ""
        self.dead = ""
        """Empty while statements run; else ``continue``, ``break``, ``return`` or ``exit``."""
        self.exports_all = False
        self.positional: Optional[tuple[Value, ...]] = None
        self.may_have_more = False
        """Whether an argument may be several: it is not known and not quoted."""
        self.locals: Optional[dict[str, Optional[Variable]]] = None
        self.option_index = (0, 0)
        """Where ``getopts`` goes on: argument and letter."""
        self.has_unread = False
        """Whether text that is not read may have set variables."""
        self._environment: Optional[Mapping[str, Setting]] = None

    def copy(self) -> State:
        """An independent copy, for a branch or a subshell."""
        made = State(self.path)
        made.become(self)
        return made

    def become(self, other: State) -> None:
        """Take over everything of ``other``."""
        self.variables = dict(other.variables)
        self.directory = other.directory
        self.dead = other.dead
        self.exports_all = other.exports_all
        self.positional = other.positional
        self.may_have_more = other.may_have_more
        self.option_index = other.option_index
        self.has_unread = other.has_unread
        self.locals = None if other.locals is None else dict(other.locals)
        self._environment = other._environment

    def take(self, arguments: Sequence[Field]) -> None:
        """Begin with the arguments of a call."""
        self.positional = tuple(field.value for field in arguments)
        self.may_have_more = any(field.word().splits for field in arguments)

    def set(self, name: str, variable: Optional[Variable]) -> None:
        """Set or (None) unset a variable."""
        before = self.variables.get(name)
        if variable is None:
            self.variables.pop(name, None)
        else:
            if self.exports_all and not variable.exported:
                variable = Variable(variable.value, variable.location, True, variable.elements)
            self.variables[name] = variable
        if (before is not None and before.exported) or (variable and variable.exported):
            self._environment = None

    def environment(self) -> Mapping[str, Setting]:
        """What a process started here gets from the script."""
        if self._environment is None:
            found = {
                name: variable.setting(name, Origin.ENVIRONMENT)
                for name, variable in self.variables.items()
                if variable.exported and not _is_schedulers(name, variable)
            }
            self._environment = MappingProxyType(found) if found else EMPTY
        return self._environment

    def merge(self, branches: Sequence[State]) -> None:
        """Become what is common to ``branches``; what differs becomes unknown."""
        alive = [branch for branch in branches if not branch.dead]
        if not alive:
            # The weakest leaves the rest of the script alive.
            self.dead = min((branch.dead for branch in branches), key=_STRENGTH.index)
            return
        first = alive[0]
        self.become(first)
        if len(alive) == 1:
            return
        names = dict.fromkeys(name for branch in alive for name in branch.variables)
        for name in names:
            found = [branch.variables.get(name) for branch in alive]
            if any(variable is not found[0] for variable in found[1:]):
                self.set(name, _merged(name, found))
        if any(branch.directory != first.directory for branch in alive):
            self.directory = "$PWD"
        if any(branch.positional != first.positional for branch in alive):
            self.positional = None
        self.may_have_more = any(branch.may_have_more for branch in alive)


def _is_schedulers(name: str, variable: Variable) -> bool:
    """Whether a scheduler sets it: nobody wrote it, and it only repeats what was asked for."""
    return variable.location is None and name.startswith(("SLURM_", "SKYPILOT_"))


_STRENGTH = ("", "continue", "break", "return", "exit")


def _merged(name: str, found: Sequence[Optional[Variable]]) -> Variable:
    present = [variable for variable in found if variable is not None]
    # One that may be exported is no absent one.
    exported = any(variable.exported for variable in present)
    last = present[-1]
    complete = len(present) == len(found)
    if any(variable.elements is not None for variable in present):
        return _merged_arrays(name, present, complete, exported)
    values = [variable.plain() for variable in present]
    if complete and all(isinstance(v, str) and v == values[0] for v in values):
        return Variable(last.value, last.location, exported)
    prefix = _common_prefix([variable.value for variable in present]) if complete else ()
    cut = len(text_of(prefix))
    candidates = _candidates(values)
    tails = tuple(dict.fromkeys(choice[cut:] for choice in candidates))
    anchor = next((variable for variable in reversed(present) if variable.value), last)
    at = anchor.value[-1] if anchor.value else None
    unknown = Unknown(f"${name} depends on a branch", tails)
    source = at.source if at is not None else Source("", "")
    offset = at.offset if at is not None else 0
    value = (*prefix, Chunk(f"${{{name}}}", source, offset, unknown, False))
    return Variable(value, last.location, exported)


def _candidates(values: Sequence[Any]) -> tuple[str, ...]:
    found: list[str] = []
    for value in values:
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, Unknown):
            found.extend(choice for choice in value.candidates if isinstance(choice, str))
    return tuple(dict.fromkeys(found))[:MAX_CANDIDATES]


def _common_prefix(values: Sequence[Value]) -> Value:
    """The known chunks all values begin with, up to a space: ``$A --more`` against ``$A``."""
    if not all(is_known(value) for value in values):
        return ()
    texts = [text_of(value) for value in values]
    shortest = min(texts, key=len)
    length = next(
        (i for i, char in enumerate(shortest) if any(text[i] != char for text in texts)),
        len(shortest),
    )
    if any(len(text) > length and not text[length].isspace() for text in texts):
        length = shortest.rfind(" ", 0, length) + 1
    if not length:
        return ()
    made: list[Chunk] = []
    left = length
    chunk = None
    for chunk in values[0]:
        if left <= 0:
            break
        made.append(chunk.part(0, left))
        left -= len(chunk.text)
    if made and not made[-1].text[-1:].isspace():
        made.append(Chunk(" ", made[-1].source, made[-1].offset, None, False))
    return tuple(made)


def _merged_arrays(
    name: str, present: Sequence[Variable], complete: bool, exported: bool
) -> Variable:
    lists = [variable.elements or (variable.value,) for variable in present]
    common: list[Value] = []
    if complete:
        for column in zip(*lists):
            if all(element == column[0] for element in column[1:]):
                common.append(column[0])
            else:
                break
    rest = [" ".join(text_of(e) for e in elements[len(common) :]) for elements in lists]
    if any(rest) or not complete:
        donor = next((elements[-1][-1] for elements in lists if elements and elements[-1]), None)
        source = donor.source if donor is not None else Source("", "")
        offset = donor.offset if donor is not None else 0
        unknown = Unknown(f"${name} depends on a branch", tuple(dict.fromkeys(rest)))
        common.append((Chunk(f"${{{name}[@]}}", source, offset, unknown, False),))
    return Variable((), present[-1].location, exported, tuple(common))


class Expander:
    """Expands the words of one source over a state."""

    def __init__(self, source: Source, state: State, evaluate: Evaluate) -> None:
        self._source = source
        self._state = state
        self._evaluate = evaluate
        self._depth = 0

    # --- whole words ----------------------------------------------------------------

    def fields(self, span: Span) -> list[Field]:
        """The words that the word at ``span`` becomes."""
        text = self._source.text
        raw = text[span.start : span.end]
        if not _SPECIAL.search(raw):
            is_to_replace = PLACEHOLDER.search(raw) or _MORE.fullmatch(raw)
            unknown = Unknown("a placeholder") if is_to_replace else None
            value = (Chunk(raw, self._source, span.start, unknown),)
            return [Field(value, self._source, span.start, raw)]
        parts = parse_word(text, span.start, span.end)
        made: list[Field] = []
        for variant in _braces(parts):
            made.extend(self._split(variant, span, raw))
            if len(made) > MAX_ELEMENTS:
                break
        return made[:MAX_ELEMENTS]

    def value(self, span: Span) -> Value:
        """The value of an assignment: no splitting."""
        return self._join(parse_word(self._source.text, span.start, span.end))

    def document(self, span: Span) -> Value:
        """The body of a here-document that expands."""
        return self._join(parse_word(self._source.text, span.start, span.end, quoted=True))

    def _join(self, parts: Sequence[Part]) -> Value:
        chunks: list[Chunk] = []
        size = 0
        for part in parts:
            values = self._part(part)
            for i, value in enumerate(values):
                if i:
                    chunks.append(Chunk(" ", self._source, part.offset, None, False))
                chunks.extend(chunk for chunk in value if chunk.text)
                size += sum(len(chunk.text) for chunk in value)
            if size > MAX_VALUE:
                return (self._unknown(text_of(chunks)[:80], 0, "the value is too long"),)
        return tuple(chunks)

    def _split(self, parts: Sequence[Part], span: Span, raw: str) -> list[Field]:
        """Field splitting: unquoted expansions split at blanks, ``"$@"`` at its elements."""
        splitter = _Splitter(self._source, span.start, raw)
        for part in parts:
            if isinstance(part, Literal):
                splitter.add(self._part(part)[0], part.quoted)
                continue
            values = self._part(part)
            if part.quoted:
                splitter.add_list(values, many=_is_list(part))
            else:
                for i, value in enumerate(values):
                    if i:
                        splitter.flush()
                    splitter.add_unquoted(value)
        return splitter.finish()

    # --- parts ----------------------------------------------------------------------

    def _part(self, part: Part) -> list[Value]:
        """The values of a part: one, or the elements of a list."""
        if isinstance(part, Literal):
            to_replace = part.quoted and _TO_REPLACE.search(part.text) is not None
            unknown = Unknown("a placeholder") if to_replace else None
            return [(Chunk(part.text, self._source, part.offset, unknown),)]
        if self._depth > _MAX_DEPTH:
            return [(self._unknown(part.raw, part.offset, "expansions are nested too deeply"),)]
        self._depth += 1
        try:
            if isinstance(part, Parameter):
                return self._parameter(part)
            if isinstance(part, Calculation):
                return [self._calculation(part)]
            made = self._evaluate(part, self._source)
            if made is None:
                return [(self._unknown(part.raw, part.offset, "output of a command"),)]
            return [made]
        finally:
            self._depth -= 1

    def _unknown(
        self, raw: str, offset: int, reason: str, candidates: tuple[str, ...] = ()
    ) -> Chunk:
        return Chunk(raw, self._source, offset, Unknown(reason, candidates), False, len(raw))

    def _derived(self, text: str, offset: int) -> Value:
        return (Chunk(text[:MAX_VALUE], self._source, offset, None, False),)

    def _calculation(self, part: Calculation) -> Value:
        result = calculate(part.expression, self._text)
        if result is None:
            return (self._unknown(part.raw, part.offset, "arithmetic on unknown values"),)
        return self._derived(str(result), part.offset)

    def _text(self, name: str) -> Optional[str]:
        variable = self._state.variables.get(name)
        if variable is None:
            return None
        value = variable.plain()
        return value if isinstance(value, str) else None

    def _argument(self, part: Parameter) -> list[Part]:
        start = part.argument_offset
        return parse_word(self._source.text, start, start + len(part.argument))

    def _look_up(self, part: Parameter) -> Optional[list[Value]]:
        """The parameter's values, None when it is not set."""
        name, state = part.name, self._state
        if name in ("@", "*"):
            return None if state.positional is None else list(state.positional)
        if name == "#":
            count = state.positional
            if count is None or state.may_have_more:
                return None
            return [self._derived(str(len(count)), part.offset)]
        if name.isdigit():
            return self._argument_value(int(name[:4]), part)
        variable = state.variables.get(name)
        if variable is None:
            if name == "BASH_SOURCE":
                return [self._derived(state.path, part.offset)]
            if name == "PWD" and "$" not in state.directory:
                return [self._derived(state.directory or ".", part.offset)]
            return None
        if variable.elements is None:
            return [variable.value]
        if part.index in ("@", "*"):
            return list(variable.elements)
        index = calculate(part.index or "0", self._text)
        if index is None or not -len(variable.elements) <= index < len(variable.elements):
            choices = self._possible_elements(part.index, variable.elements)
            return [(self._unknown(part.raw, part.offset, f"an element of ${name}", choices),)]
        return [variable.elements[index]]

    def _possible_elements(self, index: str, elements: Sequence[Value]) -> tuple[str, ...]:
        """Elements at an index in which one variable is one of several numbers."""
        open_names = {}
        for name in dict.fromkeys(_NAME_IN_INDEX.findall(index)):
            variable = self._state.variables.get(name)
            value = None if variable is None else variable.plain()
            if isinstance(value, Unknown) and value.candidates:
                open_names[name] = value.candidates
        if len(open_names) != 1:
            return ()
        ((open_name, numbers),) = open_names.items()
        found: list[str] = []
        for number in numbers:
            at = calculate(
                index,
                lambda n, number=number: (  # type: ignore[misc]
                    str(number) if n == open_name else self._text(n)
                ),
            )
            if at is None or not 0 <= at < len(elements) or not is_known(elements[at]):
                return ()
            found.append(text_of(elements[at]))
        return tuple(dict.fromkeys(found))

    def _argument_value(self, number: int, part: Parameter) -> Optional[list[Value]]:
        if number == 0:
            return [self._derived(self._state.path, part.offset)] if self._state.path else None
        positional = self._state.positional
        if positional is None:
            return None
        if number <= len(positional):
            return [positional[number - 1]]
        return None if self._state.may_have_more else [()]

    def _parameter(self, part: Parameter) -> list[Value]:
        if not part.name or (part.indirect and part.index):
            return [(self._unknown(part.raw, part.offset, "an expansion that is not followed"),)]
        values = self._look_up(part)
        if part.indirect:
            values = self._indirect(part, values)
        if part.operator in _DEFAULTS:
            return self._default(part, values)
        if values is None:
            return [(self._unknown(part.raw, part.offset, _unset(part.name)),)]
        if part.operator == ":" and "@" in (part.name, part.index):
            return self._section(part, values)
        if part.length:
            return [self._length(part, values)]
        if not part.operator:
            return [self._rename(value, part) for value in values]
        return [self._operate(part, value) for value in values]

    def _rename(self, value: Value, part: Parameter) -> Value:
        """Show a value that is unknown as a whole by the name it is used by here."""
        if len(value) == 1 and value[0].unknown is not None and not part.index:
            chunk = value[0]
            return (Chunk(part.raw, self._source, part.offset, chunk.unknown, False),)
        return value

    def _indirect(self, part: Parameter, values: Optional[list[Value]]) -> Optional[list[Value]]:
        name = plain(values[0]) if values else None
        if not isinstance(name, str):
            return None
        variable = self._state.variables.get(name)
        return None if variable is None else [variable.value]

    def _length(self, part: Parameter, values: list[Value]) -> Value:
        whole = part.index in ("@", "*") or part.name in ("@", "*")
        if whole and all(is_known(value) for value in values):
            return self._derived(str(len(values)), part.offset)
        if not whole and is_known(values[0]):
            return self._derived(str(len(text_of(values[0]))), part.offset)
        return (self._unknown(part.raw, part.offset, f"the length of ${part.name}"),)

    def _default(self, part: Parameter, values: Optional[list[Value]]) -> list[Value]:
        """``${X:-default}`` and its kin. A plain call sets nothing: the default is the value."""
        kind = part.operator[-1]
        empty = values is None or (
            part.operator[0] == ":" and all(is_known(v) and not text_of(v) for v in values)
        )
        if kind == "+":
            if values is None:
                choices = ("", text_of(self._join(self._argument(part))))
                return [(self._unknown(part.raw, part.offset, _unset(part.name), choices),)]
            if not all(is_known(value) for value in values):
                return [(self._unknown(part.raw, part.offset, f"${part.name} is not known"),)]
            return [()] if empty else [self._join(self._argument(part))]
        if values is not None and not empty:
            return [self._rename(value, part) for value in values]
        if kind == "?":
            return [(self._unknown(part.raw, part.offset, _unset(part.name)),)]
        made = self._join(self._argument(part))
        if values is None and part.name[:1].isalpha() and self._state.has_unread:
            told = (text_of(made),) if is_known(made) else ()
            reason = f"what sets ${part.name} may be in a file that was not read"
            return [(self._unknown(part.raw, part.offset, reason, told),)]
        if kind == "=":
            place = self._source.location(part.offset)
            before = self._state.variables.get(part.name)
            exported = before is not None and before.exported
            self._state.set(part.name, Variable(made, place, exported))
        return [made]

    def _section(self, part: Parameter, values: list[Value]) -> list[Value]:
        """``"${@:2}"`` and ``"${ARRAY[@]:1:3}"``; the first argument is number 1."""
        first, _, count = part.argument.partition(":")
        start = calculate(first or "0", self._text)
        length = calculate(count, self._text) if count else len(values)
        if start is None or length is None or start < 0 or length < 0:
            return [(self._unknown(part.raw, part.offset, "an expansion that is not followed"),)]
        start = max(0, start - 1) if part.name == "@" else start
        return values[start : start + length]

    def _operate(self, part: Parameter, value: Value) -> Value:
        if not is_known(value):
            return (self._unknown(part.raw, part.offset, f"${part.name} is not known"),)
        # ``\\/`` is no separator, hence the pattern is cut off before it is expanded.
        pattern, new = part.argument, ""
        if part.operator in ("/", "//"):
            match = _REPLACEMENT.match(part.argument)
            pattern, new = match.groups("") if match is not None else (pattern, new)
        start = part.argument_offset
        text = self._source.text
        first = self._join(parse_word(text, start, start + len(pattern)))
        begin = start + len(part.argument) - len(new)
        second = self._join(parse_word(text, begin, begin + len(new)))
        if not is_known(first) or not is_known(second):
            return (self._unknown(part.raw, part.offset, "a pattern that is not known"),)
        words = (text_of(first), text_of(second))
        made = operate(text_of(value), part.operator, *words, self._text)
        if made is None:
            return (self._unknown(part.raw, part.offset, "an expansion that is not followed"),)
        return self._derived(made, part.offset)


_NAME_IN_INDEX = re.compile(r"[A-Za-z_]\w*")
_SPECIAL = re.compile(r"['\"\\$`{]")
_MORE = re.compile(r"\[(?:[\w-]+[-_ ])?(?:args|arguments|options|opts|flags)(?: ?\.{3})?\]", re.I)
"""How a usage line has further arguments: ``[args]``, ``[extra-options]``."""
_TO_REPLACE = re.compile(r"<(?:your\b[^<>]*|[A-Za-z][\w.-]*(?: [A-Za-z][\w.-]*)+)>")
"""Within quotes one word may be meant as it is: ``"<image>"``."""
_REPLACEMENT = re.compile(r"((?:\\.|[^/\\])+)(?:/(.*))?\Z", re.DOTALL)
_DEFAULTS = frozenset({":-", "-", ":=", "=", ":+", "+", ":?", "?"})
_BLANKS = re.compile(r"[ \t\n]+|[^ \t\n]+")


def _unset(name: str) -> str:
    if name.isdigit() or name in ("@", "*", "#"):
        return NO_ARGUMENTS
    return f"${name} is not set in the script"


def _is_list(part: Part) -> bool:
    return isinstance(part, Parameter) and not part.length and "@" in (part.name, part.index)


class _Splitter:
    """Collects chunks into fields."""

    def __init__(self, source: Source, start: int, raw: str) -> None:
        self._source = source
        self._start = start
        self._raw = raw
        self._fields: list[tuple[list[Chunk], bool, bool]] = []
        self._chunks: list[Chunk] = []
        self._quoted = False
        self._foreign = True
        """Whether all of the field comes from an expansion that made several words."""
        self._spliced = False
        self._vanishes = False
        """Whether the field holds a list without elements: quoted or not, it is no word."""

    def add(self, value: Value, quoted: bool) -> None:
        self._chunks.extend(chunk for chunk in value if chunk.text)
        self._quoted = self._quoted or quoted
        if any(chunk.text for chunk in value):
            self._foreign = False

    def add_list(self, values: Sequence[Value], many: bool) -> None:
        self._vanishes = self._vanishes or (many and not values)
        self._quoted = self._quoted or not many or bool(values)
        for i, value in enumerate(values):
            if i and many:
                self.flush()
                self._quoted = True
            elif i:
                self._chunks.append(Chunk(" ", self._source, self._start, None, False))
            self._chunks.extend(chunk for chunk in value if chunk.text)
        if many:
            self._spliced = True
        else:
            self._foreign = False

    def add_unquoted(self, value: Value) -> None:
        for chunk in value:
            if chunk.unknown is not None:
                self._chunks.append(chunk)
                continue
            for match in _BLANKS.finditer(chunk.text):
                if match.group()[0] in " \t\n":
                    self.flush()
                else:
                    self._chunks.append(chunk.part(match.start(), match.end()))
        self._spliced = self._spliced or len(value) > 0

    def flush(self) -> None:
        if self._chunks or (self._quoted and not self._vanishes):
            self._fields.append((self._chunks, self._foreign, self._quoted))
        self._chunks, self._quoted, self._foreign, self._vanishes = [], False, True, False

    def finish(self) -> list[Field]:
        self.flush()
        several = len(self._fields) > 1
        made = []
        for chunks, foreign, quoted in self._fields:
            first = chunks[0] if chunks else None
            written_there = (
                foreign
                and self._spliced
                and first is not None
                and (several or first.text.startswith("-"))
                and first.unknown is None
            )
            if written_there and first is not None:
                raw = text_of(chunks)
                made.append(Field(tuple(chunks), first.source, first.offset, raw, quoted))
            else:
                raw = text_of(chunks) if several else self._raw
                made.append(Field(tuple(chunks), self._source, self._start, raw, quoted))
        return made


# --- braces -------------------------------------------------------------------------

_BRACES = re.compile(
    r"\{(?:(-?\d{1,6})\.\.(-?\d{1,6})(?:\.\.(-?\d{1,6}))?|([a-zA-Z])\.\.([a-zA-Z])"
    r"|([^{}]*,[^{}]*))\}"
)
_MAX_BRACES = 1024


def _braces(parts: list[Part]) -> list[list[Part]]:
    """Brace expansion: every variant of the word."""
    done: list[list[Part]] = []
    todo = [parts]
    while todo:
        current = todo.pop()
        found = _first_brace(current)
        if found is None or len(done) + len(todo) > _MAX_BRACES:
            done.append(current)
            continue
        index, literal, match, texts = found
        before = Literal(literal.text[: match.start()], literal.offset)
        rest = Literal(literal.text[match.end() :], literal.offset + match.end())
        variants: list[list[Part]] = []
        for text in texts:
            middle = Literal(text, literal.offset + match.start() + 1)
            variants.append([*current[:index], before, middle, rest, *current[index + 1 :]])
        todo.extend(reversed(variants))
    return done


def _first_brace(
    parts: Sequence[Part],
) -> Optional[tuple[int, Literal, re.Match[str], list[str]]]:
    for index, part in enumerate(parts):
        if isinstance(part, Literal) and not part.quoted and "{" in part.text:
            match = _BRACES.search(part.text)
            if match is not None:
                texts = _alternatives(match)
                if texts:
                    return index, part, match, texts
    return None


def _alternatives(match: re.Match[str]) -> list[str]:
    first, last, step, letter, final, listed = match.groups()
    if listed is not None:
        return [str(item) for item in listed.split(",")]
    if letter is not None:
        low, high = ord(letter), ord(final)
        codes = range(low, high + 1) if low <= high else range(low, high - 1, -1)
        return [chr(code) for code in codes]
    start, stop = int(first), int(last)
    stride = abs(int(step or 1)) or 1
    numbers = range(start, stop + 1, stride) if start <= stop else range(start, stop - 1, -stride)
    width = len(first) if first.lstrip("-").startswith("0") and len(first) > 1 else 0
    return [str(number).zfill(width) for number in numbers[:_MAX_BRACES]]


# --- operators of ${…} --------------------------------------------------------------


def operate(
    value: str,
    sign: str,
    argument: str,
    new: str,
    look_up: Callable[[str], Optional[str]],
) -> Optional[str]:
    """``${value<sign>argument}`` for known text; None when it is not followed.

    ``new`` replaces what matches ``argument``.
    """
    if len(value) > _MAX_PATTERN or len(argument) > _MAX_PATTERN:
        return None
    if sign in ("%", "%%", "#", "##"):
        return _trim(value, sign, argument)
    if sign in ("/", "//"):
        return _replace(value, sign, argument, new)
    if sign == ":":
        return _slice(value, argument, look_up)
    if argument:
        return None
    changed = {"^^": str.upper, ",,": str.lower}.get(sign)
    if changed is not None:
        return changed(value)
    if sign == "^":
        return value[:1].upper() + value[1:]
    if sign == ",":
        return value[:1].lower() + value[1:]
    return None


def _pattern(glob: str) -> Optional[re.Pattern[str]]:
    try:
        return re.compile(fnmatch.translate(glob))
    except (re.error, OverflowError, RecursionError):
        return None


def _trim(value: str, sign: str, glob: str) -> Optional[str]:
    if not any(char in glob for char in "*?["):
        if sign[0] == "%":
            return value[: -len(glob)] if glob and value.endswith(glob) else value
        return value[len(glob) :] if value.startswith(glob) else value
    pattern = _pattern(glob)
    if pattern is None or len(value) > 512:
        return None
    positions = range(len(value) + 1)
    if sign in ("%", "##"):
        positions = range(len(value), -1, -1)
    for at in positions:
        piece = value[at:] if sign[0] == "%" else value[:at]
        if pattern.match(piece):
            return value[:at] if sign[0] == "%" else value[at:]
    return value


def _replace(value: str, sign: str, old: str, new: str) -> Optional[str]:
    if not old or old[0] in "#%" or any(char in old for char in "*?["):
        return None
    return value.replace(old, new) if sign == "//" else value.replace(old, new, 1)


def _slice(value: str, argument: str, look_up: Callable[[str], Optional[str]]) -> Optional[str]:
    first, _, second = argument.partition(":")
    start = calculate(first or "0", look_up)
    if start is None:
        return None
    if start < 0:
        start += len(value)
    if not 0 <= start <= len(value):
        return ""
    if not second:
        return value[start:]
    length = calculate(second, look_up)
    if length is None:
        return None
    return value[start : start + length] if length >= 0 else value[start:length]


# --- arithmetic ---------------------------------------------------------------------


def _divide(left: int, right: int) -> int:
    quotient = abs(left) // abs(right)
    return quotient if (left >= 0) == (right >= 0) else -quotient


def _power(left: int, right: int) -> int:
    if abs(left) > 1 and right > 64:
        raise ValueError
    return int(left**right)


def _shift(left: int, right: int) -> int:
    if not 0 <= right < 64:
        raise ValueError
    return left << right


_BINARY: Mapping[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: _divide,
    ast.Mod: lambda left, right: left - right * _divide(left, right),
    ast.Pow: _power,
    ast.LShift: _shift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_COMPARED: Mapping[type, Callable[[int, int], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_VARIABLE = re.compile(
    r"\$\{(?P<braced>[A-Za-z_]\w*)(?::-(?P<default>\d+))?\}|\$?(?P<bare>[A-Za-z_]\w*)"
)
_ALLOWED = re.compile(r"[\d\s+\-*/%<>=!&|^()]*")
_LEADING_ZERO = re.compile(r"\b0+(?=\d)")


def calculate(expression: str, look_up: Callable[[str], Optional[str]]) -> Optional[int]:
    """Integer value of an arithmetic expression, None when it is not known."""
    if len(expression) > _MAX_EXPRESSION:
        return None
    missing = False

    def value(match: re.Match[str]) -> str:
        nonlocal missing
        text = look_up(match["braced"] or match["bare"])
        text = match["default"] if text is None else text.strip()
        if text is None or not re.fullmatch(r"-?\d{1,18}", text):
            missing = True
            return "0"
        return f"({text})"

    plain_text = _VARIABLE.sub(value, expression).strip()
    if missing or not plain_text or not _ALLOWED.fullmatch(plain_text):
        return None
    plain_text = " ".join(_LEADING_ZERO.sub("", plain_text).split())
    try:
        return _compute(ast.parse(plain_text, mode="eval").body)
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError, KeyError):
        return None


def _compute(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        value = _compute(node.operand)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp):
        made = _BINARY[type(node.op)](_compute(node.left), _compute(node.right))
        if abs(made) >= 2**63:
            raise ValueError
        return made
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        compared = _COMPARED[type(node.ops[0])]
        return int(compared(_compute(node.left), _compute(node.comparators[0])))
    raise ValueError
