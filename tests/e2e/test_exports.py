"""The shipped example exported: what networkx, pandas and git read is what the run holds."""

import subprocess
from pathlib import Path

import networkx
import pandas
import pytest

from dgm.analysis.best import best_of
from dgm.analysis.lineage import Lineage
from dgm.archive.run import Run
from dgm.archive.snapshots import from_folder
from dgm.domain import SEED
from dgm.meta.contract import read_contract

pytestmark = pytest.mark.sampled

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def example(dgm):
    """The folder of the unpacked example."""
    folder = dgm.archive / "exported"
    dgm("export", ROOT / "archive" / "example" / "example.dgm", folder)
    return folder


def git(folder, *words):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    return subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True).stdout


def test_the_example_opens_in_networkx_and_pandas(dgm, example, tmp_path) -> None:
    with Run.open(example) as run:
        agents, evaluations, spend = len(run.tree.agents), run.tree.evaluations, run.tree.spend
    assert dgm.json("export", example, tmp_path / "t.graphml")["counts"] == {"agents": agents}
    assert len(networkx.read_graphml(tmp_path / "t.graphml", node_type=int)) == agents
    assert dgm.json("export", example, tmp_path / "e.csv")["counts"] == {"rows": evaluations}
    assert (pandas.read_csv(tmp_path / "e.csv").verdict != "invalid").sum() == evaluations
    assert dgm.json("export", example, tmp_path / "spend.parquet")["counts"] == {"rows": spend.calls}
    assert pandas.read_parquet(tmp_path / "spend.parquet").output_tokens.sum() == spend.output_tokens


def test_the_patch_of_the_example_is_its_steps_and_holds_no_protected_file(dgm, example, tmp_path) -> None:
    with Run.open(example) as run:
        best, contract = best_of(run), read_contract(run.source(SEED))
        dgm("export", example, "seed", tmp_path / "seed")
        written = dgm.json("export", example, tmp_path / "best.patch")
        git(tmp_path / "seed", "am", tmp_path / "best.patch")
        assert from_folder(tmp_path / "seed") == run.source(best)
        assert written["counts"] == {"commits": len(Lineage(run.tree, best).agents) - 1}
    changed = git(tmp_path / "seed", "diff", "--name-only", "agents/0", "HEAD").decode().split()
    assert changed
    assert all(map(contract.may_change, changed))
