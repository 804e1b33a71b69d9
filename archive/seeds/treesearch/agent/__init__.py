"""An agent that searches a tree of edits with value estimates and hindsight (SWE-Search)."""
