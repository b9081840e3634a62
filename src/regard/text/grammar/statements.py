"""Sentences that state: what happens, and what is so.

Each kind of sentence, here and in `questions` and `joined`, is a function from dice to one sentence in both languages.
"""

from __future__ import annotations

from regard.text.grammar import phrases
from regard.text.grammar.actions import action, settle_tense
from regard.text.grammar.circumstances import TOWNS, calendar_date, clock_time, digital_time, location, time_for
from regard.text.grammar.clauses import BE, BECOME, Clause, Tense, english_statement, finished, statement, verb_second
from regard.text.grammar.inflection import Person
from regard.text.grammar.lexicon import ADJECTIVE_ENTRIES, Adjective, Case, Noun, Verb, read_verb
from regard.text.grammar.meaning import (
    ACTIONS,
    ALL_NOUNS,
    NAME_ENTRIES,
    NAME_OWNERS,
    PEOPLE,
    Dice,
    adjectives_of,
    noun_phrase,
    nouns_of,
    person,
    verb_key,
    verb_named,
    verbs_of,
)
from regard.text.grammar.numbers import english_number, german_number
from regard.text.grammar.phrases import IT, PRONOUNS, Nominal, NounPhrase, Phrase, Word, adverbial
from regard.text.grammar.relatives import relative_clause

# ------------------------------------------------------------------------------------------------------ what happens


def simple_statement(dice: Dice) -> Phrase:
    """State something, the subject first."""
    return statement(action(dice, negated=dice.chance(0.17)))


def fronted_statement(dice: Dice) -> Phrase:
    """State something after a time, which makes German put the verb before the subject."""
    clause = action(dice, negated=dice.chance(0.1), plain=dice.chance(0.4))
    clause.time = clause.adverb = None
    if "state" in clause.verb.traits and clause.subject.person != Person.YOU:
        clause.tense = Tense.PAST
    elif clause.tense is Tense.PRESENT and not clause.modal:
        clause.negated = False  # what is not done every day is not worth saying
    return statement(clause, time_for(dice, clause.verb, clause.tense, clause.modal))


def subject_with_relative(dice: Dice) -> Phrase:
    """State something about a subject that a relative clause describes."""
    verb = dice.pick(ACTIONS)
    subject = noun_phrase(dice, dice.pick(nouns_of(verb.subjects)), definite=dice.chance(0.6))
    subject.relative = relative_clause(dice, subject, verb)
    return statement(action(dice, verb, subject, plain=True))


def object_with_relative(dice: Dice) -> Phrase:
    """State something about an object that a relative clause describes, after the verbs that close the clause."""
    verb = dice.pick(verbs_of("transitive", "ditransitive", "dative"))
    clause = action(dice, verb, negated=dice.chance(0.1), plain=True)
    described = clause.accusative or clause.dative
    if isinstance(described, NounPhrase) and (described.takes_kein or not clause.negated):
        clause.tail = relative_clause(dice, described, verb)
    return statement(clause)


def is_done_to_things(verb: Verb) -> bool:
    """Say whether the passive of a verb is natural."""
    lasting = {"state", "stative"}.intersection(verb.traits)
    return not lasting and not verb.english.preposition and not {"people", "room"}.intersection(verb.objects)


DONE_TO_THINGS = tuple(verb for verb in verbs_of("transitive") if is_done_to_things(verb))
BUILD = verb_named("build")


def passive(dice: Dice) -> Phrase:
    """State what was done to something, and perhaps by whom."""
    verb = BUILD if dice.chance(0.15) else dice.pick(DONE_TO_THINGS)
    noun = dice.pick(nouns_of(verb.objects))
    dice.combine(verb_key(verb), noun)
    clause = Clause(noun_phrase(dice, noun, definite=True), verb, Tense.PASSIVE)
    if verb is BUILD:
        year = dice.between(1850, 2020)
        clause.time = Phrase(f"in {year}", f"im Jahr {year}")
        return statement(clause)
    if dice.chance(0.65):
        agent = noun_phrase(dice, dice.pick(nouns_of(PEOPLE)))
        clause.settings = (adverbial("by", "von", agent, Case.DATIVE),)
    if dice.chance(0.5):
        clause.time = time_for(dice, verb, Tense.PASSIVE)
    return statement(clause)


# -------------------------------------------------------------------------------------------------------- what is so

DESCRIBABLE = tuple(noun for noun in ALL_NOUNS if adjectives_of(noun))
DEGREES = (Phrase("very", "sehr"), Phrase("very", "sehr"), Phrase("too", "zu"))
FEELING_WORDS = ("tired", "hungry", "happy", "sad", "sick")
FEELINGS = tuple(word for word in ADJECTIVE_ENTRIES if word.english in FEELING_WORDS)


def quality(dice: Dice, adjective: Adjective) -> Phrase:
    """Say a quality, perhaps to a degree."""
    gradual = adjective.english_comparative or adjective in FEELINGS
    if not gradual or dice.chance(0.65):
        return Phrase(adjective.english, adjective.german)
    degree = dice.pick(DEGREES)
    return Phrase(f"{degree.english} {adjective.english}", f"{degree.german} {adjective.german}")


def description(dice: Dice) -> Phrase:
    """State how something or someone is."""
    noun = dice.pick(DESCRIBABLE)
    adjective = dice.pick(adjectives_of(noun))
    dice.combine(adjective.english, noun)
    subject = noun_phrase(dice, noun, definite=True, plain=True)
    clause = Clause(subject, BE, dice.pick((Tense.PRESENT, Tense.PRESENT, Tense.PAST)), negated=dice.chance(0.15))
    clause.complement = quality(dice, adjective)
    return statement(clause)


def feeling(dice: Dice, subject: Nominal, tense: Tense) -> Clause:
    """Build a clause that says how someone feels."""
    adjective = dice.pick(FEELINGS)
    if isinstance(subject, NounPhrase):
        dice.combine(adjective.english, subject.noun)
    return Clause(subject, BE, tense, complement=quality(dice, adjective))


def mood(dice: Dice) -> Phrase:
    """State how someone feels, or came to feel."""
    subject = person(dice, definite=True)
    if isinstance(subject, NounPhrase) and subject.adjective:
        subject.adjective = None
        dice.combinations.clear()
    tense = dice.pick((Tense.PRESENT, Tense.PAST, Tense.PAST))
    clause = feeling(dice, subject, tense)
    if tense is Tense.PAST and dice.chance(0.3):
        clause.verb = BECOME
    if tense is Tense.PAST and dice.chance(0.5):
        clause.time = time_for(dice, BE, tense)
    clause.tense = settle_tense(clause.verb, clause.subject, tense, None)
    return statement(clause)


FAMILIES = ("person", "kin", "animal", "readable", "building", "vehicle", "clothes", "furniture", "town", "task")


def comparison(dice: Dice) -> Phrase:
    """Compare two of a kind: `older than`, `as old as`."""
    first, second, adjective = dice.pick(COMPARISONS)
    subject, other = (noun_phrase(dice, noun, definite=True, plain=True) for noun in (first, second))
    for noun in (first, second):
        dice.combine(adjective.english, noun)
    english, german = other.english(subject=False), other.german(Case.NOMINATIVE)
    clause = Clause(subject, BE, Tense.PRESENT, negated=dice.chance(0.15))
    if dice.chance(0.6):
        more, mehr = adjective.english_comparative, adjective.german_comparative
        clause.complement = Phrase(f"{more} than {english}", f"{mehr} als {german}")
    else:
        clause.complement = Phrase(f"as {adjective.english} as {english}", f"so {adjective.german} wie {german}")
    return statement(clause)


def comparable(first: Noun, second: Noun) -> tuple[Adjective, ...]:
    """List the adjectives by which two nouns can be compared."""
    both = (word for word in adjectives_of(first) if word in adjectives_of(second))
    return tuple(word for word in both if word.english_comparative)


COMPARISONS = tuple(
    (first, second, adjective)
    for family in FAMILIES
    for first in nouns_of((family,))
    for second in nouns_of((family,))
    if first is not second
    for adjective in comparable(first, second)
)


def age(dice: Dice) -> Phrase:
    """State someone's age in words, or something's in digits."""
    if dice.chance(0.7):
        subject = person(dice, definite=True)
        young = isinstance(subject, NounPhrase) and "young" in subject.noun.kinds
        number = dice.between(2, 17 if young else 69)
        spelled = Phrase(english_number(number), german_number(number))
    else:
        subject = noun_phrase(dice, dice.pick(nouns_of(("sight", "house", "landmark"))), definite=True, plain=True)
        spelled = Phrase(*[str(dice.between(20, 400))] * 2)
    complement = Phrase(f"{spelled.english} years old", f"{spelled.german} Jahre alt")
    return statement(Clause(subject, BE, Tense.PRESENT, complement=complement))


COST = read_verb("cost/cost/cost | kosten | price | thing > | | state")


def price(dice: Dice) -> Phrase:
    """State what something costs; only of one thing, where English tells the present from the past."""
    noun = dice.pick(nouns_of(("thing", "clothes", "furniture", "bicycle")))
    subject = NounPhrase(dice.pick((phrases.THE, phrases.THIS)), noun)
    if dice.chance(0.4):
        subject.adjective = dice.pick(adjectives_of(noun))
        dice.combine(subject.adjective.english, noun)
    amount = dice.between(60, 900) if {"furniture", "machine"}.intersection(noun.kinds) else dice.between(2, 60)
    return statement(Clause(subject, COST, Tense.PRESENT, complement=Phrase(f"{amount} euros", f"{amount} Euro")))


MALE_KIN = tuple(noun for noun in nouns_of(("kin",)) if noun.pronoun == "he")
MALE_NAMES = tuple(name for name in NAME_ENTRIES if name.pronoun == "he")


def profession(dice: Dice) -> Phrase:
    """State a man's profession; German leaves the article out unless an adjective needs it."""
    owner = dice.pick((*phrases.POSSESSIVES.values(), *NAME_OWNERS))
    subjects: tuple[Nominal, ...] = (PRONOUNS["he"], dice.pick(MALE_NAMES), NounPhrase(owner, dice.pick(MALE_KIN)))
    subject = dice.pick(subjects)
    job = NounPhrase(phrases.INDEFINITE, dice.pick(nouns_of(("job",))))
    negated = dice.chance(0.2)
    if not negated and dice.chance(0.4):
        job.adjective = dice.pick(tuple(word for word in adjectives_of(job.noun) if word not in FEELINGS))
        dice.combine(job.adjective.english, job.noun)
    german = (job.denied() if negated else job).german(Case.NOMINATIVE)
    clause = Clause(subject, BE, dice.pick((Tense.PRESENT, Tense.PAST)), negated=negated)
    clause.complement = Phrase(job.english(subject=False), german if negated or job.adjective else job.noun.german)
    english = english_statement(clause)
    clause.negated = False  # kein has said it
    return finished(english, verb_second(clause))


def existence(dice: Dice) -> Phrase:
    """State that somewhere there is something; German begins with the place."""
    if dice.chance(0.5):
        english_place, german_place = dice.pick(TOWNS)
        where = Phrase("in " + english_place, "in " + german_place)
    else:
        where = location(dice, ("town",), "")
    thing = noun_phrase(dice, dice.pick(nouns_of(("sight", "guesthouse", "hospital", "library", "factory"))))
    thing.possessor = None
    if thing.plural:
        thing.determiner = dice.pick((phrases.MANY, phrases.SOME, phrases.counted(dice.between(2, 12))))
    else:
        thing.determiner = dice.pick((phrases.INDEFINITE, phrases.INDEFINITE, phrases.NONE))
    past = dice.chance(0.3)
    verb = ("were" if thing.plural else "was") if past else ("are" if thing.plural else "is")
    english = f"there {verb} {thing.english(subject=True)} {where.english}"
    return finished(english, f"{where.german} {'gab' if past else 'gibt'} es {thing.german(Case.ACCUSATIVE)}")


# ------------------------------------------------------------------------------------------------- weather and times

RAIN = read_verb("rain | regnen | weather | >")
SNOW = read_verb("snow | schneien | weather | >")


def weather(dice: Dice, tense: Tense) -> Clause:
    """Build a clause about the weather."""
    return Clause(IT, dice.pick((RAIN, SNOW)), tense)


def weather_statement(dice: Dice) -> Phrase:
    """State the weather."""
    clause = weather(dice, dice.pick((Tense.PROGRESSIVE, Tense.PAST, Tense.FUTURE, Tense.PERFECT)))
    time = time_for(dice, clause.verb, clause.tense)
    if dice.chance(0.5):
        return statement(clause, time)
    clause.time = time
    return statement(clause)


def time_of_day(dice: Dice) -> Phrase:
    """State what time it is."""
    time = clock_time(dice.between(1, 12), dice.between(0, 11) * 5)
    return finished(f"it is {time.english}", f"es ist {time.german}")


def birthday(dice: Dice) -> Phrase:
    """State when someone's birthday is."""
    date, owner = calendar_date(dice), dice.pick(NAME_OWNERS + tuple(phrases.POSSESSIVES.values()))
    return finished(f"{owner.english} birthday is {date.english}", f"{owner.forms[0][0]} Geburtstag ist {date.german}")


def timetable(dice: Dice) -> Phrase:
    """State when and where a train departs or arrives."""
    (english, german), number = dice.pick(TOWNS), dice.between(1, 24)
    time = digital_time(dice.between(5, 23), dice.between(0, 59))
    if dice.chance(0.5):
        verb, way, side = verb_named("depart"), ("to", "nach"), ("from", "von")
    else:
        verb, way, side = verb_named("arrive"), ("from", "aus"), ("at", "auf")
    train = (f"der Zug {way[1]} {german}",)
    subject = Word(f"the train {way[0]} {english}", "", train, Person.ONE, "", pronominal=False)
    clause = Clause(subject, verb, dice.pick((Tense.PRESENT, Tense.FUTURE)))
    clause.settings = (Phrase(f"{side[0]} platform {number}", f"{side[1]} Gleis {number}"),)
    clause.time = Phrase(f"at {time.english}", f"um {time.german}")
    return statement(clause)
