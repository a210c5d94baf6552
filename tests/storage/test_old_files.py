"""Files that earlier versions saved still load, and equal a fresh fit of the same rows.

The files in old_files were written before the package was divided into folders.  To add a file, add its fit to FITS and
save it with the oldest version that can.
"""

import math
from pathlib import Path

import numpy as np
import pytest
from comparing import assert_same_bits

import staircase_fast as sf

FOLDER = Path(__file__).parent / "old_files"
X = [0.5, -1.25, 3.0, 2.0, 2.0, 0.1, 7.5, -math.inf]
Y = [0.3, 1.7, 2.5, 0.1, 4.4, -2.0, 3.3, 0.2]
LABELS = [0, 1, 1, 0, 1, 0, 1, 0]
COUNTS = [1, 0, 4, 2, 3, 0, 9, 1]
WEIGHTS = [1.5, 2.0, 0.1, 3.0, 1.0, 0.7, 1.0, 2.5]
GROUPS = [0, 1, 0, 1, 2, 2, 0, 1]
WORDS = ["b", "", "b", "", "ü", "ü", "b", ""]


def slope(z, y):
    return z - y


FITS = {
    "staircase_squared.json": lambda: sf.fit(X, Y, sample_weight=WEIGHTS),
    "staircase_log_decreasing.json": lambda: sf.fit(X, LABELS, loss="log", increasing=False),
    "staircase_poisson_exposure.json": lambda: sf.fit(X, COUNTS, loss=sf.losses.PoissonDeviance(WEIGHTS)),
    "staircase_quantile.json": lambda: sf.fit(X, Y, loss=sf.losses.Quantile(0.3)),
    "staircase_logistic_infinite.json": lambda: sf.fit(X, LABELS, loss="logistic", bounds=(-math.inf, math.inf)),
    "staircase_custom.json": lambda: sf.fit(X, Y, loss=sf.losses.Custom(slope)),
    "map_strings.npz": lambda: sf.fit_groups(X, Y, WORDS, sample_weight=WEIGHTS, increasing="auto"),
    "map_integers_huber.npz": lambda: sf.fit_groups(X, Y, GROUPS, loss=sf.losses.Huber(WEIGHTS)),
    "map_large_integers.npz": lambda: sf.fit_groups(X, Y, [2**63 + group for group in GROUPS]),
    "map_bools.npz": lambda: sf.fit_groups(X, LABELS, [group > 0 for group in GROUPS], loss="log"),
    "venn_abers.json": lambda: sf.VennAbers().fit(X, LABELS, WEIGHTS),
    "venn_abers_cross.json": lambda: sf.CrossVennAbers().fit(X, LABELS, GROUPS),
}


def test_every_old_file_has_a_fit():
    names = {path.name for path in FOLDER.iterdir() if path.name.startswith(("staircase_", "map_", "venn_"))}
    assert names == set(FITS)


@pytest.mark.parametrize("name", FITS)
def test_an_old_file_equals_a_fresh_fit(name):
    fresh = FITS[name]()
    loaded = type(fresh).load(FOLDER / name)
    if name.endswith(".json"):
        assert loaded.to_json() == (FOLDER / name).read_text(encoding="utf-8")
    if name.startswith("staircase_"):
        assert_same_fit(loaded, fresh)
    elif name.startswith("map_"):
        assert [(type(key), key) for key in loaded] == [(type(key), key) for key in fresh]
        for key in fresh:
            assert_same_fit(loaded[key], fresh[key])
    else:
        assert loaded == fresh


def assert_same_fit(loaded, fresh):
    """All fields are equal to the last bit, except bounds that are proven by rounds of bisection.

    These may become wider or narrower from version to version.
    """
    for field in ("left", "right", "values", "weights", "counts"):
        assert_same_bits(getattr(loaded, field), getattr(fresh, field))
    for field in ("lower", "upper"):
        old, new = getattr(loaded, field), getattr(fresh, field)
        if fresh.loss.name in ("logistic", "custom"):
            np.testing.assert_allclose(old, new, rtol=1e-14, atol=1e-14)
        else:
            assert_same_bits(old, new)
    assert loaded.increasing == fresh.increasing
    assert loaded.loss == fresh.loss or (loaded.loss.name, fresh.loss.name) == ("custom", "custom")


def test_the_function_of_a_custom_loss_is_not_saved():
    loaded = sf.Staircase.load(FOLDER / "staircase_custom.json")
    with pytest.raises(ValueError, match="was not saved"):
        loaded.loss.derivative(1.0, 2.0)
