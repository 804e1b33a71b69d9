"""A run on disk and in memory: the event log, the tree folded from it, the agents' source and their traces.

The events are the run; everything else is derived from them. Nothing here waits or uses the network.
"""
