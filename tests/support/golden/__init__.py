"""The golden verdicts: patches with the verdict, the kind of reason and the score that each must keep."""
