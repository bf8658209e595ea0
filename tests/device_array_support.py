"""Images whose labels are compared: on the CPU, on a GPU, in CUDA's simulator."""

import numpy as np

#: Shape, number of values, options of percolab.label; sides do not divide words or tiles.
CASES = (
    ((9, 13), 1, {}),
    ((9, 13), 3, {"connectivity": 8}),
    ((12, 10), 2, {"boundary": "periodic", "lattice": "triangular"}),
    (
        (8, 10),
        1,
        {"boundary": ("open", "periodic"), "lattice": "honeycomb", "labeler": "four_step"},
    ),
    ((3, 5, 7), 2, {}),
    ((4, 5, 6), 6, {"connectivity": 26, "boundary": "periodic"}),
)


class DeviceArray:
    """An array that says it is on a GPU."""

    def __init__(self, array):
        self.array = array
        self.__cuda_array_interface__ = {"shape": array.shape}


def image(shape, values, dtype=np.uint8):
    """Return an image of values 0 ... values, three of five sites being empty."""
    drawn = np.random.default_rng(7).random(shape)
    return np.where(drawn < 0.4, 1 + (drawn * 10 * values / 4).astype(int), 0).astype(dtype)
