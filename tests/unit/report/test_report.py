"""``dgm report`` and ``dgm.report``: files, wrong arguments, hostile runs, and the control's price."""

import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from xml.etree import ElementTree

import pytest

import dgm
from dgm.api.holdout import describe_cost
from dgm.archive.run import Run
from dgm.cli.app import run_function
from dgm.cli.report import report
from dgm.errors import UserError
from dgm.evaluation.control import FOLDER, ControlCost
from dgm.evaluation.schedule import enter_agent
from dgm.policies.hgm import best_belief
from dgm.render.report_text import operator_remarks
from dgm.views.comparison import ComparisonView
from dgm.views.report import OperatorView, ReportView
from tests.support.runs.made import make_run
from tests.support.runs.paid import PaidRun, small
from tests.unit.report.conftest import Page


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run that nobody writes."""
    made = small(tmp_path_factory.mktemp("runs") / "paid")
    made.run.close()
    return made.run.folder


def test_a_cell_of_the_operators_table_ends_without_a_separator():
    facts = {"stillborn": {"check": 2, "size": 1}, "aims": {}, "waiting": 0, "unfinished": 0}
    line = OperatorView.model_construct(**facts)
    assert operator_remarks(line) == "stillborn: check 2, size 1"
    assert operator_remarks(line.model_copy(update={"unfinished": 1})).endswith("size 1; 1 unfinished")


def call(*words: object) -> int:
    return run_function(report, [*map(str, words)], "dgm report")


@pytest.mark.starts_processes
def test_the_page_replaces_an_older_one_and_its_place_is_printed(folder, tmp_path, capsys) -> None:
    file = tmp_path / "report.html"
    file.write_text("older")
    assert call(folder, "--html", file, "--figures", tmp_path / "figures") == 0
    lines = "".join(capsys.readouterr().out.split("\n"))
    assert "report.html" in lines and "tree.svg" in lines
    assert "paid" in Page(file.read_bytes()).text
    assert ElementTree.fromstring((tmp_path / "figures" / "tree.svg").read_bytes()) is not None
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.starts_processes
def test_the_document_is_the_view(folder, capsys) -> None:
    assert call(folder, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    view = dgm.report(folder)
    assert isinstance(view, ReportView)
    assert document == view.model_dump(mode="json")
    assert (document["seed"], document["seed_agent"]["agent"], document["answer"]) == (0, 0, "not examined")
    assert document["holdout"] is None
    spend = document["spend"]
    assert sum(part["usd"] for part in spend["purposes"].values()) == pytest.approx(spend["usd"])
    assert [row["task"] for row in document["matrix"]["tasks"]] == ["ledger-a", "ledger-b"]
    assert document["curve"][-1]["evaluations"] == 2
    assert document["failures"]["stillborn"] == [{"operator": "self-edit", "stage": "check", "times": 1}]


@pytest.mark.starts_processes
def test_an_open_run_reports_on_itself(folder) -> None:
    with dgm.open(folder) as run:
        assert run.report().model_copy(update={"state": ""}) == dgm.report(folder).model_copy(
            update={"state": ""}
        )


@pytest.mark.starts_processes
def test_nothing_hostile_reaches_the_terminal(hostile_folder, capsys) -> None:
    assert call(hostile_folder, "--json") == 0
    text = capsys.readouterr().out
    assert text.isascii()
    document = json.loads(text)
    assert document["answer"] == "better"
    assert len(document["lineage"]["steps"]) == len(document["lineage"]["agents"])
    assert call(hostile_folder) == 0
    text = capsys.readouterr().out
    assert {character for character in text if not character.isprintable()} == {"\n"}
    assert sum(line.startswith("note ") for line in text.splitlines()) == 1


@pytest.mark.starts_processes
@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--html", "{}"), "a folder; name a file in it"),
        (("--html", "{}/none/report.html"), "there is no folder"),
        (("--html", "/dev/null"), "is no file"),
        (("--figures", "{}/file"), "is no folder"),
        (("--figures", "{}/none/figures"), "there is no folder"),
        (("--html", "{}/" + "x" * 300), "cannot be written .File name too long"),
        (("--html", "/proc/report.html"), "/proc/report.html cannot be written"),
        (("--figures", "/proc"), "/proc cannot be written"),
        (("--workers", "3"), "has an effect only with holdout"),
        (("--max-usd", "1"), "has an effect only with holdout"),
        (("--group-by", "policy"), "groups several runs, and this is one"),
        (("{run}",), "is named twice"),
        (("{run}/../paid",), "is named twice"),
        (("{other}", "--html", "{}/x.html"), "the page is about one run"),
        (("{other}", "--holdout"), "one run at a time"),
    ],
)
def test_what_cannot_be_done_is_one_line(folder, tmp_path, words, complaint: str) -> None:
    (tmp_path / "file").write_text("")
    other = make_run(tmp_path / "other", verdicts=["+"])
    with pytest.raises(UserError, match=complaint) as error:
        call(folder, *(word.format(tmp_path, run=folder, other=other) for word in words))
    assert "\n" not in error.value.in_shell()


def test_without_a_run_there_is_nothing_to_report() -> None:
    with pytest.raises(UserError, match="at least one run"):
        call()


@pytest.mark.starts_processes
def test_holdout_evaluations_point_to_their_search(hostile_folder) -> None:
    with pytest.raises(UserError, match="holdout evaluations of a search; name the search, "):
        call(hostile_folder / "holdout")


def test_a_run_without_an_agent_is_one_line(tmp_path) -> None:
    Run.create(tmp_path / "empty", {}).close()
    with pytest.raises(UserError, match="has no agent yet"):
        call(tmp_path / "empty", "--html", tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


@pytest.mark.starts_processes
def test_lost_traces_take_nothing_but_what_they_held(hostile_folder, tmp_path, capsys) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(hostile_folder, copy, symlinks=True)
    with closing(sqlite3.connect(copy / "run.db")) as log, log:
        log.execute("DELETE FROM blobs")
    assert call(copy, "--html", tmp_path / "report.html") == 0
    text = capsys.readouterr().out
    assert "missing: traces of evaluations and expansions (0 of" in text
    assert "operators" in text


@pytest.mark.starts_processes
def test_several_runs_are_compared(folder, tmp_path, capsys) -> None:
    other = make_run(tmp_path / "other", verdicts=["+-"])
    third = make_run(tmp_path / "third", verdicts=["++"])
    assert call(other, third, "--figures", tmp_path / "figures") == 0
    assert "2 runs on starter" in capsys.readouterr().out
    assert (tmp_path / "figures" / "curves.svg").read_text().startswith("<svg")
    assert len((tmp_path / "figures" / "curves.csv").read_text().splitlines()) > 2
    assert isinstance(dgm.report(other, third), ComparisonView)


def test_the_price_of_a_control_is_named() -> None:
    price = describe_cost(ControlCost(attempts=3, usd=0.6, tokens=66_000, seconds=240), workers=2)
    assert price.startswith("the control gives the seed up to 3 further attempts: at most about 0.60 USD, ")
    assert price.endswith(" 66k tokens and 2 min with 2 workers")


@pytest.mark.starts_processes
def test_a_model_that_repeats_itself_has_no_control(tmp_path) -> None:
    run = make_run(tmp_path / "offline", verdicts=["+-"])
    with pytest.raises(UserError, match="equal answers to equal requests"):
        dgm.report(run, control=True)


def examined(paid: PaidRun) -> PaidRun:
    """Seed and best on the holdout tasks, entered and graded by hand."""
    exam, tree = PaidRun(paid.run.folder / FOLDER), paid.run.tree
    for agent in [enter_agent(exam.run, paid.run, tree.agents[n]) for n in (0, best_belief(tree))]:
        exam.evaluated(agent, 0, calls=6)
        exam.evaluated(agent, 1, calls=2)
    return exam


@pytest.mark.starts_processes
def test_spend_is_that_of_the_search_and_of_the_holdout_evaluations(paid) -> None:
    paid.evaluated(2, 0, calls=0)
    paid.evaluated(2, 1, calls=0)
    examined(paid).run.close()
    view = ReportView.load(paid.run)
    assert (view.spend.calls, view.spend.tokens, view.spend.usd) == (20, 22_000, pytest.approx(0.2))
    assert view.spend.by[0].role == "improve"
    assert (view.holdout.seed_agent.resolved, view.holdout.spend.seed_agent.usd_per_resolved) == (
        2,
        pytest.approx(0.04),
    )
    assert view.holdout.spend.calls in (8, 16)
    assert "repeat it with other seeds" in view.note


@pytest.mark.starts_processes
@pytest.mark.sandbox
@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed")
@pytest.mark.parametrize(
    ("words", "limit"),
    [([], "the rest of the run's limit, 0.00 USD,"), (["--max-usd", "0.05"], "their limit, 0.05 USD,")],
)
def test_holdout_evaluations_without_money_are_reported_as_they_are(
    tmp_path, capsys, words, limit: str
) -> None:
    made = small(tmp_path / "spent", usd=0.20)
    exam = PaidRun(made.run.folder / FOLDER)
    exam.evaluated(0, 0, calls=6)
    before = exam.run.store.last
    exam.run.close()
    made.run.close()
    assert call(made.run.folder, "--holdout", *words) == 3
    printed = capsys.readouterr()
    assert f"{limit} is spent (they have cost 0.06 USD); give it more with --max-usd" in printed.err
    assert "search tasks" in printed.out
    with Run.open(made.run.folder / FOLDER) as again:
        assert again.store.last == before


@pytest.mark.starts_processes
def test_only_a_page_loads_its_templates(folder) -> None:
    code = (
        "import sys\nfrom dgm.cli.main import main\ntry:\n    main()\nexcept SystemExit as end:\n"
        "    assert not end.code\nprint('\\n' + ' '.join(sys.modules))"
    )
    command = [sys.executable, "-c", code, "report", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert not {"jinja2", "docker", "openai", "dgm.assemble"} & {*loaded}
