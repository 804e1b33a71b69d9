"""Creation of children: the agent contract, evidence, operators and vetting."""
