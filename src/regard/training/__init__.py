"""Training: the loop of §5 and what it stands on."""
