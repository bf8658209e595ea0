"""Known outputs of the generators, from other programs than this one."""

from __future__ import annotations

#: cuRAND 13.0's XORWOW: the state after curand_init, v and d, and the next outputs of curand();
#: by (seed, subsequence, offset), read off an NVIDIA H200.
CURAND_XORWOW = {
    (0, 0, 0): (
        (1478573778, 1163863128, 4171507460, 3705206908, 1360900310, 716983765),
        (3179217846, 1883133293, 2220552389, 674260989),
    ),
    (0, 0, 1000003): (
        (1136773509, 121298949, 837046388, 3390407312, 1425274207, 2377818212),
        (2086573228, 2586442925, 441615271, 3675492960),
    ),
}

#: SplitMix64 from seed 1234567, the first outputs of its reference implementation (Vigna 2015).
SPLITMIX64_SEED = 1234567
SPLITMIX64 = (6457827717110365317, 3203168211198807973, 9817491932198370423)

#: Random123's known answers (kat_vectors) for Philox 4x32-10: counter, key, output.
PHILOX = (
    ((0,) * 4, (0,) * 2, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((2**32 - 1,) * 4, (2**32 - 1,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
)
