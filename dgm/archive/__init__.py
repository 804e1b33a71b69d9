"""A run on disk and in memory: the event log, the tree it folds into, the agents' source and their traces.

The events are the run; everything else is derived from them. Nothing here waits or talks to the network.
"""
