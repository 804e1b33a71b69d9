"""One module for each provider: its record, and how a connection to it is opened.

A vendor's package is imported inside the function that opens it.
"""
