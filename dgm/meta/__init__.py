"""How a child is made: the agent contract, evidence, operators and vetting."""
