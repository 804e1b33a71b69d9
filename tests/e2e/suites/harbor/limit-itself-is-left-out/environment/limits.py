def reaches(number, limit):
    """Whether the number is as large as the limit, or larger."""
    return number > limit
