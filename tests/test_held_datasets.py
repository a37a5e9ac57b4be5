"""What the data sets of a project's own copy of VideoX-Fun take, and what its audit says of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from audits_support import audit_named
from checks_support import runs_of

from flake8_gpu_training.checks.base import Status
from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.facts import Unknown
from flake8_gpu_training.sources.constructors import defaults_of
from flake8_gpu_training.verdicts import judge
from report_builder.scoring import score

_SETS = """\
RATIO = 0.3


class EditDataset:
    def __init__(self, path, text_drop_ratio{default}):
        self.ratio = text_drop_ratio


class PlainDataset:
    def __init__(self, path):
        self.path = path


class OpenDataset(EditDataset):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
"""
_SCRIPT = """\
import argparse

import torch
from accelerate import Accelerator
from videox_fun.data.edits import {made}
from videox_fun.models import WanTransformer3DModel


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--train_data_meta")
    args = parser.parse_args()
    accelerator = Accelerator(mixed_precision="bf16")
    transformer3d = WanTransformer3DModel.from_pretrained("Wan2.1-T2V-1.3B")
    train_dataset = {made}(args.train_data_meta)
    loader = torch.utils.data.DataLoader(train_dataset, num_workers=4)
    for batch in loader:
        accelerator.backward(transformer3d(batch))


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("default", "made", "status", "shows"),
    [
        ("=0.2", "EditDataset", Status.ENABLED, "0.2, the default of EditDataset"),
        ("=0.0", "EditDataset", Status.DISABLED, ""),
        ("=-1", "EditDataset", Status.DISABLED, ""),
        ("", "EditDataset", Status.UNKNOWN, ""),
        ("=RATIO", "EditDataset", Status.UNKNOWN, ""),
        ("=0.2", "PlainDataset", Status.DISABLED, ""),
        ("=0.2", "OpenDataset", Status.UNKNOWN, ""),
    ],
)
def test_the_default_of_a_data_set_of_ones_own_decides(
    default: str, made: str, status: Status, shows: str, tmp_path: Path
) -> None:
    files = {
        "videox_fun/models/__init__.py": "from .wan import WanTransformer3DModel\n",
        "videox_fun/data/edits.py": _SETS.format(default=default),
        "scripts/wan2.1/train_lora.py": _SCRIPT.format(made=made),
        "train.sh": "accelerate launch scripts/wan2.1/train_lora.py --train_data_meta a.json\n",
    }
    run = next(run for run in runs_of(tmp_path, files) if run.framework == "videox_fun")
    scored = score(audit_named("videox-fun"), judge(run, all_checks()))
    items = {item.id: item for category in scored.categories for item in category.items}
    item = items["text-dropout"]
    assert item.status is status, item.current.en
    assert shows in str([evidence.text for evidence in item.evidence])
    assert "has no data set of latents" in items["preencoded-dataset"].current.en
    if shows:
        assert item.evidence[0].location is not None
        assert item.evidence[0].location.path == "videox_fun/data/edits.py"


def test_defaults_are_found_by_keyword_and_position() -> None:
    text = (
        "class A:\n    def __init__(self, a=1, *, ratio=0.5): pass\n"
        "class B:\n    def __init__(self, ratio, b=2): pass\n"
        "class C:\n    def other(self, ratio=1): pass\n"
    )
    found = dict(defaults_of(text, "data.py", "ratio"))
    assert sorted(found) == ["A", "B"]
    assert found["A"].value == 0.5
    assert isinstance(found["B"].value, Unknown)
    assert not dict(defaults_of("class A(:", "data.py", "ratio"))
