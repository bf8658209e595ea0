"""CUDA: the open bonds and sites of many samples of a small lattice, at all p of a grid."""

from typing import Any, NamedTuple

from numba import uint32, uint64

from percolab.bonds.hooks import word_limit
from percolab.bonds.keys import stream_keys
from percolab.bonds.sites import limits_at
from percolab.bonds.words import BLIND_PLANES, TOP, XORWOW, open_by_planes, open_word
from percolab.bonds.xorwow import make_xorwow_state, next_digits
from percolab.kernels.cuda import cuda

#: Words that each thread draws; they share the keys of their sample.
WORDS_EACH = 2


class SampleKeys(NamedTuple):
    """The keys of entries: the samples of successive blocks, each one at every p.

    seed:       seed of the streams, uint64
    starts:     uint64 (blocks,), the first sample of every block
    block_size: samples of a block, uint32
    first:      the position, among all these samples, of the first that is drawn, uint32
    limits:     uint64, the thresholds of p: those of a grid, or one for every entry
    steps:      values of p at which each sample is drawn, uint32
    own_limits: the number of limits that are specific to each sample, uint32; 0 for a grid
    """

    seed: Any
    starts: Any
    block_size: Any
    first: Any
    limits: Any
    steps: Any
    own_limits: Any


@cuda.jit(cache=True)
def open_small_kernel(generator, keys, rule, record, exists, bond_words, opened, samples):
    """Write the open bonds and sites of samples; each thread has some words of one sample.

    rule: :class:`percolab.bonds.model.Rule`.  record: ClassLimits of the bonds, or ().  exists:
    uint32 (stride,), the bonds that exist and, from ``bond_words`` on, the sites.  opened:
    uint32 (samples * steps * stride,), all entries of a sample one after the other.
    """
    stride, steps = uint32(exists.size), keys.steps
    threads = uint32(uint32(stride + uint32(WORDS_EACH - 1)) // uint32(WORDS_EACH))
    number = uint32(uint32(cuda.blockIdx.x * cuda.blockDim.x) + uint32(cuda.threadIdx.x))
    drawn = uint32(number // threads)
    word = uint32(number - uint32(drawn * threads))
    if drawn >= samples:
        return
    planes = cuda.local.array(BLIND_PLANES, uint32)
    place = uint32(keys.first + drawn)
    block = uint32(place // keys.block_size)
    sample = uint64(keys.starts[block] + uint64(uint32(place - uint32(block * keys.block_size))))
    start, increment = stream_keys(keys.seed, sample)
    first, own = uint32(uint32(drawn * steps) * stride), uint32(keys.own_limits * place)
    while word < stride:
        there, is_site = exists[word], word >= bond_words
        v0, v1, v2, v3, v4, d = make_xorwow_state(start, increment, uint64(word))
        if generator == XORWOW and _is_drawn(rule, is_site):
            for plane in range(BLIND_PLANES):
                digits, v0, v1, v2, v3, v4, d = next_digits(plane, v0, v1, v2, v3, v4, d)
                planes[plane] = digits
        to = uint32(first + word)
        for step in range(steps):
            threshold = keys.limits[uint32(own + uint32(step))]
            site_limit, bond_limit = limits_at(rule, threshold)
            limit = site_limit if is_site else uint64(word_limit(record, word, bond_limit))
            if generator == XORWOW:
                bits = open_by_planes(planes, (v0, v1, v2, v3, v4, d), limit, there)
            else:
                bits = open_word(generator, keys.seed, sample, uint64(word), limit, there)
            opened[to] = bits
            to = uint32(to + stride)
        word = uint32(word + threads)


@cuda.jit(device=True)
def _is_drawn(rule, is_site):
    """Return whether random numbers are needed: not if all bonds, or sites, are open."""
    varies, limit = rule.bond_varies, rule.bond_limit
    if is_site:
        varies, limit = rule.site_varies, rule.site_limit
    return varies != uint32(0) or uint64(limit) != uint64(TOP)
