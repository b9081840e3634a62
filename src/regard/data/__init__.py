"""Data: token ids on disk and in batches, with numpy."""
