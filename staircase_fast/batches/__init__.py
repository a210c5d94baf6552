"""Fits of data larger than memory or on several machines: two scans of all rows, no shuffle, the bits of `fit`.

The scans are those of `stack/survey.py`, on parts of the rows.  An engine needs three names and this loop:

    driver = Driver(loss=..., increasing=..., bounds=..., memory_limit=..., n_rows=about)
    while (task := driver.next()) is not None:        # tasks can be pickled
        messages = [task(batches) for batches in partitions]  # batches: iterable of (scores, targets[, weights])
        driver.receive(messages[0].merge(*messages[1:]))      # merge in any order, any tree; count each partition once
    staircase = driver.staircase()

    peek     samples scores.  Some partitions are enough, even none (`task([])`): a poor sample costs a further scan.
    survey   summarises buckets of scores.  Further surveys divide the live buckets, if too many rows are live.
    collect  gathers the rows of live buckets and sums all others exactly.  The driver finishes the fit.
    pool     only for numbers that a survey cannot sum, or live rows that never get fewer: sums per distinct score.

`isinstance(task, PeekTask)` tells the first task; then `driver.receive(message, share)` may tell which share of the
rows it has seen.  A message is pickled, or carried by `to_bytes` and `from_bytes`.  `task.begin()` gives a `Scan` with
`add(scores, targets, weights)` and `message()`, for engines that push rows.

Tests: tests/batches.
"""

from staircase_fast.batches.driver import Driver as Driver
from staircase_fast.batches.messages import Message as Message
from staircase_fast.batches.scans import PeekTask as PeekTask
from staircase_fast.batches.scans import Task as Task
