"""What an ablation leaves out, and what is refused before any sandbox opens."""

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from dgm.api.evaluating import EvaluationChoice
from dgm.archive.snapshots import from_folder, write_folder
from dgm.errors import UserError
from dgm.launch import Watcher
from dgm.sessions import ablation
from dgm.sessions.ablation import choose_parts, plan_ablation
from dgm.sessions.agent_templates import create_agent
from dgm.sessions.imported_agent import CHECK, RECORD, load_check

MANIFEST = '[agent]\ncommand = ["run"]\ncheck = ["check"]\n'


@pytest.mark.parametrize(
    ("files", "only", "message"),
    [
        ({}, (), r"not an agent: no agent.toml"),
        ({"agent.toml": MANIFEST}, (), r"no part to leave out"),
        (
            {"agent.toml": MANIFEST, "CLAUDE.md": "## One\na\n## Two\nb\n"},
            ("CLAUDE.md#Three",),
            r"--part CLAUDE.md#Three: fits no part .*there are CLAUDE.md#One, CLAUDE.md#Two$",
        ),
        (
            {"agent.toml": MANIFEST, ".mcp.json": "{"},
            (),
            r"\.mcp\.json: its hooks and MCP servers cannot be read",
        ),
    ],
)
def test_what_cannot_be_ablated_is_told(tmp_path: Path, files, only, message):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match=message):
        asyncio.run(plan_ablation(str(tmp_path), only, EvaluationChoice(model="offline"), Watcher()))


def test_nothing_is_paid_where_every_part_is_needed(tmp_path: Path, monkeypatch):
    async def rehearse(name, source, engine, settings):
        if b"One" not in source["CLAUDE.md"].data:
            raise UserError("it cannot start")
        return SimpleNamespace(turn_tokens=1)

    monkeypatch.setattr(ablation, "rehearse", rehearse)
    monkeypatch.setenv("DGM_ARCHIVE", str(tmp_path / "archive"))
    (tmp_path / "agent").mkdir()
    for name, text in {"agent.toml": MANIFEST, "CLAUDE.md": "## One\na\n"}.items():
        (tmp_path / "agent" / name).write_text(text)
    with pytest.raises(UserError, match="nothing to compare"):
        asyncio.run(plan_ablation(str(tmp_path / "agent"), (), EvaluationChoice(model="offline"), Watcher()))


def test_the_check_of_an_imported_agent_passes_without_a_hook(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    settings = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}
    file = tmp_path / "repository" / ".claude" / "settings.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(settings))
    create_agent(tmp_path / "mine", "claude-code", tmp_path / "repository")
    source = from_folder(tmp_path / "mine")
    without = choose_parts("mine", source, ())[".claude/settings.json#Stop true"]
    write_folder(without, tmp_path / "without")
    check = load_check(tmp_path / "without" / CHECK)
    assert json.loads(without[".claude/settings.json"].data)["hooks"] == {}
    assert list(check.find_faults(tmp_path / "without", json.loads(without[RECORD].data))) == []
    assert list(check.find_faults(tmp_path / "without", json.loads(source[RECORD].data))) != []
