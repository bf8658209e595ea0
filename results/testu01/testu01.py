"""Put percolab's random words, in the order in which open_word uses them, through TestU01.

A sample's words are visited as the samplers visit them: sample 0, 1, 2, ..., in each word 0, 1, 2,
..., and from a word's stream only the digit planes that :func:`open_word` needs, that is, until no
bond is undecided at p (all 32 bonds exist).  Every word opens a stream of its own, so a battery
meets millions of short keyed streams laid end to end.  Where a stream is left depends only on
outputs already fed, so ideal random words would still give an ideal sequence.

``--planes N`` feeds exactly the first N digit planes of every word instead.  ``--planes 1`` is the
hardest case for keyed streams: all randomness then comes from hashing the key.

``--lanes 0,2,12,23`` feeds the deep digits of up to four bonds instead, those of planes 6 to 12: of
every word the digits of the first, then of the next, side by side, packed into words of 32 bits.

The generator is machine code (numba cfuncs on a record array, around the kernels' own functions),
so TestU01 calls no Python.  ``--check`` compares it with a slow loop that follows the definition,
and that loop's decisions with ``open_word``.

Needs TestU01 1.2.3 (Debian, non-free: libtestu01-0).  The battery's summary and all its p-values
go to stdout.  Source: P. L'Ecuyer and R. Simard, "TestU01: A C library for empirical testing of
random number generators", ACM Trans. Math. Softw. 33(4), 22, 2007.

    python results/testu01/testu01.py --check
    python results/testu01/testu01.py --battery crush > crush.txt
"""

import ctypes
import ctypes.util
import itertools
import multiprocessing
import os

import click
import numpy as np
from numba import carray, cfunc, float64, from_dtype, njit, types, uint32, uint64, void

from percolab.bonds.philox import philox_digits
from percolab.bonds.words import GENERATORS, XORWOW, compare_plane, open_word, p_to_threshold
from percolab.bonds.xorwow import next_digits, xorwow_state

ALL_BONDS = 0xFFFFFFFF
DIGITS = 63  # binary digits of p that open_word compares at most
BATTERIES = {"small": "SmallCrush", "crush": "Crush"}
NUM_TESTS = {"small": 10, "crush": 96}
SUSPECT = 0.001  # TestU01's own limit for its list of suspicious p-values
NOT_RUN = -1.0  # what TestU01 leaves as the p-value of a test that was not asked for
MAX_TESTS = 200  # TestU01's size of the arrays of p-values and of repetitions
DEEP = (6, 13)  # the planes whose digits --lanes feeds

stream_dtype = np.dtype(
    [
        ("seed", "u8"),
        ("sample", "u8"),
        ("threshold", "u8"),
        ("num_words", "u4"),
        ("planes", "u4"),  # 0: until every bond is decided
        ("generator", "u4"),
        ("bit_reversed", "u4"),
        ("word", "u4"),
        ("plane", "u4"),  # outputs already taken from this word's stream
        ("undecided", "u4"),
        ("v0", "u4"),  # XORWOW: v0 ... v4, d; Philox: the block of four in v0 ... v3
        ("v1", "u4"),
        ("v2", "u4"),
        ("v3", "u4"),
        ("v4", "u4"),
        ("d", "u4"),
        ("lanes", "u4"),  # one bit a lane whose deep digits are fed; 0: whole outputs
        ("bits", "u8"),  # deep digits that wait to be fed, the last ones lowest
        ("num_bits", "u4"),
    ],
    align=True,
)
_stream_pointer = types.CPointer(from_dtype(stream_dtype))


def new_stream(*, generator, seed, p, num_words, planes=0, bit_reversed=False, lanes=()):
    """Return a stream record (array of shape (1,)) that stands before word 0 of sample 0."""
    stream = np.zeros(1, stream_dtype)
    stream["generator"] = GENERATORS[generator]
    stream["seed"] = seed
    stream["threshold"] = p_to_threshold(p)
    stream["num_words"] = num_words
    stream["planes"] = planes
    stream["bit_reversed"] = bit_reversed
    stream["undecided"] = ALL_BONDS
    stream["lanes"] = sum(1 << lane for lane in lanes)
    return stream


@njit
def _reverse_bits(x):
    x = uint32((x & uint32(0x55555555)) << uint32(1) | (x >> uint32(1)) & uint32(0x55555555))
    x = uint32((x & uint32(0x33333333)) << uint32(2) | (x >> uint32(2)) & uint32(0x33333333))
    x = uint32((x & uint32(0x0F0F0F0F)) << uint32(4) | (x >> uint32(4)) & uint32(0x0F0F0F0F))
    x = uint32((x & uint32(0x00FF00FF)) << uint32(8) | (x >> uint32(8)) & uint32(0x00FF00FF))
    return uint32(x << uint32(16) | x >> uint32(16))


@njit
def _next_xorwow(s):
    if s.plane == uint32(0):
        s.v0, s.v1, s.v2, s.v3, s.v4, s.d = xorwow_state(s.seed, s.sample, s.word)
    digits, s.v0, s.v1, s.v2, s.v3, s.v4, s.d = next_digits(
        s.plane, s.v0, s.v1, s.v2, s.v3, s.v4, s.d
    )
    return digits


@njit
def _next_philox(s):
    place = uint32(s.plane & uint32(3))
    if place == uint32(0):
        block = uint32(s.plane >> uint32(2))
        s.v0, s.v1, s.v2, s.v3 = philox_digits(s.seed, s.sample, s.word, block)
        return uint32(s.v0)
    if place == uint32(1):
        return uint32(s.v1)
    if place == uint32(2):
        return uint32(s.v2)
    return uint32(s.v3)


@njit
def _word_is_done(s, output):
    """Count one more output; return whether the word's stream is left after it."""
    p_digit = (s.threshold >> uint64(DIGITS - 1 - s.plane)) & uint64(1) != uint64(0)
    s.undecided, _ = compare_plane(output, p_digit, s.undecided, uint32(0))
    s.plane = uint32(s.plane + uint32(1))
    if s.planes != uint32(0):
        return s.plane == s.planes
    return s.undecided == uint32(0) or s.plane == uint32(DIGITS)


@njit
def _start_next_word(s):
    s.plane = uint32(0)
    s.undecided = uint32(ALL_BONDS)
    s.word = uint32(s.word + uint32(1))
    if s.word == s.num_words:
        s.word = uint32(0)
        s.sample = uint64(s.sample + uint64(1))


@njit
def _take_deep_digits(s):
    """Append the deep digits of one word's lanes to those that wait."""
    digits = np.zeros(DEEP[1], np.uint32)
    for plane in range(DEEP[1]):
        s.plane = uint32(plane)
        digits[plane] = _next_xorwow(s) if s.generator == uint32(XORWOW) else _next_philox(s)
    for lane in range(32):
        if (s.lanes >> uint32(lane)) & uint32(1):
            for plane in range(DEEP[0], DEEP[1]):
                bit = uint64((digits[plane] >> uint32(lane)) & uint32(1))
                s.bits = uint64(uint64(s.bits << uint64(1)) | bit)
                s.num_bits = uint32(s.num_bits + uint32(1))
    _start_next_word(s)


@njit
def _next_deep_output(s):
    while s.num_bits < uint32(32):
        _take_deep_digits(s)
    s.num_bits = uint32(s.num_bits - uint32(32))
    return uint32((s.bits >> uint64(s.num_bits)) & uint64(0xFFFFFFFF))


@njit
def next_output(s):
    """Return the next uint32 that is used and advance the stream record."""
    if s.lanes != uint32(0):
        return _next_deep_output(s)
    output = _next_xorwow(s) if s.generator == uint32(XORWOW) else _next_philox(s)
    if _word_is_done(s, output):
        _start_next_word(s)
    return _reverse_bits(output) if s.bit_reversed != uint32(0) else output


@cfunc(uint64(types.voidptr, _stream_pointer))
def _get_bits(_, stream):
    return uint64(next_output(carray(stream, 1)[0]))


@cfunc(float64(types.voidptr, _stream_pointer))
def _get_u01(_, stream):
    return float64(next_output(carray(stream, 1)[0])) * 2.0**-32


@cfunc(void(_stream_pointer))
def _write_nothing(_):
    pass


class Unif01Gen(ctypes.Structure):
    """TestU01's unif01_Gen: an external generator."""

    _fields_ = [
        ("state", ctypes.c_void_p),
        ("param", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("get_u01", ctypes.c_void_p),
        ("get_bits", ctypes.c_void_p),
        ("write", ctypes.c_void_p),
    ]


def unif01_gen(stream, name):
    """Return the unif01_Gen of a stream record, which must outlive it."""
    return Unif01Gen(
        state=stream.ctypes.data,
        param=None,
        name=name.encode(),
        get_u01=_get_u01.address,
        get_bits=_get_bits.address,
        write=_write_nothing.address,
    )


def load_testu01():
    """Return TestU01 as a ctypes library that prints no host name."""
    path = ctypes.util.find_library("testu01")
    if path is None:
        raise click.ClickException("TestU01 not found (Debian, non-free: libtestu01-0)")
    library = ctypes.CDLL(path)
    library.unif01_StripB.restype = ctypes.c_ulong
    library.unif01_StripD.restype = ctypes.c_double
    ctypes.c_int.in_dll(library, "swrite_Host").value = 0
    return library


def _words_by_definition(*, generator, seed, p, num_words, planes):
    """Yield the list of outputs used of every word in turn, in plain Python."""
    threshold = p_to_threshold(p)
    for sample in itertools.count():
        for word in range(num_words):
            outputs = []
            uniforms, opened = [0] * 32, None
            for output in itertools.islice(_outputs_of_word(generator, seed, sample, word), DIGITS):
                outputs.append(output)
                uniforms = [2 * u + (output >> bit & 1) for bit, u in enumerate(uniforms)]
                prefix = threshold >> (DIGITS - len(outputs))
                if opened is None and (prefix not in uniforms or len(outputs) == DIGITS):
                    opened = sum((u < prefix) << bit for bit, u in enumerate(uniforms))
                if len(outputs) == planes or (not planes and opened is not None):
                    break
            key = (np.uint64(seed), np.uint64(sample), np.uint32(word), np.uint64(threshold))
            if opened is not None and opened != open_word(
                GENERATORS[generator], *key, np.uint32(ALL_BONDS)
            ):
                raise click.ClickException(f"open_word differs at sample {sample}, word {word}")
            yield outputs


def _outputs_of_word(generator, seed, sample, word):
    key = (np.uint64(seed), np.uint64(sample), np.uint32(word))
    if generator == "philox":
        for block in itertools.count():
            yield from (int(x) for x in philox_digits(*key, np.uint32(block)))
    state = xorwow_state(*key)
    for plane in itertools.count():
        digits, *state = next_digits(plane, *(np.uint32(x) for x in state))
        yield int(digits)


def _deep_outputs_by_definition(*, generator, seed, num_words, lanes):
    """Yield the packed deep digits of lanes, in plain Python."""
    text = ""
    for sample in itertools.count():
        for word in range(num_words):
            outputs = list(
                itertools.islice(_outputs_of_word(generator, seed, sample, word), DEEP[1])
            )
            for lane in lanes:
                text += "".join(str(output >> lane & 1) for output in outputs[DEEP[0] :])
            while len(text) >= 32:
                yield int(text[:32], 2)
                text = text[32:]


def check_stream(library, count, *, bit_reversed, **options):
    """Raise ClickException unless TestU01 draws, both ways, what the definition says."""
    if options["lanes"]:
        keys = ("generator", "seed", "num_words", "lanes")
        drawn_words = _deep_outputs_by_definition(**{key: options[key] for key in keys})
        expected = list(itertools.islice(drawn_words, count))
    else:
        whole = {key: value for key, value in options.items() if key != "lanes"}
        drawn_words = itertools.chain.from_iterable(_words_by_definition(**whole))
        expected = list(itertools.islice(drawn_words, count))
    if bit_reversed:
        expected = [int(f"{x:032b}"[::-1], 2) for x in expected]
    # r = 0 keeps the leading bits, s = 32 all of them.
    stream = new_stream(bit_reversed=bit_reversed, **options)
    gen = unif01_gen(stream, "check")
    drawn = [library.unif01_StripB(ctypes.byref(gen), 0, 32) for _ in range(count)]
    stream = new_stream(bit_reversed=bit_reversed, **options)
    gen = unif01_gen(stream, "check")
    uniforms = [library.unif01_StripD(ctypes.byref(gen), 0) for _ in range(count)]
    if drawn != expected or uniforms != [x * 2.0**-32 for x in expected]:
        raise click.ClickException(f"the native stream differs from the definition: {options}")


def run_battery(library, battery, gen, test=None):
    """Run a battery, or only its test of that number, and return its (name, p-value) pairs."""
    if test is None:
        getattr(library, f"bbattery_{battery}")(ctypes.byref(gen))
    else:
        repetitions = (ctypes.c_int * (MAX_TESTS + 1))()
        repetitions[test] = 1
        getattr(library, f"bbattery_Repeat{battery}")(ctypes.byref(gen), repetitions)
    ctypes.CDLL(None).fflush(None)  # TestU01's text comes before ours
    p_values = (ctypes.c_double * MAX_TESTS).in_dll(library, "bbattery_pVal")
    names = (ctypes.c_char_p * MAX_TESTS).in_dll(library, "bbattery_TestNames")
    num_tests = ctypes.c_int.in_dll(library, "bbattery_NTests").value
    pairs = zip(names[:num_tests], p_values[:num_tests], strict=True)
    return [(name.decode(), p_value) for name, p_value in pairs if p_value != NOT_RUN]


def _run_alone(battery, options, test):
    """Run one test of a battery in a process of its own; return its (name, p-value) pairs."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    stream = new_stream(**options)
    gen = unif01_gen(stream, describe(**options))
    return run_battery(load_testu01(), BATTERIES[battery], gen, test)


def run_side_by_side(battery, options, jobs):
    """Run every test of a battery from the stream's beginning, several at a time."""
    context = multiprocessing.get_context("fork")
    tests = range(1, NUM_TESTS[battery] + 1)
    with context.Pool(jobs, maxtasksperchild=1) as pool:
        calls = [pool.apply_async(_run_alone, (battery, options, test)) for test in tests]
        return [pair for call in calls for pair in call.get()]


def describe(*, generator, seed, p, num_words, planes, bit_reversed, lanes):
    """Return the generator's name for TestU01, which cuts it at a colon and at 100 characters."""
    if lanes:
        shown = " ".join(map(str, lanes))
        return f"{generator}, digits {DEEP[0]} to {DEEP[1] - 1} of bonds {shown}, seed {seed}"
    fed = f"first {planes} of each word" if planes else f"used at p={p:g}"
    reversed_ = " bit-reversed" if bit_reversed else ""
    return f"{generator}{reversed_}, outputs {fed}, {num_words} words a sample, seed {seed}"


@click.command()
@click.option("--battery", type=click.Choice(list(BATTERIES)), default="small", show_default=True)
@click.option(
    "--generator", type=click.Choice(list(GENERATORS)), default="xorwow", show_default=True
)
@click.option("--seed", type=click.IntRange(0, 2**64 - 1), default=1, show_default=True)
@click.option("--p", type=click.FloatRange(0, 1, max_open=True), default=0.6527, show_default=True)
@click.option(
    "--num-words",
    type=click.IntRange(1, 2**32 - 1),
    default=2 * 1024 * 1024 // 32,
    show_default=True,
    help="Bond words of a sample; the default is the honeycomb lattice's at L = 1024.",
)
@click.option(
    "--planes",
    type=click.IntRange(0, DIGITS),
    default=0,
    help="Feed the first so many outputs of every word; 0 (default) feeds those used at p.",
)
@click.option("--bit-reversed", is_flag=True, help="Feed every word with its lowest bit first.")
@click.option("--lanes", help="Feed the deep digits of these bonds of every word, as in 0,2,12.")
@click.option("--test", type=click.IntRange(1, MAX_TESTS), help="Run only the test of this number.")
@click.option("--jobs", default=1, help="Run so many tests at once, each from the first word on.")
@click.option("--verbose", is_flag=True, help="Let TestU01 report every test as it ends.")
@click.option("--check", is_flag=True, help="Only compare the stream with its definition.")
def main(battery, test, jobs, verbose, check, lanes, **options):
    """Put percolab's random words, in the order they are used, through a TestU01 battery."""
    options["lanes"] = tuple(sorted({int(lane) for lane in lanes.split(",")})) if lanes else ()
    if len(options["lanes"]) > 4 or not set(options["lanes"]) <= set(range(32)):
        raise click.UsageError("--lanes takes one to four numbers from 0 to 31")
    library = load_testu01()
    if check:
        check_stream(library, 5000, **options)
        check_stream(library, 5000, **options | {"num_words": 37})  # many samples
        click.echo("TestU01 draws what the definition says: 2 x 5000 outputs, two ways each")
        return
    for flag in ("swrite_Basic", "swrite_Parameters"):
        ctypes.c_int.in_dll(library, flag).value = verbose and flag == "swrite_Basic"
    if jobs > 1:
        click.echo(
            f"{BATTERIES[battery]}, every test from the first word on\n{describe(**options)}"
        )
        results = run_side_by_side(battery, options, jobs)
        click.echo("\nAll p-values:\n")
    else:
        stream = new_stream(**options)
        gen = unif01_gen(stream, describe(**options))
        results = run_battery(library, BATTERIES[battery], gen, test)
        click.echo(f"Samples begun: {int(stream['sample'][0]) + 1}\n\nAll p-values:\n")
    for name, p_value in results:
        mark = "" if SUSPECT <= p_value <= 1 - SUSPECT else "  *"
        click.echo(f"  {name:<32}{p_value:12.4e}{mark}")


if __name__ == "__main__":
    main()
