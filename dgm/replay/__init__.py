"""Record and replay for programs: repeat parts of a run and compare the results (``docs/results.md``).

``decisions``, ``lineage`` and ``evaluations`` need no key and never write into the run. The ``live_`` functions
call a real model, and record the paid calls in a run of their own.
"""

from dgm.replay.decisions import Decision, Decisions
from dgm.replay.evaluations import EvaluationAgain, How
from dgm.replay.findings import Divergence, Match
from dgm.replay.lineage import StepAgain
from dgm.replay.live import Live, live_evaluations, live_lineage, live_settings
from dgm.replay.live_steps import DONE, LiveEvaluations, LiveLineage, LiveStep
from dgm.replay.recorded import decisions, evaluations, lineage

__all__ = [
    "DONE",
    "Decision",
    "Decisions",
    "Divergence",
    "EvaluationAgain",
    "How",
    "Live",
    "LiveEvaluations",
    "LiveLineage",
    "LiveStep",
    "Match",
    "StepAgain",
    "decisions",
    "evaluations",
    "lineage",
    "live_evaluations",
    "live_lineage",
    "live_settings",
]
