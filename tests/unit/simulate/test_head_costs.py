"""What the head takes is measured with the real loop, log and gateway."""

from dataclasses import fields

import pytest

from dgm.simulate.scale import head_costs

pytestmark = pytest.mark.slow


def test_each_part_of_a_step_takes_some_time_and_nothing_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(head_costs, "_STEPS", 20)
    monkeypatch.setattr(head_costs, "_CALLS", 8)
    found = head_costs.measure_head("greedy", tmp_path)
    assert all(getattr(found, each.name) > 0.0 for each in fields(found))
    assert found.sped_up(2.0).call_s == found.call_s / 2
    assert list(tmp_path.iterdir()) == []
