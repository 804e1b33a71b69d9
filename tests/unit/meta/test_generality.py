"""Words by which a proposal shows that it is about a task, and words that say nothing."""

import pytest

from dgm.domain import ActionId, Agent, AgentId, Evaluation, TaskId, Verdict
from dgm.meta.answers import MalformedAnswer
from dgm.meta.task_words import TaskWords
from dgm.meta.seeds import read_seed
from dgm.offline.improve import kinds
from dgm.protocols import Case, Member, ProgramEnd

PROBLEM = """`TokenBucket.refill` in `limits/bucket.py` adds tokens twice.

    >>> parse_duration("1h30m") == "90 minutes!"
    ValueError: cannot read 'quarterly budget figures'

See also `setup.py`, agent/loop.py, "python -m unittest" and `subprocess.run`; the `max_steps` of "the function" is
`timeout_seconds`, as in the "README.md". The documentation calls that "generous".
"""
PATCH = b"--- a/limits/clock.py\n+++ b/limits/clock.py\n@@ -1 +1 @@\n-a\n+b\n"


def case(task, problem, patch=b""):
    evaluation = Evaluation(AgentId(1), TaskId(task), 0, Verdict.UNRESOLVED, "no")
    return Case(evaluation, problem, {"patch": patch}, ProgramEnd(), ActionId(1))


MEMBER = Member(
    Agent(AgentId(1), (), "c", "seed", "", ActionId(1)),
    read_seed(),
    verdicts={TaskId("ledger-year"): Verdict.RESOLVED, TaskId("django__django-11099"): Verdict.UNRESOLVED},
)
WORDS = TaskWords.gather([case("ratelimit-refill", PROBLEM, PATCH), case("undo", "Mend it.")], [MEMBER])


@pytest.mark.parametrize(
    "text",
    [
        "When asked about ratelimit-refill, look at the clock.",
        "Handle Ratelimit_Refill.",
        "As in ledger-year, add a day.",
        "The repository of django__django-11099 needs it.",
        "Like #11099, django-11099 wants a lazy string.",
        "Always open limits/bucket.py first.",
        "Always open `bucket.py` first.",
        "The agent should look into src/limits/clock.py.",
        "Call `TokenBucket.refill` only once.",
        "Tell the model that parse_duration may fail: it should check '90 minutes!'.",
        "Where an error speaks of quarterly budget figures, look at the parser.",
    ],
)
def test_words_of_a_task_are_found(text):
    assert WORDS.find_mention(text)
    with pytest.raises(MalformedAnswer, match=r"the proposal names '.*one of the tasks: it is not general"):
        WORDS.check_general(text, "the proposal")


@pytest.mark.parametrize(
    "text",
    [
        "Undo the last edit where the tests fail.",
        "Raise MAX_STEPS in agent/loop.py and in loop.py's max_steps.",
        "Run `python -m unittest` after each edit, and raise the function's timeout_seconds.",
        "Use `subprocess.run` with a longer time, as README.md and setup.py say.",
        "Be more generous with output; keep the documentation.",
        "A refill of the budget, a bucket of tokens, and the year of the ledger are words.",
        "ratelimit-refills are another thing.",
        *(kind.reason for kind in kinds()),
    ],
)
def test_ordinary_words_are_none(text):
    assert WORDS.find_mention(text) == ""


def test_what_many_tasks_have_belongs_to_none():
    cases = [case(f"task-{n}", 'Call `fetch_tariffs` in "shared/tariffs.py".') for n in range(6)]
    cases += [case("task-7", "Call `fetch_rebates`.")]
    words = TaskWords.gather(cases, [])
    assert words.find_mention("Call fetch_tariffs of shared/tariffs.py.") == ""
    assert words.find_mention("Call fetch_rebates.") == "fetch_rebates"
