"""Evolve coding agents: a growing archive of agents that edit their own source.

The public names are imported when they are first asked for; importing ``dgm`` itself does no work.
"""

# As typing has it, which takes longer to import than all the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from dgm import replay
    from dgm.api.ablating import Ablation, Effect, PartEffect, ablate
    from dgm.api.archive import clean, remove, unpack, verify
    from dgm.api.batching import BatchView, evolve_batch
    from dgm.api.control import approve, stop
    from dgm.api.evaluating import evaluate
    from dgm.api.machine import MachineView, doctor, settings, variables
    from dgm.api.report import report
    from dgm.api.runs import runs
    from dgm.api.sandboxes import build_images, clean_sandboxes, images
    from dgm.api.search import Evolution, evolve, open  # noqa: A004
    from dgm.api.seeds import AgentCheckView, check_agent, init_agent, seed_agents
    from dgm.api.solving import Solution, solve
    from dgm.api.studies import (
        StudyArguments,
        StudyView,
        TrialArguments,
        families,
        record_trial,
        study,
    )
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
    from dgm.api.trusting import trust
    from dgm.views.evaluation import EvaluationView

__version__ = "0.1.0"
__all__ = [
    "Ablation",
    "AgentCheckView",
    "BatchView",
    "Effect",
    "EvaluationView",
    "Evolution",
    "MachineView",
    "MiningOptions",
    "PartEffect",
    "Solution",
    "StudyArguments",
    "StudyView",
    "SuiteView",
    "TrialArguments",
    "__version__",
    "ablate",
    "approve",
    "build_images",
    "check_agent",
    "clean",
    "clean_sandboxes",
    "doctor",
    "evaluate",
    "evolve",
    "evolve_batch",
    "families",
    "filter_suite",
    "images",
    "import_suite",
    "init_agent",
    "merge_suites",
    "mine_benchmark",
    "open",
    "record_trial",
    "remove",
    "replay",
    "report",
    "runs",
    "seed_agents",
    "settings",
    "solve",
    "split_suite",
    "stop",
    "study",
    "suite",
    "suites",
    "trust",
    "unpack",
    "variables",
    "verify",
]

_PLACES = {
    "ablating": ("Ablation", "Effect", "PartEffect", "ablate"),
    "archive": ("clean", "remove", "unpack", "verify"),
    "batching": ("BatchView", "evolve_batch"),
    "control": ("approve", "stop"),
    "report": ("report",),
    "evaluating": (
        "EvaluationView",
        "evaluate",
    ),
    "search": ("Evolution", "evolve", "open"),
    "machine": ("MachineView", "doctor", "settings", "variables"),
    "runs": ("runs",),
    "seeds": ("AgentCheckView", "check_agent", "init_agent", "seed_agents"),
    "solving": ("Solution", "solve"),
    "studies": ("StudyArguments", "StudyView", "TrialArguments", "families", "record_trial", "study"),
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
