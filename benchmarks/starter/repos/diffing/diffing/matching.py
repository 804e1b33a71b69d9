"""Find the longest common subsequence of two lists."""


def matching_blocks(a, b):
    """Return ``(a_start, b_start, length)`` for each run that both lists have in common, in order."""
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    tail = _common_tail(a, b, start)
    pairs = [(index, index) for index in range(start)]
    a_middle, b_middle = a[start : len(a) - tail], b[start : len(b) - tail]
    pairs += [(start + i, start + j) for i, j in _common_pairs(a_middle, b_middle)]
    pairs += [(len(a) - k, len(b) - k) for k in range(tail, 0, -1)]
    return _runs(pairs)


def _common_tail(a, b, start):
    """Return how many lines at the end are equal, the common start not counted again."""
    longest = min(len(a), len(b)) - start
    tail = 0
    while tail < longest and a[len(a) - tail - 1] == b[len(b) - tail - 1]:
        tail += 1
    return tail


def _common_pairs(a, b):
    """Return the index pairs of a longest common subsequence."""
    lengths = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(len(a) - 1, -1, -1):
        for j in range(len(b) - 1, -1, -1):
            if a[i] == b[j]:
                lengths[i][j] = lengths[i + 1][j + 1] + 1
            else:
                lengths[i][j] = max(lengths[i + 1][j], lengths[i][j + 1])
    pairs, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        if a[i] == b[j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif lengths[i + 1][j] >= lengths[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs


def _runs(pairs):
    runs = []
    for i, j in pairs:
        if runs and runs[-1][0] + runs[-1][2] == i and runs[-1][1] + runs[-1][2] == j:
            runs[-1] = (runs[-1][0], runs[-1][1], runs[-1][2] + 1)
        else:
            runs.append((i, j, 1))
    return runs
