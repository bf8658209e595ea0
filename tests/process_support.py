"""What the tests of processes share: those that were started, and workers that tests change."""

import psutil

from percolab.run import checkpointed
from percolab.run.calls import be_worker
from percolab.run.split import be_rank


def worker_processes():
    """Return the processes that percolab has started here."""
    return [
        child
        for child in psutil.Process().children()
        if "processes.serve" in " ".join(child.cmdline())
    ]


def impatient_worker(number, devices, graph=None):
    """Be a worker that saves a checkpoint after every slab."""
    checkpointed._CHECKPOINT_EVERY = checkpointed._CHECKPOINT_SHARE = 0.0
    be_worker(number, devices, graph)


def impatient_rank(number, folder, size):
    """Be a rank that saves a checkpoint after every slab."""
    checkpointed._CHECKPOINT_EVERY = checkpointed._CHECKPOINT_SHARE = 0.0
    be_rank(number, folder, size)
