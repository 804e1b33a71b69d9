"""``dgm agent ablate`` in bubblewrap: two tasks, a harmful section and a file that the agent needs to start."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import dgm as python
from dgm.errors import UserError
from tests.support.ablated import INSTRUCTIONS, Obedient, make_tickets
from tests.support.hosted import KEY, PROVIDERS
from tests.support.wire_server import WireServer

pytestmark = [pytest.mark.sandbox, pytest.mark.sampled]
PROVIDER = PROVIDERS["openai-chat"]
HARMFUL, NEEDED = "prompt.md#Reports", ".claude/commands/fix.md"


def test_parts_are_left_out_on_the_same_tasks_and_paid_once(dgm, tmp_path, monkeypatch):
    mine, suite = tmp_path / "mine", make_tickets(tmp_path / "tickets", 2)
    dgm("agent", "init", mine, "--template", "shell")
    (mine / "prompt.md").write_text(INSTRUCTIONS)
    (mine / NEEDED).parent.mkdir(parents=True)
    (mine / NEEDED).write_text("Fix it.\n")
    manifest = (mine / "agent.toml").read_text()
    check = f'check = ["sh", "-c", "test -f {NEEDED}"]'
    (mine / "agent.toml").write_text(manifest.replace('check = ["sh", "run.sh", "--check"]', check))
    program = replace(dgm, environment={PROVIDER.key_env: KEY})
    with WireServer(key=KEY, models=(PROVIDER.own_name,), brain=Obedient()) as server:
        words = ["agent", "ablate", mine, "--benchmark", suite, "--set", "sandbox=bubblewrap"]
        words = [*words[:3], HARMFUL, ".claude/*", *words[3:], *PROVIDER.words(server.url)]
        for name, value in program.variables.items():
            monkeypatch.setenv(name, value)
        options = [word for word in PROVIDER.words(server.url)[2:] if word != "--set"]
        conditions = {
            "benchmark": suite,
            "model": PROVIDER.model,
            "settings": ["sandbox=bubblewrap", *options],
        }
        with pytest.raises(UserError, match=r"max_usd: is missing: 2 evaluations"):
            python.agent_ablate(mine, HARMFUL, tasks=["ticket-00"], **conditions)
        assert server.answered == 0
        first = program.json(*words, "--max-usd", 1)
        paid = server.answered
        result = python.agent_ablate(mine, HARMFUL, ".claude/*", **conditions)
        assert server.answered == paid
    needed, harmful = first["parts"]
    assert (needed["part"], needed["effect"]) == (NEEDED, "needed to start")
    assert harmful["part"] == HARMFUL
    assert (harmful["pairs"], harmful["with_part"], harmful["without_part"]) == (2, 1, 2)
    assert (harmful["difference"], harmful["effect"]) == (-0.5, "no effect shown")
    assert 15 < harmful["tokens"] < 25
    turns = json.loads((Path(first["folder"]) / "ablation.json").read_text())
    assert list(turns.values()).count(None) == 1 and len(turns) == 3
    assert first["missing"] == 0
    again = json.loads(result.model_dump_json())
    assert again == {**first, "ended": again["ended"], "message": again["message"]}
