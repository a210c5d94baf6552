"""Pickles of results and estimators contain public names only."""

import pickle
import pickletools

import numpy as np
import pytest
from comparing import assert_same_bits
from sklearn.naive_bayes import GaussianNB

import staircase_fast as sf
from staircase_fast.sklearn import StaircaseCalibrator, StaircaseRegressor, VennAbersCalibrator

SCORES = np.array([0.1, 0.4, 0.35, 0.8, 0.3, 0.6, 0.2, 0.9])
LABELS = np.array([0, 0, 1, 1, 0, 1, 0, 1])
PUBLIC = {"staircase_fast", "staircase_fast.sklearn", "staircase_fast.losses"}
OTHERS = {"numpy", "sklearn", "builtins"}

FITTED = {
    "regressor": StaircaseRegressor(loss="huber").fit(SCORES, LABELS),
    "calibrator of scores": StaircaseCalibrator(prior="laplace").fit(SCORES, LABELS),
    "calibrator of a classifier": StaircaseCalibrator(GaussianNB(), cv=2).fit(SCORES[:, np.newaxis], LABELS),
    "Venn-Abers": sf.VennAbers().fit(SCORES, LABELS),
    "cross Venn-Abers": sf.CrossVennAbers().fit(SCORES, LABELS, folds=np.arange(8) % 2),
    "Venn-Abers of classes": sf.VennAbersMulticlass().fit(np.column_stack([1 - SCORES, SCORES]), LABELS),
    "Venn-Abers of targets": sf.VennAbersRegression().fit(SCORES, LABELS),
    "Venn-Abers calibrator": VennAbersCalibrator(GaussianNB(), cv=2).fit(SCORES[:, np.newaxis], LABELS),
    "reliability": sf.reliability(SCORES, LABELS, score="log", bands="confidence", n_resamples=9, seed=0),
}


def names_in(pickled):
    """The (module, name) of each global that a pickle imports, for any protocol."""
    strings, memo, found = [], {}, []
    for opcode, argument, _ in pickletools.genops(pickled):
        if opcode.name == "GLOBAL":
            found.append(tuple(argument.split(" ")))
        elif opcode.name == "STACK_GLOBAL":
            found.append(tuple(strings[-2:]))
        elif "UNICODE" in opcode.name:
            strings.append(argument)
        elif opcode.name == "MEMOIZE":
            memo[len(memo)] = strings[-1] if strings else None
        elif opcode.name in ("BINGET", "LONG_BINGET") and isinstance(memo.get(argument), str):
            strings.append(memo[argument])
    return found


@pytest.mark.parametrize("protocol", [4, 5])
@pytest.mark.parametrize("kind", FITTED)
def test_a_pickle_contains_public_names_only(kind, protocol):
    found = names_in(pickle.dumps(FITTED[kind], protocol))
    assert any(module.startswith("staircase_fast") for module, _ in found)
    for module, name in found:
        root = module.partition(".")[0]
        assert module in PUBLIC if root == "staircase_fast" else root in OTHERS, (module, name)
        assert root != "staircase_fast" or not any(part.startswith("_") for part in name.split(".")), (module, name)


@pytest.mark.parametrize("kind", ["Venn-Abers", "cross Venn-Abers", "reliability"])
def test_a_restored_pickle_is_equal(kind):
    assert pickle.loads(pickle.dumps(FITTED[kind])) == FITTED[kind]


@pytest.mark.parametrize("kind", ["regressor", "calibrator of scores", "calibrator of a classifier"])
def test_a_restored_estimator_predicts_the_same(kind):
    model = FITTED[kind]
    queries = SCORES[:, np.newaxis] if kind.endswith("classifier") else SCORES
    assert_same_bits(pickle.loads(pickle.dumps(model)).predict(queries), model.predict(queries))


def test_names_are_found_in_pickles_of_every_protocol():
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        found = names_in(pickle.dumps([pickle.Pickler, pickletools.genops, pickle.Unpickler], protocol))
        assert ("pickletools", "genops") in found
        assert len(found) == 3
