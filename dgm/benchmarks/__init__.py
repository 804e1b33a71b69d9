"""Task suites and their hidden grading: the shipped suites, and the layout of a suite's folder."""
