"""The check of imported settings: a child that grants itself more than the user did is refused."""

import json
import os

import pytest

from dgm.api.agent_import import CHECK, RECORD, accept_settings, load_check
from dgm.api.own_agent import agent_init
from dgm.archive.snapshots import from_folder
from dgm.evaluation.ablation import remove_each_part
from dgm.meta.contract import read_contract

SETTINGS = {
    "permissions": {"allow": ["Bash(ls:*)", "Edit"], "deny": ["Read(./secret)"], "defaultMode": "default"},
    "hooks": {
        "Stop": [{"hooks": [{"type": "command", "command": "sh $CLAUDE_PROJECT_DIR/.claude/hooks/a.sh"}]}]
    },
    "includeCoAuthoredBy": False,
}
SERVERS = {"mcpServers": {"notes": {"command": "python3", "args": ["notes.py"]}}}
SKILL = "---\nname: a\ndescription: A.\nallowed-tools: Bash(ls:*)\n---\nDo it.\n"


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    repository = tmp_path / "repository"
    files = {
        "CLAUDE.md": "x\n\n---\n\ny",
        ".claude/settings.json": json.dumps(SETTINGS),
        ".mcp.json": json.dumps(SERVERS),
        "notes.py": "",
        ".claude/skills/a/SKILL.md": SKILL,
    }
    for name, text in files.items():
        (repository / name).parent.mkdir(parents=True, exist_ok=True)
        (repository / name).write_text(text)
    agent_init(
        tmp_path / "mine", template="claude-code", repository=repository, evolve=("permissions", "mcp")
    )
    return tmp_path / "mine"


def faults_of(mine):
    record = json.loads((mine / RECORD).read_text())
    return [fault.split(":")[0] for fault in load_check(mine / CHECK).find_faults(mine, record)]


def changed(table, path, value):
    copy = json.loads(json.dumps(table))
    *outer, last = path.split(".")
    inner = copy
    for key in outer:
        inner = inner[key]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return copy


def test_an_agent_as_imported_passes(mine):
    assert faults_of(mine) == []


@pytest.mark.parametrize(
    ("path", "value", "passes"),
    [
        ("permissions.allow", ["Edit"], True),
        ("permissions.allow", None, True),
        ("permissions.allow", ["Bash(ls:*)", "Edit", "Bash"], False),
        ("permissions.allow", ["Bash"], False),
        ("permissions.allow", "Bash", False),
        ("permissions.deny", ["Read(./secret)", "WebFetch"], True),
        ("permissions.deny", [], False),
        ("permissions.deny", ["Read(./secret)", 5], False),
        ("permissions.ask", {"a": 1}, False),
        ("permissions.deny", None, False),
        ("permissions.ask", ["Bash(git push:*)"], True),
        ("permissions.additionalDirectories", ["/"], False),
        ("permissions.defaultMode", "bypassPermissions", False),
        ("permissions.defaultMode", None, False),
        ("permissions", None, False),
        ("hooks", None, False),
        ("hooks.Stop", [], False),
        ("hooks.PreToolUse", [{"hooks": [{"type": "command", "command": "true"}]}], False),
        ("env", {"A": "b"}, False),
        ("apiKeyHelper", "sh x", False),
        ("includeCoAuthoredBy", True, False),
    ],
)
def test_settings_may_only_become_stricter(mine, path, value, passes):
    (mine / ".claude/settings.json").write_text(json.dumps(changed(SETTINGS, path, value)))
    assert faults_of(mine) == ([] if passes else [".claude/settings.json"])


@pytest.mark.parametrize(
    ("servers", "passes"),
    [
        ({}, True),
        ({"notes": {"command": "python3", "args": ["notes.py", "--all"]}}, False),
        ({**SERVERS["mcpServers"], "more": {"command": "sh"}}, False),
        ([], False),
    ],
)
def test_servers_may_only_go(mine, servers, passes):
    (mine / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    assert faults_of(mine) == ([] if passes else [".mcp.json"])


def test_odd_settings_pass_as_they_are(mine):
    find_weaker = load_check(mine / CHECK).find_weaker
    assert find_weaker({"mcp": True}, {"mcp": True}) == ""
    assert find_weaker({"mcp": True}, {"mcp": {}}) == "mcp"


@pytest.mark.parametrize("text", ["{", "[]", '"x"', None])
def test_settings_that_are_gone_or_unreadable_are_refused(mine, text):
    path = mine / ".claude/settings.json"
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    assert faults_of(mine) == [".claude/settings.json"]


@pytest.mark.parametrize(
    ("name", "text", "passes"),
    [
        ("skills/a/SKILL.md", SKILL.replace("A.", "Another.").replace("Do", "Undo"), True),
        ("skills/a/SKILL.md", SKILL.replace("ls", "rm"), False),
        ("skills/a/SKILL.md", SKILL.replace("ls:*)", "ls:*)\n  - Write"), False),
        ("skills/a/SKILL.md", None, True),
        ("skills/b/SKILL.md", "---\nname: b\ndescription: >\n  B\n  b: c\n---\nDo it.\n", True),
        ("skills/b/SKILL.md", "Do it.\n\n---\nallowed-tools: Bash\n---\n", True),
        ("skills/b/SKILL.md", "---\nname: b\nallowed-tools: Bash\n---\n", False),
        ("skills/b/SKILL.md", '---\n"allowed-tools": Bash\n---\n', False),
        ("skills/b/SKILL.md", "---\n{allowed-tools: Bash}\n---\n", False),
        ("skills/b/SKILL.md", "\ufeff\n---\nhooks:\n  Stop: x\n---\n", False),
        ("skills/b/SKILL.md", "--- # x\nhooks: x\n---\n", False),
        ("skills/b/SKILL.md", "---\nname: b\nallowed-tools: Bash\n", False),
        ("skills/b/SKILL.MD", "---\nallowed-tools: Bash\n---\n", False),
        ("commands/c.md", "---\ndescription: c\nallowed-tools: Bash\n---\n", False),
        ("agents/d.md", "---\nname: d\ndescription: d\nmodel: haiku\n---\nLook.\n", True),
        ("agents/d.md", "---\nname: d\npermissionMode: bypassPermissions\n---\n", False),
        ("agents/d.md", "---\nname: d\nmcpServers: [x]\n---\n", False),
        ("agents/d.md", "---\nname: d\nname: e\nhooks : x\n---\n", False),
        ("agents/d.md", "---\ndescription: |\n  a\n  ---\nhooks: x\n---\n", False),
        ("agents/d.md", "---\ndescription: a\u2028---\u2028\nhooks: x\n---\n", False),
        ("agents/d.md", "---\ndescription: a\u2028hooks: x\n---\n", False),
        ("agents/d.md", "\u00a0---\nhooks: x\n---\n", False),
        ("agents/d.md", "---\ndescription: a\n hooks: x\n---\n", False),
        ("agents/d.md", "---\nname: d\ndisable-model-invocation: false\n---\n", False),
        ("agents/d.md", "---\nname: d\n---\nA line\u2028and\x0canother.\n", True),
        ("agents/d.md", "---\nname: d\n<<: {hooks: x}\n---\n", False),
    ],
)
def test_front_matter_grants_nothing_new(mine, name, text, passes):
    path = mine / ".claude" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    assert faults_of(mine) == ([] if passes else [f".claude/{name}"])


def test_line_ends_of_another_system_change_nothing(mine):
    (mine / ".claude/skills/a/SKILL.md").write_bytes(SKILL.replace("\n", "\r\n").encode())
    assert faults_of(mine) == []


def test_a_link_is_refused(mine):
    (mine / ".claude/skills/b").symlink_to("/nowhere")
    assert faults_of(mine) == [".claude/skills/b"]


def test_a_folder_with_the_name_of_a_file_is_not_read(mine):
    (mine / ".claude/skills/b.md").mkdir()
    assert faults_of(mine) == []


def test_settings_of_the_template_are_checked_where_the_user_has_none(tmp_path):
    (tmp_path / "repository").mkdir()
    (tmp_path / "repository/CLAUDE.md").write_text("x")
    agent_init(
        tmp_path / "mine",
        template="claude-code",
        repository=tmp_path / "repository",
        evolve=("permissions", "mcp"),
    )
    (tmp_path / "mine/.mcp.json").write_text(json.dumps(SERVERS))
    (tmp_path / "mine/.claude/settings.json").write_text(json.dumps(SETTINGS))
    assert faults_of(tmp_path / "mine") == [".claude/settings.json", ".mcp.json"]


def test_an_agent_without_a_hook_or_server_is_accepted_to_be_compared(mine):
    whole = dict(from_folder(mine))
    without = remove_each_part(whole, read_contract(whole))
    hook, server = ".claude/settings.json#Stop a.sh", ".mcp.json#notes"
    assert {hook, server} <= without.keys()
    assert accept_settings(whole) is whole
    for part, source in without.items():
        for name, entry in accept_settings(source).items():
            (mine / name).write_bytes(entry.data)
        assert faults_of(mine) == [], part


def test_packages_are_not_looked_at(mine):
    (mine / "node_modules/x").mkdir(parents=True)
    (mine / "node_modules/x/README.md").write_text("---\nhooks: x\n---\n")
    assert faults_of(mine) == []


@pytest.mark.starts_processes
def test_the_check_runs_what_follows_only_if_nothing_is_weaker(mine, tmp_path):
    import subprocess
    import sys

    def check():
        words = [sys.executable, "-I", CHECK, sys.executable, "-c", "open('ran', 'w')"]
        return subprocess.run(words, cwd=mine, env={**os.environ, "PATH": "/bin"}, check=False).returncode

    assert (check(), (mine / "ran").exists()) == (0, True)
    (mine / "ran").unlink()
    (mine / ".mcp.json").unlink()
    assert (check(), (mine / "ran").exists()) == (1, False)
