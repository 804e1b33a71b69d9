"""``dgm agent init`` and the templates: each is an agent, small enough to be read, and documented."""

import json
import subprocess
import sys

import pytest

import dgm
from dgm import errors as dgm_errors
from dgm.archive.snapshots import from_folder
from dgm.cli.main import main
from dgm.meta.contract import read_contract
from dgm.paths import asset
from dgm.sessions.agent_templates import TEMPLATES

WRAPPER_LINES, PROGRAM_LINES = 40, 20
NAMES = [template.name for template in TEMPLATES]


def run(*words, code=0):
    with pytest.raises(SystemExit) as ended:
        main(["agent", "init", *map(str, words)])
    assert (ended.value.code or 0) == code


@pytest.mark.parametrize("name", NAMES)
def test_a_template_is_an_agent_whose_first_files_may_change(name, tmp_path, capsys):
    run(tmp_path / "mine", "--from", name, "--json")
    made = json.loads(capsys.readouterr().out)
    source = from_folder(tmp_path / "mine")
    contract = read_contract(source)
    assert made["files"] == len(source)
    assert all(path in source and contract.may_change(path) for path in made["edit"])


def test_every_folder_of_templates_is_offered():
    folders = [path.name for path in asset("archive", "templates").iterdir() if path.is_dir()]
    assert {*NAMES} == {"solid", *folders}


@pytest.mark.parametrize("template", TEMPLATES[1:], ids=NAMES[1:])
def test_wrappers_are_short(template):
    (wrapper,) = [file for name in ("agent.py", "agent.mjs", "run.sh") for file in template.folder.glob(name)]
    limit = PROGRAM_LINES if template.program else WRAPPER_LINES
    assert len(wrapper.read_text().splitlines()) <= limit


def test_what_to_do_next_is_printed(tmp_path, capsys):
    run(tmp_path / "mine", "--from", "shell")
    said = capsys.readouterr().out
    assert f"{tmp_path}/mine/run.sh and {tmp_path}/mine/prompt.md" in said
    assert f"dgm agent check {tmp_path}/mine " in said


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Instructions, and a local file that is left out; no program of it is installed."""
    monkeypatch.setenv("PATH", "/nonexistent")
    folder = tmp_path / "repository"
    (folder / ".claude/skills/a").mkdir(parents=True)
    (folder / "CLAUDE.md").write_text("x")
    (folder / ".claude/skills/a/SKILL.md").write_text("x")
    (folder / ".claude/skills/.env").write_text("x")
    return folder


def test_an_imported_setup_is_summarised(repository, tmp_path, capsys):
    run(tmp_path / "mine", "--from", "claude-code", "--import", repository, "--json")
    imported = json.loads(capsys.readouterr().out)["imported"]
    assert imported["taken"] == [
        {"path": "CLAUDE.md", "kind": "instructions"},
        {"path": ".claude/skills/a/SKILL.md", "kind": "skills"},
    ]
    assert [remark["path"] for remark in imported["left_out"]] == [".claude/skills/.env"]
    assert "CLAUDE.md" in imported["evolves"]
    run(tmp_path / "more", "--from", "claude-code", "--import", repository)
    printed = capsys.readouterr().out
    assert "instructions 1, skills 1" in printed
    assert ".claude/skills/.env: " in printed
    assert f"dgm benchmark mine {repository} --out SUITE" in printed
    assert f"{imported['version']} ({imported['version_remark']})" in printed


@pytest.mark.parametrize(
    "words",
    [
        ("--import", "repository"),
        ("--from", "claude-code", "--import", "none"),
        ("--from", "codex", "--import", "repository"),
        ("--from", "claude-code", "--evolve", "hooks"),
        ("--from", "claude-code", "--import", "repository", "--evolve", "hooks,all"),
    ],
)
def test_a_setup_that_cannot_be_imported_is_refused_in_one_line(repository, tmp_path, capsys, words):
    run(
        tmp_path / "mine",
        *(tmp_path / word if word in ("repository", "none") else word for word in words),
        code=2,
    )
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "mine").exists()


def test_an_empty_folder_is_filled(tmp_path):
    run(tmp_path)
    assert (tmp_path / "agent.toml").is_file()


@pytest.mark.parametrize(
    ("target", "words", "said"),
    [
        ("full", (), "full: not empty; name a new folder, or check the agent in it: dgm agent check "),
        ("full/file", (), "file: not a folder; name a new one"),
        ("none/mine", (), "none; make it first"),
        (
            "mine",
            ("--from", "antropic"),
            "no template 'antropic' (did you mean 'anthropic'? there are: solid, shell, ",
        ),
    ],
)
def test_what_cannot_be_made_is_refused_in_one_line(tmp_path, capsys, target, words, said):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    run(tmp_path / target, *words, code=2)
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1
    assert not (tmp_path / "mine").exists()


def test_money_without_a_model_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["agent", "check", str(tmp_path), "--max-usd", "2"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == "dgm: --max-usd: nothing is paid without a model; give --model, too\n"


def test_a_program_makes_and_checks_an_agent(tmp_path):
    assert dgm.init_agent(tmp_path / "mine", "shell") == tmp_path / "mine"
    (tmp_path / "mine" / "agent.toml").unlink()
    done = dgm.check_agent(tmp_path / "mine")
    assert (done.fit, done.usd) == (False, 0.0)
    assert [(row["level"], row["part"]) for row in done.findings] == [("stop", "manifest")]
    with pytest.raises(dgm_errors.UserError, match="not a folder"):
        dgm.check_agent(tmp_path / "none")


@pytest.mark.starts_processes
@pytest.mark.parametrize(
    ("large", "given"),
    [(20_000, ["a.py", "large.py", "src/b.py"]), (90_000, ["src/b.py"])],
)
def test_aider_gets_a_small_repository_or_the_files_that_the_task_names(large, given, tmp_path):
    files = {
        "a.py": b"a" * 10_001,
        "src/b.py": b"b",
        "large.py": b"c" * large,
        ".env": b"d",
        "e.png": b"\0",
        "f": b"x" * 100_001,
    }
    for name, data in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    subprocess.run("git init -q && git add -A", shell=True, cwd=tmp_path, check=True)
    program = asset("archive", "templates", "aider", "settings", "files.py")
    done = subprocess.run(
        [sys.executable, program, "Mend b.py."], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert sorted(filter(None, done.stdout.split("\0"))) == given
