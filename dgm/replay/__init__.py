"""Record and replay, for programs: what a run did is done again and compared (``docs/replay.md``).

``decisions``, ``lineage`` and ``evaluations`` need no key and never write into the run; the ``live_`` ones ask a model
for real, and record what they pay for in a run of its own.
"""

from dgm.replay.live import Live, live_evaluations, live_lineage, live_settings
from dgm.replay.recorded import decisions, evaluations, lineage
from dgm.search.replay.decisions import Decision, Decisions
from dgm.search.replay.evaluations import EvaluationAgain, How
from dgm.search.replay.findings import Divergence, Match
from dgm.search.replay.lineage import StepAgain
from dgm.search.replay.live import DONE, LiveEvaluations, LiveLineage, LiveStep

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
