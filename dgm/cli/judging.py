"""``dgm evaluate``, ``dgm solve`` and ``dgm replay``, derived from their functions in ``dgm.api``."""

import sys
from pathlib import Path

from dgm.api.evaluating import evaluate as evaluate_agents
from dgm.api.replaying import replay as replay_run
from dgm.api.solving import Solution
from dgm.api.solving import solve as solve_problem
from dgm.cli.app import confirm, derive
from dgm.cli.output import print_view, show_patch
from dgm.cli.watching import TerminalWatcher
from dgm.render import fmt
from dgm.render.evaluation_text import incomplete_text, render_evaluation, render_replay
from dgm.render.safe import neutralise, one_line
from dgm.views.evaluation import EvaluationView
from dgm.views.replay import LiveReplay, ReplayView
from dgm.worker.solving import apply_command

PYTHON_ONLY = ("allow_paid", "task", "into")


def _show_evaluation(view: EvaluationView) -> None:
    print_view(render_evaluation(view))
    if text := incomplete_text(view):
        sys.stderr.write(f"{text}\n")


def _show_replay(view: ReplayView) -> None:
    print_view(render_replay(view))
    if isinstance(view, LiveReplay) and view.missing:
        message = one_line(view.message, 1_000)
        sys.stderr.write(f"{message}; {view.missing} missing; repeat the command to continue\n")


def _show_solution(solution: Solution) -> None:
    show_patch(solution.patch)
    applied = solution.applied
    if solution.patch and not applied and _wants(solution):
        solution.apply()
        applied = True
        if solution.patch_file:
            Path(solution.patch_file).unlink(missing_ok=True)
    if applied:
        sys.stdout.write("applied\n")
    elif solution.patch_file:
        command = apply_command(Path(solution.repository), Path(solution.patch_file))
        sys.stdout.write(f"nothing was changed; the change is kept: {neutralise(command)}\n")
    else:
        sys.stdout.write("nothing was changed\n")
    sys.stdout.write(f"{fmt.usage(solution.spend)}\n")


def _wants(solution: Solution) -> bool:
    """Ask whether the change is to be applied; no answer means no: it was shown, and is kept."""
    files = fmt.count(len(solution.changed), "file")
    try:
        return confirm(f"Apply this change to {neutralise(solution.repository)} ({files})?")
    except KeyboardInterrupt:
        sys.stderr.write("\nnobody answered\n")
        return False


evaluate = derive(
    evaluate_agents, _show_evaluation, watcher=TerminalWatcher, trust=True, omit=("allow_paid",)
)
solve = derive(solve_problem, _show_solution, watcher=TerminalWatcher, trust=True, omit=PYTHON_ONLY)
replay = derive(replay_run, _show_replay, watcher=TerminalWatcher, trust=True, omit=PYTHON_ONLY)
