"""The self-check that the templates of programs share: what it finds in settings, skills and agents."""

import runpy
import shutil

import pytest

from dgm.paths import asset

SKILL = ".claude/skills/tidy/SKILL.md"


def check(folder, capsys):
    shutil.copy(asset("archive", "templates", "check.py"), folder)
    status = runpy.run_path(str(folder / "check.py"))["main"]()
    return status, capsys.readouterr().out


def put(folder, path, text):
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (".claude/settings.json", '{"hooks": '),
        (".codex/config.toml", "model_reasoning_effort = high"),
        (SKILL, "Do it.\n"),
        (SKILL, "---\nname: tidy\n---\n"),
        (SKILL, "---\nname: tidy\ndescription: d\n"),
        (SKILL, "---\nname: tidy\ndescription: Use it: always\n---\n"),
        (".claude/agents/tester.md", "---\nname: tester\n---\n"),
        (".opencode/agent/tester.md", "no front matter"),
        (".claude/commands/go.md", "---\ndescription\n---\n"),
    ],
)
def test_a_broken_file_is_named(path, text, tmp_path, capsys):
    put(tmp_path, path, text)
    status, output = check(tmp_path, capsys)
    assert status == 1
    assert [line.split(": ")[0] for line in output.splitlines()] == [path]


def test_files_as_the_programs_read_them_pass(tmp_path, capsys):
    put(tmp_path, ".mcp.json", '{"mcpServers": {}}')
    put(tmp_path, ".codex/config.toml", '[mcp_servers.notes]\ncommand = "notes"\n')
    put(tmp_path, SKILL, '---\nname: tidy\ndescription: "Use it: always"\nallowed-tools:\n  - Bash\n---\n')
    put(tmp_path, ".claude/skills/tidy/reference.md", "No front matter.")
    put(tmp_path, ".claude/agents/tester.md", "---\nname: tester\ndescription: >\n  Use it: always\n---\n")
    put(tmp_path, "CLAUDE.md", "# How to work\n")
    put(tmp_path, "node_modules/other/package.json", "{")
    assert check(tmp_path, capsys) == (0, "")
