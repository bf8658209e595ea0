"""The finite-size scaling of several dimensionless quantities with one p_c and one y_t.

    Q(p, L) = Q_c + a_1 x + ... + a_d x^d + b_1 L^-omega + c x L^-omega + b_2 L^-omega_2,
    x = (p - p_c) L^{y_t}

Q_c, a_k, b_1, c and b_2 belong to each quantity.  Source: J. Wang et al., Phys. Rev. E 87, 052107
(2013).  For given p_c, y_t and omega the model is linear, so a start is found by a search over
these alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from percolab.analysis.observations import Observations
from percolab.analysis.quantities import Floats

#: Corrections that can be fitted: which of b_1, c and b_2.
CORRECTIONS = {
    "none": (False, False, False),
    "b": (True, False, False),
    "bc": (True, True, False),
    "b2": (True, False, True),
    "bc2": (True, True, True),
}


@dataclass(frozen=True)
class ModelChoice:
    """Which terms are fitted.

    degree: d.  omegas: of each quantity.  corrections: a key of CORRECTIONS.  free_omega: the
    omegas are fitted, one for all quantities that have the same, beginning there.  y_t: held at
    this, or None to fit it.
    """

    degree: int
    omegas: tuple[float, ...]
    corrections: str = "b"
    free_omega: bool = False
    y_t: float | None = None

    @property
    def corrected(self) -> list[int]:
        """Indices in "b", "c", "b_2" of the corrections that are fitted."""
        return [index for index, used in enumerate(CORRECTIONS[self.corrections]) if used]

    @property
    def terms(self) -> int:
        """Amplitudes of each quantity."""
        return self.degree + 1 + sum(CORRECTIONS[self.corrections])


@dataclass(frozen=True)
class Scales:
    """Units in which every parameter is of order one: p = p_0 + width delta, L in units of L_0."""

    p_0: float
    width: float
    L_0: float


@dataclass(frozen=True, eq=False)
class JointModel:
    """The model of a set of observations.

    theta is (delta, [y_t], [omegas], amplitudes of the first quantity, of the second, ...), with
    p_c = p_0 + width delta and amplitudes (A_0 ... A_d, [B, [C], [B_2]]) of the powers of
    X = (p - p_c) / width (L / L_0)^{y_t} and of (L / L_0)^-omega.

    omega_2: exponent of b_2, of all quantities.
    """

    observations: tuple[Observations, ...]
    choice: ModelChoice
    omega_2: float
    scales: Scales

    @cached_property
    def groups(self) -> tuple[float, ...]:
        """The omegas that differ; each is one parameter if omega is fitted."""
        return tuple(sorted(set(self.choice.omegas)))

    @cached_property
    def outer(self) -> int:
        """Parameters that the model is not linear in."""
        groups = len(self.groups) if self.choice.free_omega else 0
        return 1 + (self.choice.y_t is None) + groups

    @property
    def parameters(self) -> int:
        """All parameters."""
        return self.outer + len(self.choice.omegas) * self.choice.terms

    @cached_property
    def _data(self) -> tuple[Floats, Floats, NDArray[np.int64]]:
        """p in units of the width, ln(L / L_0) and quantity of every value, (n,) each."""
        p = np.concatenate([item.p for item in self.observations])
        size = np.concatenate([np.full(item.p.size, item.L, float) for item in self.observations])
        of = np.concatenate([item.quantity for item in self.observations])
        return (p - self.scales.p_0) / self.scales.width, np.log(size / self.scales.L_0), of

    @cached_property
    def _group_of(self) -> NDArray[np.int64]:
        """Index of the omega of every value, (n,)."""
        of_quantity = np.array([self.groups.index(value) for value in self.choice.omegas])
        return of_quantity[self._data[2]]

    @cached_property
    def target(self) -> Floats:
        """The whitened values, float64 (d,)."""
        return self.whitened(np.concatenate([item.values for item in self.observations]))

    def whitened(self, values: Floats) -> Floats:
        """Return values (n, ...) as independent numbers of unit variance (d, ...)."""
        ends = np.cumsum([item.p.size for item in self.observations])[:-1]
        parts = np.split(values, ends)
        return np.concatenate(
            [item.whiten @ part for item, part in zip(self.observations, parts, strict=True)]
        )

    def split(self, theta: Floats) -> tuple[float, float, Floats, Floats]:
        """Return delta, y_t, the omegas of the groups, and amplitudes (quantities, terms)."""
        free_y_t = self.choice.y_t is None
        y_t = float(theta[1]) if self.choice.y_t is None else self.choice.y_t
        omegas = np.array(self.groups)
        if self.choice.free_omega:
            omegas = theta[1 + free_y_t : self.outer]
        amplitudes = theta[self.outer :].reshape(len(self.choice.omegas), -1)
        return float(theta[0]), y_t, omegas, amplitudes

    def _columns(self, delta: float, y_t: float, omegas: Floats) -> tuple[Floats, ...]:
        """Return x, the stretch, the decay and what the amplitudes multiply (n, terms)."""
        p, log_size, _ = self._data
        stretch = np.exp(y_t * log_size)
        x = (p - delta) * stretch
        decay = np.exp(-omegas[self._group_of] * log_size)
        candidates = (decay, x * decay, np.exp(-self.omega_2 * log_size))
        chosen = [candidates[index] for index in self.choice.corrected]
        powers = x[:, None] ** np.arange(self.choice.degree + 1)
        return x, stretch, decay, np.column_stack([powers, *chosen])

    def _spread(self, columns: Floats) -> Floats:
        """Return the columns of each quantity's amplitudes beside one another, (n, amplitudes)."""
        own = np.arange(len(self.choice.omegas)) == self._data[2][:, None]
        return (own[:, :, None] * columns[:, None, :]).reshape(len(columns), -1)

    def linear_fit(self, outer: Floats) -> Floats:
        """Return theta with the best amplitudes for given outer parameters."""
        theta = np.concatenate([outer, np.zeros(len(self.choice.omegas) * self.choice.terms)])
        delta, y_t, omegas, _ = self.split(theta)
        design = self.whitened(self._spread(self._columns(delta, y_t, omegas)[-1]))
        theta[self.outer :] = np.linalg.lstsq(design, self.target, rcond=1e-12)[0]
        return theta

    def values(self, theta: Floats) -> Floats:
        """Return the values of the model, float64 (n,), one observation after the other."""
        delta, y_t, omegas, amplitudes = self.split(theta)
        columns = self._columns(delta, y_t, omegas)[-1]
        return np.asarray(np.sum(columns * amplitudes[self._data[2]], axis=1), np.float64)

    def residuals(self, theta: Floats) -> Floats:
        """Return the whitened residuals, model minus values, float64 (d,)."""
        return self.whitened(self.values(theta)) - self.target

    def jacobian(self, theta: Floats) -> Floats:
        """Return the derivatives of the residuals, float64 (d, parameters)."""
        delta, y_t, omegas, amplitudes = self.split(theta)
        x, stretch, decay, columns = self._columns(delta, y_t, omegas)
        own, degree = amplitudes[self._data[2]], self.choice.degree
        slope = np.sum(own[:, 1 : degree + 1] * np.arange(1, degree + 1) * columns[:, :degree], 1)
        with_b, with_c, _ = CORRECTIONS[self.choice.corrections]
        if with_c:
            slope = slope + own[:, degree + 2] * decay
        log_size = self._data[1]
        found = [-slope * stretch]
        if self.choice.y_t is None:
            found.append(slope * x * log_size)
        if self.choice.free_omega:
            size = own[:, degree + 1] * with_b + (own[:, degree + 2] * x if with_c else 0.0)
            found += [
                -size * log_size * decay * (self._group_of == group)
                for group in range(len(self.groups))
            ]
        return self.whitened(np.column_stack([*found, self._spread(columns)]))


def scales_of(observations: Sequence[Observations], p_0: float, width: float) -> Scales:
    """Return the scales of some observations."""
    sizes = sorted({item.L for item in observations})
    return Scales(p_0, width, float(np.exp(np.mean(np.log(sizes)))))
