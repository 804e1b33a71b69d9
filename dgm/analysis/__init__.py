"""Views of an archive: costs, failures, lineages, the best agent, forecasts and summaries of a run."""
