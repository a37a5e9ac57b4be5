"""GPU008 for numbers with a suffix, which vLLM's server reads in a way of its own."""

from __future__ import annotations

from collections.abc import Iterator

from flake8_gpu_training.checks._faults import Fault
from flake8_gpu_training.checks._written import PLACEHOLDER, Use, Written
from flake8_gpu_training.frameworks.readable_numbers import number, takes_auto
from flake8_gpu_training.frameworks.reading import parsed
from flake8_gpu_training.frameworks.tables import Parameter
from flake8_gpu_training.language import Text


def unread(use: Use, written: Written, parameter: Parameter) -> Iterator[Fault]:
    """A value that is no number, with a suffix or not."""
    text = written.text
    if not text or PLACEHOLDER.search(text) or number(text) is not None:
        return
    auto = takes_auto(parameter, parsed(use.accepted.parts[0].at_hand.version))
    if auto and text.strip().lower() == "auto":
        return
    name = written.raw or written.name
    lower = text[:-1] + text[-1].lower()
    if number(lower) is not None:
        mend = Text(f"改为 {name} {lower}", f"write {name} {lower}")
        why = Text(
            f"{text[-1]} 按 1024 计，不接受小数",
            f"{text[-1]} counts in 1024s and takes no fraction",
        )
        change = written.revalued(lower)
    else:
        examples = "4096, 4k or 4K, or auto" if auto else "4096, 4k or 4K"
        mend = Text("改为整数，如 4096、4k 或 4K", f"give {name} a whole number like {examples}")
        why = Text(f"{text} 不是数字", f"{text!r} is no number")
        change = None
    yield Fault(
        written.location,
        f"{mend.en}: {why.en}, and {use.title} {use.refuses}",
        why,
        mend,
        change,
    )
