"""An agent as a package for Harbor: ``harbor run --agent MODULE:Agent`` runs it in the tasks of any of its data sets.

The package holds the agent's source and the programs that start agents in dgm's own sandboxes, so that it finds the
same job file and the same variables there. ``harbor_agent.py`` is the part that Harbor imports.
"""

import json
import re
from importlib.resources import files
from pathlib import Path
from string import Template

from dgm.archive.run import Run
from dgm.archive.snapshots import write_folder
from dgm.domain import Agent
from dgm.errors import AgentFault, UserError
from dgm.exports.files import new_folder
from dgm.exports.scrub import LocalIdentity
from dgm.meta.contract import AUTO_ACTIONS, Contract, read_contract

TIME_LIMIT_S = 1800.0
"""Wall time of an agent at a task, where the run does not set its own."""
_PROGRAMS = {
    "launcher.py": "launcher.py",
    "agent_start.py": "agent_start.py",
    "agent_packages.py": "python/sitecustomize.py",
}
"""Program of ``dgm.gateway`` → its path in the container."""


def write_agent(run: Run, agent: Agent | None, target: Path, identity: LocalIdentity) -> dict[str, int]:  # noqa: ARG001
    """Write an agent's package into a new folder; return the number of the agent's files.

    The source is written unchanged, as in an export of the source.

    Raises:
        UserError: the agent needs an image of its own, or the folder cannot be made.
        ArchiveCorrupt: the agent's commit is missing or damaged.
    """
    if agent is None:
        raise UserError("name the agent to export for Harbor")
    source = run.repository.source(agent.commit)
    try:
        contract = read_contract(source)
    except AgentFault as fault:
        raise UserError(f"agent {agent.id} of {run.name}: {fault}") from fault
    if contract.image:
        raise UserError(
            f"agent {agent.id} of {run.name} has an image of its own ({contract.image}), and Harbor runs agents in "
            "the images of its tasks"
        )
    module = re.sub(r"[^a-z0-9]+", "_", f"dgm {run.name} {agent.id}".lower())
    facts = _facts_of(run, agent, contract)
    with new_folder(target) as draft:
        package = draft / module
        inside = package / "inside"
        write_folder(source, inside / "agent")
        (inside / "python").mkdir()
        for program, name in _PROGRAMS.items():
            (inside / name).write_bytes(files("dgm.gateway").joinpath(program).read_bytes())
        here = files("dgm.exports")
        (inside / "start.py").write_bytes(here.joinpath("harbor_start.py").read_bytes())
        (package / "__init__.py").write_bytes(here.joinpath("harbor_agent.py").read_bytes())
        for folder in (package, inside):
            (folder / "facts.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        readme = Template(here.joinpath("harbor_readme.md").read_text(encoding="utf-8")).substitute(
            agent=agent.id,
            run=json.dumps(run.name),
            commit=agent.commit,
            folder=target.name,
            module=module,
            calls=facts["calls"],
            time_limit_s=facts["time_limit_s"],
        )
        (draft / "README.md").write_text(readme, encoding="utf-8")
    return {"files": len(source)}


def _facts_of(run: Run, agent: Agent, contract: Contract) -> dict[str, object]:
    limits = run.settings()["limits"]
    return {
        "name": f"dgm-{run.name}-{agent.id}",
        "version": agent.commit,
        "command": contract.command,
        "check": contract.check,
        "requires": contract.requires,
        "npm": contract.npm,
        "env": dict(contract.env),
        "hidden": contract.hidden,
        "actions": {} if contract.actions == AUTO_ACTIONS else {"actions": contract.actions},
        "calls": limits["calls"],
        "time_limit_s": limits.get("solve_s") or TIME_LIMIT_S,
    }
