"""What users write of versions: names and releases that mean something."""

from __future__ import annotations

import pytest

from flake8_gpu_training.options import OptionError, Options, options_from


def of_versions(text: str) -> Options:
    return options_from("medium", None, None, "auto", text)


def test_versions_are_of_distributions_whatever_their_spelling() -> None:
    found = of_versions("Transformers=4.46, swift=3.9 flash_attn=2.8.3,torchvision=0.20")
    assert found.versions == {
        "transformers": "4.46",
        "ms-swift": "3.9",
        "flash-attn": "2.8.3",
        "torchvision": "0.20",
    }


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("transformers", "write transformers=4.46"),
        ("transformer=4.46", "did you mean transformers"),
        ("lama-factory=0.9", "did you mean llamafactory"),
        ("vllm=latest", "'latest' is no version"),
    ],
)
def test_what_names_no_version_is_told(text: str, told: str) -> None:
    with pytest.raises(OptionError, match=told):
        of_versions(text)
