"""The compiled part: search's forward pass for processors that have it; everything works without, but slower."""
