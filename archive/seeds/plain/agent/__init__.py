"""A plain coding agent: a bash tool, an edit tool, one loop. Standard library only, Python 3.9 or newer."""
