"""The seams of dgm: the promises of a policy, an operator, a benchmark, a sandbox and a model.

This package has interfaces only, no behaviour. Values that cross a seam come from ``domain`` or ``messages``.
"""

from dgm.protocols.benchmark import Benchmark, Grade, HasEnvironments
from dgm.protocols.builds import Builder, BuildError, BuildRun, BuildSandbox
from dgm.protocols.model import (
    Checked,
    Delivery,
    Journal,
    LentModel,
    Model,
    ModelListener,
    Sleep,
    WireModel,
)
from dgm.protocols.operator import (
    Brief,
    Case,
    Member,
    Needing,
    Needs,
    Operator,
    ProgramEnd,
    Proposal,
)
from dgm.protocols.policy import Policy
from dgm.protocols.sandbox import (
    Completed,
    Mount,
    OpenSandbox,
    Sandbox,
    SandboxEngine,
    SandboxSpec,
    SharedSocket,
)
from dgm.protocols.work import (
    DryCalls,
    InImage,
    Job,
    JobKind,
    OwnTrajectory,
    TaskEnvironment,
    Work,
    Workbench,
)

__all__ = [
    "Benchmark",
    "Brief",
    "BuildError",
    "BuildRun",
    "BuildSandbox",
    "Builder",
    "Case",
    "Checked",
    "Completed",
    "Delivery",
    "DryCalls",
    "Grade",
    "HasEnvironments",
    "InImage",
    "Job",
    "JobKind",
    "Journal",
    "LentModel",
    "Member",
    "Model",
    "ModelListener",
    "Mount",
    "Needing",
    "Needs",
    "OpenSandbox",
    "Operator",
    "OwnTrajectory",
    "Policy",
    "ProgramEnd",
    "Proposal",
    "Sandbox",
    "SandboxEngine",
    "SandboxSpec",
    "SharedSocket",
    "Sleep",
    "TaskEnvironment",
    "WireModel",
    "Work",
    "Workbench",
]
