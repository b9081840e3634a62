"""The four tokens that are not text, by id; the same in every vocabulary."""

PAD = 0
UNKNOWN = 1  # never comes up in practice: what has no subword goes by bytes
START = 2
END = 3
