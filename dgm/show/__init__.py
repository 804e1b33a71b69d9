"""Facts of a run as lines of text with tones: one form for commands, reports and the browser."""
