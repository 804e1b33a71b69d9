"""An agent that builds its own tools while it works (Live-SWE-agent)."""
