"""What is said of images that do not fit the sandboxes' machine."""

import logging

import pytest

from dgm.benchmarks.opening import open_suite
from dgm.errors import UserError


class Engine:
    """An engine that only knows its architecture."""

    name = "docker"

    def __init__(self, machine):
        self.machine = machine


@pytest.mark.parametrize(("machine", "warned"), [("x86_64", False), ("aarch64", True)])
def test_images_for_another_machine_are_said_before_anything_runs(machine, warned, caplog, tmp_path):
    with caplog.at_level(logging.WARNING), pytest.raises(UserError):
        open_suite(f"swebench:{tmp_path / 'missing.jsonl'}", Engine(machine))
    assert ("images for x86_64 only, and the sandboxes' machine is aarch64" in caplog.text) is warned


def test_other_benchmarks_fit_every_machine(caplog):
    open_suite("starter", Engine("aarch64"))
    assert not caplog.records
