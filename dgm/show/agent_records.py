"""An agent as a document: what ``dgm tree``, ``lineage`` and ``show`` print of it as JSON."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from dgm.analysis.accounts import Accounts, Purpose, RoleAndModel
from dgm.analysis.summary import account_record, agent_record, spend_record, usage_records
from dgm.archive.history import evaluations_of
from dgm.archive.run import Run
from dgm.domain import Agent, Evaluation, Usage
from dgm.show.making import making_record


def member_record(run: Run, agent: Agent) -> dict[str, Any]:
    """Return an agent's origin, tallies and place in the tree."""
    return {**agent_record(run, agent), "aim": run.tree.aim(agent.id)}


def full_record(run: Run, agent: Agent) -> dict[str, Any]:
    """Return also how the agent was made, its evaluations, and what both cost.

    Raises:
        ArchiveCorrupt: a trace of its making is damaged.
    """
    accounts = Accounts(run)
    account = accounts.of(agent.id)
    return {
        **member_record(run, agent),
        "making": making_record(run, agent),
        "cost": spend_record(account.of(Purpose.MAKING)),
        "spend": account_record(account, accounts.clade(agent.id)),
        "refusals": [asdict(refusal) for refusal in accounts.refusals(agent.id)],
        "evaluations": [
            _evaluation_record(action, each, accounts.action(action))
            for action, each in evaluations_of(run, agent.id).items()
        ],
    }


def _evaluation_record(
    action: int, evaluation: Evaluation, by: Mapping[RoleAndModel, Usage]
) -> dict[str, Any]:
    return {
        "action": action,
        "task": evaluation.task,
        "attempt": evaluation.attempt,
        "verdict": evaluation.verdict.value,
        "reason": evaluation.reason,
        "score": evaluation.score,
        "seconds": round(evaluation.cost.seconds, 3),
        "cost": {**spend_record(sum(by.values(), Usage())), "by": usage_records(by)},
        "traces": dict(evaluation.cost.traces),
    }
