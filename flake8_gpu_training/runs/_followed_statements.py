"""Goes through statements: assignments, branches, loops, definitions, imports."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union

from flake8_gpu_training.facts import Unknown
from flake8_gpu_training.runs._followed import (
    Class,
    Either,
    External,
    Frame,
    Function,
    Imported,
    Module,
    Table,
    bare,
    items_of,
    joined,
    take_place,
)
from flake8_gpu_training.runs._followed_expressions import MAX_ITEMS, Expressions
from flake8_gpu_training.runs._followed_objects import change_unseen, passed_through
from flake8_gpu_training.runs._followed_operators import arithmetic, text_of
from flake8_gpu_training.runs._followed_unseen import is_unseen

NEXT, END, BREAK, CONTINUE, RAISE = "next", "end", "break", "continue", "raise"
"""How a block ends: it goes on, returns, leaves or goes on with a loop, or fails."""
_HANDLERS = {kind: f"_do_{kind.__name__.lower()}" for kind in ast.stmt.__subclasses__()}
"""The method that goes through each kind of statement."""
_RECORDS = ("BaseModel", "BaseSettings", "NamedTuple")
_CHANGES = re.compile(r"(?i)_?(?:update|overrid|overwrit|merge|adjust|modify|resolve|fill|auto)")
"""Names of functions that change what they are given."""
_LEAVES_ALONE = re.compile(
    r"(?i)print|log|save|dump|dist|seed|dirs?$|show|write|check|assert|main|train|run|test|eval|start"
    r"|launch|spawn|worker|fit|__"
)
"""Names of functions that do not change the options that they are given, as a rule."""
_OPTIMIZERS = re.compile(r"(?i)optim|adam|sgd|lion\b|muon")
"""What else than options a name such as ``opt`` is bound to."""
_Def = Union[ast.FunctionDef, ast.AsyncFunctionDef]


def _only(value: Any) -> Any:
    """What a value is that can be but one thing."""
    is_one = isinstance(value, Either) and len(value.candidates) == 1
    return value.candidates[0] if is_one else value


class Statements(Expressions):
    """The statements of :class:`.following.Follower`."""

    def put(self, owner: Any, key: Any, value: Any) -> None:
        """Set a key or attribute of what may be a table."""
        raise NotImplementedError

    def drop(self, table: Table, key: Any) -> None:
        """Take ``key`` out of a table."""
        raise NotImplementedError

    def module_of(self, dotted: str, level: int, near: str) -> Optional[Module]:
        """The project's module of that name, as the file ``near`` imports it."""
        raise NotImplementedError

    def block(self, body: Sequence[ast.stmt], frame: Frame) -> str:
        """Go through statements; how the block ends."""
        for statement in body:
            self.step()
            handler = getattr(self, _HANDLERS[type(statement)], None)
            flow = handler(statement, frame) if handler is not None else NEXT
            if flow != NEXT:
                return str(flow)
        return NEXT

    # --- values and names ---

    def _do_expr(self, node: ast.Expr, frame: Frame) -> str:
        value = self.value(node.value, frame)
        call = node.value
        if isinstance(value, Unknown) and isinstance(call, ast.Call):
            self._change_arguments(call, frame)
        return RAISE if value == External("exit") else NEXT

    def _change_arguments(self, call: ast.Call, frame: Frame) -> None:
        """``update_args(args)`` of a module that is not in sight does what it is called for."""
        name = text_of(call.func).rpartition(".")[2]
        is_told = isinstance(call.func, ast.Name) and _CHANGES.match(name) is not None
        if not is_told and _LEAVES_ALONE.search(name) is not None:
            return
        callee = self.value(call.func, frame)
        if not isinstance(callee, (External, Unknown)) or not (is_told or is_unseen(callee)):
            return
        for item in (*call.args, *(keyword.value for keyword in call.keywords)):
            given = self.value(item, frame) if isinstance(item, ast.Name) else None
            if isinstance(given, Table) and given.entries:
                change_unseen(given)

    def _do_assign(self, node: ast.Assign, frame: Frame) -> str:
        value = self.value(node.value, frame)
        if isinstance(value, Unknown):
            self._assign_unread(node.targets, value, frame)
            return NEXT
        for target in node.targets:
            if isinstance(target, ast.Name) and isinstance(value, Table):
                old = frame.names.get(target.id)
                take_place(value, old)
                if value.is_open:
                    _fill_with_doubts(value, old)
            self.assign(target, value, frame)
        return NEXT

    def _assign_unread(self, targets: list[ast.expr], value: Unknown, frame: Frame) -> None:
        """Bind to what was not read; what held options holds them with any changes."""
        for target in targets:
            elements = target.elts if isinstance(target, (ast.Tuple, ast.List)) else None
            for item in [target] if elements is None else elements:
                old = frame.names.get(item.id) if isinstance(item, ast.Name) else None
                if isinstance(old, Table) and old.entries:
                    made = passed_through(old)
                    if _OPTIMIZERS.search(value.reason) is None:
                        take_place(made, old)
                    self.assign(item, made, frame)
                else:
                    unread = value if elements is None else Unknown(text_of(item))
                    self.assign(item, unread, frame)

    def _do_annassign(self, node: ast.AnnAssign, frame: Frame) -> str:
        if node.value is not None:
            self.assign(node.target, self.value(node.value, frame), frame)
        return NEXT

    def _do_augassign(self, node: ast.AugAssign, frame: Frame) -> str:
        old = self.value(ast.copy_location(_read(node.target), node.target), frame)
        new = self.value(node.value, frame)
        self.assign(node.target, arithmetic(node.op, old, new, node), frame)
        return NEXT

    def _do_delete(self, node: ast.Delete, frame: Frame) -> str:
        for target in node.targets:
            if isinstance(target, ast.Attribute):
                key: Any = target.attr
            elif isinstance(target, ast.Subscript):
                key = bare(self.value(target.slice, frame))
            else:
                continue
            owner = self.value(target.value, frame)
            if isinstance(owner, Table):
                self.drop(owner, key)
        return NEXT

    def _do_global(self, node: ast.Global, frame: Frame) -> str:
        frame.shared.update(node.names)
        return NEXT

    def assign(self, target: ast.expr, value: Any, frame: Frame) -> None:
        """Bind a target to a value."""
        if isinstance(target, ast.Name):
            self._bind(target.id, value, frame)
        elif isinstance(target, (ast.Tuple, ast.List)):
            items = items_of(_only(value))
            fits = items is not None and len(items) == len(target.elts)
            for index, inner in enumerate(target.elts):
                item = items[index] if items is not None and fits else Unknown(text_of(inner))
                self.assign(inner, item, frame)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, Unknown(text_of(target)), frame)
        elif isinstance(target, ast.Attribute):
            owner = self.value(target.value, frame)
            self.put(owner, target.attr, self.placed(target, value, frame))
        elif isinstance(target, ast.Subscript):
            owner = self.value(target.value, frame)
            key = bare(self.value(target.slice, frame))
            self.put(owner, key, self.placed(target, value, frame))

    def _bind(self, name: str, value: Any, frame: Frame) -> None:
        if name not in frame.shared:
            frame.names[name] = value
            return
        names = frame.module.names
        names[name] = joined(names[name], value) if self.doubt and name in names else value

    # --- branches and loops ---

    def _do_return(self, node: ast.Return, frame: Frame) -> str:
        frame.returned.append(None if node.value is None else self.value(node.value, frame))
        return END

    def _do_raise(self, node: ast.Raise, frame: Frame) -> str:
        return RAISE

    def _do_break(self, node: ast.Break, frame: Frame) -> str:
        return BREAK

    def _do_continue(self, node: ast.Continue, frame: Frame) -> str:
        return CONTINUE

    def _do_if(self, node: ast.If, frame: Frame) -> str:
        truth = self.truth(node.test, frame)
        if truth is not None:
            return self.block(node.body if truth else node.orelse, frame)
        return self._either([node.body, node.orelse], frame)

    def _do_match(self, node: Any, frame: Frame) -> str:
        self.value(node.subject, frame)
        return self._either([*(case.body for case in node.cases), []], frame)

    def _either(self, bodies: Sequence[Sequence[ast.stmt]], frame: Frame) -> str:
        """Go through bodies of which one is run, nobody knows which."""
        before = dict(frame.names)
        ends: list[tuple[str, dict[str, Any]]] = []
        self.doubt += 1
        for body in bodies:
            _reset(frame.names, before)
            flow = self.block(body, frame)
            ends.append((flow, dict(frame.names)))
        self.doubt -= 1
        going = [names for flow, names in ends if flow == NEXT]
        left = [flow for flow, _ in ends if flow not in (NEXT, RAISE)]
        if not going:
            return left[0] if left else RAISE
        if left:
            # What follows is done only when the branch that leaves was not taken.
            frame.doubts += 1
            self.doubt += 1
        # What a branch sets before it leaves a loop holds behind the loop, too.
        out = [names for flow, names in ends if flow in (BREAK, CONTINUE)]
        _reset(frame.names, _joined_names([*going, *out]))
        return NEXT

    def _do_for(self, node: Union[ast.For, ast.AsyncFor], frame: Frame) -> str:
        items = items_of(self.value(node.iter, frame))
        if items is None or len(items) > MAX_ITEMS:
            return self._unknown_loop(node.target, node.body, frame)
        for item in items:
            self.assign(node.target, item, frame)
            flow = self.block(node.body, frame)
            if flow == BREAK:
                return NEXT
            if flow in (END, RAISE):
                return flow
        return self.block(node.orelse, frame)

    _do_asyncfor = _do_for

    def _do_while(self, node: ast.While, frame: Frame) -> str:
        if self.truth(node.test, frame) is False:
            return self.block(node.orelse, frame)
        return self._unknown_loop(None, node.body, frame)

    def _unknown_loop(
        self, target: Optional[ast.expr], body: Sequence[ast.stmt], frame: Frame
    ) -> str:
        before = dict(frame.names)
        self.doubt += 1
        # What the body changes is not known in it, since it may be done again.
        for name in _assigned_names(body):
            if name in frame.names:
                frame.names[name] = Unknown(name)
        if target is not None:
            self.assign(target, Unknown(text_of(target)), frame)
        self.block(body, frame)
        self.doubt -= 1
        _reset(frame.names, _joined_names([before, dict(frame.names)]))
        return NEXT

    def _do_with(self, node: Union[ast.With, ast.AsyncWith], frame: Frame) -> str:
        for item in node.items:
            value = self.value(item.context_expr, frame)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, value, frame)
        return self.block(node.body, frame)

    _do_asyncwith = _do_with

    def _do_try(self, node: ast.Try, frame: Frame) -> str:
        before = dict(frame.names)
        may_lack = any(_catches_imports(handler) for handler in node.handlers)
        doubts = may_lack and any(self._is_foreign(item, frame) for item in node.body)
        self.doubt += doubts
        flow = self.block(node.body, frame)
        if flow == NEXT:
            flow = self.block(node.orelse, frame)
        self.doubt -= doubts
        after = dict(frame.names)
        for handler in node.handlers:
            falls_back = doubts and _catches_imports(handler)
            if not falls_back and not _matters(handler):
                continue
            _reset(frame.names, before)
            self.doubt += 1
            ended = self.block(handler.body, frame)
            self.doubt -= 1
            if ended == NEXT and flow == RAISE:
                after, flow = dict(frame.names), NEXT
            elif ended == NEXT:
                # A program that goes on with what it could not import has imported it.
                names = _without_things(after, frame.names) if falls_back else frame.names
                after = _joined_names([after, names])
        _reset(frame.names, after)
        last = self.block(node.finalbody, frame)
        return flow if last == NEXT else last

    def _is_foreign(self, node: ast.stmt, frame: Frame) -> bool:
        """Whether a statement imports what may not be installed."""
        if isinstance(node, ast.Import):
            names, level = [item.name for item in node.names], 0
        elif isinstance(node, ast.ImportFrom):
            names, level = [node.module or ""], node.level
        else:
            return False
        near = frame.module.path
        return any(self.module_of(name, level, near) is None for name in names)

    # --- definitions and imports ---

    def _do_import(self, node: ast.Import, frame: Frame) -> str:
        for item in node.names:
            dotted = item.name if item.asname else item.name.partition(".")[0]
            frame.names[item.asname or dotted] = Imported(dotted)
        return NEXT

    def _do_importfrom(self, node: ast.ImportFrom, frame: Frame) -> str:
        for item in node.names:
            if item.name != "*":
                name = item.asname or item.name
                frame.names[name] = Imported(node.module or "", item.name, node.level)
                continue
            module = self.module_of(node.module or "", node.level, frame.module.path)
            names = module.names if module is not None else {}
            frame.names.update({n: v for n, v in names.items() if not n.startswith("_")})
        return NEXT

    def _do_functiondef(self, node: _Def, frame: Frame) -> str:
        frame.names[node.name] = self.function(node, frame)
        return NEXT

    _do_asyncfunctiondef = _do_functiondef

    def function(self, node: Union[_Def, ast.Lambda], frame: Frame) -> Function:
        """A function as it is defined, its defaults evaluated."""
        arguments = node.args
        names = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        count = len(arguments.defaults)
        pairs = [*zip(names[len(names) - count :], arguments.defaults)]
        pairs += [
            (item.arg, default)
            for item, default in zip(arguments.kwonlyargs, arguments.kw_defaults)
            if default is not None
        ]
        defaults = {name: self.value(default, frame) for name, default in pairs}
        decorators = () if isinstance(node, ast.Lambda) else _decorators(node)
        closure = frame.names if frame.function is not None else {}
        return Function(node, frame.module, defaults, tuple(decorators), None, closure)

    def _do_classdef(self, node: ast.ClassDef, frame: Frame) -> str:
        bases = tuple(self.value(base, frame) for base in node.bases)
        last = [base.name.rpartition(".")[2] for base in bases if isinstance(base, External)]
        is_record = any(name in _RECORDS for name in last) or any(
            name.endswith(("dataclass", "define", "attrs", "attr.s")) for name in _decorators(node)
        )
        annotated = {
            item.target.id: item
            for item in node.body
            if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
        }
        fields = {name: item.value for name, item in annotated.items()}
        inner = Frame(frame.module, {})
        self.block(node.body, inner)
        made = Class(node.name, frame.module, bases, inner.names, fields, is_record, annotated)
        frame.names[node.name] = made
        return NEXT


def _fill_with_doubts(made: Table, old: Any) -> None:
    """What ``old`` options had, ``made`` in their place may have with any value."""
    if isinstance(old, Table) and old is not made:
        for key, value in passed_through(old).entries.items():
            if key not in made.entries:
                made.put(key, value)


def _decorators(node: Union[_Def, ast.ClassDef]) -> list[str]:
    return [text_of(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list]


def _read(target: Union[ast.Name, ast.Attribute, ast.Subscript]) -> ast.expr:
    """The target of ``+=`` as an expression that is read."""
    if isinstance(target, ast.Name):
        return ast.Name(target.id, ast.Load())
    if isinstance(target, ast.Attribute):
        return ast.Attribute(target.value, target.attr, ast.Load())
    return ast.Subscript(target.value, target.slice, ast.Load())


def _reset(names: dict[str, Any], to: Mapping[str, Any]) -> None:
    """Make ``names`` equal to ``to``, in place: closures and modules hold on to it."""
    kept = dict(to)
    names.clear()
    names.update(kept)


def _joined_names(states: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    found = dict(states[0])
    for state in states[1:]:
        for name, value in state.items():
            old = found.get(name, value)
            found[name] = value if old is value else joined(old, value)
    return found


def _without_things(after: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """``other`` but for names that are modules, classes and functions ``after`` an import."""
    things = (Imported, External, Module, Class, Function)
    return {n: v for n, v in other.items() if not isinstance(after.get(n), things)}


_CATCHES = frozenset({"", "ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


def _catches_imports(handler: ast.ExceptHandler) -> bool:
    kind = handler.type
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any((text_of(item) if item is not None else "") in _CATCHES for item in kinds)


_MATTERS = "_followed_matters"


def _matters(handler: ast.ExceptHandler) -> bool:
    """Whether an exception handler makes up for what failed; told once for each."""
    told: Optional[bool] = getattr(handler, _MATTERS, None)
    if told is None:
        told = _makes_up(handler)
        setattr(handler, _MATTERS, told)
    return told


def _makes_up(handler: ast.ExceptHandler) -> bool:
    """Whether an exception handler makes up for what failed, imports aside."""
    kind = text_of(handler.type) if handler.type is not None else ""
    if "ImportError" in kind or "ModuleNotFoundError" in kind:
        return False
    changes = (ast.Assign, ast.AugAssign, ast.AnnAssign)
    return any(isinstance(child, changes) for item in handler.body for child in ast.walk(item))


_ASSIGNED = "_followed_assigned"


def _assigned_names(body: Sequence[ast.stmt]) -> frozenset[str]:
    """Names that a body assigns; told once for each body, and kept with its first statement."""
    told: Optional[frozenset[str]] = getattr(body[0], _ASSIGNED, None)
    if told is None:
        told = frozenset(
            node.id
            for statement in body
            for node in ast.walk(statement)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        )
        setattr(body[0], _ASSIGNED, told)
    return told
