from typing import Any

from numpy.typing import NDArray

from staircase_fast.exact import Extent

def extent(values: NDArray[Any]) -> tuple[int, float, float, float, bool]: ...
def scale_of(
    targets: Extent, weights: Extent, n: int
) -> tuple[int, int, int, int, bool, bool, float, float, float, float]: ...
def order(scores: NDArray[Any]) -> tuple[int, bool, bool, bool]: ...
