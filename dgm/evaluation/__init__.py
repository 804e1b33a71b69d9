"""Evaluations outside of a search: of chosen agents, on holdout tasks, of predictions, and with a control."""
