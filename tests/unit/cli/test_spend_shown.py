import json
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from dgm.archive.run import Run
from dgm.cli.report import report
from dgm.domain import AgentId
from dgm.evaluation.exam import FOLDER, enter_agent
from dgm.policies.best_belief import best_belief
from tests.support.runs.paid import PaidRun, small

pytestmark = pytest.mark.slow


@pytest.fixture
def paid(tmp_path: Path) -> Iterator[PaidRun]:
    made = small(tmp_path / "paid")
    yield made
    made.run.close()


def said(command: Any, *words: object) -> str:
    done = CliRunner().invoke(command, [str(word) for word in words], standalone_mode=False)
    if done.exception:
        raise done.exception
    return re.sub(r" +", " ", done.output)


def document(command: Any, *words: object) -> Any:
    return json.loads(said(command, *words, "--json"))


def examined(paid: PaidRun) -> PaidRun:
    """Seed and best on the holdout tasks, entered and graded by hand."""
    exam = PaidRun(paid.run.folder / FOLDER)
    tree = paid.run.tree
    ids: Sequence[AgentId] = [enter_agent(exam.run, paid.run, tree.agents[n]) for n in (0, best_belief(tree))]
    for agent in ids:
        exam.evaluated(agent, 0, calls=6)
        exam.evaluated(agent, 1, calls=2)
    return exam


@pytest.mark.starts_processes
def test_report_tells_what_a_resolved_task_costs(paid: PaidRun) -> None:
    paid.evaluated(2, 0, calls=0)
    paid.evaluated(2, 1, calls=0)
    examined(paid).run.close()
    text = said(report, paid.run.folder)
    assert "spent on the search: 20 model calls, 22,000 tokens, 0.2000 USD" in text
    assert re.search(r"seed agent 0 2/2 100% \S+ 0.0800 USD, 0.0400 for each resolved task", text)
    assert (
        "spent on the holdout tasks: 16 model calls" in text
        or "spent on the holdout tasks: 8 model calls" in text
    )
    assert "repeat it with other seeds" in text
    found = document(report, paid.run.folder)
    assert found["holdout"]["spend"]["seed"]["usd_per_resolved"] == 0.04
    assert found["spend"]["by"][0]["role"] == "improve"
    assert [agent["total"]["calls"] for agent in found["spend"]["agents"]] == [7, 6, 7]


@pytest.mark.starts_processes
@pytest.mark.sandbox
@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            [],
            r"limit of 0\.20 USD leaves nothing .* \(0\.2000 are spent .*; give it more with --max-usd",
        ),
        (
            ["--max-usd", "0.05"],
            r"they have cost 0\.0600 USD already, of 0\.05 .*; give it more with --max-usd",
        ),
    ],
)
def test_an_examination_that_nothing_is_left_for_is_reported_as_it_is(
    tmp_path: Path, words: list[str], message: str
) -> None:
    made = small(tmp_path / "spent", usd=0.20)
    exam = PaidRun(made.run.folder / FOLDER)
    exam.evaluated(0, 0, calls=6)
    before = exam.run.store.last
    exam.run.close()
    made.run.close()
    done = CliRunner().invoke(report, [str(made.run.folder), "--holdout", *words], standalone_mode=False)
    assert done.return_value == 3
    assert re.search(message, done.stderr)
    assert "on the search tasks" in done.stdout
    with Run.open(made.run.folder / FOLDER) as again:
        assert again.store.last == before
