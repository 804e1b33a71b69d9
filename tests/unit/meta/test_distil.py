"""The operator that writes lessons into an agent's memory file."""

import subprocess
import sys

import pytest

from dgm.domain import Entry, Prediction, Verdict
from dgm.errors import AgentFault
from dgm.meta.distil import Distil
from dgm.meta.lessons import MAX_LESSONS, PATH, read_lessons, task_digest
from dgm.offline import decide
from dgm.offline.improve import READ_LESSONS, apply_edits
from dgm.protocols import JobKind
from tests.unit.meta.making import SEED, Bench, brief, case, make, member
from tests.unit.meta.test_lessons import agent, lesson, memory

YES, NO = Verdict.RESOLVED, Verdict.UNRESOLVED
READS = {**SEED, "agent/memory.py": Entry(b"open('memory/lessons.md')")}
CASES = [
    case("a", action=1, conversation=b"I failed at a"),
    case("b", action=2, conversation=b"I failed at b"),
    case("c", YES, action=3, conversation=b"I solved c"),
    case("b", YES, agent=6, action=4, conversation=b"it solved b"),
    case("c", agent=6, action=5, conversation=b"it failed at c"),
    case("c", YES, agent=5, action=6, conversation=b"another solved c"),
]
ANSWER = {"lessons": [{"lesson": "Read the\n tests first.", "contrasts": [1]}]}


def distil(bench, parent=None, cases=CASES, **more):
    return make(Distil, bench, brief(parent or member(4, READS), cases=cases, **more))


def texts(source):
    return [each.text for each in read_lessons(source)]


def test_attempts_at_the_same_task_are_contrasted_and_become_the_lesson_s_evidence():
    bench = Bench(ANSWER)
    proposal = distil(bench)
    (question,) = bench.questions
    shown = ("I failed at b", "it solved b", "it failed at c", "I solved c")
    assert all(text in question for text in shown)
    assert not any(text in question for text in ("I failed at a", "another solved c"))
    assert set(proposal.source) == {*READS, PATH}
    (learned,) = read_lessons(proposal.source)
    assert learned.text == "Read the tests first."
    assert [(each.evaluation, each.agent, each.verdict) for each in learned.evidence] == [
        (2, 4, NO),
        (4, 6, YES),
    ]
    assert {each.task for each in learned.evidence} == {task_digest("b")}
    assert proposal.rationale == "Lessons: 1 new, 0 dropped. Read the tests first."
    assert bench.jobs == []


def test_the_failures_behind_a_new_lesson_are_predicted_to_be_solved():
    answer = {"lessons": [{"lesson": "First.", "contrasts": [1]}, {"lesson": "Second.", "contrasts": [2]}]}
    proposal = distil(Bench(answer), member(4, READS, a=NO, b=NO, c=YES))
    assert proposal.predictions == (Prediction("b", "First."),)


def test_without_a_common_task_failures_stand_beside_successes_at_other_tasks():
    bench = Bench(ANSWER)
    distil(bench, cases=[CASES[0], CASES[2]])
    assert all(text in bench.questions[0] for text in ("I failed at a", "I solved c"))


def test_the_file_names_no_task_because_that_would_count_as_a_special_case():
    proposal = distil(
        Bench(ANSWER), cases=[case("lru-ttl", action=1), case("lru-ttl", YES, agent=6, action=2)]
    )
    assert b"lru-ttl" not in proposal.source[PATH].data
    assert len(read_lessons(proposal.source)[0].evidence) == 2


def test_nothing_solved_teaches_nothing():
    with pytest.raises(AgentFault) as caught:
        distil(Bench(ANSWER), cases=CASES[:2])
    assert caught.value.stage == "evidence"


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"lesson": "In lru-ttl, add a clock.", "contrasts": [1]}, "names 'lru-ttl'"),
        ({"lesson": "x" * 301, "contrasts": [1]}, "at most 300"),
        ({"lesson": "x", "contrasts": [3]}, "there are contrasts 1 to 2"),
        ({"lesson": "x", "contrasts": []}, "contrasts"),
    ],
)
def test_a_lesson_that_cannot_be_used_is_sent_back(wrong, complaint):
    bench = Bench({"lessons": [wrong]}, ANSWER)
    proposal = distil(bench, cases=[*CASES, case("lru-ttl", action=9)])
    assert complaint in bench.questions[1]
    assert texts(proposal.source) == ["Read the tests first."]


def test_a_contradicted_lesson_is_dropped_and_not_learned_again():
    carrying = {**READS, **memory(lesson("Read the tests first.", "a"), lesson("Good.", "b"))}
    parent = agent(4, (2,), {**carrying, "agent/memory.py": READS["agent/memory.py"]}, a=NO, b=YES)
    members = [agent(2, (0,), carrying, a=NO), agent(0, (), a=YES, b=NO)]
    bench = Bench(ANSWER)
    proposal = distil(bench, parent, members=members)
    assert "- Read the tests first. (its tasks: solved 0 of 2 with it, 1 of 1 by" in bench.questions[0]
    assert texts(proposal.source) == ["Good."]
    assert proposal.rationale == "Lessons: 0 new, 1 dropped."
    assert b"dropped (its tasks: solved 0 of 2 with it" in proposal.log


def test_the_lesson_that_gained_least_makes_room():
    tasks = "abcdefgh"[:MAX_LESSONS]
    source = {
        **memory(*(lesson(f"About {task}.", task) for task in tasks)),
        "agent/memory.py": READS["agent/memory.py"],
    }
    with_it = dict.fromkeys(tasks, YES)
    parent = agent(4, (0,), source, **{**with_it, "c": NO})
    before = agent(0, (), **dict.fromkeys(tasks, NO))
    proposal = distil(Bench(ANSWER), parent, members=[before])
    assert texts(proposal.source) == [f"About {task}." for task in tasks if task != "c"] + [
        "Read the tests first."
    ]


def test_an_agent_that_does_not_read_its_lessons_is_made_to():
    def edit(files):
        return {**files, "agent/memory.py": Entry(b"memory/lessons.md"), PATH: Entry(b"spoilt")}

    bench = Bench(ANSWER, edit=edit)
    proposal = distil(bench, member(4))
    (job,) = bench.jobs
    assert (job.kind, set(job.workspace)) == (JobKind.IMPROVE, {*SEED, PATH})
    assert "does not read it" in job.problem
    assert texts(proposal.source) == ["Read the tests first."]
    with pytest.raises(AgentFault) as caught:
        distil(Bench(ANSWER), member(4))
    assert caught.value.stage == "memory"


@pytest.mark.starts_processes
def test_the_offline_model_writes_a_lesson_that_it_obeys_and_an_edit_that_shows_it(tmp_path):
    bench = Bench(ANSWER)
    distil(bench)
    reply = decide(bench.asked[0]).text
    proposal = distil(Bench(reply))
    (learned,) = read_lessons(proposal.source)
    files = {path: entry.data.decode() for path, entry in SEED.items()}
    files = apply_edits(files, READ_LESSONS.apply(files))
    for path, text in {**files, PATH: proposal.source[PATH].data.decode()}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    def system(kind):
        code = f"from agent import prompts; print(prompts.system({kind!r}))"
        return subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout

    assert system("solve").endswith(f"\n\nLessons of earlier attempts:\n- {learned.text}\n\n")
    assert learned.text not in system("improve")
    (tmp_path / PATH).unlink()
    assert system("solve").endswith("Say DONE when you have finished.\n")
