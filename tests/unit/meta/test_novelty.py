"""How alike edits are: counted by hand, and over patches as the repository makes them."""

import asyncio

import pytest

from dgm.archive.repository import patch
from dgm.domain import Entry
from dgm.errors import AgentFault
from dgm.messages import Reply
from dgm.meta.prompts import Prompts
from dgm.meta.similarity import AgentEdit, Judge, check_novel, nearest, shingles
from tests.unit.meta.making import MANY_STEPS, MORE_STEPS, SEED, changed

pytestmark = pytest.mark.starts_processes


def edit(before, after, path="a.py"):
    return patch({path: Entry(before)}, {path: Entry(after)})


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (
            b"a\nkeep\n",
            b"x = y + 1\nkeep\n",
            {("-", "a"), ("+", "x", "=", "y", "+"), ("+", "=", "y", "+", "1")},
        ),
        (b"-- a b\n", b"++ c d\n", {("-", "-", "-", "a", "b"), ("+", "+", "+", "c", "d")}),
        (
            b"",
            b"@@ -1 @@\n",
            {("+", "@", "@", "-", "1"), ("+", "@", "-", "1", "@"), ("+", "-", "1", "@", "@")},
        ),
        (b"\0a", b"\0b", set()),
    ],
)
def test_shingles_are_runs_of_four_tokens_with_their_sign(before, after, expected):
    assert shingles(edit(before, after)) == expected


ABCDE, PQRST = edit(b"", b"a b c d e\n"), edit(b"", b"p q r s t\n")


@pytest.mark.parametrize(
    ("first", "others", "result"),
    [
        # {abcd, bcde} and {abcd, bcdf}: one of three.
        (ABCDE, [edit(b"", b"a b c d f\n")], (0, 1 / 3)),
        (ABCDE, [PQRST, ABCDE, ABCDE], (1, 1.0)),
        (ABCDE, [PQRST], (-1, 0.0)),
        (ABCDE, [], (-1, 0.0)),
        (
            edit(b"1\n2\n", b"1\n    return  f( x )\n2\n"),
            [edit(b"9\n", b"return f(x)\n9\n", "b.py")],
            (0, 1.0),
        ),
        (edit(b"a b c d\n", b""), [edit(b"", b"a b c d\n")], (-1, 0.0)),
        (edit(b"", b"a b c d"), [edit(b"", b"a b c d\n")], (0, 1.0)),
        (edit(b"", b"caf\xe9 = 1 + 2\n"), [edit(b"", b"caf\xe9 = 1 + 2\n")], (0, 1.0)),
        (b"", [b"", edit(b"\0a", b"\0b")], (-1, 0.0)),
        (b"no patch\n+at all\n", [b"@@ -1 +1 @@"], (-1, 0.0)),
    ],
)
def test_the_nearest_edit_and_its_resemblance(first, others, result):
    assert nearest(first, others) == pytest.approx(result)


def test_an_edit_as_alike_as_the_threshold_is_a_copy():
    others = [AgentEdit("agent 3", edit(b"", b"a b c d f\n"))]
    with pytest.raises(AgentFault, match=r"agent 3 \(0\.33 alike\)"):
        asyncio.run(check_novel(ABCDE, others, 1 / 3, None))
    assert asyncio.run(check_novel(ABCDE, others, 0.334, None)) == "0.33 like the edit of agent 3"


def test_what_stands_behind_the_limit_is_ignored():
    long = b"".join(b"word%d and three more\n" % n for n in range(20_000))
    assert ("+", "the", "end", "of", "it") not in shingles(edit(b"", long + b"the end of it all\n"))


def test_the_same_change_in_other_words_lies_between():
    more, some = patch(SEED, MANY_STEPS), patch(SEED, MORE_STEPS)
    other = patch(SEED, changed("agent/loop.py", "return 1\n", 'print("giving up")\n    return 1\n'))
    assert 0.0 < nearest(more, [some])[1] < 1.0
    assert nearest(more, [other])[1] == 0.0


def test_a_judge_is_shown_both_edits_each_cut_in_its_middle():
    class Bench:
        async def ask(self, request, role):
            self.asked = request.messages[-1].text
            return Reply('{"copy": true, "why": "both count"}')

    bench = Bench()
    judge = Judge(bench, Prompts({"novelty": "$edit|$other"}), 0, 2_000)
    judgement = asyncio.run(judge.judge(b"a" * 5_000, b"b" * 900))
    assert (judgement.is_copy, judgement.why) == (True, "both count")
    assert bench.asked == f"{'a' * 500}\n[... 4000 bytes left out ...]\n{'a' * 500}|{'b' * 900}"
