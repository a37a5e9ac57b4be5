"""Where a run's data and checkpoints lie, as far as it is written down."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Optional

from flake8_gpu_training.checks._programs import calls
from flake8_gpu_training.checks.base import Evidence
from flake8_gpu_training.facts import Setting
from flake8_gpu_training.frameworks.megatron import is_mocked
from flake8_gpu_training.runs.model import Mount, Run, once_per_run

_DATA_NAME = re.compile(
    r"(?:.*[_.])?(?:data|datasets?|images?|videos?|media|corpus|train(?:_data)?(?:_meta)?|data_meta)"
    r"(?:_(?:dirs?|paths?|roots?|folders?|files?|prefix|meta))?|tokenized_path|cached_datasets?"
    r"|custom_train_dataset_path"
)
_NO_DATA = re.compile(r"(?:.*[_.])?(?:eval|val|valid|test|output|log|save|cache)\w*")
_READERS = (
    "datasets.load_dataset",
    "datasets.load_from_disk",
    ".ImageFolder",
    ".DatasetFolder",
    ".WebDataset",
    "numpy.memmap",
    "numpy.fromfile",
    "numpy.load",
    "pandas.read_parquet",
    "pandas.read_csv",
    "pandas.read_json",
)
REMOTE = re.compile(r"(?i)^(?:s3a?|oss|gs|gcs|obs|cos|tos|bos|abfss?|wasbs?|https?)://")
SLOW = re.compile(
    r"(?i)^(?:hdfs|viewfs|dbfs)://?"
    r"|^/(?:(?:mnt|data|media|mount|vol\w*)/)?(?:mnt[_-])?"
    r"(?:nfs|cfs|hdfs|mdfs)(?:$|/|[-_.\d][\w.-]*/)"
)
LOCAL = re.compile(r"(?i)^/(?:dev/shm|local[\w-]*|nvme[\w-]*|ssd[\w-]*)(?:/|$)|(?:^|/)nvme\w*/")
_SYNTHETIC = (".FakeData", ".FakeDataset")


@dataclass(frozen=True)
class Stored:
    """A path as written, with the mount behind it, when one is known."""

    setting: Setting
    path: str
    mount: Optional[Mount] = None

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The path, and what mounts it."""
        shown = Evidence.of(self.setting)
        if self.mount is None:
            return (shown,)
        return (shown, Evidence(f"{self.mount.source} -> {self.mount.path}", self.mount.location))

    @property
    def kind(self) -> str:
        """``object-store``, ``slow``, ``local``, ``copy``, or "" when it is not known."""
        mount = self.mount
        if mount is not None and mount.kind in ("object-store", "copy", "local"):
            return mount.kind
        if mount is not None and mount.kind == "network":
            return "slow"
        for path in (self.path, mount.source if mount is not None else ""):
            for pattern, kind in ((REMOTE, "object-store"), (SLOW, "slow"), (LOCAL, "local")):
                if pattern.search(path):
                    return kind
        return ""

    @property
    def named(self) -> str:
        """The path for a message, with what stands behind it."""
        return f"{self.path} ({self.mount.source})" if self.mount is not None else self.path


@once_per_run
def data(run: Run) -> tuple[Stored, ...]:
    """Where the run's data are read."""
    return tuple(
        _stored(run, setting, path)
        for setting in _data_settings(run)
        for path in names(setting.value)
    )


def first(run: Run, *kinds: str) -> Optional[Stored]:
    """The first of the run's data paths of one of ``kinds``."""
    return next((stored for stored in data(run) if stored.kind in kinds), None)


def output(run: Run) -> Optional[Stored]:
    """Where checkpoints are written."""
    setting = run.practice("output_dir")
    if not isinstance(setting.value, str):
        return None
    return _stored(run, setting, setting.value)


def synthetic(run: Run) -> Optional[Evidence]:
    """What shows that the run makes its data up, as benchmarks do."""
    mocked = is_mocked(run)
    if mocked is not None:
        return Evidence.of(mocked)
    call = next(calls(run, *_SYNTHETIC), None)
    return Evidence(call.name, call.location) if call is not None else None


def _data_settings(run: Run) -> Iterator[Setting]:
    dataset = run.practice("dataset")
    if dataset.known:
        yield dataset
    for name, setting in run.settings.items():
        if setting.known and _DATA_NAME.fullmatch(name) and not _NO_DATA.fullmatch(name):
            yield setting
    for call in calls(run, *_READERS):
        for argument in (*call.positional, *call.keywords.values()):
            if isinstance(argument.value, (str, list)):
                yield Setting(call.method, argument.value, argument.location, text=argument.text)


def names(value: Any) -> Iterator[str]:
    """The paths or names in a value that may hold several."""
    if isinstance(value, str):
        yield from value.split()
    elif isinstance(value, (list, tuple)):
        yield from (item for item in value if isinstance(item, str))


def _stored(run: Run, setting: Setting, path: str) -> Stored:
    mount = _behind(run, path)
    if mount is not None and mount.kind == "bind":
        # The host's folder may itself be a mount.
        further = _behind(run, mount.source + path[len(mount.path) :], skip=mount)
        mount = further or mount
    return Stored(setting, path, mount)


def _behind(run: Run, path: str, skip: Optional[Mount] = None) -> Optional[Mount]:
    """The mount with the longest path above ``path``; what a container binds hides the host's."""
    fitting = [
        mount
        for mount in run.mounts
        if mount is not skip and f"{path}/".startswith(f"{mount.path}/")
    ]
    return max(fitting, key=lambda mount: (len(mount.path), mount.kind == "bind"), default=None)
