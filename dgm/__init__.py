"""Evolve coding agents: a growing archive of agents that edit their own source.

The public names are imported when they are first asked for; importing ``dgm`` itself does no work.
"""

# As typing has it, which takes longer to import than all the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from dgm import replay
    from dgm.api.ablating import agent_ablate
    from dgm.api.batching import BatchView, evolve_batch
    from dgm.api.control import approve, stop
    from dgm.api.evaluating import evaluate
    from dgm.api.exporting import export
    from dgm.api.machine import build_images, clean, doctor, settings
    from dgm.api.mining import benchmark_mine
    from dgm.api.own_agent import agent_check, agent_init
    from dgm.api.report import report
    from dgm.api.runs import runs
    from dgm.api.search import Evolution, evolve, open  # noqa: A004
    from dgm.api.simulating import Simulation, families, simulate
    from dgm.api.solving import Solution, solve
    from dgm.api.suites import (
        benchmark_fetch,
        benchmark_list,
        benchmark_make,
        benchmark_show,
        benchmark_verify,
    )
    from dgm.api.trusting import trust
    from dgm.views.evaluation import EvaluationView

__version__ = "0.1.0"
__all__ = [
    "BatchView",
    "EvaluationView",
    "Evolution",
    "Simulation",
    "Solution",
    "__version__",
    "agent_ablate",
    "agent_check",
    "agent_init",
    "approve",
    "benchmark_fetch",
    "benchmark_list",
    "benchmark_make",
    "benchmark_mine",
    "benchmark_show",
    "benchmark_verify",
    "build_images",
    "clean",
    "doctor",
    "evaluate",
    "evolve",
    "evolve_batch",
    "export",
    "families",
    "open",
    "replay",
    "report",
    "runs",
    "settings",
    "simulate",
    "solve",
    "stop",
    "trust",
]

_PLACES = {
    "ablating": ("agent_ablate",),
    "exporting": ("export",),
    "batching": ("BatchView", "evolve_batch"),
    "control": ("approve", "stop"),
    "report": ("report",),
    "evaluating": (
        "EvaluationView",
        "evaluate",
    ),
    "search": ("Evolution", "evolve", "open"),
    "machine": ("build_images", "clean", "doctor", "settings"),
    "mining": ("benchmark_mine",),
    "runs": ("runs",),
    "own_agent": ("agent_check", "agent_init"),
    "simulating": ("Simulation", "families", "simulate"),
    "solving": ("Solution", "solve"),
    "suites": (
        "benchmark_fetch",
        "benchmark_list",
        "benchmark_make",
        "benchmark_show",
        "benchmark_verify",
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
