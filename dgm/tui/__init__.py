"""The browser: a run in the terminal, while it is written and afterwards. It reads, and never writes a run."""
