"""Which agents are broken: held against the sum over all ways in which a small tree can be broken."""

from itertools import product
from math import exp, log

import numpy as np
import pytest

from dgm.policies.lineage.breakage import Breakage
from dgm.policies.lineage.constants import BROKEN_RATE, BROKEN_STAYS

PARENTS = [0, 0, 1, 2, 2, 0]
SAY = [0.0, 0.7, -1.0, 2.0, 1.5, -4.0]


def made(parents=PARENTS, say=SAY):
    breakage = Breakage()
    for parent in parents:
        breakage.add(parent)
    for agent, odds in enumerate(say):
        if agent:
            breakage.say(agent, odds)
    breakage.update()
    return breakage


def probabilities(breakage):
    return [1 / (1 + exp(-odds)) for odds in breakage.odds[1:]]


def summed(parents=PARENTS, say=SAY):
    """P(broken) of all but the root, by brute force."""
    n = len(parents)
    total, broken = 0.0, np.zeros(n)
    for state in product((0, 1), repeat=n - 1):
        z = (0, *state)
        weight = 1.0
        for agent in range(1, n):
            p = BROKEN_STAYS if z[parents[agent]] else BROKEN_RATE
            weight *= (p * exp(say[agent])) if z[agent] else 1 - p
        total += weight
        broken += weight * np.array(z)
    return (broken / total)[1:]


def test_odds_equal_the_sum_over_all_states():
    assert probabilities(made()) == pytest.approx(summed(), abs=1e-9)


def test_one_by_one_equals_all_at_once():
    breakage = made()
    breakage.say(4, 3.0)
    breakage.update()
    changed = [*SAY[:4], 3.0, SAY[5]]
    assert probabilities(breakage) == pytest.approx(summed(say=changed), abs=1e-6)
    breakage.replace(list(changed))
    assert probabilities(breakage) == pytest.approx(summed(say=changed), abs=1e-9)


def test_a_line_of_failures_breaks_at_its_top():
    alone = made([0, 0], [0.0, 0.5])
    line = made([0, *range(8)], [0.0] + [0.5] * 8)
    assert probabilities(alone)[0] < 0.1
    assert probabilities(line)[0] > 0.15


def test_a_sound_child_clears_its_parent():
    assert (
        probabilities(made([0, 0, 1], [0.0, 1.0, -6.0]))[0]
        < probabilities(made([0, 0, 1], [0.0, 1.0, 0.0]))[0]
    )


def test_a_line_says_less_of_its_parent_the_likelier_it_is_broken():
    breakage = made([0, 0, 0], [0.0, 5.0, -5.0])
    assert breakage.sound[1] == pytest.approx((1 - BROKEN_RATE) / (1 - BROKEN_RATE + BROKEN_RATE * exp(5.0)))
    assert breakage.sound[2] > 0.99


def test_both_rates_are_learned():
    parents, say = [0], [0.0]
    for child in range(40):
        parents += [0, len(parents)]
        say += [6.0, 6.0] if child % 2 else [-6.0, -6.0]
    breakage = made(parents, say)
    for _ in range(10):
        breakage.learn(range(len(parents)))
    assert breakage.rate == pytest.approx((10 * BROKEN_RATE + 20) / (10 + 60), abs=0.02)
    assert breakage.stays == pytest.approx((10 * BROKEN_STAYS + 20) / (10 + 20), abs=0.02)


@pytest.mark.parametrize(("failed", "low", "high"), [(85, 0.6, 0.77), (40, 0.01, 0.15)])
def test_a_high_rate_is_learned_although_one_failure_says_little(failed, low, high):
    """100 children, one try each; sound ones solve 60 %, so a failure is only 2.5 times likelier of a broken one."""
    says = [log(0.99 / 0.4)] * failed + [log(0.01 / 0.6)] * (100 - failed)
    breakage = made([0] * 101, [0.0, *says])
    breakage.learn(range(101), often=True)
    assert low < breakage.rate < high, "0.76 and 0 before the prior"
