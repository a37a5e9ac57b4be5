"""slime: a training run whose command hands SGLang its parameters as ``--sglang-…`` flags."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Optional

from flake8_gpu_training.facts import Origin, ProblemKind, Setting, Unknown, Word, known
from flake8_gpu_training.frameworks.reading import is_true
from flake8_gpu_training.models import model_of
from flake8_gpu_training.runs.model import Place, PlaceKind, Run, once_per_run

_TELLING = ("rollout_num_gpus_per_engine", "sglang_mem_fraction_static", "rollout_function_path")
_MODELS = "MODEL_ARGS"
"""The array of a script of slime's own, with the shape of the model for Megatron."""
# What the host hands on itself (backends/sglang_utils/arguments.py: skipped_args).
OWN = frozenset(
    """
    model_path config trust_remote_code random_seed enable_memory_saver tp_size port nnodes
    node_rank dist_init_addr gpu_id_step base_gpu_id nccl_port skip_server_warmup
    """.split()  # noqa: SIM905
)


@once_per_run
def as_launched(run: Run) -> Optional[Run]:
    """The run with the flags of its command as settings; None where it is none of slime's.

    A checkout of slime is seen as what its program builds: a server whose arguments are
    computed. A command that is cut short before the checkpoint starts nothing as it stands:
    that which is meant is taken.
    """
    launched = _launched(run)
    if launched is not None or run.meant is None:
        return launched
    problems = tuple(p for p in run.meant.problems if p.kind is not ProblemKind.CUT_SHORT)
    return _launched(replace(run.meant, problems=problems))


def _launched(run: Run) -> Optional[Run]:
    command = run.command
    if command is None:
        return None
    given = dict(_flags(command.words))
    if not any(name in given for name in _TELLING) or "hf_checkpoint" not in given:
        return None
    checkpoint = given["hf_checkpoint"]
    has_own = any(name.startswith("sglang_") for name in given)
    return replace(
        run,
        place=Place(PlaceKind.FLAGS, command.location, command),
        location=command.location,
        model=model_of(_named(checkpoint)),
        settings=MappingProxyType(given),
        is_open=any(
            _is_unread(word, before, has_own)
            for before, word in zip(command.words, command.words[1:])
        ),
    )


def is_colocated(settings: Mapping[str, Setting]) -> bool:
    """Whether training and sampling share their GPUs."""
    return is_true(settings.get("colocate"))


def samples(settings: Mapping[str, Setting]) -> bool:
    """Whether servers are started: not by a run that only trains on stored samples."""
    stored = "load_debug_rollout_data" in settings
    return not stored and not is_true(settings.get("debug_train_only"))


_WHOLE_WORD = re.compile(r"\$\{?\w+(?:\[[@*]\])?\}?")


def _is_unread(word: Word, before: Word, has_own: bool) -> bool:
    """Whether a word may be several flags: an array, or a variable that is no flag's value.

    ``has_own``: the engine's flags were read elsewhere in the command, so that an array which
    is named for others holds none.
    """
    if not word.splits or known(word.value) or _MODELS in word.text:
        return False
    if _WHOLE_WORD.fullmatch(word.text) is None:
        return False  # a path in a folder that is not known
    if has_own and _OF_OTHERS.search(word.text):
        return False
    choices = word.value.candidates if isinstance(word.value, Unknown) else ()
    if choices and not any("--sglang" in str(one) or "$" in str(one)[:2] for one in choices):
        return False
    return _is_array(word) or not before.text.startswith("--")


_OF_OTHERS = re.compile(
    r"(?i)\b(?:eval|wandb|swanlab|tensorboard|log(?:ging)?|distributed|optimizer|ckpt|checkpoint"
    r"|grpo|ppo|gspo|sft|perf|data|train(?:ing)?|megatron)_ARGS\b"
)
"""Arrays that slime's scripts name for what else they hold."""


def _is_array(word: Word) -> bool:
    """Whether a word stands for an array that is not read: its elements are flags."""
    return not known(word.value) and word.text.endswith(("[@]}", "[*]}"))


def _named(checkpoint: Setting) -> Optional[str]:
    """The model's name, also where the folder of its checkpoint is not known."""
    if checkpoint.known:
        return str(checkpoint.value)
    if isinstance(checkpoint.value, Unknown) and len(checkpoint.value.candidates) == 1:
        return str(checkpoint.value.candidates[0])
    last = checkpoint.text.rstrip("/").rpartition("/")[2]
    return last if last and "$" not in last else None


def _flags(words: tuple[Word, ...]) -> Iterator[tuple[str, Setting]]:
    """Flags with their first value, and all of them in the note; a bare one is true."""
    for number, word in enumerate(words):
        if not word.text.startswith("--"):
            continue
        name, equals, inline = word.text[2:].partition("=")
        after = words[number + 1] if number + 1 < len(words) else None
        name = name.replace("-", "_")
        if equals:
            yield name, Setting(name, _value(inline), word.location, Origin.FLAG, word.text)
        elif after is None or after.text.startswith("--") or _is_array(after):
            yield name, Setting(name, True, word.location, Origin.FLAG, word.text)
        else:
            note = f"{word.text} {_shown(list(_values(words[number + 1 :])))}"
            yield (
                name,
                Setting(
                    name,
                    _value(after.text) if known(after.value) else after.value,
                    word.location,
                    Origin.FLAG,
                    note,
                    after.text,
                    after.location,
                ),
            )


def _shown(values: list[str]) -> str:
    """Values as one reads them: of a long list the first ones and the last."""
    return " ".join(values if len(values) <= _MANY else (*values[:4], "…", values[-1]))


_MANY = 6


def _values(words: tuple[Word, ...]) -> Iterator[str]:
    """What stands behind a flag up to the next one, as it is written where it is not known."""
    first, *others = words
    yield first.text
    for word in others:
        if word.text.startswith("--") or _is_array(word) or word.text == "\\":
            return
        yield word.text


_WHOLE, _DECIMAL = re.compile(r"-?\d+"), re.compile(r"-?\d*\.\d+(?:e-?\d+)?|-?\d+e-?\d+")


def _value(text: str) -> Any:
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _DECIMAL.fullmatch(text) else text
