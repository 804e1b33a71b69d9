"""What an ablation leaves out, and what is refused before any sandbox opens."""

import asyncio
import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from dgm.api import ablating
from dgm.api.ablating import AblationPlan, choose_parts, plan_ablation
from dgm.api.agent_import import CHECK, RECORD, load_check
from dgm.api.evaluating import EvaluationChoice, EvaluationRequest
from dgm.api.own_agent import agent_init
from dgm.api.watcher import Watcher
from dgm.archive.snapshots import from_folder, write_folder
from dgm.cli.agent import _show_ablation
from dgm.config import Settings
from dgm.domain import Usage
from dgm.errors import UserError
from dgm.evaluation.ablation import Effect, PartEffect
from dgm.models.pricing import Price, TokenRates
from dgm.views.own_agent import AblationView
from dgm.views.values import UsageView

MANIFEST = '[agent]\ncommand = ["run"]\ncheck = ["check"]\n'


@pytest.mark.parametrize(
    ("files", "only", "message"),
    [
        ({}, (), r"not an agent: no agent.toml"),
        ({"agent.toml": MANIFEST}, (), r"no part to leave out"),
        (
            {"agent.toml": MANIFEST, "CLAUDE.md": "## One\na\n## Two\nb\n"},
            ("CLAUDE.md#Three",),
            r"CLAUDE.md#Three: fits no part .*there are CLAUDE.md#One, CLAUDE.md#Two$",
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

    monkeypatch.setattr(ablating, "rehearse", rehearse)
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
    agent_init(tmp_path / "mine", template="claude-code", repository=tmp_path / "repository")
    source = from_folder(tmp_path / "mine")
    without = choose_parts("mine", source, ())[".claude/settings.json#Stop true"]
    write_folder(without, tmp_path / "without")
    check = load_check(tmp_path / "without" / CHECK)
    assert json.loads(without[".claude/settings.json"].data)["hooks"] == {}
    assert list(check.find_faults(tmp_path / "without", json.loads(without[RECORD].data))) == []
    assert list(check.find_faults(tmp_path / "without", json.loads(source[RECORD].data))) != []


PRICE = Price(TokenRates(2.0, 2.0, 2.0, 8.0))


def plan(*, tasks=12, price=PRICE, usd_limit=None, missing=36):
    chosen = EvaluationChoice()
    request = EvaluationRequest([None] * 3, Path(), "", "", Settings(), chosen)
    turns = {"": 10_000, "a": 9_000, "b": 8_000, "c": None}
    return AblationPlan(request, ["a", "b"], turns, {}, Path(), tasks, missing, price, usd_limit)


def test_only_money_without_a_limit_needs_consent():
    assert plan().is_unbounded
    assert plan().most_usd > 1
    assert not plan(usd_limit=5.0).is_unbounded
    assert not plan(missing=0).is_unbounded
    assert not plan(price=None).is_unbounded
    assert plan(price=None).most_usd == 0


def test_the_work_and_its_price_are_described():
    assert plan().describe().startswith("3 agents × 12 tasks × 1 attempt = 36 evaluations, 36 still to do")
    assert "USD" not in plan(price=None).describe()
    assert "too few" in plan(tasks=6).describe()


def test_every_part_has_a_row(capsys):
    hurts = PartEffect(
        part="CLAUDE.md#Tone", effect=Effect.HURTS, tokens=12, pairs=20, tasks=20, with_part=5, without_part=15,
        difference=-0.5, interval=(-0.7, -0.2), p=0.0123,
    )  # fmt: skip
    needed = replace(hurts, part="run.md", effect=Effect.NEEDED)
    view = AblationView(
        folder="f", benchmark="b", version="1", split="search", model=None, tasks=20, attempts=1, ended="", message="",
        missing=0, agents=(), comparison=None, spend=UsageView.of(Usage()), parts=(hurts, needed), tasks_to_show=60,
    )  # fmt: skip
    _show_ablation(view)
    heads, tone, run, *_ = (re.split(r"  +", line.strip()) for line in capsys.readouterr().out.splitlines())
    assert tone == ["CLAUDE.md#Tone", "5/20", "15/20", "-50 (-70 to -20)", "0.012", "12", "hurts"]
    assert run == ["run.md", *["–"] * 5, "needed to start"]
    assert len(heads) == len(tone)
