"""Who is to blame where a graded patch is not applied in time."""

import asyncio

import pytest

from dgm.benchmarks.command_grading import _apply
from dgm.errors import Infrastructure
from dgm.protocols import Completed


class Slow:
    """A sandbox in which a program ends as told."""

    def __init__(self, **ends):
        self.ends = Completed(124, b"", timed_out=True, **ends)

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
