"""Texts of strangers as they can be kept: of bounded length, and writable as UTF-8."""


def cut_middle(text: str, most: int) -> str:
    """Return a text of at most ``most`` characters, and a line of dots where its middle was left out."""
    half = most // 2
    return text if len(text) <= most else f"{text[:half]}\n[...]\n{text[-half:]}"


def mend_surrogates(text: str) -> str:
    """Return the text with a question mark for each half of a surrogate pair: JSON can spell one, no file holds it."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
