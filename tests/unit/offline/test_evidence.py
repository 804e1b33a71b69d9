"""Only failures that were there before a candidate count as evidence of where the fault is."""

import pytest

from dgm.offline import localise
from dgm.offline.capabilities import ToolRole
from dgm.offline.knowledge import Conversation, ConversationStep
from dgm.offline.moves import Edit, RunTests

GOOD = "Ran 3 tests in 0.001s\n\nOK\n"


def failed(*names):
    heads = "".join(f"FAIL: {name} (tests.test_a.A.{name})\n" for name in names)
    return f"{heads}Ran 3 tests in 0.001s\n\nFAILED (failures={len(names)})\n"


def evidence(*results):
    """The evidence of test runs; each after the first follows an edit of its own."""
    steps = [ConversationStep("", ToolRole.SHELL, RunTests(), results[0])] if results[0] else []
    for number, result in enumerate(results[1:]):
        steps.append(
            ConversationStep("", ToolRole.REPLACE, Edit("a.py", "x", f"y{number}"), "edited", done=True)
        )
        steps.append(ConversationStep("", ToolRole.SHELL, RunTests(), result))
    talk = Conversation("", "problem", "", {}, frozenset(), tuple(steps), {}, ())
    return localise.gather(talk)


@pytest.mark.parametrize(
    ("runs", "known"),
    [
        ((failed("a"),), ["a"]),
        ((failed("a"), failed("b")), ["a"]),
        (("", failed("a"), failed("a", "b")), ["a"]),
        (("", failed("a"), failed("b")), []),
        ((GOOD, failed("a")), []),
    ],
)
def test_what_a_candidate_broke_is_no_evidence(runs, known):
    assert [name.rsplit(".", 1)[-1] for name in evidence(*runs).failing] == known
