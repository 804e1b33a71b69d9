"""What a finished or running search found, for others to read: one page, figures, and the same facts for programs."""
