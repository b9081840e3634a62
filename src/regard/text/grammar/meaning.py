"""What may be said of what: chance, the words that suit each other, and the noun phrases made of them.

All chance goes through `Dice`, which also remembers which words were combined, so that a corpus can hold some
combinations back.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from random import Random
from typing import TypeVar

from regard.text.grammar import phrases
from regard.text.grammar.inflection import Person
from regard.text.grammar.lexicon import (
    ADJECTIVE_ENTRIES,
    NAMES,
    NOUN_ENTRIES,
    PLACE_ENTRIES,
    VERB_ENTRIES,
    Adjective,
    Noun,
    Verb,
    pairs,
)
from regard.text.grammar.phrases import POSSESSIVES, PRONOUNS, Determiner, Nominal, NounPhrase, Word, coordinate

T = TypeVar("T")


class Dice:
    """A source of chance that remembers the combinations of words that it led to.

    Only `Random.random` is used: its sequence is the same in every version of Python.
    """

    __slots__ = ("combinations", "random")

    def __init__(self, seed: str) -> None:
        self.random = Random(seed).random
        self.combinations: list[tuple[str, str]] = []

    def chance(self, probability: float) -> bool:
        """Say yes with this probability."""
        return self.random() < probability

    def pick(self, options: Sequence[T]) -> T:
        """Pick one of the options, all equally likely."""
        return options[int(self.random() * len(options))]

    def between(self, low: int, high: int) -> int:
        """Pick a whole number, both ends included."""
        return low + int(self.random() * (high - low + 1))

    def combine(self, word: str, noun: Noun) -> None:
        """Remember that a word was combined with a noun."""
        self.combinations.append((word, noun.english))


# -------------------------------------------------------------------------------------------------- which words suit

PEOPLE = ("person", "kin")
NAME_ENTRIES = tuple(phrases.name(english, pronoun) for english, pronoun in pairs(NAMES))
NAME_OWNERS = tuple(phrases.name_as_owner(english) for english, _ in pairs(NAMES))
SPEAKERS = tuple(PRONOUNS.values())
OTHERS = ("he", "she", "they")
ALL_NOUNS = NOUN_ENTRIES + tuple(place.noun for place in PLACE_ENTRIES)
PLACE_OF = {place.noun.english: place for place in PLACE_ENTRIES}
OWNABLE = frozenset(("own", "pet", "thing", "readable", "furniture", "room", "error", "machine"))
COUNTS = (2, 2, 2, 3, 3, 3, 4, 4, 5, 5, 6, 7, 8, 9, 10, 11, 12)
PLURAL_OWNED = frozenset(("own", "pet", "clothes", "readable_thing"))


@cache
def nouns_of(kinds: tuple[str, ...]) -> tuple[Noun, ...]:
    """List the nouns of any of these kinds."""
    wanted = {kind for name in kinds for kind in (PEOPLE if name == "people" else (name,))}
    return tuple(noun for noun in ALL_NOUNS if wanted.intersection(noun.kinds))


@cache
def adjectives_of(noun: Noun) -> tuple[Adjective, ...]:
    """List the adjectives that suit a noun."""
    return tuple(adjective for adjective in ADJECTIVE_ENTRIES if set(adjective.kinds).intersection(noun.kinds))


@cache
def verbs_of(*frames: str) -> tuple[Verb, ...]:
    """List the verbs of these frames."""
    return tuple(verb for verb in VERB_ENTRIES if verb.frame in frames)


@cache
def verbs_done_to(noun: Noun) -> tuple[Verb, ...]:
    """List the verbs that take this noun as a direct object, said of people."""
    verbs = verbs_of("transitive", "dative")
    return tuple(verb for verb in verbs if "people" in verb.subjects and noun in nouns_of(verb.objects))


@cache
def verbs_done_by(noun: Noun) -> tuple[Verb, ...]:
    """List the verbs that take this noun as their subject."""
    return tuple(verb for verb in ACTIONS if noun in nouns_of(verb.subjects))


def verb_named(key: str) -> Verb:
    """Find the action of this name: `buy`, `come back`."""
    return next(verb for verb in ACTIONS if verb_key(verb) == key)


def verb_key(verb: Verb) -> str:
    """Name a verb with its particle or preposition: `look for`."""
    return " ".join((verb.english.base, verb.english.particle or verb.english.preposition)).strip()


ONE_OBJECT = verbs_of("transitive", "dative", "prepositional")
TWO_OBJECTS = verbs_of("ditransitive", "recipient", "placing")
NO_OBJECT = verbs_of("intransitive", "location", "direction")
ACTIONS = ONE_OBJECT + TWO_OBJECTS + NO_OBJECT
UNWILLED = frozenset(("state", "posture", "stative"))
DOABLE = tuple(verb for verb in ACTIONS if "people" in verb.subjects and not UNWILLED.intersection(verb.traits))
# Transitive verbs are the most numerous; the other frames, and meals, are repeated so that each is met often.
MEALS = tuple(verb for verb in ACTIONS if verb.english.base in ("eat", "cook", "drink", "order"))
EVERYDAY = ACTIONS + (TWO_OBJECTS + MEALS * 2 + verbs_of("prepositional", "direction", "location")) * 2


# --------------------------------------------------------------------------------------------------------- noun phrases


def noun_phrase(dice: Dice, noun: Noun, owner: str = "", definite: bool = False, plain: bool = False) -> NounPhrase:
    """Build a noun phrase; `owner` is the pronoun of who may possess it, `plain` asks for no adjective."""
    determiner, plural = determine(dice, noun, owner, definite)
    phrase = NounPhrase(determiner, noun, plural)
    if not plain and dice.chance(0.32) and adjectives_of(noun):
        phrase.adjective = dice.pick(adjectives_of(noun))
        dice.combine(phrase.adjective.english, noun)
    if determiner is phrases.THE and not plural and noun_is_ownable(noun) and dice.chance(0.09):
        owners = tuple(person for person in nouns_of(("person",)) if person is not noun)
        phrase.possessor = NounPhrase(phrases.THE, dice.pick(owners))
    return phrase


@cache
def noun_is_ownable(noun: Noun) -> bool:
    """Say whether a possessive makes sense before this noun."""
    return bool(OWNABLE.intersection(noun.kinds))


def determine(dice: Dice, noun: Noun, owner: str, definite: bool) -> tuple[Determiner, bool]:
    """Choose a determiner and the number."""
    if "kin" in noun.kinds:
        plural = "single" not in noun.kinds and dice.chance(0.12)
        return (dice.pick(NAME_OWNERS) if dice.chance(0.12) else possessive(dice, owner)), plural
    if "mass" in noun.kinds:
        return mass_determiner(dice, definite), False
    if dice.chance(0.22):
        return plural_determiner(dice, noun, owner, definite), True
    draw = dice.random()
    if noun_is_ownable(noun) and draw < 0.22:
        return possessive(dice, owner), False
    if 0.22 < draw < 0.28:
        return phrases.THIS, False
    return (phrases.INDEFINITE if draw < 0.58 and not definite else phrases.THE), False


def mass_determiner(dice: Dice, definite: bool) -> Determiner:
    """Choose the determiner of a substance."""
    return phrases.BARE if not definite and dice.chance(0.55) else phrases.THE


def plural_determiner(dice: Dice, noun: Noun, owner: str, definite: bool) -> Determiner:
    """Choose the determiner of a plural."""
    draw = dice.random()
    if draw < 0.15 and PLURAL_OWNED.intersection(noun.kinds):
        return possessive(dice, owner)
    if draw < 0.22:
        return phrases.THESE
    if definite or draw < 0.5:
        return phrases.THE
    if draw < 0.7:
        return phrases.counted(dice.pick(COUNTS))
    few_or_many = (phrases.SOME, phrases.MANY)
    return dice.pick(few_or_many if "person" in noun.kinds else (*few_or_many, phrases.BARE, phrases.BARE))


def possessive(dice: Dice, owner: str) -> Determiner:
    """Choose a possessive: mostly of the owner, if there is one."""
    return POSSESSIVES[owner] if owner and dice.chance(0.75) else dice.pick(tuple(POSSESSIVES.values()))


def person(dice: Dice, definite: bool = False) -> Nominal:
    """Choose a human subject."""
    draw = dice.random()
    if draw < 0.34:
        return dice.pick(SPEAKERS)
    if draw < 0.46:
        return dice.pick(NAME_ENTRIES)
    if draw < 0.52:
        return couple(dice)
    return noun_phrase(dice, dice.pick(nouns_of(PEOPLE)), definite=definite)


def couple(dice: Dice) -> Nominal:
    """Choose two people: `Anna and her brother`."""
    first = dice.pick(NAME_ENTRIES)
    relative = NounPhrase(POSSESSIVES[first.pronoun], dice.pick(nouns_of(("kin", "friend"))))
    return coordinate(first, relative)


def subject_for(dice: Dice, verb: Verb, definite: bool = False) -> Nominal:
    """Choose a subject that can do what the verb says."""
    if "people" in verb.subjects and dice.chance(0.9):
        return person(dice, definite)
    return noun_phrase(dice, dice.pick(nouns_of(verb.subjects)), definite=definite)


def someone_else(dice: Dice, subject: Nominal, definite: bool = False) -> Nominal:
    """Choose a human object other than the subject."""
    draw = dice.random()
    if draw < 0.24:
        options = tuple(word for word in SPEAKERS if word.person != subject.person or word.pronoun in OTHERS)
        other = dice.pick(options)
        # I and we, he and he: near enough to the subject to ask for a reflexive, so a third person steps in.
        clash = {other.person, subject.person} <= {Person.I, Person.WE} or other.pronoun == subject.pronoun
        return PRONOUNS["she" if subject.pronoun != "she" else "they"] if clash else other
    # A name right behind a noun would read as its apposition: der Lehrer Paul.
    if draw < 0.4 and isinstance(subject, Word):
        return dice.pick(tuple(name for name in NAME_ENTRIES if name is not subject))
    noun = dice.pick(nouns_of(PEOPLE))
    if isinstance(subject, NounPhrase) and noun is subject.noun:
        noun = dice.pick(tuple(other for other in nouns_of(PEOPLE) if other is not noun))
    return noun_phrase(dice, noun, subject.pronoun, definite)
