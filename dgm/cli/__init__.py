"""The command line: parsing, printing and exit codes; the layers below do the rest."""
