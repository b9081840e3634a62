"""Text: reading corpora, subwords, sentences, and the embedded corpus. Never imports torch."""
