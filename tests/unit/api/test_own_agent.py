"""``dgm.agent_init``, ``dgm.agent_check`` and the templates: each is an agent, small enough to be read."""

import json
import re
import subprocess
import sys

import pytest

import dgm
from dgm.api.own_agent import TEMPLATES
from dgm.archive.snapshots import from_folder
from dgm.cli.main import main
from dgm.meta.contract import read_contract
from dgm.paths import asset, seed_names

NAMES = [template.name for template in TEMPLATES]


def run(*words, code=0):
    with pytest.raises(SystemExit) as ended:
        main(["agent", *map(str, words)])
    assert (ended.value.code or 0) == code


@pytest.mark.parametrize("name", NAMES)
def test_a_template_is_an_agent_whose_first_files_may_change(name, tmp_path):
    view = dgm.agent_init(tmp_path / "mine", template=name)
    source = from_folder(tmp_path / "mine")
    contract = read_contract(source)
    assert (view.files, view.imported) == (len(source), None)
    assert all(path in source and contract.may_change(path) for path in view.edit)


def test_every_folder_of_templates_is_offered():
    folders = [path.name for path in asset("archive", "templates").iterdir() if path.is_dir()]
    assert {*NAMES} == {*seed_names(), *folders}
    assert not {name for name in NAMES if not re.search(rf"\b{name}\b", dgm.agent_init.__doc__)}


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
    words = ("--template", "claude-code", "--repository", repository)
    run("init", tmp_path / "mine", *words, "--json")
    imported = json.loads(capsys.readouterr().out)["imported"]
    assert imported["taken"] == [
        {"path": "CLAUDE.md", "kind": "instructions"},
        {"path": ".claude/skills/a/SKILL.md", "kind": "skills"},
    ]
    assert [remark["path"] for remark in imported["left_out"]] == [".claude/skills/.env"]
    assert "CLAUDE.md" in imported["evolves"]
    run("init", tmp_path / "more", *words)
    printed = capsys.readouterr().out
    assert "instructions 1, skills 1" in printed
    assert ".claude/skills/.env: " in printed
    assert f"dgm benchmark mine {repository} --out SUITE" in printed
    assert f"{imported['version']} ({imported['version_remark']})" in printed


def test_an_empty_folder_is_filled(tmp_path):
    dgm.agent_init(tmp_path)
    assert (tmp_path / "agent.toml").is_file()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("init", "full"),
            "full: not empty; name a new folder; to check the agent in it: dgm agent check full",
        ),
        (("init", "full/file"), "file: not a folder; name a new one"),
        (("init", "none/mine"), "none; make it first"),
        (("init", "mine", "--template", "antropic"), "no template 'antropic' (did you mean 'anthropic'?"),
        (("init", "mine", "--repository", "full"), "--repository: the template solid takes no setup"),
        (("init", "mine", "--template", "codex", "--repository", "full"), "holds nothing of codex"),
        (("init", "mine", "--evolve", "hooks"), "--evolve: only a setup"),
        (("check", "full", "--max-usd", "2"), "--max-usd: nothing is paid without a model"),
        (("check", "full", "--max-usd", "nan", "--model", "offline"), "--max-usd"),
        (("check", "full", "--set", "limits.chek_s=1"), "did you mean 'limits.check_s'"),
        (("check", "none"), "none: not a folder; to make an agent there: dgm agent init none"),
        (("list",), "'dgm agent list' is now 'dgm agent init --help'"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    run(*words, code=2)
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["full"]


def test_a_folder_without_a_manifest_is_no_agent(tmp_path, capsys):
    view = dgm.agent_check(tmp_path)
    assert (view.fit, view.usd) == (False, 0.0)
    assert [(finding.level, finding.part) for finding in view.findings] == [("stop", "manifest")]
    run("check", tmp_path, code=1)
    assert capsys.readouterr().out == (
        "NO  manifest  no agent.toml at the top of the agent's folder\n"
        "              → copy agent.toml of a new agent\n"
        "A search would stop at the lines with NO.\n"
    )


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
