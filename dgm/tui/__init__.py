"""``dgm browse``: a run in the terminal, on textual's widgets."""
