"""What images start when they are given only arguments."""

from __future__ import annotations

import re

# docs.vllm.ai, "Using Docker" and the installation pages of each device: what stands behind the
# image's name goes to the OpenAI-compatible server.
_ENTRYPOINTS = {
    f"vllm/vllm-{device}": ("vllm", "serve")
    for device in ("openai", "openai-rocm", "openai-cpu", "openai-xpu", "tpu")
}
_PROGRAM = re.compile(
    r"(?:.*/)?(?:(?:ba|da|z)?sh|env|python[\d.]*|vllm|ray|torchrun|sleep|[\w.-]+\.(?:sh|py))"
)


def entrypoint_of(image: str) -> tuple[str, ...]:
    """The first words of what an image starts; none when they are not known."""
    repository = image.partition("@")[0]
    head, _, last = repository.rpartition("/")
    name = f"/{head}/{last.partition(':')[0]}"
    return next((words for one, words in _ENTRYPOINTS.items() if name.endswith(f"/{one}")), ())


def is_program(word: str) -> bool:
    """Whether a command of an image begins with a program, rather than with a model or a flag.

    The image's own start would take it for a model: who writes it has another start in mind.
    """
    return _PROGRAM.fullmatch(word) is not None
