"""The kinds of change that the offline model can make to a scaffold's source.

Each is a pure function from the scaffold's files to its changed files (``source.Transform``). It finds its place by
structure rather than by exact text, so that it applies to agents that were changed before. ``dgm.offline.catalogue``
lists the kinds with weights and reasons.
"""
