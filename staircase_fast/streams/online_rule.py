"""The blocks of an online fit with an `UpdateRule`: the same methods as `_online.OnlineBlocks`, in Python.

The rows of the newest score are stored until a greater score arrives, because the rule gets the rows of a score sorted.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from staircase_fast.errors import InvalidInputError
from staircase_fast.inputs.columns import Column
from staircase_fast.losses import UpdateRule
from staircase_fast.stack import update_rule

_TICKS = 2**1074  # every float is a multiple of 1 / _TICKS
_OVERFLOW = (2**1024 - 2**970) * _TICKS  # rounds to a number above all floats


class Mark(NamedTuple):
    """A position between two rows."""

    rows: int  # number of rows before it
    ticks: int  # their weight
    score: float  # of the next row, or of the last one at the end


_START = Mark(0, 0, -math.inf)


class _Rows(NamedTuple):
    """All rows so far.  It is replaced, never changed: if a user's function raises, the rows stay as they were."""

    stack: update_rule.Stack | None = None
    first: Mark = _START  # of the newest observation
    newest: tuple[tuple[float, float], ...] = ()  # targets and weights of the newest observation
    last: Mark = _START


class RuleBlocks:
    """Blocks of all rows so far."""

    def __init__(self, rule: UpdateRule, *, decreasing: bool) -> None:
        self._rule, self._decreasing = rule, decreasing
        self._rows = _Rows()

    @property
    def n_rows(self) -> int:
        return self._rows.last.rows

    @property
    def newest(self) -> float:
        return self._rows.last.score

    def append(self, score: float, target: float, weight: float) -> None:
        self._add([(score, target, weight)])

    def extend(self, scores: Column, targets: Column, weights: Column) -> None:
        w = weights.tolist() or [1.0] * len(scores)
        self._add(list(zip(scores.tolist(), targets.astype(np.float64).tolist(), w, strict=True)))

    def _add(self, rows: list[tuple[float, float, float]]) -> None:
        stack, first, tied, last = self._rows
        newest = list(tied)
        for score, target, weight in rows:
            if not newest or score > last.score:
                if newest:
                    stack = self._push(stack, first, newest, last)
                first, newest = last._replace(score=score + 0.0), []
            newest.append((target, weight))
            numerator, denominator = weight.as_integer_ratio()
            last = Mark(last.rows + 1, last.ticks + numerator * (_TICKS // denominator), score + 0.0)
        if last.ticks >= _OVERFLOW:
            raise InvalidInputError("sample_weight", "must have a finite sum over all rows", found="it overflows")
        self._push(stack, first, newest, last)  # an error of the rule must occur before the rows are added
        self._rows = _Rows(stack, first, tuple(newest), last)

    def _push(
        self, stack: update_rule.Stack | None, first: Mark, newest: list[tuple[float, float]], last: Mark
    ) -> update_rule.Stack:
        block = update_rule.observation(self._rule, first, last, newest, decreasing=self._decreasing)
        return update_rule.pushed(self._rule, stack, block, decreasing=self._decreasing)

    def steps(self, _lo: float, _hi: float) -> tuple[Any, ...]:
        """The columns left, right, values, weights and counts of the staircase."""
        stack, first, newest, last = self._rows
        blocks = update_rule.blocks(self._push(stack, first, list(newest), last))
        columns = [
            (block.first.score, block.last.score, block.value, (block.last.ticks - block.first.ticks) / _TICKS)
            for block in blocks
        ]
        counts = np.array([block.last.rows - block.first.rows for block in blocks], dtype=np.int64)
        return *(np.array(column) + 0.0 for column in zip(*columns, strict=True)), counts

    def state(self) -> tuple[Any, ...]:
        """Everything that is known of the rows, as plain tuples."""
        stack, first, newest, last = self._rows
        blocks = [(tuple(one.first), tuple(one.last), *one[2:]) for one in update_rule.blocks(stack)]
        return blocks, tuple(first), newest, tuple(last)

    def restore(self, state: tuple[Any, ...]) -> None:
        """Replace the state."""
        blocks, first, newest, last = state
        stack = None
        for n, (begin, end, *rest) in enumerate(blocks, 1):
            stack = update_rule.Stack(update_rule.Block(Mark(*begin), Mark(*end), *rest), stack, n)
        self._rows = _Rows(stack, Mark(*first), newest, Mark(*last))
