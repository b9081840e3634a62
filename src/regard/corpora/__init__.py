"""Corpora by name: what they are, how they are fetched, and how they become text files; never torch."""
