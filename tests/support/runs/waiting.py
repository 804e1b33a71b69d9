"""A run with children that wait for a person."""

from dgm.archive.events import ActionStarted, AgentStillborn, RunStarted
from dgm.archive.live import ApprovalAnswer, put_answer
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import ActionId, AgentId, Born, Budget, Entry, Expand, Stillborn
from dgm.search.prepare import RunController

SETTINGS = Settings(model="offline", gates={"approve": True, "approve_s": 3600.0}, vetting={"syntax": False})


def make_waiting_run(folder):
    """Makes a run with agents 0 and 1 (of action 1), children 2 and 3 that wait, and 4 that was rejected."""
    config = {"settings": SETTINGS.model_dump(mode="json"), "sandbox": "bubblewrap"}
    with Run.create(folder, config) as run:
        run.append(RunStarted(Budget(evaluations=9), ()))
        run.append(run.birth(Born((), "seed", commit(run, b"seed\n"), ""), ActionId(0)))
        controller = RunController(run, SETTINGS)
        for number in (1, 2, 3, 4):
            action = ActionId(number)
            run.append(ActionStarted(action, Expand((AgentId(0),), "op")))
            child = Born(
                (AgentId(0),), "op", commit(run, b"child\n%d\n" % number, (0,)), f"why\x1b[31m {number}"
            )
            run.append(controller.birth(action, child))
            if number == 1:
                put_answer(run.folder, action, ApprovalAnswer(True))
                controller.append(controller.answered(0.0))
        dead = Stillborn(
            (AgentId(0),), "op", "rejected", "too\x1b[31m\nlong" + 999 * " x", decided="a person"
        )
        controller.append(AgentStillborn(ActionId(4), dead))
    return folder


def commit(run, text, parents=()):
    return run.repository.commit(
        {"a.py": Entry(text)}, [run.tree.agents[parent].commit for parent in parents]
    )
