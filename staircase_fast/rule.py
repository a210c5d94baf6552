"""The stack of section IV-B with a user's F and G, for batches and for rows that arrive one by one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from staircase_fast import _validation
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


def observation(rule: UpdateRule, first: Any, last: Any, targets: list[float], weights: list[float]) -> Block:
    """Rows of one score as one block, in the order in which they are given."""
    block = None
    for target, weight in zip(targets, weights, strict=True):
        initial = (target, weight) if rule.initial is None else rule.initial(target, weight)
        single = Block(first, last, *_validation.merged_block(initial, -math.inf, math.inf))
        block = single if block is None else _joined(rule, block, single)
    assert block is not None
    return block


def pushed(rule: UpdateRule, stack: Stack | None, block: Block, *, decreasing: bool) -> Stack:
    """The stack with a block on top of it, joined with every block that reaches it."""
    while stack is not None and (stack.top.value <= block.value if decreasing else stack.top.value >= block.value):
        block = _joined(rule, stack.top, block)
        stack = stack.below
    return Stack(block, stack, 1 if stack is None else stack.n + 1)


def blocks(stack: Stack | None) -> list[Block]:
    """All blocks, in the order of their rows."""
    return list(_downwards(stack))[::-1]


def _downwards(stack: Stack | None) -> Iterator[Block]:
    while stack is not None:
        yield stack.top
        stack = stack.below


def _joined(rule: UpdateRule, left: Block, right: Block) -> Block:
    given = rule.merge(*left[2:], *right[2:])
    low, high = sorted((left.value, right.value))
    return Block(left.first, right.last, *_validation.merged_block(given, low, high))
