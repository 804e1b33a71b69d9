"""Agents that each do one hostile thing, and the stage on which a real search lets them do it."""
