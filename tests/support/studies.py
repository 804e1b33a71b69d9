"""A small study, and results of trials that were not performed."""

from dgm.simulation.study import Study
from dgm.simulation.trial import SHARES, Result

STUDY = Study(("random", "hgm"), ("drift", "broken"), (0, 1), budget=64)


def result(final, *, curve=None, root=0.2, best=0.9, recommended=3):
    points = curve or (final,) * len(SHARES)
    return Result(final, tuple(points), root, best, recommended, 1, 20, 19, 45, 0, "goal reached", 1.0)


def silent(done, of):
    pass
