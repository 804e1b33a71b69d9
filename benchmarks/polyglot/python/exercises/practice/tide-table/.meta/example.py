from itertools import groupby


def _steps(heights):
    position = 0
    for height, same in groupby(heights):
        yield position, height
        position += len(list(same))


def highs(heights):
    steps = list(_steps(heights))
    triples = zip(steps, steps[1:], steps[2:])
    return [here[0] for before, here, after in triples if before[1] < here[1] > after[1]]


def lows(heights):
    return highs([-height for height in heights])
