"""`Online` as an object: properties, copies, files and threads."""

import copy
import json
import math
import pickle
import pickletools
import threading

import numpy as np
import pytest
from comparing import assert_same_staircase

import staircase_fast as sf
from staircase_fast.streams import _online

L = sf.losses


def mean(y1, w1, y2, w2):
    return (y1 * w1 + y2 * w2) / (w1 + w2), w1 + w2


both_directions = pytest.mark.parametrize("increasing", [True, False], ids=["rising", "falling"])


# Properties, copies and files


def test_predict_equals_predict_of_the_staircase():
    online = sf.Online()
    online.extend([1, 2], [10, 20])
    assert online.predict([0, 1.5, 3], interpolation="linear", out_of_bounds="nan").tolist()[1] == 15.0
    assert online([0, 5]).tolist() == [10.0, 20.0]
    assert online.predict(2) == 20.0


def test_loss_direction_and_repr():
    online = sf.Online("log", increasing=False)
    assert (online.loss, online.increasing) == (L.LogLoss(), False)
    assert repr(online) == "<Online: 0 rows, 0 steps, log_loss, decreasing>"
    online.append(1, 1)
    assert repr(online) == "<Online: 1 row, 1 step, log_loss, decreasing>"
    rising = sf.Online()
    rising.extend([1, 2], [1, 2])
    assert repr(rising) == "<Online: 2 rows, 2 steps, squared_error>"


def test_a_staircase_does_not_change_when_more_rows_arrive():
    online = sf.Online()
    online.extend([1, 2], [1.0, 2.0])
    stairs = online.staircase()
    assert online.staircase() is stairs
    online.append(3, -9.0)
    assert stairs.values.tolist() == [1.0, 2.0]
    assert online.staircase().values.tolist() == [-2.0]


@pytest.mark.parametrize("many", [False, True])
def test_an_interrupt_after_the_kernel_leaves_no_outdated_staircase(many, monkeypatch):
    class Interrupted:
        def __init__(self, blocks):
            self.blocks = blocks

        def __getattr__(self, name):
            return getattr(self.blocks, name)

        def append(self, *row):
            self.blocks.append(*row)
            raise KeyboardInterrupt

    def extend(blocks, *given):
        kernel(blocks, *given)
        raise KeyboardInterrupt

    online, kernel = sf.Online(), _online.extend
    online.extend([1, 2], [1.0, 2.0])
    assert online.n_steps == 2
    blocks = online._blocks
    if many:
        monkeypatch.setattr(_online, "extend", extend)
    else:
        online._blocks = Interrupted(blocks)
    with pytest.raises(KeyboardInterrupt):
        online.extend([3], [-9.0]) if many else online.append(3, -9.0)
    online._blocks = blocks
    assert online.n_samples == 3
    assert online.staircase().values.tolist() == [-2.0]


SAVED_LOSSES = ["squared", "log", L.Linex(0.5), L.PoissonDeviance(2.0), L.UpdateRule(mean)]


def some_rows(loss, *, increasing=True):
    online = sf.Online(loss, increasing)
    rng = np.random.default_rng(8)
    x = np.sort(rng.integers(0, 30, 60)).astype(float)
    online.extend(x, rng.random(60), rng.random(60) + 0.5)
    online.append(x[-1].item(), 0.25)
    return online


def more_rows(online):
    newest = online.staircase().right[-1].item()
    online.append(newest, 0.125, 3.0)
    online.extend([newest, newest + 1, newest + 2], [0.875, 0.5, 0.3])
    return online.staircase()


@pytest.mark.parametrize(
    "again",
    [copy.copy, copy.deepcopy, lambda online: pickle.loads(pickle.dumps(online))],
    ids=["copy", "deep", "pickle"],
)
@both_directions
@pytest.mark.parametrize("loss", SAVED_LOSSES)
def test_copies_are_independent(loss, increasing, again):
    online = some_rows(loss, increasing=increasing)
    before = online.staircase()
    other = again(online)
    assert_same_staircase(other.staircase(), before)
    there = more_rows(other)
    assert other.n_samples == online.n_samples + 4
    assert_same_staircase(online.staircase(), before)
    assert_same_staircase(more_rows(online), there)


def module_names(data):
    """Every module that a pickle names."""
    names, strings = set(), []
    for opcode, argument, _ in pickletools.genops(data):
        if opcode.name == "STACK_GLOBAL":
            names.add(strings[-2])
        elif opcode.name == "GLOBAL":
            names.add(argument.split(" ")[0])
        elif isinstance(argument, str):
            strings.append(argument)
    return names


@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
@pytest.mark.parametrize("loss", [*SAVED_LOSSES[:4], L.UpdateRule(math.hypot)])
def test_pickles_name_public_modules_only(loss, protocol):
    online = sf.Online(loss) if isinstance(loss, L.UpdateRule) else some_rows(loss)
    names = module_names(pickle.dumps(online, protocol))
    assert "staircase_fast" in names
    others = {name for name in names if name.partition(".")[0] != "numpy"}
    assert others <= {"staircase_fast", "staircase_fast.losses", "builtins", "copyreg", "copy_reg", "math", "_codecs"}


def test_a_rule_with_many_steps_can_be_pickled():
    online = sf.Online(L.UpdateRule(mean))
    online.extend(np.arange(5000), np.arange(5000))
    assert_same_staircase(pickle.loads(pickle.dumps(online)).staircase(), online.staircase())


@both_directions
@pytest.mark.parametrize("loss", SAVED_LOSSES[:4])
def test_a_saved_fit_continues_with_the_same_bits(loss, increasing, tmp_path):
    online = some_rows(loss, increasing=increasing)
    online.save(tmp_path / "online.json")
    other = sf.Online.load(tmp_path / "online.json")
    assert other.to_json() == online.to_json()
    assert_same_staircase(other.staircase(), online.staircase())
    assert_same_staircase(more_rows(other), more_rows(online))


@pytest.mark.parametrize("loss", SAVED_LOSSES[:4])
def test_a_fit_without_rows_can_be_saved(loss):
    other = sf.Online.from_json(sf.Online(loss, False).to_json())
    assert (other.n_samples, other.loss, other.increasing) == (0, sf.Online(loss).loss, False)
    other.append(1, 1)
    assert other.n_steps == 1


@pytest.mark.parametrize(
    "targets",
    [
        [1e308, -5e-324, 0.1, -np.pi],
        [3.0, 1.0, 2.0, 7.0],
        [0.0, 0.0, 0.0, 0.0],
        [2**53 + 1, 2**53 + 3, -(2**62) - 1, 2**62 + 1],
    ],
)
def test_exact_sums_of_any_width_are_saved(targets):
    scores = [-np.inf, 0.0, 1.0, np.inf]
    for weights in (None, [1e-300, 1e300, 0.1, 3.0]):
        online, whole = sf.Online(), sf.Online()
        whole.extend(scores, targets, weights)
        for i in range(4):
            online.append(scores[i], targets[i], 1.0 if weights is None else weights[i])
            online = sf.Online.from_json(online.to_json())
        assert_same_staircase(online.staircase(), whole.staircase())


def test_a_rule_cannot_be_saved():
    with pytest.raises(TypeError, match="`loss` must not be made of functions, which are not saved"):
        sf.Online(L.UpdateRule(mean)).to_json()
    text = sf.Online().to_json().replace("squared_error", "update_rule")
    with pytest.raises(ValueError, match="field `loss` must name one of"):
        sf.Online.from_json(text)


def changed(loss, fields):
    document = json.loads(some_rows(loss).to_json())
    for name, change in fields.items():
        document[name] = change(document[name])
    return json.dumps({name: value for name, value in document.items() if value is not None})


def put(place, value):
    def change(column):
        column[place] = value
        return column

    return change


@pytest.mark.parametrize(
    ("loss", "fields", "message"),
    [
        ("squared", {"format": lambda _: "staircase_fast"}, "field `format` must be 'staircase_fast online'"),
        ("squared", {"version": lambda _: 2}, "field `version` must be 1; got 2"),
        ("squared", {"increasing": lambda _: 1}, "field `increasing` must be true or false"),
        ("squared", {"loss": lambda _: {"name": "huber"}}, "`loss` must have an update rule"),
        ("squared", {"sums": lambda _: None}, "field `sums` is missing"),
        ("squared", {"counts": lambda _: None}, "field `counts` is missing"),
        ("squared", {"counts": put(0, 0)}, "field `counts` must be >= 1; got 0 at index 0"),
        ("squared", {"counts": put(0, 2**62)}, "field `counts` must have a sum below"),
        ("squared", {"counts": put(0, 1.5)}, "field `counts` must hold numbers; got 1.5 at index 0"),
        ("squared", {"counts": lambda column: column[1:]}, "field `counts` must have as many entries as"),
        ("squared", {"left": put(1, -9.0)}, "field `left` must be above the `right` before it; got -9.0 at index 1"),
        ("squared", {"left": put(0, 500.0)}, "field `right` must be >= `left`; got .* at index 0"),
        ("squared", {"right": put(-1, 500.0)}, "field `right` must equal `left` at the newest score"),
        ("squared", {"sums": put(0, 0.5)}, "field `sums` must be an array of"),
        ("squared", {"sums": put(0, 10**99)}, "field `sums` must be sums of targets in"),
        ("squared", {"sums": put(0, -1)}, "field `sums` must be sums of targets in"),
        ("squared", {"sums": lambda column: column[1:]}, "field `sums` must be an array of"),
        ("squared", {"weights": put(0, 0)}, "must be > 0 and possible for this many rows; got 0 at index 0"),
        ("squared", {"weights": put(0, 10**99)}, "field `weights` must be > 0 and possible for this many rows"),
        ("squared", {"units": put(0, 1)}, "field `units` must be"),
        ("squared", {"targets": put(0, 3.0)}, "field `targets` must have a least and a greatest number"),
        ("squared", {"targets": put(1, "inf")}, "field `targets` must have a least and a greatest number"),
        ("squared", {"targets": put(2, 0.0)}, "field `targets` must have a least magnitude above 0"),
        ("squared", {"targets": put(3, 1)}, "field `targets` must be three numbers, then true or false"),
        ("squared", {"sample_weight": put(0, -1.0)}, "field `sample_weight` must have a least and a greatest number"),
        ("log", {"targets": put(1, 1.5)}, r"field `targets` must have a least and a greatest number in \[0, 1\]"),
        (L.Linex(0.5), {"values": put(0, [99.0, 0.0])}, "field `values` must strictly increase up to the newest"),
        (L.Linex(0.5), {"values": put(0, [99.0])}, "field `values` must be an array of .* pairs of numbers"),
        (L.Linex(0.5), {"values": put(0, ["inf", 0.0])}, "field `values` must be finite"),
        (L.Linex(0.5), {"weights": put(0, [-1.0, 0.0])}, "field `weights` must be > 0 and have a finite sum"),
        (L.Linex(0.5), {"loss": lambda _: {"name": "squared_error"}}, "field `sums` is missing"),
    ],
)
def test_changed_files_are_refused(loss, fields, message):
    with pytest.raises(ValueError, match=message):
        sf.Online.from_json(changed(loss, fields))


def test_means_that_do_not_increase_are_refused():
    online = sf.Online()
    online.extend([1, 2, 3, 4], [1.0, 2.0, 3.0, 9.0])
    text = online.to_json().replace('"sums": [1, 2, 3', '"sums": [1, 3, 2')
    with pytest.raises(ValueError, match="field `sums` must have means that increase; got 2 at index 2"):
        sf.Online.from_json(text)


def test_saved_weights_that_overflow_are_refused():
    online = sf.Online()
    online.extend([1, 2, 3], [1.0, 2.0, 3.0], [1e308, 1.0, 1.0])
    document = json.loads(online.to_json())
    document["weights"][1] = document["weights"][0]
    document["sums"][1] = 2 * document["sums"][0]
    with pytest.raises(ValueError, match="field `weights` must have a sum that float64 holds"):
        sf.Online.from_json(json.dumps(document))


@pytest.mark.parametrize("text", ["", "[]", "{", '{"format": NaN}', "[" * 100_000])
def test_other_text_is_refused(text):
    with pytest.raises(ValueError, match=r"an online fit must|field `format`"):
        sf.Online.from_json(text)
    with pytest.raises(TypeError, match="an online fit must be JSON text of type str; got bytes"):
        sf.Online.from_json(text.encode())


def test_memory_grows_with_steps_and_not_with_rows():
    online = sf.Online()
    for part in range(20):
        x = np.arange(100_000) + part * 100_000.0
        online.extend(x, np.linspace(1, 0, 100_000))
        assert 1000 < online._blocks.room < 50_000
    rising = sf.Online()
    for part in range(20):
        for i in range(1000):
            rising.append(part * 1000 + i, i)
    assert rising._blocks.room < 20_000


# Threads


@pytest.mark.parametrize("loss", ["squared", L.Linex(0.5), L.UpdateRule(mean)])
def test_threads_that_share_one_fitter_lose_no_row(loss):
    online, errors = sf.Online(loss), []
    n = 300 if isinstance(loss, L.UpdateRule) else 3000
    start = threading.Barrier(4)

    def work(number):
        try:
            start.wait()
            for i in range(n):
                if number == 3:
                    if i % 10 == 0 and online.n_samples:
                        assert online.staircase().counts.sum() > 0
                        online.to_json() if not isinstance(loss, L.UpdateRule) else repr(online)
                elif i % 3:
                    online.append(1.0, number)
                else:
                    online.extend([1.0] * 5, [number] * 5)
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not errors
    rows_each = sum(1 if i % 3 else 5 for i in range(n))
    assert online.n_samples == 3 * rows_each
    stairs = online.staircase()
    assert (stairs.counts.tolist(), stairs.weights.tolist()) == ([3 * rows_each], [3.0 * rows_each])
    if loss == "squared":
        assert stairs.values.tolist() == [1.0]


def test_rows_of_threads_that_come_too_late_are_refused_and_the_others_are_added():
    online, taken = sf.Online(), []

    def work(number):
        for i in range(2000):
            try:
                online.append(i, number)
                taken.append((i, number))
            except ValueError:
                pass

    workers = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert online.n_samples == len(taken)
    x, y = np.array(taken).T
    assert_same_staircase(online.staircase(), sf.fit(x, y))


def test_targets_at_both_ends_of_float64_survive_json():
    online = sf.Online()
    online.extend([1, 2], [-1.7976931348623157e308, 1.7976931348623157e308])
    assert_same_staircase(sf.Online.from_json(online.to_json()).staircase(), online.staircase())
