"""The training report: one HTML page without network that shows how a training went; never torch."""
