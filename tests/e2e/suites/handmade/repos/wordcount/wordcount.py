def count(text, least=1):
    """How often each word of at least so many letters occurs, whatever its case."""
    found = {}
    for word in text.lower().split():
        if len(word) >= least:
            found[word] = found.get(word, 0) + 1
    return found
