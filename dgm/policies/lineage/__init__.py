"""The policy ``lineage``: one Gaussian state per agent, joined along the tree, and expected improvement.

The model. Agent i has a skill θ and a heritable drift μ, on the logit scale; task t has a difficulty b:

    P(i solves t) = σ(θ_i - b_t)        b_t ~ N(0, 4)
    θ_child = a + ρ (θ_parent - a) + μ_parent + N(0, q)
    μ_child = 0.95 μ_parent + 0.05 μ̄ + N(0, d)

with a the seed's skill, θ_seed ~ N(0, 1) and μ_seed ~ N(μ̄, 4.5 d). A child keeps the share ρ of what its parent
gained over the seed; of two parents the second is ignored. Some children are broken: they solve with probability 0.01,
whatever their parents' skill.
ρ, q, d, the rates of broken children, μ̄ and the difficulties are learned in the run.

Inference. Verdicts are made Gaussian about the current means (``evidence``); two passes over the tree (``passes``) then
give every agent's posterior exactly; every 20 results the shared parameters are learned anew (``hyper``,
``posterior``). State changes only when events are observed (``fold``).

Decisions (``outlook``, ``rules``). A parent is worth its line's expected improvement on the best agent; lines further
behind than 1.5 standard deviations wait as long as any is nearer. An evaluation is worth the expected gain from finding
that an agent and its rival change places; the gate compares the two per unit of cost. A task that has had more than
about a fifth of all results is worth little. Handed out is the agent of the highest lower bound, or the seed, whose
bound has a small bonus against an agent of the first generations and a malus against a later one. Nothing is drawn at
random but a jitter among tasks; of agents that promise the same but for rounding the first is taken (``ties``).

Of the first twenty children (at most one for 40 evaluations of the budget), those that have solved nothing are tried
three times, after a first result on tasks that their parents solve. Where eight have solved nothing in three results or
more, edits are taken to break the agent often: the rate of broken children is learned from a higher belief and in more
steps, and who failed at everything has children only if its parent did not. From six on the seed's bonus or malus gives
way, in steps, to a malus of 0.6 against any generation. Budgets below 320 evaluations seldom come to that.

Source: a design of this project. It rests on Gaussian belief propagation (J. Pearl, 1988), the Rasch model (G. Rasch,
1960), Laplace's approximation, and expected improvement (D. Jones, M. Schonlau and W. Welch, 1998); it takes
the place of clade counts (arXiv:2510.21614).
"""

from dgm.policies.composed import Composition
from dgm.policies.lineage.rules import (
    InformativeTask,
    LineageEvaluation,
    LineageGate,
    LineageParent,
    LineageRecommendation,
)

LINEAGE = Composition("lineage", "lineage", "lineage", "informative", "lineage")

__all__ = [
    "LINEAGE",
    "InformativeTask",
    "LineageEvaluation",
    "LineageGate",
    "LineageParent",
    "LineageRecommendation",
]
