"""Measures rows in slabs on CUDA's simulator with streams that are late, as a GPU's are.

The simulator does everything at once.  Here what is launched or copied on a stream waits in a
queue.  It is done when somebody waits for that stream or for an event behind it, or some of it at
random moments before: so it is seen if the host reads, overwrites or passes on too early what a
GPU still has to write or to read, or if two streams disturb each other.
"""

import random
from collections import deque
from itertools import product

import numpy as np
from helpers import probabilities
from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray
from parts_support import row_of_the_whole

from percolab.bonds.model import BOND, Model
from percolab.bonds.words import p_to_threshold
from percolab.kernels.launches import Launches
from percolab.lattices.lattice import load_lattice
from percolab.parts.parts import Whole
from percolab.parts.raster import SampleKey
from percolab.parts.slabs import Slabs

#: Queues of all streams; what is done early is drawn, or nothing is.
QUEUES: list[deque] = []
EARLY = random.Random(1)
#: How often something is done early after something else was queued.
SHARES = (0.0, 0.2, 0.7)
share = 0.0
#: What waited when somebody waited for it, and what had been done early by then.
late = early = 0


class Mark:
    """An event: all that was queued before it has been done once it is waited for."""

    def __init__(self, queue):
        self.queue = queue
        queue.append(self)

    def __call__(self):
        """Do nothing: its turn has come."""

    def synchronize(self):
        while self in self.queue:
            self.queue.popleft()()


def queued(real):
    """Return a method of launches that puts what the real one does into the queue."""

    def put(launches, *arguments, **options):
        global early
        queue_of(launches).append(lambda: real(launches, *arguments, **options))
        while QUEUES and EARLY.random() < share:
            queue = EARLY.choice(QUEUES)
            if queue:
                queue.popleft()()
                early += 1

    return put


def queue_of(launches):
    if not hasattr(launches, "queue"):
        launches.queue = deque()
        QUEUES.append(launches.queue)
    return launches.queue


def wait(launches):
    global late
    queue = queue_of(launches)
    late += len(queue)
    while queue:
        queue.popleft()()


def on_default_stream(real):
    """Return a method of device arrays that on the default stream waits for all others."""

    def copy(array, *arguments, stream=0, **options):
        if stream == 0:
            for queue in QUEUES:
                while queue:
                    queue.popleft()()
        return real(array, *arguments, **options)

    return copy


def be_late():
    """Let streams be late from now on: not where this file is imported, as pytest does."""
    for name in ("each", "one", "blocks", "upload", "download"):
        setattr(Launches, name, queued(getattr(Launches, name)))
    Launches.wait = wait
    Launches.mark = lambda launches: Mark(queue_of(launches))
    for name in ("copy_to_host", "copy_to_device"):
        setattr(FakeCUDAArray, name, on_default_stream(getattr(FakeCUDAArray, name)))


#: Lattice, layer and layers of the slabs, which have one, two and three kinds of tables.
SHAPES = (
    ("square", (33,), (4, 4, 4, 4)),
    ("kagome", (10,), (4, 6, 4, 3)),
    ("cubic", (5, 4), (2, 3, 2, 1)),
)
MODELS = (BOND, Model.parse("site"), Model.parse("site-bond:site=0.9"))


def compare(part, parts):
    """Compare a part of all cases: rows in slabs over boundaries, models and p, with the CPU's."""
    global share
    be_late()
    cases = product(SHAPES, ("open", "periodic"), (False, True), SHARES)
    for n, ((lattice, layer, layers), kind, tally, share) in enumerate(cases):
        if n % int(parts) != int(part):
            continue
        item, model = load_lattice(lattice), MODELS[n % 3]
        layers = list(layers)
        if kind == "periodic":
            layers[-1] += -sum(layers) % item.cell[-1]
        whole = Whole(item, (*layer, sum(layers)), (kind,) * item.dimension, model)
        QUEUES.clear()
        slabs = Slabs(whole, layers, tally=tally, kind="cuda")
        middle = probabilities(lattice)[2] ** (0.6 if model.draws_sites else 1)
        for k, p in enumerate((middle, 0.8 * middle + 0.2, middle)):
            draw = SampleKey(k % 2, 5, 10 * n + k, p_to_threshold(p))
            found = slabs.row(draw).numbers
            expected = row_of_the_whole(whole, draw, tally=tally)
            np.testing.assert_array_equal(found, expected, err_msg=f"{whole} {share} {draw}")
    assert late
    assert early
