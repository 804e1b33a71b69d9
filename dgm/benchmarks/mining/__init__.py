"""Tasks out of the history of a git repository, and out of bugs injected into it."""
