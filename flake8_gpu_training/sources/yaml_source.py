"""Reads YAML into documents whose keys and values keep their places."""

from __future__ import annotations

import dataclasses
import re
from typing import Any, Optional, Union

import yaml

from flake8_gpu_training.facts import (
    ConfigFile,
    Document,
    Entry,
    Location,
    Node,
    Problem,
    ProblemKind,
    Unknown,
)
from flake8_gpu_training.sources.text import conflict, decode

MAX_BYTES = 5_000_000
MAX_DEPTH = 100
MAX_NODES = 50_000
"""Nodes of one file once its aliases are expanded: a bomb has millions of them."""
MAX_TEXT = 10_000
"""Length of a text with references put in, after which it is Unknown: each may double it."""
MAX_NUMBER = 400
"""Digits after which a number stays text: converting it costs quadratic time."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_PLAIN_TAGS = frozenset(_TAG + name for name in ("str", "timestamp", "merge", "value"))
_NUMBER_TAGS = frozenset(_TAG + name for name in ("int", "float", "bool", "null"))
_COLLECTION_TAGS = frozenset(
    _TAG + name for name in ("map", "seq", "set", "omap", "pairs", "python/tuple", "python/list")
)
_INTERPOLATION = re.compile(r"\$\{([^${}]*)\}")
_REFERENCE = re.compile(r"[A-Za-z_][\w\-]*(?:(?:\.[\w\-]+)|(?:\[[\w\-]+\]))*")
_TEMPLATE = re.compile(r"\{\{|\{%")


def read_yaml(text: Union[str, bytes], path: str) -> ConfigFile:
    """Documents of a YAML file, with what could not be read; never raises.

    Values are those of PyYAML's safe loader (so ``1e-4`` is a str and ``on`` is True), except
    that timestamps stay text. Custom tags, templates and interpolations that the document
    alone does not determine are Unknown.
    """
    if len(text) > MAX_BYTES:
        return ConfigFile(path, problems=(_too_large(path),))
    content, problems = decode(text, path)
    if any(problem.kind is ProblemKind.UNREADABLE for problem in problems):
        return ConfigFile(path, problems=problems)
    builder = _Builder(content, path)
    builder.read()
    documents = tuple(builder.documents)
    if "${" in content:
        documents = tuple(_interpolate(document) for document in documents)
    return ConfigFile(path, documents, problems=(*problems, *builder.problems))


def _too_large(path: str) -> Problem:
    return Problem(ProblemKind.TOO_LARGE, f"larger than {MAX_BYTES:,} bytes", Location(path))


class _StopError(Exception):
    """The rest of the file is not worth reading; the problem is noted already."""


@dataclasses.dataclass
class _Open:
    """A collection being read. Size and height are those of the tree without aliases."""

    kind: str
    location: Location
    tag: Optional[str]
    anchor: Optional[str]
    flow: bool
    children: list[Node] = dataclasses.field(default_factory=list)
    size: int = 1
    height: int = 1


class _Builder:
    """Builds nodes from the parser's events, on a stack of its own.

    PyYAML's composer recurses once a level and expands nothing, so neither depth nor alias
    expansion could be bounded with it.
    """

    def __init__(self, text: str, path: str) -> None:
        self.path = path
        self.text = text
        self.lines: list[str] = []
        self.documents: list[Document] = []
        self.problems: list[Problem] = []
        self.stack: list[_Open] = []
        self.anchors: dict[str, tuple[Optional[Node], int, int]] = {}
        self.duplicates: list[Entry] = []
        self.root: Optional[Node] = None
        self.nodes = 0
        self.loader: Any = None

    def read(self) -> None:
        """Fill ``documents`` and ``problems``."""
        try:
            self.loader = _Loader(self.text)
            while self.loader.check_event():
                self._event(self.loader.get_event())
        except _StopError:
            pass
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            self._syntax(error.problem or "not YAML", mark)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            self._syntax(str(error).splitlines()[0] if str(error) else "not YAML", None)
        finally:
            if self.loader is not None:
                self.loader.dispose()

    def _syntax(self, message: str, mark: Any) -> None:
        location = self._place(mark) if mark is not None else Location(self.path)
        if "nesting depth" in message:  # libyaml's own bound, met while it looks ahead
            problem = Problem(ProblemKind.TOO_DEEP, message, location)
        elif _TEMPLATE.search(self.text):
            problem = Problem(ProblemKind.UNSUPPORTED, "a template, not yet YAML", location)
        else:
            problem = conflict(self.text, self.path) or Problem(
                ProblemKind.SYNTAX, message, location
            )
        self.problems.append(problem)

    def _place(self, mark: Any) -> Location:
        return Location(self.path, mark.line + 1, mark.column + 1)

    def _event(self, event: Any) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._add(self._scalar(event), 1, 1, event.anchor)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._open(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._close()
        elif isinstance(event, yaml.DocumentStartEvent):
            self.anchors, self.duplicates, self.root = {}, [], None
            if len(self.documents) == 1:
                (first,) = self.documents
                self.documents = [dataclasses.replace(first, more=self._place(event.start_mark))]
        elif isinstance(event, yaml.DocumentEndEvent) and self.root is not None:
            document = Document(self.path, self.root, duplicates=tuple(self.duplicates))
            self.documents.append(document)

    def _open(self, event: Any) -> None:
        kind = "mapping" if isinstance(event, yaml.MappingStartEvent) else "sequence"
        location = self._place(event.start_mark)
        if len(self.stack) >= MAX_DEPTH:
            self._stop(ProblemKind.TOO_DEEP, f"nested more than {MAX_DEPTH} deep", location)
        if event.anchor:
            # An alias met before the collection ends refers to itself.
            self.anchors[event.anchor] = (None, 0, 0)
        opened = _Open(kind, location, event.tag, event.anchor, bool(event.flow_style))
        self.stack.append(opened)

    def _stop(self, kind: ProblemKind, message: str, location: Location) -> None:
        self.problems.append(Problem(kind, message, location))
        raise _StopError

    def _close(self) -> None:
        opened = self.stack.pop()
        if opened.kind == "sequence":
            node = Node(None, opened.location, items=tuple(opened.children), kind="sequence")
        else:
            node = self._mapping(opened)
        if opened.tag and opened.tag not in _COLLECTION_TAGS:
            node = Node(Unknown(f"built by the tag {opened.tag}"), opened.location)
        self._add(node, opened.size, opened.height, opened.anchor)

    def _add(self, node: Node, size: int, height: int, anchor: Optional[str]) -> None:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            self._stop(ProblemKind.TOO_LARGE, f"more than {MAX_NODES:,} values", node.location)
        if anchor:
            self.anchors[anchor] = (node, size, height)
        if not self.stack:
            self.root = node
            return
        parent = self.stack[-1]
        parent.children.append(node)
        parent.size += size
        parent.height = max(parent.height, height + 1)

    def _alias(self, event: Any) -> None:
        location = self._place(event.start_mark)
        if event.anchor not in self.anchors:
            self._stop(ProblemKind.SYNTAX, f"undefined alias *{event.anchor}", location)
        node, size, height = self.anchors[event.anchor]
        if node is None:
            self._refuse("an alias of what it stands in", ProblemKind.UNSUPPORTED, location)
        elif self.nodes + size > MAX_NODES:
            self._refuse("aliases expand without bound", ProblemKind.TOO_LARGE, location)
        elif len(self.stack) + height > MAX_DEPTH:
            self._refuse("aliases nest too deep", ProblemKind.TOO_DEEP, location)
        else:
            self.nodes += size
            self._add(node, size, height, None)

    def _refuse(self, message: str, kind: ProblemKind, location: Location) -> None:
        if not any(known.message == message for known in self.problems):
            self.problems.append(Problem(kind, message, location))
        self._add(Node(Unknown(message), location), 1, 1, None)

    # --- mappings ---

    def _mapping(self, opened: _Open) -> Node:
        own: dict[str, Entry] = {}
        merged: dict[str, Entry] = {}
        for key, value in zip(opened.children[::2], opened.children[1::2]):
            if key.kind != "scalar":
                if key.kind == "mapping" and opened.flow:
                    # ``{{ name }}`` without quotes: a mapping whose key is a mapping.
                    return Node(Unknown("a template placeholder"), opened.location)
                self._note("a key that is not a scalar", key.location)
            elif key.text == "<<" and key.content == key.location:
                self._merge(value, merged)
            else:
                name = key.text
                if name in own:
                    self.duplicates.append(own.pop(name))
                own[name] = Entry(name, key.location, value)
        # Merged entries come first, as PyYAML has them; explicit keys win.
        mapping = {name: entry for name, entry in merged.items() if name not in own}
        opened.size += 2 * len(mapping)
        self.nodes += len(mapping)
        mapping.update(own)
        return Node(None, opened.location, mapping=mapping, kind="mapping")

    def _merge(self, value: Node, merged: dict[str, Entry]) -> None:
        sources = value.items if value.kind == "sequence" else (value,)
        for source in sources:
            if source.kind != "mapping":
                self._note("<< needs a mapping or a list of mappings", value.location)
                continue
            for name, entry in source.mapping.items():
                merged.setdefault(name, entry)

    def _note(self, message: str, location: Location) -> None:
        self.problems.append(Problem(ProblemKind.SYNTAX, message, location))

    # --- scalars ---

    def _scalar(self, event: Any) -> Node:
        location = self._place(event.start_mark)
        text: str = event.value
        return Node(
            self._value(event, text), location, text=text, content=self._content(event, location)
        )

    def _value(self, event: Any, text: str) -> Any:
        tag = event.tag
        if tag is None or tag == "!":
            tag = self.loader.resolve(yaml.ScalarNode, text, event.implicit)
        if tag in _NUMBER_TAGS:
            return self._number(tag, text)
        if tag not in _PLAIN_TAGS:
            return Unknown(f"built by the tag {tag}")
        if "{{" in text and "\n" not in text:
            return Unknown("a template placeholder")
        return text

    def _number(self, tag: str, text: str) -> Any:
        if len(text) > MAX_NUMBER:
            return text
        try:
            return _Loader.yaml_constructors[tag](self.loader, yaml.ScalarNode(tag, text))
        except (ValueError, KeyError, IndexError, yaml.YAMLError, OverflowError):
            return text

    def _content(self, event: Any, location: Location) -> Optional[Location]:
        """Where the text begins, if its places are the file's (see :class:`Node`)."""
        if event.style == ">":
            return None
        if event.style == "|":
            return self._literal_content(event)
        if event.start_mark.line != event.end_mark.line:
            return None
        width = event.end_mark.column - event.start_mark.column
        if event.style in ("'", '"'):
            # Escapes make the text shorter than what is written.
            if width != len(event.value) + 2:
                return None
            return Location(self.path, location.line, location.column + 1)
        return location if width == len(event.value) else None

    def _literal_content(self, event: Any) -> Optional[Location]:
        first = event.value.lstrip("\n").partition("\n")[0]
        if not first.strip():
            return None
        if not self.lines:
            self.lines = self.text.splitlines()
        blank = len(event.value) - len(event.value.lstrip("\n"))
        index = event.start_mark.line + 1 + blank
        if index >= len(self.lines):
            return None
        column = self.lines[index].find(first)
        if column < 0:
            return None
        return Location(self.path, event.start_mark.line + 2, column + 1)


# --- interpolation ------------------------------------------------------------------


def _interpolate(document: Document) -> Document:
    """``document`` with OmegaConf references to its own scalars replaced by their values."""
    root = _Interpolation(document.root).resolve(document.root, ())
    return dataclasses.replace(document, root=root) if root is not document.root else document


class _Interpolation:
    """Resolves the references of one document, each absolute one once."""

    def __init__(self, root: Node) -> None:
        self.root = root
        self.values: dict[str, Any] = {}
        self.open: list[str] = []

    def resolve(self, node: Node, parents: tuple[Node, ...]) -> Node:
        """``node`` with its references resolved; itself when it has none."""
        if node.kind == "scalar":
            if isinstance(node.value, str) and "${" in node.value:
                return dataclasses.replace(node, value=self._expand(node.value, parents))
            return node
        inner = (*parents, node)
        if node.kind == "sequence":
            items = tuple(self.resolve(item, inner) for item in node.items)
            changed = any(new is not old for new, old in zip(items, node.items))
            return dataclasses.replace(node, items=items) if changed else node
        mapping = {key: self._entry(entry, inner) for key, entry in node.mapping.items()}
        changed = any(mapping[key] is not entry for key, entry in node.mapping.items())
        return dataclasses.replace(node, mapping=mapping) if changed else node

    def _entry(self, entry: Entry, parents: tuple[Node, ...]) -> Entry:
        node = self.resolve(entry.node, parents)
        return entry if node is entry.node else dataclasses.replace(entry, node=node)

    def _expand(self, text: str, parents: tuple[Node, ...]) -> Any:
        """Value of ``text`` with its references resolved, or Unknown."""
        whole = _INTERPOLATION.fullmatch(text)
        if whole:
            return self._lookup(whole.group(1).strip(), parents)
        parts: list[str] = []
        end = 0
        for match in _INTERPOLATION.finditer(text):
            value = self._lookup(match.group(1).strip(), parents)
            if isinstance(value, Unknown):
                return value
            parts += [text[end : match.start()], str(value)]
            end = match.end()
        result = "".join([*parts, text[end:]])
        if "${" in result or len(result) > MAX_TEXT:
            return Unknown(f"{text.strip()[:80]} is resolved at run time")
        return result

    def _lookup(self, reference: str, parents: tuple[Node, ...]) -> Any:
        unknown = Unknown(f"${{{reference[:80]}}} is resolved at run time")
        dotted = reference.lstrip(".")
        dots = len(reference) - len(dotted)
        if not _REFERENCE.fullmatch(dotted) or dots > len(parents):
            return unknown
        if dots:
            target = _walk(parents[-dots], dotted)
            is_text = target is not None and "${" in target.text
            if target is None or target.kind != "scalar" or is_text:
                return unknown
            return target.value
        if reference in self.open or len(self.open) > MAX_DEPTH:
            return unknown
        if reference not in self.values:
            self.open.append(reference)
            self.values[reference] = self._value(reference, unknown)
            self.open.pop()
        return self.values[reference]

    def _value(self, reference: str, unknown: Unknown) -> Any:
        target = _walk(self.root, reference)
        if target is None or target.kind != "scalar":
            return unknown
        if isinstance(target.value, str) and "${" in target.value:
            # A relative reference counts from its own place, which is not known here.
            return unknown if "${." in target.value else self._expand(target.value, ())
        return target.value


def _walk(node: Node, dotted: str) -> Optional[Node]:
    for part in re.split(r"[.\[\]]+", dotted.rstrip("]")):
        if node.kind == "sequence" and part.isdigit() and int(part) < len(node.items):
            node = node.items[int(part)]
        elif part in node.mapping:
            node = node.mapping[part].node
        else:
            return None
    return node
