"""Each part of an agent's folder is left out, and nothing else changes."""

import json

import pytest

from dgm.domain import Entry
from dgm.errors import UserError
from dgm.evaluation.ablation import remove_each_part
from dgm.meta.contract import Contract

EDITABLE = ("CLAUDE.md", ".claude/**", "prompts/*")
CONTRACT = Contract(command=("run",), check=("check",), editable=EDITABLE)


def folder(**files):
    return {path: Entry(text.encode()) for path, text in files.items()}


def texts(source):
    return {path: entry.data.decode() for path, entry in source.items()}


def parts_of(files):
    return remove_each_part(folder(**files), CONTRACT)


def test_sections_end_at_the_next_heading_of_the_first_two_levels():
    text = "Hello.\n\n# Title\n\n## One\na\n### Deeper\nb\n## Two ##\n```sh\n# no heading\n```\nc\n"
    parts = parts_of({"CLAUDE.md": text})
    assert {name: texts(rest)["CLAUDE.md"] for name, rest in parts.items()} == {
        "CLAUDE.md#(beginning)": text.removeprefix("Hello.\n\n"),
        "CLAUDE.md#One": text.replace("## One\na\n### Deeper\nb\n", ""),
        "CLAUDE.md#Two": text[: text.index("## Two")],
    }


def test_a_fence_ends_at_one_of_its_kind_however_far_it_is_indented():
    text = "## One\n```\n~~~\n# no heading\n  ```\n## Two\nb\n"
    parts = parts_of({"CLAUDE.md": text})
    assert {name: texts(rest)["CLAUDE.md"] for name, rest in parts.items()} == {
        "CLAUDE.md#One": "## Two\nb\n",
        "CLAUDE.md#Two": text.removesuffix("## Two\nb\n"),
    }


def test_front_matter_stays_and_equal_names_are_numbered():
    text = "---\npaths: src\n---\n## Rules\na\n## Rules\nb\n"
    parts = parts_of({"prompts/rules.md": text})
    assert {name: texts(rest)["prompts/rules.md"] for name, rest in parts.items()} == {
        "prompts/rules.md#Rules": "---\npaths: src\n---\n## Rules\nb\n",
        "prompts/rules.md#Rules (2)": "---\npaths: src\n---\n## Rules\na\n",
    }


def test_text_for_people_and_protected_text_is_no_part():
    assert parts_of({"README.md": "a\n", "vendor/x.md": "a\n", "prompts/x.txt": "a\n"}) == {}


def test_skills_subagents_and_commands_go_as_a_whole():
    files = {
        ".claude/skills/pdf/SKILL.md": "# One\na\n# Two\nb\n",
        ".claude/skills/pdf/read.py": "1\n",
        ".claude/agents/reviewer.md": "# One\na\n# Two\nb\n",
        ".claude/commands/fix.md": "a\n",
        "agent/main.py": "1\n",
    }
    assert {name: sorted(files.keys() - rest.keys()) for name, rest in parts_of(files).items()} == {
        ".claude/skills/pdf": [".claude/skills/pdf/SKILL.md", ".claude/skills/pdf/read.py"],
        ".claude/agents/reviewer.md": [".claude/agents/reviewer.md"],
        ".claude/commands/fix.md": [".claude/commands/fix.md"],
    }


def test_a_hook_goes_with_its_script_and_a_server_alone():
    hook, other = (
        {"type": "command", "command": f"sh $CLAUDE_PROJECT_DIR/.claude/hooks/{name}.sh"} for name in "ab"
    )
    settings = {
        "model": "x",
        "hooks": {"Stop": [{"hooks": [hook]}], "PreToolUse": [{"matcher": "Bash", "hooks": [hook, other]}]},
    }
    files = {
        ".claude/settings.json": json.dumps(settings),
        ".claude/hooks/a.sh": "1\n",
        ".claude/hooks/b.sh": "1\n",
        ".mcp.json": json.dumps({"mcpServers": {"docs": {"command": "docs"}, "web": {"command": "web"}}}),
    }
    parts = parts_of(files)
    stop, first, second, docs, web = parts
    path = ".claude/settings.json"
    assert stop == f"{path}#Stop a.sh"
    assert json.loads(parts[stop][path].data)["hooks"] == {"PreToolUse": settings["hooks"]["PreToolUse"]}
    # The script of the first hook serves two events.
    assert parts[stop].keys() == parts[first].keys() == files.keys()
    left = json.loads(parts[second][path].data)
    assert left == {
        "model": "x",
        "hooks": settings["hooks"] | {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]},
    }
    assert files.keys() - parts[second].keys() == {".claude/hooks/b.sh"}
    assert (docs, web) == (".mcp.json#docs", ".mcp.json#web")
    assert json.loads(parts[docs][".mcp.json"].data) == {"mcpServers": {"web": {"command": "web"}}}


def test_settings_that_cannot_be_read_are_told():
    with pytest.raises(UserError, match=r"^\.mcp\.json: its hooks and MCP servers cannot be read"):
        parts_of({".mcp.json": "{,}"})
