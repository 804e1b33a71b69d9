"""Sandboxes on the nodes of a Ray cluster; loop, gateway, journal, commits and grading stay on the head.

``engine`` is the head's side. ``cluster`` sets room aside and starts one ``node`` actor on each node, which opens
sandboxes with the node's own engine. ``connection`` carries their sockets to the head. ``reaper`` cleans up after an
actor.
"""
