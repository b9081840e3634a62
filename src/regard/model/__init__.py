"""The paper's model: numbers in, tensors out; no files."""
