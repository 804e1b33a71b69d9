"""The operator that has a model write an agent: what it is shown, what is asked again, and what is made of answers."""

import asyncio
import json

import pytest

from dgm.config import EvidenceSettings, OperatorSettings
from dgm.domain import Agent, AgentId, Entry, Tally
from dgm.errors import AgentFault
from dgm.messages import Reply, RequestRefused, Role
from dgm.meta.operators import OperatorContext
from dgm.meta.invent import Invent
from dgm.meta.prompts import Prompts, load_shipped
from dgm.meta.seeds import read_seed
from dgm.offline import decide
from dgm.protocols import Brief, Completed, Member, Needs
from tests.unit.meta.test_crossover import FITS, MANY_STEPS, MORE_OUTPUT, MORE_STEPS
from tests.unit.meta.test_self_edit import FACTS

pytestmark = pytest.mark.slow

SEED = read_seed()
SOLVED = Tally(5, 4)
BROKEN = Completed(1, b"Traceback\nNameError: name 'cut' is not defined\n")
STEPS = {"path": "agent/loop.py", "old": "MAX_STEPS = 10", "new": "MAX_STEPS = 20"}
MORE = {"path": "agent/loop.py", "old": "MAX_STEPS = 20", "new": "MAX_STEPS = 40"}
NOWHERE = {"path": "agent/loop.py", "old": "MAX_STEPS = 99", "new": ""}


def said(rationale="more steps", **changes):
    return "So:\n" + json.dumps({"thought": "what is new", "rationale": rationale, **changes})


SAME = said("nothing more")


class Bench:
    """Answers in order, the last one again and again; checks likewise."""

    def __init__(self, *answers, checks=(FITS,)):
        self.answers, self.checks = list(answers), list(checks)
        self.asked, self.roles, self.checked = [], [], []

    async def ask(self, request, role):
        self.asked.append(request)
        self.roles.append(role)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, Reply) else Reply(answer)

    async def check(self, source):
        self.checked.append(source)
        return self.checks.pop(0) if len(self.checks) > 1 else self.checks[0]


def member(number, source, rationale="", own=SOLVED):
    return Member(Agent(AgentId(number), (AgentId(0),), "c", "self-edit", rationale, number), source, own)


def made(bench, members=(), source=SEED, chars=60_000, **settings):
    making = OperatorContext(
        "python",
        60.0,
        Prompts(load_shipped()),
        OperatorSettings.model_validate(settings),
        EvidenceSettings.model_validate({"prompt_chars": chars}),
    )
    brief = Brief([member(3, source, "Allow $more.")], {}, FACTS, 2, members=members)
    return asyncio.run(Invent(making).make(brief, bench))


def questions(bench):
    return [request.messages[-1].text for request in bench.asked]


def test_it_wants_to_see_members_of_the_archive():
    assert Invent.needs == Needs(archive=4)


def test_a_draft_is_looked_over_twice_and_checked():
    bench = Bench(said(edits=[STEPS]), SAME, said("many steps", edits=[MORE]))
    proposal = made(bench)
    assert proposal.source == MANY_STEPS
    assert proposal.rationale == "many steps"
    assert bench.roles == ["improve"] * 3
    assert bench.checked == [MANY_STEPS]
    assert [len(request.messages) for request in bench.asked] == [2, 4, 6]
    for request in bench.asked:
        assert request.messages[0].role is Role.SYSTEM
        assert request.messages[0].text.startswith("You write a coding agent. ")
        assert not request.tools
    first, second, third = questions(bench)
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


def test_a_reflection_that_changes_nothing_keeps_what_was_said_of_the_draft():
    assert made(Bench(said(edits=[STEPS]), SAME)).rationale == "more steps"


@pytest.mark.parametrize("reflections", [0, 1, 2])
def test_reflections_are_as_many_as_the_settings_say(reflections):
    bench = Bench(said(edits=[STEPS]), SAME)
    made(bench, reflections=reflections)
    assert len(bench.asked) == 1 + reflections


def test_members_are_shown_as_they_differ_from_the_parent():
    bench = Bench(said(edits=[STEPS]), SAME)
    made(bench, [member(3, SEED), member(7, MORE_OUTPUT, "Show more."), member(9, MANY_STEPS, own=Tally())])
    (first, *_) = questions(bench)
    parts = first.split("=== agent ")
    assert [part[:12] for part in parts[1:]] == ["3's source =", "7's source =", "9's source ="]
    assert "\n--- agent/tools.py\n" in parts[2] and "OUTPUT_LIMIT = 9000" in parts[2]
    assert "(as in agent 3: README.md, agent.toml, agent/__init__.py," in parts[2]
    assert "MAX_STEPS" not in parts[2]
    assert "- agent 9: solved 0 of 0; made by self-edit\n" in first


def test_a_new_file_with_an_unprintable_name_is_shown():
    new = {"agent/n\u200b.py": Entry(b"import a_new_tool\n")}
    bench = Bench(said(edits=[STEPS]), SAME)
    made(bench, members=[member(4, {**SEED, **new}), member(5, {**SEED, "n\u200b": SEED["README.md"]})])
    first = questions(bench)[0]
    assert "--- agent/n%E2%80%8B.py\nimport a_new_tool\n" in first
    assert "--- n%E2%80%8B\n" in first


def test_what_is_shown_keeps_to_the_budget():
    bench = Bench(said(edits=[STEPS]), SAME)
    made(bench, [member(7, {**SEED, "notes.md": Entry(b"x" * 50_000)})], chars=4_000)
    assert len(questions(bench)[0]) < 7_000
    assert "bytes left out" in questions(bench)[0]


def test_a_draft_that_fails_its_check_is_mended_at_most_three_times():
    bench = Bench(said(edits=[STEPS]), said(edits=[MORE]), SAME, checks=[BROKEN])
    proposal = made(bench, reflections=0)
    assert proposal.source == MANY_STEPS
    assert len(bench.asked) == 4
    assert len(bench.checked) == 3
    for question in questions(bench)[1:]:
        assert question.startswith(
            "The draft does not pass its check, which exits 1:\n\nTraceback\nNameError: name 'cut'"
        )


def test_mending_ends_as_soon_as_the_check_passes():
    bench = Bench(said(edits=[STEPS]), said(edits=[MORE]), checks=[Completed(124, b"", timed_out=True), FITS])
    assert made(bench, reflections=0).source == MANY_STEPS
    assert len(bench.asked) == 2
    assert "does not end in time:\n\n(no output)" in questions(bench)[1]


def test_without_debugging_whoever_vets_sees_the_draft():
    bench = Bench(said(edits=[STEPS]), checks=[BROKEN])
    assert made(bench, reflections=0, debugging=0).source == MORE_STEPS
    assert bench.checked == []


def test_an_edit_that_does_not_apply_is_told_and_costs_a_round():
    bench = Bench(said(edits=[NOWHERE]), said(edits=[STEPS]))
    assert made(bench, reflections=0).source == MORE_STEPS
    assert questions(bench)[1].startswith(
        "Your last answer could not be applied, and changed nothing: number 1 of 'edits': its 'old' ('MAX_STEPS = 99') "
        "occurs 0 times in 'agent/loop.py'; it must occur once."
    )
    assert len(bench.checked) == 1


def test_a_draft_that_never_applies_is_no_child():
    bench = Bench(said(edits=[NOWHERE]))
    with pytest.raises(AgentFault, match="no draft could be applied") as fault:
        made(bench)
    assert fault.value.stage == "edit"
    assert len(bench.asked) == 1 + 2 + 3


@pytest.mark.parametrize("answers", [[SAME], [said(edits=[NOWHERE]), SAME]])
def test_a_draft_that_changes_nothing_is_unchanged_and_not_unfit(answers):
    with pytest.raises(AgentFault, match="the draft changes nothing in the parent's source") as fault:
        made(Bench(*answers))
    assert fault.value.stage == "unchanged"


def test_a_later_answer_that_does_not_apply_leaves_the_draft():
    bench = Bench(said(edits=[STEPS]), said(edits=[STEPS]))
    assert made(bench, debugging=0).source == MORE_STEPS


def test_an_answer_that_cannot_be_read_is_asked_for_again():
    bench = Bench("I would rather not.", '{"thought": "x"}', said(edits=[STEPS]), SAME)
    assert made(bench).source == MORE_STEPS
    assert "That cannot be used: there is no JSON object" in questions(bench)[1]
    # The next question does not carry the wrong answers along.
    assert [len(request.messages) for request in bench.asked] == [2, 4, 6, 4, 6]


def test_no_readable_answer_is_no_child():
    with pytest.raises(AgentFault, match="the same unusable answer again at try 2") as fault:
        made(Bench("no"))
    assert fault.value.stage == "answer"


@pytest.mark.parametrize(
    "later",
    [
        "no",
        RequestRefused("action_limit_exceeded", "spent"),
        RequestRefused("context_length_exceeded", "long"),
    ],
)
def test_what_there_is_counts_where_no_more_answers_come(later):
    proposal = made(Bench(said(edits=[STEPS]), later), retries=0)
    assert proposal.source == MORE_STEPS
    assert b"no more answers: " in proposal.log


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"files": {"../x": ""}}, "'../x' is not the path of a file"),
        ({"files": {"/etc/x": ""}}, "'/etc/x' is not the path of a file"),
        ({"files": {"a//b": ""}}, "'a//b' is not the path of a file"),
        ({"files": {"": ""}}, "'' is not the path of a file"),
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
        made(Bench(said(**changes)), source=source, reflections=0, debugging=0)
    assert "\n" not in str(fault.value)


DONE = {"path": "agent/loop.py", "old": "MAX_STEPS = 5", "new": "MAX_STEPS = 10"}
ADDED = {"path": "agent/loop.py", "old": "MAX_STEPS = 10", "new": "MAX_STEPS = 10\nMORE = 1"}


def test_an_edit_that_is_there_already_is_not_made_again():
    proposal = made(Bench(said(edits=[DONE, STEPS]), SAME))
    assert proposal.source == MORE_STEPS
    assert b"number 1 of 'edits' was there already, in 'agent/loop.py'" in proposal.log
    twice = made(Bench(said(edits=[ADDED, ADDED]), SAME))
    assert twice.source["agent/loop.py"].data.count(b"MORE = 1") == 1


def test_a_draft_of_edits_that_are_there_already_changes_nothing():
    with pytest.raises(AgentFault, match="the draft changes nothing") as fault:
        made(Bench(said(edits=[DONE])), reflections=0, debugging=0)
    assert fault.value.stage == "unchanged"


def test_a_text_is_shortened_although_its_beginning_stands_there():
    shorter = {"path": "agent/loop.py", "old": "MAX_STEPS = 10\n", "new": "MAX_STEPS = 1\n"}
    back = {"path": "agent/loop.py", "old": "MAX_STEPS = 1\n", "new": "MAX_STEPS"}
    assert (
        made(Bench(said(edits=[shorter]), SAME)).source["agent/loop.py"].data.count(b"MAX_STEPS = 1\n") == 1
    )
    assert b"was there" not in made(Bench(said(edits=[shorter, back]), SAME)).log


@pytest.mark.parametrize("removed", [3, [1], {"a": 1}])
def test_what_is_no_list_of_paths_cannot_be_read(removed):
    with pytest.raises(AgentFault, match="'removed' must be a list of paths"):
        made(Bench(said(removed=removed)), retries=0)


def test_files_are_written_replaced_and_removed():
    source = {
        **SEED,
        "run.sh": Entry(b"old", 0o100755),
        "link": Entry(b"run.sh", 0o120000),
        "agent/old.py": Entry(b""),
    }
    files = {"run.sh": "new\n", "link": "text\n", "agent/new.py": "x = '\u00e4'\n"}
    proposal = made(Bench(said(files=files, removed=["agent/old.py"]), SAME), source=source)
    assert proposal.source == {
        **SEED,
        "run.sh": Entry(b"new\n", 0o100755),
        "link": Entry(b"text\n"),
        "agent/new.py": Entry("x = '\u00e4'\n".encode()),
    }


class Offline(Bench):
    """The offline model; a child that is not Python fails its check."""

    async def ask(self, request, role):
        self.asked.append(request)
        return decide(request)

    async def check(self, source):
        self.checked.append(source)
        for path in source:
            if path.endswith(".py"):
                try:
                    compile(source[path].data, path, "exec")
                except SyntaxError as error:
                    return Completed(1, f"SyntaxError: {error}\n".encode())
        return FITS


@pytest.mark.parametrize("number", range(10))
def test_the_offline_model_writes_several_changes_at_once(number):
    bench = Offline("")
    members = [member(7, MORE_OUTPUT, f"Show more of a long output. (number {number})")]
    proposal = made(bench, members)
    assert proposal.source != SEED
    assert "Show more of a long output. (more-output)" in proposal.rationale
    assert b"OUTPUT_LIMIT = 3000" not in proposal.source["agent/tools.py"].data
    assert len(bench.asked) >= 3
    assert made(Offline(""), members) == proposal


def test_the_offline_model_takes_the_last_change_back_where_the_check_fails():
    bench = Offline("")
    kept = bench.check

    async def check(source):
        done = await kept(source)
        return BROKEN if len(bench.checked) == 1 else done

    bench.check = check
    proposal = made(bench)
    assert len(bench.checked) >= 2
    assert bench.checked[1] != bench.checked[0]
    assert proposal.source != SEED


def test_the_offline_model_leaves_what_it_does_not_see_whole():
    with pytest.raises(AgentFault, match="the draft changes nothing"):
        made(Offline(""), chars=1_000)
