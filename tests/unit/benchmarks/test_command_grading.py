"""Who is to blame where a graded patch is not applied."""

import asyncio

import pytest

from dgm.benchmarks.command_grading import _apply
from dgm.benchmarks.prediction_patches import read_applied
from dgm.errors import Infrastructure
from dgm.protocols import Completed


class Slow:
    """A sandbox in which a program ends as told."""

    def __init__(self, **ends):
        self.ends = Completed(**{"exit_code": 124, "output": b"", "timed_out": True, **ends})

    async def put(self, files, target):
        pass

    async def exec(self, argv, *, timeout_s, processor_s, **_):
        assert timeout_s > processor_s
        return self.ends


def test_a_patch_that_takes_all_the_processor_time_is_at_fault():
    said = asyncio.run(_apply(Slow(out_of_processor=True), "/work/repo", b"diff"))
    assert said.refused == "it could not be applied within 60 s of processor time"


def test_a_slow_machine_is_not_the_patchs_fault():
    with pytest.raises(Infrastructure, match="applying a patch took more than 240 s"):
        asyncio.run(_apply(Slow(), "/work/repo", b"diff"))


@pytest.mark.parametrize("code", [126, 127])
def test_an_image_without_python_is_not_the_patchs_fault(code):
    ends = {"exit_code": code, "output": b"sh: python3: not found", "timed_out": False}
    with pytest.raises(Infrastructure, match="the image has no python3 to apply a patch with: sh: python3"):
        asyncio.run(_apply(Slow(**ends), "/work/repo", b"diff"))


def test_the_last_line_says_what_became_of_a_patch():
    assert read_applied(b"refused a warning\napplied one; two\n").notes == ("one", "two")
    assert read_applied(b"applied\nrefused no such file").refused == "no such file"
    with pytest.raises(Infrastructure, match="could not be tried: Segmentation fault"):
        read_applied(b"applied\nSegmentation fault\n")
