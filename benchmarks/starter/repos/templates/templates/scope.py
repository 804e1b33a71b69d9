"""The names that a template can see, in nested layers."""

from .errors import UndefinedName


class Scope:
    """A stack of name tables; the innermost table wins."""

    def __init__(self, names=None):
        self._layers = [dict(names or {})]

    def push(self, **names):
        """Open an inner layer."""
        self._layers.append(dict(names))

    def pop(self):
        """Close the innermost layer."""
        if len(self._layers) == 1:
            raise IndexError("the outermost layer cannot be closed")
        self._layers.pop()

    def set(self, name, value):
        """Bind ``name`` in the innermost layer."""
        self._layers[-1][name] = value

    def assign(self, name, value):
        """Rebind ``name`` in the layer that has it, else bind it in the innermost one."""
        for layer in reversed(self._layers):
            if name in layer:
                layer[name] = value
                return
        self.set(name, value)

    def lookup(self, name):
        """Return the value bound to ``name``."""
        for layer in reversed(self._layers):
            if name in layer:
                return layer[name]
        raise UndefinedName(f"{name!r} is not defined")

    def flat(self):
        """Return all visible names in one new table."""
        names = {}
        for layer in self._layers:
            names.update(layer)
        return names
