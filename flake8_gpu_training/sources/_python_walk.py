"""The one traversal of a Python file's syntax tree: gathers drafts of its facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, Optional, Union

import libcst as cst

from flake8_gpu_training.sources._python_interest import HOT_METHODS, OPTIMIZER_LIKE
from flake8_gpu_training.sources._python_scopes import Binding, Scope, Test, dotted_name
from flake8_gpu_training.sources._python_tests import (
    has_modulo,
    is_main_test,
    is_rank_test,
    leaves,
    never_holds,
    returns,
)

_SKIPPED_FIELDS = frozenset(
    [
        "lpar",
        "rpar",
        "lbracket",
        "rbracket",
        "lbrace",
        "rbrace",
        "comma",
        "colon",
        "semicolon",
        "dot",
        "equal",
        "operator",
        "whitespace",
        "whitespace_before",
        "whitespace_after",
        "leading_lines",
        "lines_after_decorators",
        "trailing_whitespace",
        "header",
        "footer",
        "annotation",
        "returns",
        "type_parameters",
        "indent",
        "newline",
        "asynchronous",
        "star",
    ]
)
"""Fields without facts: punctuation, blanks, annotations."""

_Loop = Union[cst.For, cst.While, cst.FunctionDef]


@dataclass(eq=False)
class LoopDraft:
    """A loop being read; ``node`` is a method for an implicit loop."""

    node: _Loop
    scope: Scope
    parent: Optional[LoopDraft]
    trains: bool = False
    implicit: bool = False
    guarded: bool = False


@dataclass(frozen=True)
class CallDraft:
    """A call and where it stands; ``node`` is no Call for a decorator without arguments."""

    node: cst.BaseExpression
    scope: Scope
    loop: Optional[LoopDraft]
    guarded: bool
    assigned_to: str
    is_decorator: bool
    tests: tuple[Test, ...] = ()
    left: bool = False
    block: Optional[cst.CSTNode] = None
    of_script: bool = False


@dataclass(frozen=True)
class ClassDraft:
    """A class and the scope of its body."""

    node: cst.ClassDef
    scope: Scope
    annotated: list[cst.AnnAssign] = field(default_factory=list)
    methods: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class AssignmentDraft:
    """An assignment to an attribute or a subscript."""

    target: cst.BaseExpression
    value: cst.BaseExpression
    scope: Scope
    tests: tuple[Test, ...] = ()
    loop: Optional[LoopDraft] = None


@dataclass(frozen=True)
class ImportDraft:
    """An imported name: see :class:`flake8_gpu_training.facts.Import`."""

    module: str
    name: str
    alias: str
    node: cst.CSTNode


@dataclass(frozen=True)
class DictDraft:
    """A dict display that is not part of another one."""

    node: cst.Dict
    scope: Scope
    name: str


@dataclass(frozen=True)
class ParameterDraft:
    """A function parameter with a default (typer declares options so)."""

    name: str
    default: cst.BaseExpression
    node: cst.Param
    scope: Scope


@dataclass(eq=False)
class Drafts:
    """What the traversal gathered, in the order of the source."""

    top: Scope = field(default_factory=Scope)
    calls: list[CallDraft] = field(default_factory=list)
    loops: list[LoopDraft] = field(default_factory=list)
    classes: list[ClassDraft] = field(default_factory=list)
    imports: list[ImportDraft] = field(default_factory=list)
    assignments: list[AssignmentDraft] = field(default_factory=list)
    dicts: list[DictDraft] = field(default_factory=list)
    parameters: list[ParameterDraft] = field(default_factory=list)
    scopes: list[Scope] = field(default_factory=list)
    has_main: bool = False


@cache
def _fields_of(kind: type) -> tuple[str, ...]:
    return tuple(
        item.name
        for item in fields(kind)
        if item.name not in _SKIPPED_FIELDS and not item.name.startswith("whitespace_")
    )


def collect(module: cst.Module) -> Drafts:
    """Walk a module once."""
    walker = _Walker()
    walker.block(module.body)
    return walker.drafts


class _Walker:
    def __init__(self) -> None:
        self.drafts = Drafts()
        self.scope = self.drafts.top
        self.drafts.scopes.append(self.scope)
        self.loop: Optional[LoopDraft] = None
        self.guarded = False
        self.left = False
        """Behind a branch that leaves the function."""
        self.tests: tuple[Test, ...] = ()
        self.of_script = False
        self.in_dict = False
        self.assigned: dict[int, str] = {}
        """Names that a call or dict display (by identity) is assigned to."""
        self.opened: dict[int, cst.CSTNode] = {}
        """Blocks of ``with`` statements by the calls (by identity) that open them."""
        self.class_draft: Optional[ClassDraft] = None

    # -- traversal

    def visit(self, node: Any) -> None:
        handler = _HANDLERS.get(type(node))
        if handler is None:
            self.children(node)
        else:
            handler(self, node)

    def children(self, node: cst.CSTNode) -> None:
        for name in _fields_of(type(node)):
            child = getattr(node, name)
            if isinstance(child, cst.CSTNode):
                self.visit(child)
            elif isinstance(child, (tuple, list)):
                for item in child:
                    self.visit(item)

    def block(self, statements: Any) -> None:
        """Visit statements; what follows ``if step % n: continue`` is guarded, as is, in a
        function's own block, what follows ``if quiet: return``."""
        guarded, left, tests = self.guarded, self.left, self.tests
        for statement in statements:
            self.visit(statement)
            if not leaves(statement):
                continue
            if returns(statement):
                self.tests = (*self.tests, (statement.test, False))
            if self.loop is None:
                self.left = self.left or not is_rank_test(statement.test)
            elif has_modulo(statement.test):
                self.guarded = True
        self.guarded, self.left, self.tests = guarded, left, tests

    def indented(self, node: cst.IndentedBlock) -> None:
        self.block(node.body)

    def under_guard(self, *nodes: Any, test: Test = (None, True), of_ranks: bool = False) -> None:
        outer = (self.guarded, self.tests)
        self.guarded = self.guarded or not of_ranks
        self.tests = (*self.tests, test)
        for node in nodes:
            if node is not None:
                self.visit(node)
        self.guarded, self.tests = outer

    def branches(self, test: cst.BaseExpression, body: Any, orelse: Any) -> None:
        of_ranks = is_rank_test(test)
        self.under_guard(body, test=(test, True), of_ranks=of_ranks)
        self.under_guard(orelse, test=(test, False), of_ranks=of_ranks)

    # -- scopes

    def function(self, node: cst.FunctionDef) -> None:
        owner = self.class_draft
        if owner is not None and self.scope is owner.scope:
            owner.methods.append(node.name.value)
        self.decorators(node.decorators)
        self.scope.definitions.add(node.name.value)
        outer = (self.scope, self.loop, self.guarded, self.left, self.class_draft, self.tests)
        in_class = self.scope.kind == "class"
        inner = self.enter(node.name.value, "function")
        self.parameters(node.params, outer[0], inner)
        self.scope, self.loop, self.class_draft, self.tests = inner, None, None, ()
        self.guarded = self.left = False
        if in_class and node.name.value in HOT_METHODS:
            self.loop = LoopDraft(node, inner, None, trains=True, implicit=True)
            self.drafts.loops.append(self.loop)
        self.visit(node.body)
        self.scope, self.loop, self.guarded, self.left, self.class_draft, self.tests = outer

    def enter(self, name: str, kind: str) -> Scope:
        dotted = f"{self.scope.name}.{name}" if self.scope.name else name
        scope = Scope(dotted, kind, self.scope)
        self.drafts.scopes.append(scope)
        return scope

    def parameters(self, parameters: cst.Parameters, outer: Scope, inner: Scope) -> None:
        plain = (*parameters.posonly_params, *parameters.params, *parameters.kwonly_params)
        for parameter in plain:
            inner.bind(parameter.name.value, None, parameter)
            if parameter.default is not None:
                self.visit(parameter.default)
                # The default is one candidate of the parameter's value.
                inner.bindings[parameter.name.value].append(
                    Binding(parameter.default, parameter, outer)
                )
                self.drafts.parameters.append(
                    ParameterDraft(parameter.name.value, parameter.default, parameter, outer)
                )
        for star in (parameters.star_arg, parameters.star_kwarg):
            if isinstance(star, cst.Param):
                inner.bind(star.name.value, None, star)

    def lambda_(self, node: cst.Lambda) -> None:
        outer = (self.scope, self.loop, self.guarded)
        inner = self.enter("<lambda>", "function")
        self.parameters(node.params, outer[0], inner)
        self.scope, self.loop, self.guarded = inner, None, False
        self.visit(node.body)
        self.scope, self.loop, self.guarded = outer

    def class_(self, node: cst.ClassDef) -> None:
        self.decorators(node.decorators)
        self.scope.definitions.add(node.name.value)
        for argument in node.keywords:
            self.visit(argument.value)
        outer = (self.scope, self.class_draft)
        self.scope = self.enter(node.name.value, "class")
        self.class_draft = ClassDraft(node, self.scope)
        self.drafts.classes.append(self.class_draft)
        self.visit(node.body)
        self.scope, self.class_draft = outer

    def decorators(self, decorators: Any) -> None:
        for decorator in decorators:
            expression = decorator.decorator
            self.add_call(expression, is_decorator=True)
            if isinstance(expression, cst.Call):
                for argument in expression.args:
                    self.visit(argument.value)

    def comprehension(self, node: cst.CompFor) -> None:
        self.bind_target(node.target, None, node)
        self.children(node)

    # -- loops and branches

    def for_(self, node: cst.For) -> None:
        self.visit(node.iter)
        self.bind_target(node.target, None, node)
        self.loop_body(node)

    def while_(self, node: cst.While) -> None:
        self.loop_body(node)

    def loop_body(self, node: Union[cst.For, cst.While]) -> None:
        outer = (self.loop, self.guarded, self.left)
        self.loop = LoopDraft(node, self.scope, self.loop, guarded=self.guarded or self.left)
        self.guarded = self.left = False
        self.drafts.loops.append(self.loop)
        if isinstance(node, cst.While):
            self.visit(node.test)
        self.visit(node.body)
        self.loop, self.guarded, self.left = outer
        if node.orelse is not None:
            self.visit(node.orelse)

    def if_(self, node: cst.If) -> None:
        self.visit(node.test)
        if never_holds(node.test):
            if node.orelse is not None:
                self.visit(node.orelse)
        elif is_main_test(node.test):
            self.drafts.has_main = self.of_script = True
            self.visit(node.body)
            self.of_script = False
            self.under_guard(node.orelse)
        else:
            self.branches(node.test, node.body, node.orelse)

    def if_expression(self, node: cst.IfExp) -> None:
        self.visit(node.test)
        self.branches(node.test, node.body, node.orelse)

    def handler(self, node: Any) -> None:
        if node.name is not None and isinstance(node.name.name, cst.Name):
            self.scope.bind(node.name.name.value, None, node)
        self.under_guard(node.body)

    def match(self, node: cst.Match) -> None:
        self.visit(node.subject)
        for case in node.cases:
            self.visit(case.pattern)
            self.under_guard(case.guard, case.body)

    def match_name(self, node: Any) -> None:
        if node.name is not None:
            self.scope.bind(node.name.value, None, node)
        self.children(node)

    # -- bindings

    def with_(self, node: cst.With) -> None:
        for item in node.items:
            target = item.asname.name if item.asname is not None else None
            if target is not None:
                self.assigned[id(item.item)] = dotted_name(target)
            self.opened[id(item.item)] = node.body
            self.visit(item.item)
            if target is not None:
                self.bind_target(target, item.item, item)
        self.visit(node.body)

    def assign(self, node: cst.Assign) -> None:
        for item in node.targets:
            self.assigned.setdefault(id(_awaited(node.value)), _target_text(item.target))
        self.visit(node.value)
        for item in node.targets:
            self.bind_target(item.target, node.value, item.target)

    def annotated(self, node: cst.AnnAssign) -> None:
        if self.class_draft is not None and self.scope is self.class_draft.scope:
            self.class_draft.annotated.append(node)
        if node.value is None:
            return
        self.assigned[id(_awaited(node.value))] = _target_text(node.target)
        self.visit(node.value)
        self.bind_target(node.target, node.value, node.target)

    def augmented(self, node: cst.AugAssign) -> None:
        self.visit(node.value)
        self.bind_target(node.target, None, node)

    def named(self, node: cst.NamedExpr) -> None:
        self.assigned[id(_awaited(node.value))] = _target_text(node.target)
        self.visit(node.value)
        self.bind_target(node.target, node.value, node.target)

    def deleted(self, node: cst.Del) -> None:
        self.bind_target(node.target, None, node)

    def bind_target(
        self,
        target: cst.CSTNode,
        value: Optional[cst.BaseExpression],
        node: cst.CSTNode,
        keyed: Optional[int] = None,
    ) -> None:
        if isinstance(target, cst.Name):
            looped = self.loop is not None
            perhaps = looped or (self.guarded and not self.tests)
            self.scope.bind(
                target.value, value, node, keyed, self.tests, perhaps=perhaps, in_loop=looped
            )
        elif isinstance(target, (cst.Tuple, cst.List)):
            self.bind_elements(target, value, node)
        elif isinstance(target, cst.StarredElement):
            self.bind_target(target.value, None, node)
        elif isinstance(target, cst.Attribute):
            self.bind_attribute(target, value, node, keyed)
        elif isinstance(target, cst.Subscript):
            if not self.adds(target, value):
                self.scope_changes(target.value)
            self.visit(target)
            if value is not None and keyed is None:
                self.drafts.assignments.append(
                    AssignmentDraft(target, value, self.scope, self.tests, self.loop)
                )

    def bind_elements(
        self, target: Any, value: Optional[cst.BaseExpression], node: cst.CSTNode
    ) -> None:
        for index, element in enumerate(target.elements):
            if isinstance(element, cst.StarredElement):
                self.bind_target(element, None, node)
            elif isinstance(value, (cst.Tuple, cst.List)):
                same = len(value.elements) == len(target.elements)
                plain = same and isinstance(value.elements[index], cst.Element)
                part = value.elements[index].value if plain else None
                self.bind_target(element.value, part, element.value)
            else:
                self.bind_target(element.value, value, element.value, index)

    def bind_attribute(
        self,
        target: cst.Attribute,
        value: Optional[cst.BaseExpression],
        node: cst.CSTNode,
        keyed: Optional[int],
    ) -> None:
        written = dotted_name(target)
        if not written:
            self.visit(target.value)
        else:
            self.scope.bind(written, value, node, keyed)
            if not written.startswith("self."):
                # The object had a value of its own before, which is not in sight.
                self.scope.bind(written, None, node)
        if value is not None and keyed is None:
            self.drafts.assignments.append(
                AssignmentDraft(target, value, self.scope, self.tests, self.loop)
            )

    def adds(self, target: cst.Subscript, value: Optional[cst.BaseExpression]) -> bool:
        """Note an entry that is set in a dict of this scope, where it is known when."""
        name = target.value.value if isinstance(target.value, cst.Name) else ""
        looped = self.loop is not None or (self.guarded and not self.tests)
        if value is None or looped or name not in self.scope.bindings:
            return False
        entry = Binding(value, target, self.scope, tests=self.tests)
        self.scope.added.setdefault(name, []).append(entry)
        return True

    def scope_changes(self, container: cst.CSTNode) -> None:
        """Note that a container is changed in place."""
        while isinstance(container, cst.Subscript):
            container = container.value
        written = dotted_name(container)
        if written:
            owner, _ = self.scope.lookup(written)
            (owner or self.scope).changed.add(written)

    def elsewhere(self, node: Union[cst.Global, cst.Nonlocal]) -> None:
        for item in node.names:
            self.scope.elsewhere.add(item.name.value)
            # Who runs first, this function or the reader of the name, is not known.
            self.scope.bind(item.name.value, None, item)

    # -- imports

    def import_(self, node: cst.Import) -> None:
        for alias in node.names:
            name = dotted_name(alias.name)
            bound = _alias(alias)
            root = name.partition(".")[0]
            self.scope.imports.setdefault(bound or root, name if bound else root)
            self.drafts.imports.append(ImportDraft(name, "", bound or root, alias))

    def import_from(self, node: cst.ImportFrom) -> None:
        module = "." * len(node.relative) + (dotted_name(node.module) if node.module else "")
        if isinstance(node.names, cst.ImportStar):
            self.drafts.imports.append(ImportDraft(module, "*", "*", node))
            return
        separator = "" if module.endswith(".") else "."
        for alias in node.names:
            name = dotted_name(alias.name)
            bound = _alias(alias) or name
            self.scope.imports.setdefault(bound, f"{module}{separator}{name}")
            self.drafts.imports.append(ImportDraft(module, name, bound, alias))

    # -- expressions

    def call(self, node: cst.Call) -> None:
        self.add_call(node)
        func = node.func
        if isinstance(func, cst.Attribute):
            self.note_method(node, func)
            self.visit(func.value)
        elif not isinstance(func, cst.Name):
            self.visit(func)
        for argument in node.args:
            self.visit(argument.value)

    def add_call(self, node: cst.BaseExpression, is_decorator: bool = False) -> None:
        assigned = self.assigned.get(id(node), "")
        self.drafts.calls.append(
            CallDraft(
                node,
                self.scope,
                self.loop,
                self.guarded,
                assigned,
                is_decorator,
                self.tests,
                self.left,
                self.opened.get(id(node)),
                self.of_script,
            )
        )

    def note_method(self, node: cst.Call, func: cst.Attribute) -> None:
        method = func.attr.value
        if method in _CHANGING_METHODS:
            self.scope_changes(func.value)
        elif self.loop is not None and _is_training_step(method, func.value):
            self.loop.trains = True

    def dict_(self, node: cst.Dict) -> None:
        if not self.in_dict:
            name = self.assigned.get(id(node), "")
            self.drafts.dicts.append(DictDraft(node, self.scope, name))
        outer, self.in_dict = self.in_dict, True
        self.children(node)
        self.in_dict = outer

    def leaf(self, node: cst.CSTNode) -> None:
        """Nodes below which there is nothing."""


_CHANGING_METHODS = frozenset({"update", "pop", "popitem", "setdefault", "clear", "append"})
_BACKWARD = frozenset({"backward", "manual_backward"})


def _is_training_step(method: str, receiver: cst.BaseExpression) -> bool:
    if method in _BACKWARD:
        return True
    return method == "step" and bool(OPTIMIZER_LIKE.search(dotted_name(receiver)))


def _alias(alias: cst.ImportAlias) -> str:
    name = alias.asname.name if alias.asname is not None else None
    return name.value if isinstance(name, cst.Name) else ""


def _awaited(node: cst.BaseExpression) -> cst.BaseExpression:
    return node.expression if isinstance(node, cst.Await) else node


def _target_text(target: cst.CSTNode) -> str:
    if isinstance(target, (cst.Tuple, cst.List)):
        return ", ".join(dotted_name(element.value) for element in target.elements)
    return dotted_name(target)


_HANDLERS: Mapping[type, Callable[[_Walker, Any], None]] = {
    cst.IndentedBlock: _Walker.indented,
    cst.FunctionDef: _Walker.function,
    cst.Lambda: _Walker.lambda_,
    cst.ClassDef: _Walker.class_,
    cst.CompFor: _Walker.comprehension,
    cst.For: _Walker.for_,
    cst.While: _Walker.while_,
    cst.If: _Walker.if_,
    cst.IfExp: _Walker.if_expression,
    cst.ExceptHandler: _Walker.handler,
    cst.ExceptStarHandler: _Walker.handler,
    cst.Match: _Walker.match,
    cst.MatchAs: _Walker.match_name,
    cst.MatchStar: _Walker.match_name,
    cst.With: _Walker.with_,
    cst.Assign: _Walker.assign,
    cst.AnnAssign: _Walker.annotated,
    cst.AugAssign: _Walker.augmented,
    cst.NamedExpr: _Walker.named,
    cst.Del: _Walker.deleted,
    cst.Global: _Walker.elsewhere,
    cst.Nonlocal: _Walker.elsewhere,
    cst.Import: _Walker.import_,
    cst.ImportFrom: _Walker.import_from,
    cst.Call: _Walker.call,
    cst.Dict: _Walker.dict_,
    cst.Name: _Walker.leaf,
    cst.Integer: _Walker.leaf,
    cst.Float: _Walker.leaf,
    cst.SimpleString: _Walker.leaf,
    cst.Pass: _Walker.leaf,
    cst.TypeAlias: _Walker.leaf,
}
