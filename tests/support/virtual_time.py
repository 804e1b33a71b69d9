"""The simulator's event loop, under the name by which tests know it."""

from dgm.simulation.virtual import clock, run

__all__ = ["clock", "run"]
