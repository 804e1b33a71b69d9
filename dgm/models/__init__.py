"""Models behind one protocol: the offline repair engine, recordings, scripts."""
