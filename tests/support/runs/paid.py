"""A small run made by hand, as a search on two hosted models would leave it: nothing is performed, all of it costs."""

from pathlib import Path

from dgm.archive.events import (
    ActionLost,
    ActionStarted,
    AgentStillborn,
    CallRefused,
)
from dgm.config import Settings
from dgm.domain import (
    SEED,
    Action,
    ActionId,
    AgentId,
    Budget,
    Entry,
    Evaluate,
    Expand,
    Stillborn,
    TaskId,
    Usage,
    Verdict,
)
from tests.support.runs.builder import RunBuilder, create_run, make_config

ONE = Usage(1, 1000, 100, 0.01, 250, 50, 60)
SOLVE, IMPROVE = ("solve", "openai/cheap"), ("improve", "anthropic/dear")
TASKS = (TaskId("ledger-a"), TaskId("ledger-b"))


class PaidRun(RunBuilder):
    """Appends whole steps to a run, with what they cost."""

    def __init__(self, folder: Path, usd: float | None = 0.50) -> None:
        settings = Settings.model_validate(
            {"model": "openai/cheap", "models": {"improve": "anthropic/dear"}, "budget": {"usd": usd}}
        )
        super().__init__(create_run(folder, make_config(settings), Budget(usd=usd), TASKS))
        self._birth((), ActionId(0))

    def start(self, what: Action) -> ActionId:
        return self.begin(what)

    def call(self, action: ActionId, times: int, who: tuple[str, str] = SOLVE, usage: Usage = ONE) -> None:
        before = len(self.run.store.calls(action))
        for number in range(before + 1, before + times + 1):
            self.record_call(action, number, who[1], who[0], usage)

    def evaluated(self, agent: int, task: int, calls: int, verdict: Verdict = Verdict.RESOLVED) -> ActionId:
        action = self.start(Evaluate(AgentId(agent), TASKS[task]))
        self.call(action, calls)
        self.grade(action, agent, task, verdict)
        return action

    def grade(self, action: ActionId, agent: int, task: int, verdict: Verdict) -> None:
        self.record_verdict(action, agent, TASKS[task], verdict, "as graded")

    def child(self, *parents: int, calls: int) -> AgentId:
        ids = tuple(map(AgentId, parents))
        action = self.start(Expand(ids, "self-edit"))
        self.call(action, calls, IMPROVE)
        return self._birth(ids, action)

    def stillborn(self, parent: int, calls: int) -> ActionId:
        action = self.start(Expand((AgentId(parent),), "self-edit"))
        self.call(action, calls, IMPROVE)
        self.run.append(
            AgentStillborn(action, Stillborn((AgentId(parent),), "self-edit", "check", "does not start"))
        )
        return action

    def lost(self, action: ActionId, *, final: bool = False) -> None:
        self.run.append(ActionLost(action, "the provider was away", final))

    def again(self, action: ActionId, what: Action) -> None:
        self.run.append(ActionStarted(action, what, again=True))

    def refused(self, action: ActionId, code: str = "model_not_found") -> None:
        self.run.append(CallRefused(action, "solve", 404, code, "no model 'gpt-x' here; ask for 'default'"))

    def _birth(self, parents: tuple[AgentId, ...], action: ActionId) -> AgentId:
        files = {"agent.toml": Entry(b"[agent]\n# %d\n" % action)}
        return self.bear(files, parents, rationale="shorter", action=action)


def small(folder: Path, usd: float | None = 0.50) -> PaidRun:
    """Three agents, 20 calls of 0.01 USD, every kind of failure."""
    made = PaidRun(folder, usd)
    made.evaluated(SEED, 0, calls=3)
    made.child(0, calls=2)
    made.stillborn(0, calls=4)
    first = made.evaluated(1, 0, calls=1, verdict=Verdict.INVALID)
    made.again(first, Evaluate(AgentId(1), TASKS[0]))
    made.call(first, 2)
    made.grade(first, 1, 0, Verdict.UNRESOLVED)
    given_up = made.start(Evaluate(AgentId(1), TASKS[1]))
    made.call(given_up, 1)
    made.lost(given_up, final=True)
    made.child(1, 0, calls=5)
    made.call(made.start(Expand((AgentId(2),), "self-edit")), 2, IMPROVE)
    return made
