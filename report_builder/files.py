"""Writes the reports: all of them, or none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

_PART = ".part"


class OutputError(OSError):
    """The output directory cannot be written; the message says why."""


def write_all(folder: Path, files: Mapping[str, str], known: Iterable[str]) -> None:
    """Writes ``files`` into ``folder``; of an earlier run, ``known`` files are removed.

    Every file is first written beside its place and only then moved there, so that a
    failure on the way leaves what was there before.

    Raises:
        OutputError: when the folder or a file in it cannot be written.
    """
    written: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in sorted(files):
            path = folder / name
            if path.is_dir():
                raise IsADirectoryError(f"{path} is a directory")
            part = path.with_name(f".{name}{_PART}")
            written.append(part)
            # File names may hold bytes that are no text; they are written escaped.
            part.write_bytes(files[name].encode("utf-8", "backslashreplace"))
        for part in written:
            part.replace(part.with_name(part.name[1 : -len(_PART)]))
        for name in sorted(set(known) - set(files)):
            with suppress(FileNotFoundError):
                (folder / name).unlink()
    except OSError as error:
        for part in written:
            with suppress(OSError):
                part.unlink()
        reason = error.strerror or str(error)
        raise OutputError(f"cannot write to {folder}: {reason}") from error
