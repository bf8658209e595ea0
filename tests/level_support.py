"""Values whose levels are compared: on the CPU, on a GPU, in CUDA's simulator."""

from math import prod

import numpy as np

#: Name, lattice, shape of the array, boundary, what the values are, above, values of bonds or not.
CASES = {
    "open": ("square", (7, 37), "open", "f4", False, False),
    "torus": ("square", (9, 34), "periodic", "f8", True, False),
    "one row": ("square", (1, 35), "periodic", "f4", False, False),
    "thin": ("cubic", (1, 6, 7), "periodic,open,open", "f4", True, False),
    "short": ("square", (2, 2), "periodic", "u1", False, False),
    "triangular": ("triangular", (8, 11), "periodic", "i2", True, False),
    "kagome": ("kagome", (6, 10), "periodic,open", "f2", False, False),
    "cubic": ("cubic", (5, 6, 7), "periodic", "f4", True, False),
    "mixed": ("cubic", (4, 5, 33), "open,periodic,open", "u8", False, False),
    "signs": ("cubic", (4, 3, 5), "periodic", "zeros", False, False),
    "solid": ("square", (12, 13), "periodic,open", "solid", True, False),
    "bonds": ("square", (6, 35), "periodic", "f4", False, True),
    "tied bonds": ("triangular", (5, 7), "periodic,open", "u1", True, True),
}


def given_values(shape, kind, *, above=False, seed=0):
    """Return values of a type; of whole numbers few, which tie.

    "zeros": -1, -0.0, 0.0 and 1; "solid": a third of the sites never opens.
    """
    rng = np.random.default_rng(seed)
    if kind == "zeros":
        return rng.choice(np.array([-1, -0.0, 0.0, 1], np.float32), shape)
    if kind == "solid":
        values = rng.normal(size=shape)
        values[rng.random(shape) < 0.3] = -np.inf if above else np.inf
        return values
    if np.dtype(kind).kind == "f":
        return rng.normal(size=shape).astype(kind)
    largest = {"u8": 2**63, "i2": -9, "u1": 0}[kind]
    few = rng.integers(0, max(prod(shape) // 8, 4), shape)
    return np.array(largest, kind) + few.astype(kind)


def call(name, seed=0):
    """Return the arguments of :func:`percolab.threshold` of a case."""
    lattice, shape, boundary, kind, above, of_bonds = CASES[name]
    if of_bonds:
        shape = ({"square": 2, "triangular": 3}[lattice], *shape)
    values = given_values(shape, kind, above=above, seed=seed)
    return {"lattice": lattice, "weights": values, "boundary": boundary, "above": above}


def record(found):
    """Return all that is found as plain JSON values, with the places and values of paths."""
    paths = {
        axis: [item.path.places.tolist(), item.path.values.tolist()]
        for axis, item in found.axes.items()
        if item is not None
    }
    return found.to_dict() | {"paths": paths}
