"""Evaluations that a person asks for: of chosen agents, on holdout tasks, of predictions, and with a control."""
