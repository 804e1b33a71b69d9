"""Changes of hooks, permissions and MCP servers, which a review must see one by one."""

import json

import pytest

from dgm.domain import Entry
from dgm.export.privileges import PrivilegeChange, find_privilege_changes

SETTINGS = ".claude/settings.json"
FORMAT = {"matcher": "Edit", "hooks": [{"type": "command", "command": "make format"}]}
SEND = {"matcher": "Edit", "hooks": [{"type": "command", "command": "curl example.org"}]}


def as_json(value):
    return json.dumps(value, indent=2)


def changes(path, before, after):
    """Return the changes between two texts of one file, as tuples."""
    sources = [{} if text is None else {path: Entry(text.encode())} for text in (before, after)]
    return [(found.change, found.kind, found.setting) for found in find_privilege_changes(*sources)]


@pytest.mark.parametrize(
    ("path", "before", "after", "expected"),
    [
        (
            SETTINGS,
            as_json({"model": "a", "hooks": {"PostToolUse": [FORMAT]}}),
            as_json({"model": "b", "hooks": {"PostToolUse": [FORMAT, SEND]}}),
            [("added", "hook", f"hooks.PostToolUse = {json.dumps(SEND)}")],
        ),
        (
            SETTINGS,
            as_json({"permissions": {"allow": ["Read", "Bash(ls)"], "deny": ["WebFetch"]}}),
            as_json({"permissions": {"allow": ["Bash(ls)", "Read", "Bash"]}}),
            [
                ("added", "permission", 'permissions.allow = "Bash"'),
                ("removed", "permission", 'permissions.deny = "WebFetch"'),
            ],
        ),
        (
            "packages/web/.claude/settings.json",
            None,
            as_json({"env": {"ANTHROPIC_BASE_URL": "http://example.org"}}),
            [("added", "environment variable", 'env.ANTHROPIC_BASE_URL = "http://example.org"')],
        ),
        (SETTINGS, as_json({"permissions": {"allow": ["Read"]}}), '{\n"permissions":{"allow":["Read"]}}', []),
        (".claude/hooks/format.sh", "a", "b", [("changed", "hook", "")]),
        (".opencode/plugin/send.ts", None, "b", [("added", "hook", "")]),
        (".codex/hooks/x", "a", None, [("removed", "hook", "")]),
        (
            ".mcp.json",
            as_json({"mcpServers": {"docs": {"command": "docs"}}}),
            as_json({"mcpServers": {"docs": {"command": "docs", "args": ["--all"]}}}),
            [
                ("added", "MCP server", 'mcpServers.docs = {"command": "docs", "args": ["--all"]}'),
                ("removed", "MCP server", 'mcpServers.docs = {"command": "docs"}'),
            ],
        ),
        (
            ".codex/config.toml",
            'profiles.a.model = "m"\n',
            'profiles.a.sandbox_mode = "danger-full-access"\nmcp_servers.docs.command = "docs"\n',
            [
                ("added", "MCP server", 'mcp_servers.docs = {"command": "docs"}'),
                ("added", "permission", 'profiles.a.sandbox_mode = "danger-full-access"'),
            ],
        ),
        (
            "opencode.json",
            as_json({"permission": {"bash": "ask"}, "theme": "a"}),
            as_json({"permission": {"bash": "allow"}, "mcp": {"x": {"type": "local"}}}),
            [
                ("added", "MCP server", 'mcp.x = {"type": "local"}'),
                ("added", "permission", 'permission.bash = "allow"'),
                ("removed", "permission", 'permission.bash = "ask"'),
            ],
        ),
        (
            ".qwen/settings.json",
            "{}",
            as_json({"tools": {"approvalMode": "yolo"}}),
            [("added", "permission", 'tools.approvalMode = "yolo"')],
        ),
        (
            ".claude/skills/test/SKILL.md",
            "---\nname: test\nallowed-tools: Read\n---\nRun the tests.\n",
            "---\nname: test\nallowed-tools:\n  - Read\n  - Bash\n---\nRun all tests.\ntools: here\n",
            [
                ("added", "permission", 'allowed-tools = "- Read\\n  - Bash"'),
                ("removed", "permission", 'allowed-tools = "Read"'),
            ],
        ),
        (".claude/commands/go.md", "a", "b", []),
        (".aider.conf.yml", "", "lint-cmd: make lint\n", [("added", "hook", 'lint-cmd = "make lint"')]),
        (SETTINGS, "{}", "{", [("changed", "unreadable settings", "")]),
        (".codex/config.toml", "", "= 1", [("changed", "unreadable settings", "")]),
        (SETTINGS, "{}", "[" * 200_000, [("changed", "unreadable settings", "")]),
        ("src/hooks/use.js", "a", "b", []),
        ("settings.json", "{}", as_json({"permissions": {"allow": ["Bash"]}}), []),
    ],
)
def test_each_change_is_listed(path, before, after, expected):
    assert changes(path, before, after) == expected


def test_changes_of_several_files_come_by_path():
    after = {".mcp.json": Entry(b'{"mcpServers": {"a": 1}}'), ".claude/hooks/x": Entry(b"x")}
    assert find_privilege_changes({}, after) == [
        PrivilegeChange(".claude/hooks/x", "hook", "added"),
        PrivilegeChange(".mcp.json", "MCP server", "added", "mcpServers.a = 1"),
    ]


def test_programs_of_hooks_and_servers_are_listed_wherever_they_stand():
    hook = {"hooks": {"Stop": [{"command": "sh $CLAUDE_PROJECT_DIR/.claude/skills/s/end.sh"}]}}
    servers = {"mcpServers": {"notes": {"command": "python3", "args": ["./tools/notes.py"]}}}
    kept = {SETTINGS: as_json(hook), ".mcp.json": as_json(servers)}
    programs = [".claude/skills/s/end.sh", "tools/notes.py"]
    others = [".claude/skills/s/SKILL.md", "tools/README.md", "src/notes.py"]
    sources = [
        {path: Entry(text.encode()) for path, text in (kept | dict.fromkeys(programs + others, text)).items()}
        for text in ("old", "new")
    ]
    del sources[1]["tools/notes.py"]
    sources[1]["tools/more.py"] = Entry(b"new")
    listed = [(change.path, change.change) for change in find_privilege_changes(*sources)]
    assert listed == [
        *((".claude/skills/s/end.sh", "changed"), ("tools/more.py", "added"), ("tools/notes.py", "removed"))
    ]
