"""The policy ``lineage``: one Gaussian state per agent, joined along the tree, and expected improvement.

The model. Agent i has a skill θ and a heritable drift μ, on the logit scale; task t has a difficulty b:

    P(i solves t) = σ(θ_i - b_t)        b_t ~ N(0, 4)
    θ_child = a + ρ (θ_parent - a) + μ_parent + N(0, q)
    μ_child = 0.95 μ_parent + 0.05 μ̄ + N(0, d)

where a is the seed's skill, θ_seed ~ N(0, 1) and μ_seed ~ N(μ̄, 4.5 d). A child keeps the share ρ of its parent's gain
over the seed; the second of two parents is ignored. Several roots are so many independent seeds, each with its own a;
all trees share the parameters and the tasks. Some children are broken: they solve with probability 0.01,
whatever their parents' skill. ρ, q, d, the rates of broken children, μ̄ and the difficulties are learned in the run.

Inference. Verdicts are made Gaussian about the current means (``learn``). Two passes over the tree (``posterior``)
then give every agent's posterior exactly. Every 20 results the shared parameters are learned anew (``learn``). State
changes only when events are observed.

Decisions (``decide``):

* A parent is worth its line's expected improvement on the best agent. Lines further behind than 1.5 standard deviations
  wait as long as any is nearer.
* An evaluation is worth the expected gain from finding that an agent and its rival change places.
* The gate compares the two per unit of cost.
* A task with more than about a fifth of all results is worth little.
* The agent with the highest lower bound is handed out, or the seed. The seed's bound has a small bonus against an agent
  of the first generations and a malus against a later one.
* Only a jitter among tasks is random. Among agents that promise the same except for rounding, the first is taken.

The first twenty children (at most one for 40 evaluations of the budget) are watched. Those that have solved nothing are
tried three times, after a first result on tasks that their parents solve. If eight have solved nothing in three results
or more, edits are assumed to break the agent often. Then the rate of broken children is learned from a higher belief
and in more steps, and an agent that failed everything has children only if its parent did not. From six on the seed's
bonus or malus changes, in steps, to a malus of 0.6 against any generation. Budgets below 320 evaluations seldom reach
that.

Source: a design of this project. It rests on Gaussian belief propagation (J. Pearl, 1988), the Rasch model (G. Rasch,
1960), Laplace's approximation, and expected improvement (D. Jones, M. Schonlau and W. Welch, 1998). It replaces clade
counts (arXiv:2510.21614).
"""

from dgm.policies.lineage.decide import Lineage, recommend

__all__ = ["Lineage", "recommend"]
