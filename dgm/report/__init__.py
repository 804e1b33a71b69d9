"""The findings of a finished or running search for others to read: one page, figures, and a record for programs."""
