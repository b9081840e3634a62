"""A package, so that its files may be called like others: one test file a verb."""
