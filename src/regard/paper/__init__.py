"""The paper's claims: its figures, and what they cost."""
