"""A small text template engine."""

from .engine import Engine, render_string
from .errors import TemplateError, TemplateNotFound, TemplateSyntaxError, UndefinedName

__all__ = [
    "Engine",
    "TemplateError",
    "TemplateNotFound",
    "TemplateSyntaxError",
    "UndefinedName",
    "render_string",
]
