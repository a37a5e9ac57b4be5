"""Reads Python: imports, calls with resolved names and values, loops, options, classes."""

from __future__ import annotations

import ast
import codecs
import io
import re
import tokenize
import warnings
from dataclasses import replace
from typing import Optional, Union

from flake8_gpu_training.facts import Location, Problem, ProblemKind, PythonFile
from flake8_gpu_training.sources._python_interest import BYTE_TRACES

MAX_BYTES = 2_000_000
MAX_BRACKETS = 150
MAX_CHAIN = 1_000
"""Operators between two commas or statements; longer chains overflow parsers' stacks."""

_MENTIONS = re.compile(
    r"autocast|apex|gradscaler|bfloat16|float16|float8|bf16|fp16|fp8|\.half\b|torch\.half"
    r"|(?<!matmul_)precision|tf32|matmul_precision|checkpointing|utils\.checkpoint"
    r"|utils import checkpoint|use_checkpoint|recompute|(?<!\bre)\.compile\b|compile_model"
    r"|torch_compile|deepspeed|fsdp|fully_shard|fullysharded|megatron|colossalai|parallelize"
    r"|parallelism|tensor_parallel|pipeline_parallel|sequence_parallel|context_parallel|ulysses"
    r"|accum|lr_scheduler|get_scheduler|_schedule|schedulefree|warmup|clip_grad|clip_val"
    r"|gradient_clip|lora|peft|adapter|unsloth|liger|quant|bitsandbytes|device_map|dataparallel"
    r"|accelerat|lightning|fabric",
    re.IGNORECASE,
)
MAX_ELIFS = 1_000
MAX_THINNED = 500_000
"""Characters left after thinning; LibCST needs four seconds a million."""

_NEWLINES = re.compile(r"\r\n?")
_ATOMS = re.compile(
    r"#[^\n]*|(?:'''|\"\"\")(?:[^\\]|\\.)*?(?:'''|\"\"\")|'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\""
    r"|[][(){},;\n]|elif\b|not\b|and\b|or\b|lambda\b|await\b|if\b|[-+*/%@&|^~.<>=!]+",
    re.DOTALL,
)
_OPERATORS = frozenset("-+*/%@&|^~.<>=!")


def is_relevant(data: bytes) -> bool:
    """Whether a source has any trace of GPU training or serving."""
    return BYTE_TRACES.search(data) is not None


def read_python(text: Union[str, bytes], path: str, tree: Optional[ast.AST] = None) -> PythonFile:
    """Facts of a Python source; never raises.

    ``tree`` is the ``ast`` of the same text when the caller has it already.
    """
    problems: list[Problem] = []
    try:
        return _read(text, path, tree, problems)
    except (RecursionError, MemoryError):
        problems.append(_problem(ProblemKind.TOO_DEEP, "nested too deeply to be read", path))
    return PythonFile(path, problems=tuple(problems))


def _read(
    data: Union[str, bytes], path: str, tree: Optional[ast.AST], problems: list[Problem]
) -> PythonFile:
    if len(data) > MAX_BYTES:
        message = f"larger than {MAX_BYTES // 1_000_000} MB, not read"
        problems.append(_problem(ProblemKind.TOO_LARGE, message, path))
        return PythonFile(path, problems=tuple(problems))
    text = _decode(data, path, problems) if isinstance(data, bytes) else data
    text = _NEWLINES.sub("\n", text.lstrip("\ufeff") if text.startswith("\ufeff") else text)
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        problems.append(_problem(ProblemKind.SYNTAX, f"null byte in line {line}", path, line))
        return PythonFile(path, problems=tuple(problems))
    if not isinstance(tree, ast.Module):
        deep = _too_deep_line(text)
        if deep:
            message = f"line {deep} is nested too deeply to be read"
            problems.append(_problem(ProblemKind.TOO_DEEP, message, path, deep))
            return PythonFile(path, problems=tuple(problems))
        try:
            tree = _parse(text)
        except (RecursionError, MemoryError):
            problems.append(_problem(ProblemKind.TOO_DEEP, "nested too deeply to be read", path))
            return PythonFile(path, problems=tuple(problems))
    return _read_text(text, path, tree, problems)


def _read_text(
    text: str, path: str, tree: Optional[ast.Module], problems: list[Problem]
) -> PythonFile:
    # LibCST takes time to import: only files that get this far pay for it.
    import libcst as cst

    from flake8_gpu_training.sources._python_facts import FactBuilder
    from flake8_gpu_training.sources._python_positions import Positions
    from flake8_gpu_training.sources._python_thinning import thin, whole
    from flake8_gpu_training.sources._python_walk import collect

    line = 1
    attempts = [whole] if tree is None else [lambda text: thin(text, tree), whole]
    for attempt in attempts:
        if attempt is whole and tree is not None and _too_deep_line(text):
            break
        thinned = attempt(text)
        if len(thinned.text) > MAX_THINNED:
            message = f"more than {MAX_THINNED} characters would have to be read"
            problems.append(_problem(ProblemKind.TOO_LARGE, message, path))
            return PythonFile(path, problems=tuple(problems))
        try:
            module = cst.parse_module(thinned.text)
        except cst.ParserSyntaxError as error:
            line = error.raw_line
            continue
        positions = Positions(module, thinned.text, path, thinned.line_numbers)
        if not positions.exact:
            continue
        facts = FactBuilder(collect(module), positions, path, thinned.methods).build()
        problems.extend(
            _problem(
                ProblemKind.TOO_DEEP, f"line {line} is nested too deeply to be read", path, line
            )
            for line in thinned.too_deep
        )
        found = frozenset(word.lower() for word in _MENTIONS.findall(text))
        return replace(facts, mentions=found, problems=tuple(problems))
    message = f"invalid syntax in line {line}"
    problems.append(_problem(ProblemKind.SYNTAX, message, path, line))
    return PythonFile(path, problems=tuple(problems))


def _parse(text: str) -> Optional[ast.Module]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


def _decode(data: bytes, path: str, problems: list[Problem]) -> str:
    """Text by the coding cookie of PEP 263; what cannot be decoded is replaced."""
    encoding = "utf-8"
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return data.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        message = f"cannot be decoded: {error}"
        problems.append(_problem(ProblemKind.ENCODING, message, path))
    if data.startswith(codecs.BOM_UTF8):
        data = data[len(codecs.BOM_UTF8) :]
    return data.decode("utf-8", "replace")


def _too_deep_line(text: str) -> int:
    """Line that would overflow a parser's stack, or 0: brackets or operators without end."""
    line, depth, chain, elifs = 1, 0, 0, 0
    for match in _ATOMS.finditer(text):
        atom = match.group()
        first = atom[0]
        if first == "\n":
            line += 1
            chain = chain if depth else 0
        elif first in "([{":
            depth += 1
        elif first in ")]}":
            depth = max(0, depth - 1)
        elif first in ",;":
            chain = 0
        elif first in "#'\"":
            line += atom.count("\n")
        elif atom == "elif":
            elifs += 1
        else:
            chain += len(atom) if first in _OPERATORS else 1
        if depth > MAX_BRACKETS or chain > MAX_CHAIN or elifs > MAX_ELIFS:
            return line
    return 0


def _problem(kind: ProblemKind, message: str, path: str, line: int = 1) -> Problem:
    return Problem(kind, message, Location(path, line))
