"""What users look at, as data: one frozen model per screen, with raw numbers.

``--json`` prints a view; the terminal, the browser and the report only render it. No renderer computes a fact.
"""
