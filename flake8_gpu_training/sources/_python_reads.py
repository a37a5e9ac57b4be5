"""Which options of a script its own code never reads."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

_COPIES = frozenset({"vars", "print", "str", "repr", "dict", "hasattr", "getattr", "setattr"})
"""Functions that show or copy a namespace; what they make of it is written down, not obeyed."""

_MANY = 3


def unread_in(tree: ast.Module, names: Collection[str]) -> frozenset[str]:
    """Those of the options' ``names`` that no code reads; none where other code gets them all."""
    wanted = frozenset(names)
    nodes = list(ast.walk(tree))
    reads = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr in wanted]
    spaces = _spaces(reads)
    own = {
        node.name
        for node in nodes
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    }
    if not spaces or any(_hands_on(node, spaces, own | _COPIES) for node in nodes):
        return frozenset()
    read = {node.attr for node in reads if isinstance(node.ctx, ast.Load)}
    return wanted - read - set(_texts(nodes))


def _spaces(reads: list[ast.Attribute]) -> set[str]:
    """Names of namespaces: other objects share the name of an option or two at most."""
    found: dict[str, set[str]] = {}
    for node in reads:
        if isinstance(node.value, ast.Name):
            found.setdefault(node.value.id, set()).add(node.attr)
    return {name for name, read in found.items() if len(read) >= _MANY}


def _hands_on(node: ast.AST, spaces: set[str], own: Collection[str]) -> bool:
    """Whether a namespace is handed, whole, to code of another file, or kept in an object."""
    if isinstance(node, ast.Call):
        given = [*node.args, *(one.value for one in node.keywords)]
        called = node.func.id if isinstance(node.func, ast.Name) else ""
        return called not in own and any(_is_space(one, spaces) for one in given)
    if isinstance(node, ast.Assign):
        kept = any(not isinstance(target, ast.Name) for target in node.targets)
        return kept and _is_space(node.value, spaces)
    return False


def _is_space(node: ast.expr, spaces: set[str]) -> bool:
    inner = node.value if isinstance(node, ast.Starred) else node
    return isinstance(inner, ast.Name) and inner.id in spaces


def _texts(nodes: list[ast.AST]) -> Iterator[str]:
    """Texts by which an option may be looked up (``getattr(args, "use_ema")``)."""
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
