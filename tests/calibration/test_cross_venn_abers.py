"""Cross Venn-Abers predictors: one predictor per fold, merged as in the paper; JSON of both kinds."""

import copy
import json
import math
import pickle
import re

import numpy as np
import pytest
import reference
from comparing import assert_same_bits

import staircase_fast as sf

inf, nan = math.inf, math.nan
RNG = np.random.default_rng(0)
N, K = 300, 5
X = RNG.random(N).round(2)
Y = RNG.random(N) < X
W = RNG.random(N)
FOLDS = RNG.integers(0, K, N)
QUERIES = RNG.random((40, K)).round(2)


def each_alone(weights=None):
    """The predictor of each fold, fitted by itself."""
    for fold in range(K):
        own = fold == FOLDS
        yield sf.VennAbers().fit(X[own], Y[own], None if weights is None else weights[own])


@pytest.mark.parametrize("weights", [None, W])
def test_each_fold_is_a_predictor_of_its_own_rows(weights):
    cross = sf.CrossVennAbers().fit(X, Y, FOLDS, sample_weight=weights)
    assert cross.predictors == tuple(each_alone(weights))
    assert (cross.folds, cross.n_samples) == (tuple(range(K)), N)
    p0, p1 = cross.predict(QUERIES)
    assert p0.shape == p1.shape == (40, K)
    for fold, venn in enumerate(cross.predictors):
        assert_same_bits(p0[:, fold], venn.predict(QUERIES[:, fold]).p0)
        assert_same_bits(p1[:, fold], venn.predict(QUERIES[:, fold]).p1)


@pytest.mark.parametrize("rule", ["log", "brier"])
def test_folds_are_merged_as_in_the_paper(rule):
    cross = sf.CrossVennAbers().fit(X, Y, FOLDS)
    p0, p1 = cross.predict(QUERIES)
    expected = [reference.merged_folds(list(zip(*pair, strict=True)), rule) for pair in zip(p0, p1, strict=True)]
    np.testing.assert_allclose(cross.merge(QUERIES, rule=rule), expected, rtol=1e-13)


@pytest.mark.parametrize("rule", ["log", "brier"])
def test_one_score_can_be_used_for_all_folds(rule):
    cross = sf.CrossVennAbers().fit(X, Y, FOLDS)
    one = QUERIES[:, 0]
    repeated = np.repeat(one[:, np.newaxis], K, axis=1)
    assert_same_bits(cross.predict(one).p1, cross.predict(repeated).p1)
    assert_same_bits(cross.merge(one, rule=rule), cross.merge(repeated, rule=rule))
    assert cross.predict(0.5).p0.shape == (K,)
    assert isinstance(cross.merge(0.5, rule=rule), float)
    assert cross.merge(np.empty((0, K)), rule=rule).shape == cross.merge([], rule=rule).shape == (0,)


@pytest.mark.parametrize("rule", ["log", "brier"])
def test_one_fold_is_the_inductive_predictor(rule):
    cross, venn = sf.CrossVennAbers(2.0).fit(X, Y, np.full(N, 7)), sf.VennAbers(2.0).fit(X, Y)
    assert cross.predictors == (venn,)
    np.testing.assert_allclose(cross.merge(X, rule=rule), venn.merge(X, rule=rule), rtol=1e-13)


def test_folds_are_integers_of_any_kind_in_ascending_order():
    names = np.array([-3, 10, 2, 2**40, 7])[FOLDS]
    cross = sf.CrossVennAbers().fit(X, Y, names)
    assert cross.folds == (-3, 2, 7, 10, 2**40)
    assert cross.predictors[1] == sf.CrossVennAbers().fit(X, Y, FOLDS).predictors[2]
    assert sf.CrossVennAbers().fit(X, Y, names.astype(float)) == cross
    assert sf.CrossVennAbers().fit([1, 2], [0, 1], [True, False]).folds == (0, 1)


def test_rows_of_weight_0_are_ignored():
    w = (np.arange(N) % 3 > 0).astype(float)
    kept = w > 0
    a, b = sf.CrossVennAbers().fit(X, Y, FOLDS, w), sf.CrossVennAbers().fit(X[kept], Y[kept], FOLDS[kept])
    assert a == b


def test_probabilities_that_were_rounded_to_0_or_1_can_be_merged():
    cross = sf.CrossVennAbers(5e-324).fit([1, 1], [0, 1], [0, 1], sample_weight=[1e300, 1e300])
    assert [pair.tolist() for pair in cross.predict(1)] == [[0, 1], [0, 1]]
    assert cross.merge(1) == 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1, 2], [0, 1], [0]), "`scores` and `folds` must have one entry per row; got 2 and 1 entries."),
        (([1, 2], [0, 1], [0, 0.5]), "`folds` must be integers; got 0.5 at index 1."),
        (([1, 2], [0, 1], [nan, 1]), "`folds` must be integers; got nan at index 0."),
        (([1, 2], [0, 1], [inf, 1]), "`folds` must be integers; got inf at index 0."),
        (([1, 2], [0, 1], [3, 1], [1, 0]), "`folds` must each have a row with `sample_weight` > 0; got 1 at index 1."),
        (
            ([1, 2], [0, 3], [0, 1]),
            "`labels` must be 0 or 1; got 3 at index 1. If 3 is the class to predict, pass `np.equal(labels, 3)`.",
        ),
    ],
)
def test_an_invalid_fit_raises_an_error_and_changes_nothing(arguments, message):
    cross = sf.CrossVennAbers().fit(X, Y, FOLDS)
    before = copy.copy(cross)
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        cross.fit(*arguments)
    assert str(caught.value) == message
    assert cross == before


def test_invalid_queries_are_refused():
    cross = sf.CrossVennAbers().fit(X, Y, FOLDS)
    for shape in ((3, K + 1), (3, 1), (2, 2, K)):
        message = f"`scores` must be one for each query, or have a column for each of the {K} folds; got shape {shape}."
        with pytest.raises(ValueError, match=re.escape(message)):
            cross.predict(np.zeros(shape))
    bad = QUERIES.copy()
    bad[2, 1] = nan
    with pytest.raises(ValueError, match=r"`scores` must not be NaN; got nan at index 11\."):
        cross.merge(bad)
    with pytest.raises(ValueError, match="`rule` must be one of"):
        cross.merge(QUERIES, rule="mean")
    with pytest.raises(ValueError, match="`query_weight` must be > 0"):
        sf.CrossVennAbers(0)


def test_an_unfitted_predictor_raises_an_error():
    cross = sf.CrossVennAbers()
    with pytest.raises(ValueError, match=r"a CrossVennAbers must be fitted first; call `fit`\."):
        cross.merge([1])
    assert not hasattr(cross, "folds")
    assert repr(cross) == "<CrossVennAbers: not fitted>"
    assert pickle.loads(pickle.dumps(cross)) == cross == sf.CrossVennAbers()
    assert cross != sf.CrossVennAbers(2.0)
    assert cross != 1


def test_copies_and_pickles_are_equal():
    cross = sf.CrossVennAbers(0.5).fit(X, Y, FOLDS, W)
    for other in (copy.copy(cross), copy.deepcopy(cross), pickle.loads(pickle.dumps(cross))):
        assert other == cross
        assert other.query_weight == 0.5
        other.fit(X, Y, FOLDS)
        assert other != cross
    assert repr(cross) == f"<CrossVennAbers: {N} rows in {K} folds>"
    assert repr(sf.CrossVennAbers().fit([1], [1], [0])) == "<CrossVennAbers: 1 row in 1 fold>"


# Both kinds as JSON.


def fitted():
    return sf.VennAbers(0.1).fit([1, 2, inf, -inf], [0, 1, 1, 0], [0.1, 0.2, 0.3, 0.7])


def crossed():
    return sf.CrossVennAbers(0.1).fit(X, Y, FOLDS, W)


@pytest.mark.parametrize("make", [fitted, crossed])
def test_json_and_files_keep_every_bit(make, tmp_path):
    made = make()
    again = type(made).from_json(made.to_json())
    assert again == made
    assert again.to_json() == made.to_json()
    made.save(tmp_path / "venn.json")
    assert type(made).load(tmp_path / "venn.json") == made


def test_the_document_holds_these_fields_and_no_others():
    assert json.loads(sf.VennAbers().fit([1], [1]).to_json()) == {
        "format": "staircase_fast venn-abers",
        "version": 1,
        "query_weight": 1.0,
        "n_samples": 1,
        "left": ["-inf", 1.0],
        "p0": [0.0, 0.5],
        "p1": [1.0, 1.0],
    }
    assert sorted(json.loads(crossed().to_json())) == ["folds", "format", "predictors", "version"]


@pytest.mark.parametrize("make", [sf.VennAbers, sf.CrossVennAbers])
def test_an_unfitted_predictor_cannot_be_saved(make, tmp_path):
    with pytest.raises(ValueError, match="must be fitted first"):
        make().save(tmp_path / "nothing.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "staircase_fast"}, "field `format` must be 'staircase_fast venn-abers'; got 'staircase_fast'."),
        ({"version": 2}, "field `version` must be 1; got 2."),
        ({"loss": 1}, "field `loss` is not known"),
        ({"query_weight": 0}, "`query_weight` must be > 0; got 0."),
        ({"query_weight": "1"}, "`query_weight` must be a number; got '1'."),
        ({"n_samples": 0}, "`n_samples` must be an integer >= 1; got 0."),
        ({"n_samples": 1.0}, "`n_samples` must be an integer >= 1; got 1.0."),
        ({"left": [], "p0": [], "p1": []}, "`left` must have at least one step; got none."),
        ({"left": [0.0, 1.0]}, "`left` must start at -inf; got 0.0 at index 0."),
        ({"left": ["-inf", "-inf"]}, "`left` must strictly increase; got -inf at index 1."),
        ({"left": ["-inf"]}, "`left` and `p0` must have one entry per row; got 1 and 2 entries."),
        ({"p0": [0.0, None]}, "field `p0` must hold numbers; got None at index 1."),
        ({"p0": [0.0, "inf"]}, "`p0` must be in [0, 1]; got inf at index 1."),
        ({"p1": [-0.5, 1.0]}, "`p1` must be in [0, 1]; got -0.5 at index 0."),
        ({"p0": [0.5, 0.25]}, "`p0` must not decrease; got 0.25 at index 1."),
        ({"p1": [0.5, 0.5], "p0": [0.5, 0.75]}, "`p0` must be <= `p1`; got 0.75 at index 1."),
    ],
)
def test_a_damaged_document_is_refused(changes, message):
    document = json.loads(sf.VennAbers().fit([1], [1]).to_json()) | changes
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        sf.VennAbers.from_json(json.dumps(document))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"folds": [0]}, "`folds` must have one entry per predictor; got 1 and 2."),
        ({"folds": [], "predictors": []}, "`folds` must have one entry per predictor; got 0 and 0."),
        ({"folds": [1, 1]}, "`folds` must be integers that increase; got 1 at index 1."),
        ({"folds": [0, True]}, "`folds` must be integers that increase; got True at index 1."),
        ({"folds": 3}, "`folds` must be an array; got int."),
        ({"predictors": {}}, "`predictors` must be an array; got dict."),
        ({"predictors": [1, 2]}, "`predictors` must be objects; got 1 at index 0."),
        ({"predictors": [{}, {}]}, "field `query_weight` is missing."),
    ],
)
def test_a_damaged_document_of_folds_is_refused(changes, message):
    document = json.loads(sf.CrossVennAbers().fit([1, 2], [1, 0], [0, 1]).to_json()) | changes
    with pytest.raises(ValueError, match=re.escape(message)):
        sf.CrossVennAbers.from_json(json.dumps(document))


def test_folds_with_different_query_weights_are_refused():
    document = json.loads(sf.CrossVennAbers().fit([1, 2], [1, 0], [0, 1]).to_json())
    document["predictors"][1]["query_weight"] = 2.0
    with pytest.raises(ValueError, match=re.escape("`query_weight` must be the same for all folds; got [1.0, 2.0].")):
        sf.CrossVennAbers.from_json(json.dumps(document))


# A concurrent fit: each call uses either the old fit or the new one.


def fitted_meanwhile(kind, *rows):
    """A predictor that is refitted after each access to its fit, as another thread might do."""

    class Meanwhile(kind):
        def _result(self):
            found = super()._result()
            self.fit(*rows)
            return found

    return Meanwhile()


@pytest.mark.parametrize(
    "call", [lambda cross: cross.predict(X), lambda cross: cross.merge(X), sf.CrossVennAbers.to_json, repr]
)
def test_a_concurrent_fit_does_not_mix_with_a_prediction(call):
    rows = [0.3, 0.5], [0, 1], [0, 1]
    cross = fitted_meanwhile(sf.CrossVennAbers, X, Y, np.arange(N) % 2)  # many more steps
    np.testing.assert_array_equal(call(cross.fit(*rows)), call(sf.CrossVennAbers().fit(*rows)))


@pytest.mark.parametrize("call", [sf.VennAbers.to_json, repr, copy.copy])
def test_a_concurrent_fit_does_not_mix_with_text_or_copies(call):
    rows = [0.3, 0.5], [0, 1]
    assert call(fitted_meanwhile(sf.VennAbers, X, Y).fit(*rows)) == call(sf.VennAbers().fit(*rows))
