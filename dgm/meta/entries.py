"""The kinds of entry for which a child can be made, where one failure is diagnosed.

Source: arXiv:2505.22954 (the Darwin Gödel Machine), whose program (github.com/jennyzzt/dgm, ``choose_selfimproves``)
calls them a random unresolved task, ``solve_empty_patches``, ``solve_stochasticity`` and ``solve_contextlength``.
"""

UNRESOLVED = "unresolved"
"""One task that the agent did not solve."""
EMPTY = "empty"
"""Tasks on which the agent left an empty patch."""
STOCHASTIC = "stochastic"
"""The agent's varying success on the same task."""
CONTEXT = "context"
"""Tasks on which the agent's conversation exceeded its model's context."""

ENTRIES = (UNRESOLVED, EMPTY, STOCHASTIC, CONTEXT)
EMPTY_SHARE = 0.1
"""Minimum share of an agent's tasks with empty patches; below it they are no entry."""
SHARE = 0.25
"""Probability of each kind but the first, where it is possible, tried in the order empty, stochastic, context."""
