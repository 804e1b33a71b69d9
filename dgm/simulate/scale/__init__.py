"""One head and many nodes on virtual time: what share of the slots is busy, and where one head ends.

No policy is compared here and no verdict made; what the head takes for a step is measured on this machine.
"""
