"""Exports of an archive for other programs: the tree as a graph, tables, a git clone, an agent that runs by itself."""
