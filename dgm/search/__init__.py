"""A search: the loop that asks the policy, the worker that performs actions, budgets, and the final summary."""
