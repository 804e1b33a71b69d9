"""Lessons in an agent's memory file: what is read, and what evaluations say of them."""

import pytest

from dgm.archive.snapshots import LINK
from dgm.domain import ActionId, Agent, AgentId, Entry, Tally, TaskId, Verdict
from dgm.meta.lessons import (
    MAX_CHARS,
    MAX_LESSONS,
    PATH,
    Attempt,
    Lesson,
    Record,
    format_lessons,
    read_lessons,
    reads_lessons,
    record_of,
    task_digest,
)
from dgm.protocols import Member
from tests.unit.meta.making import SEED, brief

YES, NO = Verdict.RESOLVED, Verdict.UNRESOLVED


def lesson(text, *tasks):
    return Lesson(
        text, tuple(Attempt(ActionId(7), AgentId(0), task_digest(TaskId(task)), NO) for task in tasks)
    )


def memory(*lessons):
    return {**SEED, PATH: Entry(format_lessons(lessons))}


def test_lessons_are_read_as_they_were_written():
    lessons = [lesson("Read the tests first.", "a", "b"), lesson("--> naïve <!-- ?", "c")]
    assert read_lessons(memory(*lessons)) == lessons
    assert read_lessons(SEED) == []
    text = memory(lesson("x", "a"))[PATH].data.decode()
    assert (
        '\n- x\n<!-- evidence: [{"evaluation":7,"agent":0,"task":"ca978112ca1bbdca","verdict":"unresolved"}] -->\n'
        in text
    )


@pytest.mark.parametrize(
    "written",
    [
        b"- alone\n",
        b"- x\n<!-- evidence: [{}] -->\n",
        b"- x\n<!-- evidence: [" + b"[" * 100_000 + b"] -->\n",
        b"- x\n\n<!-- evidence: [] -->\n",
        b"- " + b"x" * (MAX_CHARS + 1) + b"\n<!-- evidence: [] -->\n",
        b" " * 100_000 + b"\n- x\n<!-- evidence: [] -->\n",
        b'- x\n<!-- evidence: [{"evaluation":7,"agent":-1,"task":"ca978112ca1bbdca","verdict":"resolved"}] -->\n',
        b'- x\n<!-- evidence: [{"evaluation":7,"agent":1,"task":"../a","verdict":"resolved"}] -->\n',
    ],
)
def test_what_is_no_lesson_with_evidence_is_left_out(written):
    good = format_lessons([lesson("good", "a")])
    assert [each.text for each in read_lessons({PATH: Entry(good + written)})] == ["good"]


def test_there_are_few_lessons_each_once_and_a_link_is_no_file_of_them():
    many = [lesson(f"number {n // 2}", "a") for n in range(4 * MAX_LESSONS)]
    read = read_lessons(memory(*many))
    assert [each.text for each in read] == [f"number {n}" for n in range(MAX_LESSONS)]
    assert read_lessons({PATH: Entry(memory(*many)[PATH].data, LINK)}) == []


def test_an_agent_reads_its_lessons_if_another_file_names_them():
    assert not reads_lessons(memory(lesson("see lessons.md", "a")))
    assert reads_lessons({**SEED, "agent/x.sh": Entry(b"cat memory/lessons.md")})


def agent(number, parents, source=SEED, **verdicts):
    about = Agent(AgentId(number), tuple(map(AgentId, parents)), "c", "distil", "", ActionId(0))
    return Member(about, source, verdicts={TaskId(task): verdict for task, verdict in verdicts.items()})


def test_carriers_are_held_against_the_ancestors_without_the_lesson():
    known = lesson("Read the tests first.", "a", "b")
    carrying = memory(lesson("read  the TESTS first.", "c"))
    about = brief(
        agent(5, (3,), carrying, a=NO, b=YES, c=YES),
        members=[
            agent(3, (1,), carrying, a=NO),
            agent(1, (0,), a=YES, b=NO, c=NO),
            agent(0, (), b=YES),
            agent(2, (0,), a=NO, b=NO),
            agent(4, (2,), carrying, b=NO),
        ],
    )
    assert record_of(known, about) == Record(Tally(1, 3), Tally(2, 1))


@pytest.mark.parametrize(
    ("carriers", "before", "contradicted"),
    [
        (Tally(1, 3), Tally(2, 1), True),
        (Tally(0, 2), Tally(1, 9), True),
        (Tally(0, 1), Tally(3, 0), False),
        (Tally(1, 1), Tally(1, 1), False),
        (Tally(0, 5), Tally(0, 5), False),
        (Tally(0, 5), Tally(), False),
    ],
)
def test_a_lesson_is_contradicted_if_its_tasks_are_solved_less_often_with_it(carriers, before, contradicted):
    assert Record(carriers, before).is_contradicted is contradicted
