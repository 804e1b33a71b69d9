"""What a child can be made for where one failure is diagnosed: the kinds of entry, in one word each.

Source: arXiv:2505.22954 (the Darwin Gödel Machine), whose program (github.com/jennyzzt/dgm, ``choose_selfimproves``)
calls them a random unresolved task, ``solve_empty_patches``, ``solve_stochasticity`` and ``solve_contextlength``.
"""

UNRESOLVED = "unresolved"
"""One task that the agent did not solve."""
EMPTY = "empty"
"""Tasks on which it left nothing at all."""
STOCHASTIC = "stochastic"
"""That it may solve a task at one time and not at another."""
CONTEXT = "context"
"""Tasks on which it said more to its model than that can read."""

ENTRIES = (UNRESOLVED, EMPTY, STOCHASTIC, CONTEXT)
EMPTY_SHARE = 0.1
"""Of an agent's tasks: with fewer empty patches they are no entry."""
SHARE = 0.25
"""How often each kind but the first is taken where it can be, looked at in the order empty, stochastic, context."""
