"""The command `report`: the reliability of scores before and after calibration, as numbers, a page and a picture."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import staircase_fast as sf
from staircase_fast.calibration.error_measures import isotonic_error
from staircase_fast.cli import commands, pictures, tables
from staircase_fast.cli.page import html_page
from staircase_fast.cli.printing import progress
from staircase_fast.errors import InvalidInputError
from staircase_fast.stack.sorted_rows import UNBOUNDED
from staircase_fast.storage import files

NUMBERS = ("mean_score", "miscalibration", "discrimination", "uncertainty", "calibration_error")
_SEGMENTS = 10  # that are listed as text
_SIMULATED_ROWS = 10**8  # for the errors of calibrated scores; the same for all segments together


class Assessment(NamedTuple):
    """The reliability of some rows before and after calibration, and the numbers that are reported."""

    pair: list[sf.Reliability]
    numbers: list[dict[str, float]]


class Segment(NamedTuple):
    """The rows of one group."""

    key: Any
    pair: list[sf.Reliability]  # before and after calibration
    errors: list[sf.CalibrationError | None]  # the same; None if the error of calibrated scores is not defined

    def excess(self, which: int) -> float:
        """How far the calibration error exceeds the reach of chance, before (0) or after (1) calibration."""
        error = self.errors[which]
        return self.pair[which].miscalibration if error is None else error.debiased - 2 * error.spread

    def row(self, which: int) -> dict[str, Any]:
        """A row of the table of segments."""
        found, error, bands = self.pair[which], self.errors[which], self.pair[which].bands
        cells = {"segment": self.key, "rows": found.n_samples}
        cells |= {name: getattr(found, name) for name in NUMBERS[:4]}
        if error is not None:
            cells["debiased_calibration_error"] = error.debiased
        if bands is not None and bands.p_value == bands.p_value:  # not NaN
            cells["p_value"] = bands.p_value
        return cells


class Report(NamedTuple):
    """All that a page shows."""

    model: commands.Model
    in_sample: bool
    found: Assessment
    segments: list[Segment]  # the worst first

    @property
    def judged(self) -> int:
        """The scores that order the segments: after calibration, or before it if the fit had the same rows."""
        return 0 if self.in_sample else 1


def report(options: argparse.Namespace) -> commands.Result:
    """Assess scores before and after calibration; write a page and a picture."""
    options.files = tables.input_paths(options.paths)
    given = commands.given_model(options) if options.model else None
    extension = os.path.splitext(options.plot or "")[1].lower()
    if options.plot and extension not in pictures.EXTENSIONS:
        requirement = f"a picture must end in one of {', '.join(pictures.EXTENSIONS)}"
        raise InvalidInputError("", requirement, file=options.plot)
    if os.path.splitext(options.output or "")[1].lower() in pictures.EXTENSIONS:
        found = "use --plot for a picture"
        raise InvalidInputError("", "--output is an HTML page", found=found, file=options.output)
    with contextlib.ExitStack() as stack:
        # open the files first, so an error of theirs is reported before the work
        plot = stack.enter_context(_output(options.plot)) if options.plot else None
        page = stack.enter_context(_output(options.output)) if options.output else None
        data = commands.read_data(options)
        with commands.located(options):
            made = _assess(options, given, data)
        if plot:
            plot.write(pictures.diagrams(made.found.pair, extension[1:], numbers=True))
        if page:
            page.write(html_page(options, made).encode())
    result: commands.Result = {
        "rows": made.found.pair[0].n_samples,
        "steps": len(made.model.left),
        "in_sample": made.in_sample or None,  # nobody knows which rows a given model was fitted to
        "before": made.found.numbers[0],
        "after": made.found.numbers[1],
    }
    listed = made.segments if options.json else made.segments[:_SEGMENTS]
    title = "segments" if len(listed) == len(made.segments) else f"first_{_SEGMENTS}_segments"
    for which, name in enumerate(("before", "after")):
        if listed:
            result[f"{title}_{name}"] = [segment.row(which) for segment in listed]
    return result | {"output": options.output, "plot": options.plot}


@contextlib.contextmanager
def _output(path: str) -> Iterator[Any]:
    """A file that is replaced atomically, or standard output."""
    if path == "-":
        with tables.located("standard output"):
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
    else:
        with tables.located(path), files.replacing(path) as file:
            yield file


def _assess(options: argparse.Namespace, model: commands.Model | None, data: dict[str, Any]) -> Report:
    """Assess all rows, and the rows of each group.  Without a model, fit one to the same rows."""
    rows = {argument: column for argument, column in data.items() if argument != "groups"}
    settings = _settings(options, rows)
    stages = progress(("before", "fit" if model is None else "apply", "after"), f"report, {len(rows['scores']):,} rows")
    next(stages)
    before = sf.reliability(**rows, **settings)
    next(stages)
    in_sample = model is None
    if model is None:
        loss = "squared" if options.loss == "brier" else options.loss
        model = commands.fit_rows(options, data, loss=loss, bounds=UNBOUNDED)  # log-odds may be infinite
    values = rows | {"scores": commands.predict(options, model, data)}
    next(stages)
    try:
        after = sf.reliability(**values, **settings)
    except InvalidInputError as error:
        if error.argument == "scores":
            error.argument, error.requirement = "", f"values of the model {error.requirement}"
        raise
    numbers = [_numbers_of(found, _errors(options, given)) for found, given in ((before, rows), (after, values))]
    next(stages, None)
    found = Assessment([before, after], numbers)
    if "groups" not in data:
        return Report(model, in_sample, found, [])
    return Report(model, in_sample, found, _segments(options, data, rows, values, settings, judged=not in_sample))


def _settings(options: argparse.Namespace, rows: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `reliability`.  Bands are drawn by default where a finite-sample guarantee exists."""
    bands = options.bands
    if bands is None and (options.output or options.plot or options.group) and _has_labels(options, rows):
        weights = rows.get("sample_weight")
        bands = "confidence" if weights is None or (weights == np.rint(weights)).all() else None
    settings = {"score": options.loss, "n_threads": options.threads}
    if bands not in (None, "none"):
        settings |= {"bands": bands, "seed": 0, "progress": sys.stderr.isatty()}
    return settings


def _has_labels(options: argparse.Namespace, rows: dict[str, Any]) -> bool:
    """Whether scores are probabilities, and targets labels 0 and 1."""
    name = options.loss if isinstance(options.loss, str) else options.loss.name
    return name in ("brier", "log_loss") and bool(((rows["targets"] == 0) | (rows["targets"] == 1)).all())


def _segments(
    options: argparse.Namespace,
    data: dict[str, Any],
    rows: dict[str, Any],
    values: dict[str, Any],
    settings: dict[str, Any],
    *,
    judged: bool,
) -> list[Segment]:
    """Each group, the least calibrated one first."""
    settings = settings | ({"progress": False} if "progress" in settings else {})
    groups = commands.rows_by_group(commands.segment_column(options, data))
    segments = []
    for key, places in progress(groups, "report, segments"):
        pair, errors = [], []
        for given in (rows, values):
            part = {argument: column[places] for argument, column in given.items()}
            if "sample_weight" in part and not part["sample_weight"].any():
                break  # the segment has no rows with a weight > 0
            with commands.located(options, rows=places):
                pair.append(sf.reliability(**part, **settings))
                errors.append(_error_of_segment(options, part, len(groups)))
        else:
            segments.append(Segment(key, pair, errors))
    return sorted(segments, key=lambda segment: -segment.excess(judged))


def _error_of_segment(options: argparse.Namespace, rows: dict[str, Any], n_segments: int) -> sf.CalibrationError | None:
    """The calibration error beside that of calibrated scores, if it is defined."""
    if not _has_labels(options, rows):
        return None
    n_resamples = _n_resamples(n_segments * len(rows["scores"]))
    return isotonic_error(**rows, n_resamples=n_resamples, n_threads=options.threads)


def _n_resamples(n_rows: int) -> int:
    """The number of simulations for this number of rows."""
    return min(100, max(10, _SIMULATED_ROWS // n_rows))


def _errors(options: argparse.Namespace, rows: dict[str, Any]) -> sf.CalibrationErrors | None:
    """Errors beside those of calibrated scores, if they are defined."""
    if not _has_labels(options, rows):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the p-value is among the numbers
        n_resamples = _n_resamples(len(rows["scores"]))
        errors = sf.calibration_errors(**rows, n_resamples=n_resamples, n_threads=options.threads)
    assert isinstance(errors, sf.CalibrationErrors)
    return errors


def _numbers_of(found: sf.Reliability, errors: sf.CalibrationErrors | None) -> dict[str, float]:
    """NUMBERS, and the errors if they are defined."""
    numbers = {name: getattr(found, name) for name in NUMBERS}
    if errors is not None:
        numbers["calibration_error_if_calibrated"] = errors.calibration_error.if_calibrated
        numbers["debiased_calibration_error"] = errors.calibration_error.debiased
        if found.score_name == "brier":
            numbers["debiased_miscalibration"] = errors.miscalibration.debiased
        numbers["monotone_p_value"] = errors.monotone_p_value
    return numbers
