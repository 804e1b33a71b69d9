"""What ``dgm report`` does with files, folders and wishes that do not fit."""

import json
import subprocess
import sys
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from dgm.archive.run import Run
from dgm.cli.report import report
from dgm.errors import UserError
from tests.support.runs.paid import small
from tests.unit.report.test_markup import Texts


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run that nobody writes."""
    made = small(tmp_path_factory.mktemp("runs") / "paid")
    made.run.close()
    return made.run.folder


def said(*words: object) -> str:
    done = CliRunner().invoke(report, [*map(str, words)], standalone_mode=False, catch_exceptions=False)
    return done.output


def test_the_page_replaces_an_older_one_and_says_where_it_is(folder, tmp_path) -> None:
    file = tmp_path / "report.html"
    file.write_text("older")
    lines = said(folder, "--html", file, "--figures", tmp_path / "figures").splitlines()
    assert lines[-2].startswith(f"report       {file} (")
    assert "tree.svg" in lines[-1]
    assert "paid" in Texts(file.read_text()).text
    assert ElementTree.fromstring((tmp_path / "figures" / "tree.svg").read_bytes()) is not None
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.starts_processes
def test_a_dash_is_the_page_alone_on_stdout(folder) -> None:
    command = [sys.executable, "-m", "dgm", "report", str(folder), "--html", "-"]
    done = subprocess.run(command, capture_output=True, check=True)
    assert done.stdout.startswith(b"<!DOCTYPE html>")
    assert done.stdout.endswith(b"</html>\n")
    assert done.stderr == b""


def test_the_document_has_the_old_keys_and_the_new_ones(folder) -> None:
    found = json.loads(said(folder, "--json"))
    assert {"run", "seed", "best", "chosen", "models", "spend", "operators", "holdout"} <= found.keys()
    assert {
        "answer",
        "headline",
        "note",
        "curve",
        "lineage",
        "matrix",
        "failures",
        "reproduce",
    } <= found.keys()
    assert found["answer"] == "not examined"
    assert found["holdout"] is None
    assert sum(one["usd"] for one in found["spend"]["purposes"].values()) == pytest.approx(
        found["spend"]["usd"]
    )
    assert [row["task"] for row in found["matrix"]["tasks"]] == ["ledger-a", "ledger-b"]
    assert found["curve"][-1]["evaluations"] == 2
    assert found["failures"]["stillborn"] == [{"operator": "self-edit", "stage": "check", "times": 1}]


@pytest.mark.starts_processes
def test_the_document_of_a_hostile_run_is_ascii(hostile_folder) -> None:
    text = said(hostile_folder, "--json")
    assert text.isascii()
    found = json.loads(text)
    assert found["answer"] == "better"
    assert len(found["lineage"]["steps"]) == len(found["lineage"]["agents"])


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--html", "{}"), "a folder; name a file in it"),
        (("--html", "{}/none/report.html"), "there is no folder"),
        (("--html", "/dev/null"), "not a file"),
        (("--html", "-", "--json"), "both write to stdout"),
        (("--figures", "{}/file"), "a file, not a folder"),
        (("--figures", "{}/none/figures"), "there is no folder"),
        (("--html", "{}/" + "x" * 300), "cannot be written .File name too long"),
        (("--figures", "{}/" + "x" * 300), "cannot be written .File name too long"),
        (("--html", "/proc/report.html"), "--html /proc/report.html: cannot be written"),
        (("--figures", "/proc"), "--figures /proc: cannot be written"),
        (("--no-control",), "opt-in now: leave --no-control out"),
        (("--holdout", "--no-control"), "opt-in now: leave --no-control out"),
        (("--workers", "3"), "--workers is about what --holdout performs"),
        (("--max-usd", "1"), "--max-usd is about what --holdout performs"),
        (("--holdout", "--control-attempts", "2"), "about what --control performs"),
        (("--holdout", "--yes"), "--yes is about what --control performs"),
    ],
)
def test_what_cannot_be_written_is_one_line(folder, tmp_path, words, complaint: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=complaint) as error:
        said(folder, *(word.format(tmp_path) for word in words))
    assert "\n" not in str(error.value)


@pytest.mark.starts_processes
def test_nothing_hostile_reaches_the_terminal(hostile_folder) -> None:
    text = said(hostile_folder)
    assert {character for character in text if not character.isprintable()} == {"\n"}
    assert sum(line.startswith("note: ") for line in text.splitlines()) == 1
    assert "vetting, mean: " in text


@pytest.mark.starts_processes
def test_an_examination_points_to_its_search(hostile_folder) -> None:
    with pytest.raises(UserError) as error:
        said(hostile_folder / "holdout")
    assert f"a holdout evaluation, not a search; dgm report {hostile_folder} shows its results" in str(
        error.value
    )


def test_a_run_without_an_agent_is_one_line(tmp_path) -> None:
    Run.create(tmp_path / "empty", {}).close()
    with pytest.raises(UserError, match="has no agent yet"):
        said(tmp_path / "empty", "--html", tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


@pytest.mark.starts_processes
def test_lost_traces_take_nothing_but_what_they_held(hostile_folder, tmp_path) -> None:
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(hostile_folder, copy, symlinks=True)
    shutil.rmtree(copy / "traces")
    text = said(copy, "--html", tmp_path / "report.html")
    assert "not there: traces of evaluations and of agents' making (0 of" in text
    assert "operators:" in text
