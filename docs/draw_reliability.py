"""The picture in the README: `PYTHONPATH=. .venv/bin/python docs/draw_reliability.py` writes docs/reliability.png.

Reliability diagrams of an overconfident model, before and after recalibration on other rows.
"""

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

import staircase_fast as sf

mpl.use("Agg")

rng = np.random.default_rng(1)
chance = rng.beta(1.1, 1.4, 40_000)
labels = rng.random(40_000) < chance
odds = chance / (1.0 - chance)
scores = 1.0 - 1.0 / (1.0 + odds**2.2)  # overconfident
fitted, shown = slice(0, 36_000), slice(36_000, None)
stairs = sf.fit(scores[fitted], labels[fitted], loss="log")

plt.rcParams.update({"font.family": "DejaVu Sans", "font.size": 11})
figure, axes = plt.subplots(1, 2, figsize=(9.2, 5.2), dpi=100, layout="constrained", sharey=True)
for ax, title, forecasts in (
    (axes[0], "an overconfident model", scores[shown]),
    (axes[1], "the same, recalibrated on other rows", stairs(scores[shown])),
):
    sf.reliability(forecasts, labels[shown], bands="consistency", seed=0).plot(ax)
    ax.set_title(title, fontsize=12)
axes[1].set_ylabel("")
figure.savefig(Path(__file__).with_name("reliability.png"), metadata={"Software": None})
