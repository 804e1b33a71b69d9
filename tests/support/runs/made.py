"""Runs of a sweep or a comparison, made by hand: settings, some verdicts, how they ended."""

from dgm.archive.events import ActionStarted, ModelCalled, RunStarted, RunStopped, TaskGraded
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import (
    SEED,
    ActionId,
    AgentId,
    Born,
    Digest,
    Entry,
    Evaluate,
    Evaluation,
    Expand,
    TaskId,
    Usage,
    Verdict,
)

TASKS = tuple(TaskId(f"task-{number}") for number in range(8))


def make_run(folder, settings=None, verdicts=(), *, reason="goal reached", suite="1", usd=0.0):
    """Makes a run and closes it.

    Args:
        folder: of the run.
        settings: resolved; the defaults with the offline model else.
        verdicts: for each agent, the seed first, a text such as ``+-+`` of its verdicts on the first tasks.
        reason: how it ended; empty where it did not.
        suite: version of its benchmark.
        usd: what each evaluation cost.
    """
    settings = settings or Settings(model="offline")
    config = {
        "id": "f" * 16,
        "settings": settings.model_dump(mode="json"),
        "sandbox": "bubblewrap",
        "versions": {"benchmark": suite},
    }
    with Run.create(folder, config) as run:
        run.append(RunStarted(settings.budget.budget(), TASKS))
        for agent in range(max(1, len(verdicts))):
            _birth(run, agent)
        for agent, said in enumerate(verdicts):
            for task, sign in zip(TASKS, said, strict=False):
                _grade(
                    run, AgentId(agent), task, Verdict.RESOLVED if sign == "+" else Verdict.UNRESOLVED, usd
                )
        if reason:
            run.append(RunStopped(reason))
    return folder


def _birth(run, agent):
    parents = (SEED,) if agent else ()
    action = ActionId(0)
    if agent:
        action = run.tree.next_action
        run.append(ActionStarted(action, Expand(parents, "self-edit")))
    source = {"agent.toml": Entry(f"# {agent}".encode())}
    commit = run.repository.commit(source, [run.tree.agents[0].commit] if agent else [])
    run.append(run.birth(Born(parents, "self-edit" if agent else "seed", commit, "made"), action))


def _grade(run, agent, task, verdict, usd):
    action = run.tree.next_action
    run.append(ActionStarted(action, Evaluate(agent, task)))
    if usd:
        nothing = Digest("0" * 64)
        run.append(ModelCalled(action, 1, "openai/one", "solve", nothing, nothing, Usage(1, 10, 1, usd)))
    run.append(TaskGraded(action, Evaluation(agent, task, 0, verdict, "made")))
