"""The optimal monotone transform of scores under strictly convex losses, exact and fast.

>>> import staircase_fast as sf
>>> stairs = sf.fit([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
>>> stairs([0.2, 0.38, 0.9])
array([0. , 0.5, 1. ])
"""

from typing import TYPE_CHECKING, Any

from staircase_fast import losses
from staircase_fast.fit import IsotonicResult, fit, isotonic_regression
from staircase_fast.settings import get_num_threads, set_num_threads
from staircase_fast.staircase import Staircase

if TYPE_CHECKING:
    from staircase_fast.accumulator import Accumulator
    from staircase_fast.anytime import Anytime
    from staircase_fast.assessment import Reliability, reliability
    from staircase_fast.building import get_include
    from staircase_fast.certificate import Certificate, certify
    from staircase_fast.cross_venn_abers import CrossVennAbers
    from staircase_fast.groups import fit_columns, fit_groups
    from staircase_fast.online import Online
    from staircase_fast.prefix import UnimodalResult, prefix_losses, unimodal_regression
    from staircase_fast.staircase_map import StaircaseMap
    from staircase_fast.venn_abers import ProbabilityPair, VennAbers
else:
    # imported when first asked for: most programs fit and predict, and should not wait for the rest
    _LATER = {
        "Accumulator": "accumulator",
        "Anytime": "anytime",
        "Certificate": "certificate",
        "CrossVennAbers": "cross_venn_abers",
        "Online": "online",
        "ProbabilityPair": "venn_abers",
        "Reliability": "assessment",
        "StaircaseMap": "staircase_map",
        "UnimodalResult": "prefix",
        "VennAbers": "venn_abers",
        "certify": "certificate",
        "fit_columns": "groups",
        "fit_groups": "groups",
        "get_include": "building",
        "prefix_losses": "prefix",
        "reliability": "assessment",
        "unimodal_regression": "prefix",
    }

    def __getattr__(name: str) -> Any:
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib

        found = getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
        globals()[name] = found
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


__all__ = [
    "Accumulator",
    "Anytime",
    "Certificate",
    "CrossVennAbers",
    "IsotonicResult",
    "Online",
    "ProbabilityPair",
    "Reliability",
    "Staircase",
    "StaircaseMap",
    "UnimodalResult",
    "VennAbers",
    "certify",
    "fit",
    "fit_columns",
    "fit_groups",
    "get_include",
    "get_num_threads",
    "isotonic_regression",
    "losses",
    "prefix_losses",
    "reliability",
    "set_num_threads",
    "unimodal_regression",
]
__version__ = "0.1.0.dev0"
