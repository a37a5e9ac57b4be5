"""The parameters of one release, gathered group by group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from released.archives import Release
from released.classes import NOTHING, ClassReader, Field, Found
from released.mappings import KeyReader
from released.parsers import arguments, joined, names, popped, signature

Foreign = list[tuple[str, str]]
"""Classes of other distributions: (package, class)."""


class Collector:
    """Gathers the groups of one release."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self.reader = ClassReader(release)
        self.groups: dict[str, dict[str, Field]] = {}
        self.extends: dict[str, Foreign] = {}
        self.closed: set[str] = set()

    def classes(self, group: str, path: str, *names: str) -> None:
        """The fields of dataclasses or pydantic models of a module, as one group."""
        module = self.release.module(path)
        if module is None:
            return
        for name in names:
            found = self.reader.find(module, name)
            if found is None:
                continue
            fields, foreign = self.reader.fields(found)
            self.groups[group] = joined(fields, self.groups.get(group, {}))
            known = self.extends.setdefault(group, [])
            known += [one for one in foreign if one not in known]

    def every_class(self, pattern: str, ending: str) -> None:
        """Each class of the matching modules whose name ends so, as a group of its own."""
        for path in self.release.paths(pattern):
            module = self.release.module(path)
            for name in module.classes if module is not None else ():
                if name.endswith(ending):
                    self.classes(name, path, name)

    def section(self, group: str, path: str, name: str) -> None:
        """A section of a configuration that a pydantic model reads, and those within it."""
        module = self.release.module(path)
        found = self.reader.find(module, name) if module is not None else None
        if found is not None:
            self._section(group, found)

    def _section(self, group: str, found: Found) -> None:
        self.groups[group] = self.reader.fields(found)[0]
        if self.reader.refuses_others(found):
            self.closed.add(group)
        for name, model in self.reader.models(found):
            field = self.groups[group][name]
            self.groups[group][name] = replace(field, types=("dict",))
            self._section(f"{group}.{name}", model)

    def keys(
        self, path: str, roots: Mapping[str, tuple[str, ...]], whole: str, skipped: str = ""
    ) -> None:
        """The keys that a module reads from a dictionary; a section's keys are its group."""
        module = self.release.module(path)
        if module is None:
            return
        for keys, field in KeyReader(self.reader, module, roots).keys(skipped).items():
            group = self.groups.setdefault(".".join(keys[:-1]) or whole, {})
            if field.name not in group or group[field.name].default is NOTHING:
                group[field.name] = field

    def parser(self, group: str, *paths: str) -> None:
        """The options that ``add_argument`` calls of the modules declare, as one group."""
        for path in paths:
            module = self.release.module(path)
            if module is not None:
                found = arguments(self.reader, module)
                self.groups[group] = joined(self.groups.get(group, {}), found)

    def call(self, group: str, path: str, name: str) -> None:
        """The parameters of a function or method, as one group."""
        module = self.release.module(path)
        found = signature(self.reader, module, name) if module is not None else {}
        if found:
            self.groups[group] = found

    def constructors(self, path: str, ending: str) -> None:
        """The parameters of each class of a module whose name ends so, as a group of its own."""
        module = self.release.module(path)
        for name in module.classes if module is not None else ():
            if name.endswith(ending):
                self.call(name, path, f"{name}.__init__")

    def names(self, path: str, ending: str) -> None:
        """The names that the constructor of each public class takes whose name ends so."""
        module = self.release.module(path)
        for name in module.classes if module is not None else ():
            if name.endswith(ending) and not name.startswith(("_", "Base")):
                found = names(self.reader, self.reader.find(module, name))
                if found:
                    self.groups[name] = found

    def popped(self, group: str, path: str, name: str) -> None:
        """What a class takes from its ``**kwargs``, as one group."""
        module = self.release.module(path)
        found = popped(self.reader, module, name) if module is not None else {}
        if found:
            self.groups[group] = found
