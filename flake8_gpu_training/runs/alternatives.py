"""Words that branches of a script leave open: each text they may have, parsed on its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from flake8_gpu_training.facts import Document, Entry, Node, Setting, Unknown, Word, known

MAX_ALTERNATIVES = 32
_BY_BRANCH = "it depends on a branch of the script"


def alternatives(words: Sequence[Word]) -> tuple[tuple[Word, ...], ...]:
    """The command lines that ``words`` may be, where some word may be several; else none.

    ``$ARGS`` may be ``--batch 2`` or ``--batch 8 --checkpointing``. A word of flags may also be
    missing: a branch that sets nothing leaves no candidate.
    """
    made: list[tuple[Word, ...]] = [()]
    for word in words:
        choices = _choices(word)
        if len(made) * len(choices) > MAX_ALTERNATIVES:
            return ()
        made = [(*before, *choice) for before in made for choice in choices]
    return tuple(made) if len(made) > 1 else ()


def _choices(word: Word) -> tuple[tuple[Word, ...], ...]:
    if not may_be_several(word):
        return ((word,),)
    texts = [text.split() for text in word.value.candidates if isinstance(text, str)]
    if any(text and text[0].startswith("-") for text in texts) and [] not in texts:
        texts.append([])
    return tuple(
        tuple(dataclasses.replace(word, value=piece, splits=False) for piece in text)
        for text in texts
    )


def may_be_several(word: Word) -> bool:
    """Whether a word with candidates is not one value in each of them."""
    if known(word.value) or not word.splits:
        return False
    texts = [text for text in word.value.candidates if isinstance(text, str)]
    return any(len(text.split()) != 1 or text.startswith("-") for text in texts)


def agreed(found: Sequence[Mapping[str, Setting]]) -> dict[str, Setting]:
    """What all of ``found`` say; unknown is what they differ in, or what one of them lacks."""
    made: dict[str, Setting] = {}
    for name in dict.fromkeys(name for settings in found for name in settings):
        present = [settings[name] for settings in found if name in settings]
        first = present[0]
        if len(present) == len(found) and all(_same(first, other) for other in present):
            made[name] = first
            continue
        unknown = Unknown(_BY_BRANCH, _candidates(setting.value for setting in present))
        written = next((setting for setting in present if setting.location is not None), first)
        made[name] = dataclasses.replace(written, value=unknown, text="", value_location=None)
    return made


def _same(one: Setting, other: Setting) -> bool:
    return type(one.value) is type(other.value) and bool(one.value == other.value)


def _candidates(values: Iterable[object]) -> tuple[object, ...]:
    found: list[object] = []
    for value in values:
        for choice in value.candidates if isinstance(value, Unknown) else (value,):
            if not any(type(choice) is type(seen) and choice == seen for seen in found):
                found.append(choice)
    return tuple(found)


def agreed_document(documents: Sequence[Document]) -> Document:
    """What holds whichever of several files is read: the first, unknown where they differ."""
    return dataclasses.replace(documents[0], root=_agreed_node([one.root for one in documents]))


def _agreed_node(nodes: Sequence[Node]) -> Node:
    first = nodes[0]
    if all(node.kind == "mapping" for node in nodes):
        names = dict.fromkeys(name for node in nodes for name in node.mapping)
        return dataclasses.replace(
            first, mapping={name: _agreed_entry(nodes, name) for name in names}
        )
    values = [node.plain() for node in nodes]
    if all(type(value) is type(values[0]) and value == values[0] for value in values):
        return first
    return Node(Unknown(_BY_BRANCH, _candidates(values)), first.location)


def _agreed_entry(nodes: Sequence[Node], name: str) -> Entry:
    entries = [node.mapping[name] for node in nodes if name in node.mapping]
    found = [entry.node for entry in entries]
    if len(found) == len(nodes):
        return dataclasses.replace(entries[0], node=_agreed_node(found))
    unknown = Unknown(_BY_BRANCH, _candidates(node.plain() for node in found))
    return dataclasses.replace(entries[0], node=Node(unknown, found[0].location))
