"""regard beside other toolkits at the same work; `benchmarks/compare.py` is the command."""
