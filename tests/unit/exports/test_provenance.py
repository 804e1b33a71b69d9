"""The documents beside an exported agent say how it came about and what it needs, and nothing of this machine."""

import hashlib
import json

import pytest

import dgm
from dgm.archive.snapshots import tree_id
from dgm.config import Settings
from dgm.domain import Entry, Evaluate, TaskId, Usage, Verdict
from dgm.errors import UserError
from dgm.meta.seeds import read_seed
from tests.support.runs.builder import RunBuilder, create_run, make_config
from tests.support.runs.probed import make_probes

pytestmark = pytest.mark.starts_processes

CONTRACT = """[agent]
command = ["true"]
check = ["true"]
requires = ["openai>=3", "requests==2.32.0"]
"""
LOCK = {
    "packages": {
        "": {"name": "mine"},
        "node_modules/@a/b": {"version": "1.2.3"},
        "node_modules/c": {"version": "4.0.0"},
    }
}
SUITE = "1-" + "5" * 64


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """The folder of a run of two agents on a suite below the home folder; the second agent passed a probe."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home-of-mia"))
    settings = Settings(model="offline", benchmark=str(tmp_path / "home-of-mia" / "suites" / "words"))
    folder = tmp_path / "run"
    with create_run(folder, make_config(settings, SUITE), settings.budget.budget(), [TaskId("a")]) as run:
        builder = RunBuilder(run)
        builder.bear({"agent.toml": Entry(CONTRACT.encode())})
        lock = Entry(json.dumps(LOCK).encode())
        child = builder.bear({"agent.toml": Entry(CONTRACT.encode()), "package-lock.json": lock}, [0])
        action = builder.begin(Evaluate(child, TaskId("a")))
        builder.record_call(action, 1, "offline", usage=Usage(1, 100, 10, 0.25))
        builder.record_verdict(action, child, TaskId("a"), Verdict.RESOLVED)
    make_probes(folder, {1: {"p": "+"}})
    return folder


def test_the_statement_names_what_was_evolved_from_what(archive, tmp_path):
    exported = dgm.export(archive, 1, tmp_path / "mine")
    assert exported.documents == (str(tmp_path / "mine.provenance.json"), str(tmp_path / "mine.bom.json"))
    text = (tmp_path / "mine.provenance.json").read_text()
    statement = json.loads(text)
    assert (statement["_type"], statement["predicateType"]) == (
        "https://in-toto.io/Statement/v1",
        "https://slsa.dev/provenance/v1",
    )
    source = read_seed(str(tmp_path / "mine"))
    (subject,) = statement["subject"]
    assert subject["digest"]["gitTree"] == tree_id(source)
    definition, details = (statement["predicate"][name] for name in ("buildDefinition", "runDetails"))
    first, second = definition["internalParameters"]["lineage"]
    assert (second["operator"], second["gitCommit"]) == ("self-edit", subject["digest"]["gitCommit"])
    assert first["gitCommit"] == definition["resolvedDependencies"][0]["digest"]["gitCommit"]
    assert definition["externalParameters"]["models"]["solve"] == "offline"
    assert definition["resolvedDependencies"][-1]["digest"] == {"sha256": "5" * 64}
    assert details["dgm_cost"]["lineage"] == {"usd": 0.25, "tokens": 110, "modelCalls": 1}
    assert details["dgm_probes"] == {"state": "passed", "probes": {"p": "safe"}}
    assert details["dgm_findings"] == 0
    assert details["dgm_promotion"] == {"certified": False, "rounds": []}
    assert str(tmp_path) not in text


def test_a_patch_is_a_subject_by_its_bytes(archive, tmp_path):
    dgm.export(archive, 1, tmp_path / "mine.patch")
    statement = json.loads((tmp_path / "mine.patch.provenance.json").read_text())
    digest = hashlib.sha256((tmp_path / "mine.patch").read_bytes()).hexdigest()
    assert statement["subject"][0] == {"name": "mine.patch", "digest": {"sha256": digest}}
    assert statement["subject"][1]["name"] == "agent 1"


def test_the_bill_has_the_packages_that_the_agent_names(archive, tmp_path):
    dgm.export(archive, 1, tmp_path / "mine")
    bom = json.loads((tmp_path / "mine.bom.json").read_text())
    assert (bom["bomFormat"], bom["specVersion"], bom["version"]) == ("CycloneDX", "1.6", 1)
    assert [component["purl"] for component in bom["components"]] == [
        "pkg:pypi/openai",
        "pkg:pypi/requests@2.32.0",
        "pkg:npm/%40a/b@1.2.3",
        "pkg:npm/c@4.0.0",
    ]
    assert bom["components"][0]["properties"] == [{"name": "dgm:requirement", "value": "openai>=3"}]
    assert all(component["type"] == "library" and component["name"] for component in bom["components"])
    assert bom["metadata"]["component"]["name"] == "agent 1 of run"


def test_nothing_is_written_where_a_document_stands_already(archive, tmp_path):
    (tmp_path / "mine.bom.json").write_text("{}")
    with pytest.raises(UserError, match=r"mine\.bom\.json: already exists"):
        dgm.export(archive, 1, tmp_path / "mine")
    assert not (tmp_path / "mine").exists()
    assert not (tmp_path / "mine.provenance.json").exists()
