"""Import of a user's setup: what is taken, left out, cleaned, and said to be out of a sandbox's reach."""

import json
import os
from pathlib import Path

import pytest

from dgm.api.agent_import import import_setup, load_setups
from dgm.errors import UserError

KEY = "sk-proj-" + "a1B2" * 6


def write(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2))


def import_claude(folder, files):
    write(folder, files)
    return import_setup(folder, load_setups()["claude-code"])


def test_files_keep_their_paths_and_get_their_kinds(tmp_path):
    files = {
        "CLAUDE.md": "x",
        ".claude/skills/a/SKILL.md": "x",
        ".claude/skills/a/run.py": "x",
        ".claude/agents/b.md": "x",
        ".claude/commands/c.md": "x",
        ".claude/hooks/d.sh": "x",
        ".claude/settings.json": {},
        ".mcp.json": {},
        "src/main.py": "x",
        ".claude/todos/e.json": "x",
    }
    taken = import_claude(tmp_path, files).kinds
    assert taken == {
        "CLAUDE.md": "instructions",
        ".claude/skills/a/SKILL.md": "skills",
        ".claude/skills/a/run.py": "skills",
        ".claude/agents/b.md": "sub-agents",
        ".claude/commands/c.md": "commands",
        ".claude/hooks/d.sh": "hooks",
        ".claude/settings.json": "permissions",
        ".mcp.json": "mcp",
    }


@pytest.mark.parametrize(
    "name", ["settings.local.json", ".credentials.json", ".env", "deploy.pem", "NOTES.local.md"]
)
def test_files_of_one_machine_are_left_out(tmp_path, name):
    setup = import_claude(tmp_path, {"CLAUDE.md": "x", f".claude/skills/{name}": "secret"})
    assert {*setup.files} == {"CLAUDE.md"}
    assert [remark.path for remark in setup.left_out] == [f".claude/skills/{name}"]


def test_links_within_the_repository_are_followed_and_others_left_out(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "SKILL.md").write_text("of the home folder")
    repository = tmp_path / "repository"
    write(repository, {"AGENTS.md": "shared", "skills/a/SKILL.md": "a", ".claude/skills/own/SKILL.md": "b"})
    (repository / "CLAUDE.md").symlink_to("AGENTS.md")
    (repository / ".claude/skills/a").symlink_to("../../skills/a")
    (repository / ".claude/skills/b").symlink_to("../../../outside")
    (repository / ".claude/skills/c").symlink_to("nowhere")
    (repository / ".claude/skills/d").symlink_to("..")
    os.mkfifo(repository / ".claude/skills/pipe")
    setup = import_setup(repository, load_setups()["claude-code"])
    assert {name: entry.data for name, entry in setup.files.items()} == {
        "CLAUDE.md": b"shared",
        ".claude/skills/a/SKILL.md": b"a",
        ".claude/skills/own/SKILL.md": b"b",
    }
    left_out = [remark.path.rpartition("/")[2] for remark in setup.left_out]
    assert left_out == ["b", "c", "d", "pipe"]


def test_credentials_and_values_of_variables_are_left_out_and_named(tmp_path):
    settings = {
        "apiKeyHelper": "/usr/bin/key",
        "env": {"SERVICE": "first-value", "DEBUG": "1"},
        "authToken": "second-value",
        "permissions": {"allow": ["Bash(ls:*)"]},
    }
    server = {"command": "python3", "args": ["tools/notes.py"], "env": {"NOTES": "third-value"}}
    setup = import_claude(
        tmp_path,
        {
            ".claude/settings.json": settings,
            ".mcp.json": {"mcpServers": {"notes": server}},
            "tools/notes.py": "x",
        },
    )
    kept = b"".join(entry.data for entry in setup.files.values())
    assert json.loads(setup.files[".claude/settings.json"].data) == {"permissions": {"allow": ["Bash(ls:*)"]}}
    assert [word for word in (b"key", b"first", b"second", b"third") if word in kept] == []
    left_out = " ".join(remark.reason for remark in setup.left_out)
    assert [
        name for name in ("apiKeyHelper", "SERVICE", "DEBUG", "authToken", "NOTES") if name not in left_out
    ] == []


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        ("curl -H 'Authorization: Bearer 0123456789'", "curl -H 'Authorization: Bearer <key>'"),
        ("API_TOKEN=hunter2 run --password hunter2", "API_TOKEN=<key> run --password <key>"),
        ("curl -u admin:hunter2 https://a.example", "curl -u <key> https://a.example"),
        ("TOKEN=$GITHUB_TOKEN python3 -u check.py", "TOKEN=$GITHUB_TOKEN python3 -u check.py"),
        ("echo token budget: password reset", "echo token budget: password reset"),
    ],
)
def test_secrets_in_commands_and_arguments_are_replaced(tmp_path, command, kept):
    hook = {"hooks": {"Stop": [{"hooks": [{"command": command}]}]}}
    server = {"mcpServers": {"a": {"command": "python3", "args": ["a.py", "--token", "hunter2", "x"]}}}
    files = {".claude/settings.json": hook, ".mcp.json": server, "a.py": "x"}
    setup = import_claude(tmp_path, files)
    assert json.loads(setup.files[".claude/settings.json"].data)["hooks"]["Stop"][0]["hooks"] == [
        {"command": kept}
    ]
    assert json.loads(setup.files[".mcp.json"].data)["mcpServers"]["a"]["args"] == [
        *("a.py", "--token", "<key>", "x")
    ]


@pytest.mark.parametrize("words", [["a.py\0x"], ["-c", "x" * 5000], 5])
def test_arguments_that_are_no_paths_name_no_file(tmp_path, words):
    files = {"CLAUDE.md": "x", ".mcp.json": {"mcpServers": {"a": {"command": "python3", "args": words}}}}
    [remark] = import_claude(tmp_path, files).out_of_reach
    assert len(remark.reason) < 300


def test_programs_of_servers_and_hooks_are_theirs_wherever_they_stand(tmp_path):
    files = {
        "CLAUDE.md": "see @a.py",
        ".claude/skills/s/hook.sh": "x",
        ".claude/settings.json": {
            "hooks": {"Stop": [{"command": "sh $CLAUDE_PROJECT_DIR/.claude/skills/s/hook.sh"}]}
        },
        ".mcp.json": {"mcpServers": {"a": {"command": "python3", "args": ["a.py"]}}},
        "a.py": "x",
    }
    kinds = import_claude(tmp_path, files).kinds
    assert (kinds["a.py"], kinds[".claude/skills/s/hook.sh"]) == ("mcp", "hooks")


def test_settings_with_a_byte_order_mark_are_written_without_it(tmp_path):
    (tmp_path / ".mcp.json").write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert json.loads(import_claude(tmp_path, {}).files[".mcp.json"].data.decode("utf-8")) == {"a": 1}


def test_a_key_in_any_file_is_replaced(tmp_path):
    setup = import_claude(tmp_path, {"CLAUDE.md": f"Use {KEY} for calls.\n"})
    assert setup.files["CLAUDE.md"].data == b"Use <key> for calls.\n"
    assert [remark.path for remark in setup.left_out] == ["CLAUDE.md"]


def test_settings_with_nothing_to_leave_out_keep_their_bytes(tmp_path):
    text = '{"permissions":   {"deny": ["Read(./a)"]}}'
    setup = import_claude(tmp_path, {".claude/settings.json": text})
    assert setup.files[".claude/settings.json"].data.decode() == text


@pytest.mark.parametrize("indent", [2, 4, "\t"])
def test_cleaned_settings_keep_their_indentation(tmp_path, indent):
    kept = {"permissions": {"deny": ["Read(./a)"]}}
    text = json.dumps({"env": {"A": "b"}, **kept}, indent=indent)
    cleaned = import_claude(tmp_path, {".claude/settings.json": text}).files[".claude/settings.json"].data
    assert cleaned.decode() == json.dumps(kept, indent=indent) + "\n"


@pytest.mark.parametrize(
    ("server", "files"),
    [
        ({"command": "python3", "args": ["tools/notes/server.py"]}, {"server.py", "store.py"}),
        (
            {"command": "${CLAUDE_PROJECT_DIR:-.}/tools/notes/server.py", "args": ["--all"]},
            {"server.py", "store.py"},
        ),
        ({"command": "python3", "args": ["missing.py"]}, None),
        ({"command": "python3", "args": ["-m", "notes"]}, None),
        ({"command": "npx", "args": ["-y", "@notes/server"]}, None),
        ({"command": "uvx", "args": ["notes"]}, None),
        ({"command": "/opt/notes/server", "args": ["tools/notes/server.py"]}, None),
        ({"type": "http", "url": "https://example.org/mcp"}, None),
        ({"args": []}, None),
        ("notes", None),
    ],
)
def test_servers_that_start_without_a_network_are_taken_with_their_program(tmp_path, server, files):
    setup = import_claude(
        tmp_path,
        {
            ".mcp.json": {"mcpServers": {"notes": server}},
            "tools/notes/server.py": "x",
            "tools/notes/store.py": "x",
            "other.py": "x",
        },
    )
    assert [*json.loads(setup.files[".mcp.json"].data)["mcpServers"]] == (["notes"] if files else [])
    assert {*setup.files} == {".mcp.json", *(f"tools/notes/{name}" for name in files or ())}
    assert len(setup.out_of_reach) == (0 if files else 1)


@pytest.mark.parametrize(
    ("command", "remark"),
    [
        ("$CLAUDE_PROJECT_DIR/.claude/hooks/a.sh", ""),
        ('python3 "$CLAUDE_PROJECT_DIR"/.claude/hooks/a.py', ""),
        ("cat < /dev/stdin", ""),
        ("jq -r .x", "jq"),
        ("sh /home/me/hook.sh", "/home/me/hook.sh"),
        ("~/bin/hook", "~/bin/hook"),
        (".claude/hooks/a.sh", "$CLAUDE_PROJECT_DIR/"),
        ("prettier --write x", "prettier"),
    ],
)
def test_hooks_that_a_sandbox_cannot_run_are_named(tmp_path, command, remark):
    hooks = {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}
    setup = import_claude(tmp_path, {".claude/settings.json": {"hooks": hooks}})
    reasons = [found.reason for found in setup.out_of_reach]
    assert len(reasons) == bool(remark)
    assert remark in "".join(reasons)


def test_files_that_instructions_mention_are_taken(tmp_path):
    (tmp_path / "home.md").write_text("of the home folder")
    repository = tmp_path / "repository"
    text = "See @docs/a.md, `@docs/code.md`, me@docs/mail.md, @../home.md and @docs/none.md."
    files = {
        "CLAUDE.md": text,
        "docs/a.md": "and @b.md",
        "docs/b.md": "b",
        "docs/code.md": "",
        "docs/mail.md": "",
    }
    assert {*import_claude(repository, files).files} == {"CLAUDE.md", "docs/a.md", "docs/b.md"}


def test_web_tools_are_out_of_reach(tmp_path):
    setup = import_claude(
        tmp_path, {".claude/agents/a.md": "tools: WebSearch", "CLAUDE.md": "search the web"}
    )
    assert [remark.path for remark in setup.out_of_reach] == [".claude/agents/a.md"]


@pytest.mark.parametrize(
    ("template", "files", "name", "kept"),
    [
        (
            "codex",
            {".codex/config.toml": 'model = "x"\n[mcp_servers.a]\ncommand = "npx"\n[tools]\nview = true\n'},
            ".codex/config.toml",
            "mcp_servers = {}\ntools = {view = true}\n",
        ),
        (
            "opencode",
            {
                "opencode.json": {
                    "model": "x",
                    "mcp": {"a": {"type": "local", "command": ["python3", "a.py"]}},
                },
                "a.py": "",
            },
            "opencode.json",
            json.dumps({"mcp": {"a": {"type": "local", "command": ["python3", "a.py"]}}}, indent=2) + "\n",
        ),
        (
            "aider",
            {".aider.conf.yml": "openai-api-key: a\n'api-key':\n- b\nlint-cmd: TOKEN=hunter2 lint\n"},
            ".aider.conf.yml",
            "lint-cmd: TOKEN=<key> lint\n",
        ),
    ],
)
def test_settings_of_other_programs_are_cleaned_in_their_own_form(tmp_path, template, files, name, kept):
    write(tmp_path, files)
    assert import_setup(tmp_path, load_setups()[template]).files[name].data.decode() == kept


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"AGENTS.md": "x"}, "holds nothing of claude"),
        ({".claude/settings.json": "{"}, ".claude/settings.json: cannot be read"),
        ({".mcp.json": "[]"}, ".mcp.json: expected a table"),
        ({f".claude/skills/{number}.md": "x" for number in range(401)}, "more than 400 files"),
    ],
)
def test_what_cannot_be_imported_is_refused_in_one_line(tmp_path, files, message):
    with pytest.raises(UserError, match=message) as refused:
        import_claude(tmp_path, files)
    assert "\n" not in str(refused.value)


def test_a_folder_that_cannot_be_read_is_refused(tmp_path, monkeypatch):
    write(tmp_path, {"CLAUDE.md": "x", ".claude/skills/a.md": "x"})

    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(UserError, match="skills: cannot be read"):
        import_setup(tmp_path, load_setups()["claude-code"])


def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(UserError, match="not a folder"):
        import_setup(tmp_path / "none", load_setups()["claude-code"])
