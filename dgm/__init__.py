"""Evolve coding agents: a growing archive of agents that edit their own source.

The public names are re-exported lazily by the modules that own them; importing ``dgm`` itself does no work.
"""

__version__ = "0.1.0"
