"""Cheats on mined tasks: changes of a workspace that must not be resolved, a module a language."""
