"""The stack for a user's update rule F and G (paper, sections IV-B and V), for batches and for single rows."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from staircase_fast.errors import InvalidInputError, InvalidTypeError
from staircase_fast.losses import UpdateRule


class Block(NamedTuple):
    """Consecutive rows, and the results of the rule for them."""

    first: Any  # score of the first row
    last: Any  # score of the last row
    value: float
    auxiliary: Any


class Stack(NamedTuple):
    """The block on top, and the stack below it.

    Stacks are immutable: if a user's function raises an error, the stack before the call is still valid.
    """

    top: Block
    below: Stack | None
    n: int


def observation(rule: UpdateRule, first: Any, last: Any, rows: list[tuple[float, float]], *, decreasing: bool) -> Block:
    """Rows (target, weight) of one score as one block.  The order of the rows does not matter."""
    block = None
    for target, weight in sorted(rows, reverse=decreasing):
        initial = (target, weight) if rule.initial is None else rule.initial(target, weight)
        single = Block(first, last, *_check_block(initial, -math.inf, math.inf))
        block = single if block is None else Block(first, last, *_merged(rule, block, single))
    assert block is not None
    return block


def pushed(rule: UpdateRule, stack: Stack | None, block: Block, *, decreasing: bool) -> Stack:
    """Push a block: merge it with the top while the values are not strictly monotone.

    The rule always gets the block with the greater value first: a decreasing staircase is an increasing one of the rows
    in opposite order.
    """
    while stack is not None and (stack.top.value <= block.value if decreasing else stack.top.value >= block.value):
        pair = (block, stack.top) if decreasing else (stack.top, block)
        block = Block(stack.top.first, block.last, *_merged(rule, *pair))
        stack = stack.below
    return Stack(block, stack, 1 if stack is None else stack.n + 1)


def blocks(stack: Stack | None) -> list[Block]:
    """All blocks, in the order of their rows."""
    found = []
    while stack is not None:
        found.append(stack.top)
        stack = stack.below
    return found[::-1]


def _merged(rule: UpdateRule, one: Block, two: Block) -> tuple[float, Any]:
    """The value and the auxiliary value of the union of two blocks."""
    low, high = sorted((one.value, two.value))
    return _check_block(rule.merge(*one[2:], *two[2:]), low, high)


def _check_block(returned: Any, low: float, high: float) -> tuple[float, Any]:
    """Check the return value of a user's function: a value in this range, and an auxiliary value."""
    try:
        value, auxiliary = returned
        value = float(value)
    except (TypeError, ValueError):
        raise InvalidTypeError("merge", "must return a pair (y, lam)", other="initial", value=returned) from None
    if not math.isfinite(value):
        raise InvalidInputError("merge", "must return finite values", other="initial", value=value)
    slack = 1e-9 * max(abs(low), abs(high)) if math.isfinite(low) else 0.0
    if not low - slack <= value <= high + slack:
        requirement = f"must return a value between those of its blocks, {low} and {high}"
        raise InvalidInputError("merge", requirement, value=value)
    return min(max(value, low), high), auxiliary
