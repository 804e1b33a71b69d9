"""An agent made from a template and a user's setup: what evolves, which version runs, and what is refused."""

import json

import pytest

from dgm.api.agent_import import ON_REQUEST, find_version, load_setups
from dgm.api.own_agent import TEMPLATES, agent_init
from dgm.archive.snapshots import from_folder
from dgm.errors import UserError
from dgm.meta.contract import read_contract

HOOKS = ".claude/hooks/a.sh"
FILES = {
    "CLAUDE.md": "mine",
    HOOKS: "x",
    ".claude/settings.json": "{}",
    ".mcp.json": '{"mcpServers": {"notes": {"command": "sh", "args": ["tools/notes.sh"]}}}',
    "tools/notes.sh": "x",
}


@pytest.fixture(autouse=True)
def _no_programs(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")


@pytest.fixture
def repository(tmp_path):
    return write(tmp_path / "repository", FILES)


def write(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("evolve", "editable"),
    [
        ((), set()),
        (("hooks",), {HOOKS}),
        (("permissions",), {".claude/settings.json"}),
        (("mcp",), {".mcp.json", "tools/notes.sh"}),
        (ON_REQUEST, {HOOKS, ".claude/settings.json", ".mcp.json", "tools/notes.sh"}),
    ],
)
def test_hooks_permissions_and_servers_evolve_only_on_request(repository, tmp_path, evolve, editable):
    made = agent_init(tmp_path / "mine", template="claude-code", repository=repository, evolve=evolve)
    contract = read_contract(from_folder(tmp_path / "mine"))
    asked = {HOOKS, ".claude/settings.json", ".mcp.json", "tools/notes.sh"}
    assert {path for path in asked if contract.may_change(path)} == editable
    assert contract.may_change("CLAUDE.md")
    assert contract.may_change(".claude/skills/new/SKILL.md")
    wrapper = {"agent.toml", "run.sh", "check.py", "settings/imported.json", "settings/never_weaker.py"}
    assert {path for path in wrapper if contract.may_change(path)} == set()
    assert editable <= {path for path in asked if _matches(path, made.imported.evolves)}


def _matches(path, patterns):
    return any(path == pattern or path.startswith(pattern) for pattern in patterns)


@pytest.mark.parametrize("name", load_setups())
def test_each_program_is_imported_as_an_agent_with_the_users_files_alone(name, tmp_path):
    setup = load_setups()[name]
    own = next(iter(setup.paths.values()))[0]
    path = own if "." in own[1:] else f"{own}/a.md"
    agent_init(
        tmp_path / "mine", template=name, repository=write(tmp_path / "repository", {path: "only this"})
    )
    source = from_folder(tmp_path / "mine")
    contract = read_contract(source)
    assert contract.may_change(path)
    assert source[path].data == b"only this"
    assert contract.check[:3] == ("python3", "-I", "settings/never_weaker.py")
    free = {p for kind, paths in setup.paths.items() if kind not in ON_REQUEST for p in paths}
    assert [p for p in source if p != path and any(p == f or p.startswith(f"{f}/") for f in free)] == []


def test_every_template_of_a_program_can_be_imported():
    assert {*load_setups()} == {template.name for template in TEMPLATES if template.program}


def test_a_file_of_the_template_is_not_replaced(repository, tmp_path):
    write(repository, {"CLAUDE.md": "See @run.sh and @check.py", "run.sh": "mine", "check.py": "mine"})
    made = agent_init(tmp_path / "mine", template="claude-code", repository=repository).imported
    assert (tmp_path / "mine" / "run.sh").read_text() != "mine"
    assert {remark.path for remark in made.left_out} == {"run.sh", "check.py"}


@pytest.mark.parametrize(
    ("template", "folder", "evolve", "message"),
    [
        ("shell", "repository", (), "takes no setup"),
        ("claude-code", "none", (), "not a folder"),
        (
            "claude-code",
            "repository",
            ("skills",),
            "'skills': for claude-code evolution may edit, too: hooks",
        ),
        ("codex", "codex", ("permissions",), "'permissions': for codex"),
        ("claude-code", None, ("hooks",), "name its repository"),
        ("claude-code", "broken", (), "settings.json: cannot be read"),
    ],
)
def test_bad_input_is_refused_and_nothing_written(repository, tmp_path, template, folder, evolve, message):
    write(tmp_path / "codex", {"AGENTS.md": "x"})
    write(tmp_path / "broken", {".claude/settings.json": "{"})
    with pytest.raises(UserError, match=message) as refused:
        agent_init(
            tmp_path / "mine", template=template, repository=folder and tmp_path / folder, evolve=evolve
        )
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "mine").exists()


@pytest.mark.starts_processes
def test_another_version_is_named_where_npm_is_missing(repository, tmp_path, monkeypatch):
    program = write(tmp_path / "bin", {"claude": "#!/bin/sh\necho '2.1.99 (Claude Code)'\n"}) / "claude"
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    made = agent_init(tmp_path / "mine", template="claude-code", repository=repository).imported
    assert made.version in (tmp_path / "mine" / "package.json").read_text()
    assert made.version != "2.1.99"
    assert "2.1.99 is installed here" in made.version_remark
    # A program of the repository is not run.
    assert find_version(load_setups()["claude-code"], program.parent) == ""


@pytest.mark.starts_processes
def test_the_installed_version_of_a_python_package_is_required(tmp_path, monkeypatch):
    program = write(tmp_path / "bin", {"aider": "#!/bin/sh\necho aider 0.85.1\n"}) / "aider"
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/bin")
    made = agent_init(
        tmp_path / "mine",
        template="aider",
        repository=write(tmp_path / "repository", {"CONVENTIONS.md": "x"}),
    )
    assert made.imported.version == "0.85.1"
    assert read_contract(from_folder(tmp_path / "mine")).requires == ("aider-chat==0.85.1",)


def test_a_file_whose_front_matter_cannot_be_checked_does_not_evolve(tmp_path):
    files = {
        "CLAUDE.md": "x",
        ".claude/agents/a.md": "---\n{name: a}\n---\nx",
        ".claude/agents/b.md": "---\nname: b\n---\nx",
    }
    agent_init(tmp_path / "mine", template="claude-code", repository=write(tmp_path / "repository", files))
    contract = read_contract(from_folder(tmp_path / "mine"))
    assert [contract.may_change(path) for path in files] == [True, False, True]


@pytest.mark.parametrize("evolve", [(), ("hooks",)])
def test_hooks_below_an_editable_folder_evolve_only_on_request(tmp_path, evolve):
    hook = ".clinerules/hooks/PreToolUse"
    agent_init(
        tmp_path / "mine",
        template="cline",
        repository=write(tmp_path / "repository", {hook: "x"}),
        evolve=evolve,
    )
    contract = read_contract(from_folder(tmp_path / "mine"))
    assert contract.may_change(hook) == bool(evolve)


@pytest.mark.parametrize("evolve", [(), ("hooks",)])
def test_a_program_of_a_hook_within_a_skill_evolves_only_on_request(tmp_path, evolve):
    program = ".claude/skills/s/hook.sh"
    settings = {"hooks": {"Stop": [{"hooks": [{"command": f"sh $CLAUDE_PROJECT_DIR/{program}"}]}]}}
    files = {program: "x", ".claude/settings.json": json.dumps(settings), ".claude/hooks/a.sh": "x"}
    agent_init(
        tmp_path / "mine",
        template="claude-code",
        repository=write(tmp_path / "repository", files),
        evolve=evolve,
    )
    contract = read_contract(from_folder(tmp_path / "mine"))
    assert contract.may_change(program) == bool(evolve)
    assert contract.may_change(".claude/skills/s/SKILL.md")


def test_a_skill_of_codex_gets_no_servers(tmp_path):
    skill = ".codex/skills/s/SKILL.md"
    agent_init(tmp_path / "mine", template="codex", repository=write(tmp_path / "repository", {skill: "x"}))
    contract = read_contract(from_folder(tmp_path / "mine"))
    assert contract.may_change(skill)
    assert not contract.may_change(".codex/skills/s/agents/openai.yaml")
