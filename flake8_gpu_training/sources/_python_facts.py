"""Turns the drafts of a Python file into its facts: names resolved, values evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Optional

import libcst as cst

from flake8_gpu_training.facts import (
    Argument,
    Assignment,
    Call,
    ClassDef,
    Condition,
    Document,
    Entry,
    Import,
    Location,
    Loop,
    Node,
    Origin,
    PythonFile,
    Setting,
    Unknown,
)
from flake8_gpu_training.sources._python_interest import (
    CALLS,
    HOT_CALLS,
    LOADER_NAME,
    chooses_weights,
    exchanges_attention,
    is_constructor,
    is_field_name,
    shows_samples,
)
from flake8_gpu_training.sources._python_options import OptionReader
from flake8_gpu_training.sources._python_positions import Positions
from flake8_gpu_training.sources._python_scopes import (
    Scope,
    Test,
    class_of,
    dotted_name,
    receiver_class,
    resolve,
)
from flake8_gpu_training.sources._python_tests import has_modulo
from flake8_gpu_training.sources._python_values import DictItem, Evaluator
from flake8_gpu_training.sources._python_walk import (
    AssignmentDraft,
    CallDraft,
    ClassDraft,
    DictDraft,
    Drafts,
    LoopDraft,
)

_TRAINER_BASE = ("Trainer", "LightningModule", "TrainingModule")
_ALWAYS = frozenset(
    {"print", "open", "float", "os.system", "os.putenv", "PIL.Image.open", "numpy.load"}
)
_ITERATION_WRAPPERS = frozenset(
    {"enumerate", "tqdm", "trange", "zip", "iter", "islice", "prepare", "track", "cycle", "next"}
)
_MAX_TEXT = 200
_MAX_TEST = 400


class FactBuilder:
    """Builds the facts of one file."""

    def __init__(
        self,
        drafts: Drafts,
        positions: Positions,
        path: str,
        methods: Mapping[int, tuple[str, ...]],
    ) -> None:
        self._drafts = drafts
        self._positions = positions
        self._path = path
        self._methods = methods
        self._evaluator = Evaluator(positions)
        self._loops: dict[LoopDraft, Optional[Loop]] = {}
        self._classes = {draft.scope.name: draft for draft in drafts.classes}

    def build(self) -> PythonFile:
        """All facts of the file."""
        drafts = self._drafts
        loops = filter(None, map(self._loop, drafts.loops))
        calls, options, environment = [], OptionReader(self), list(self._environment_writes())
        for draft in drafts.calls:
            call = self._call(draft)
            if call is not None and not options.take(call):
                environment.extend(_environment_calls(call))
                calls.append(call)
        options.take_parameters(drafts.parameters)
        return PythonFile(
            path=self._path,
            imports=tuple(
                Import(item.module, item.name, item.alias, self._positions.at(item.node))
                for item in drafts.imports
            ),
            calls=tuple(calls),
            options=tuple(options.options()),
            classes=tuple(self._class(draft) for draft in drafts.classes),
            loops=tuple(loops),
            bindings=MappingProxyType(self._bindings()),
            attributes=tuple(self._attributes()),
            environment=tuple(sorted(environment, key=_place)),
            dicts=tuple(
                document
                for draft in drafts.dicts
                for document in [self._document(draft)]
                if document
            ),
            has_main=drafts.has_main,
        )

    # -- shared with the option reader

    def value(self, node: cst.BaseExpression, scope: Scope) -> Any:
        """Value of an expression."""
        return self._evaluator.value(node, scope)

    def argument(self, node: cst.BaseExpression, scope: Scope, place: cst.CSTNode) -> Argument:
        """An argument; ``place`` is the node it is reported at."""
        text = self._positions.text(node)
        positions = self._positions
        return Argument(
            self.value(node, scope), positions.at(place), text[:_MAX_TEXT], positions.at(node)
        )

    def at(self, node: cst.CSTNode) -> Location:
        """Place of a node."""
        return self._positions.at(node)

    # -- calls

    def _call(self, draft: CallDraft) -> Optional[Call]:
        node = draft.node
        func = node.func if isinstance(node, cst.Call) else node
        name, receiver = self._name(func, draft.scope)
        loop = self._loop(draft.loop) if draft.loop is not None else None
        if not name or not self._is_wanted(name, receiver, loop, draft):
            return None
        positions = self._positions
        if not isinstance(node, cst.Call):
            return Call(
                name,
                positions.at(node),
                scope=draft.scope.name,
                is_decorator=True,
                receiver=receiver,
                end=positions.end(node),
            )
        positional, keywords, is_open = self._arguments(node, draft.scope)
        insert_at, comma = self._insertion(node)
        return Call(
            name=name,
            location=positions.at(node),
            positional=tuple(positional),
            keywords=MappingProxyType(keywords),
            is_open=is_open,
            scope=draft.scope.name,
            loop=loop,
            assigned_to=self._used(name, draft.assigned_to),
            receiver=receiver,
            is_decorator=draft.is_decorator,
            insert_at=insert_at,
            ends_with_comma=comma,
            end=positions.end(node),
            guarded=draft.guarded or draft.left,
            conditional=draft.guarded,
            conditions=self._conditions(draft.tests, draft.scope),
            block_end=positions.end(draft.block) if draft.block is not None else None,
            of_script=draft.of_script,
        )

    def _used(self, name: str, target: str) -> str:
        """``target``, with ``_`` for the rest of a command line that is read nowhere."""
        first, comma, rest = target.rpartition(", ")
        if not comma or not name.endswith("parse_known_args") or not rest.isidentifier():
            return target
        return target if self._positions.count(rest) > 1 else f"{first}, _"

    def _conditions(self, tests: tuple[Test, ...], scope: Scope) -> tuple[Condition, ...]:
        return tuple(self._condition(node, holds, scope) for node, holds in tests)

    def _condition(
        self, node: Optional[cst.BaseExpression], holds: bool, scope: Scope
    ) -> Condition:
        if node is None:
            return Condition("", holds)
        text = self._positions.text(_counted(node, scope) or node)
        return Condition(text if len(text) <= _MAX_TEST else "", holds, self.at(node))

    def _name(self, func: cst.BaseExpression, scope: Scope) -> tuple[str, str]:
        """Resolved name of a called thing, and the class of its receiver."""
        written = dotted_name(func)
        if written:
            head = written.rpartition(".")[0]
            receiver = receiver_class(head, scope) if head else ""
            return resolve(written, scope), receiver
        if isinstance(func, cst.Attribute):
            inner = func.value
            head = ""
            if isinstance(inner, cst.Call):
                head = f"{self._name(inner.func, scope)[0]}()"
            elif isinstance(inner, cst.Subscript):
                head = self._held_by(inner) or f"{dotted_name(inner.value)}[]"
            return f"{head}.{func.attr.value}", class_of(inner, scope)
        if isinstance(func, cst.Subscript):
            # A Triton kernel is launched so: kernel[grid](...).
            return self._held_by(func) or resolve(dotted_name(func.value), scope), ""
        return "", ""

    def _held_by(self, node: cst.Subscript) -> str:
        """What ``modules["SFTTrainer"]`` is where the file imports one thing of that name: a
        function that imports when it is called hands its imports on in a dict."""
        index = node.slice[0].slice if len(node.slice) == 1 else None
        key = index.value if isinstance(index, cst.Index) else None
        name = key.value[1:-1] if isinstance(key, cst.SimpleString) else ""
        found = {f"{i.module}.{i.name}" for i in self._drafts.imports if i.name == name}
        return found.pop() if name.isidentifier() and len(found) == 1 else ""

    def _is_wanted(self, name: str, receiver: str, loop: Optional[Loop], draft: CallDraft) -> bool:
        if draft.is_decorator or _is_hot(loop):
            return True
        method = name.rpartition(".")[2]
        return (
            is_field_name(name)
            or is_field_name(receiver)
            or method in CALLS
            or method in HOT_CALLS
            or is_constructor(method)
            or name in _ALWAYS
            or (method == "map" and name != "map")
            or name.startswith(("subprocess.", "os.environ.", "sys.argv."))
            or exchanges_attention(method)
            or chooses_weights(method)
            or shows_samples(method)
            or (loop is not None and method in draft.scope.top().definitions)
        )

    def _arguments(
        self, node: cst.Call, scope: Scope
    ) -> tuple[list[Argument], dict[str, Argument], bool]:
        positional: list[Argument] = []
        keywords: dict[str, Argument] = {}
        is_open = False
        for item in node.args:
            if item.keyword is not None:
                keywords[item.keyword.value] = self.argument(item.value, scope, item)
            elif not item.star:
                positional.append(self.argument(item.value, scope, item))
            elif item.star == "**":
                entries = self._evaluator.entries(item.value, scope)
                if entries is None:
                    entries = self._evaluator.entries_of_two_names(item.value, scope)
                is_open = is_open or entries is None
                for entry in entries or ():
                    keywords[str(entry.key)] = self.argument(entry.value, entry.scope, entry.node)
            else:
                is_open = True
        return positional, keywords, is_open

    def _insertion(self, node: cst.Call) -> tuple[Optional[Location], bool]:
        positions = self._positions
        if not node.args:
            offset = positions.after_open_paren(positions.span(node.func)[1])
            return positions.location(offset), False
        last = node.args[-1]
        if isinstance(last.value, cst.GeneratorExp) and not last.value.lpar:
            return None, False
        end = self._argument_end(last)
        after = positions.after_trailing_comma(end)
        return positions.location(after), after != end

    def _argument_end(self, argument: cst.Arg) -> int:
        return self._positions.span(argument)[1]

    # -- loops

    def _loop(self, draft: Optional[LoopDraft]) -> Optional[Loop]:
        if draft is None:
            return None
        if draft not in self._loops:
            self._loops[draft] = self._build_loop(draft)
        return self._loops[draft]

    def _build_loop(self, draft: LoopDraft) -> Optional[Loop]:
        parent = self._loop(draft.parent)
        node = draft.node
        place = self.at(node)
        if isinstance(node, cst.FunctionDef):
            if not self._is_trainer_method(draft.scope):
                return None
            return Loop(place, node.name.value, over_batches=True, trains=True)
        if isinstance(node, cst.While):
            text = self._positions.text(node.test)[:_MAX_TEXT]
            return Loop(place, text, False, draft.trains, parent, draft.guarded)
        iterable = _unwrapped(node.iter)
        text = self._positions.text(iterable)[:_MAX_TEXT]
        over = self._is_loader(iterable, draft.scope)
        target = self._positions.text(node.target)[:_MAX_TEXT]
        return Loop(place, text, over, draft.trains, parent, draft.guarded, target)

    def _is_loader(self, node: cst.BaseExpression, scope: Scope) -> bool:
        if isinstance(node, cst.Call):
            method = dotted_name(node.func).rpartition(".")[2]
            made = class_of(node, scope).rpartition(".")[2]
            return method.endswith(("_dataloader", "_loader")) or made.endswith("DataLoader")
        if isinstance(node, cst.Subscript):
            node = node.value
        written = dotted_name(node)
        if not written:
            return False
        made = receiver_class(written, scope)
        if made:
            return made.endswith("Loader") or self._is_wrapped_loader(written, scope)
        return bool(LOADER_NAME.search(written)) or self._is_wrapped_loader(written, scope)

    def _is_wrapped_loader(self, written: str, scope: Scope) -> bool:
        """Whether a name holds ``tqdm(loader)`` or the like."""
        _, bindings = scope.lookup(written)
        for binding in bindings:
            value = binding.value
            if isinstance(value, cst.Call) and binding.keyed is None:
                inner = _unwrapped(value)
                if inner is not value and dotted_name(inner) != written:
                    return self._is_loader(inner, binding.scope)
        return False

    def _is_trainer_method(self, scope: Scope) -> bool:
        owner = scope.parent
        for _ in range(8):
            draft = self._classes.get(owner.name) if owner is not None else None
            if draft is None:
                return False
            bases = self._bases(draft)
            if any(base.endswith(_TRAINER_BASE) for base in bases):
                return True
            owner = next(
                (self._classes[base].scope for base in bases if base in self._classes), None
            )
        return False

    # -- classes

    def _bases(self, draft: ClassDraft) -> tuple[str, ...]:
        scope = draft.scope.parent or draft.scope
        names = []
        for argument in draft.node.bases:
            value = argument.value
            if isinstance(value, cst.Subscript):
                value = value.value
            written = dotted_name(value)
            if written:
                names.append(resolve(written, scope))
        return tuple(names)

    def _class(self, draft: ClassDraft) -> ClassDef:
        scope = draft.scope.parent or draft.scope
        decorators = []
        for decorator in draft.node.decorators:
            expression = decorator.decorator
            func = expression.func if isinstance(expression, cst.Call) else expression
            decorators.append(resolve(dotted_name(func), scope))
        fields = {}
        for node in draft.annotated:
            name = dotted_name(node.target)
            if name:
                value = self._field_value(node.value, draft.scope)
                fields[name] = Setting(name, value, self.at(node.target), Origin.DEFAULT)
        location = self.at(draft.node)
        return ClassDef(
            name=draft.scope.name,
            location=location,
            bases=self._bases(draft),
            decorators=tuple(decorators),
            fields=MappingProxyType(fields),
            methods=self._methods.get(location.line, tuple(draft.methods)),
        )

    def _field_value(self, node: Optional[cst.BaseExpression], scope: Scope) -> Any:
        """Default of a dataclass field."""
        if node is None:
            return Unknown("no default")
        if not isinstance(node, cst.Call):
            return self.value(node, scope)
        if dotted_name(node.func).rpartition(".")[2] not in ("field", "Field"):
            return self.value(node, scope)
        for argument in node.args:
            keyword = argument.keyword.value if argument.keyword is not None else ""
            if keyword == "default" or (not keyword and not argument.star):
                return self.value(argument.value, scope)
            if keyword == "default_factory":
                return self._made(argument.value, scope)
        return Unknown("no default")

    def _made(self, factory: cst.BaseExpression, scope: Scope) -> Any:
        if isinstance(factory, cst.Lambda):
            return self.value(factory.body, scope)
        made: Any = {"list": [], "dict": {}, "tuple": (), "set": set()}.get(dotted_name(factory))
        return Unknown(self._positions.text(factory)[:_MAX_TEXT]) if made is None else made

    # -- assignments

    def _bindings(self) -> dict[str, Setting]:
        found: dict[str, Setting] = {}
        for scope in self._drafts.scopes:
            if "<lambda>" in scope.name:
                continue
            for name, bindings in scope.bindings.items():
                values = [binding for binding in bindings if binding.value is not None]
                if not values or "." in name:
                    continue
                full = f"{scope.name}.{name}" if scope.name else name
                value = self._evaluator.bound(name, scope)
                found[full] = Setting(full, value, self.at(values[-1].node))
        return found

    def _attributes(self) -> list[Assignment]:
        found = []
        for draft in self._drafts.assignments:
            written = dotted_name(draft.target)
            if written and not (written.startswith("self.") and written.count(".") == 1):
                name = resolve(written, draft.scope)
                value = self.value(draft.value, draft.scope)
                conditions = self._conditions(draft.tests, draft.scope)
                place = self.at(draft.target)
                found.append(
                    Assignment(
                        name,
                        value,
                        place,
                        scope=draft.scope.name,
                        conditions=conditions,
                        loop=self._loop(draft.loop),
                    )
                )
        return found

    def _environment_writes(self) -> list[Setting]:
        found = []
        for draft in self._drafts.assignments:
            setting = self._environment_write(draft)
            if setting is not None:
                found.append(setting)
        return found

    def _environment_write(self, draft: AssignmentDraft) -> Optional[Setting]:
        target = draft.target
        if not isinstance(target, cst.Subscript) or len(target.slice) != 1:
            return None
        index = target.slice[0].slice
        if resolve(dotted_name(target.value), draft.scope) != "os.environ":
            return None
        name = self.value(index.value, draft.scope) if isinstance(index, cst.Index) else None
        if not isinstance(name, str):
            return None
        value = self.value(draft.value, draft.scope)
        return Setting(name, value, self.at(target), Origin.ENVIRONMENT)

    # -- dict displays

    def _document(self, draft: DictDraft) -> Optional[Document]:
        root = self._node(draft.node, draft.scope)
        if _count_keys(root) < 2:
            return None
        return Document(self._path, root, "python", draft.name)

    def _node(self, node: cst.BaseExpression, scope: Scope) -> Node:
        place = self.at(node)
        if isinstance(node, cst.Dict):
            mapping: dict[str, Entry] = {}
            for element in node.elements:
                for item in self._items(element, scope):
                    key = item.key
                    mapping[key] = Entry(
                        key, self.at(item.node), self._node(item.value, item.scope)
                    )
            return Node(None, place, MappingProxyType(mapping), kind="mapping")
        if isinstance(node, (cst.List, cst.Tuple)):
            parts = [self._node(element.value, scope) for element in node.elements[:1000]]
            return Node(None, place, items=tuple(parts), kind="sequence")
        text = self._positions.text(node)[:_MAX_TEXT]
        return Node(self.value(node, scope), place, text=text)

    def _items(self, element: Any, scope: Scope) -> list[DictItem]:
        if isinstance(element, cst.StarredDictElement):
            items = self._evaluator.entries(element.value, scope) or []
        else:
            key = self.value(element.key, scope)
            items = [DictItem(key, element.value, element, scope)]
        return [item for item in items if isinstance(item.key, str)]


def _environment_calls(call: Call) -> list[Setting]:
    if call.name not in ("os.environ.setdefault", "os.putenv") or len(call.positional) != 2:
        if call.name != "os.environ.update":
            return []
        pairs: Mapping[Any, Any] = {name: item.value for name, item in call.keywords.items()}
        if call.positional and isinstance(call.positional[0].value, dict):
            pairs = {**call.positional[0].value, **pairs}
        return [Setting(str(k), v, call.location, Origin.ENVIRONMENT) for k, v in pairs.items()]
    name, value = (argument.value for argument in call.positional)
    if not isinstance(name, str):
        return []
    return [Setting(name, value, call.location, Origin.ENVIRONMENT)]


def _count_keys(node: Node) -> int:
    """Keys of a mapping and of the mappings in it."""
    return len(node.mapping) + sum(_count_keys(entry.node) for entry in node.mapping.values())


def _place(setting: Setting) -> tuple[int, int]:
    place = setting.location
    return (place.line, place.column) if place is not None else (0, 0)


def _is_hot(loop: Optional[Loop]) -> bool:
    while loop is not None:
        if loop.over_batches or loop.trains:
            return True
        loop = loop.parent
    return False


def _unwrapped(node: cst.BaseExpression) -> cst.BaseExpression:
    """What is iterated under ``enumerate(tqdm(...))``."""
    for _ in range(8):
        if not isinstance(node, cst.Call) or not node.args or node.args[0].star:
            break
        if dotted_name(node.func).rpartition(".")[2] not in _ITERATION_WRAPPERS:
            break
        node = node.args[0].value
    return node


def _counted(test: cst.BaseExpression, scope: Scope) -> Optional[cst.BaseExpression]:
    """The comparison of a remainder that a name stands for: ``last = step % n == 0``."""
    if not isinstance(test, cst.Name):
        return None
    bound = scope.bindings.get(test.value, [])
    value = bound[0].value if len(bound) == 1 else None
    return value if isinstance(value, cst.Comparison) and has_modulo(value) else None
