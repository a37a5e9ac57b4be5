"""Thins a Python source with the cheap ``ast`` so that LibCST parses only what matters.

Whole lines are kept or dropped, and a map leads back to the original line numbers; columns
stay as they are.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from flake8_gpu_training.sources._python_interest import (
    CALLED_LIBRARIES,
    COMMON_LIBRARIES,
    FIELD_LIBRARIES,
    HOT_METHODS,
    LOADER_TRACE,
)
from flake8_gpu_training.sources._python_statements import (
    Binders,
    FunctionNode,
    blocks,
    column_of,
    expression_depth,
    first_line,
    groups_of_lines,
    indent_of,
    is_dull,
    is_opaque,
    is_simple,
    leaves_block,
    leaves_early,
    lines_of,
    own_statements,
    root_name,
    sets_attribute,
    skips_steps,
)
from flake8_gpu_training.sources._python_traces import (
    called_words,
    hot_offsets,
    interest_offsets,
    stall_offsets,
    step_offsets,
)

if TYPE_CHECKING:
    pass

MAX_EXPRESSION_DEPTH = 90
MAX_STATEMENT_DEPTH = 60
ELIF_DEPTH = 0.4
"""A further branch takes less of the stack than a block in a block."""
MAX_DATA_LINES = 30
MAX_DATA_SIZE = 4_000
"""A literal longer than this that names nothing of interest is data, not configuration."""

_WORD = re.compile(r"(?<![\w.])(?:self\.)?[A-Za-z_]\w*\b(?!\s*=[^=])")
"""A name that is read: no attribute, no keyword of a call."""
_ENTRY_SUFFIXES = ("_main", "run_exp")
_LARGE_STATEMENT = 400
_HELP = frozenset({"help", "metadata"})
_NAME_ROUNDS = 3
_SURVEY_DEPTH = int(MAX_STATEMENT_DEPTH / ELIF_DEPTH)

_Function = (ast.FunctionDef, ast.AsyncFunctionDef)
_Loop = (ast.For, ast.AsyncFor, ast.While)
_ALWAYS_KEPT = (ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal)


@dataclass(frozen=True)
class Thinned:
    """The lines kept, the original number of each, and lines dropped for being too deep."""

    text: str
    line_numbers: tuple[int, ...]
    too_deep: tuple[int, ...] = ()
    methods: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Names of the methods of each class, by its line; dropped methods included."""


def whole(text: str) -> Thinned:
    """The text unthinned."""
    text = text if text.endswith("\n") else text + "\n"
    return Thinned(text, tuple(range(1, text.count("\n") + 1)))


def thin(text: str, tree: ast.Module) -> Thinned:
    """Keep of ``text`` (newlines are ``\\n``) what can hold facts; ``tree`` is its syntax tree."""
    return _Thinner(text, tree).run()


class _Thinner:
    def __init__(self, text: str, tree: ast.Module) -> None:
        self.text = text
        self.tree = tree
        self.lines = text.split("\n")
        self.parents: dict[ast.stmt, ast.stmt] = {}
        self.kept: set[ast.stmt] = set()
        self.too_deep: list[int] = []
        self.functions: dict[str, list[FunctionNode]] = {}
        self.all_functions: list[FunctionNode] = []
        self.hot_names: set[str] = set()
        self.starts = [0, *accumulate(len(line) + 1 for line in self.lines)]
        self.imports: list[ast.Import | ast.ImportFrom] = []
        self._survey(tree.body, None, 0)
        names, modules = _imported(self.imports)
        self.hits = self._hits(interest_offsets(text, names, modules))
        self.own_names = _own_modules(self.imports)
        self.hot_hits = self._hits(hot_offsets(text))
        self.stalls = self._hits(stall_offsets(text))
        self.steps = self._hits(step_offsets(text))

    def run(self) -> Thinned:
        for statement in self.tree.body:
            self._mark_top(statement)
        for name in self.hot_names:
            for function in self.functions.get(name, ()):
                self._mark_each_step(function)
        self._mark_bindings()
        for function in self.all_functions:
            self._mark_exits(function)
        return self._emit()

    def _hits(self, offsets: Iterator[int]) -> list[int]:
        """Prefix sums: number of hits before each line (1-based)."""
        counts = [0] * (len(self.lines) + 2)
        for offset in offsets:
            counts[bisect_right(self.starts, offset) + 1] += 1
        return list(accumulate(counts))

    def _any(self, sums: list[int], first: int, last: int) -> bool:
        return sums[last + 1] > sums[first]

    # -- survey: parents and functions by name

    def _survey(self, block: Sequence[ast.stmt], parent: ast.stmt | None, depth: int) -> None:
        for statement in block:
            if parent is not None:
                self.parents[statement] = parent
            if isinstance(statement, (ast.Import, ast.ImportFrom)):
                self.imports.append(statement)
            elif isinstance(statement, _Function):
                self.functions.setdefault(statement.name, []).append(statement)
                self.all_functions.append(statement)
            if depth >= _SURVEY_DEPTH:
                continue
            for child in blocks(statement):
                self._survey(child, statement, depth + 1)

    # -- marking

    def _mark(self, statement: ast.stmt) -> None:
        node: ast.stmt | None = statement
        while node is not None and node not in self.kept:
            self.kept.add(node)
            node = self.parents.get(node)

    def _mark_each_step(self, statement: ast.stmt) -> None:
        """Keep what can cost time at every step in a loop, or in a function that it calls."""
        leaves = leaves_block if isinstance(statement, _Function) else skips_steps
        for block in blocks(statement):
            for child in block:
                if not is_dull(child) and self._is_hot(child):
                    self._mark(child)
                if leaves(child):
                    self._mark(child.body[-1])
                self._mark_each_step(child)

    def _is_hot(self, statement: ast.stmt) -> bool:
        first, last = self._own_lines(statement)
        return (
            self._any(self.hot_hits, first, last)
            or self._is_interesting(statement)
            or self._calls_own(statement)
        )

    def _calls_own(self, statement: ast.stmt) -> bool:
        """Whether a simple statement calls a function of this file or of the project's own."""
        if not is_simple(statement):
            return False
        for node in ast.walk(statement):
            if isinstance(node, ast.Call):
                root = root_name(node.func)
                name = node.func.attr if isinstance(node.func, ast.Attribute) else root
                if root in self.own_names or self._is_costly(name):
                    return True
        return False

    def _is_costly(self, name: str) -> bool:
        """Whether a function of this file makes calls that cost time at every step."""
        return any(
            self._any(self.hot_hits, *lines_of(function))
            or self._any(self.steps, *lines_of(function))
            for function in self.functions.get(name, ())
        )

    def _mark_stalls(self, function: FunctionNode) -> None:
        """Keep what waits for the GPU in a function that a loop in another file may call."""
        for statement in own_statements(function):
            if self._any(self.stalls, *self._own_lines(statement)) and not is_dull(statement):
                self._mark(statement)
        for statement in function.body:
            if leaves_block(statement):
                self._mark(statement.body[-1])

    def _mark_top(self, statement: ast.stmt) -> None:
        """At module and class level everything but docstrings and dull functions is kept."""
        if is_dull(statement):
            return
        if isinstance(statement, _Function):
            self._mark_function(statement)
            return
        if self._is_data(statement):
            return
        self._mark(statement)
        if self._is_hot_loop(statement):
            self._mark_hot(statement)
        for block in blocks(statement):
            for child in block:
                self._mark_top(child)

    def _mark_function(self, function: FunctionNode) -> None:
        if function.name in HOT_METHODS and isinstance(self.parents.get(function), ast.ClassDef):
            self._mark_hot(function)
            return
        if self._is_decorated(function):
            self._mark(function)
        self._mark_block(function.body)
        if self._any(self.stalls, *lines_of(function)):
            self._mark_stalls(function)

    def _mark_block(self, block: Sequence[ast.stmt]) -> None:
        for statement in block:
            if isinstance(statement, _Function):
                self._mark_function(statement)
            elif self._is_hot_loop(statement):
                self._mark_hot(statement)
            else:
                if self._is_interesting(statement):
                    self._mark(statement)
                for child in blocks(statement):
                    self._mark_block(child)

    def _is_data(self, statement: ast.stmt) -> bool:
        first, last = lines_of(statement)
        large = last - first > MAX_DATA_LINES or self._size(statement) > MAX_DATA_SIZE
        return large and is_simple(statement) and not self._any(self.hits, first, last)

    def _is_interesting(self, statement: ast.stmt) -> bool:
        if isinstance(statement, _ALWAYS_KEPT):
            return True
        if is_dull(statement):
            return False
        first, last = self._own_lines(statement)
        return self._any(self.hits, first, last) or sets_attribute(statement)

    def _own_lines(self, statement: ast.stmt) -> tuple[int, int]:
        """Lines of a simple statement, or of a compound statement's header."""
        first, last = lines_of(statement)
        for block in blocks(statement):
            return first, max(first, first_line(block[0]) - 1)
        return first, last

    def _is_hot_loop(self, statement: ast.stmt) -> bool:
        if not isinstance(statement, _Loop):
            return False
        first, last = lines_of(statement)
        if self._any(self.steps, first, last):
            return True
        header = self.lines[first - 1 : max(first, first_line(statement.body[0]) - 1)]
        return any(LOADER_TRACE.search(line) for line in header)

    def _mark_hot(self, statement: ast.stmt) -> None:
        self._mark(statement)
        self._mark_each_step(statement)
        first, last = lines_of(statement)
        text = "\n".join(self.lines[first - 1 : last])
        self.hot_names.update(word for word, _ in called_words(text))

    def _mark_bindings(self) -> None:
        """Keep what gives a value to the names that the kept statements mention."""
        table = Binders(self.tree)
        words: set[tuple[ast.AST, str]] = set()
        pending: list[tuple[ast.AST, ast.stmt]] = []
        for owner in self.all_functions:
            if owner in self.kept:
                pending.extend((owner, statement) for statement in self._kept_in(owner))
        for _ in range(_NAME_ROUNDS):
            found: list[tuple[ast.AST, ast.stmt]] = []
            for function, statement in pending:
                for word in _WORD.findall(self._own_text(statement)):
                    binder = self._owner(function) if word.startswith("self.") else function
                    if (binder, word) not in words:
                        words.add((binder, word))
                        found.extend(self._binders(table, binder, word))
            if not found:
                break
            for _function, statement in found:
                self._mark(statement)
            pending = found

    def _mark_exits(self, function: FunctionNode) -> None:
        """Keep ``if args.off: return`` before what is kept of a function."""
        following = False
        for statement in reversed(function.body):
            if following and leaves_early(statement):
                self._mark(statement.body[-1])
            following = following or statement in self.kept

    def _binders(self, table: Binders, owner: ast.AST, word: str) -> list[tuple[ast.AST, ast.stmt]]:
        """Statements that bind a name, unless none of them can be evaluated.

        Of those that cannot, one is enough to show that the value is not known.
        """
        binders = table.of(owner).get(word, ())
        opaque = [item for item in binders if is_opaque(item[1])]
        if word not in table.top and len(opaque) == len(binders):
            return []
        if any(statement in self.kept for _, statement in opaque):
            opaque = []
        found = [*opaque[:1], *(item for item in binders if not is_opaque(item[1]))]
        return [item for item in found if item[1] not in self.kept and not self._is_data(item[1])]

    def _owner(self, function: ast.AST) -> ast.AST:
        node: Any = function
        while node is not None and not isinstance(node, ast.ClassDef):
            node = self.parents.get(node)
        return node if node is not None else function

    def _kept_in(self, function: FunctionNode) -> Iterator[ast.stmt]:
        """Kept statements of a function, nested functions and classes aside."""
        return (s for s in own_statements(function) if s in self.kept)

    def _own_text(self, statement: ast.stmt) -> str:
        """Text of a simple statement, or of a compound statement's header."""
        first, last = self._own_lines(statement)
        return "\n".join(self.lines[first - 1 : last])

    # -- emission

    def _emit(self) -> Thinned:
        self.keep = bytearray(len(self.lines) + 2)
        self.stubs: dict[int, str] = {}
        self.methods: dict[int, tuple[str, ...]] = {}
        self._emit_block(self.tree.body, 0)
        numbers: list[int] = []
        out: list[str] = []
        for number, line in enumerate(self.lines, 1):
            if self.keep[number]:
                out.append(line)
                numbers.append(number)
            elif number in self.stubs:
                out.append(self.stubs[number])
                numbers.append(number)
        text = "".join(line + "\n" for line in out)
        return Thinned(text, tuple(numbers), tuple(self.too_deep), self.methods)

    def _emit_block(self, block: Sequence[ast.stmt], depth: float) -> bool:
        """Keep the lines of a block's marked statements; tell whether there are any."""
        emitted = False
        for group in groups_of_lines(block):
            if len(group) > 1:
                if any(statement in self.kept for statement in group):
                    self._keep_lines(first_line(group[0]), lines_of(group[-1])[1])
                    emitted = True
                continue
            statement = group[0]
            if statement in self.kept and self._emit_statement(statement, depth):
                emitted = True
        return emitted

    def _emit_statement(self, statement: ast.stmt, depth: float) -> bool:
        first, last = first_line(statement), lines_of(statement)[1]
        inner = list(blocks(statement))
        if depth >= MAX_STATEMENT_DEPTH or self._is_too_deep(statement, inner):
            self.too_deep.append(statement.lineno)
            return False
        if not inner:
            self._keep_lines(first, last)
            self._drop_help(statement)
            return True
        if isinstance(statement, ast.ClassDef):
            functions = [node for node in statement.body if isinstance(node, _Function)]
            self.methods[statement.lineno] = tuple(function.name for function in functions)
        cursor = first
        if isinstance(statement, _Function) and not self._is_decorated(statement):
            cursor = statement.lineno
        for block in inner:
            start = first_line(block[0])
            if (start <= cursor and start <= statement.lineno) or self._shares_line(block[0]):
                # The block stands on its header's line: the lot is kept.
                self._keep_lines(first, last)
                return True
            self._keep_header(cursor, start - 1)
            line = self.lines[start - 1]
            is_elif = line.lstrip().startswith("elif")
            emitted = self._emit_block(block, depth + (ELIF_DEPTH if is_elif else 1))
            if not emitted and not is_elif:
                self.stubs[start] = f"{indent_of(line)}pass"
            cursor = lines_of(block[-1])[1] + 1
        return True

    def _drop_help(self, statement: ast.stmt) -> None:
        """Drop the lines of ``help=`` and ``metadata=``, which make most of a configuration."""
        call = getattr(statement, "value", None)
        if not isinstance(statement, (ast.AnnAssign, ast.Expr)) or not isinstance(call, ast.Call):
            return
        for keyword in call.keywords:
            first, last = keyword.lineno, keyword.end_lineno or keyword.lineno
            end = keyword.end_col_offset or 0
            after = self.lines[last - 1].encode("utf-8", "surrogatepass")[end:].strip()
            if (
                keyword.arg in _HELP
                and self.lines[first - 1].lstrip().startswith(keyword.arg)
                and (after in (b"", b",") or after.startswith((b"#", b", #", b",  #")))
            ):
                self.keep[first : last + 1] = bytes(last + 1 - first)

    def _shares_line(self, statement: ast.stmt) -> bool:
        """Whether something other than indentation stands before a statement on its line."""
        line = self.lines[first_line(statement) - 1]
        before = line.encode("utf-8", "surrogatepass")[: column_of(statement)]
        return bool(before.strip(b" \t\f@"))

    def _is_decorated(self, function: FunctionNode) -> bool:
        """Whether a decorator of a function is of interest."""
        return any(
            self._any(self.hits, decorator.lineno, decorator.end_lineno or decorator.lineno)
            for decorator in function.decorator_list
        )

    def _keep_header(self, first: int, last: int) -> None:
        """Keep the lines of a header, the comments before its block aside."""
        while last > first and self.lines[last - 1].lstrip()[:1] in ("", "#"):
            last -= 1
        self._keep_lines(first, last)

    def _keep_lines(self, first: int, last: int) -> None:
        for number in range(first, last + 1):
            self.keep[number] = 1

    def _size(self, statement: ast.stmt) -> int:
        """Characters of the lines of a statement."""
        first, last = lines_of(statement)
        return self.starts[last] - self.starts[first - 1]

    def _is_too_deep(self, statement: ast.stmt, blocks: list[list[ast.stmt]]) -> bool:
        if self._size(statement) < _LARGE_STATEMENT:
            return False
        inner = {id(child) for block in blocks for child in block}
        return expression_depth(statement, inner, self.lines) > MAX_EXPRESSION_DEPTH


def _imported(imports: Sequence[ast.Import | ast.ImportFrom]) -> tuple[set[str], set[str]]:
    """Names whose calls are of interest: taken from, or modules of, the field's libraries.

    torch itself is left out: nearly every line of a model calls it, and what matters of it
    is in the table of calls. Of most libraries only classes count; of those in
    CALLED_LIBRARIES, and of torchvision's models, every function does.
    """
    names: set[str] = set()
    modules: set[str] = set()
    for node in imports:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if _of_interest(alias.name):
                    modules.add(alias.asname or alias.name.partition(".")[0])
        elif not node.level and node.module and _of_interest(node.module):
            for alias in node.names:
                name = alias.asname or alias.name
                if (node.module, alias.name) == ("torchvision", "models"):
                    modules.add(name)  # functions that make a model
                wanted = name[:1].isupper() or name.endswith(_ENTRY_SUFFIXES)
                if (
                    wanted
                    or node.module.partition(".")[0] in CALLED_LIBRARIES
                    or node.module == "torchvision.models"
                ):
                    names.add(name)
    return names, modules


def _own_modules(imports: Sequence[ast.Import | ast.ImportFrom]) -> set[str]:
    """Names imported from modules that may be the project's own."""
    names: set[str] = set()
    for node in imports:
        for alias in node.names:
            is_relative = isinstance(node, ast.ImportFrom) and node.level > 0
            module = (node.module or "") if isinstance(node, ast.ImportFrom) else alias.name
            root = module.partition(".")[0]
            if is_relative or not (root in FIELD_LIBRARIES or root in COMMON_LIBRARIES):
                names.add(alias.asname or alias.name.partition(".")[0])
    return names


def _of_interest(module: str) -> bool:
    root, _, rest = module.partition(".")
    if root == "torch":
        return rest.startswith(("utils.data", "utils.checkpoint", "distributed", "optim", "cuda"))
    return root in FIELD_LIBRARIES
