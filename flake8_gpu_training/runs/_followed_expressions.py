"""Evaluates expressions on values that may be unknown."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Optional, Union

from flake8_gpu_training.facts import Location, Origin, Setting, Unknown
from flake8_gpu_training.runs import _followed_library as library
from flake8_gpu_training.runs._followed import (
    DELETED,
    Class,
    External,
    Frame,
    Function,
    Given,
    Imported,
    Module,
    PathText,
    Placed,
    Super,
    Table,
    bare,
    doubt_all,
    items_of,
    joined,
)
from flake8_gpu_training.runs._followed_methods import path_attribute
from flake8_gpu_training.runs._followed_operators import (
    arithmetic,
    compared,
    indexed,
    is_true,
    may_be_either,
    text_of,
)

if TYPE_CHECKING:
    from flake8_gpu_training.runs.following import World

MAX_ITEMS = 64
"""Items of a loop that are taken one by one."""
_READERS = {kind: f"_of_{kind.__name__.lower()}" for kind in ast.expr.__subclasses__()}
"""The method that evaluates each kind of expression."""
_PROPERTIES = frozenset({"property", "cached_property", "functools.cached_property"})


class Expressions:
    """The expressions of :class:`.following.Follower`."""

    doubt: int
    here: str
    """The file whose call is being made."""
    world: World

    def step(self) -> None:
        """Count a step."""
        raise NotImplementedError

    def seen(self, names: dict[str, Any], name: str, module: Module) -> Any:
        """A name's value; an import is followed when it is first used."""
        raise NotImplementedError

    def module(self, path: str) -> Optional[Module]:
        """The module at ``path``, gone through."""
        raise NotImplementedError

    def leaf(self, table: Table, key: Any) -> Any:
        """A value of a table, its references resolved when OmegaConf would."""
        raise NotImplementedError

    def invoke(self, function: Function, given: Given) -> Any:
        """What a call of a function of the project gives back."""
        raise NotImplementedError

    def value(self, node: ast.expr, frame: Frame) -> Any:
        """The value of an expression."""
        self.step()
        reader = getattr(self, _READERS[type(node)], self._other)
        return reader(node, frame)

    def _other(self, node: ast.expr, frame: Frame) -> Any:
        """An expression that is not followed; the calls in it are, for their arguments."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child, frame)
        return Unknown(text_of(node))

    def truth(self, node: ast.expr, frame: Frame) -> Optional[bool]:
        """Whether a condition holds; None when it is not known.

        ``unknown and False`` does not, ``unknown or True`` does.
        """
        if isinstance(node, ast.BoolOp):
            decides = isinstance(node.op, ast.Or)
            told: list[Optional[bool]] = []
            for item in node.values:
                told.append(self.truth(item, frame))
                if told[-1] is decides:
                    return decides
            return None if None in told else not decides
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            truth = self.truth(node.operand, frame)
            return None if truth is None else not truth
        return is_true(self.value(node, frame))

    def _of_constant(self, node: ast.Constant, frame: Frame) -> Any:
        value = node.value
        if value is not None and not isinstance(value, (bool, int, float, str)):
            return Unknown(text_of(node))
        return self.placed(node, value, frame) if frame.module.is_configuration else value

    def placed(self, node: ast.expr, value: Any, frame: Frame) -> Any:
        """A scalar with the place in the code that says it, when it has none yet."""
        if not isinstance(value, (bool, int, float, str)):
            return value
        place = _place_of(node)
        if place is None:
            place = self.place(frame.module.path, node.lineno, node.col_offset)
            setattr(node, _PLACE, place)
        origin = Origin.FILE if frame.module.is_configuration else Origin.CONSTRUCTOR
        return Placed(value, Setting("", value, place, origin))

    def place(self, path: str, line: int, offset: int) -> Location:
        """A place in a file from ``ast``'s line and offset in bytes."""
        raise NotImplementedError

    def _of_name(self, node: ast.Name, frame: Frame) -> Any:
        name = node.id
        names = frame.names if name in frame.names else frame.module.names
        if name in names:
            value = names[name]
            return self.seen(names, name, frame.module) if type(value) is Imported else value
        return External(name) if name in library.BUILTINS else Unknown(name)

    def _of_attribute(self, node: ast.Attribute, frame: Frame) -> Any:
        return self.attribute(self.value(node.value, frame), node.attr, text_of(node))

    def attribute(self, owner: Any, name: str, text: str) -> Any:
        """The attribute ``name`` of a value."""
        owner = owner if isinstance(owner, Table) else bare(owner)
        if isinstance(owner, Table):
            return self._of_object(owner, name, text)
        if isinstance(owner, Module):
            if name in owner.names:
                return self.seen(owner.names, name, owner)
            inner = self.world.module(name, 1, owner.path)
            return (self.module(inner) if inner is not None else None) or Unknown(text)
        if isinstance(owner, Class):
            found = owner.find(name)
            if isinstance(found, Function) and "classmethod" in found.decorators:
                return dataclasses.replace(found, owner=owner)
            return Unknown(text) if found is None else found
        if owner == External("sys") and name == "argv":
            return library.command_line(self.world)
        if owner == External("sys") and name == "executable":
            return library.INTERPRETER
        if owner == External("absl.flags.FLAGS"):
            return self.flag(name, text)
        if isinstance(owner, External):
            return External(f"{owner.name}.{name}")
        if isinstance(owner, str):
            return path_attribute(PathText(owner), name, text)
        return Unknown(text)

    def flag(self, name: str, text: str) -> Any:
        """The value of a flag of absl."""
        raise NotImplementedError

    def _of_object(self, owner: Table, name: str, text: str) -> Any:
        if name in owner.entries:
            return self.leaf(owner, name)
        found = owner.kind.find(name) if owner.kind is not None else None
        if isinstance(found, Function):
            bound = dataclasses.replace(found, owner=owner)
            return self.invoke(bound, Given()) if _PROPERTIES & set(found.decorators) else bound
        if found is not None:
            return found
        return owner if name == "__dict__" else Unknown(text)

    def _of_subscript(self, node: ast.Subscript, frame: Frame) -> Any:
        owner = self.value(node.value, frame)
        if isinstance(node.slice, ast.Slice):
            return self._part(owner, node, frame)
        key = bare(self.value(node.slice, frame))
        if isinstance(owner, Table):
            is_there = isinstance(key, (str, int)) and key in owner.entries
            return self.leaf(owner, key) if is_there else Unknown(text_of(node))
        if owner == External("os.environ") and isinstance(key, str):
            found = self.environ(key)
            return Unknown(text_of(node)) if found is None else found
        return indexed(bare(owner), key, text_of(node))

    def _part(self, owner: Any, node: ast.Subscript, frame: Frame) -> Any:
        """``items[1:]``."""
        assert isinstance(node.slice, ast.Slice)
        parts = (node.slice.lower, node.slice.upper, node.slice.step)
        bounds = [None if part is None else bare(self.value(part, frame)) for part in parts]
        items = bare(owner)
        if not isinstance(items, (list, str)) or bounds[2] == 0:
            return Unknown(text_of(node))
        if any(bound is not None and type(bound) is not int for bound in bounds):
            return Unknown(text_of(node))
        return items[slice(*bounds)]

    def environ(self, name: str) -> Any:
        """An environment variable as the program finds it; None when nobody sets it."""
        raise NotImplementedError

    # --- displays ---

    def _of_dict(self, node: ast.Dict, frame: Frame) -> Any:
        made = Table()
        for key, item in zip(node.keys, node.values):
            value = self.value(item, frame)
            if key is not None:
                name = bare(self.value(key, frame))
                if isinstance(name, (str, int)):
                    made.put(name, self.placed(item, value, frame))
                else:
                    doubt_all(made)
            elif isinstance(value, Table):
                if value.is_open:
                    doubt_all(made)
                for name in value.entries:
                    made.put(name, self.leaf(value, name))
            else:  # it may have any of the keys before it
                doubt_all(made)
        return made

    def _of_list(self, node: Union[ast.List, ast.Tuple], frame: Frame) -> Any:
        found: list[Any] = []
        is_open = False
        for item in node.elts:
            if isinstance(item, ast.Starred):
                items = items_of(self.value(item.value, frame))
                is_open = is_open or items is None
                found += items or []
            else:
                found.append(self.value(item, frame))
        return Unknown(text_of(node)) if is_open else found

    _of_tuple = _of_set = _of_list

    def _of_joinedstr(self, node: ast.JoinedStr, frame: Frame) -> Any:
        parts: list[str] = []
        for item in node.values:
            if isinstance(item, ast.Constant):
                parts.append(str(item.value))
            elif isinstance(item, ast.FormattedValue):
                found = bare(self.value(item.value, frame))
                is_plain = isinstance(found, (bool, int, float, str))
                if item.format_spec is not None or not is_plain:
                    return Unknown(text_of(node))
                parts.append(str(found))
        return "".join(parts)

    def _of_listcomp(self, node: Union[ast.ListComp, ast.GeneratorExp], frame: Frame) -> Any:
        frames = self._comprehended(node.generators, frame)
        if frames is None:
            return Unknown(text_of(node))
        return [self.value(node.elt, inner) for inner in frames]

    _of_generatorexp = _of_setcomp = _of_listcomp

    def _of_dictcomp(self, node: ast.DictComp, frame: Frame) -> Any:
        frames = self._comprehended(node.generators, frame)
        made = Table(is_open=frames is None)
        for inner in frames or ():
            key = bare(self.value(node.key, inner))
            if isinstance(key, (str, int)):
                made.put(key, self.value(node.value, inner))
            else:
                made.is_open = True
        return made

    def _comprehended(
        self, generators: Sequence[ast.comprehension], frame: Frame
    ) -> Optional[list[Frame]]:
        """A frame for each item of a comprehension with one ``for``; None when not known."""
        generator = generators[0]
        items = items_of(self.value(generator.iter, frame))
        if len(generators) != 1 or items is None or len(items) > MAX_ITEMS:
            return None
        found: list[Frame] = []
        for item in items:
            inner = Frame(frame.module, dict(frame.names), frame.function)
            self.assign(generator.target, item, inner)
            truths = [self.truth(test, inner) for test in generator.ifs]
            if None in truths:
                return None
            if all(truths):
                found.append(inner)
        return found

    def assign(self, target: ast.expr, value: Any, frame: Frame) -> None:
        """Bind a target to a value."""
        raise NotImplementedError

    # --- operators ---

    def _of_binop(self, node: ast.BinOp, frame: Frame) -> Any:
        left, right = self.value(node.left, frame), self.value(node.right, frame)
        return arithmetic(node.op, left, right, node)

    def _of_unaryop(self, node: ast.UnaryOp, frame: Frame) -> Any:
        value = self.value(node.operand, frame)
        if isinstance(node.op, ast.Not):
            truth = is_true(value)
            return Unknown(text_of(node)) if truth is None else not truth
        number = bare(value)
        if isinstance(number, (int, float)) and isinstance(node.op, (ast.USub, ast.UAdd)):
            return -number if isinstance(node.op, ast.USub) else number
        return Unknown(text_of(node))

    def _of_boolop(self, node: ast.BoolOp, frame: Frame) -> Any:
        decides = isinstance(node.op, ast.Or)
        found: Any = None
        is_first = True
        for item in node.values:
            value = self.value(item, frame)
            truth = is_true(value)
            if truth is not (not decides) or item is node.values[-1]:
                found = value if is_first else joined(found, value)
                is_first = False
            if truth is decides:
                break
        return found

    def _of_compare(self, node: ast.Compare, frame: Frame) -> Any:
        left = self.value(node.left, frame)
        operands: tuple[Any, Any] = (left, None)
        results: list[Optional[bool]] = []
        for operator, item in zip(node.ops, node.comparators):
            right = self.value(item, frame)
            results.append(compared(operator, left, right))
            operands = (left, right)
            left = right
        if False in results:
            return False
        if None not in results:
            return True
        either = len(results) == 1 and may_be_either(node.ops[0], *operands)
        return Unknown(text_of(node), (True, False) if either else ())

    def _of_ifexp(self, node: ast.IfExp, frame: Frame) -> Any:
        truth = self.truth(node.test, frame)
        if truth is not None:
            return self.value(node.body if truth else node.orelse, frame)
        self.doubt += 1
        found = joined(self.value(node.body, frame), self.value(node.orelse, frame))
        self.doubt -= 1
        return found

    def _of_namedexpr(self, node: ast.NamedExpr, frame: Frame) -> Any:
        value = self.value(node.value, frame)
        self.assign(node.target, value, frame)
        return value

    def _of_lambda(self, node: ast.Lambda, frame: Frame) -> Any:
        return self.function(node, frame)

    def function(self, node: ast.Lambda, frame: Frame) -> Function:
        """A function as it is defined, its defaults evaluated."""
        raise NotImplementedError

    # --- calls ---

    def _of_call(self, node: ast.Call, frame: Frame) -> Any:
        function = node.func
        owner: Any = None
        if isinstance(function, ast.Attribute):
            owner = self.value(function.value, frame)
        given = self.given_to(node, frame)
        self.record(node, given, frame.module.path)
        self.here = frame.module.path
        if isinstance(function, ast.Attribute):
            if function.attr == "save_hyperparameters" and isinstance(owner, Table):
                owner.put("hparams", _parameters(frame))
                return None
            return self.method(owner, function.attr, given, node)
        if isinstance(function, ast.Name) and function.id == "super" and not node.args:
            return _super(frame)
        if isinstance(function, ast.Name) and function.id == "eval" and len(node.args) == 1:
            return self._of_text(bare(given.positional[0]) if given.positional else None, frame)
        return self.apply(self.value(function, frame), given, node)

    def _of_text(self, text: Any, frame: Frame) -> Any:
        """``eval(f"args.{name}")``: a name or path that is put together."""
        if not isinstance(text, str) or not _PATH.fullmatch(text):
            return Unknown("eval")
        return self.value(ast.parse(text, mode="eval").body, frame)

    def given_to(self, node: ast.Call, frame: Frame) -> Given:
        """The arguments of a call."""
        positional: list[Any] = []
        keywords: dict[str, Any] = {}
        spread: list[Table] = []
        is_open = False
        for item in node.args:
            if isinstance(item, ast.Starred):
                items = items_of(self.value(item.value, frame))
                is_open = is_open or items is None
                positional += items or []
            else:
                positional.append(self.value(item, frame))
        for keyword in node.keywords:
            value = self.value(keyword.value, frame)
            if keyword.arg is not None:
                keywords[keyword.arg] = value
            elif isinstance(value, Table):
                spread.append(value)
                is_open = is_open or value.is_open
                for key, entry in value.entries.items():
                    if entry is DELETED:
                        is_open = True  # it may be among the arguments, or not
                    elif isinstance(key, str):
                        keywords[key] = self.leaf(value, key)
            else:
                is_open = True
        return Given(tuple(positional), keywords, is_open, tuple(spread))

    def record(self, node: ast.Call, given: Given, path: str) -> None:
        """Note what a call is given."""
        raise NotImplementedError

    def method(self, owner: Any, name: str, given: Given, node: ast.Call) -> Any:
        """What calling a method gives."""
        raise NotImplementedError

    def apply(self, callee: Any, given: Given, node: ast.AST) -> Any:
        """What calling a value gives."""
        raise NotImplementedError


_PATH = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_PLACE = "_followed_place"


def _place_of(node: ast.expr) -> Optional[Location]:
    """The place that was found for a node before: a tree is gone through for each run."""
    return getattr(node, _PLACE, None)


def _parameters(frame: Frame) -> Table:
    """What the function around was called with, as Lightning keeps it in ``hparams``."""
    node = frame.function.node if frame.function is not None else None
    names = [a.arg for a in (*node.args.args[1:], *node.args.kwonlyargs)] if node else []
    return Table({name: frame.names[name] for name in names if name in frame.names})


def _super(frame: Frame) -> Any:
    function = frame.function
    owner = function.owner if function is not None else None
    kind = owner.kind if isinstance(owner, Table) else owner
    if function is None or not isinstance(kind, Class):
        return Unknown("super()")
    for item in kind.lineage():
        for value in item.attributes.values():
            if isinstance(value, Function) and value.node is function.node:
                return Super(owner, item)
    return Unknown("super()")
