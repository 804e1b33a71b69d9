"""Renderers of views: formatters, safe text and diffs for every front end, and the terminal's output."""
