"""Requests and replies between an agent's protocol and a model that has another one, or none."""
