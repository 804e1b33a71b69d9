"""The decision which requests pass through to a provider that speaks the agent's own protocol.

Each protocol has a table of what passes and of what is refused, with the reason. A request that passes travels as the
JSON it is. Translation between different protocols has stricter readers of its own, beside this package.
"""
