"""The stack of section IV-B with a user's F and G, for batches and for rows that arrive one by one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from staircase_fast.errors import InvalidInputError, InvalidTypeError
from staircase_fast.losses import UpdateRule


class Block(NamedTuple):
    """Rows side by side, and what the rule says of them."""

    first: Any  # where they begin
    last: Any  # where they end
    value: float
    auxiliary: Any


class Stack(NamedTuple):
    """The block on top, and the stack below it.

    It is never changed: if a user's function raises, what was there before the call still is.
    """

    top: Block
    below: Stack | None
    n: int


def observation(rule: UpdateRule, first: Any, last: Any, rows: list[tuple[float, float]], *, decreasing: bool) -> Block:
    """Rows of one score, targets with weights, as one block; the order in which they are given does not matter."""
    block = None
    for target, weight in sorted(rows, reverse=decreasing):
        initial = (target, weight) if rule.initial is None else rule.initial(target, weight)
        single = Block(first, last, *_check_block(initial, -math.inf, math.inf))
        block = single if block is None else Block(first, last, *_merged(rule, block, single))
    assert block is not None
    return block


def pushed(rule: UpdateRule, stack: Stack | None, block: Block, *, decreasing: bool) -> Stack:
    """The stack with a block on top of it, joined with every block that reaches it.

    Falling values are rising ones of rows in the opposite order, so that the rule is always given the greater of two
    values first.
    """
    while stack is not None and (stack.top.value <= block.value if decreasing else stack.top.value >= block.value):
        pair = (block, stack.top) if decreasing else (stack.top, block)
        block = Block(stack.top.first, block.last, *_merged(rule, *pair))
        stack = stack.below
    return Stack(block, stack, 1 if stack is None else stack.n + 1)


def blocks(stack: Stack | None) -> list[Block]:
    """All blocks, in the order of their rows."""
    return list(_downwards(stack))[::-1]


def _downwards(stack: Stack | None) -> Iterator[Block]:
    while stack is not None:
        yield stack.top
        stack = stack.below


def _merged(rule: UpdateRule, one: Block, two: Block) -> tuple[float, Any]:
    """The value and the auxiliary value of two blocks as one."""
    low, high = sorted((one.value, two.value))
    return _check_block(rule.merge(*one[2:], *two[2:]), low, high)


def _check_block(returned: Any, low: float, high: float) -> tuple[float, Any]:
    """Check the return value of a user's rule: a value in this range, and an auxiliary value."""
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
