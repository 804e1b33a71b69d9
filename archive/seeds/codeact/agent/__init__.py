"""An agent whose actions are Python code in a persistent interpreter (CodeAct)."""
