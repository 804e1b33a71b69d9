"""The filters that values pass through on their way into the text."""

import textwrap

from .errors import TemplateSyntaxError

_FILTERS = {}


def register(name):
    """Return a decorator that makes a function known as the filter ``name``."""

    def remember(function):
        _FILTERS[name] = function
        return function

    return remember


def find_filter(name):
    """Return the filter of that name."""
    try:
        return _FILTERS[name]
    except KeyError:
        raise TemplateSyntaxError(f"unknown filter {name!r}") from None


@register("upper")
def upper(value):
    return str(value).upper()


@register("title")
def title(value):
    return str(value).title()


@register("trim")
def trim(value):
    return str(value).strip()


@register("default")
def default(value, fallback=""):
    """Replace a missing value (``None``) and leave all others, zero too."""
    return fallback if value is None else value


@register("join")
def join(values, separator=", "):
    return separator.join(str(value) for value in values)


@register("length")
def length(value):
    return len(value)


@register("truncate")
def truncate(value, width, ending="..."):
    """Shorten to at most ``width`` characters, the ending included."""
    text = str(value)
    if len(text) <= width:
        return text
    return text[: max(width - len(ending), 0)] + ending[:width]


@register("indent")
def indent(value, width=4):
    """Indent all lines but the first one."""
    first, *rest = str(value).split("\n")
    return "\n".join([first] + [" " * width + line if line else line for line in rest])


@register("wrap")
def wrap(value, width=72):
    return textwrap.fill(str(value), width)


@register("sort")
def sort(values, key=None):
    """Sort a list, by a member of its items if one is named."""
    if key is None:
        return sorted(values)
    return sorted(values, key=lambda item: item[key])


@register("reverse")
def reverse(values):
    return list(values)[::-1]


@register("fixed")
def fixed(value, places=2):
    return f"{value:.{places}f}"


@register("escape")
def escape(value):
    """Make text safe inside HTML."""
    text = str(value)
    for plain, safe in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        text = text.replace(plain, safe)
    return text
