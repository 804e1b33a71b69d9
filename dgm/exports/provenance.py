"""Two documents beside an exported agent: how it came about, and the packages that it needs.

The first is an in-toto Statement v1 with a predicate in the form of SLSA Provenance v1
(https://slsa.dev/spec/v1.0/provenance; fields of dgm's own begin with ``dgm_``), the second a CycloneDX 1.6 bill of
materials. They lie beside the agent and not in it, where they would change its identity. Keys, paths and names of this
machine are replaced as in a packed run.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from dgm.analysis.accounts import Accounts
from dgm.analysis.agents import trace_lineage
from dgm.archive.run import Run, identity_of
from dgm.benchmarks.grader_version import data_of
from dgm.domain import SEED, Agent, Snapshot, Usage
from dgm.errors import AgentFault
from dgm.exports.files import new_file
from dgm.exports.pack import make_scrubber
from dgm.exports.scrub import LocalIdentity
from dgm.meta.contract import read_contract
from dgm.meta.seeds import load_origin, name_of_root
from dgm.models.scripted import SCRIPTED
from dgm.sandboxes.packages import read_lock
from dgm.views.probes import AgentProbesView
from dgm.views.run import models_of
from dgm.views.values import TallyView

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://slsa.dev/provenance/v1"
BUILD, BUILDER = "urn:dgm:evolution:1", "urn:dgm"
PROVENANCE, BOM = ".provenance.json", ".bom.json"
"""Endings of the two files, behind the name of the export."""


@contextmanager
def new_documents(run: Run, agent: Agent, target: Path) -> Iterator[tuple[Path, Path]]:
    """Yield the paths of both documents; write them when the export itself is written.

    Raises:
        UserError: one of them is there already, or cannot be written.
    """
    paths = target.with_name(target.name + PROVENANCE), target.with_name(target.name + BOM)
    with new_file(paths[0]) as provenance, new_file(paths[1]) as bom:
        yield paths
        scrubber = make_scrubber(run.folder, LocalIdentity.here())
        for draft, document in (
            (provenance, describe_provenance(run, agent, target)),
            (bom, describe_packages(run, agent)),
        ):
            text = json.dumps(document, indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace")
            draft.write_bytes(scrubber.clean(text) + b"\n")


def describe_provenance(run: Run, agent: Agent, target: Path) -> dict[str, Any]:
    """Return the statement on an agent that was exported to a folder or a file.

    Raises:
        ArchiveCorrupt: the run is damaged.
    """
    lineage = trace_lineage(run.tree, agent.id)
    subject = [{"name": f"agent {agent.id}", "digest": _digest(run, agent)}]
    if target.is_file():
        digest = hashlib.sha256(target.read_bytes()).hexdigest()
        subject.insert(0, {"name": target.name, "digest": {"sha256": digest}})
    identity, settings = identity_of(run), run.settings()
    models = models_of(run) if "model" in settings else {}
    began, ended = run.store.query("SELECT min(at), max(at) FROM events")[0]
    accounts, probes, promotions = Accounts(run), AgentProbesView.load(run, agent), run.tree.promotions
    parameters = {
        "suite": settings.get("benchmark", ""),
        "models": {role: _plain_model(model) for role, model in models.items()},
        "policy": identity.policy,
        "operators": sorted({member.operator for member in lineage[1:]}),
        "randomSeed": identity.seed,
        "budget": settings.get("budget", {}),
    }
    agents = run.tree.agents
    members = [
        {
            "agent": member.id,
            "operator": member.operator,
            "gitCommit": member.commit,
            "parents": [agents[parent].commit for parent in member.parents],
        }
        for member in lineage
    ]
    details = {
        "builder": {"id": BUILDER, "version": dict(run.config.get("versions", {}))},
        "metadata": {
            "invocationId": str(run.config.get("id", "")),
            "startedOn": _format_time(began),
            "finishedOn": _format_time(ended),
        },
        "dgm_run": identity.run,
        "dgm_evaluations": TallyView.of(run.tree.own(agent.id)).model_dump(mode="json"),
        "dgm_cost": {
            "run": _cost(run.tree.spend),
            "lineage": _cost(sum((accounts.of(member.id).total for member in lineage), Usage())),
        },
        "dgm_probes": {"state": probes.state, "probes": {row.probe: row.outcome for row in probes.probes}},
        "dgm_findings": int(run.tree.own_findings[agent.id]),
        "dgm_promotion": {
            "certified": promotions.certified == agent.id,
            "rounds": [number for number, name in enumerate(promotions.accepted, 1) if name == agent.id],
        },
    }
    return {
        "_type": STATEMENT,
        "subject": subject,
        "predicateType": PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD,
                "externalParameters": parameters,
                "internalParameters": {"lineage": members},
                "resolvedDependencies": list(_list_dependencies(run, lineage[0])),
            },
            "runDetails": details,
        },
    }


def _digest(run: Run, agent: Agent) -> Mapping[str, str]:
    return {"gitCommit": agent.commit, "gitTree": run.repository.tree_of(agent.commit)}


def _list_dependencies(run: Run, seed: Agent) -> Iterator[Mapping[str, Any]]:
    yield {"name": f"seed agent {name_of_root(run.config, seed.id)}".strip(), "digest": _digest(run, seed)}
    if seed.id == SEED and (origin := load_origin(run.config, str(run.folder / "run.json"))):
        yield {"name": "commit that the seed agent came from", "digest": {"gitCommit": origin.commit}}
    for version in run.benchmarks() if "versions" in run.config else ():
        digest = {"sha256": data_of(version)} if data_of(version) != version else {}
        name = f"suite {run.settings().get('benchmark', '')}".strip()
        yield {"name": name, "digest": digest, "annotations": {"version": version}}


def _cost(usage: Usage) -> Mapping[str, float]:
    return {"usd": usage.usd, "tokens": usage.tokens, "modelCalls": usage.calls}


def _plain_model(name: str) -> str:
    return SCRIPTED + Path(name.removeprefix(SCRIPTED)).name if name.startswith(SCRIPTED) else name


def _format_time(at: float | None) -> str:
    return datetime.fromtimestamp(at or 0.0, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def describe_packages(run: Run, agent: Agent) -> dict[str, Any]:
    """Return the bill of the packages that an agent requires, with versions as far as its files give them.

    Raises:
        ArchiveCorrupt: the run is damaged.
    """
    source = run.repository.source(agent.commit)
    name = f"agent {agent.id} of {identity_of(run).run}"
    locked = sorted({(package, str(entry.get("version", ""))) for package, entry in read_lock(source)})
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": name, "version": agent.commit}},
        "components": [
            *_list_python_packages(source),
            *(_component("npm", package, version) for package, version in locked),
        ],
    }


def _list_python_packages(source: Snapshot) -> Iterator[dict[str, Any]]:
    try:
        requires = read_contract(source).requires
    except AgentFault:
        return
    for text in sorted(set(requires)):
        requirement = Requirement(text)
        exact = [pin.version for pin in requirement.specifier if pin.operator in ("==", "===")]
        version = next((version for version in exact if "*" not in version), "")
        properties = [{"name": "dgm:requirement", "value": text}]
        yield {**_component("pypi", requirement.name, version), "properties": properties}


def _component(kind: str, name: str, version: str) -> dict[str, Any]:
    purl = f"pkg:{kind}/{name.replace('@', '%40')}" + (f"@{version}" if version else "")
    return {"type": "library", "name": name, "purl": purl, **({"version": version} if version else {})}
