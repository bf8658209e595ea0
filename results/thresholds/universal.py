"""How often errors hold that `--universal known` gives: many searches of cubic bonds and sites.

    python results/thresholds/universal.py > results/thresholds/universal.txt      # some minutes

Each line has a search with the published wrapping probabilities at p_c as priors, and the fit of
the same samples without them; pull: p_c minus the published value, over the error.
"""

from __future__ import annotations

import numpy as np

import percolab
from percolab.analysis.wrapping_fit import fit_wrapping

#: Model, published p_c (Xu et al. 2014), and how many seeds.
SEARCHES = (("bond", 0.24881185, 40), ("site", 0.31160768, 24))
ERROR = 5e-4


def main() -> None:
    """Search, and print every search and how often the errors held."""
    for model, published, seeds in SEARCHES:
        pulls = []
        for seed in range(1, seeds + 1):
            found = percolab.threshold(
                "cubic", model=model, error=ERROR, universal="known", seed=seed, device="cpu"
            )
            values = {"known": found.fit.p_c, "free": fit_wrapping(found.results, "free").p_c}
            pulls.append([(value.value - published) / value.error for value in values.values()])
            shown = ", ".join(f"{name} {value}" for name, value in values.items())
            print(f"{model} seed {seed}: {shown}; pulls {pulls[-1][0]:+.2f}, {pulls[-1][1]:+.2f}")
        for name, own in zip(("known", "free"), np.array(pulls).T, strict=True):
            width, inside = np.sqrt(np.mean(own**2)), [np.mean(np.abs(own) < n) for n in (1, 2)]
            print(
                f"{model}, {name}: {seeds} searches, mean {own.mean():+.2f}({seeds**-0.5:.2f}), "
                f"width {width:.2f}({(2 * seeds) ** -0.5:.2f}), {100 * inside[0]:.0f} % within one "
                f"error, {100 * inside[1]:.0f} % within two"
            )


if __name__ == "__main__":
    main()
