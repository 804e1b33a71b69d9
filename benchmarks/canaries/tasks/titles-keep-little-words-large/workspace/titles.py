"""Titles of books."""


def title(text):
    """Return a title with large first letters."""
    return " ".join(word.capitalize() for word in text.split())
