"""Words by which a proposal shows that it is about a task, and words that say nothing."""

import pytest

from dgm.domain import Verdict
from dgm.meta.answers import MalformedAnswer
from dgm.meta.task_words import TaskWords
from dgm.offline.improve import kinds
from tests.unit.meta.making import case, member

PROBLEM = (
    "`TokenBucket.refill` in `limits/bucket.py` adds tokens twice. See also `setup.py` and agent/loop.py."
)
PATCH = b"--- a/limits/clock.py\n+++ b/limits/clock.py\n@@ -1 +1 @@\n-a\n+b\n"


def with_problem(text, task, **traces):
    made = case(task, **traces)
    return type(made)(made.evaluation, text, made.traces, made.run, made.action)


TRIED = {"ledger-year": Verdict.RESOLVED, "django__django-11099": Verdict.UNRESOLVED}
CASES = [with_problem(PROBLEM, "ratelimit-refill", patch=PATCH), case("undo")]
WORDS = TaskWords.gather(CASES, [member(1, **TRIED)])


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("When asked about ratelimit-refill, look at the clock.", "ratelimit-refill"),
        ("Handle Ratelimit_Refill.", "ratelimit-refill"),
        ("As in ledger-year, add a day.", "ledger-year"),
        ("The repository of django__django-11099 needs it.", "django__django-11099"),
        ("Like #11099, django-11099 wants a lazy string.", "django__django-11099"),
        ("Always open limits/bucket.py first.", "limits/bucket.py"),
        ("The agent should look into `limits/clock.py`.", "limits/clock.py"),
        ("Undo the last edit where the tests fail.", ""),
        ("Raise MAX_STEPS in agent/loop.py and in setup.py.", ""),
        ("ratelimit-refills are another thing, and the year of the ledger are words.", ""),
        ("my_limits/bucket.py", ""),
        *((kind.reason, "") for kind in kinds()),
    ],
)
def test_ids_and_paths_of_a_task_are_found(text, word):
    assert WORDS.find_mention(text) == word
    if word:
        with pytest.raises(MalformedAnswer, match=rf"the proposal names '{word}', which belongs to one"):
            WORDS.check_general(text, "the proposal")
    else:
        WORDS.check_general(text, "the proposal")


def test_paths_that_many_tasks_have_belong_to_none():
    cases = [with_problem("Mend shared/tariffs.py.", f"task-{n}") for n in range(6)]
    words = TaskWords.gather([*cases, with_problem("Mend lib/rebates.py.", "task-7")], [])
    assert words.find_mention("Open shared/tariffs.py.") == ""
    assert words.find_mention("Open lib/rebates.py.") == "lib/rebates.py"
