"""An agent whose orchestrator leads sub-agents that a bandit chooses (BOAD)."""
