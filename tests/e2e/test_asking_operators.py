"""The operators that ask a model about an agent make children in sandboxes.

Of the offline model, and of a talkative one behind real HTTP that slips first: JSON that does not parse, a tool that
nobody offered, an edit that fits nowhere.
"""

import asyncio
import json
import shutil
from collections import Counter

import pytest

from dgm import assemble
from dgm.archive.events import AgentBorn
from dgm.config import BudgetSettings, Settings
from dgm.domain import AgentId, Evaluate, Expand
from dgm.meta.operators import needs_of
from dgm.replay.again import replay_lineage
from dgm.replay.compare import Match
from dgm.search.loop import Search
from dgm.search.run_controller import RunController
from tests.e2e.test_markers import Steps, expansions
from tests.support import marked
from tests.support.hosted import KEY, PROVIDERS, read_exchanges
from tests.support.wire_server import Talkative, WireServer
from tests.support.wire_server.talkative import NOWHERE, UNOFFERED

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

OPERATORS = ("diagnose", "compare")


def searched(folder, **model):
    """A run in which each operator made a child of the seed."""
    settings = Settings(
        benchmark=str(marked.make(folder / "suite")),
        sandbox="bubblewrap",
        workers=1,
        seed_agent="plain",
        operator="+".join(OPERATORS),
        budget=BudgetSettings(evaluations=100),
        vetting={"probes": 0},
        **model,
    )
    parts = assemble.parts_of(settings)
    steps = [Evaluate(AgentId(0), task) for task in marked.TASKS[:2]]
    steps += [Expand((AgentId(0),), operator) for operator in OPERATORS]

    async def search(run):
        async with assemble.open_worker(run, settings, parts) as worker:
            await Search(
                RunController(run, settings, needs_of(worker.operators)), Steps(steps), worker, settings
            ).go()

    run = assemble.create(folder / "run", settings, parts)
    asyncio.run(search(run))
    return run


# The offline model makes a child by every operator in test_markers.py too.
@pytest.fixture(scope="module", params=[pytest.param("offline", marks=pytest.mark.minutes), "talkative"])
def made(request, tmp_path_factory):
    """Which model it was, and the run."""
    if not shutil.which("bwrap"):
        pytest.skip("bubblewrap is not installed")
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "offline":
        with searched(folder, model="offline") as run:
            yield request.param, run
        return
    provider = PROVIDERS["openai-chat"]
    with (
        pytest.MonkeyPatch.context() as patch,
        WireServer(brain=Talkative(), key=KEY, models=(provider.own_name,)) as server,
    ):
        patch.setenv(provider.key_env, KEY)
        reached = {"base_url": f"{server.url}/v1", "api": "chat", "backoff_s": 0.01}
        reached["answer_schema"] = False  # what it answers is no JSON at first, which a schema would forbid
        with searched(folder, model=provider.model, providers={provider.section: reached}) as run:
            yield request.param, run


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_child_is_born_and_what_was_asked_and_read_is_kept(made, operator):
    who, run = made
    action = next(action for action, what in expansions(run) if what.operator == operator)
    event = run.outcome(action).event
    assert isinstance(event, AgentBorn), event
    assert run.repository.source(event.outcome.commit) != run.repository.source(run.tree.agents[0].commit)
    roles = Counter(call.role for call in run.store.calls(action))
    assert roles["diagnose"] == (1 if who == "offline" else 3)
    assert roles["improve"] > 3
    log = run.traces.get(event.outcome.cost.traces["log"]).decode()
    assert log.startswith("What happened: ")
    held = json.loads(run.traces.get(event.outcome.cost.traces["evidence"]))
    assert any(path.endswith("conversation.md") for path in held)
    if who == "talkative":
        said = [call for _, reply in read_exchanges(run, action) for call in reply.calls]
        assert [call.name for call in said].count(UNOFFERED) == 2
        assert any(json.loads(call.arguments).get("old") == NOWHERE for call in said)


def test_every_child_is_made_again_from_the_record(made):
    _, run = made
    for agent in run.tree.agents[1:]:
        steps = asyncio.run(replay_lineage(run, agent.id, "bubblewrap"))
        assert [step.match for step in steps] == [Match.SAME] * len(steps)
