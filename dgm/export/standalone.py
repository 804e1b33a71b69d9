"""One agent as a folder that runs by itself: its source, a program that starts it, and its origin."""

import json
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from dgm.analysis.summary import models_of
from dgm.archive.identity import identity_of
from dgm.archive.run import Run
from dgm.archive.snapshots import write_folder
from dgm.domain import Agent
from dgm.errors import AgentFault, UserError
from dgm.export.fresh import new_folder
from dgm.gateway.agent_start import OFFLINE
from dgm.meta.contract import Contract, read_contract
from dgm.show.safe import neutralise
from dgm.show.words import resolved_text

_NO_SERVER = ("offline", "recorded", "auto")
"""Models that no server has."""


def write_standalone(run: Run, agent: Agent, target: Path) -> int:
    """Make a new folder with the agent's source in ``agent/`` and a program to start it; return the number of files.

    Raises:
        UserError: the agent has no usable contract, or the folder cannot be made.
        ArchiveCorrupt: its source is damaged.
    """
    source = run.source(agent.id)
    try:
        contract = read_contract(source)
    except AgentFault as fault:
        raise UserError(f"agent {agent.id} cannot run by itself: {fault}") from fault
    model = models_of(run)["solve"]
    with new_folder(target) as draft:
        write_folder(source, draft / "agent")
        (draft / "run.py").write_bytes(_read_template("run.py"))
        (draft / "run.py").chmod(0o755)
        (draft / "README.md").write_text(_readme_text(run, agent, contract, model), encoding="utf-8")
        origin = _origin_record(run, agent, contract, model)
        (draft / "agent.json").write_text(json.dumps(origin, indent=2) + "\n", encoding="utf-8")
    return len(source)


def _read_template(name: str) -> bytes:
    return files("dgm.export").joinpath(name).read_bytes()


def _readme_text(run: Run, agent: Agent, contract: Contract, model: str) -> str:
    packages = ""
    if contract.requires:
        needed = " ".join(f"'{name}'" for name in contract.requires)
        packages = (
            f"It needs packages: `python3 -m pip install --target packages {needed}`, in this folder.\n\n"
        )
    if contract.npm:
        packages += "It needs packages of npm: `npm ci`, in the folder of the agent.\n\n"
    if contract.image:
        packages += f"In the search its own image was {inline_code(contract.image)}: what that has, it needs here.\n\n"
    if contract.env:
        names = ", ".join(inline_code(f"{name}={value}") for name, value in contract.env.items())
        packages += f"As in the search, it is started with its own variables: {names}.\n\n"
    said = {
        "agent": agent.id,
        "run": inline_code(run.name),
        "commit": agent.commit,
        "model": inline_code(model),
        "own": resolved_text(run.tree.own(agent.id)),
        "seed": resolved_text(run.tree.own(run.tree.agents[0].id)),
        "packages": packages,
        "named": "" if default_model_of(run) else " --model NAME",
    }
    return Template(_read_template("standalone.md").decode()).substitute(said)


def inline_code(text: str) -> str:
    """Return the text as code in Markdown, so that nothing in it is read as markup."""
    text = " ".join(neutralise(text).replace("`", "'").split())
    return f"`{text}`"


def default_model_of(run: Run) -> str:
    """Return the default model that ``run.py`` asks a server for; empty where the run's model is on no server."""
    model = models_of(run)["solve"]
    return "" if model in _NO_SERVER else model.partition("/")[2] or model


def _start_command(contract: Contract) -> list[str]:
    """Return the command that ``run.py`` starts, with the variables of the search that are no matter of its sandbox.

    Without them packages would report to their vendors what the agent does.
    """
    variables = {**OFFLINE, **contract.env}
    return ["env", *(f"{name}={value}" for name, value in variables.items()), *contract.command]


def _origin_record(run: Run, agent: Agent, contract: Contract, model: str) -> dict[str, Any]:
    own, seed = run.tree.own(agent.id), run.tree.own(run.tree.agents[0].id)
    return {
        "command": _start_command(contract),
        "requires": contract.requires,
        "model": default_model_of(run),
        **identity_of(run).beside_seed_agent(),
        "agent": agent.id,
        "commit": agent.commit,
        "parents": agent.parents,
        "operator": agent.operator,
        "rationale": agent.rationale,
        "searched_with": model,
        "dgm": run.config["versions"].get("dgm", ""),
        "own": {"resolved": own.resolved, "unresolved": own.unresolved},
        "seed": {"resolved": seed.resolved, "unresolved": seed.unresolved},
    }
