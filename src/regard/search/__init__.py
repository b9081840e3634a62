"""Search: from a model to hypotheses."""
