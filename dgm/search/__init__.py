"""A search: the loop that asks the policy, the worker that performs, budgets, and what is said at the end."""
