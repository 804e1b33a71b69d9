"""The operator that has a model write an agent: what it is shown, what is asked again, and what is made of answers."""

import json

import pytest

from dgm.domain import Entry, Tally
from dgm.errors import AgentFault
from dgm.messages import RequestRefused, Role
from dgm.meta.invent import Invent
from dgm.offline import decide
from dgm.protocols import Completed, Needs
from tests.unit.meta.making import (
    MANY_STEPS,
    MORE_OUTPUT,
    MORE_STEPS,
    PASSES,
    SEED,
    Bench,
    brief,
    make,
    member,
)

pytestmark = pytest.mark.slow

BROKEN = Completed(1, b"Traceback\nNameError: name 'cut' is not defined\n")
LATE = Completed(124, b"", timed_out=True)
STEPS = {"path": "agent/loop.py", "old": "MAX_STEPS = 10", "new": "MAX_STEPS = 20"}
MORE = {"path": "agent/loop.py", "old": "MAX_STEPS = 20", "new": "MAX_STEPS = 40"}
NOWHERE = {"path": "agent/loop.py", "old": "MAX_STEPS = 99", "new": ""}


def answer(rationale="more steps", **changes):
    return "So:\n" + json.dumps({"thought": "what is new", "rationale": rationale, **changes})


SAME = answer("nothing more")
DRAFT = answer(edits=[STEPS])


def invent(bench, members=(), source=SEED, **settings):
    return make(Invent, bench, brief(member(3, source, "Allow $more."), members=members), **settings)


def test_a_draft_is_looked_over_twice_and_checked():
    bench = Bench(DRAFT, SAME, answer("many steps", edits=[MORE]))
    proposal = invent(bench)
    assert Invent.needs == Needs(archive=4)
    assert (proposal.source, proposal.rationale) == (MANY_STEPS, "many steps")
    assert (bench.roles, bench.checked) == (["improve"] * 3, [MANY_STEPS])
    assert [len(request.messages) for request in bench.asked] == [2, 4, 6]
    assert {request.messages[0].role for request in bench.asked} == {Role.SYSTEM}
    assert {(request.tools, request.form.name) for request in bench.asked} == {((), "changes")}
    first, second, third = bench.questions
    assert second.startswith("The draft stands as you wrote it.\n\nLook over your draft. Is the idea new")
    assert third.startswith("The draft stands as you wrote it.\n\nLook over your draft once more")
    assert "\n- agent 3: solved 5 of 9; made by self-edit: Allow $more.\n" in first
    assert "These files are fixed: `agent.toml`. `python3 -m agent --check` must exit 0" in first
    assert "MAX_STEPS = 10" in first
    assert proposal.log.decode().splitlines() == [
        "0 files, 1 edits, 0 removed: more steps",
        "0 files, 0 edits, 0 removed: nothing more",
        "0 files, 1 edits, 0 removed: many steps",
    ]


@pytest.mark.parametrize(
    ("answers", "checks", "settings", "source", "asked", "checked"),
    [
        ([DRAFT, SAME], [PASSES], {"reflections": 0}, MORE_STEPS, 1, 1),
        ([DRAFT, SAME], [PASSES], {"reflections": 1}, MORE_STEPS, 2, 1),
        ([DRAFT, answer(edits=[MORE]), SAME], [BROKEN], {"reflections": 0}, MANY_STEPS, 4, 3),
        ([DRAFT, answer(edits=[MORE])], [LATE, PASSES], {"reflections": 0}, MANY_STEPS, 2, 2),
        ([DRAFT], [BROKEN], {"reflections": 0, "debugging": 0}, MORE_STEPS, 1, 0),
        ([answer(edits=[NOWHERE]), DRAFT], [PASSES], {"reflections": 0}, MORE_STEPS, 2, 1),
        ([DRAFT, DRAFT], [PASSES], {"debugging": 0}, MORE_STEPS, 3, 0),
        (["I would rather not.", '{"thought": "x"}', DRAFT, SAME], [PASSES], {}, MORE_STEPS, 5, 1),
    ],
)
def test_rounds_of_reflection_and_repair(answers, checks, settings, source, asked, checked):
    bench = Bench(*answers, checks=checks)
    proposal = invent(bench, **settings)
    assert (proposal.source, len(bench.asked), len(bench.checked)) == (source, asked, checked)
    assert proposal.rationale == "more steps"
    if BROKEN in checks and checked:
        start = "The draft does not pass its check, which exits 1:\n\nTraceback\nNameError: name 'cut'"
        assert all(question.startswith(start) for question in bench.questions[1:])
    if LATE in checks or (len(answers) == 2 and "99" in answers[0]):
        start = (
            "The draft does not pass its check, which does not end in time:\n\n(no output)",
            "Your last answer could not be applied, and changed nothing: number 1 of 'edits': its 'old' (",
        )
        assert bench.questions[1].startswith(start)
    if len(answers) == 4:
        # The next question does not carry the wrong answers along.
        assert [len(request.messages) for request in bench.asked] == [2, 4, 6, 4, 6]


@pytest.mark.parametrize(
    ("answers", "stage", "asked"),
    [
        ([answer(edits=[NOWHERE])], "edit", 6),
        ([SAME], "unchanged", 3),
        ([answer(edits=[NOWHERE]), SAME], "unchanged", 3),
        ([answer(edits=[{**STEPS, "old": "MAX_STEPS = 5", "new": "MAX_STEPS = 10"}])], "unchanged", 3),
        (["no"], "answer", 2),
        ([answer(removed=[1])], "answer", 2),
        ([answer(files=[{"path": "a", "text": ""}, {"path": "a", "text": "x"}])], "answer", 2),
        ([answer("when ledger-year comes", edits=[STEPS])], "answer", 2),
    ],
)
def test_no_child_comes_of_it(answers, stage, asked):
    bench = Bench(*answers)
    with pytest.raises(AgentFault) as fault:
        invent(bench, members=[member(5, **{"ledger-year": "resolved"})])
    assert (fault.value.stage, len(bench.asked)) == (stage, asked)


@pytest.mark.parametrize(
    "later",
    ["no", RequestRefused("action_limit_exceeded", "x"), RequestRefused("context_length_exceeded", "x")],
)
def test_the_draft_counts_where_no_more_answers_come(later):
    proposal = invent(Bench(DRAFT, later), retries=0)
    assert proposal.source == MORE_STEPS
    assert b"no more answers: " in proposal.log


def test_members_are_shown_as_they_differ_from_the_parent():
    bench = Bench(DRAFT, SAME)
    odd = {**SEED, "agent/n\u200b.py": Entry(b"import a_new_tool\n"), "n\u200b": SEED["README.md"]}
    invent(bench, [member(3), member(7, MORE_OUTPUT), member(9, odd, own=Tally())])
    first = bench.questions[0]
    parts = first.split("=== agent ")
    assert [part[:12] for part in parts[1:]] == ["3's source =", "7's source =", "9's source ="]
    assert "\n--- agent/tools.py\n" in parts[2]
    assert "OUTPUT_LIMIT = 9000" in parts[2]
    assert "(as in agent 3: README.md, agent.toml, agent/__init__.py," in parts[2]
    assert "MAX_STEPS" not in parts[2]
    assert "--- agent/n%E2%80%8B.py\nimport a_new_tool\n" in parts[3]
    assert "- agent 9: solved 0 of 0; made by self-edit\n" in first


def test_what_is_shown_keeps_to_the_budget():
    bench = Bench(DRAFT, SAME)
    invent(bench, [member(7, {**SEED, "notes.md": Entry(b"x" * 50_000)})], prompt_chars=4_000)
    assert len(bench.questions[0]) < 7_000
    assert "bytes left out" in bench.questions[0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"files": {"../x": ""}}, "'../x' is not the path of a file"),
        ({"files": {"/etc/x": ""}}, "'/etc/x' is not the path of a file"),
        ({"files": {"a\0b": ""}}, "is not the path of a file"),
        ({"files": {".git/hooks/x": ""}}, r"'\.git/hooks/x' is git's own"),
        ({"files": {"agent.toml": ""}}, r"'agent\.toml' is fixed"),
        ({"edits": [{"path": "agent.toml", "old": "seed", "new": ""}]}, r"'agent\.toml' is fixed"),
        ({"removed": ["agent.toml"]}, r"'agent\.toml' is fixed"),
        ({"removed": ["none.py"]}, r"there is no file 'none\.py' to remove"),
        ({"edits": [{"path": "none.py", "old": "x", "new": ""}]}, r"there is no file 'none\.py'"),
        ({"edits": [{"path": "agent/loop.py", "old": "", "new": ""}]}, r"its 'old' \(''\) occurs 0 times"),
        ({"edits": [STEPS, {**STEPS, "new": "MAX_STEPS = 50"}]}, "number 2 of 'edits'"),
        ({"edits": [{"path": "x.bin", "old": "a", "new": ""}]}, r"'x\.bin' is no text"),
        ({"edits": [{"path": "link", "old": "a", "new": ""}]}, "there is no file 'link'"),
        ({"files": {"agent": ""}}, "lies in a folder of which there is a file of the same name"),
        ({"files": {"agent/loop.py/x": ""}}, "lies in a folder of which there is a file of the same name"),
    ],
)
def test_what_cannot_be_applied_is_said_in_a_line(changes, message):
    source = {**SEED, "x.bin": Entry(b"\xff"), "link": Entry(b"a", 0o120000)}
    with pytest.raises(AgentFault, match=message) as fault:
        invent(Bench(answer(**changes)), source=source, reflections=0, debugging=0)
    assert "\n" not in str(fault.value)


def test_an_edit_that_is_there_already_is_not_made_again():
    done = {"path": "agent/loop.py", "old": "MAX_STEPS = 5", "new": "MAX_STEPS = 10"}
    proposal = invent(Bench(answer(edits=[done, STEPS]), SAME))
    assert proposal.source == MORE_STEPS
    assert b"number 1 of 'edits' was there already, in 'agent/loop.py'" in proposal.log
    added = {"path": "agent/loop.py", "old": "MAX_STEPS = 10", "new": "MAX_STEPS = 10\nMORE = 1"}
    twice = invent(Bench(answer(edits=[added, added]), SAME))
    assert twice.source["agent/loop.py"].data.count(b"MORE = 1") == 1
    shorter = {"path": "agent/loop.py", "old": "MAX_STEPS = 10\n", "new": "MAX_STEPS = 1\n"}
    back = {"path": "agent/loop.py", "old": "MAX_STEPS = 1\n", "new": "MAX_STEPS"}
    short = invent(Bench(answer(edits=[shorter, back]), SAME))
    assert b"was there" not in short.log
    assert short.source["agent/loop.py"].data.count(b"MAX_STEPS = 1\n") == 0


def test_files_are_written_replaced_and_removed():
    old = {"run.sh": Entry(b"old", 0o100755), "link": Entry(b"run.sh", 0o120000), "agent/old.py": Entry(b"")}
    new = {"run.sh": "new\n", "link": "text\n", "agent/new.py": "x = '\u00e4'\n"}
    for files in (new, [{"path": path, "content": text} for path, text in new.items()]):
        proposal = invent(Bench(answer(files=files, removed="agent/old.py"), SAME), source={**SEED, **old})
        assert proposal.source == {
            **SEED,
            "run.sh": Entry(b"new\n", 0o100755),
            "link": Entry(b"text\n"),
            "agent/new.py": Entry("x = '\u00e4'\n".encode()),
        }


class Offline(Bench):
    """The offline model; a child that is not Python fails its check, and so does the first one if told."""

    def __init__(self, *, first_fails=False):
        super().__init__("")
        self.first_fails = first_fails

    async def ask(self, request, role):
        self.asked.append(request)
        return decide(request)

    async def check(self, source):
        self.checked.append(source)
        for path in source:
            if path.endswith(".py"):
                compile(source[path].data, path, "exec")
        return BROKEN if self.first_fails and len(self.checked) == 1 else PASSES


@pytest.mark.parametrize("number", range(3))
def test_the_offline_model_writes_several_changes_at_once(number):
    bench = Offline()
    members = [member(7, MORE_OUTPUT, f"Show more of a long output. (number {number})")]
    proposal = invent(bench, members)
    assert "Show more of a long output. (more-output)" in proposal.rationale
    assert b"OUTPUT_LIMIT = 3000" not in proposal.source["agent/tools.py"].data
    assert len(bench.asked) >= 3
    assert invent(Offline(), members) == proposal


def test_the_offline_model_takes_the_last_change_back_where_the_check_fails():
    bench = Offline(first_fails=True)
    assert invent(bench).source != SEED
    assert bench.checked[1] != bench.checked[0]


def test_the_offline_model_leaves_what_it_does_not_see_whole():
    with pytest.raises(AgentFault, match="the draft changes nothing"):
        invent(Offline(), prompt_chars=1_000)
