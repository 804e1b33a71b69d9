"""Changes at a resume: settings, the place of the benchmark, and verdicts without a model.

Everything else decides the meaning of the run's decisions, and stays frozen.
"""

from collections.abc import Sequence

from dgm.archive.changes import diff_tables
from dgm.archive.events import (
    CallBooked,
    CallRefused,
    ModelCalled,
    Recorded,
    RunChanged,
    TaskGraded,
    VerdictWithdrawn,
)
from dgm.archive.journal import CallReader
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import ActionId, Evaluate, Verdict
from dgm.gateway.allowed import LEFT_OUT
from dgm.gateway.blame import FAILED
from dgm.gateway.lease import SPENT
from dgm.messages import CONTEXT_LENGTH, CUT_SHORT, LEFT_OPEN

SETTABLE = ("models", "providers", "limits", "workers", "sandbox", "scale")
"""Top-level names of settings that a resume may change, beside the place of the benchmark."""
OF_ONE_REQUEST = (CONTEXT_LENGTH, "content_filter", CUT_SHORT, SPENT, FAILED, LEFT_OPEN, LEFT_OUT)
"""Codes of refusals that concern one request only, not the account or the abilities of the model."""
_REFUSED = "SELECT DISTINCT action FROM events WHERE kind = 'call_refused' AND seq <= ? ORDER BY action"


def change_event(before: Settings, after: Settings) -> RunChanged | None:
    """Return the event that turns ``before`` into ``after``; None if they are the same."""
    found = diff_tables(before.model_dump(mode="json"), after.model_dump(mode="json"))
    return RunChanged(found) if found else None


def withdraw_refused_verdicts(run: Run) -> Sequence[VerdictWithdrawn]:
    """Find the verdicts on agents that were refused their model for no fault of theirs, and withdraw them.

    Such an evaluation is unresolved. The provider refused one of its calls for another reason than
    ``OF_ONE_REQUEST``, and no call was answered after that. Refusals by the gateway itself do not count.

    Returns:
        Events to be appended, by action.

    Raises:
        ArchiveCorrupt: a recorded reply is missing or damaged.
    """
    found = (
        _withdrawal_of(run, ActionId(action)) for (action,) in run.store.query(_REFUSED, (run.tree.seq,))
    )
    return [event for event in found if event is not None]


def _withdrawal_of(run: Run, action: ActionId) -> VerdictWithdrawn | None:
    events = run.store.events_of_action(action)
    last = max((item.seq for item in events if isinstance(item.event, VerdictWithdrawn)), default=0)
    graded = [item for item in events if isinstance(item.event, TaskGraded) and item.seq > last]
    if not graded or not isinstance(graded[-1].event, TaskGraded):
        return None
    outcome = graded[-1].event.outcome
    if outcome.verdict is not Verdict.UNRESOLVED:
        return None
    refused = _find_void_calls(run, [item for item in events if item.seq > last])
    if refused is None:
        return None
    void, why = refused
    what = Evaluate(outcome.agent, outcome.task, outcome.attempt)
    return VerdictWithdrawn(action, graded[-1].seq, what, outcome.verdict, why, tuple(void))


def _find_void_calls(run: Run, events: Sequence[Recorded]) -> tuple[list[int], str] | None:
    """Return the numbers of recorded refusals and the last reason; None if none came after the last answer.

    A refusal that a change of the settings may end is not recorded as an answer: its call is booked at nothing.
    """
    reader = CallReader(run.store)
    void: list[int] = []
    refused, booked, why = False, False, ""
    for item in events:
        match item.event:
            case ModelCalled(number=number) as call:
                error = reader.reply(call).error
                refused, booked = bool(error) and error not in OF_ONE_REQUEST, False
                void += [number] if refused else []
            case CallBooked():
                booked = True
            case CallRefused(code=code, message=message) if code not in OF_ONE_REQUEST:
                why = f"refused {code}: {message}"
                refused, booked = refused or booked, False
            case _:
                pass
    return (void, why) if refused else None
