"""Keep templates by name, and render them."""

import logging

from .errors import TemplateError, TemplateNotFound
from .nodes import Parser
from .scope import Scope

log = logging.getLogger(__name__)
MAX_DEPTH = 20


class Engine:
    """A set of named templates that may include and extend one another."""

    def __init__(self, sources=None, **shared):
        self._sources = dict(sources or {})
        self._parsed = {}
        self._shared = shared
        self._depth = 0

    def add(self, name, source):
        """Add or replace a template."""
        self._sources[name] = source
        self._parsed.pop(name, None)

    def names(self):
        """Return the names of all templates, sorted."""
        return sorted(self._sources)

    def render(self, name, /, **values):
        """Render a template with the shared values and the ones given here."""
        return self.render_named(name, {**self._shared, **values})

    def render_named(self, name, values):
        """Render a template with exactly these names."""
        if self._depth >= MAX_DEPTH:
            raise TemplateError(f"templates are nested deeper than {MAX_DEPTH}")
        self._depth += 1
        try:
            return self._render(self._template(name), Scope(values))
        finally:
            self._depth -= 1

    def _render(self, template, scope):
        blocks = dict(template.blocks)
        seen = 1
        while template.parent is not None:
            if seen >= MAX_DEPTH:
                raise TemplateError("templates extend one another in a circle")
            template = self._template(template.parent.value(scope))
            blocks = {**template.blocks, **blocks}
            seen += 1
        return template.body.render(scope, self, blocks)

    def _template(self, name):
        if name not in self._parsed:
            if name not in self._sources:
                raise TemplateNotFound(f"no template {name!r}")
            log.info("parse template %s (%d characters)", name, len(self._sources[name]))
            self._parsed[name] = Parser(self._sources[name]).parse()
        return self._parsed[name]


def render_string(source, /, **values):
    """Render a template given as text."""
    return Engine({"": source}).render("", **values)
