"""CUDA kernels of spins: initial spins, the open bonds of a sweep, measurements.

The second grid axis counts chains.  The configuration of chain n begins at word ``n * planes *
num_words`` of all planes.  ``clock`` has the number of sweeps that every chain has done.

planes: uint32 (chains * planes * num_words,); marks: uint32 (chains * num_words,); clock: uint64
(chains,); counts: uint64 (chains, COUNTS + states).
"""

from numba import int64, types, uint32, uint64

from percolab.bonds.keys import seed_at
from percolab.bonds.models.potts import MOST_STATES
from percolab.bonds.words import open_word
from percolab.kernels.bits import lowest_one, popcount
from percolab.kernels.cuda import cuda
from percolab.kernels.launches import THREADS
from percolab.kernels.neighbours import has_bit, periodic_bond, periodic_word
from percolab.measure.rows import ROW_WIDTH
from percolab.spins.words import (
    changed,
    chosen_site,
    first_spin,
    satisfied_word,
    spin_at,
    spin_change,
    write_spin,
)

#: Up to this number, states are counted word by word; more states, site by site.
_FEW_STATES = 8
#: Number of counts of a sweep before those of states: satisfied and open bonds.
COUNTS = 2
MOST_COUNTS = COUNTS + MOST_STATES


@cuda.jit(cache=True)
def begin_kernel(generator, chains, rule, num_planes, random, occupied, planes):
    """Write the initial spins of chains: all 0, or each at random; one thread per word."""
    entry, word = uint32(cuda.blockIdx.y), uint32(cuda.grid(1))
    num_words = uint32(occupied.size)
    if word < num_words:
        start = uint32(uint32(entry * num_planes) * num_words)
        for plane in range(num_planes):
            planes[uint32(uint32(start + uint32(uint32(plane) * num_words)) + word)] = uint32(0)
        left = occupied[word] if random[entry] != uint32(0) else uint32(0)
        seed, number = chains.spins[entry], chains.number[entry]
        while left != uint32(0):
            site = uint32(uint32(word << uint32(5)) + uint32(lowest_one(left)))
            left = uint32(left & uint32(left - uint32(1)))
            spin = first_spin(generator, seed, number, site, rule)
            write_spin(planes, start, num_planes, num_words, site, spin)


@cuda.jit(device=True)
def count_states(planes, start, num_planes, num_words, word, there, states, shared):
    """Add the states of a word's sites to the block's counts."""
    if states <= uint32(_FEW_STATES):
        for state in range(states):
            own, place = there, uint32(start + word)
            for plane in range(num_planes):
                bits = planes[place]
                if not has_bit(uint32(state), plane):
                    bits = uint32(~bits)
                own = uint32(own & bits)
                place = uint32(place + num_words)
            cuda.atomic.add(shared, COUNTS + state, uint32(popcount(own)))
        return
    left = there
    while left != uint32(0):
        site = uint32(uint32(word << uint32(5)) + uint32(lowest_one(left)))
        left = uint32(left & uint32(left - uint32(1)))
        state = spin_at(planes, start, num_planes, num_words, site)
        cuda.atomic.add(shared, COUNTS + int64(state), uint32(1))


@cuda.jit(cache=True)
def open_satisfied_kernel(
    generator, chains, clock, rule, num_planes, planes, exists, occupied, adjacency, opened, counts
):
    """Write the open bonds of a sweep, with all periodic bonds treated as satisfied.

    One thread per word of sites.  counts: uint64 (chains, COUNTS + states), must be 0; of the
    bonds across periodic boundaries only the open ones are counted.
    """
    shared = cuda.shared.array(MOST_COUNTS, types.uint32)
    entry, word = uint32(cuda.blockIdx.y), uint32(cuda.grid(1))
    width = COUNTS + int64(rule.states)
    for n in range(cuda.threadIdx.x, width, THREADS):
        shared[n] = uint32(0)
    cuda.syncthreads()
    num_words = uint32(adjacency.num_words)
    satisfied, total = uint32(0), uint32(0)
    if word < num_words:
        start = uint32(uint32(entry * uint32(num_planes)) * num_words)
        base = uint32(entry * uint32(exists.size))
        seed = seed_at(chains.bonds[entry], uint64(clock[entry] + uint64(1)))
        number, threshold = chains.number[entry], chains.threshold[entry]
        for k in range(len(adjacency.ends)):
            index = uint32(uint32(uint32(k) * num_words) + word)
            here = exists[index]
            beyond = uint32(here & periodic_word(adjacency.periodic_words, index))
            inner = uint32(here & ~beyond)
            same = satisfied_word(planes, start, num_planes, adjacency, k, word, inner)
            satisfied = uint32(satisfied + uint32(popcount(same)))
            alive = uint32(same | beyond)
            bonds = open_word(generator, seed, number, uint64(index), threshold, alive)
            opened[uint32(base + index)] = bonds
            total = uint32(total + uint32(popcount(bonds)))
        count_states(
            planes, start, num_planes, num_words, word, occupied[word], rule.states, shared
        )
        cuda.atomic.add(shared, 0, satisfied)
        cuda.atomic.add(shared, 1, total)
    cuda.syncthreads()
    for n in range(cuda.threadIdx.x, width, THREADS):
        if shared[n] != uint32(0):
            cuda.atomic.add(counts, (entry, n), uint64(shared[n]))


@cuda.jit(cache=True)
def close_periodic_kernel(num_planes, planes, adjacency, words_per_entry, opened, counts):
    """Close the periodic bonds between different spins, and count the others."""
    shared = cuda.shared.array(COUNTS, types.uint32)
    n, entry = uint32(cuda.grid(1)), uint32(cuda.blockIdx.y)
    if cuda.threadIdx.x < COUNTS:
        shared[cuda.threadIdx.x] = uint32(0)
    cuda.syncthreads()
    if n < adjacency.periodic_bonds.size:
        num_words = uint32(adjacency.num_words)
        start = uint32(uint32(entry * uint32(num_planes)) * num_words)
        base = uint32(entry * uint32(words_per_entry))
        is_open, i, j = periodic_bond(n, opened, base, adjacency)
        one = spin_at(planes, start, num_planes, num_words, i)
        if one == spin_at(planes, start, num_planes, num_words, j):
            cuda.atomic.add(shared, 0, uint32(1))
        elif is_open:
            bond = adjacency.periodic_bonds[n]
            bit = uint32(uint32(1) << uint32(bond & 31))
            cuda.atomic.and_(opened, uint32(base + uint32(bond >> 5)), uint32(~bit))
            cuda.atomic.add(shared, 1, uint32(1))
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(counts, (entry, 0), uint64(shared[0]))
        cuda.atomic.sub(counts, (entry, 1), uint64(shared[1]))


@cuda.jit(cache=True)
def mark_labels_kernel(generator, chains, clock, rule, occupied, num_points, labels, marks):
    """Mark the clusters of chosen sites by their labels; one thread per chosen site.

    marks: uint32, one bit per site of every chain, must be 0.
    """
    n, entry = uint32(cuda.grid(1)), uint32(cuda.blockIdx.y)
    if n < rule.seeds:
        seed = seed_at(chains.sites[entry], uint64(clock[entry] + uint64(1)))
        site = chosen_site(generator, seed, chains.number[entry], uint64(n), num_points, occupied)
        label = labels[uint32(uint32(entry * uint32(num_points)) + site)]
        mark_cluster(marks, entry, uint32(occupied.size), label)


@cuda.jit(device=True)
def mark_cluster(marks, entry, num_words, label):
    """Set the bit of a cluster by its label, uint32, in the marks of its chain."""
    place = uint32(uint32(entry * num_words) + uint32(label >> uint32(5)))
    cuda.atomic.or_(marks, place, uint32(uint32(1) << uint32(label & uint32(31))))


@cuda.jit(device=True)
def is_marked(marks, entry, num_words, label):
    """Return whether :func:`mark_cluster` has marked the cluster of a label, uint32."""
    word = marks[uint32(uint32(entry * num_words) + uint32(label >> uint32(5)))]
    return has_bit(word, uint32(label & uint32(31)))


@cuda.jit(cache=True)
def paint_labels_kernel(
    generator, chains, clock, rule, num_planes, occupied, num_points, labels, marks, planes
):
    """Give clusters their new spins by the sites' labels; one thread per word."""
    entry, word = uint32(cuda.blockIdx.y), uint32(cuda.grid(1))
    num_words = uint32(occupied.size)
    if word < num_words:
        seed = seed_at(chains.spins[entry], uint64(clock[entry] + uint64(1)))
        number = chains.number[entry]
        start = uint32(uint32(entry * uint32(num_planes)) * num_words)
        sites, left = uint32(entry * uint32(num_points)), occupied[word]
        before, change = uint32(0xFFFFFFFF), uint32(0)
        while left != uint32(0):
            site = uint32(uint32(word << uint32(5)) + uint32(lowest_one(left)))
            left = uint32(left & uint32(left - uint32(1)))
            label = uint32(labels[uint32(sites + site)])
            if label != before:
                is_chosen = rule.seeds != uint32(0) and is_marked(marks, entry, num_words, label)
                change = spin_change(generator, seed, number, label, is_chosen, rule)
                before = label
            old = spin_at(planes, start, num_planes, num_words, site)
            spin = changed(old, change, rule)
            write_spin(planes, start, num_planes, num_words, site, spin)


@cuda.jit(cache=True)
def keep_kernel(rows, counts, clock, begin, entries, slots, kept_rows, kept_numbers):
    """Store the measurements of a sweep, and begin the next sweep; one thread per chain.

    begin: uint64 (1,), the sweep number before the first stored one.  kept_rows: int64 (chains *
    slots, ROW_WIDTH), chain by chain.  kept_numbers: int64 (chains * slots, 4), the numbers of
    satisfied and open bonds, of sites in the commonest state, and the sum of squares over states.
    """
    entry = cuda.grid(1)
    if entry < entries:
        slot = int64(uint64(clock[entry] - begin[0]))
        if slot < slots:
            place = entry * slots + slot
            for n in range(ROW_WIDTH):
                kept_rows[place, n] = rows[entry * ROW_WIDTH + n]
            largest, squares = uint64(0), uint64(0)
            for state in range(COUNTS, counts.shape[1]):
                number = counts[entry, state]
                largest = max(largest, number)
                squares = uint64(squares + uint64(number * number))
            kept_numbers[place, 0] = int64(counts[entry, 0])
            kept_numbers[place, 1] = int64(counts[entry, 1])
            kept_numbers[place, 2] = int64(largest)
            kept_numbers[place, 3] = int64(squares)
        for n in range(counts.shape[1]):
            counts[entry, n] = uint64(0)
        clock[entry] = uint64(clock[entry] + uint64(1))


@cuda.jit(cache=True)
def keep_tallies_kernel(tallies, width, clock, begin, slots, kept):
    """Store the tallies of a sweep, before the next begins: uint64 (chains * slots, width)."""
    entry, n = cuda.blockIdx.y, cuda.grid(1)
    slot = int64(uint64(clock[entry] - begin[0]))
    if n < width and slot < slots:
        place = int64(entry) * slots + slot
        kept[place, n] = tallies[int64(entry) * int64(width) + int64(n)]
