"""One module for each provider: its record, and the opening of its connection.

A vendor's package is imported inside the function that opens it.
"""
