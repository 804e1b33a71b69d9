"""Paths and queries as text."""

from urllib.parse import quote, unquote


def quote_part(text):
    """Quote one part of a path; a slash in it is quoted too."""
    return quote(text, safe="")


def quote_path(text):
    """Quote a path of several parts; the slashes between them stay."""
    return "/".join(quote_part(part) for part in text.split("/"))


def split_path(path):
    """Return the unquoted parts of a path without its query; ``/`` has one empty part."""
    path = path.partition("?")[0].partition("#")[0]
    return [unquote(part) for part in path.lstrip("/").split("/")]


def join_paths(prefix, path):
    """Put a path behind a prefix, with one slash between them."""
    return prefix.rstrip("/") + "/" + path.lstrip("/")


def encode_query(params):
    """Return ``?a=1&b=2``, sorted by name, lists as repeated names; nothing for no parameters."""
    pairs = []
    for name, value in sorted(params.items()):
        values = value if isinstance(value, (list, tuple)) else [value]
        pairs += [f"{quote_part(name)}={quote_part(str(item))}" for item in values]
    return "?" + "&".join(pairs) if pairs else ""
