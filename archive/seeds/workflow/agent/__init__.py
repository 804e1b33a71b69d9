"""An agent with a fixed order of work: localise, repair, validate (Agentless)."""
