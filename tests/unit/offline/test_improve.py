"""Edits of the shipped agents: each applies, and leaves an agent that starts; the model makes one of them."""

import json
import subprocess
import sys

import pytest

from dgm.offline.improve import applicable, apply_edits, draw, kinds, rank_kinds
from tests.support.offline_talk import IMPROVE, PROBLEM, Scaffold, seed

BROKEN = "unclosed"
AFTER = {
    "still-more-steps": ("more-steps",),
    "enough-steps": ("fewer-steps",),
    "twice-the-steps": ("fewer-steps", "enough-steps"),
    "far-more-steps": ("more-steps", "still-more-steps"),
    "enough-output": ("less-output",),
    "far-more-output": ("more-output",),
    "keep-stderr": ("drop-stderr",),
    "run-tests": ("no-tests",),
    "longer-timeout": ("shorter-timeout",),
    "plain-timeout": ("shorter-timeout", "longer-timeout"),
}


def code(name="plain"):
    return {path: text for path, text in seed(name).items() if path.endswith(".py")}


def by_name(name):
    return next(kind for kind in kinds() if kind.name == name)


def starts(files, folder):
    Scaffold(folder).write(files)
    command = [sys.executable, "-B", "-m", "agent", "--check"]
    return subprocess.run(command, cwd=folder, capture_output=True, timeout=300, check=False).returncode == 0


def base_of(kind):
    files = code("solid" if kind.name.startswith("solid-") else "plain")
    for name in AFTER.get(kind.name, ()):
        files = apply_edits(files, by_name(name).apply(files))
    return files


@pytest.mark.starts_processes
@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.name)
def test_each_edit_leaves_an_agent_that_starts_and_is_made_once(kind, tmp_path):
    before = base_of(kind)
    after = apply_edits(before, kind.apply(before))
    assert after != before
    assert kind.apply(after) == ()
    assert starts(after, tmp_path) == (kind.name != BROKEN)


@pytest.mark.parametrize(
    "files", [{}, {"a.py": ""}, {"a.py": "MAX_STEPS = 10"}, {"a.py": "MAX_STEPS = 10\n" * 2}]
)
def test_an_edit_needs_its_text_exactly_once(files):
    assert applicable({path: text for path, text in files.items() if text.count("\n") != 1}) == [
        kind for kind in applicable(files) if text_is_alone(files)
    ]


def text_is_alone(files):
    return sum(text.count("MAX_STEPS = 10\n") for text in files.values()) == 1


@pytest.mark.starts_processes
def test_a_change_that_does_not_start_is_put_back(tmp_path):
    number = next(n for n in range(900) if rank_kinds(PROBLEM.format(number=n), code())[0].name == BROKEN)
    scaffold = Scaffold(tmp_path).write(seed())
    said = scaffold.work(PROBLEM.format(number=number), IMPROVE, 30)
    assert any("put the change back" in text for text in said)
    second = rank_kinds(PROBLEM.format(number=number), code())[1]
    assert scaffold.read() == {**seed(), **apply_edits(code(), second.apply(code()))}


@pytest.mark.starts_processes
def test_a_note_is_left_where_notes_are_asked_for(tmp_path):
    scaffold = Scaffold(tmp_path).write(seed())
    said = scaffold.work(
        PROBLEM.format(number=3) + "\nThe folder `notes/` in its source is yours.", IMPROVE, 30
    )
    reason = said[-1].partition("Rationale: ")[2]
    assert reason
    assert (tmp_path / "notes/tried.md").read_text() == f"- tried: {reason}\n"


@pytest.mark.starts_processes
@pytest.mark.parametrize("files", [{"README.md": "nothing"}, {"a.py": "x = 1\n"}])
def test_another_agent_is_left_as_it_is(files, tmp_path):
    scaffold = Scaffold(tmp_path).write(files)
    assert scaffold.work(PROBLEM.format(number=1), IMPROVE)[-1].startswith("DONE. Rationale: no")
    assert {path: (tmp_path / path).read_text() for path in files} == files


def first_of(many, problem="Child number: {}"):
    return [rank_kinds(problem.format(number), code())[0].name for number in range(many)]


def test_children_differ_and_evidence_raises_what_would_help():
    plain, raised = first_of(300), first_of(300, "Child number: {}\n- crashed: 10 of 10\n")
    assert len(set(plain)) > 15
    would_help = {kind.name for kind in kinds() if "crashed" in kind.signals}
    assert sum(name in would_help for name in raised) > 1.5 * sum(name in would_help for name in plain)


def test_paths_and_times_do_not_change_the_draw():
    texts = ("The repository is in /tmp/a1. Took 0.25 s", "The repository is in /work. Took 0.5 s")
    weights = {kind: kind.weight for kind in kinds()}
    assert draw(weights, texts[0]) == draw(weights, texts[1])


def test_a_proposal_comes_first_and_other_files_stay_as_they_are():
    proposed = "Child number: 1\n\nProposal: Allow more steps, since runs end at the step limit.\n"
    assert rank_kinds(proposed, code())[0].name == "more-steps"
    allowed = "Child number: 1\n\nMay change:\n- `agent/tools.py`\n"
    ranked = rank_kinds(allowed, code())
    assert {path for kind in ranked for path, _, _ in kind.apply(code())} == {"agent/tools.py"}
    assert 1 < len(ranked) < len(rank_kinds("Child number: 1\n", code()))


CONFLICT = "a = 1\n<<<<<<< one\nb = 2\n||||||| both\n{}=======\nb = 3\n>>>>>>> two\nc = 4\n"


@pytest.mark.starts_processes
@pytest.mark.parametrize(
    ("base", "check", "merged"),
    [
        ("b = 1\n", "true", "a = 1\nb = 2\nc = 4\n"),
        ("", "true", "a = 1\nb = 2\nb = 3\nc = 4\n"),
        ("", "! grep 'b = 3' m.py || (echo Traceback; false)", "a = 1\nb = 2\nc = 4\n"),
    ],
    ids=["both changed a line", "both added", "the sum does not start"],
)
def test_of_two_agents_in_conflict_the_first_ones_lines_stay(base, check, merged, tmp_path):
    scaffold = Scaffold(tmp_path).write({"m.py": CONFLICT.format(base), "check": check})
    problem = (
        "Make one coding agent of two.\n\nThese places are open:\n- `m.py`: lines, in 1 place between lines `<<<<<<<`"
        " and `>>>>>>>`; none may be left\n\nKeep `sh check --check` working."
    )
    said = scaffold.work(problem, IMPROVE, 20)
    assert scaffold.read() == {"m.py": merged}
    assert said[-1].startswith("DONE.\nRationale: Both agents' changes in one program")


def test_the_edits_are_documented_as_data():
    assert len({kind.name for kind in kinds()}) == len(kinds()) > 25
    assert all(kind.reason.endswith(".") and bool(kind.change) != bool(kind.sentence) for kind in kinds())
    assert json.dumps([kind.weight for kind in kinds()])
