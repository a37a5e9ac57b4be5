"""What images start when they are given only arguments."""

from __future__ import annotations

# docs.vllm.ai, "Using Docker": arguments behind the image's name go to the OpenAI-compatible
# server.
_ENTRYPOINTS = {"vllm/vllm-openai": ("vllm", "serve")}


def entrypoint_of(image: str) -> tuple[str, ...]:
    """The first words of what an image starts; none when they are not known."""
    repository = image.partition("@")[0]
    head, _, last = repository.rpartition("/")
    name = f"/{head}/{last.partition(':')[0]}"
    return next((words for one, words in _ENTRYPOINTS.items() if name.endswith(f"/{one}")), ())
