"""Exercises in Python under any engine: bubblewrap's recipe for them asks for a ``pytest`` on the host."""

from dataclasses import replace

import pytest

from dgm.errors import UserError
from dgm.sandboxes.choose import choose


class PythonEngine:
    """An engine that opens the recipe ``python`` in place of ``polyglot-python``."""

    def __init__(self, name):
        try:
            self._engine = choose(name)
        except UserError as error:
            pytest.skip(f"NOT RUN with {name}: {error}")
        self.name = self._engine.name

    def open(self, spec):
        return self._engine.open(replace(spec, image=spec.image.removeprefix("polyglot-")))
