"""A coding agent for real models: tools or text actions, one loop. Standard library only, Python 3.8 or newer."""
