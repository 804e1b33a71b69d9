"""Perform the actions of a search: make a child, vet it, and evaluate an agent on a task, in sandboxes."""
