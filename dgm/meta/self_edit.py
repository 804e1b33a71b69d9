"""The operator ``self-edit``: the parent works on its own source, with evidence of its own failures.

Source of the idea: arXiv:2505.22954 (the Darwin Gödel Machine). An improve job runs the same program and the same loop
as a solve job, with the agent's folder as the workdir. An agent can therefore improve the way in which it improves.
"""

from collections.abc import Sequence

from dgm.domain import Snapshot
from dgm.errors import AgentFault
from dgm.messages import Message
from dgm.meta.contract import FILE, OWN_EDITOR, Contract, read_contract
from dgm.meta.evidence import describe_evidence
from dgm.meta.operators import OperatorContext, choose_editor
from dgm.meta.task_words import find_last_words, find_statement
from dgm.protocols import Brief, Completed, Job, JobKind, Proposal, Work, Workbench

WORKDIR = "/work/agent"


class SelfEdit:
    """An operator with one parent and one child."""

    name = "self-edit"

    def __init__(self, making: OperatorContext) -> None:
        self.making = making

    async def make(self, brief: Brief, bench: Workbench) -> Proposal:
        """Let the parent edit its own source once."""
        problem = self.making.prompts.fill("self-edit", problem_values(brief))
        work = await edit_source(self.making, brief, bench, problem)
        return Proposal(work.workspace, rationale(work.conversation), work.completed.output)


async def edit_source(making: OperatorContext, brief: Brief, bench: Workbench, problem: str) -> Work:
    """Let the first parent work on its own source.

    Raises:
        AgentFault: stage ``unchanged``: it failed before it changed anything; or as ``bench.work``.
    """
    work = await bench.work(improve_job(making, brief, problem))
    ending = work.completed.bad_end
    if ending and work.workspace == brief.parents[0].source:
        reason = f"the agent {ending} and left its source as it was"
        raise AgentFault("unchanged", reason, work.completed.output)
    return work


def improve_job(
    making: OperatorContext, brief: Brief, problem: str, workspace: Snapshot | None = None
) -> Job:
    """Return the job in which the first parent works on its own source, or on ``workspace``, with evidence."""
    source = brief.parents[0].source
    contract = read_contract(source)
    return Job(
        kind=JobKind.IMPROVE,
        problem=problem
        + (making.prompts.fill("place", _place_values(contract)) if _is_bounded(contract) else ""),
        source=choose_editor(contract, source, making.editor),
        workspace=source if workspace is None else workspace,
        image=making.image,
        workdir=WORKDIR,
        time_limit_s=making.time_limit_s,
        evidence=brief.evidence,
    )


def problem_values(brief: Brief, also: Sequence[str] = ()) -> dict[str, object]:
    """Return the values that the prompts of all improve jobs name; ``also``: lines of further evidence."""
    return {
        **brief.facts,
        "check": " ".join(read_contract(brief.parents[0].source).check),
        "child_number": brief.child_number,
        "evidence": describe_evidence(brief, also),
    }


def _is_bounded(contract: Contract) -> bool:
    """Return whether an editor must be told more than that ``agent.toml`` stays as it is."""
    return (contract.editable, contract.protected, contract.editor) != (("**",), (FILE,), OWN_EDITOR)


def _place_values(contract: Contract) -> dict[str, object]:
    return {
        "workdir": WORKDIR,
        "check": " ".join(contract.check),
        "editable": ", ".join(f"`{pattern}`" for pattern in contract.editable),
        "protected": ", ".join(f"`{pattern}`" for pattern in contract.protected),
        "foreign": ""
        if contract.editor == OWN_EDITOR
        else " It is another agent than you; yours is not in it.",
    }


def rationale(conversation: Sequence[Message]) -> str:
    """Return one line of at most 200 characters from the model's text.

    It is the text after the last ``Rationale:``, else the first line of the last message.
    """
    return (find_statement(conversation, "Rationale") or find_last_words(conversation))[:200]


def describe_failure(check: Completed, max_chars: int) -> str:
    """Return how a check failed, such as ``exits 1``, and the end of its output; empty if it passed."""
    if not check.exit_code and not check.timed_out:
        return ""
    output = check.output.decode("utf-8", "replace").strip()[-max_chars:] or "(no output)"
    return f"{'does not end in time' if check.timed_out else f'exits {check.exit_code}'}:\n\n{output}"
