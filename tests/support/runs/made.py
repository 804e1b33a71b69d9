"""Runs of a sweep or a comparison, made by hand: settings, some verdicts, how they ended."""

from dgm.archive.events import RunStopped
from dgm.config import Settings
from dgm.domain import SEED, AgentId, Entry, Evaluate, TaskId, Usage, Verdict
from tests.support.runs.builder import RunBuilder, create_run, make_config

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
    with create_run(folder, make_config(settings, suite), settings.budget.budget(), TASKS) as run:
        made = RunBuilder(run)
        for agent in range(max(1, len(verdicts))):
            made.bear({"agent.toml": Entry(f"# {agent}".encode())}, (SEED,) if agent else ())
        for agent, said in enumerate(verdicts):
            for task, sign in zip(TASKS, said, strict=False):
                action = made.begin(Evaluate(AgentId(agent), task))
                if usd:
                    made.record_call(action, 1, "openai/one", usage=Usage(1, 10, 1, usd))
                verdict = Verdict.RESOLVED if sign == "+" else Verdict.UNRESOLVED
                made.record_verdict(action, agent, task, verdict)
        if reason:
            run.append(RunStopped(reason))
    return folder
