"""Bucket maps in several levels: later rounds divide the live buckets of earlier ones.

A further round needs finer buckets, but only inside the live ones.  Let c(x) be the number of borders between live and
quiet buckets at or below the score x, and m(x) a new map, made from a sample of live scores.  Both never decrease, so

    c(x) + m(x)

is a bucket map as well.  Two scores share one of its buckets only if they agree in c and in m.  So no bucket contains
both live and quiet scores of the round before, and m divides the live ones.  A bucket that was quiet stays quiet: the
proof that it contains no end of a step holds, although its rows may now share a bucket with those of other quiet ones.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from staircase_fast.stack.survey import NO_BUCKETS
from staircase_fast.staircase import _lookup, cells
from staircase_fast.staircase.cells import Map


class Buckets:
    """A bucket map for one round or for several."""

    def __init__(self, *maps: Map, live: tuple[NDArray[np.uint8], ...] = ()) -> None:
        self.maps = maps
        self._packed = live  # a bit for each bucket of each level but the last: whether it is live

    def __reduce__(self) -> tuple[Any, ...]:
        return _buckets, (self.maps, self._packed)  # without `_borders`, which are larger

    @cached_property
    def _borders(self) -> list[NDArray[np.int32]]:
        """For each level but the last, the number of borders before each bucket; odd: the bucket is live."""
        found: list[NDArray[np.int32]] = []
        for level, packed in enumerate(self._packed):
            live = np.unpackbits(packed, count=self._size(level, found)).astype(np.int32)
            found.append(2 * np.cumsum(live, dtype=np.int32) - live)
        return found

    def _size(self, level: int, borders: list[NDArray[np.int32]]) -> int:
        """The number of buckets of the first levels."""
        return cells.n_buckets(self.maps[level]) + (int(borders[level - 1][-1]) if level else 0)

    @cached_property
    def n(self) -> int:
        """The number of buckets."""
        return self._size(len(self.maps) - 1, self._borders)

    def refined(self, live: NDArray[np.uint8], bucket_map: Map) -> Buckets:
        """The map of the next round."""
        return Buckets(*self.maps, bucket_map, live=(*self._packed, np.packbits(live)))

    def find(self, scores: NDArray[Any], was_live: NDArray[np.uint8] | None = None) -> NDArray[np.int32]:
        """The bucket of each score.

        In later rounds, `was_live` is set to 1 at each of these buckets that belongs to a live one of the round before.
        """
        if len(self.maps) == 1:
            return _located(scores, self.maps[0])
        borders = self._borders_below(scores)
        bucket = borders + _located(scores, self.maps[-1])
        if was_live is not None:
            was_live[bucket] = borders & 1
        return bucket

    def find_for_kernel(self, scores: NDArray[Any], was_live: NDArray[np.uint8] | None = None) -> NDArray[np.int32]:
        """The same, or NO_BUCKETS if the kernel can use the map."""
        return self.find(scores, was_live) if len(self.maps) > 1 else NO_BUCKETS

    def _borders_below(self, scores: NDArray[Any]) -> NDArray[np.int32]:
        """The borders between live and quiet buckets of the round before; odd: the score is in a live one."""
        borders = self._borders[0][_located(scores, self.maps[0])]
        for level in range(1, len(self._borders)):
            borders = self._borders[level][borders + _located(scores, self.maps[level])]
        return borders

    def still_live(self, scores: NDArray[Any]) -> NDArray[Any]:
        """The scores that were in live buckets in the round before; all of them in the first round."""
        if len(self.maps) == 1:
            return scores
        return scores[self._borders_below(scores) % 2 == 1]


def _buckets(maps: tuple[Map, ...], live: tuple[NDArray[np.uint8], ...]) -> Buckets:
    return Buckets(*maps, live=live)


def _located(scores: NDArray[Any], bucket_map: Map) -> NDArray[np.int32]:
    bucket = np.empty(len(scores), dtype=np.int32)
    _lookup.locate(scores, bucket_map, bucket)
    return bucket
