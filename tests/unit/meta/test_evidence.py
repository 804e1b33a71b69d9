"""The evidence that an operator and an editor are given."""

import hashlib
import json
from dataclasses import replace

import pytest

from dgm.archive.conversations import collect_threads, thread_of
from dgm.archive.snapshots import write_folder
from dgm.domain import Agent, AgentId, Entry, Evaluation, Prediction, Tally, TaskId, Verdict
from dgm.messages import Message, Reply, Request, Role, Tool
from dgm.meta.evidence import (
    begin_with_actions,
    conversation_text,
    count_problems,
    cut_middle,
    describe_evidence,
    evidence_folder,
    fit_to_budget,
    manifest,
    plain,
    program_end_of,
    prompts_text,
)
from dgm.protocols import Brief, Case, Member, ProgramEnd


def member(number, parents=(0,), source=None, change=b""):
    agent = Agent(AgentId(number), tuple(map(AgentId, parents)), "c", "self-edit", f"why {number}", 7)
    verdicts = {TaskId("b"): Verdict.UNRESOLVED, TaskId("a"): Verdict.RESOLVED}
    return Member(agent, source or {"own.py": Entry(b"x = %d\n" % number)}, Tally(1, 1), verdicts, change)


def case(agent=4, task="a", verdict=Verdict.UNRESOLVED, run=None, **traces):
    traces = {"patch": b"", "failures": b"", "log": b"", "conversation": b""} | traces
    evaluation = Evaluation(AgentId(agent), TaskId(task), 0, verdict, "1 of 2 tests fail")
    return Case(evaluation, f"problem {task}", traces, run or ProgramEnd())


def folder(parents, members, cases, size=1_000_000):
    return {path: entry.data for path, entry in evidence_folder(parents, members, cases, size).items()}


INDEX = """
## Cases of agent 4, whose source is in the repository

- `cases/a-0/`: unresolved: 1 of 2 tests fail (30 bytes)

## Agents

`agents/4/`: child of 0; solved 1 of 2
  by self-edit: why 4

`agents/2/`: child of 0 and 1; solved 1 of 2
  by self-edit: why 2
- `agents/2/cases/b-0/`: unresolved: 1 of 2 tests fail (9 bytes)

`agents/0/`: the agent that the search started from; solved 1 of 2
"""


def test_the_index_says_what_became_of_predictions():
    promises = (Prediction("a", "more steps"), Prediction("b"), Prediction("c", "luck"))
    one = member(4)
    one = replace(one, agent=replace(one.agent, predictions=promises))
    index = folder([one], [], [case()])["README.md"].decode()
    assert index.partition("why 4\n")[2] == (
        "  promised: kept: that it solves a: more steps\n"
        "  promised: broken: that it solves b: not said why\n"
        "  promised: open: that it solves c: luck\n"
    )


def test_the_folder_has_an_index_cases_and_agents():
    own = case(conversation=b"what was said", failures=b"FAILED t", prompts=b"You are")
    parents, members = [member(4, change=b"diff")], [member(2, (0, 1)), member(0, ())]
    files = folder(parents, members, [own, case(2, "b")])
    assert files["README.md"].decode().endswith(f"\n{INDEX}")
    assert sorted(files) == [
        "README.md",
        *(f"agents/0/{name}" for name in ("README.md", "source/own.py", "verdicts.md")),
        "agents/2/README.md",
        *(f"agents/2/cases/b-0/{name}" for name in ("agent-output.txt", "conversation.md", "failed-tests.txt")),
        *(f"agents/2/cases/b-0/{name}" for name in ("patch.diff", "problem.md")),
        *(f"agents/2/{name}" for name in ("source/own.py", "verdicts.md")),
        *(f"agents/4/{name}" for name in ("README.md", "change.diff", "prompts.md", "verdicts.md")),
        *(f"cases/a-0/{name}" for name in ("agent-output.txt", "conversation.md", "failed-tests.txt")),
        *(f"cases/a-0/{name}" for name in ("patch.diff", "problem.md")),
    ]  # fmt: skip
    assert files["cases/a-0/conversation.md"] == b"what was said"
    assert files["cases/a-0/failed-tests.txt"] == b"FAILED t"
    assert files["agents/2/cases/b-0/problem.md"] == b"problem b"
    assert files["agents/4/change.diff"] == b"diff"
    assert files["agents/4/prompts.md"] == b"You are"
    assert files["agents/4/verdicts.md"].endswith(b"\n\n- a: resolved\n- b: unresolved\n")


def test_two_parents_come_with_their_sources_and_no_case_is_no_folder():
    files = folder([member(4), member(5)], [], [case(), case(5, "b")])
    assert b"## Cases of agent 4\n" in files["README.md"]
    assert (files["agents/4/source/own.py"], files["agents/5/source/own.py"]) == (b"x = 4\n", b"x = 5\n")
    assert {"cases/a-0/problem.md", "agents/5/cases/b-0/problem.md"} <= files.keys()
    assert folder([member(4)], [member(2)], []) == {}


@pytest.mark.parametrize(
    ("room", "sources"), [(100, ()), (2_500, ()), (6_000, ()), (12_000, (2,)), (40_000, (2, 1))]
)
def test_files_of_the_last_agents_are_left_out_first_and_the_index_names_them(room, sources):
    big = {"big.py": Entry(b"y" * 5_000)}
    about = [member(4)], [member(2, source=big), member(1, source=big)]
    cases = [case(log=b"z" * 3_000), case(1, log=b"w" * 2_000)]
    files, complete = folder(*about, cases, room), folder(*about, cases)
    index = files["README.md"].decode()
    assert all(f"- `{path}` (" in index for path in complete.keys() - files.keys())
    assert sum(map(len, files.values())) <= max(room, len(index))
    assert [path for path in files if path.endswith("big.py")] == [
        f"agents/{n}/source/big.py" for n in sources
    ]


def test_a_long_case_of_the_parent_is_cut_to_fit():
    text = b"a" * 50_000 + b"z" * 50_000
    data = folder([member(4)], [], [case(conversation=text)], 20_000)["cases/a-0/conversation.md"]
    assert 10_000 < len(data) < 20_000
    assert (data[:4], data[-4:]) == (b"aaaa", b"zzzz")


@pytest.mark.parametrize("task", ["../../x", "a//b", "/etc/x", "..", "a/b"])
def test_a_tasks_name_becomes_one_folder(task, tmp_path):
    files = evidence_folder([member(4)], [], [case(task=task)], 1_000_000)
    write_folder(files, tmp_path / "evidence")
    (problem,) = (path for path in files if path.endswith("problem.md"))
    assert problem.removeprefix("cases/").count("/") == 1


@pytest.mark.parametrize(
    ("name", "entry", "path", "data"),
    [
        ("link", Entry(b"/etc/passwd", 0o120000), "link", b"symbolic link to /etc/passwd\n"),
        ("a\nb.py", Entry(b"1"), "a%0Ab.py", b"1"),
        ("caf\udce9.py", Entry(b"2"), "caf%E9.py", b"2"),
        ("a%0Ab", Entry(b"3"), "a%250Ab", b"3"),
        ("caf\u00e9/run.sh", Entry(b"4", 0o100755), "caf\u00e9/run.sh", b"4"),
    ],
)
def test_links_and_odd_names_become_text(name, entry, path, data):
    assert plain({name: entry}) == {path: data}


@pytest.mark.parametrize(
    "names",
    [
        ["x\n", "x%0A/y"],
        ["x\n/y", "x%0A"],
        ["\x01" * 90, "\x01" * 90 + "b"],
        ["\x01" * 90 + "/a", "\x01" * 90 + "/b", "\x01" * 89],
        ["\u00e9\u200b" * 60, "long/" * 300 + "a", "long/" * 300 + "b"],
        ["100%.py", "x%~y", "a%zz"],
    ],
)
def test_odd_names_stay_apart_and_fit_on_a_disk(names, tmp_path):
    files = plain({name: Entry(name.encode("utf-8", "surrogateescape")) for name in names})
    assert sorted(files.values()) == sorted(name.encode("utf-8", "surrogateescape") for name in names)
    assert all(name.isprintable() for name in files)
    assert all(len(part.encode()) <= 255 for name in files for part in name.split("/"))
    write_folder({name: Entry(data) for name, data in files.items()}, tmp_path)
    assert sum(path.is_file() for path in tmp_path.rglob("*")) == len(names)


def test_half_a_surrogate_pair_is_a_question_mark():
    odd = replace(member(2), agent=replace(member(2).agent, rationale="x \ud800 y"))
    files = folder([member(4)], [odd], [case()])
    assert b"why: x ? y\n" in files["agents/2/README.md"]
    assert b"by self-edit: x ? y\n" in files["README.md"]


def test_a_task_lists_cases_and_agents():
    cases = [case(), *(case(2, f"t{n}" + "x" * 200) for n in range(60))]
    brief = Brief([member(4)], {"README.md": Entry(b"")}, {}, 0, [member(2)], cases)
    head, *lines = describe_evidence(brief, ["- `merged/`: both changes"]).splitlines()
    assert "`/run/evidence`" in head
    assert lines[:4] == [
        "- `merged/`: both changes",
        "- `cases/a-0/`: unresolved: 1 of 2 tests fail",
        "- `agents/4/`: child of 0; solved 1 of 2",
        "- `agents/2/`: child of 0; solved 1 of 2",
    ]
    assert (len(lines), len(lines[4]), lines[-1]) == (41, 160, "- and 24 more")
    assert describe_evidence(replace(brief, evidence={})) == "There is no evidence of what it did yet."


def test_the_manifest_has_digests_and_sizes():
    assert json.loads(manifest({"a": Entry(b"abc")})) == {
        "a": {"sha256": hashlib.sha256(b"abc").hexdigest(), "bytes": 3}
    }


def test_failures_are_counted_by_kind():
    cases = [
        case(run=ProgramEnd(exit_code=1)),
        case(run=ProgramEnd(exit_code=2), patch=b"diff"),
        case(run=ProgramEnd(exit_code=1, crashed=True), patch=b"diff"),
        case(run=ProgramEnd(truncated=True, context=True), patch=b"diff"),
        case(verdict=Verdict.RESOLVED, run=ProgramEnd(exit_code=1), patch=b"diff"),
    ]
    counts = {"resolved": 3, "evaluations": 7, "failures": 4, "step_limit": 2, "truncated": 1, "wrong": 1}
    assert count_problems(Tally(3, 4), cases) == counts | {"crashed": 1, "empty": 1, "context": 1}


def test_signs_of_a_programs_end():
    messages = [Message(Role.SYSTEM, "never say truncated"), Message(Role.TOOL, "x [output truncated]")]
    trace = b"Traceback (most recent call last)"
    assert program_end_of(0, False, trace, [thread_of(messages)]) == ProgramEnd(truncated=True)
    assert program_end_of(1, True, trace, [thread_of(messages[:1])]) == ProgramEnd(1, True, crashed=True)
    assert program_end_of(0, False, b"", [], ("x", "context_length_exceeded")) == ProgramEnd(context=True)


LONG = "You are an agent.\n" * 100
TOOL = Tool("bash", "runs a command", {"type": "object"})


def test_a_conversation_has_turns_and_the_size_of_its_prompts():
    messages = (Message(Role.SYSTEM, LONG), Message(Role.USER, "mend it"), Message(Role.SYSTEM, LONG))
    threads = collect_threads([(1, Request(messages, (TOOL,)), Reply("DONE"))])
    prompts = prompts_text(threads)
    text = conversation_text(threads)
    assert text.startswith("[system prompt and tool definitions: ")
    assert text.partition("\n\n")[2] == (
        f"## user\n\nmend it\n\n## system\n\n[{len(LONG):,} characters]\n\n## assistant\n\nDONE\n"
    )
    assert LONG.strip() in prompts
    assert "runs a command" in prompts


def test_several_conversations_are_numbered():
    threads = [
        thread
        for number in (3, 5)
        for thread in collect_threads([(number, Request((Message(Role.USER, "mend it"),)), Reply("DONE"))])
    ]
    lines = conversation_text(threads).splitlines()
    assert [line for line in lines if line.startswith("# ")] == [
        "# Conversation 1 of 2: 1 model call, from call 3",
        "# Conversation 2 of 2: 1 model call, from call 5",
    ]


def test_evidence_begins_with_the_first_answer():
    opening = b"[system prompt and tool definitions: 1,900 characters, 1 tools]\n\n## user\n\nmend it\n\n"
    head, _, rest = begin_with_actions(opening + b"## assistant\n\nDONE\n").partition(b"\n\n")
    assert rest == b"## assistant\n\nDONE\n"
    assert all(words in head for words in (b"1,900 characters", b"`problem.md`", b"`prompts.md`"))
    assert begin_with_actions(b"## user\n\nnever answered\n") == b"## user\n\nnever answered\n"


def test_parts_share_a_prompt():
    assert cut_middle(b"a" * 500 + b"z" * 500, 100) == (
        b"a" * 50 + b"\n[... 900 bytes left out ...]\n" + b"z" * 50
    )
    parts = [("long", b"a" * 9_000 + b"z" * 9_000), ("short", b"s" * 100), ("other", b"o" * 900)]
    text = fit_to_budget(parts, 3_000)
    assert text == (
        f"=== long ===\n{'a' * 1000}\n[... 16000 bytes left out ...]\n{'z' * 1000}\n\n"
        f"=== short ===\n{'s' * 100}\n\n=== other ===\n{'o' * 900}\n\n=== end ==="
    )


def test_the_index_counts_what_cheats_left_and_says_nothing_of_it():
    files = evidence_folder([member(4)], [], [case()], 1_000_000, withheld=2)
    assert b"Evaluations left out because an agent cheated in them: 2.\n" in files["README.md"].data
    assert b"cheated" not in folder([member(4)], [], [case()])["README.md"]
