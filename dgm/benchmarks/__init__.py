"""Task suites and their hidden grading; which suites exist and what a folder of one looks like."""
