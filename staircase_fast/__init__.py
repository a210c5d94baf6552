"""Fast, exact isotonic regression and probability calibration.

>>> import staircase_fast as sf
>>> stairs = sf.fit([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
>>> stairs([0.2, 0.38, 0.9])
array([0. , 0.5, 1. ])

The folders, in the order in which data passes through them::

    inputs       reads columns of any kind, or raises an error
    losses       the function to minimise: its valid targets, values and derivatives
    stack        the block-merge stack, if steps are means (paper, sections IV and V)
    bisection    anytime bisection, for any other convex loss (paper, section VI)
    staircase    the result: evaluate, save, export
    certificate  the proof that a staircase is optimal

fitting.py sends rows along this path.  groups, streams, batches and calibration build on it; sklearn, cli and c_api
make it available elsewhere.  arithmetic (exact sums), storage (files) and threads.py support it.
docs/architecture.md has a picture.
"""

from typing import TYPE_CHECKING, Any

from staircase_fast import losses as losses
from staircase_fast.errors import InvalidInputError as InvalidInputError
from staircase_fast.errors import InvalidTypeError as InvalidTypeError
from staircase_fast.fitting import IsotonicResult as IsotonicResult
from staircase_fast.fitting import fit as fit
from staircase_fast.fitting import isotonic_regression as isotonic_regression
from staircase_fast.staircase.result import Staircase as Staircase
from staircase_fast.threads import get_num_threads as get_num_threads
from staircase_fast.threads import set_num_threads as set_num_threads

if TYPE_CHECKING:
    from staircase_fast.batches.fitting import fit_batches as fit_batches
    from staircase_fast.bisection.anytime import Anytime as Anytime
    from staircase_fast.c_api.building import get_include as get_include
    from staircase_fast.calibration.cross_venn_abers import CrossVennAbers as CrossVennAbers
    from staircase_fast.calibration.display import ReliabilityDisplay as ReliabilityDisplay
    from staircase_fast.calibration.error_measures import CalibrationError as CalibrationError
    from staircase_fast.calibration.error_measures import CalibrationErrors as CalibrationErrors
    from staircase_fast.calibration.error_measures import ClassCalibrationErrors as ClassCalibrationErrors
    from staircase_fast.calibration.error_measures import calibration_errors as calibration_errors
    from staircase_fast.calibration.reliability import Reliability as Reliability
    from staircase_fast.calibration.reliability import reliability as reliability
    from staircase_fast.calibration.venn_abers import ProbabilityPair as ProbabilityPair
    from staircase_fast.calibration.venn_abers import VennAbers as VennAbers
    from staircase_fast.calibration.venn_abers_classes import VennAbersMulticlass as VennAbersMulticlass
    from staircase_fast.calibration.venn_abers_regression import ValueInterval as ValueInterval
    from staircase_fast.calibration.venn_abers_regression import VennAbersRegression as VennAbersRegression
    from staircase_fast.certificate.certifying import Certificate as Certificate
    from staircase_fast.certificate.certifying import certify as certify
    from staircase_fast.groups.fits import fit_columns as fit_columns
    from staircase_fast.groups.fits import fit_groups as fit_groups
    from staircase_fast.groups.staircase_map import StaircaseMap as StaircaseMap
    from staircase_fast.streams.accumulator import Accumulator as Accumulator
    from staircase_fast.streams.online import Online as Online
    from staircase_fast.streams.prefix import UnimodalResult as UnimodalResult
    from staircase_fast.streams.prefix import prefix_losses as prefix_losses
    from staircase_fast.streams.prefix import unimodal_regression as unimodal_regression

# Imported on first use: most programs only fit and predict, and import faster without the rest.
_MODULES = {
    "batches.fitting": ("fit_batches",),
    "bisection.anytime": ("Anytime",),
    "c_api.building": ("get_include",),
    "calibration.cross_venn_abers": ("CrossVennAbers",),
    "calibration.display": ("ReliabilityDisplay",),
    "calibration.error_measures": (
        "CalibrationError",
        "CalibrationErrors",
        "ClassCalibrationErrors",
        "calibration_errors",
    ),
    "calibration.reliability": ("Reliability", "reliability"),
    "calibration.venn_abers": ("ProbabilityPair", "VennAbers"),
    "calibration.venn_abers_classes": ("VennAbersMulticlass",),
    "calibration.venn_abers_regression": ("ValueInterval", "VennAbersRegression"),
    "certificate.certifying": ("Certificate", "certify"),
    "groups.fits": ("fit_columns", "fit_groups"),
    "groups.staircase_map": ("StaircaseMap",),
    "streams.accumulator": ("Accumulator",),
    "streams.online": ("Online",),
    "streams.prefix": ("UnimodalResult", "prefix_losses", "unimodal_regression"),
}
_LATER = {name: module for module, names in _MODULES.items() for name in names}

__version__ = "0.1.0"
__all__ = sorted(  # noqa: PLE0605  (a list)
    [
        "InvalidInputError",
        "InvalidTypeError",
        "IsotonicResult",
        "Staircase",
        "fit",
        "get_num_threads",
        "isotonic_regression",
        "losses",
        "set_num_threads",
        *_LATER,
    ]
)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _LATER:
            import sys

            # with these arguments, Python suggests similar names
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])
        import importlib

        found = getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
