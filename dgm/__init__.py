"""Evolve coding agents: a growing archive of agents that edit their own source.

The public names are imported when they are first asked for; importing ``dgm`` itself does no work.
"""

# As typing has it, which takes longer to import than all the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from dgm import replay
    from dgm.api.ablating import Ablation, Effect, PartEffect, ablate
    from dgm.api.archive import clean, remove, unpack, verify
    from dgm.api.calibrating import CalibrateArguments, CalibratedSuite, calibrate_suite
    from dgm.api.comparing import ComparisonView, compare
    from dgm.api.evaluating import (
        EvaluateArguments,
        EvaluationView,
        GradeArguments,
        evaluate,
        evaluate_async,
        grade_predictions,
    )
    from dgm.api.machine import MachineView, doctor, settings, variables
    from dgm.api.runs import runs
    from dgm.api.sandboxes import build_images, clean_sandboxes, images
    from dgm.api.search import (
        Budget,
        Evolution,
        EvolveArguments,
        ResumeArguments,
        evolve,
        evolve_async,
        open,  # noqa: A004  (as gzip.open)
    )
    from dgm.api.seeds import AgentCheckView, check_agent, init_agent, seed_agents
    from dgm.api.simulating import Simulation, families, simulate
    from dgm.api.solving import Solution, SolveArguments, solve, solve_async
    from dgm.api.suites import (
        MiningOptions,
        SuiteView,
        filter_suite,
        import_suite,
        merge_suites,
        mine_benchmark,
        split_suite,
        suite,
        suites,
    )
    from dgm.api.sweeping import SweepView, plan_sweep, sweep
    from dgm.api.trusting import trust

__version__ = "0.1.0"
__all__ = [
    "Ablation",
    "AgentCheckView",
    "Budget",
    "CalibrateArguments",
    "CalibratedSuite",
    "ComparisonView",
    "Effect",
    "EvaluateArguments",
    "EvaluationView",
    "Evolution",
    "EvolveArguments",
    "GradeArguments",
    "MachineView",
    "MiningOptions",
    "PartEffect",
    "ResumeArguments",
    "Simulation",
    "Solution",
    "SolveArguments",
    "SuiteView",
    "SweepView",
    "__version__",
    "ablate",
    "build_images",
    "calibrate_suite",
    "check_agent",
    "clean",
    "clean_sandboxes",
    "compare",
    "doctor",
    "evaluate",
    "evaluate_async",
    "evolve",
    "evolve_async",
    "families",
    "filter_suite",
    "grade_predictions",
    "images",
    "import_suite",
    "init_agent",
    "merge_suites",
    "mine_benchmark",
    "open",
    "plan_sweep",
    "remove",
    "replay",
    "runs",
    "seed_agents",
    "settings",
    "simulate",
    "solve",
    "solve_async",
    "split_suite",
    "suite",
    "suites",
    "sweep",
    "trust",
    "unpack",
    "variables",
    "verify",
]

_PLACES = {
    "ablating": ("Ablation", "Effect", "PartEffect", "ablate"),
    "archive": ("clean", "remove", "unpack", "verify"),
    "calibrating": ("CalibrateArguments", "CalibratedSuite", "calibrate_suite"),
    "comparing": ("ComparisonView", "compare"),
    "evaluating": (
        "EvaluateArguments",
        "EvaluationView",
        "GradeArguments",
        "evaluate",
        "evaluate_async",
        "grade_predictions",
    ),
    "search": ("Budget", "Evolution", "EvolveArguments", "ResumeArguments", "evolve", "evolve_async", "open"),
    "machine": ("MachineView", "doctor", "settings", "variables"),
    "runs": ("runs",),
    "seeds": ("AgentCheckView", "check_agent", "init_agent", "seed_agents"),
    "solving": ("Solution", "SolveArguments", "solve", "solve_async"),
    "simulating": ("Simulation", "families", "simulate"),
    "sandboxes": ("build_images", "clean_sandboxes", "images"),
    "suites": (
        "MiningOptions",
        "SuiteView",
        "filter_suite",
        "import_suite",
        "merge_suites",
        "mine_benchmark",
        "split_suite",
        "suite",
        "suites",
    ),
    "sweeping": ("SweepView", "plan_sweep", "sweep"),
    "trusting": ("trust",),
}
"""Modules of ``dgm.api`` and the public names in them."""


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name == "replay":
        return import_module("dgm.replay")
    for module, names in _PLACES.items():
        if name in names:
            return getattr(import_module(f"dgm.api.{module}"), name)
    raise AttributeError(f"module 'dgm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
