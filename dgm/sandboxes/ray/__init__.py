"""Sandboxes on the nodes of a Ray cluster; loop, gateway, journal, commits and grading stay on the head.

``engine`` is the head's side: it places a ``host`` for each sandbox, sends what a node lacks to its ``keeper``, and
opens the ``door`` to the gateway. A node's ``keeper`` holds the ``cache`` of shown folders and the ``forwarder`` of its
sandboxes' sockets. ``cluster`` is the seam to Ray, which ``ray_cluster`` alone imports. ``wire`` has the values that
cross, ``resuming`` the connection that outlives a cut.
"""
