"""Walks a shell script's syntax as a run would, and notes the commands it would start."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Callable, Optional, Protocol

from ..facts import Command, Heredoc, Location, Origin, Problem, ProblemKind, Unknown, Word
from . import slurm
from ._shell_agreed import with_agreed_program
from ._shell_comments import comments_of
from ._shell_containers import Passed, after, passed, started_by_image
from ._shell_expand import Expander, State, calculate
from ._shell_options import MAX_ARGUMENTS, asks_arguments, next_option
from ._shell_plain import (
    DEFAULTED,
    NAMES,
    OVERRIDABLE,
    SILENT,
    changing,
    computed,
    echoed,
    endless,
    env_assignment,
    is_appending,
    is_pattern,
    is_test,
    joined,
    joined_path,
    stripped,
    tested,
    text_between,
    unwrap_text,
    without_tabs,
    written_to,
)
from ._shell_syntax import (
    AndOr,
    Arithmetic,
    Assignment,
    Block,
    Case,
    For,
    Function,
    Group,
    If,
    Not,
    Pipeline,
    Program,
    Redirect,
    Simple,
    Span,
    Statement,
    While,
    walk,
)
from ._shell_values import (
    Chunk,
    Composed,
    Field,
    Source,
    Value,
    Variable,
    anchored,
    is_known,
    text_of,
)
from ._shell_words import Substitution
from ._shell_wrappers import SHELLS, WRAP, Unwrapped, unwrap
from .environment_files import read_environment_file

Parse = Callable[[str], Program]


class Scripts(Protocol):
    """The project's files, by name, the file that names them, and where ``cd`` led to."""

    def load(self, name: str, path: str, directory: str) -> Optional[tuple[Program, Source]]:
        """A script."""

    def text(self, name: str, path: str, directory: str) -> Optional[tuple[str, str]]:
        """Text and path of another file."""


MAX_COMMANDS = 20_000
_MAX_STEPS = 100_000
_MAX_NESTING = 8
_MAX_CALLS = 16
_MAX_SCRIPTS = 4
"""How deep scripts that source or start others are followed."""
_MAX_CHARACTERS = 4_000_000
"""Most text in composed scripts (``eval``, ``bash -c``) that is read for one file."""

_CONSTANT = {"true": True, ":": True, "false": False}
_TEST_ENDS: Mapping[str, str] = {"[": "]", "[[": "]]", "test": ""}
_PYTHON = re.compile(r"python[0-9.]*$")
_NAME = re.compile(r"[A-Za-z_]\w*\Z")
_SUBSTITUTED = re.compile(
    r"\s*(pwd|dirname|basename|realpath|readlink|echo|printf|seq|expr|cd|cat|which)\b"
)


@dataclass(frozen=True)
class _Context:
    """Where a statement stands."""

    source: Source
    conditional: bool = False
    function: str = ""
    depth: int = 0
    wrappers: tuple[tuple[Word, ...], ...] = ()
    stdin: Optional[Value] = None
    lost: tuple[Word, ...] = ()
    """What the statement loses: words of the state that it stands in, also where a wrapper
    starts its program in another."""


class Interpreter:
    """Collects commands, written files and sourced scripts."""

    def __init__(self, path: str, parse: Parse, library: Optional[Scripts] = None) -> None:
        self.state = State(path)
        self.commands: list[Command] = []
        self.heredocs: list[Heredoc] = []
        self.sourced: list[Word] = []
        self.may_export_more = False
        """Whether a file is sourced that was not read, and may export any variable."""
        self.problems: list[Problem] = []
        self._parse = parse
        self._library = library
        self._scripts = [path]
        self._functions: dict[str, tuple[Function, _Context]] = {}
        self._called: dict[str, int] = {}
        self.aliases: dict[str, Value] = {}
        """Text that a user means by a name; only an interactive shell puts it in."""
        self._calls_by_value = False
        """Whether a command's name is not known: it may be any function's."""
        self._steps = 0
        self._characters = 0
        self._output: Optional[Value] = None

    def run(self, program: Program, source: Source, *, function: str = "") -> None:
        """Walk a whole script."""
        context = _Context(source, function=function)
        self._statement(program.body, context)

    def run_text(self, value: Value, *, function: str = "", conditional: bool = False) -> None:
        """Walk shell text that runs in a shell of its own (a recipe, a ``RUN``)."""
        self._script(value, _Context(Source("", ""), conditional, function))

    def run_words(
        self, fields: Sequence[Field], *, function: str = "", conditional: bool = False
    ) -> None:
        """Note the commands that an argument vector starts; they have no end to write at."""
        if fields:
            last = fields[-1]
            context = _Context(last.source, conditional, function)
            end = last.source.end(last.offset + len(last.text))
            noted = len(self.commands)
            self._command(list(fields), {}, Simple(0), context, end)
            # A further flag would be a further element of the list, not text behind the last.
            self.commands[noted:] = [replace(made, end=None) for made in self.commands[noted:]]

    def assign(self, source: Source, made: Assignment, *, exported: bool = True) -> None:
        """Set a variable as an assignment in ``source`` does."""
        variable = self._assigned(made, _Context(source))
        self.state.set(made.name, replace(variable, exported=exported))

    def expand(self, source: Source, span: Span) -> Value:
        """A word's value, unsplit."""
        return self._expander(_Context(source)).value(span)

    def write(self, target: str, value: Value) -> None:
        """Note a file that the script writes."""
        self._write(target, value)

    def submitted(self, wanted: Mapping[str, str]) -> None:
        """Set the variables that SLURM gives a job that asks for ``wanted``."""
        seed = Source("", self.state.path)
        for name, text in slurm.variables(wanted).items():
            chunk = Chunk(text, seed, 0, None, False)
            self.state.set(name, Variable((chunk,), None, exported=True))
        tasks = slurm.array_tasks(wanted)
        if tasks is not None:
            unknown = Unknown("the index within an array of jobs", tasks)
            chunk = Chunk("$SLURM_ARRAY_TASK_ID", seed, 0, unknown, False)
            self.state.set("SLURM_ARRAY_TASK_ID", Variable((chunk,), None, exported=True))

    def finish(self) -> None:
        """Walk the functions that nothing called: something else may call them."""
        self.state.dead = ""
        noted = len(self.commands)
        for name, (function, context) in list(self._functions.items()):
            if name not in self._called:
                saved = self.state
                self.state = saved.copy()
                self.state.positional = None
                inner = replace(context, conditional=True, function=name)
                self._statement(function.body, inner)
                self.state = saved
        if not self._calls_by_value:
            self.commands[noted:] = [replace(made, uncalled=True) for made in self.commands[noted:]]

    # --- statements -----------------------------------------------------------------

    def _statement(self, statement: Statement, context: _Context) -> None:
        self._steps += 1
        if self.state.dead or self._steps > _MAX_STEPS:
            return
        if isinstance(statement, Simple):
            self._simple(statement, context)
        elif isinstance(statement, Block):
            for item in statement.items:
                self._statement(item, context)
        elif isinstance(statement, AndOr):
            self._and_or(statement, context)
        elif isinstance(statement, Not):
            self._statement(statement.body, context)
        elif isinstance(statement, Pipeline):
            self._pipeline(statement, context)
        elif isinstance(statement, Group):
            self._group(statement, context)
        elif isinstance(statement, If):
            self._if(statement, context)
        elif isinstance(statement, For):
            self._for(statement, context)
        elif isinstance(statement, While):
            self._while(statement, context)
        elif isinstance(statement, Case):
            self._case(statement, context)
        elif isinstance(statement, Function):
            self._functions[statement.name] = (statement, context)
        else:
            self._arithmetic(statement, context)

    def _branch(self, state: State, body: Statement, context: _Context) -> State:
        """Walk ``body`` from a copy of ``state``; the state it leaves."""
        saved, self.state = self.state, state.copy()
        self._statement(body, context)
        made, self.state = self.state, saved
        return made

    def _and_or(self, statement: AndOr, context: _Context) -> None:
        chain: list[tuple[str, Statement]] = []
        left: Statement = statement
        while isinstance(left, AndOr):
            chain.append((left.operator, left.right))
            left = left.left
        self._statement(left, context)
        truth = self._truth(left, context)
        tested = is_test(left, context.source) or truth is not None
        for sign, right in reversed(chain):
            if self.state.dead:
                return
            if sign == "&&" and not tested:
                self._statement(right, context)
                truth = None
                continue
            if truth is not None:
                if truth is (sign == "||"):
                    continue
                if self._surely(right, context):
                    truth = self._truth(right, context)
                    tested = is_test(right, context.source)
                    continue
            truth = None
            after = self._branch(self.state, right, replace(context, conditional=True))
            self.state.merge([self.state.copy(), after])
            tested = tested or sign == "||"

    def _pipeline(self, statement: Pipeline, context: _Context) -> None:
        stdin = context.stdin
        for stage in statement.stages:
            self._output = None
            self._branch(self.state, stage, replace(context, stdin=stdin))
            stdin = self._output

    def _group(self, statement: Group, context: _Context) -> None:
        target = written_to(statement.redirects)
        feed = self._feed(statement.redirects, context)
        inner = context if feed is None else replace(context, stdin=feed)
        if statement.isolated:
            self._branch(self.state, statement.body, inner)
        else:
            self._statement(statement.body, inner)
        if target is not None:
            self._output = None

    def _if(self, statement: If, context: _Context) -> None:
        ends: list[State] = []
        inner = replace(context, conditional=True)
        for condition, body in statement.branches:
            self._statement(condition, inner if ends else context)
            truth = self._truth(condition, context)
            if truth is False:
                self._switched_off(condition, body, inner)
                continue
            if truth and not ends and self._surely(body, context):
                if statement.otherwise is not None:
                    self._switched_off(condition, statement.otherwise, inner)
                return
            ends.append(self._branch(self.state, body, inner))
        if not ends:
            if statement.otherwise is not None:
                self._statement(statement.otherwise, context)
            return
        if statement.otherwise is None:
            ends.append(self.state.copy())
        else:
            ends.append(self._branch(self.state, statement.otherwise, inner))
        self.state.merge(ends)

    def _switched_off(self, condition: Statement, body: Statement, context: _Context) -> None:
        """Emit the commands of a branch that a plain call does not take.

        They are possible where the test asks a variable that the environment may set
        (``X=${X:-false}``); what the branch would assign is not in force.
        """
        while isinstance(condition, Not) or (
            isinstance(condition, Block) and len(condition.items) == 1
        ):
            condition = condition.body if isinstance(condition, Not) else condition.items[0]
        if not isinstance(condition, Simple) or not condition.words:
            return
        text = context.source.text
        test = text_between(condition, context.source)
        names = set(NAMES.findall(test))
        if names & set(OVERRIDABLE.findall(text)) or DEFAULTED.search(test):
            saved = self.state.copy()
            self._statement(body, context)
            self.state.become(saved)

    def _surely(self, body: Statement, context: _Context) -> bool:
        """Walk a branch that is taken; False when it leaves the script.

        A script that gives up (``exit``) has values that are meant to be filled in first.
        """
        noted = (len(self.commands), len(self.heredocs), len(self.sourced))
        saved = self.state.copy()
        self._statement(body, context)
        if self.state.dead not in ("exit", "return"):
            return True
        commands, heredocs, sourced = noted
        del self.commands[commands:], self.heredocs[heredocs:], self.sourced[sourced:]
        self.state.become(saved)
        return False

    def _truth(self, condition: Statement, context: _Context) -> Optional[bool]:
        """Whether a test holds, when all values in it are known."""
        if isinstance(condition, Block) and len(condition.items) == 1:
            condition = condition.items[0]
        if isinstance(condition, Not):
            truth = self._truth(condition.body, context)
            return None if truth is None else not truth
        if isinstance(condition, AndOr):
            left = self._truth(condition.left, context)
            right = self._truth(condition.right, context)
            decides = condition.operator == "||"
            if decides in (left, right):
                return decides
            return None if None in (left, right) else not decides
        if not isinstance(condition, Simple) or not condition.words or condition.redirects:
            return None
        first = condition.words[0]
        word = context.source.text[first.start : first.end]
        if "$" in word and len(condition.words) == 1:  # if $WITH_BITS; then
            value = self._expander(context).value(first)
            word = text_of(value) if is_known(value) else word
        if word in _CONSTANT:
            return _CONSTANT[word]
        if word == "getopts":
            expander = self._expander(context)
            spans = condition.words[1:]
            return self._next_option([text_of(expander.value(span)) for span in spans], context)
        closing = _TEST_ENDS.get(word)
        if closing is None:
            return None
        expander = self._expander(context)
        words = [field for span in condition.words[1:] for field in expander.fields(span)]
        if closing and words and words[-1].text == closing:
            words.pop()
        if not all(is_known(field.value) for field in words):
            return None
        patterns = closing == "]]" and bool(words) and is_pattern(words[-1])
        return tested([field.text for field in words], patterns)

    def _case(self, statement: Case, context: _Context) -> None:
        inner = replace(context, conditional=True)
        chosen = self._chosen(statement, context)
        if chosen is not None and self._surely(chosen, context):
            return
        ends = [self._branch(self.state, body, inner) for body in statement.bodies]
        if not statement.exhaustive or not ends:
            ends.append(self.state.copy())
        self.state.merge(ends)

    def _chosen(self, statement: Case, context: _Context) -> Optional[Statement]:
        """The body of a ``case`` that runs, when that is known."""
        if statement.subject is None:
            return None
        value = self._expander(context).value(statement.subject)
        if not is_known(value):
            return None
        text = text_of(value)
        for patterns, body in zip(statement.patterns, statement.bodies):
            if any(re.search(r"[\\$`\[(]", pattern) for pattern in patterns):
                return None
            if any(fnmatch.fnmatchcase(text, pattern.strip("\"'")) for pattern in patterns):
                return body
        return None

    def _for(self, statement: For, context: _Context) -> None:
        if self._for_arguments(statement, context):
            return
        expander = self._expander(context)
        fields = [field for span in statement.items or () for field in expander.fields(span)]
        if statement.items and not fields and self.state.positional is not None:
            return  # over the arguments of a script that is given none
        location = context.source.location(statement.start)
        before = self.state.copy()
        self._forget_assigned(statement.body)
        if statement.variable:
            self._set_loop_variable(statement, fields, location, context)
        surely = any(is_known(field.value) for field in fields)
        inner = context if surely else replace(context, conditional=True)
        self._statement(statement.body, inner)
        self._leave_loop(before, surely)

    def _for_arguments(self, statement: For, context: _Context) -> bool:
        """Walk ``for x in "$@"`` with each known argument; False when they are not known."""
        state = self.state
        values = state.positional
        spans = statement.items or ()
        texts = [context.source.text[span.start : span.end].strip('"') for span in spans]
        if not statement.variable or (statement.items is not None and texts != ["$@"]):
            return False
        if values is None or state.may_have_more or len(values) > MAX_ARGUMENTS:
            return False
        if not all(is_known(value) for value in values):
            return False
        place = context.source.location(statement.start)
        for value in tuple(values):
            self.state.set(statement.variable, Variable(value, place))
            self._statement(statement.body, context)
            if self.state.dead == "continue":
                self.state.dead = ""
            if self.state.dead:
                self.state.dead = "" if self.state.dead == "break" else self.state.dead
                break
        return True

    def _set_loop_variable(
        self, statement: For, fields: Sequence[Field], location: Location, context: _Context
    ) -> None:
        name = statement.variable
        if len(fields) == 1 and is_known(fields[0].value):
            value = fields[0].value
        else:
            all_known = all(is_known(field.value) for field in fields)
            texts = tuple(dict.fromkeys(field.text for field in fields)) if all_known else ()
            unknown = Unknown(f"${name} is a loop variable", texts)
            value = (Chunk(f"${name}", context.source, statement.start, unknown, False),)
        self.state.set(name, Variable(value, location))

    def _while(self, statement: While, context: _Context) -> None:
        if self._over_arguments(statement, context):
            return
        before = self.state.copy()
        self._forget_assigned(statement)
        self._statement(statement.condition, context)
        surely = endless(statement.condition, context.source)
        inner = context if surely else replace(context, conditional=True)
        self._statement(statement.body, inner)
        self._leave_loop(before, surely)

    def _over_arguments(self, statement: While, context: _Context) -> bool:
        """Walk a loop over known arguments, as often as it runs; False when that is not known."""
        condition = statement.condition
        if isinstance(condition, Block) and len(condition.items) == 1:
            condition = condition.items[0]
        if self.state.positional is None or not isinstance(condition, Simple):
            return False
        if not condition.words:
            return False
        asks = asks_arguments(text_between(condition, context.source))
        if not asks and not (endless(condition, context.source) and _shifts(statement, context)):
            return False
        noted = (len(self.commands), len(self.heredocs), len(self.sourced))
        saved = self.state.copy()
        for _ in range(MAX_ARGUMENTS):
            truth = self._truth(condition, context)
            if truth is None:
                break
            if truth is statement.negated:
                return True
            self._statement(statement.body, context)
            if self.state.dead == "continue":
                self.state.dead = ""
            if self.state.dead:
                self.state.dead = "" if self.state.dead == "break" else self.state.dead
                return True
        commands, heredocs, sourced = noted
        del self.commands[commands:], self.heredocs[heredocs:], self.sourced[sourced:]
        self.state.become(saved)
        return False

    def _next_option(self, words: Sequence[str], context: _Context) -> Optional[bool]:
        """Whether ``getopts LETTERS NAME`` finds an option, which it puts into variables."""
        values = self.state.positional
        if len(words) != 2 or values is None or not all(is_known(value) for value in values):
            return None
        index, offset = self.state.option_index
        texts = [text_of(value) for value in values]
        option = next_option(words[0], texts, index, offset)
        source = context.source
        following = option.index if option is not None else index + (texts[index:][:1] == ["--"])
        number = Chunk(str(following + 1), source, 0, None, False)
        self._set("OPTIND", Variable((number,), source.location(0)))
        if option is None:
            return False
        self.state.option_index = (option.index, option.offset)
        letter = Chunk(option.letter, source, 0, None, False)
        self._set(words[1], Variable((letter,), source.location(0)))
        if option.value is not None:
            at, start = option.value
            value = after(Field(values[at], source, 0), start).value
            self._set("OPTARG", Variable(value, source.location(0)))
        return True

    def _leave_loop(self, before: State, surely: bool) -> None:
        after = self.state.copy()
        if after.dead in ("break", "continue"):
            after.dead = ""
        self.state.merge([after] if surely else [before, after])

    def _forget_assigned(self, body: Statement) -> None:
        """What a loop's body assigns may have changed since the loop began."""
        for statement in walk(body):
            if not isinstance(statement, Simple):
                continue
            for made in statement.assignments + statement.declared:
                before = self.state.variables.get(made.name)
                if before is None or (statement.words and not statement.declared):
                    continue
                self.state.set(made.name, changing(made.name, before))

    def _arithmetic(self, statement: Arithmetic, context: _Context) -> None:
        text = context.source.text[statement.span.start : statement.span.end].strip("() \t\n")
        match = re.match(r"([A-Za-z_]\w*)\s*(\+\+|--|[-+*/%]?=(?!=))\s*(.*)\Z", text, re.DOTALL)
        if match is None:
            return
        name, sign, rest = match.groups()
        expression = f"{name}{sign[0]}1" if sign in ("++", "--") else rest
        if sign not in ("++", "--", "="):
            expression = f"{name}{sign[0]}({rest})"
        result = calculate(expression, self._known_text)
        place = statement.span.start
        unknown = None if result is not None else Unknown("arithmetic on unknown values")
        shown = f"${name}" if result is None else str(result)
        chunk = Chunk(shown, context.source, place, unknown, False)
        self._set(name, Variable((chunk,), context.source.location(place)))

    def _known_text(self, name: str) -> Optional[str]:
        variable = self.state.variables.get(name)
        value = None if variable is None else variable.plain()
        return value if isinstance(value, str) else None

    # --- variables ------------------------------------------------------------------

    def _expander(self, context: _Context) -> Expander:
        return Expander(context.source, self.state, self._substitute)

    def _assigned(self, made: Assignment, context: _Context) -> Variable:
        expander = self._expander(context)
        location = context.source.location(made.start)
        before = self.state.variables.get(made.name)
        exported = before is not None and before.exported
        if made.elements is not None:
            fields = [field for span in made.elements for field in expander.fields(span)]
            elements = tuple(field.value for field in fields)
            if made.append and before is not None:
                earlier = (before.value,) if before.elements is None else before.elements
                elements = (*earlier, *elements)
            return Variable((), location, exported, elements)
        value = expander.value(made.value)
        if made.index:
            return self._element_set(made, value, before, location, context)
        if made.append and before is not None:
            if before.elements is not None:
                first = (*before.elements[0], *value) if before.elements else value
                return Variable((), location, exported, (first, *before.elements[1:]))
            value = (*before.value, *value)
        elif made.append:
            unknown = Unknown(f"${made.name} is not set in the script")
            chunk = Chunk(f"${{{made.name}}}", context.source, made.start, unknown, False)
            value = (chunk, *value)
        return Variable(value, location, exported)

    def _element_set(
        self,
        made: Assignment,
        value: Value,
        before: Optional[Variable],
        location: Location,
        context: _Context,
    ) -> Variable:
        elements = list(before.elements or ()) if before is not None else []
        index = calculate(made.index, self._known_text)
        if index is not None and 0 <= index < len(elements):
            elements[index] = value
        elif index == len(elements):
            elements.append(value)
        else:
            unknown = Unknown(f"elements of ${made.name} are set by index")
            raw = f"${{{made.name}[@]}}"
            elements = [(Chunk(raw, context.source, made.start, unknown, False),)]
        return Variable((), location, before is not None and before.exported, tuple(elements))

    def _set(self, name: str, variable: Variable) -> None:
        self.state.set(name, variable)

    def _forget(self, names: Sequence[str], reason: str, field: Field) -> None:
        for name in names:
            if _NAME.match(name):
                chunk = Chunk(f"${name}", field.source, field.offset, Unknown(reason), False)
                place = field.source.location(field.offset)
                self._set(name, Variable((chunk,), place))

    # --- simple commands ------------------------------------------------------------

    def _simple(self, statement: Simple, context: _Context) -> None:
        self._output = None
        expander = self._expander(context)
        fields = [field for span in statement.words for field in expander.fields(span)]
        if not fields:
            for made in statement.assignments:
                self._set(made.name, self._assigned(made, context))
            return
        prefix = {made.name: self._assigned(made, context) for made in statement.assignments}
        end = context.source.end(statement.words[-1].end)
        if statement.lost:
            lost = (field.word() for span in statement.lost for field in expander.fields(span))
            context = replace(context, lost=tuple(lost))
        self._command(fields, prefix, statement, context, end)

    def _command(
        self,
        fields: list[Field],
        prefix: Mapping[str, Variable],
        statement: Simple,
        context: _Context,
        end: Optional[Location],
    ) -> None:
        fields = with_agreed_program(self._of_alias(fields, context))
        name = fields[0].text
        builtin = _BUILTINS.get(name)
        if builtin is not None:
            builtin(self, fields, statement, context)
            return
        if name in SILENT:
            return
        if name in self._functions and is_known(fields[0].value):
            self._call(name, fields, prefix, context)
            return
        if not is_known(fields[0].value):
            self._calls_by_value = True
        found = unwrap([unwrap_text(field) for field in fields])
        if found is not None:
            self._wrapped(found, fields, prefix, statement, context, end)
            return
        if self._started(fields, prefix, context):
            return
        self._emit(fields, prefix, statement, context, end)
        self._streams(fields, statement, context)

    def _of_alias(self, fields: list[Field], context: _Context) -> list[Field]:
        """The words of a command, those of its alias in place of the first."""
        value = self.aliases.get(fields[0].text)
        if value is None:
            return fields
        source = Composed(value)
        program = self._parse(source.text)
        simple = next((s for s in walk(program.body) if isinstance(s, Simple) and s.words), None)
        if simple is None:
            return fields
        expander = self._expander(replace(context, source=source))
        words = [field for span in simple.words for field in expander.fields(span)]
        return [*words, *fields[1:]] if words else fields

    def _emit(
        self,
        fields: Sequence[Field],
        prefix: Mapping[str, Variable],
        statement: Simple,
        context: _Context,
        end: Optional[Location],
    ) -> None:
        if len(self.commands) >= MAX_COMMANDS:
            return
        environment = self.state.environment()
        if prefix:
            own = {
                name: variable.setting(name, Origin.ENVIRONMENT)
                for name, variable in prefix.items()
            }
            environment = {**environment, **own}
        words = tuple(field.word() for field in fields)
        self.commands.append(
            Command(
                words=words,
                location=_place(fields[0], statement, context),
                environment=environment,
                wrappers=context.wrappers,
                conditional=context.conditional,
                function=context.function,
                directory=self.state.directory,
                end=end,
                lost=context.lost if statement.lost else (),
            )
        )

    def _call(
        self,
        name: str,
        fields: Sequence[Field],
        prefix: Mapping[str, Variable],
        context: _Context,
    ) -> None:
        calls = self._called.get(name, 0)
        self._called[name] = calls + 1
        if calls >= _MAX_CALLS or context.depth >= _MAX_NESTING:
            return
        function, defined = self._functions[name]
        state = self.state
        saved = (state.positional, state.may_have_more, state.locals)
        state.take(fields[1:])
        state.locals = {}
        restored: dict[str, Optional[Variable]] = {key: state.variables.get(key) for key in prefix}
        for key, variable in prefix.items():
            state.set(key, replace(variable, exported=True))
        inner = replace(
            context,
            source=defined.source,
            function=name,
            depth=context.depth + 1,
        )
        self._statement(function.body, inner)
        restored.update(state.locals or {})
        for key, before in restored.items():
            state.set(key, before)
        state.positional, state.may_have_more, state.locals = saved
        if state.dead != "exit":
            state.dead = ""

    # --- other scripts --------------------------------------------------------------

    def _include(self, name: str, context: _Context) -> bool:
        """Walk another script of the project in the present state; whether there is one."""
        if self._library is None or len(self._scripts) > _MAX_SCRIPTS:
            return False
        found = self._library.load(name, self.state.path, self.state.directory)
        if found is None or found[1].path in self._scripts:
            return False
        program, source = found
        self._scripts.append(source.path)
        saved, self.state.path = self.state.path, source.path
        self._statement(program.body, replace(context, source=source, stdin=None))
        self.state.path = saved
        self._scripts.pop()
        return True

    def _started(
        self, fields: Sequence[Field], prefix: Mapping[str, Variable], context: _Context
    ) -> bool:
        """Walk the script that ``bash script.sh …``, ``./script.sh …`` or ``sbatch`` starts."""
        words = [field.text for field in fields]
        name = posixpath.basename(words[0])
        submission = slurm.submission(words) if name == "sbatch" else None
        at = submission.script if submission is not None else 0
        if name in SHELLS:
            at = 1
            while at < len(words) and re.fullmatch(r"[-+][a-z]+", words[at]):
                at += 1
        elif submission is None and not words[0].endswith((".sh", ".bash")):
            return False
        if at >= len(fields) or not is_known(fields[at].value) or context.depth >= _MAX_NESTING:
            return False
        saved, functions = self.state, self._functions
        self.state, self._functions = self._inherited(saved, prefix), {}
        self.state.take(fields[at + 1 :])
        if submission is not None:
            self._submit(words[at], submission)
        wrapper = tuple(field.word() for field in fields)
        inner = replace(
            context,
            function="",
            depth=context.depth + 1,
            wrappers=(*context.wrappers, wrapper),
        )
        done = self._include(words[at], inner)
        self.state, self._functions = saved, functions
        return done

    def _inherited(self, state: State, prefix: Mapping[str, Variable]) -> State:
        """What a process that is started in ``state`` begins with."""
        made = State(state.path)
        made.directory = state.directory
        made.variables = {name: v for name, v in state.variables.items() if v.exported}
        for name, variable in prefix.items():
            made.set(name, replace(variable, exported=True))
        return made

    def _submit(self, name: str, submission: slurm.Submission) -> None:
        """Set what SLURM gives the script ``name``, by its directives and ``sbatch``'s flags."""
        if self._library is None:
            return
        found = self._library.load(name, self.state.path, self.state.directory)
        if found is not None:
            program, source = found
            directives, _ = comments_of(source.text, source, program)
            self.submitted(slurm.asked(directives, submission.flags))

    # --- wrappers -------------------------------------------------------------------

    def _wrapped(
        self,
        found: Unwrapped,
        fields: list[Field],
        prefix: Mapping[str, Variable],
        statement: Simple,
        context: _Context,
        end: Optional[Location],
    ) -> None:
        wrapper = tuple(field.word() for field in fields[: found.count])
        inner = replace(context, wrappers=(*context.wrappers, wrapper), depth=context.depth + 1)
        if context.depth >= _MAX_NESTING:
            self._emit(fields, prefix, statement, context, end)
            return
        caller = self.state
        handed = passed(fields[: found.count])
        before = {name: self.state.variables.get(name) for name in prefix}
        for name, variable in prefix.items():
            self.state.set(name, replace(variable, exported=True))
        for index in found.assignments:
            name, variable = env_assignment(fields[index])
            before.setdefault(name, self.state.variables.get(name))
            self.state.set(name, variable)
        if handed is not None:
            self.state = self._handed(handed)
        exec_ends = fields[0].text == "exec" and found.count < len(fields)
        rest = fields[found.count : found.end]
        if handed is not None and handed.entrypoint is not None and handed.entrypoint.text:
            rest = [handed.entrypoint, *rest]
        elif handed is not None and handed.entrypoint is None:
            rest = [*started_by_image(fields[: found.count], rest), *rest]
        if found.kind == "words" and rest:
            self._command(rest, {}, statement, inner, end)
        elif found.kind == "script":
            script = fields[found.script]
            if script.text.startswith(WRAP):
                script = after(script, len(WRAP))
            arguments = tuple(field.value for field in fields[found.script + 2 :])
            stop = script.offset + len(script.raw) - 1
            value = anchored(script.value, script.source, script.offset, stop)
            self._script(value, inner, arguments)
        elif found.kind == "joined":
            self._script(joined(rest), inner)
        elif found.kind == "stdin":
            feed = self._feed(statement.redirects, context)
            if feed is None:
                self._emit(fields, prefix, statement, context, end)
            else:
                self._script(feed, inner)
        self.state = caller
        for name, earlier in before.items():
            self.state.set(name, earlier)
        if exec_ends:
            self.state.dead = "exit"

    def _handed(self, handed: Passed) -> State:
        """The state within a container, a rank or another machine."""
        made = self.state.copy()
        if handed.fresh:
            made = State(self.state.path)
            made.directory = self.state.directory
            for name in handed.names:
                variable = self.state.variables.get(name)
                if variable is not None and variable.exported:
                    made.set(name, variable)
        for name, variable in (*self._of_files(handed.files), *handed.variables):
            made.set(name, variable)
        return made

    def _of_files(self, names: Sequence[str]) -> Iterator[tuple[str, Variable]]:
        """Variables of the environment files that a container is given."""
        for name in names:
            found = None
            if self._library is not None:
                found = self._library.text(name, self.state.path, self.state.directory)
            for setting in read_environment_file(*found, quotes=False) if found is not None else ():
                place = setting.location or Location(self.state.path)
                seed = Source("", place.path, place.line, place.column)
                chunk = Chunk(str(setting.value), seed, 0, None, False)
                yield setting.name, Variable((chunk,), place, True)

    def _script(
        self,
        value: Value,
        context: _Context,
        arguments: Optional[tuple[Value, ...]] = None,
        *,
        isolated: bool = True,
    ) -> None:
        """Walk shell text that the script holds as a value."""
        text = text_of(value)
        self._characters += len(text)
        if self._characters > _MAX_CHARACTERS or context.depth > _MAX_NESTING:
            return
        source = Composed(value)
        program = self._parse(text)
        for trouble in program.troubles:
            place = source.location(trouble.offset)
            self.problems.append(Problem(ProblemKind.SYNTAX, trouble.message, place))
        inner = replace(context, source=source, stdin=None)
        if not isolated:
            self._statement(program.body, inner)
            return
        saved, self.state = self.state, self.state.copy()
        if arguments is not None:
            self.state.positional = arguments
        self._statement(program.body, inner)
        self.state = saved

    # --- streams --------------------------------------------------------------------

    def _feed(self, redirects: Sequence[Redirect], context: _Context) -> Optional[Value]:
        """What stands on standard input: a here-document, a here-string, or a pipe."""
        for redirect in reversed(redirects):
            if redirect.body is not None:
                return self._document(redirect, context)
            if redirect.operator == "<<<" and redirect.target is not None:
                return self._expander(context).value(redirect.target)
        return context.stdin

    def _document(self, redirect: Redirect, context: _Context) -> Value:
        span = redirect.body or Span(0, 0)
        text = context.source.text[span.start : span.end]
        if redirect.literal:
            value: Value = (context.source.piece(text, span.start),)
        else:
            value = self._expander(context).document(span)
            value = anchored(value, context.source, span.start, span.end)
        return without_tabs(value) if redirect.operator.endswith("<<-") else value

    def _streams(self, fields: Sequence[Field], statement: Simple, context: _Context) -> None:
        """Follow text that a command passes on or writes to a file."""
        name = posixpath.basename(fields[0].text)
        operands = [field for field in fields[1:] if not field.text.startswith("-")]
        target = self._target(statement.redirects, context)
        output: Optional[Value] = None
        if name == "cat" and not operands:
            output = self._feed(statement.redirects, context)
        elif name == "tee":
            output = self._feed(statement.redirects, context)
            for field in operands:
                self._write(field.text, output, is_appending(fields))
        elif name in ("echo", "printf"):
            output = echoed(name, fields)
        elif _PYTHON.match(name) and (len(fields) == 1 or fields[1].text == "-"):
            feed = self._feed(statement.redirects, context)
            self._write("-python", feed)
        if target is not None and output is not None:
            appends = any(redirect.operator == ">>" for redirect in statement.redirects)
            self._write(target, output, appends)
            output = None
        self._output = output

    def _target(self, redirects: Sequence[Redirect], context: _Context) -> Optional[str]:
        span = written_to(redirects)
        if span is None:
            return None
        return text_of(self._expander(context).value(span))

    def _write(self, target: str, value: Optional[Value], appends: bool = False) -> None:
        if value is None or target in ("/dev/null", "/dev/stderr", "/dev/stdout", "/dev/tty"):
            return
        text = text_of(value)
        location = value[0].location if value else Location(self.state.path)
        if appends:
            for i, earlier in enumerate(self.heredocs):
                if earlier.target == target:
                    self.heredocs[i] = replace(earlier, text=earlier.text + text)
                    return
        if len(self.heredocs) < MAX_COMMANDS:
            self.heredocs.append(Heredoc(target, text, location))

    # --- substitutions --------------------------------------------------------------

    def _substitute(self, part: Substitution, source: Source) -> Optional[Value]:
        """The output of ``$(…)`` where it is plain without running anything."""
        if not _SUBSTITUTED.match(part.command) or len(part.command) > 20_000:
            return None
        inner = Composed((source.piece(part.command, part.command_offset),))
        program = self._parse(part.command)
        saved, self.state = self.state, self.state.copy()
        try:
            return self._printed(program.body, _Context(inner))
        finally:
            self.state = saved

    def _printed(self, statement: Statement, context: _Context) -> Optional[Value]:
        if isinstance(statement, Block):
            made: Optional[Value] = None
            for i, item in enumerate(statement.items):
                made = self._printed(item, context)
                if made is None or (made and i + 1 < len(statement.items)):
                    return None
            return made
        if isinstance(statement, AndOr) and statement.operator == "&&":
            left = self._printed(statement.left, context)
            return self._printed(statement.right, context) if left == () else None
        if isinstance(statement, Simple) and statement.words:
            return self._printed_by(statement, context)
        return None

    def _printed_by(self, statement: Simple, context: _Context) -> Optional[Value]:
        expander = self._expander(context)
        fields = [field for span in statement.words for field in expander.fields(span)]
        if not fields:
            return None
        name = fields[0].text
        if name == "cat" and len(fields) == 1:
            feed = self._feed(statement.redirects, context)
            return None if feed is None else stripped(feed)
        if name == "echo":
            return stripped(echoed("echo", fields) or ())
        if not all(is_known(field.value) for field in fields):
            return None
        words = [field.text for field in fields]
        if name == "cd" and len(words) == 2:
            self.state.directory = joined_path(self.state.directory, words[1])
            return ()
        text = computed(words, self.state.directory)
        if text is None:
            return None
        return (Chunk(text, context.source, statement.start, None, False),)


# --- builtins -----------------------------------------------------------------------


def _declare(self: Interpreter, fields: list[Field], statement: Simple, context: _Context) -> None:
    name = fields[0].text
    flags = "".join(f.text[1:] for f in fields[1:] if f.text.startswith("-"))
    exported = name == "export" or (name in ("declare", "typeset") and "x" in flags)
    if name == "export" and "n" in flags:
        return
    pending = [(made.name, self._assigned(made, context)) for made in statement.declared]
    for key, variable in pending:
        if name == "local" or (name == "declare" and self.state.locals is not None):
            _localise(self, key)
        self._set(key, replace(variable, exported=exported or variable.exported))
    for field in fields[1:]:
        key, equals, _ = field.text.partition("=")
        if not key.startswith("-") and not is_known(field.value) and not equals:
            self.state.has_unread = True  # ``export $(cat .env)``
        if not _NAME.match(key):
            continue
        if name == "local":
            _localise(self, key)
        if equals:
            # ``export $NAME=value``: the assignment came out of an expansion.
            self._set(key, replace(env_assignment(field)[1], exported=exported))
            continue
        before = self.state.variables.get(key)
        if before is not None and exported:
            self._set(key, replace(before, exported=True))


def _localise(self: Interpreter, name: str) -> None:
    if self.state.locals is not None:
        self.state.locals.setdefault(name, self.state.variables.get(name))


def _unset(self: Interpreter, fields: list[Field], statement: Simple, context: _Context) -> None:
    for field in fields[1:]:
        self.state.set(field.text, None)


def _change_directory(
    self: Interpreter, fields: list[Field], statement: Simple, context: _Context
) -> None:
    operands = [field for field in fields[1:] if field.text not in ("-P", "-L", "--")]
    if fields[0].text == "popd" or not operands or operands[0].text == "-":
        self.state.directory = "$PWD"
        return
    self.state.directory = joined_path(self.state.directory, operands[0].text)


_OF_ENVIRONMENTS = re.compile(r"(?i)activate|conda|venv|\.cargo|nvm")
"""Files that set up where programs are found, and export nothing else."""
_OF_THE_SHELL = re.compile(r"(?i)bashrc|profile|activate|conda|venv|module|setvars|\.cargo|nvm")
"""Files that set up the shell and its programs, no variables of a run."""


_ENVIRONMENT_FILE = re.compile(r"(?:^|/)\.env(?:\.\w+)*$")
"""What a user may keep beside a script: as variables that one may export before it."""


def _is_asked_for(raw: str, context: _Context) -> bool:
    """Whether a file of one's own variables is sourced only where there is one."""
    name = raw.strip("\"'")
    asked = rf"\[\s+-[efrs]\s+[\"']?{re.escape(name)}[\"']?\s+\]"
    is_own = context.conditional and _ENVIRONMENT_FILE.search(name) is not None
    return is_own and re.search(asked, context.source.text) is not None


def _leave_unread(self: Interpreter, name: str) -> None:
    self.may_export_more = self.may_export_more or not _OF_ENVIRONMENTS.search(name)


def _source_file(
    self: Interpreter, fields: list[Field], statement: Simple, context: _Context
) -> None:
    if len(fields) < 2:
        return
    self.sourced.append(fields[1].word())
    if not is_known(fields[1].value):
        if _is_asked_for(fields[1].word().raw, context):
            return
        _leave_unread(self, fields[1].word().raw)
        self.state.has_unread = self.state.has_unread or not _OF_THE_SHELL.search(
            fields[1].word().raw
        )
        return
    saved = (self.state.positional, self.state.may_have_more)
    if len(fields) > 2:
        self.state.take(fields[2:])
    done = self._include(fields[1].text, context)
    is_missed = not done and not _is_asked_for(fields[1].word().raw, context)
    if is_missed:
        _leave_unread(self, fields[1].text)
    if is_missed and not _OF_THE_SHELL.search(fields[1].text):
        self.state.has_unread = True
    if len(fields) > 2:
        self.state.positional, self.state.may_have_more = saved
    if done and self.state.dead == "return":
        self.state.dead = ""


def _leave(self: Interpreter, fields: list[Field], statement: Simple, context: _Context) -> None:
    self.state.dead = fields[0].text


def _evaluate(self: Interpreter, fields: list[Field], statement: Simple, context: _Context) -> None:
    inner = replace(context, depth=context.depth + 1)
    if len(fields) == 2 and not is_known(fields[1].value) and "$(" in fields[1].word().raw[:3]:
        self.state.has_unread = True  # ``eval "$(python options.py)"``
    self._script(joined(fields[1:]), inner, isolated=False)


def _set_options(
    self: Interpreter, fields: list[Field], statement: Simple, context: _Context
) -> None:
    texts = [field.text for field in fields[1:]]
    if "--" in texts:
        at = texts.index("--")
        self.state.take(fields[at + 2 :])
    if "-a" in texts or "allexport" in texts:
        self.state.exports_all = True
    if "+a" in texts:
        self.state.exports_all = False


def _shift(self: Interpreter, fields: list[Field], statement: Simple, context: _Context) -> None:
    count = 1
    if len(fields) > 1:
        count = int(fields[1].text) if fields[1].text.isdigit() else -1
    if self.state.positional is not None:
        self.state.positional = self.state.positional[count:] if count >= 0 else None


def _read(self: Interpreter, fields: list[Field], statement: Simple, context: _Context) -> None:
    names = [field.text for field in fields[1:]]
    self._forget(names, "read at run time", fields[0])


def _print(self: Interpreter, fields: list[Field], statement: Simple, context: _Context) -> None:
    if len(fields) > 2 and fields[1].text == "-v":
        self._forget([fields[2].text], "printed at run time", fields[0])
        return
    end = context.source.end(statement.words[-1].end) if statement.words else None
    self._emit(fields, {}, statement, context, end)
    self._streams(fields, statement, context)


def _let(self: Interpreter, fields: list[Field], statement: Simple, context: _Context) -> None:
    for field in fields[1:]:
        match = re.match(r"[A-Za-z_]\w*", field.text)
        if match is not None:
            self._forget([match.group()], "arithmetic", field)


def _alias(self: Interpreter, fields: list[Field], statement: Simple, context: _Context) -> None:
    for field in fields[1:]:
        name, equals, _ = field.text.partition("=")
        if equals and name:
            self.aliases[name] = after(field, len(name) + 1).value


_Builtin = Callable[[Interpreter, "list[Field]", Simple, _Context], None]
_BUILTINS: Mapping[str, _Builtin] = {
    "alias": _alias,
    "export": _declare,
    "declare": _declare,
    "typeset": _declare,
    "local": _declare,
    "readonly": _declare,
    "unset": _unset,
    "cd": _change_directory,
    "pushd": _change_directory,
    "popd": _change_directory,
    "source": _source_file,
    ".": _source_file,
    "exit": _leave,
    "return": _leave,
    "break": _leave,
    "continue": _leave,
    "eval": _evaluate,
    "set": _set_options,
    "shift": _shift,
    "read": _read,
    "mapfile": _read,
    "readarray": _read,
    "getopts": _read,
    "printf": _print,
    "let": _let,
}


# --- places ---------------------------------------------------------------------------


def _place(first: Field, statement: Simple, context: _Context) -> Location:
    """Where a command stands, though its first word may be written elsewhere (``$CMD``)."""
    start = statement.words[0].start if statement.words else 0
    if not statement.words or (first.source is context.source and first.offset >= start):
        return first.source.location(first.offset)
    return context.source.location(start)


def _shifts(statement: Statement, context: _Context) -> bool:
    """Whether a loop takes the arguments one by one."""
    text = context.source.text
    return any(
        isinstance(inner, Simple)
        and bool(inner.words)
        and text[inner.words[0].start : inner.words[0].end] == "shift"
        for inner in walk(statement)
    )
