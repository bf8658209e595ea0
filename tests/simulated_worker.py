"""A process that measures in CUDA's simulator, as if there were two GPUs."""

from numba import cuda


def two_gpus():
    """Let the simulator of this process have two GPUs."""
    first = cuda.gpus.lst[0]
    cuda.gpus.lst = first, type(first)(1)
    # The simulator's own refuses all but the first.
    cuda.select_device = lambda number: cuda.gpus[number]


def simulated_worker(number, devices, graph=None):
    """Be a worker whose kernels run in the simulator, as the parent's do."""
    import simulator

    simulator.install()
    two_gpus()
    import percolab.kernels.device
    from percolab.run.calls import be_worker

    # The simulator's is infinite.
    percolab.kernels.device.free_memory = lambda cuda: 10**12
    be_worker(number, devices, graph)
