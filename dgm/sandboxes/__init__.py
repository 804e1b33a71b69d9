"""Throw-away machines in which untrusted code runs: Docker where an engine answers, else bubblewrap.

``choose.choose`` picks the engine; everything else is behind the protocols ``SandboxEngine`` and ``Sandbox``.
Calls on an engine raise ``Infrastructure`` if it fails, which docstrings do not repeat.
"""
