"""The folder of evidence about several agents, and what is known of its reading."""

import json
from dataclasses import replace

import pytest

from dgm.archive.snapshots import write_folder
from dgm.domain import Agent, AgentId, Entry, Evaluation, Tally, TaskId, Verdict
from dgm.messages import Message, Request, Role, Tool
from dgm.meta.evidence import (
    EvidenceContents,
    evidence_folder,
    fit_to_budget,
    folder,
    manifest,
    record_reading,
)
from dgm.meta.evidence.layout import plain
from dgm.protocols import Case, Member, ProgramEnd


def member(number, parents=(0,), source=None, change=b""):
    agent = Agent(AgentId(number), tuple(map(AgentId, parents)), "c", "self-edit", f"why {number}", 7)
    verdicts = {TaskId("b"): Verdict.UNRESOLVED, TaskId("a"): Verdict.RESOLVED}
    return Member(agent, source or {"own.py": Entry(b"x = %d\n" % number)}, Tally(1, 1), verdicts, change)


def case(agent, task="a", verdict=Verdict.UNRESOLVED, **traces):
    kept = {"patch": b"", "failures": b"", "log": b"", "conversation": b""} | traces
    evaluation = Evaluation(AgentId(agent), TaskId(task), 0, verdict, "1 of 2 tests fail")
    return Case(evaluation, f"problem {task}", kept, ProgramEnd())


def test_the_index_leads_to_everything():
    own = case(4, conversation=b"what was said", failures=b"FAILED t")
    about = EvidenceContents([member(4, change=b"diff")], [member(2), member(0, ())], [own, case(2, "b")])
    files = evidence_folder(about, 1_000_000)
    index = files["README.md"].data.decode()
    for words in (
        "## Cases of agent 4",
        "- `cases/a-0/`: unresolved: 1 of 2 tests fail (30 bytes)",
        "`agents/2/`: child of 0; solved 1 of 2",
        "by self-edit: why 2",
        "- `agents/2/cases/b-0/`",
        "`agents/0/`: the agent that the search started from",
    ):
        assert words in index
    assert "Left out" not in index
    assert files["cases/a-0/conversation.md"].data == b"what was said"
    assert files["cases/a-0/failed-tests.txt"].data == b"FAILED t"
    assert files["agents/2/cases/b-0/problem.md"].data == b"problem b"
    assert files["agents/2/source/own.py"].data == b"x = 2\n"
    assert files["agents/4/change.diff"].data == b"diff"
    assert "agents/0/change.diff" not in files
    assert files["agents/4/verdicts.md"].data.decode().endswith("- a: resolved\n- b: unresolved\n")
    assert not any(path.startswith("agents/4/source") for path in files)


def test_of_two_parents_both_sources_are_there():
    files = evidence_folder(EvidenceContents([member(4), member(5)], [], [case(4), case(5, "b")]), 1_000_000)
    assert "## Cases of agent 4\n" in files["README.md"].data.decode()
    assert (files["agents/4/source/own.py"].data, files["agents/5/source/own.py"].data) == (
        b"x = 4\n",
        b"x = 5\n",
    )
    assert {"cases/a-0/problem.md", "agents/5/cases/b-0/problem.md"} <= files.keys()


def test_without_a_case_there_is_no_folder():
    assert evidence_folder(EvidenceContents([member(4)], [member(2)], []), 1_000_000) == {}


@pytest.mark.parametrize("room", [100, 2_500, 6_000, 12_000, 40_000])
def test_what_does_not_fit_is_named_and_the_last_agents_go_first(room):
    big = {"big.py": Entry(b"y" * 5_000)}
    about = EvidenceContents(
        [member(4)],
        [member(2, source=big), member(1, source=big)],
        [case(4, log=b"z" * 3_000), case(1, log=b"w" * 2_000)],
    )
    files = evidence_folder(about, room)
    index = files["README.md"].data.decode()
    complete = evidence_folder(about, 1_000_000)
    missing = complete.keys() - files.keys()
    assert all(f"- `{path}` (" in index for path in missing)
    assert sum(len(entry.data) for entry in files.values()) <= max(room, len(index))
    sources = [path for path in ("agents/2/source/big.py", "agents/1/source/big.py") if path in files]
    assert sources == {40_000: ["agents/2/source/big.py", "agents/1/source/big.py"], 12_000: sources[:1]}.get(
        room, []
    )


def test_a_long_case_of_the_parent_is_cut_where_there_is_no_room_for_all_of_it():
    about = EvidenceContents([member(4)], [], [case(4, conversation=b"a" * 50_000 + b"z" * 50_000)])
    shown = evidence_folder(about, 20_000)["cases/a-0/conversation.md"].data
    assert 10_000 < len(shown) < 20_000
    assert shown.startswith(b"aaaa")
    assert shown.endswith(b"zzzz")


def test_links_and_odd_names_of_a_source_become_text():
    odd = {
        "link": Entry(b"/etc/passwd", 0o120000),
        "a\nb.py": Entry(b"1"),
        "caf\udce9.py": Entry(b"2"),
        "run.sh": Entry(b"3", 0o100755),
    }
    files = evidence_folder(EvidenceContents([member(4)], [member(2, source=odd)], [case(4)]), 1_000_000)
    assert files["agents/2/source/link"] == Entry(b"symbolic link to /etc/passwd\n")
    assert files["agents/2/source/a%0Ab.py"].data == b"1"
    assert files["agents/2/source/caf%E9.py"].data == b"2"
    assert files["agents/2/source/run.sh"] == Entry(b"3")


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
def test_odd_names_can_be_laid_out_beside_any_others(names, tmp_path):
    odd = {name: Entry(name.encode("utf-8", "surrogateescape")) for name in names}
    shown = plain(odd)
    assert sorted(shown.values()) == sorted(entry.data for entry in odd.values())
    assert all(name.isprintable() for name in shown)
    assert all(len(part.encode()) <= 255 for name in shown for part in name.split("/"))
    write_folder({name: Entry(data) for name, data in shown.items()}, tmp_path)
    assert sum(path.is_file() for path in tmp_path.rglob("*")) == len(names)


def test_a_name_with_a_per_cent_sign_stays_where_it_cannot_be_mistaken():
    assert set(plain({"100%.py": Entry(b""), "a%0Ab": Entry(b""), "a%~b": Entry(b"")})) == {
        "100%.py",
        "a%250Ab",
        "a%25~b",
    }


@pytest.mark.parametrize("task", ["../../x", "a//b", "/etc/x", "..", "a/b"])
def test_a_tasks_name_is_one_folder_whatever_is_in_it(task, tmp_path):
    for files in (
        evidence_folder(EvidenceContents([member(4)], [], [case(4, task)]), 1_000_000),
        folder([case(4, task)]),
    ):
        write_folder(files, tmp_path / "evidence")
        (problem,) = (path for path in files if path.endswith("problem.md"))
        assert problem.removeprefix("cases/").count("/") == 1


def test_half_a_surrogate_pair_in_a_rationale_is_shown_as_a_question_mark():
    odd = replace(member(2), agent=replace(member(2).agent, rationale="x \ud800 y"))
    files = evidence_folder(EvidenceContents([member(4)], [odd], [case(4)]), 1_000_000)
    assert b"why: x ? y\n" in files["agents/2/README.md"].data
    assert b"by self-edit: x ? y\n" in files["README.md"].data


BASH = Tool("bash", "Run a command.")
EVIDENCE = {
    "README.md": Entry(b"the first line of the index\nthe second line of the index\n"),
    "cases/a-0/patch.diff": Entry(b"+    return value + 1\n-    return value\n+ short\n"),
    "cases/b-0/patch.diff": Entry(b"+    a line that stands twice\n"),
    "agents/2/change.diff": Entry(b"+    a line that stands twice\n"),
    "agents/2/source/x.py": Entry(b"def the_same_in_both_sources():\n"),
}


def read(*messages, tools=(BASH,)):
    said = [Request(tuple(messages), tools)]
    source = {"x.py": Entry(b"def the_same_in_both_sources():\n")}
    return json.loads(record_reading(EVIDENCE, source, said))


@pytest.mark.parametrize(
    "output",
    [
        "+    return value + 1\n-    return value",
        "     1\t+    return value + 1\n     2\t-    return value",
        "1:+    return value + 1\n2:-    return value",
        "cases/a-0/patch.diff:1:+    return value + 1\ncases/a-0/patch.diff-2--    return value",
        "cases/a-0/patch.diff:+    return value + 1\ncases/a-0/patch.diff:-    return value",
    ],
)
def test_lines_that_a_tool_showed_count_however_they_were_printed(output):
    assert read(Message(Role.TOOL, output)) == {"cases/a-0/patch.diff": [2, 2]}


def test_lines_of_the_editors_own_source_or_of_several_files_say_nothing():
    shown = "def the_same_in_both_sources():\n+    a line that stands twice\n+ short"
    assert read(Message(Role.TOOL, shown)) == {}


def test_only_what_the_model_was_shown_counts():
    line = "the first line of the index"
    assert read(Message(Role.ASSISTANT, line), Message(Role.SYSTEM, line), Message(Role.USER, line)) == {}
    assert read(Message(Role.USER, line), tools=()) == {"README.md": [1, 2]}


def test_the_manifest_names_every_file():
    found = json.loads(manifest({"a": Entry(b"abc")}))
    assert found == {
        "a": {"sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "bytes": 3}
    }


def test_a_prompt_shares_its_room_and_short_parts_leave_theirs():
    text = fit_to_budget(
        [("long", b"a" * 9_000 + b"z" * 9_000), ("short", b"s" * 100), ("other", b"o" * 900)], 3_000
    )
    assert 2_900 < len(text) < 3_200
    assert "s" * 100 in text
    assert "o" * 900 in text
    assert text.index("=== long ===") < text.index("=== short ===") < text.index("=== other ===")
    assert "bytes left out" in text
    assert text.endswith("=== end ===")


def test_the_prompts_of_an_agent_are_one_file():
    about = EvidenceContents(
        [member(4)], [], [case(4, prompts=b"You are"), case(4, prompts=b"You are, later")]
    )
    files = evidence_folder(about, 100_000)
    assert files["agents/4/prompts.md"].data == b"You are"
