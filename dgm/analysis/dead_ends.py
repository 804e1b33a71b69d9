"""Dead ends: a search cannot go on because its children die; the cause, and possible remedies.

Two conditions end a session:

* the last ``limits.stillborn_in_a_row`` children died of one cause. They must not all have the same parent
  while another agent may have a child: such a parent only loses its turn (``policies.limits.BARREN``);
* no agent may have a child any more, and either there is only one cause or no child was ever born.

Only deaths since the session began, and since the last child that could be made, are counted. A cause is a
stage and, where the child's own program failed, the exception. Copies of known agents, and parents without any failure
yet, are the ordinary luck of a search (``LUCK``). They end a search only if no child was ever born.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile

from dgm.archive.events import AgentStillborn
from dgm.archive.run import Run
from dgm.archive.tree import Tree
from dgm.errors import DgmError
from dgm.policies.limits import BARREN, fertile

LUCK = frozenset({"duplicate", "evidence", "novelty", "syntax", "unchanged"})
"""Stages at which children die in a healthy search, too."""
STRONGER = "a stronger model (models.improve)"
MAY_HELP: Mapping[str, str] = {
    "answer": "another model (models.diagnose), or more tries (operators.retries)",
    "check": f"more processor time for the self-check (limits.check_s) if it ran out of it; else {STRONGER}",
    "conduct": "conduct.on_misconduct = 'flag', after you have read what was found",
    "conflict": f"{STRONGER}, or another operator than crossover (operator)",
    "contract": STRONGER,
    "duplicate": f"{STRONGER}, or a further operator (operator)",
    "edit": "another model (models.diagnose)",
    "evidence": "a further operator that needs no failures (operator)",
    "get": STRONGER,
    "improve": f"more processor time for the dry run (limits.check_s) if it ran out of it; else {STRONGER}",
    "memory": f"{STRONGER}, or a seed that reads its lessons (solid)",
    "notes": f"{STRONGER}, or fewer notes in the parent's source",
    "novelty": "a higher gates.novelty_threshold, or gates.novelty = 'off'",
    "parents": "another operator than crossover (operator)",
    "part": "another operator than module (operator), or parts in the seed's agent.toml",
    "patch": "a higher limits.patch_bytes, or vetting.patch = false",
    "probe": f"{STRONGER}, or fewer probes (vetting.probes)",
    "processes": STRONGER,
    "protected": f"{STRONGER}, or a wider `editable` in the seed's agent.toml",
    "put": f"{STRONGER}, or a lower evidence.folder_bytes",
    "size": "a higher limits.agent_bytes or limits.agent_files",
    "statement": f"{STRONGER}, or another operator than module (operator)",
    "syntax": f"{STRONGER}, or vetting.syntax = false",
    "time": "more time for a child (limits.child_s)",
    "tree": STRONGER,
    "unchanged": f"{STRONGER}, or more time and calls (limits.improve_s, limits.calls)",
}
"""Stage → what may keep children from dying there; names of settings as for ``--set``."""
UNKNOWN = f"{STRONGER}, or another operator (operator)"
"""Text for a stage of a plug-in."""
_RUN = frozenset({"check", "improve"})
"""Stages at which a child's own program is run, and its output is kept."""
_SHOWN_LINES = 6
_READ_BYTES = 4_000


@dataclass(frozen=True, slots=True)
class DeadEnd:
    """The deaths that keep a search from going on."""

    times: int
    """Number of children that died in a row, of one cause or of several."""
    stages: Mapping[str, int]
    """Number of those children by the stage that they failed."""
    last: AgentStillborn

    @property
    def message(self) -> str:
        """One line for people; its reason is an agent's or a model's words."""
        dead = self.last.outcome
        if len(self.stages) == 1:
            who = "child" if self.times == 1 else f"{self.times} children"
            died = f"the last {who} died of one cause, none was born between: {dead.stage}"
        else:
            stages = ", ".join(f"{count} {stage}" for stage, count in self.stages.items())
            died = f"no child was ever born, all {self.times} died ({stages}), the last: {dead.stage}"
        return f"the search cannot go on: {died}: {dead.reason}"

    @property
    def may_help(self) -> str:
        """Possible remedies, with the names of settings."""
        commonest = max(self.stages, key=lambda stage: self.stages[stage])
        return MAY_HELP.get(commonest, UNKNOWN)


def find_dead_end(tree: Tree, in_a_row: int) -> DeadEnd | None:
    """Return the deaths that keep the search from going on; None if it can go on.

    Args:
        tree: the run so far.
        in_a_row: ``limits.stillborn_in_a_row``; 0 turns the check off.
    """
    deaths = tree.deaths
    if not deaths or not in_a_row:
        return None
    least = min(in_a_row, BARREN)
    if len(deaths) >= least:
        row = list(islice(_iter_last_cause(deaths), in_a_row))
        stage = row[0].outcome.stage
        enough = (len(row) == in_a_row and _is_parent_independent(tree, row)) or (
            len(row) >= least and _is_all_barren(tree)
        )
        if enough and stage not in LUCK:
            return DeadEnd(len(row), {stage: len(row)}, row[0])
    if len(tree.agents) == len(tree.roots) and _is_all_barren(tree):
        commonest = sorted(tree.stillborn.items(), key=lambda item: (-item[1], item[0]))
        return DeadEnd(sum(tree.stillborn.values()), dict(commonest), deaths[-1])
    return None


def read_last_output(run: Run, end: DeadEnd) -> list[str]:
    """Return the last lines of the child's output, or of its maker's output if the child was never run.

    The lines are an agent's words, and must be neutralised before they are shown.
    """
    dead = end.last.outcome
    digest = dead.cost.traces.get("output" if dead.stage in _RUN else "log")
    if digest is None:
        return []
    try:
        printed = run.traces.get(digest)[-_READ_BYTES:]
    except DgmError:
        return []
    lines = [line for line in printed.decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-_SHOWN_LINES:]


def _iter_last_cause(deaths: Sequence[AgentStillborn]) -> Iterator[AgentStillborn]:
    """Yield the latest children in a row that died of one cause, the last one first."""
    last = deaths[-1].outcome
    return takewhile(
        lambda event: (event.outcome.stage, event.outcome.cause) == (last.stage, last.cause), reversed(deaths)
    )


def _is_parent_independent(tree: Tree, row: Sequence[AgentStillborn]) -> bool:
    """Return whether children of several parents died like this, or no other agent may have a child."""
    parents = {event.outcome.parents[0] for event in row}
    return len(parents) > 1 or not any(
        fertile(tree)[agent.id] for agent in tree.agents if agent.id not in parents
    )


def _is_all_barren(tree: Tree) -> bool:
    return not tree.waiting and not fertile(tree).any()
