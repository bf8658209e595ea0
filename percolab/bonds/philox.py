"""Philox 4x32-10 (Salmon, Moraes, Dror and Shaw 2011), the independent check on XORWOW.

It is counter based: four outputs are a function of (seed, sample, word, block), without a state.

Source: J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11.
"""

from numba import uint32, uint64

from percolab.kernels.inner import inner


@inner
def philox_block(c0, c1, c2, c3, k0, k1):
    """Return the four uint32 outputs of Philox 4x32-10 for a 128-bit counter and a 64-bit key."""
    for _ in range(10):
        a = uint64(uint64(0xD2511F53) * uint64(c0))
        b = uint64(uint64(0xCD9E8D57) * uint64(c2))
        high = uint64(32)
        low = uint64(0xFFFFFFFF)
        c0, c1, c2, c3 = (
            uint32(uint32(b >> high) ^ c1 ^ k0),
            uint32(b & low),
            uint32(uint32(a >> high) ^ c3 ^ k1),
            uint32(a & low),
        )
        k0 = uint32(k0 + uint32(0x9E3779B9))
        k1 = uint32(k1 + uint32(0xBB67AE85))
    return c0, c1, c2, c3


@inner
def philox_digits(seed, sample, word, block):
    """Return outputs 4*block ... 4*block + 3 of the stream of one word, as uint32.

    The counter has the low half of the word's number, its high half with the block (below 16), and
    the sample, so up to 2^60 words are distinct, far more than any memory has.
    """
    high, low = uint64(32), uint64(0xFFFFFFFF)
    seed, sample, word = uint64(seed), uint64(sample), uint64(word)
    high_half = uint64(uint64(word >> high) << uint64(4))
    return philox_block(
        uint32(word & low),
        uint32(uint64(high_half | uint64(block)) & low),
        uint32(sample & low),
        uint32(sample >> high),
        uint32(seed & low),
        uint32(seed >> high),
    )
