"""How the offline model makes one of what a merge left between markers."""

import pytest

from dgm.archive.merging import merge_snapshots
from dgm.conversations import thread_of
from dgm.domain import Entry
from dgm.messages import Message, Role
from dgm.offline.merging import merge_words, settlements
from dgm.protocols import Completed, Work
from tests.unit.meta.test_crossover import (
    FITS,
    MANY_STEPS,
    MORE_OUTPUT,
    MORE_STEPS,
    SEED,
    Bench,
    changed,
    crossed,
)
from tests.unit.offline.test_editor import Scaffold

pytestmark = pytest.mark.starts_processes


def joined(base, ours, theirs, path="x.py"):
    """What becomes of a file with conflicts."""
    sides = ({path: Entry(text.encode())} for text in (base, ours, theirs))
    whole = merge_snapshots(*sides)
    assert whole.conflicts
    text = whole.files[path].data.decode()
    (one,) = settlements({path: text})
    assert text.count(one.old) == 1
    return text.replace(one.old, one.new)


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "both"),
    [
        ("N = 10\n", "N = 20\n", "N = 40\n", "N = 40\n"),
        ("N = 10\n", "N = 5\n", "N = 12\n", "N = 5\n"),
        ("T = 0.5\n", "T = 0.0\n", "T = 0.8\n", "T = 0.0\n"),
        ("A = [\n]\n", 'A = [\n    "a",\n]\n', 'A = [\n    "b",\n]\n', 'A = [\n    "a",\n    "b",\n]\n'),
        ("A = ()\n", 'A = ("a", "b")\n', 'A = ("c",)\n', 'A = ("a", "b", "c",)\n'),
        ('P = """Do.\nSay DONE."""\n', 'P = """Do.\nSay DONE.\nPlan."""\n', 'P = """Do.\nSay DONE.\nTest."""\n',
         'P = """Do.\nSay DONE.\nPlan.\nTest."""\n'),
        ("f(a)\n", "f(a, b)\n", "g(a)\n", "g(a, b)\n"),
        ("x = 1\n", "def f():\n    pass\n", "x = 1 + (\n", None),
    ],
)  # fmt: skip
def test_two_sides_become_one(base, ours, theirs, both):
    if both is None:
        both = ours
    assert joined(base, ours, theirs) == both


def test_what_would_be_no_python_is_the_first_sides():
    assert joined("f(x)\n", "f(x, (1))\n", "f[x]\n") in ("f[x, (1))\n", "f(x, (1))\n")
    compile(joined("f(x)\n", "f(x, (1))\n", "f[x]\n"), "x.py", "exec")


def test_several_places_of_a_file_are_settled_by_one_edit():
    def text(a, b):
        return f"A = {a}\n" + "".join(f"line{n} = {n}\n" for n in range(9)) + f"B = {b}\n"

    assert joined(text(1, 1), text(2, 5), text(3, 2)) == text(3, 5)


def test_longer_markers_are_understood():
    odd = '"""\n<<<<<<< x\n"""\n'
    assert joined(odd + "N = 1\n", odd + "N = 2\n", odd + "N = 9\n") == odd + "N = 9\n"


@pytest.mark.parametrize(
    "text", ["<<<<<<< first parent\n", "<<<<<<< a\n=======\n>>>>>>> b\n", "=======\n", "<<<<<<<\n", ""]
)
def test_markers_that_are_none_are_left_alone(text):
    assert settlements({"x.py": text}) == []


def test_a_merge_with_itself_changes_nothing():
    words = list("abcd")
    assert merge_words(words, words, words) == words
    assert merge_words([], [], []) == []


class Offline(Bench):
    """The first parent's loop on a folder, with the offline model; it leaves what is in the folder."""

    def __init__(self, folder, checked=FITS):
        super().__init__(checked)
        self.folder, self.said = folder, []

    async def work(self, job):
        scaffold = Scaffold(self.folder, {path: entry.data.decode() for path, entry in job.workspace.items()})
        self.said = scaffold.improve(job.problem, steps=10)
        left = {path: Entry((self.folder / path).read_bytes()) for path in job.workspace}
        replies = [Message(Role.ASSISTANT, text) for text in self.said]
        return Work(left, b"diff", Completed(0, b"log"), [thread_of(replies)], len(replies))


def test_a_crossover_with_a_conflict_becomes_a_whole_agent(tmp_path):
    bench = Offline(tmp_path)
    ours = {**MORE_STEPS, "agent/tools.py": MORE_OUTPUT["agent/tools.py"]}
    proposal = crossed(bench, ours, MANY_STEPS)
    assert proposal.source == {**ours, "agent/loop.py": MANY_STEPS["agent/loop.py"]}
    assert proposal.rationale.startswith("Both agents' changes in one program")


def test_a_conflict_in_a_file_that_is_no_python_is_read_and_settled(tmp_path):
    base, ours, theirs = (
        {**SEED, "notes.txt": Entry(b"Notes\n" + line)} for line in (b"", b"Plan.\n", b"Test.\n")
    )
    proposal = crossed(Offline(tmp_path), ours, theirs, base)
    assert proposal.source["notes.txt"].data == b"Notes\nPlan.\nTest.\n"


def test_where_both_together_do_not_start_the_first_sides_lines_are_kept(tmp_path):
    base, ours, theirs = (
        changed("agent/loop.py", "MAX_STEPS = 10", f"MAX_STEPS = {value}")
        for value in ("1 * 9", "2 * 9", "1 * 0")
    )
    proposal = crossed(bench := Offline(tmp_path), ours, theirs, base)
    assert b"MAX_STEPS = 2 * 9" in proposal.source["agent/loop.py"].data
    assert any("I keep the first one's lines" in said for said in bench.said)


def test_where_nothing_is_between_markers_nothing_is_changed(tmp_path):
    bench = Offline(tmp_path, Completed(1, b"NameError: name 'x' is not defined"))
    both = {**MORE_STEPS, "agent/tools.py": MORE_OUTPUT["agent/tools.py"]}
    assert crossed(bench, MORE_STEPS, MORE_OUTPUT).source == both
