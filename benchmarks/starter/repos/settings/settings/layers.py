"""Several sets of settings seen as one, later ones first."""

import logging
import re

from . import values
from .errors import BadValue, MissingKey, ReferenceLoop

log = logging.getLogger(__name__)

_REFERENCE = re.compile(r"\$\{([^{}]+)\}")


def merged(base, over):
    """Return ``base`` with the entries of ``over`` on top, section by section."""
    result = dict(base)
    for key, value in over.items():
        if isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        else:
            result[key] = value
    return result


def environment_layer(environ, prefix):
    """Return a layer of the variables whose names begin with ``prefix``.

    ``APP_WEB__PORT`` with the prefix ``APP_`` is ``web.port``: two underscores part section and key, and
    further ones the parts of a section's name. Variables without two underscores are left out.
    """
    tree = {}
    for variable, value in sorted(environ.items()):
        if not variable.startswith(prefix):
            continue
        section, parted, key = variable[len(prefix) :].lower().rpartition("__")
        if parted and section and key:
            tree.setdefault(section.replace("__", "."), {})[key] = value
    return tree


class Settings:
    """Layers of settings; names are ``section.key``, the section may have points itself."""

    def __init__(self, *layers):
        self._layers = list(layers)
        self._overrides = {}
        self._tree = self._merge()

    def _merge(self):
        tree = {}
        for layer in self._layers + [self._overrides]:
            tree = merged(tree, layer)
        log.debug("%d layers, sections: %s", len(self._layers), sorted(tree))
        return tree

    # -- reading

    def raw(self, name):
        """Return the text of a setting as written, references and all."""
        section, _, key = name.rpartition(".")
        try:
            return self._tree[section][key]
        except KeyError:
            raise MissingKey(name) from None

    def text(self, name, _seen=()):
        """Return the text of a setting with its references filled in.

        A reference without a point is to a key of the same section.
        """
        if name in _seen:
            raise ReferenceLoop(" -> ".join([*_seen, name]))
        section = name.rpartition(".")[0]

        def fill(found):
            target = found.group(1).strip()
            if "." not in target:
                target = f"{section}.{target}"
            return self.text(target, (*_seen, name))

        return _REFERENCE.sub(fill, self.raw(name))

    def get(self, name, default=None):
        """Return the text of a setting, or ``default`` if no layer has it."""
        try:
            return self.text(name)
        except MissingKey:
            log.info("%s is not set, taking %r", name, default)
            return default

    def number(self, name):
        """Return a setting as an int or a float."""
        return self._typed(values.as_number, name)

    def flag(self, name, default=False):
        """Return a yes-or-no setting."""
        return self._typed(values.as_bool, name) if name in self else default

    def size(self, name):
        """Return a setting as a number of bytes."""
        return self._typed(values.as_size, name)

    def duration(self, name):
        """Return a setting as a number of seconds."""
        return self._typed(values.as_duration, name)

    def items(self, name):
        """Return a setting as a list of texts."""
        return self._typed(values.as_list, name)

    def _typed(self, convert, name):
        try:
            return convert(self.text(name))
        except BadValue as error:
            raise BadValue(f"{name}: {error}") from error

    def __contains__(self, name):
        section, _, key = name.rpartition(".")
        return key in self._tree.get(section, {})

    def section(self, name):
        """Return a dict of the texts of a section, references filled in."""
        return {key: self.text(f"{name}.{key}") for key in self._tree.get(name, {})}

    def sections(self):
        """Return the names of all sections, sorted."""
        return sorted(self._tree)

    # -- the whole

    def names(self):
        """Return the full names of all settings, sorted."""
        return sorted(f"{section}.{key}" for section, entries in self._tree.items() for key in entries)

    def origin(self, name):
        """Return the index of the layer that a setting comes from, or -1 for an override."""
        section, _, key = name.rpartition(".")
        if key in self._overrides.get(section, {}):
            return -1
        for index in range(len(self._layers) - 1, -1, -1):
            if key in self._layers[index].get(section, {}):
                return index
        raise MissingKey(name)

    def require(self, *names):
        """Raise ``MissingKey`` with all of ``names`` that no layer has, if any."""
        missing = [name for name in names if name not in self]
        if missing:
            raise MissingKey(", ".join(missing))

    def differences(self, other):
        """Return a dict of name to ``(mine, theirs)`` of raw texts that differ; None where not set."""
        found = {}
        for name in sorted({*self.names(), *other.names()}):
            mine = self.raw(name) if name in self else None
            theirs = other.raw(name) if name in other else None
            if mine != theirs:
                found[name] = (mine, theirs)
        return found

    def tree(self):
        """Return the settings of all layers as one dict of dicts, references filled in."""
        return {section: self.section(section) for section in self.sections()}

    # -- changing

    def set(self, name, value):
        """Override a setting in this object only."""
        section, _, key = name.rpartition(".")
        self._overrides.setdefault(section, {})[key] = str(value)
        self._tree = self._merge()

    def reset(self, name):
        """Drop an override; the layers show through again."""
        section, _, key = name.rpartition(".")
        self._overrides.get(section, {}).pop(key, None)
        self._tree = self._merge()
