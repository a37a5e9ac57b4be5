"""GPU001 to GPU004: files that cannot be read, or are read otherwise than they look."""

from __future__ import annotations

import re
from collections.abc import Iterator

from flake8_gpu_training.checks import _sources as sources
from flake8_gpu_training.checks._faults import Fault, judge_of
from flake8_gpu_training.checks._mistake_examples import (
    ZERO_FILE,
    of_zero_file,
)
from flake8_gpu_training.checks._mistaken import (
    FAILS,
    IGNORED,
    documents_of,
)
from flake8_gpu_training.checks.base import (
    Check,
    Example,
    Priority,
)
from flake8_gpu_training.facts import Document, Problem, ProblemKind
from flake8_gpu_training.frameworks.accepted import accepted_by
from flake8_gpu_training.frameworks.reading import parsed
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run, RunKind
from flake8_gpu_training.sources._shell_text import COMMENTED

# --- GPU001 to GPU004: files -------------------------------------------------------------


_UNREADABLE = {
    ProblemKind.SYNTAX: Text("语法错误", "a syntax error"),
    ProblemKind.ENCODING: Text("编码错误", "an encoding fault"),
    ProblemKind.TOO_DEEP: Text("嵌套过深", "nested too deeply"),
    ProblemKind.UNREADABLE: Text("无法读取", "not readable"),
}


_TO_FILL_IN = re.compile(r"(?i)(?:.*/)?[^/]*template[^/]*\.(?:json|ya?ml|toml)")
"""Configurations with words in the place of values, from which a script makes the real ones."""


def _unreadable(run: Run) -> Iterator[Fault]:
    for problem in run.problems:
        kind = _UNREADABLE.get(problem.kind)
        stops = _STOPS if _stops(run, problem) else Text("", "")
        if kind is not None and (stops.en or not _TO_FILL_IN.fullmatch(problem.location.path)):
            yield Fault(
                problem.location,
                f"mend the file: {problem.message}{stops.en or _UNCHECKED}",
                Text(
                    f"{kind.zh}：{problem.message}{stops.zh}",
                    f"{kind.en}: {problem.message}{stops.en}",
                ),
                Text("修复该文件", "mend the file"),
            )

    for document in documents_of(run):
        if document.more is not None and _takes_one(run, document):
            yield Fault(
                document.more,
                "keep one document in the file: its reader takes one, and the run stops at '---'",
                Text(
                    "文件含多个 YAML 文档，任务读取到第二个（---）时即报错退出",
                    "several YAML documents: the run stops at the second one",
                ),
                Text("只保留一个 YAML 文档", "keep one document in the file"),
            )


# By yaml.safe_load or OmegaConf.load, which take one document (llamafactory 0.9.5
# hparams/parser.py, ms-swift 4.6.0 cli/utils.py, vllm 0.33.0 utils/argparse_utils.py).
_ONE_DOCUMENT = frozenset({"llamafactory", "swift", "flow_factory", "vllm"})


def _takes_one(run: Run, document: Document) -> bool:
    """Whether the program that reads ``document`` refuses a file of several."""
    is_own = document is run.place.document and run.framework in _ONE_DOCUMENT
    return is_own or document is run.accelerate


_STOPS = Text("，任务读取该文件时即报错退出", "; the run stops where it reads it")
_UNCHECKED = "; what it sets could not be checked"


def _stops(run: Run, problem: Problem) -> bool:
    """Whether a run is given a configuration that no parser takes."""
    path = problem.location.path
    is_given = run.kind is not RunKind.OTHER and path in run.files
    is_read = any(document.path == path for document in documents_of(run))
    return (
        is_given
        and problem.kind is ProblemKind.SYNTAX
        and path.endswith((".yaml", ".yml", ".json", ".toml"))
        and not is_read
    )


def _refused_json(run: Run) -> Iterator[Fault]:
    for document in documents_of(run):
        if document.language != "json" or run.framework == "generic":
            continue  # deepspeed.initialize reads hjson, which takes comments
        for problem in document.tolerated:
            yield Fault(
                problem.location,
                f"remove it, json.load refuses the file: {problem.message}",
                Text(f"JSON 无法被 json.load 读取：{problem.message}", problem.message),
                Text("改为标准 JSON", "write plain JSON"),
            )


def _cut_short(run: Run) -> Iterator[Fault]:
    for problem in run.problems:
        if problem.kind is ProblemKind.CUT_SHORT and problem.message == COMMENTED:
            mend = "move the comment to a line of its own, above the command"
            yield Fault(
                problem.location,
                f"{mend}: behind a backslash and a blank it is an argument of the command, which "
                "ends there",
                Text("行末反斜杠后的注释成了参数", "a comment behind a backslash is an argument"),
                Text("把注释移到命令之前单独一行", mend),
            )
        elif problem.kind is ProblemKind.CUT_SHORT:
            blanks = problem.message.startswith("spaces follow")
            mend = (
                "remove the spaces behind the backslash"
                if blanks
                else "end the line above with a backslash, or move a comment out of the command"
            )
            yield Fault(
                problem.location,
                f"{mend}: {problem.message}, so {'' if blanks else 'it and '}the flags below are "
                "lost",
                Text("命令续行被截断，后面的参数不生效", problem.message),
                Text(
                    "上一行以反斜杠结尾，注释行移到命令之外",
                    "end the line above with the backslash, move comment lines out of the command",
                ),
            )


def _duplicates(run: Run) -> Iterator[Fault]:
    for document in documents_of(run):
        if document.language == "python":
            continue  # other linters report duplicate keys of dict literals
        refused = _refuses_duplicates(run, document)
        lost = f"{refused} refuses the file" if refused else "only the last one counts"
        told = f"{refused} 拒绝该文件" if refused else "仅最后一个生效"
        for entry in document.duplicates:
            yield Fault(
                entry.location,
                f"remove one of the two: {entry.key!r} is given again below, and {lost}",
                Text(
                    f"键 {entry.key} 重复，{told}",
                    f"{entry.key} is given twice",
                ),
                Text("删除重复的键", "remove one of them"),
                priority=Priority.HIGH if refused else None,
            )


_OMEGACONF = (0, 9, 4)
"""The first LLaMA-Factory whose hparams/parser.py reads a file with OmegaConf.load."""


def _refuses_duplicates(run: Run, document: Document) -> str:
    """Who refuses a file in which a key stands twice; "" where the last one counts."""
    if run.framework != "llamafactory" or document is not run.place.document:
        return ""
    accepted = accepted_by(run)
    release = accepted.parts[0].at_hand.version if accepted is not None else ""
    newer = bool(release) and parsed(release) >= _OMEGACONF and document.language == "yaml"
    return f"LLaMA-Factory {release}" if newer else ""


# --- GPU022: one process on several GPUs -------------------------------------------------


_TWICE = (
    "model: Qwen/Qwen2.5-7B-Instruct\ntuner_type: lora\n{}attn_impl: flash_attn\n"
    "dataset: data/train.jsonl\nlearning_rate: 1e-5\n"
)


CHECKS: tuple[Check, ...] = (
    Check(
        "GPU001",
        "unreadable-file",
        Text("文件无法读取", "Unreadable file"),
        Priority.HIGH,
        judge_of(_unreadable),
        why="A file that cannot be parsed fails at start, and nothing in it can be checked.",
        fix="Mend the file at the place named.",
        impact=FAILS,
        examples=(
            Example(
                "swift",
                "train.sh",
                'swift sft --model "Qwen/Qwen2.5-7B-Instruct \\\n    --dataset data/train.jsonl\n',
                'swift sft --model "Qwen/Qwen2.5-7B-Instruct" \\\n    --dataset data/train.jsonl\n',
            ),
        ),
    ),
    Check(
        "GPU002",
        "refused-json",
        Text("JSON 不合法", "JSON that json.load refuses"),
        Priority.HIGH,
        judge_of(_refused_json),
        why="Transformers and Accelerate read DeepSpeed configurations with json.load, which "
        "refuses comments and trailing commas.",
        fix="Remove the comment or the comma.",
        impact=FAILS,
        examples=(of_zero_file(ZERO_FILE.format('"auto"', ","), ZERO_FILE.format('"auto"', "")),),
        sources=("accelerate 1.15, utils/deepspeed.py", sources.HF_DEEPSPEED),
    ),
    Check(
        "GPU003",
        "cut-short-command",
        Text("命令续行被截断", "Command cut short"),
        Priority.HIGH,
        judge_of(_cut_short),
        why="A blank after the backslash ends the command: the flags below it are lost.",
        fix="Make the backslash the last character of the line.",
        impact=IGNORED,
        examples=(
            Example(
                "swift",
                "train.sh",
                "swift sft \\\n    --model Qwen/Qwen2.5-7B-Instruct \\ \n"
                "    --attn_impl flash_attn \\\n    --dataset data/train.jsonl\n",
                "swift sft \\\n    --model Qwen/Qwen2.5-7B-Instruct \\\n"
                "    --attn_impl flash_attn \\\n    --dataset data/train.jsonl\n",
            ),
        ),
        sources=("POSIX.1-2017, Shell Command Language, 2.2.1",),
    ),
    Check(
        "GPU004",
        "duplicate-key",
        Text("配置键重复", "Duplicate key"),
        Priority.MEDIUM,
        judge_of(_duplicates),
        why="Of two values for one key only the last counts; DeepSpeed refuses such a file, and so "
        "does LLaMA-Factory from 0.9.4 on.",
        fix="Remove the one that is not meant.",
        impact=IGNORED,
        examples=(
            Example(
                "swift",
                "sft.yaml",
                _TWICE.format("learning_rate: 1e-4\n"),
                _TWICE.format(""),
            ),
        ),
        sources=(sources.DEEPSPEED_SOURCE, "llamafactory 0.9.4, hparams/parser.py"),
    ),
)
