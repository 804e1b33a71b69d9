"""Rules that decide what a search does next: pure functions of the tree and a random stream."""
