"""The command line: parsing, printing and exit codes; all else is asked of the layers below."""
