"""How well recipes translate: runs, their times and scores, and the tables; `benchmarks/results.py` is the command."""
