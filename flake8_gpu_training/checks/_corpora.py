"""Public corpora that are too large to be fetched whole before the first step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Corpus:
    """A corpus of the hub: its size as its card states it; ``parts`` of it that are small."""

    size: str
    parts: tuple[str, ...] = ()


# Sizes are those of the dataset cards on huggingface.co: README.md of each repository.
CORPORA: Mapping[str, Corpus] = MappingProxyType(
    {
        "allenai/c4": Corpus("305 GB or more", ("realnewslike",)),
        "cerebras/slimpajama-627b": Corpus("895 GB compressed"),
        "tiiuae/falcon-refinedweb": Corpus("467 GB compressed, 2.8 TB unpacked"),
        "huggingfacefw/fineweb": Corpus("15 trillion tokens", ("sample-", "CC-MAIN-")),
    }
)
# Names under which LLaMA-Factory 0.9.5 registers them (data/dataset_info.json).
REGISTERED: Mapping[str, str] = MappingProxyType(
    {"refinedweb": "tiiuae/falcon-refinedweb", "fineweb": "huggingfacefw/fineweb"}
)
