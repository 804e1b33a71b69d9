def highs(heights):
    pass


def lows(heights):
    pass
