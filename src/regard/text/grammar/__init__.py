"""The embedded English–German corpus: a synchronous grammar that writes pairs of sentences, each correct in both.

From words to corpus, a file for each step:

lexicon                                  which words there are, and what they mean
inflection                               how a word changes
numbers, phrases                         words together, in both languages at once
clauses                                  one set of parts, two orders of words
meaning, circumstances, actions          what may be said: words chosen to make sense together
relatives, statements, questions, joined the kinds of sentence
splits                                   pairs, and a corpus in four parts

German is a function of English here: no English sentence has two translations, so a model can learn to be right.
"""

from regard.text.grammar.splits import Pair, Splits, make_splits, write_pairs

__all__ = ["Pair", "Splits", "make_splits", "write_pairs"]
