"""The page of ``dgm serve``: runs in a browser, read only."""
