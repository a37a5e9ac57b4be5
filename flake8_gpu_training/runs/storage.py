"""What stands behind a run's folders: mounts, volumes and copies written beside it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import Optional

from flake8_gpu_training.facts import (
    Command,
    ConfigFile,
    Document,
    Location,
    Node,
    PythonFile,
    ScriptFile,
    Word,
)
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.model import Mount, Run

_NETWORK_TYPES = re.compile(r"(?i)nfs[34]?|cifs|smb\w*|efs|mdfs|glusterfs|9p")
_NETWORK_CLASS = re.compile(
    r"(?i)(?:^|[-_.])(?:nfs|cfs|efs|nas|smb|azurefile|filestore)(?:$|[-_.])"
)
_NETWORK_DRIVERS = re.compile(r"(?i).*(?:nfs|efs|nasplugin|filestore|azurefile|cfs|smb).*")
_BUCKET_DRIVERS = re.compile(r"(?i).*(?:s3|gcsfuse|ossplugin|cosfs|blob).*")
# Programs that show a bucket as a folder: name, and where in its words the folder stands.
_BUCKET_TOOLS = ("s3fs", "goofys", "gcsfuse", "ossfs", "cosfs", "obsfs", "mount-s3")
_DOWNLOADS = {
    ("aws", "s3"): ("cp", "sync"),
    ("gsutil",): ("cp", "rsync"),
    ("gcloud", "storage"): ("cp", "rsync"),
    ("ossutil",): ("cp", "sync"),
    ("ossutil64",): ("cp", "sync"),
    ("coscli",): ("cp", "sync"),
    ("rclone",): ("copy", "sync"),
    ("hdfs", "dfs"): ("-get", "-copyToLocal"),
    ("hadoop", "fs"): ("-get", "-copyToLocal"),
}
_URL = re.compile(r"(?i)^(?:s3a?|gs|gcs|oss|obs|cos|tos|bos|hdfs|viewfs)://|^\w[\w-]*:[^/]")
_WITH_VALUE = re.compile(
    r"^-(?:[a-zA-Z]|-(?:types?|options|profile|region|endpoint-url|exclude|include))$"
)


def mounts_of(project: Project, run: Run) -> tuple[Mount, ...]:
    """Mounts of the file that holds the run's command, of its container and of its job."""
    found: list[Mount] = []
    if run.command is not None:
        for wrapper in run.command.wrappers:
            found += _volumes(wrapper)
        path = run.command.location.path
        facts = project.read(path) if path in project.files else None
        if isinstance(facts, ScriptFile):
            found += (m for command in facts.commands for m in _of_command(command))
        elif isinstance(facts, ConfigFile):
            found += (m for document in facts.documents for m in _of_job(document))
            found += (m for command in facts.commands for m in _of_command(command))
        elif isinstance(facts, PythonFile):
            found += (m for command in facts.shell for m in _of_command(command))
    return tuple(dict.fromkeys(found))


# --- commands ---------------------------------------------------------------------------


def _of_command(command: Command) -> Iterator[Mount]:
    words = command.words
    name = posixpath.basename(command.name)
    if name == "mount" or name.startswith("mount."):
        yield from _mounted(name, words[1:])
    elif name in _BUCKET_TOOLS:
        given = _plain(words[1:])
        if len(given) >= 2:
            yield _mount(given[1], given[0], "object-store")
    elif name == "rclone" and len(words) > 3 and words[1].text == "mount":
        given = _plain(words[2:])
        if len(given) >= 2:
            yield _mount(given[1], given[0], "object-store")
    else:
        yield from _copied(name, words)


def _mounted(name: str, words: Sequence[Word]) -> Iterator[Mount]:
    kind = name.partition(".")[2]
    for at, word in enumerate(words[:-1]):
        if word.text in ("-t", "--types"):
            kind = words[at + 1].text
    given = _plain(words)
    if _NETWORK_TYPES.fullmatch(kind) and len(given) >= 2:
        yield _mount(given[1], given[0], "network")


def _copied(name: str, words: Sequence[Word]) -> Iterator[Mount]:
    for program, verbs in _DOWNLOADS.items():
        given = [word.text for word in words[1:]]
        if name != program[0] or given[: len(program) - 1] != list(program[1:]):
            continue
        given = [text for text in given if not text.startswith("-m")]
        verb = next((i for i, text in enumerate(given) if text in verbs), None)
        if verb is None:
            continue
        ends = _plain([word for word in words if word.text not in verbs][len(program) :])
        if len(ends) >= 2 and _URL.search(ends[0].text) and not _URL.search(ends[1].text):
            yield _mount(ends[1], ends[0], "copy")


def _plain(words: Sequence[Word]) -> list[Word]:
    """The words that are no flags nor their values."""
    kept: list[Word] = []
    skip = False
    for word in words:
        if skip:
            skip = False
        elif word.text.startswith("-"):
            skip = _WITH_VALUE.match(word.text) is not None and word.text not in ("-r", "-R", "-m")
        else:
            kept.append(word)
    return kept


def _mount(folder: Word, source: Word, kind: str) -> Mount:
    return Mount(folder.text.rstrip("/") or "/", source.text, kind, source.location)


def _volumes(wrapper: Sequence[Word]) -> Iterator[Mount]:
    """Folders of the host that ``docker run -v`` shows to its container."""
    if not wrapper or posixpath.basename(wrapper[0].text) not in ("docker", "nvidia-docker"):
        return
    for at, word in enumerate(wrapper):
        flag, _, value = word.text.partition("=")
        if flag not in ("-v", "--volume", "--mount"):
            continue
        if not value and at + 1 < len(wrapper):
            word = wrapper[at + 1]
            value = word.text
        bound = _bound(value, word.location)
        if bound is not None:
            yield bound


def _bound(text: str, location: Location) -> Optional[Mount]:
    """``/host:/container[:ro]`` or ``type=bind,source=/host,target=/container``."""
    if "=" in text:
        parts = dict(part.partition("=")[::2] for part in text.split(","))
        source = parts.get("source") or parts.get("src")
        target = parts.get("target") or parts.get("dst") or parts.get("destination")
    else:
        source, _, rest = text.partition(":")
        target = rest.partition(":")[0]
    if not source or not target or not source.startswith("/"):
        return None
    return Mount(target.rstrip("/") or "/", source, "bind", location)


# --- job files --------------------------------------------------------------------------


def _of_job(document: Document) -> Iterator[Mount]:
    yield from _of_kubernetes(document.root)
    for name in ("services", "file_mounts"):
        section = document.root.mapping.get(name)
        if section is None:
            continue
        for key, entry in section.node.mapping.items():
            if name == "services":
                yield from _of_service(entry.node)
            else:
                yield from _of_task(key, entry.node)


def _of_kubernetes(root: Node) -> Iterator[Mount]:
    """Volumes of pods, by the folders where their containers mount them."""
    behind: dict[str, tuple[str, str, Location]] = {}
    mounted: list[tuple[str, str]] = []
    stack = [root]
    while stack:
        node = stack.pop()
        stack += [entry.node for entry in node.mapping.values()]
        stack += node.items
        for volume in _items(node, "volumes"):
            what = _behind(volume)
            if what is not None:
                behind[_text(volume, "name")] = what
        mounted += [
            (_text(mount, "mountPath"), _text(mount, "name"))
            for mount in _items(node, "volumeMounts")
        ]
    for folder, name in mounted:
        if folder and name in behind:
            source, kind, location = behind[name]
            yield Mount(folder.rstrip("/") or "/", source, kind, location)


def _behind(volume: Node) -> Optional[tuple[str, str, Location]]:
    for key, kind in (("nfs", "network"), ("azureFile", "network"), ("glusterfs", "network")):
        if key in volume.mapping:
            entry = volume.mapping[key]
            source = f"{_text(entry.node, 'server')}:{_text(entry.node, 'path')}".strip(":")
            return source or key, kind, entry.location
    if "hostPath" in volume.mapping:
        entry = volume.mapping["hostPath"]
        return _text(entry.node, "path"), "bind", entry.location
    if "emptyDir" in volume.mapping:
        entry = volume.mapping["emptyDir"]
        return "emptyDir", "local", entry.location
    if "csi" in volume.mapping:
        entry = volume.mapping["csi"]
        driver = _text(entry.node, "driver")
        for pattern, kind in ((_BUCKET_DRIVERS, "object-store"), (_NETWORK_DRIVERS, "network")):
            if pattern.fullmatch(driver):
                return driver, kind, entry.location
    if "persistentVolumeClaim" in volume.mapping:
        entry = volume.mapping["persistentVolumeClaim"]
        claim = _text(entry.node, "claimName")
        if _NETWORK_CLASS.search(claim):
            return claim, "network", entry.location
    return None


def _of_service(node: Node) -> Iterator[Mount]:
    for item in _items(node, "volumes"):
        if item.kind == "scalar":
            bound = _bound(item.text, item.location)
        else:
            source, target = _text(item, "source"), _text(item, "target")
            bound = _bound(f"{source}:{target}", item.location)
        if bound is not None:
            yield bound


def _of_task(folder: str, node: Node) -> Iterator[Mount]:
    """SkyPilot's ``file_mounts``: a bucket is mounted, unless its mode is COPY."""
    source = node.text if node.kind == "scalar" else _text(node, "source")
    if not _URL.search(source):
        return
    is_copied = node.kind == "scalar" or _text(node, "mode").upper() == "COPY"
    kind = "copy" if is_copied else "object-store"
    yield Mount(folder.rstrip("/") or "/", source, kind, node.location)


def _items(node: Node, key: str) -> tuple[Node, ...]:
    entry = node.mapping.get(key)
    return entry.node.items if entry is not None else ()


def _text(node: Node, key: str) -> str:
    entry = node.mapping.get(key)
    return entry.node.text if entry is not None and entry.node.kind == "scalar" else ""
