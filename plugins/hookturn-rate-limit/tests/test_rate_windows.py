"""The sliding window: never more than N in any span, in a few counters, whatever the order of the calls."""

from __future__ import annotations

from bisect import bisect_right

import pytest
from hookturn_rate_limit.windows import SLOTS, add, wait
from hypothesis import given, settings
from hypothesis import strategies as st

START = 1_800_000_000.0
MICRO = 1_000_000


def allowed(times: list[float], seconds: int, limit: int) -> tuple[list[float], dict[str, int]]:
    """The times of the calls that pass, and the counters at the end."""
    counts: dict[str, int] = {}
    passed = []
    for now in times:
        if wait(counts, seconds, limit, now) == 0.0:
            add(counts, seconds, now)
            passed.append(now)
    return passed, counts


def most(times: list[float], seconds: int) -> int:
    """The most calls in any span of so many seconds, both ends counted."""
    micros = sorted(round(time * MICRO) for time in times)
    return max(
        (bisect_right(micros, first + seconds * MICRO) - index for index, first in enumerate(micros)),
        default=0,
    )


@st.composite
def calls(draw: st.DrawFn, jitter: bool) -> tuple[list[float], int, int]:
    seconds = draw(st.sampled_from([1, 60, 3600]))
    # Gaps of the size that matters, and bursts: parts of a slot, of a span, and whole spans.
    gaps = draw(
        st.lists(
            st.one_of(
                st.just(0.0),
                st.floats(0, seconds / SLOTS),
                st.floats(0, seconds),
                st.sampled_from([seconds / SLOTS, seconds, seconds * (1 + 1 / SLOTS), seconds * 3.0]),
            ),
            max_size=120,
        )
    )
    now, times = START + draw(st.floats(0, 100)), []
    for gap in gaps:
        now += gap
        times.append(now - draw(st.floats(0, seconds)) if jitter else now)
    return times, seconds, draw(st.integers(1, 12))


@given(calls(jitter=False))
def test_never_more_than_the_limit_in_any_span(case: tuple[list[float], int, int]) -> None:
    times, seconds, limit = case
    passed, _ = allowed(times, seconds, limit)
    assert most(passed, seconds) <= limit


@given(calls(jitter=True))
def test_nor_when_calls_come_out_of_order(case: tuple[list[float], int, int]) -> None:
    times, seconds, limit = case
    passed, _ = allowed(times, seconds, limit)
    assert most(passed, seconds) <= limit


@given(calls(jitter=False))
def test_it_is_no_stricter_than_it_says(case: tuple[list[float], int, int]) -> None:
    """A refused call has its N in the span before it, a slot more at most."""
    times, seconds, limit = case
    passed: list[float] = []
    counts: dict[str, int] = {}
    for now in times:
        if wait(counts, seconds, limit, now) == 0.0:
            add(counts, seconds, now)
            passed.append(now)
        else:
            assert sum(now - earlier <= seconds * (1 + 1 / SLOTS) + 1e-3 for earlier in passed) >= limit


@given(calls(jitter=False))
def test_after_the_wait_there_is_room(case: tuple[list[float], int, int]) -> None:
    times, seconds, limit = case
    counts: dict[str, int] = {}
    for now in times:
        left = wait(counts, seconds, limit, now)
        assert 0 <= left <= seconds * (1 + 1 / SLOTS) + 1e-3
        if left:
            assert wait(counts, seconds, limit, now + left + 1e-5) == 0.0
            assert wait(counts, seconds, limit, now + left - 1e-3) > 0 or left < 1e-3
        else:
            add(counts, seconds, now)


@settings(max_examples=20)
@given(st.integers(1000, 5000), st.sampled_from([1, 60, 3600]))
def test_the_counters_are_few_whatever_the_limit(number: int, seconds: int) -> None:
    times = [START + seconds * index / 700 for index in range(number)]
    _, counts = allowed(times, seconds, 1_000_000)
    assert len(counts) <= 3 * SLOTS + 1
    assert sum(counts.values()) <= number


@pytest.mark.parametrize("seconds", [1, 60, 3600])
def test_exactly_so_many_pass_at_once_and_as_many_again_a_span_later(seconds: int) -> None:
    passed, _ = allowed([START] * 100 + [START + seconds * 1.02] * 100, seconds, 7)
    assert len(passed) == 14


def test_a_late_call_still_meets_the_calls_of_its_own_span() -> None:
    times = [START, START, START + 1.9 * 60, START + 0.95 * 60]
    passed, _ = allowed(times, 60, 2)
    assert passed == times[:3]


def test_a_clock_that_was_set_back_starts_anew() -> None:
    passed, counts = allowed([START] * 3 + [START - 86_400] * 3, 60, 2)
    assert passed == [START, START, START - 86_400, START - 86_400]
    assert len(counts) == 1
