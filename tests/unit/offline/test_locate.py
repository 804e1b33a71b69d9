"""What makes a function or a line suspicious, and which tests are run."""

import json

import pytest

from dgm.messages import Message, Request, Role, ToolCall
from dgm.offline.locate import Evidence, gather, parse_problem, score_line, score_units
from dgm.offline.mutate import Unit
from dgm.offline.solve import LIST, _Situation
from dgm.offline.talk import fold
from tests.support.offline_talk import SOLVE, TOOLS

NOTHING = parse_problem("Mend it.")


def talk_of(*commands, problem="Mend it."):
    """The talk after commands, each with its output."""
    messages = [Message(Role.SYSTEM, SOLVE), Message(Role.USER, problem)]
    for number, (command, output) in enumerate(commands):
        call = ToolCall(str(number), "bash", json.dumps({"command": command}))
        messages += [Message(Role.ASSISTANT, "", (call,)), Message(Role.TOOL, output, call_id=call.id)]
    return fold(Request(messages, TOOLS))


def unit(name, *lines, path="a.py", first=1):
    return Unit(path, first, lines or (f"def {name}():", "    pass"), name, "")


@pytest.mark.parametrize(
    ("problem", "evidence", "first"),
    [
        ("`spread` goes wrong.", Evidence(), "spread"),
        ("`spread(3)` goes wrong.", Evidence(tested={"count"}, frames={("a.py", 4): None}), "count"),
        ("Mend it.", Evidence(tested={"spread"}), "spread"),
        ("Mend it.", Evidence(frames={("a.py", 1): None}), "spread"),
        ("Mend it.", Evidence(ran={"a.py": {4}}), "count"),
        ("The count is wrong.", Evidence(), "count"),
    ],
)
def test_what_is_named_tested_or_run_is_suspected_first(problem, evidence, first):
    units = [unit("spread"), unit("count", first=3), unit("other", first=5)]
    scores = score_units(units, parse_problem(problem), evidence)
    assert max(units, key=lambda one: scores[one]).name == first
    assert all(score > 0 for score in scores.values())


FAILURE = """FAIL: test_sum (tests.test_split.Share)
  File "/w/tests/test_split.py", line 7, in test_sum
    self.assertEqual(share(100, 3), [34, 33, 33])
  File "/w/shares/split.py", line 6, in share
    return each
ValueError: too many
Ran 1 test
FAILED (failures=1)
"""


@pytest.mark.parametrize(
    ("output", "failing", "frames", "messages"),
    [
        (FAILURE, ["tests.test_split.Share.test_sum"], [("shares/split.py", 6)], ["ValueError: too many"]),
        ("EXAMPLE WRONG\nIndexError: no\n", [], [], ["IndexError: no"]),
        ("EXAMPLE RIGHT\nIndexError: no\n", [], [], []),
        (FAILURE.replace("FAIL: ", "").replace("FAILED (failures=1)", "OK"), [], [], []),
    ],
)
def test_evidence_is_what_a_failing_run_shows(output, failing, frames, messages):
    listing = "./shares/split.py\n./tests/test_split.py"
    evidence = gather(talk_of((LIST, listing), ("python3 -m unittest", output)))
    assert (list(evidence.failing), list(evidence.frames), evidence.messages) == (failing, frames, messages)
    assert ("share" in evidence.tested) is bool(failing)


@pytest.mark.parametrize(
    ("row", "evidence", "factor"),
    [
        ("return a", Evidence(), 1.0),
        ("return a", Evidence(frames={("a.py", 2): None}), 2.0),
        ("return a", Evidence(ran={"a.py": {1}}), 0.1),
        ("return a", Evidence(ran={"a.py": {2}}), 1.0),
        ("print(a)", Evidence(), 0.1),
        ("raise KeyError(a)", Evidence(), 0.3),
    ],
)
def test_a_line_that_did_not_run_or_only_reports_is_suspected_less(row, evidence, factor):
    assert score_line(unit("f", "def f(a):", f"    {row}"), 2, NOTHING, evidence) == pytest.approx(factor)


def test_the_test_file_of_the_suspected_module_is_the_relevant_one():
    listing = "./shares/split.py\n./tests/test_all.py\n./tests/test_split.py"
    situation = _Situation(talk_of((LIST, listing), problem="`split` goes wrong."))
    assert situation.relevant_tests == ("tests.test_split",)
    assert situation.tests == "python3 -m unittest"
    failed = talk_of((LIST, listing), ("python3 -m unittest", FAILURE.replace("test_split", "test_all")))
    assert _Situation(failed).relevant_tests == ("tests.test_all",)
