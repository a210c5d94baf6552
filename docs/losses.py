"""The picture in choosing_a_loss.md: `PYTHONPATH=. .venv/bin/python docs/losses.py` writes docs/losses.png."""

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

import staircase_fast as sf

mpl.use("Agg")

rng = np.random.default_rng(4)
scores = np.sort(rng.uniform(0, 10, 160))
targets = 1.0 + 3.0 / (1.0 + np.exp(5.0 - scores)) + rng.normal(0, 0.4, 160)
targets[[36, 38, 41, 108, 111, 114]] = [5.6, 6.1, 5.3, -0.7, -1.1, -0.4]  # outliers

losses = [
    ("squared: the mean; outliers pull it", "#e07b00", sf.losses.SquaredError()),
    ("Huber(0.3): outliers count little", "#0062b8", sf.losses.Huber(0.3)),
    ("Quantile(0.9): at least nine in ten lie at or below", "#00916e", sf.losses.Quantile(0.9)),
]

plt.rcParams.update({"font.family": "DejaVu Sans", "font.size": 11})
figure, axes = plt.subplots(figsize=(9, 5.4), dpi=100, layout="constrained")
axes.plot(scores, targets, "o", color="0.62", markersize=4.5, markeredgewidth=0, label="data")
for label, colour, loss in losses:
    stairs = sf.fit(scores, targets, loss=loss)
    x, y = np.append(stairs.left, stairs.right[-1]), np.append(stairs.values, stairs.values[-1])
    axes.step(x, y, where="post", color=colour, linewidth=2.2, label=label)
axes.set(xlabel="score", ylabel="target", xlim=(-0.1, 10.1), ylim=(-1.6, 8.6))
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False, loc="upper left")
figure.savefig(Path(__file__).with_suffix(".png"), metadata={"Software": None})
