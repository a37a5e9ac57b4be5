"""What the tests of branches say: programs run as scripts, ranks told apart, steps skipped."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Optional

import libcst as cst

from flake8_gpu_training.sources._python_scopes import dotted_name

if TYPE_CHECKING:
    from typing_extensions import TypeGuard

_RANK = re.compile(
    r"(?i)(?:(?:local|global|world|node|dist)_)?rank|(?:get|is)_\w*rank\w*"
    r"|is_(?:\w+_)?(?:main|master|chief|zero)(?:_process|_node|_proc)?"
    r"|(?:main|master)_process|(?:local_)?process_index|is_initialized"
)


def is_main_test(test: cst.BaseExpression) -> bool:
    """``if __name__ == "__main__":``."""
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return False
    sides = (test.left, test.comparisons[0].comparator)
    names = [side.value for side in sides if isinstance(side, cst.Name)]
    texts = [side.raw_value for side in sides if isinstance(side, cst.SimpleString)]
    return names == ["__name__"] and texts == ["__main__"]


def never_holds(test: cst.BaseExpression) -> bool:
    """``if False:`` and ``if 0 and ...:``: code that is switched off."""
    while isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
        test = test.left
    return isinstance(test, (cst.Name, cst.Integer)) and test.value in ("False", "None", "0")


def leaves(statement: cst.CSTNode) -> TypeGuard[cst.If]:
    """``if …: continue`` or ``return``."""
    if not isinstance(statement, cst.If):
        return False
    return isinstance(_last(statement), (cst.Continue, cst.Return))


def returns(statement: cst.If) -> bool:
    """``if …: return`` without an ``else``."""
    return statement.orelse is None and isinstance(_last(statement), cst.Return)


def _last(statement: cst.If) -> Optional[cst.CSTNode]:
    """The simple statement that ends the branch, or None."""
    block = statement.body
    if not isinstance(block, cst.IndentedBlock) or not block.body:
        return None
    line = block.body[-1]
    return line.body[-1] if isinstance(line, cst.SimpleStatementLine) else None


def has_modulo(test: cst.CSTNode) -> bool:
    """Whether a remainder is asked for (``step % 10``)."""
    stack: list[cst.CSTNode] = [test]
    while stack:
        node = stack.pop()
        if isinstance(node, cst.Modulo):
            return True
        stack.extend(node.children)
    return False


def is_rank_test(test: cst.BaseExpression) -> bool:
    """``if rank == 0:`` and the like: it tells ranks apart, not steps."""
    if isinstance(test, cst.BooleanOperation):
        return is_rank_test(test.left) and is_rank_test(test.right)
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return is_rank_test(test.expression)
    if isinstance(test, cst.Comparison):
        others = [part.comparator for part in test.comparisons]
        return _names_rank(test.left) and not any(has_modulo(other) for other in others)
    return _names_rank(test)


def _names_rank(node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.Call):
        node = node.func
    return _RANK.fullmatch(dotted_name(node).rpartition(".")[2]) is not None
