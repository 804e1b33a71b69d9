"""Everything that follows a run's log and tells another program or a person: trackers, OpenTelemetry, notifications."""
