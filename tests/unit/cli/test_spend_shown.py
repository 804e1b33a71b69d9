import json
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from dgm.cli.status import status

from dgm.archive.events import RunPaused, RunStopped
from dgm.archive.history import state
from dgm.archive.run import Run
from dgm.cli.look import show
from dgm.cli.report import report
from dgm.domain import ActionId, AgentId
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


def test_status_says_what_was_spent_of_how_much_and_on_what(paid: PaidRun) -> None:
    text = said(status, paid.run.folder)
    assert (
        "spend 20 model calls, 22,000 tokens, 0.2000 of 0.50 USD, 0.3000 left (25% of the input was cached)"
        in text
    )
    assert " improve anthropic/dear 13 model calls, 14,300 tokens, 0.1300 USD" in text
    assert " solve openai/cheap 7 model calls, 7,700 tokens, 0.0700 USD" in text
    assert "with openai/cheap (solve, diagnose), anthropic/dear (improve)" in text
    assert "offline" not in text
    assert "refused" not in text


def test_status_for_programs(paid: PaidRun) -> None:
    paid.refused(ActionId(1))
    found = document(status, paid.run.folder)
    assert found["spend"]["usd"] == 0.2
    assert found["spend"]["left_usd"] == 0.3
    assert found["spend"]["cached_share"] == 0.25
    assert [(each["role"], each["model"], each["calls"]) for each in found["spend"]["by"]] == [
        ("improve", "anthropic/dear", 13),
        ("solve", "openai/cheap", 7),
    ]
    assert found["models"] == {
        "solve": "openai/cheap",
        "improve": "anthropic/dear",
        "diagnose": "openai/cheap",
    }
    assert found["refusals"] == 1


def test_a_run_without_a_limit_has_nothing_left_to_tell(tmp_path: Path) -> None:
    made = small(tmp_path / "free", usd=None)
    made.run.close()
    assert "22,000 tokens, 0.2000 USD" in said(status, made.run.folder)
    assert document(status, made.run.folder)["spend"]["left_usd"] is None


def test_a_paused_run_says_why(paid: PaidRun) -> None:
    assert state(paid.run) == "running"
    paid.run.append(RunPaused("openai does not answer"))
    assert state(paid.run) == "paused"
    assert "paused openai does not answer" in said(status, paid.run.folder)
    paid.run.append(RunStopped("stopped"))
    assert state(paid.run) == "stopped"


def test_refusals_are_counted_and_can_be_looked_up(paid: PaidRun) -> None:
    paid.refused(ActionId(1))
    paid.refused(ActionId(1))
    assert "refused 2 requests of agents" in said(status, paid.run.folder)
    text = said(show, paid.run.folder, "0")
    counted = "2 times model_not_found: no model 'gpt-x' here; ask for 'default'"
    assert f"refused or left out by the gateway:\n {counted}" in text


def test_show_tells_what_an_agent_took(paid: PaidRun) -> None:
    text = said(show, paid.run.folder, "1")
    assert " making it 2 model calls, 2,200 tokens, 0.0200 USD" in text
    assert " evaluating it 4 model calls, 4,400 tokens, 0.0400 USD" in text
    assert " stillborn children 0 model calls, 0 tokens, 0.0000 USD" in text
    assert " its clade in all 13 model calls, 14,300 tokens, 0.1300 USD" in text
    assert "unresolved 0.0 s 3,300 tokens 0.0300 USD ledger-a: as graded" in text
    fruitless = text.partition("paid for without a result (yet):\n")[2].splitlines()
    assert fruitless == [" action 5 evaluating 1 model call, 1,100 tokens, 0.0100 USD"]
    assert " action 3 stillborn 4 model calls" in said(show, paid.run.folder, "0")


def test_show_for_programs_has_every_action(paid: PaidRun) -> None:
    found = document(show, paid.run.folder, "1")
    assert found["cost"]["usd"] == 0.02
    spend = found["spend"]
    assert [spend[part]["calls"] for part in ("making", "evaluating", "stillborn", "total", "clade")] == [
        2,
        4,
        0,
        6,
        13,
    ]
    assert [(line["action"], line["purpose"], line["by"][0]["calls"]) for line in spend["actions"]] == [
        (2, "making", 2),
        (4, "evaluating", 3),
        (5, "evaluating", 1),
    ]
    assert found["evaluations"][0]["cost"]["by"][0]["model"] == "openai/cheap"


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
