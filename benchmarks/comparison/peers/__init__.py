"""One file a toolkit; each runs in that toolkit's own environment and imports nothing of regard but its own files."""
