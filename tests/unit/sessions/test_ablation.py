"""What is no ablation is told before any sandbox opens."""

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest

from dgm.errors import UserError
from dgm.launch import Watcher
from dgm.sessions import ablation
from dgm.sessions.ablation import plan_ablation
from dgm.sessions.evaluation import EvaluationChoice

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


def test_an_agent_of_no_run_is_told(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("DGM_ARCHIVE", str(tmp_path))
    with pytest.raises(UserError, match="no run 'first'"):
        asyncio.run(plan_ablation("first/best", (), EvaluationChoice(), Watcher()))


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
