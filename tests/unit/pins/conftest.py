"""What all pins need: a key for each provider."""

import pytest

from tests.support.pins.door import KEYS


@pytest.fixture(autouse=True)
def _keys(monkeypatch):
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)
