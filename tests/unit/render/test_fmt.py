"""The formatters."""

import time

import pytest

from dgm.domain import Tally, Usage
from dgm.render import fmt
from dgm.views.values import DeltaView, TallyView, UsageView


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (fmt.count(1, "agent"), "1 agent"),
        (fmt.count(1_200, "agent"), "1,200 agents"),
        (fmt.count(2, "child", "children"), "2 children"),
        (fmt.money(0.5), "0.50 USD"),
        (fmt.money(12), "12.00 USD"),
        (fmt.money(0.0123), "0.0123 USD"),
        (fmt.money(1234.567), "1,234.57 USD"),
        (fmt.money_of(3.2, 20), "3.20 of 20.00 USD"),
        (
            fmt.usage(UsageView.of(Usage(12, 34_000, 567, 0.0123))),
            "12 model calls, 34,567 tokens, 0.0123 USD",
        ),
        (fmt.spend(UsageView.of(Usage(1, 30, 4))), "34 tokens"),
        (fmt.size(12_000), "12 kB"),
        (fmt.size(1_200_000_000), "1.2 GB"),
        (fmt.age(-5), "0 s"),
        (fmt.age(59), "59 s"),
        (fmt.age(7_200), "2 h"),
        (fmt.age(3e5), "3 d"),
        (fmt.tally(TallyView.of(Tally(5, 7))), "5/12 42%"),
        (fmt.tally(TallyView.of(Tally())), "–"),
        (fmt.tally_interval(TallyView.of(Tally(5, 7))), "5/12 42% [19–68%]"),
        (fmt.points(-0.031), "-3.1"),
        (fmt.p_value(0.375), "p = 0.375"),
        (fmt.p_value(0.04999), "p = 0.04999"),
        (fmt.p_value(1e-9), "p < 0.00001"),
        (fmt.bar(0.5), "████░░░░"),
        (fmt.bar(1.7, 3), "███"),
        (fmt.bar(-1.0, 3), "░░░"),
        (fmt.listing([1, 2, 3, 4], 2), "1, 2 and 2 more"),
        (fmt.listing([], 2), "–"),
        (fmt.use_of_limit("seconds", 90, 3_600), "1 min 30 s of 1 h"),
        (fmt.use_of_limit("evaluations", 94, 160), "94 of 160 evaluations"),
    ],
)
def test_numbers_are_formatted(text: str, expected: str) -> None:
    assert text == expected


def test_durations_have_two_units() -> None:
    texts = [fmt.duration(seconds) for seconds in (0, 33.4, 72, 3600, 19_620, 273_600, 1e12)]
    assert texts == ["0 s", "33 s", "1 min 12 s", "1 h", "5 h 27 min", "3 d 4 h", "more than a year"]


def test_a_time_of_another_day_has_its_date() -> None:
    now = time.mktime((2026, 11, 26, 12, 0, 0, 0, 0, -1))
    assert fmt.clock(now - 60, now) == "11:59:00"
    assert fmt.clock(now + 86_400, now) == "2026-11-27 12:00"


def test_a_difference_comes_with_its_interval() -> None:
    difference = DeltaView(tasks=12, difference=0.25, interval=(-0.03, 0.49), few=False)
    assert fmt.delta(difference) == "+25 [-3, +49] on 12 tasks"
    assert fmt.delta(None) == "–"
