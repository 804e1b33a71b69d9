"""What is exported where: the ending decides, else the name of the target, else a word of the user."""

import json

import pytest

import dgm
from dgm.analysis.agents import best_of
from dgm.api.exporting import Content, choose_content
from dgm.archive.run import Run
from dgm.archive.snapshots import from_folder
from dgm.cli.main import main
from dgm.errors import ArchiveCorrupt, UserError
from tests.support.runs.packable import begin, child, evaluate

pytestmark = pytest.mark.starts_processes


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A working folder and a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


@pytest.fixture
def small(tmp_path):
    """The folder of a run with two agents and an evaluation, all of whose traces exist."""
    with begin(tmp_path / "runs" / "small") as run:
        child(run)
        evaluate(run, "nothing of note")
    return tmp_path / "runs" / "small"


def run_program(capsys, *words):
    """Return exit code, standard output and standard error of the program."""
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    captured = capsys.readouterr()
    return ended.value.code or 0, captured.out, captured.err


@pytest.mark.parametrize(
    ("target", "what", "content"),
    [
        ("a.dgm", None, Content.RUN),
        ("a.csv", None, Content.EVALUATIONS),
        ("A.CSV", None, Content.EVALUATIONS),
        ("spend.parquet", None, Content.SPEND),
        ("x/spend.csv", None, Content.SPEND),
        ("a.csv", "spend", Content.SPEND),
        ("spend.csv", "evaluations", Content.EVALUATIONS),
        ("a.graphml", None, Content.GENEALOGY),
        ("a.jsonl", None, Content.PREDICTIONS),
        ("a.json", None, Content.PREDICTIONS),
        ("a.patch", None, Content.PATCH),
        ("best", None, Content.SOURCE),
        ("best.2/", None, Content.SOURCE),
        ("trajectories", None, Content.TRAJECTORIES),
        ("t/", "trajectories", Content.TRAJECTORIES),
    ],
)
def test_the_target_says_what_is_written(target, what, content) -> None:
    assert choose_content(target, what) is content


@pytest.mark.parametrize(
    ("target", "what", "problem"),
    [
        ("a.xls", None, "unknown ending '.xls'; known: .dgm, .csv"),
        ("a.csv", "source", "a .csv file holds evaluations or spend, not 'source'"),
        ("a/", "spend", "a folder holds source or trajectories or run, not 'spend'"),
    ],
)
def test_what_does_not_fit_is_refused(target, what, problem) -> None:
    with pytest.raises(UserError, match=problem):
        choose_content(target, what)


def test_an_unknown_address_is_refused(paid_folder) -> None:
    with pytest.raises(UserError, match="unknown address 'mlfow:'"):
        dgm.export(paid_folder, "mlfow:")


def test_the_best_agent_is_exported_unless_another_is_named(paid_folder, place) -> None:
    with Run.open(paid_folder) as run:
        best, sources = best_of(run), [run.source(agent.id) for agent in run.tree.agents]
    assert dgm.export(paid_folder, "a").agent == best
    assert from_folder(place / "a") == sources[best]
    assert dgm.export(paid_folder, 1, place / "b").counts["files"] == len(sources[1])
    with dgm.open(paid_folder) as run:
        assert run.agents[0].export("c/").counts == {"files": len(sources[0]), "steps": 1}
        assert run.export("spend.csv").counts == {"rows": run.spent.calls}


def test_a_packed_run_is_unpacked_or_exported(small, place) -> None:
    packed = dgm.export(small, "small.dgm")
    assert (packed.what, packed.counts["agents"], packed.run) == ("run", 2, "small")
    assert packed.counts["bytes"] == (place / "small.dgm").stat().st_size
    with dgm.open(small) as run:
        checked = run.verify()
    unpacked = dgm.export("small.dgm", "again/")
    assert (unpacked.target, unpacked.addresses, unpacked.counts["agents"]) == ("again", (), 2)
    with dgm.open("again") as again:
        assert again.verify() == checked
    with pytest.raises(UserError, match="already exists"):
        dgm.export("small.dgm", "again/")
    assert dgm.export("small.dgm", "1", "one/").what == "source"
    assert dgm.export("small.dgm", "e.csv").counts["rows"] == 1
    with pytest.raises(UserError, match="is not packed"):
        dgm.export("again", "copy/", what="run")


def test_an_unpacked_run_says_where_keys_would_go(small, place) -> None:
    dgm.export(small, "theirs.dgm")
    dgm.export("theirs.dgm", "theirs/")
    frozen = json.loads((place / "theirs" / "run.json").read_text())
    frozen["config"]["settings"]["providers"] = {"openai": {"base_url": "https://models.example/v1"}}
    (place / "theirs" / "run.json").write_text(json.dumps(frozen))
    dgm.export("theirs", "changed.dgm")
    assert dgm.export("changed.dgm", "mine/").addresses == ("https://models.example/v1",)


def test_a_packed_run_is_verified_when_it_is_opened(small, place) -> None:
    dgm.export(small, "a.dgm")
    data = (place / "a.dgm").read_bytes()
    (place / "bad.dgm").write_bytes(data[: len(data) // 2] + bytes(4) + data[len(data) // 2 + 4 :])
    with pytest.raises(ArchiveCorrupt, match=r"bad\.dgm: "):
        dgm.open("bad.dgm")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ((), "name the new file or folder"),
        (("best", "--patch", "p"), "is now 'dgm export RUN AGENT FILE.patch'"),
        (("--tree", "t.dot"), "is now 'dgm export RUN FILE.graphml'"),
        (("best",), None),
        (("99", "folder"), "no agent '99'"),
        (("best", "t.graphml"), "leave out 'best'"),
        (("seed", "p.patch"), "nothing to propose"),
        (("t.xls",), "unknown ending"),
        (("p.csv", "--evaluation", "x"), "--evaluation"),
        (("p.jsonl", "--evaluation", "none"), "no evaluation 'none'"),
        (("/proc/r/",), "cannot be written"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(paid_folder, place, capsys, words, problem) -> None:
    code, _, error = run_program(capsys, "export", paid_folder, *words)
    if problem is None:
        assert code == 0
        return
    assert (code, error.count("\n")) == (2, 1)
    assert problem in error
    assert not list(place.iterdir())


def test_the_command_prints_the_view(paid_folder, capsys) -> None:
    code, output, _ = run_program(capsys, "export", paid_folder, "best", "b/", "--json")
    assert code == 0
    record = json.loads(output)
    assert (record["what"], record["target"], record["run"]) == ("source", "b", "paid")
    code, output, _ = run_program(capsys, "export", paid_folder, "evaluations.csv")
    assert output == "evaluations of paid: 3 rows in evaluations.csv\n"


def test_nothing_hostile_reaches_the_terminal(hostile_folder, place, capsys) -> None:
    for target in ("t.graphml", "s.csv", "s/", "trajectories/"):
        code, output, error = run_program(capsys, "export", hostile_folder, target)
        assert code == 0
        assert "\x1b" not in output + error
