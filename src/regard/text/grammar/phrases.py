"""Phrases that know both of their languages.

A `Phrase` is fixed in form: a time, a place. A `Nominal` is not yet: its German waits for the case that the clause
around it asks for, and its English for whether it is the subject.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from regard.text.grammar.inflection import (
    CONTRACTIONS,
    DEFINITE_ARTICLE,
    DER_WORD_ENDINGS,
    EIN_WORD_ENDINGS,
    RELATIVE_PRONOUN,
    Declension,
    Person,
    decline_noun,
    indefinite_article,
    inflect_adjective,
)
from regard.text.grammar.lexicon import Adjective, Case, Gender, Noun
from regard.text.grammar.numbers import english_number, german_number

Forms = tuple[tuple[str, ...], ...]


class Phrase(NamedTuple):
    """A phrase whose form nothing around it can change."""

    english: str
    german: str


# --------------------------------------------------------------------------------------------------------- determiners


@dataclass(frozen=True, slots=True)
class Determiner:
    """A determiner: its English, its German forms, and the adjective declension that follows it."""

    english: str
    forms: Forms
    declension: Declension
    definite: bool = True
    takes_kein: bool = False
    refers_to: str = ""


def forms_of(stem: str, endings: Forms) -> Forms:
    """Put every ending of a table on a stem."""
    return tuple(tuple(stem + ending for ending in row) for row in endings)


def unchanging(word: str) -> Forms:
    """Make the table of a word without endings."""
    return ((word,) * 4,) * 4


THE = Determiner("the", DEFINITE_ARTICLE, Declension.WEAK)
THIS = Determiner("this", forms_of("dies", DER_WORD_ENDINGS), Declension.WEAK)
THESE = Determiner("these", THIS.forms, Declension.WEAK)
EVERY = Determiner("every", forms_of("jed", DER_WORD_ENDINGS), Declension.WEAK)
ALL = Determiner("all", forms_of("all", DER_WORD_ENDINGS), Declension.WEAK)
WHICH = Determiner("which", forms_of("welch", DER_WORD_ENDINGS), Declension.WEAK)
INDEFINITE = Determiner("a", forms_of("ein", EIN_WORD_ENDINGS), Declension.MIXED, definite=False, takes_kein=True)
NONE = Determiner("no", forms_of("kein", EIN_WORD_ENDINGS), Declension.MIXED)
BARE = Determiner("", unchanging(""), Declension.STRONG, definite=False, takes_kein=True)
SOME = Determiner("some", forms_of("einig", DER_WORD_ENDINGS), Declension.STRONG, definite=False)
MANY = Determiner("many", forms_of("viel", DER_WORD_ENDINGS), Declension.STRONG, definite=False)
HOW_MANY = Determiner("how many", forms_of("wie viel", DER_WORD_ENDINGS), Declension.STRONG)

POSSESSIVES = {
    pronoun: Determiner(english, forms_of(german, EIN_WORD_ENDINGS), Declension.MIXED, refers_to=pronoun)
    for pronoun, english, german in (
        ("I", "my", "mein"),
        ("you", "your", "dein"),
        ("he", "his", "sein"),
        ("she", "her", "ihr"),
        ("we", "our", "unser"),
        ("they", "their", "ihr"),
    )
}


def counted(number: int, as_digits: bool = False) -> Determiner:
    """Make the determiner of a number above one: `three`, `14`."""
    if as_digits:
        return Determiner(str(number), unchanging(str(number)), Declension.STRONG, definite=False)
    return Determiner(english_number(number), unchanging(german_number(number)), Declension.STRONG, definite=False)


# -------------------------------------------------------------------------------------------------------- noun phrases


@dataclass(slots=True)
class NounPhrase:
    """A noun with its determiner, adjective and possessor, and perhaps a relative clause inside German's commas."""

    determiner: Determiner
    noun: Noun
    plural: bool = False
    adjective: Adjective | None = None
    possessor: NounPhrase | None = None
    relative: Phrase | None = None

    @property
    def person(self) -> Person:
        """The person that the verb agrees with."""
        return Person.THEY if self.plural else Person.ONE

    @property
    def pronoun(self) -> str:
        """The English pronoun that refers back to it, or nothing where there is none that German shares."""
        return "they" if self.plural else self.noun.pronoun

    @property
    def pronominal(self) -> bool:
        """Whether it is light enough to lead the German middle field."""
        return False

    @property
    def definite(self) -> bool:
        """Whether it is one that the hearer knows."""
        return self.determiner.definite

    @property
    def takes_kein(self) -> bool:
        """Whether German denies it with kein."""
        return self.determiner.takes_kein

    @property
    def gender(self) -> Gender:
        """The column of its German forms."""
        return Gender.PLURAL if self.plural else self.noun.gender

    def english(self, subject: bool) -> str:
        """Give its English."""
        words = [self.noun.english_plural if self.plural else self.noun.english]
        if self.adjective:
            words.insert(0, self.adjective.english)
        if self.possessor:
            words.insert(0, self.possessor.english(subject=False) + "'s")
        elif self.determiner is INDEFINITE:
            words.insert(0, indefinite_article(words[0]))
        elif self.determiner.english:
            words.insert(0, self.determiner.english)
        if self.relative:
            words.append(self.relative.english)
        return " ".join(words)

    def german(self, case: Case) -> str:
        """Give its German in a case."""
        gender = self.gender
        words = [decline_noun(self.noun, self.plural, case)]
        if self.adjective:
            words.insert(0, inflect_adjective(self.adjective, self.determiner.declension, case, gender))
        determiner = self.determiner.forms[case][gender]
        if determiner:
            words.insert(0, determiner)
        if self.possessor:
            words.append(self.possessor.german(Case.GENITIVE))
        text = " ".join(words)
        return f"{text}, {self.relative.german}," if self.relative else text

    def denied(self) -> NounPhrase:
        """Give the same with kein."""
        return NounPhrase(NONE, self.noun, self.plural, self.adjective, relative=self.relative)


@dataclass(frozen=True, slots=True)
class Word:
    """A nominal that is declined by its own table: a pronoun, a name, a question word, two people."""

    subject_form: str
    object_form: str
    cases: tuple[str, ...]
    person: Person
    pronoun: str
    pronominal: bool = True
    definite: bool = True
    takes_kein: bool = False

    def english(self, subject: bool) -> str:
        """Give its English, as subject or as object."""
        return self.subject_form if subject else self.object_form

    def german(self, case: Case) -> str:
        """Give its German in a case."""
        return self.cases[case]

    def denied(self) -> Word:
        """Give the same: what this class holds is denied by nicht."""
        return self


Nominal = NounPhrase | Word


PRONOUNS = {
    subject: Word(subject, other, tuple(cases.split()), Person(person), subject)
    for subject, other, cases, person in (
        ("I", "me", "ich mich mir", 0),
        ("you", "you", "du dich dir", 1),
        ("he", "him", "er ihn ihm", 2),
        ("she", "her", "sie sie ihr", 2),
        ("we", "us", "wir uns uns", 3),
        ("they", "them", "sie sie ihnen", 4),
    )
}
IT = Word("it", "it", ("es", "es"), Person.ONE, "")  # only where it refers to nothing: German would ask for a gender
NOBODY = Word("nobody", "nobody", ("niemand", "niemanden", "niemandem"), Person.ONE, "", pronominal=False)
EVERYONE = Word("everyone", "everyone", ("jeder", "jeden", "jedem"), Person.ONE, "", pronominal=False)
WHO = Word("who", "who", ("wer", "wen", "wem"), Person.ONE, "")
WHAT = Word("what", "what", ("was", "was"), Person.ONE, "")


def name(english: str, pronoun: str) -> Word:
    """Make a nominal of a given name."""
    return Word(english, english, (english, english, english, english + "s"), Person.ONE, pronoun, pronominal=False)


def name_as_owner(owner: str) -> Determiner:
    """Make the determiner of a given name: `Anna's`, `Annas`."""
    return Determiner(owner + "'s", unchanging(owner + "s"), Declension.STRONG)


def coordinate(first: Word, second: NounPhrase) -> Word:
    """Join two nominals by and."""
    cases = tuple(f"{first.german(case)} und {second.german(case)}" for case in Case)
    english = f"{first.english(subject=True)} and {second.english(subject=True)}"
    return Word(english, english, cases, Person.THEY, "they", pronominal=False)


def measure(vessel: NounPhrase, substance: Noun) -> Word:
    """Measure a substance: `a cup of coffee`, `eine Tasse Kaffee`; German puts the substance beside it bare."""
    cases = tuple(f"{vessel.german(case)} {substance.german}" for case in Case)
    english = f"{vessel.english(subject=False)} of {substance.english}"
    return Word(english, english, cases, vessel.person, "", pronominal=False, definite=False)


def relative_pronoun(head: NounPhrase) -> Word:
    """Make the pronoun of a relative clause: German takes gender and number from its head, the case from within."""
    cases = tuple(row[head.gender] for row in RELATIVE_PRONOUN)
    human = "person" in head.noun.kinds or "kin" in head.noun.kinds
    return Word("who" if human else "that", "that", cases, head.person, head.pronoun)


# ------------------------------------------------------------------------------------------------------- prepositions


def prepositional(english: str, german: str, nominal: Nominal, case: Case) -> Phrase:
    """Join a preposition and its nominal without contraction, as the object of a verb."""
    return Phrase(f"{english} {nominal.english(subject=False)}".lstrip(), f"{german} {nominal.german(case)}")


def adverbial(english: str, german: str, nominal: NounPhrase, case: Case) -> Phrase:
    """Join a preposition and its nominal with German's contractions: `im Garten`, `zur Schule`."""
    words = nominal.german(case)
    article, _, rest = words.partition(" ")
    contracted = CONTRACTIONS.get((german, article)) if nominal.determiner is THE else None
    joined = f"{contracted} {rest}" if contracted else f"{german} {words}"
    return Phrase(f"{english} {nominal.english(subject=False)}", joined)
