"""Reads Jupyter notebooks: code cells as one Python file, ``!`` and ``%%bash`` as shell."""

from __future__ import annotations

import ast
import json
import posixpath
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Optional, Union

from flake8_gpu_training.facts import (
    Command,
    Heredoc,
    Location,
    Origin,
    Problem,
    ProblemKind,
    PythonFile,
    Setting,
)
from flake8_gpu_training.sources._notebook_values import values_before
from flake8_gpu_training.sources.relocate import relocate
from flake8_gpu_training.sources.text import decode

MAX_BYTES = 50_000_000

_BLANK = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder(strict=False)
_SHELL_CELL = re.compile(r"%%(?:bash|sh|shell|script\s+(?:\S*/)?(?:ba|z|da)?sh)\b")
_FILE_CELL = re.compile(r"%%(?:writefile|file)\s+((?:-a|--append)\s+)?(\S.*?)\s*$")
_PYTHON_CELL = re.compile(r"%%(?:time|timeit|capture|prun|memit|snakeviz|wandb)\b")
_SHELL_LINE = re.compile(r"(\s*)((?:[\w., ]+=\s*)?)(!!?)(?![=\s]*$)(.*)")
_MAGIC_LINE = re.compile(r"(\s*)((?:[\w., ]+=\s*)?)%(?=[A-Za-z])(\w+)\s*(.*)")
_TIMED = frozenset({"time", "timeit", "prun", "memit"})
_INSTALLERS = frozenset({"pip", "conda", "mamba", "uv"})
_HELP = re.compile(r"\s*\?{1,2}[\w.]+\s*|\s*[\w.]+\?{1,2}\s*")
_PYTHON_NAME = re.compile(r"(?<!\$)\{([A-Za-z_]\w*)\}")


def read_notebook(text: Union[str, bytes], path: str) -> PythonFile:
    """Facts of a notebook's code cells, in their order; never raises.

    Places are those of the ``.ipynb`` file, where an editor jumps to. A cell that is not
    Python 3 is left out, with a problem; the other cells are read.
    """
    if len(text) > MAX_BYTES:
        problem = Problem(ProblemKind.TOO_LARGE, f"larger than {MAX_BYTES:,} bytes", Location(path))
        return PythonFile(path, problems=(problem,))
    content, problems = decode(text, path)
    if any(problem.kind is ProblemKind.UNREADABLE for problem in problems):
        return PythonFile(path, problems=problems)
    scan = _Cells(content, path)
    try:
        cells = scan.read()
    except _BrokenError as broken:
        return PythonFile(path, problems=(*problems, broken.problem))
    code = _Code(path)
    for cell in cells:
        code.add(cell)
    facts = code.read()
    return replace(facts, gpu=scan.gpu, problems=(*problems, *facts.problems))


class _BrokenError(Exception):
    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


@dataclass(frozen=True)
class _Line:
    """A line of a cell, and where its JSON string begins with what stands before it there."""

    text: str
    start: Location
    before: str = ""

    def place(self, column: int) -> Location:
        """Place in the file of ``column`` (from 1) of this line."""
        prefix = self.before + self.text[: column - 1]
        written = len(json.dumps(prefix, ensure_ascii=False)) - 2
        return replace(self.start, column=self.start.column + written)


@dataclass(frozen=True)
class _Cell:
    """A code cell. ``language`` is what its editor was told, when that is not the kernel's."""

    lines: list[_Line]
    language: str = ""


class _Cells:
    """Scans a notebook for the sources of its code cells.

    The C decoder skips everything else (outputs have megabytes), so only the few keys on
    the way to the sources are read here.
    """

    def __init__(self, text: str, path: str) -> None:
        self.text = text
        self.path = path
        self.starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self.position = 0
        self.language = "python"
        self.cells: list[_Cell] = []
        self.gpu: Optional[Setting] = None

    def read(self) -> list[_Cell]:
        """Every code cell; none when the kernel's language is not Python."""
        try:
            for key in self._object():
                self._top(key)
        except (ValueError, IndexError, RecursionError) as error:
            kind = ProblemKind.SYNTAX
            if isinstance(error, RecursionError):
                kind = ProblemKind.TOO_DEEP
            message = "not a notebook: broken JSON"
            raise _BrokenError(Problem(kind, message, self._place(self.position))) from None
        return self.cells if self.language in ("python", "python2", "python3", "ipython") else []

    def _place(self, position: int) -> Location:
        position = min(position, len(self.text))
        line = bisect_right(self.starts, position)
        return Location(self.path, line, position - self.starts[line - 1] + 1)

    def _top(self, key: str) -> None:
        if key == "cells":
            for _ in self._array():
                self._cell()
        elif key == "worksheets":  # nbformat 3
            for _ in self._array():
                for inner in self._object():
                    self._top(inner)
        elif key == "metadata":
            start = self.position
            metadata = self._skip_value()
            self._metadata(metadata)
            self.gpu = self._gpu(metadata, start)
        else:
            self._skip_value()

    def _metadata(self, metadata: Any) -> None:
        for section, key in (("language_info", "name"), ("kernelspec", "language")):
            inner = metadata.get(section) if isinstance(metadata, dict) else None
            language = inner.get(key) if isinstance(inner, dict) else None
            if isinstance(language, str):
                self.language = language.lower()
                return

    def _gpu(self, metadata: Any, start: int) -> Optional[Setting]:
        """The session's GPU; None where Colab's and Kaggle's metadata differ in it."""
        found = list(_session_gpus(metadata))
        if len({text.lower().removeprefix("nvidiatesla") for _, text in found}) != 1:
            return None
        key, text = found[0]
        written = re.compile(rf'"{key}"\s*:\s*"{re.escape(text)}"')
        match = written.search(self.text, start, self.position)
        place = self._place(match.start() if match is not None else start)
        return Setting("gpu", text, place, note=f'metadata: "{key}": "{text}"')

    def _cell(self) -> None:
        if self._peek() != "{":
            self._skip_value()
            return
        is_code = False
        language = ""
        lines: list[_Line] = []
        for key in self._object():
            if key in ("source", "input"):
                lines = self._source()
            else:
                value = self._skip_value()
                is_code = is_code or (key == "cell_type" and value == "code")
                language = _editor_language(value) if key == "metadata" else language
        if is_code and lines:
            self.cells.append(_Cell(lines, language))

    def _source(self) -> list[_Line]:
        strings: list[tuple[str, Location]] = []
        if self._peek() == "[":
            for _ in self._array():
                strings += self._string_value()
        else:
            strings += self._string_value()
        lines: list[_Line] = []
        for value, start in strings:
            lines += _lines(value, start)
        return _joined(lines)

    def _string_value(self) -> list[tuple[str, Location]]:
        if self._peek() != '"':
            self._skip_value()
            return []
        start = self._place(self.position + 1)
        return [(self._string(), start)]

    # --- JSON ---

    def _peek(self) -> str:
        match = _BLANK.match(self.text, self.position)
        if match:
            self.position = match.end()
        return self.text[self.position]

    def _string(self) -> str:
        # The decoder's own C scanner, which its stub does not know.
        parse = _DECODER.parse_string  # type: ignore[attr-defined]
        value, self.position = parse(self.text, self.position + 1, False)
        return str(value)

    def _skip_value(self) -> Any:
        self._peek()
        try:
            value, self.position = _DECODER.raw_decode(self.text, self.position)
        except json.JSONDecodeError as error:
            self.position = error.pos
            raise
        return value

    def _object(self) -> Iterator[str]:
        """Names of an object's members; the caller reads each value."""
        self._take("{")
        if self._peek() == "}":
            self.position += 1
            return
        while True:
            if self._peek() != '"':
                raise ValueError
            key = self._string()
            self._take(":")
            self._peek()
            yield key
            if self._ends("}"):
                return

    def _array(self) -> Iterator[None]:
        """Steps through an array; the caller reads each value."""
        if self._peek() != "[":
            self._skip_value()
            return
        self.position += 1
        if self._peek() == "]":
            self.position += 1
            return
        while True:
            self._peek()
            yield None
            if self._ends("]"):
                return

    def _take(self, mark: str) -> None:
        if self._peek() != mark:
            raise ValueError
        self.position += 1

    def _ends(self, closing: str) -> bool:
        mark = self._peek()
        if mark not in (",", closing):
            raise ValueError
        self.position += 1
        return mark == closing


def _session_gpus(metadata: Any) -> Iterator[tuple[str, str]]:
    """Keys and kinds of the GPU that Colab (``gpuType``) and Kaggle (``accelerator``) note."""
    if not isinstance(metadata, dict):
        return
    colab, kaggle = metadata.get("colab"), metadata.get("kaggle")
    kind = colab.get("gpuType") if isinstance(colab, dict) else None
    if metadata.get("accelerator") == "GPU" and isinstance(kind, str):
        yield "gpuType", kind
    kind = kaggle.get("accelerator") if isinstance(kaggle, dict) else None
    if isinstance(kind, str) and kind.startswith("nvidia"):
        yield "accelerator", kind


def _editor_language(metadata: Any) -> str:
    """VS Code's note that a cell is, for instance, a shell script."""
    editor = metadata.get("vscode") if isinstance(metadata, dict) else None
    language = editor.get("languageId") if isinstance(editor, dict) else None
    return language.lower() if isinstance(language, str) else ""


def _lines(value: str, start: Location) -> list[_Line]:
    lines: list[_Line] = []
    before = ""
    for text in value.split("\n"):
        lines.append(_Line(text, start, before))
        before += text + "\n"
    return lines


def _joined(lines: list[_Line]) -> list[_Line]:
    """Lines of a source list, where every string but the last ends with a newline.

    Splitting those leaves an empty piece, which the next string continues.
    """
    joined: list[_Line] = []
    continues = False
    for line in lines:
        fresh = not line.before
        if continues and fresh and joined and not joined[-1].text:
            joined.pop()
        elif continues and fresh and joined:
            # A string without newline: the next one goes on in the same line.
            last = joined.pop()
            line = replace(last, text=last.text + line.text)
        joined.append(line)
        continues = True
    return joined


@dataclass
class _Code:
    """The Python and the shell of all cells; ``lines`` are the Python's, one for one."""

    path: str
    lines: list[_Line] = field(default_factory=list)
    shell: list[Command] = field(default_factory=list)
    heredocs: list[Heredoc] = field(default_factory=list)
    environment: list[Setting] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    directory: str = ""

    def add(self, cell: _Cell) -> None:
        """Sort a cell's lines into Python and shell."""
        if cell.language in ("shellscript", "bash"):
            self._shell(cell.lines, interpolate=False)
        elif cell.language in ("", "python"):
            self._add(cell.lines)

    def _add(self, cell: list[_Line]) -> None:
        first = next((index for index, line in enumerate(cell) if line.text.strip()), None)
        if first is None:
            return
        # Colab reads the comments of its forms before the magic of a cell.
        code = next((i for i, line in enumerate(cell) if line.text.strip()[:1] not in ("", "#")), 0)
        first = code if cell[code].text.startswith("%%") else first
        head = cell[first].text
        if head.startswith("%%"):
            self._magic_cell(head, cell[first + 1 :])
        elif _is_python(cell):
            self.lines += cell
        else:
            self._mixed(cell)

    def _magic_cell(self, head: str, body: list[_Line]) -> None:
        written = _FILE_CELL.match(head)
        if _SHELL_CELL.match(head):
            self._shell(body, interpolate=False)
        elif written and body:
            text = "\n".join(line.text for line in body)
            self.heredocs.append(Heredoc(written.group(2).strip("\"'"), text, body[0].place(1)))
        elif _PYTHON_CELL.match(head) and body:
            self._add(body)

    def _mixed(self, cell: list[_Line]) -> None:
        """A cell with magics or shell lines: Python once those are taken out."""
        python: list[_Line] = []
        index = 0
        while index < len(cell):
            line = cell[index]
            end = index + 1
            shell = _SHELL_LINE.fullmatch(line.text)
            magic = _MAGIC_LINE.fullmatch(line.text)
            if shell:
                while cell[end - 1].text.endswith("\\") and end < len(cell):
                    end += 1
                prefix = len(line.text) - len(shell.group(4))
                lines = [_after(line, prefix), *cell[index + 1 : end]]
                self._shell(lines, interpolate=True, before=python)
                python.append(_instead(line, shell.group(1), shell.group(2)))
            elif magic:
                python.append(self._magic(line, magic))
            elif _HELP.fullmatch(line.text):
                python.append(replace(line, text=""))
            else:
                python.append(line)
            index = end
        if _is_python(python):
            self.lines += python
        else:
            place = next((line for line in python if line.text.strip()), python[0]).place(1)
            self.problems.append(Problem(ProblemKind.SYNTAX, "a cell that is not Python 3", place))

    def _magic(self, line: _Line, match: re.Match[str]) -> _Line:
        """Act on a ``%magic``; the line that stands for it in the Python."""
        indent, target, name, rest = match.groups()
        offset = len(line.text) - len(rest)
        if name in _TIMED and rest and not rest.startswith("-"):
            return _after(line, offset)
        if name in _INSTALLERS:
            self._shell([_after(line, match.start(3))], interpolate=True)
        elif name == "run" and rest.partition(" ")[0].endswith(".py"):
            self._shell([_after(line, offset)], interpolate=True, prefix="python ")
        elif name in ("env", "set_env"):
            self._set(rest, line, offset)
        elif name == "cd":
            self.directory = posixpath.join(self.directory, rest.strip().strip("\"'"))
        return _instead(line, indent, target)

    def _set(self, rest: str, line: _Line, offset: int) -> None:
        pair = re.match(r"([A-Za-z_]\w*)(?:\s*=\s*|\s+)(.+)", rest)
        if pair and not re.search(r"[{$]", pair.group(2)):
            place = line.place(offset + 1)
            value = pair.group(2).strip()
            self.environment.append(Setting(pair.group(1), value, place, Origin.ENVIRONMENT))

    def _shell(
        self,
        lines: list[_Line],
        interpolate: bool,
        prefix: str = "",
        before: Sequence[_Line] = (),
    ) -> None:
        """Add shell lines; ``before`` is the Python of the same cell that ran already."""
        from flake8_gpu_training.sources.shell import read_shell

        text = "\n".join(line.text for line in lines)
        if interpolate:
            # IPython puts in the Python variable, where there is one of that name.
            text = _PYTHON_NAME.sub(r"${\1}", text)
        if not text.strip():
            return
        python = "\n".join(line.text for line in (*self.lines, *before))
        names, environ = values_before(python)
        seeds = {**environ, **names} if interpolate else environ
        script = read_shell(prefix + text, self.path, variables=seeds)
        shift = len(prefix)

        def place(location: Location) -> Location:
            line = lines[min(location.line, len(lines)) - 1]
            column = location.column - (shift if location.line == 1 else 0)
            return line.place(max(column, 1))

        script = relocate(script, place)
        variables = {setting.name: setting for setting in self.environment}
        for command in script.commands:
            directory = posixpath.join(self.directory, command.directory).rstrip("/")
            own = {
                name: setting
                for name, setting in command.environment.items()
                if setting.location is not None or name in environ
            }
            environment = {**variables, **own}
            self.shell.append(replace(command, directory=directory, environment=environment))
        self.heredocs += script.heredocs
        self.problems += script.problems

    def read(self) -> PythonFile:
        """Facts of all that was added, at their places in the notebook."""
        from flake8_gpu_training.sources.python import read_python

        text = "\n".join(line.text for line in self.lines)
        facts = read_python(text + "\n" if text else "", self.path)

        def place(location: Location) -> Location:
            if not self.lines:
                return location
            line = self.lines[min(max(location.line, 1), len(self.lines)) - 1]
            return line.place(location.column)

        facts = relocate(facts, place)
        return replace(
            facts,
            shell=(*facts.shell, *self.shell),
            heredocs=(*facts.heredocs, *self.heredocs),
            environment=(*facts.environment, *self.environment),
            problems=(*facts.problems, *self.problems),
        )


def _after(line: _Line, offset: int) -> _Line:
    """The rest of ``line`` from ``offset`` on, at its place."""
    return replace(line, text=line.text[offset:], before=line.before + line.text[:offset])


def _instead(line: _Line, indent: str, target: str) -> _Line:
    """A statement in place of a magic: of the same indentation, its value unknown."""
    if target:
        return replace(line, text=f"{indent}{target}get_ipython()")
    return replace(line, text=f"{indent}pass" if indent else "")


def _is_python(lines: list[_Line]) -> bool:
    text = "\n".join(line.text for line in lines)
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # ONLY_AST: this parses, it does not compile, let alone run.
            compile(text, "cell", "exec", flags=flags, dont_inherit=True)
    except SyntaxError:
        return _is_newer_python(text)
    except (ValueError, RecursionError, MemoryError):
        return False
    return True


def _is_newer_python(text: str) -> bool:
    """Whether LibCST, which knows newer grammars than an old interpreter, reads it."""
    if not re.search(r"^\s*(?:match|case|type|except\*)\b|[fF][\"']", text, re.MULTILINE):
        return False
    import libcst

    try:
        libcst.parse_module(text)
    except (libcst.ParserSyntaxError, RecursionError, ValueError):
        return False
    return True
