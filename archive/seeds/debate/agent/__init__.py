"""An agent of several answers, a debate and a judge (ADAS designs)."""
