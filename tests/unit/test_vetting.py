"""A child is stopped at the first stage that it fails, and at no earlier one."""

import asyncio

import pytest

from dgm.config import LimitSettings
from dgm.domain import Entry
from dgm.errors import AgentFault
from dgm.meta.vetting import Stages, vet
from dgm.protocols import Completed, Proposal, Work

TOML = b'[agent]\ncommand = ["run"]\ncheck = ["check"]\n'
PARENT = {"agent.toml": Entry(TOML), "a.py": Entry(b"1")}
CHILD = {**PARENT, "a.py": Entry(b"2")}


class World:
    """A bench whose checks and agents end as told."""

    def __init__(self, check=None, work=None):
        self.checked = check or Completed(0, b"ok")
        self.worked = work or Work(CHILD, b"", Completed(0, b""), (), 1)
        self.opened = []

    async def check(self, source):
        self.opened.append("check")
        return self.checked

    async def work(self, job):
        self.opened.append("improve")
        return self.worked

    def vet(self, child, known=lambda _: None, **limits):
        stages = Stages(self, "python", 1.0)
        asyncio.run(vet(Proposal(child, ""), PARENT, known, LimitSettings(**limits), stages))


def stage_of(world, child, *args, **limits):
    with pytest.raises(AgentFault) as caught:
        world.vet(child, *args, **limits)
    return caught.value.stage


def test_a_good_child_passes():
    world = World()
    world.vet(CHILD)
    assert world.opened == ["check", "improve"]


@pytest.mark.parametrize(
    ("child", "stage"),
    [
        (PARENT, "unchanged"),
        ({**CHILD, "agent.toml": Entry(TOML + b"\n")}, "protected"),
        ({"a.py": Entry(b"1")}, "protected"),
        ({**CHILD, "big": Entry(b"x" * 5000)}, "size"),
    ],
)
def test_cheap_stages_need_no_sandbox(child, stage):
    world = World()
    assert stage_of(world, child, agent_bytes=4000) == stage
    assert world.opened == []


def test_too_many_files_are_refused():
    many = {**CHILD, **{f"f{n}": Entry(b"") for n in range(20)}}
    assert stage_of(World(), many, agent_files=10) == "size"


def test_a_twin_is_refused_by_name():
    world = World()
    with pytest.raises(AgentFault, match="the same content as agent 3"):
        world.vet(CHILD, lambda _: "agent 3")
    assert world.opened == []


@pytest.mark.parametrize(
    "check",
    [Completed(1, b"Traceback\nSyntaxError: x"), Completed(124, b"", timed_out=True), Completed(137, b"")],
)
def test_a_failing_check_is_fatal(check):
    world = World(check)
    assert stage_of(world, CHILD) == "check"
    assert world.opened == ["check"]


@pytest.mark.parametrize(
    "work",
    [
        Work(CHILD, b"", Completed(0, b""), (), 0),
        Work(CHILD, b"", Completed(124, b"", timed_out=True), (), 1),
        Work(CHILD, b"", Completed(1, b"Traceback (most recent call last)\nKeyError: 'x'"), (), 1),
    ],
)
def test_a_child_that_cannot_improve_is_stillborn(work):
    assert stage_of(World(work=work), CHILD) == "improve"
