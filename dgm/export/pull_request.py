"""The text of a pull request that proposes what an agent's lineage changed: the patch of ``repositories`` in words."""

import re
from collections.abc import Iterator
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from dgm.analysis.lineage import Lineage, LineageStep
from dgm.analysis.summary import models_of
from dgm.archive.run import Run
from dgm.domain import SEED, Agent
from dgm.errors import AgentFault
from dgm.export.fresh import new_file
from dgm.export.privileges import PrivilegeChange, find_privilege_changes
from dgm.export.repositories import changed_files, changed_steps, step_title
from dgm.export.standalone import inline_code
from dgm.meta.contract import read_contract
from dgm.render.report_text import better_text, cost_text, gain_text
from dgm.show.safe import neutralise, one_line
from dgm.show.words import resolved_text
from dgm.views.report import ReportView

_CHECK_CHARS = 120
_SETTING_CHARS = 400
_LOCAL_PATH = re.compile(r"(^|[+:])[./~][^+:]*/([^/+]+)/?")


def write_pr_text(run: Run, agent: Agent, target: Path) -> int:
    """Write the text of a pull request that proposes an agent's change to a new file; return the number of steps.

    Raises:
        UserError: nothing changed, or the file is there already or cannot be written.
        ArchiveCorrupt: a commit is missing or damaged.
    """
    steps = changed_steps(agent, Lineage(run.tree, agent.id).steps(run))
    privileges = find_privilege_changes(run.source(SEED), run.source(agent.id))
    template = Template(files("dgm.export").joinpath("pull_request.md").read_text(encoding="utf-8"))
    text = template.substitute(
        title=inline_code(step_title(steps[0]))
        if len(steps) == 1
        else f"Evolve the agent in {len(steps)} steps",
        steps="\n".join(map(_step_line, steps)),
        privileges="\n".join(map(_privilege_line, privileges)) or "None of them changed.",
        evidence="\n".join(f"- {_escape_markup(line)}" for line in _list_evidence(run, agent)),
        run=inline_code(run.name),
        benchmark=inline_code(name_benchmark(str(run.settings().get("benchmark", "")))),
        model=inline_code(models_of(run)["solve"]),
        check=inline_code(_check_text(run, agent)),
    )
    with new_file(target) as draft:
        draft.write_text(text, encoding="utf-8")
    return len(steps)


def name_benchmark(benchmark: str) -> str:
    """Return a benchmark's name as others may read it: of a local path only the last part."""
    return _LOCAL_PATH.sub(r"\1\2", benchmark)


def _step_line(step: LineageStep) -> str:
    agent = step.agent
    reason = " ".join(agent.rationale.split()) or f"a change by {agent.operator}"
    names = ", ".join(map(inline_code, changed_files(step.patch)))
    result = f"agent {agent.id} resolved {resolved_text(step.own)}"
    # As code, because words such as "fixes #1" and "@team" act on a repository.
    return f"- {inline_code(reason)}\n  - {result}; it changes {names}"


def _privilege_line(change: PrivilegeChange) -> str:
    setting = f": {inline_code(one_line(change.setting, _SETTING_CHARS))}" if change.setting else ""
    return f"- {change.change} {change.kind} in {inline_code(change.path)}{setting}"


def _list_evidence(run: Run, agent: Agent) -> Iterator[str]:
    """Yield the answers that a report begins with, and how far they are to be trusted."""
    view = ReportView.load(run, agent.id)
    yield f"better? {better_text(view)}"
    yield f"by how much? {gain_text(view)}"
    yield f"at what cost? {cost_text(view)}"
    own, seed = run.tree.own(agent.id), run.tree.own(SEED)
    yield (
        f"on the tasks of the search: {resolved_text(own)} resolved, the seed {resolved_text(seed)}; "
        "the agent was chosen on these, so they flatter it"
    )
    yield view.note


def _escape_markup(text: str) -> str:
    """Return the text for Markdown, so that no element in it is read as one."""
    return escape(neutralise(text), quote=False)


def _check_text(run: Run, agent: Agent) -> str:
    try:
        return one_line(" ".join(read_contract(run.source(agent.id)).check), _CHECK_CHARS)
    except AgentFault:
        return "its own check"
