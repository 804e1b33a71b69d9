"""A child whose budget runs out while it is made is judged by what is there, whichever limit it is and when."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from dgm.config import LimitSettings
from dgm.domain import Entry, Usage
from dgm.errors import AgentFault
from dgm.messages import Reply
from dgm.meta.issue import Diagnose
from dgm.meta.operators import OperatorContext
from dgm.meta.prompts import Prompts, load_shipped
from dgm.protocols import Completed, SandboxSpec
from dgm.worker.workbench import Allowance, SandboxWorkbench
from tests.support.gateway.bench import ACTION, MemoryJournal, Script, ask, client, gateway
from tests.unit.meta.making import ISSUE, SEED, brief
from tests.unit.meta.test_issue import FAILED

pytestmark = pytest.mark.starts_processes

CALL = Usage(1, 95, 5)
LONG = Usage(1, 95, 4000)
"""0.04 USD, where the call might have cost 0.08."""
PATIENCE = 6
"""Calls that the agent would make."""


class Place:
    """A sandbox in which an agent asks the gateway for one line after another, until it is refused or its time ends."""

    def __init__(self, opened, call_s=0.0):
        self.opened, self.call_s = opened, call_s
        self.now, self.lines, self.refused = 0.0, 0, ""

    @asynccontextmanager
    async def open(self, spec):
        yield self

    async def put(self, files, target):
        pass

    async def exec(self, argv, *, timeout_s, stdin=b"", **_):
        if argv[:2] == ["sh", "-c"]:
            return Completed(0, b"")
        launch = json.loads(stdin)
        ends = self.now + launch["time_limit_s"]
        async with client(self.opened, launch["token"]) as http:
            for _ in range(PATIENCE):
                if self.now >= ends:
                    return Completed(124, b"out of time", timed_out=True)
                status, body = await ask(http, text=f"line {self.lines}", max_tokens=8000)
                self.now += self.call_s
                if status != 200:
                    self.refused = body["error"]["code"]
                    return Completed(1, b"refused")
                self.lines += 1
        return Completed(0, b"done")

    async def get(self, source, **_):
        return {**SEED, "lines.txt": Entry(b"%d" % self.lines)}


def made(folder, journal, script, limits, call_s=0.0):
    """The proposal of a diagnosis within the limits, and the place that the agent worked in."""

    async def scenario():
        async with gateway(folder, script, journal) as opened:
            place = Place(opened, call_s)
            allowance = Allowance(limits, lambda: place.now)
            bench = SandboxWorkbench(
                place.open, opened, ACTION, SandboxSpec("python"), limits, None, allowance
            )
            operator = Diagnose(OperatorContext("python", 60.0, Prompts(load_shipped())))
            return await operator.make(brief(cases=[FAILED]), bench), place

    return asyncio.run(asyncio.wait_for(scenario(), 60))


def answers(limits):
    line = LONG if "child_usd" in limits else CALL
    return Script(Reply(json.dumps(ISSUE), usage=CALL), Reply("a line", usage=line))


LIMITS = [
    ({"child_calls": 4}, 3),
    ({"child_tokens": 350}, 3),  # the fourth call begins with 50 tokens left, and is answered
    ({"child_usd": 0.2}, 3),  # with less than 0.08 left no line is asked for
    ({"child_calls": 50}, PATIENCE),
]


@pytest.mark.parametrize(("limits", "lines"), LIMITS)
def test_a_spent_limit_cuts_the_agent_off_and_a_repetition_at_the_same_call(tmp_path, limits, lines):
    journal, allowed = MemoryJournal(), LimitSettings(**limits)
    proposal, place = made(tmp_path / "a", journal, answers(limits), allowed)
    assert (place.lines, proposal.source["lines.txt"].data) == (lines, b"%d" % lines)
    assert place.refused == ("action_limit_exceeded" if lines < PATIENCE else "")
    again, place = made(tmp_path / "b", journal, Script(AssertionError("paid already")), allowed)
    assert again == proposal
    assert (place.lines, len(journal.paid)) == (lines, lines + 1)


def test_an_agent_whose_childs_time_is_over_leaves_what_it_has(tmp_path):
    proposal, place = made(
        tmp_path / "g", MemoryJournal(), answers({}), LimitSettings(child_s=10), call_s=4.0
    )
    assert place.lines == 3
    assert proposal.source["lines.txt"].data == b"3"


def test_a_budget_that_the_question_takes_leaves_no_child(tmp_path):
    with pytest.raises(AgentFault, match=r"no usable answer|action_limit_exceeded") as caught:
        made(
            tmp_path / "g",
            MemoryJournal(),
            Script(Reply("no JSON", usage=CALL)),
            LimitSettings(child_calls=1),
        )
    assert caught.value.stage == "answer"
