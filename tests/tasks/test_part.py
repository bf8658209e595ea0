"""Parts of a study have every block once, and the same ones however many blocks there are."""

import pytest

from percolab.tasks.part import JobPart


@pytest.mark.parametrize("n", [1, 2, 3, 7, 64])
@pytest.mark.parametrize("count", [0, 1, 63, 2047, 2049, 5000, 9001])
def test_parts_have_every_block_once(n, count):
    parts = [JobPart(k, n) for k in range(1, n + 1)]
    own = [list(part.below(count)) for part in parts]
    assert sorted(number for numbers in own for number in numbers) == list(range(count))
    for part, numbers in zip(parts, own, strict=True):
        assert numbers == sorted(numbers)
        assert part.count(count) == len(numbers)
        assert all(map(part.has, numbers))
        assert numbers == [number for number in part.below(2 * count + 1) if number < count]
        assert len(numbers) <= count / n + 2 * max(count / 1024, 1)


def test_later_blocks_come_in_runs_of_neighbours():
    numbers = set(JobPart(2, 5).below(2**14))
    assert {n for n in numbers if n < 2048} == set(range(1, 2048, 5))
    for number in range(2048, 2**14):
        length = 2 ** (number.bit_length() - 11)
        first = number // length * length
        assert {*range(first, first + length)} <= numbers or number not in numbers
