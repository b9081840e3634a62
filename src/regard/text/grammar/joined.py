"""Sentences of more than one clause: reasons, times, reports, aims, and clauses side by side."""

from __future__ import annotations

from regard.text.grammar.actions import action, addressee, settle_tense
from regard.text.grammar.clauses import (
    BE,
    HAVE_TO,
    WANT_TO,
    Clause,
    Tense,
    english_infinitive,
    english_statement,
    finished,
    statement,
    subordinate,
    verb_second,
    zu_infinitive,
)
from regard.text.grammar.inflection import Person
from regard.text.grammar.lexicon import Verb
from regard.text.grammar.meaning import DOABLE, Dice, person, verb_named, verbs_of
from regard.text.grammar.phrases import IT, PRONOUNS, Nominal, Phrase, Word
from regard.text.grammar.statements import feeling, weather


def participant(dice: Dice) -> Nominal:
    """Choose who a longer sentence is about; not you, of whom German tells no past in the Präteritum."""
    subject = person(dice, definite=True)
    return dice.pick((PRONOUNS["he"], PRONOUNS["she"])) if subject.person == Person.YOU else subject


def referring_subject(dice: Dice, subject: Nominal) -> Nominal:
    """Choose the subject of a second clause: mostly the first one again, as a pronoun."""
    return PRONOUNS[subject.pronoun] if subject.pronoun and dice.chance(0.75) else participant(dice)


EVENT_KEYS = ("find", "lose", "buy", "see", "call", "visit", "help", "forget", "come back", "invite", "notice", "steal")
EVENTS = tuple(verb_named(key) for key in EVENT_KEYS)  # what explains something else


def circumstance(dice: Dice, subject: Nominal, tense: Tense) -> Clause:
    """Build the clause of a reason or a report: a feeling, the weather, a wish, a duty or an event."""
    draw = dice.random()
    if draw < 0.32:
        clause = feeling(dice, subject, tense)
        clause.tense = settle_tense(BE, subject, tense, None)
        return clause
    if draw < 0.46 and isinstance(subject, Word):  # a noun, once chosen, must be said: its combinations are noted
        return weather(dice, Tense.PROGRESSIVE if tense is Tense.PRESENT else tense)
    if draw < 0.74 and tense in (Tense.PRESENT, Tense.PAST):
        return action(dice, dice.pick(DOABLE), subject, tense, dice.pick((WANT_TO, HAVE_TO)), plain=True)
    # A reason comes before its consequence.
    tense = {Tense.PRESENT: Tense.PERFECT, Tense.PAST: Tense.PLUPERFECT}.get(tense, tense)
    return action(dice, dice.pick(EVENTS), subject, tense, plain=True)


# The conjunctions of both languages, with the tenses of the main and of the subordinate clause.
CONJUNCTIONS = (
    (Phrase("because", "weil"), Tense.PAST, Tense.PAST),
    (Phrase("because", "weil"), Tense.PROGRESSIVE, Tense.PRESENT),
    (Phrase("because", "weil"), Tense.FUTURE, Tense.PRESENT),
    (Phrase("although", "obwohl"), Tense.PAST, Tense.PAST),
    (Phrase("although", "obwohl"), Tense.PROGRESSIVE, Tense.PRESENT),
    (Phrase("if", "wenn"), Tense.FUTURE, Tense.PRESENT),
    (Phrase("when", "wenn"), Tense.FUTURE, Tense.PRESENT),
    (Phrase("when", "als"), Tense.PAST, Tense.PAST),
    (Phrase("while", "während"), Tense.PAST, Tense.PAST_PROGRESSIVE),
    (Phrase("before", "bevor"), Tense.PAST, Tense.PAST),
    (Phrase("after", "nachdem"), Tense.PAST, Tense.PLUPERFECT),
)


def subordination(dice: Dice) -> Phrase:
    """Join a clause to another by a conjunction, in either order; in front it counts as German's first place."""
    conjunction, main_tense, tense = dice.pick(CONJUNCTIONS)
    first = participant(dice)
    second = referring_subject(dice, first)
    fronted = dice.chance(0.4)
    main_subject, subject = (second, first) if fronted else (first, second)
    main = action(dice, dice.pick(DOABLE), main_subject, main_tense, plain=dice.chance(0.6))
    if conjunction.english in ("because", "although"):
        clause = circumstance(dice, subject, tense)
    else:
        clause = action(dice, dice.pick(EVENTS if conjunction.english == "if" else DOABLE), subject, tense, plain=True)
    inner = subordinate(clause, conjunction)
    if fronted:
        return finished(f"{inner.english}, {english_statement(main)}", verb_second(main, inner.german + ","))
    return finished(f"{english_statement(main)} {inner.english}", f"{verb_second(main)}, {inner.german}")


REPORTING = verbs_of("clause")
HOPES = tuple(verb_named(key) for key in ("find", "buy", "see", "call", "visit", "help", "come back", "invite"))
REPORTED_TENSES = (Tense.PRESENT, Tense.PERFECT, Tense.FUTURE)


def reported_clause(dice: Dice) -> Phrase:
    """State what someone says, knows or hopes."""
    verb = dice.pick(REPORTING)
    subject = person(dice, definite=True)
    hoping = verb.english.base == "hope"  # of what is to come
    past = subject.person != Person.YOU and not hoping and dice.chance(0.35)
    tense = dice.pick((Tense.PAST, Tense.PLUPERFECT) if past else REPORTED_TENSES)
    second = referring_subject(dice, subject)
    if hoping:
        clause = action(dice, dice.pick(HOPES), second, Tense.FUTURE, plain=True)
    else:
        clause = circumstance(dice, second, tense)
    matrix = Clause(subject, verb, Tense.PAST if past else Tense.PRESENT)
    matrix.tail = subordinate(clause, Phrase("that", "dass"))
    return statement(matrix)


ASK = verb_named("ask")
KNOW = next(verb for verb in REPORTING if verb.english.base == "know")
INDIRECT = (Phrase("whether", "ob"), Phrase("whether", "ob"), Phrase("why", "warum"), Phrase("when", "wann"))


def indirect_question(dice: Dice) -> Phrase:
    """State what someone asks or does not know."""
    subject = person(dice, definite=True)
    past = subject.person != Person.YOU and dice.chance(0.4)
    question = dice.pick(INDIRECT)
    asking = dice.chance(0.5)
    matrix = Clause(subject, ASK if asking else KNOW, Tense.PAST if past else Tense.PRESENT, negated=not asking)
    if asking:
        matrix.accusative = addressee(dice, ASK, subject, definite=True)
    tense = Tense.PLUPERFECT if past else Tense.PROGRESSIVE if question.english == "why" else Tense.FUTURE
    # No one asks what they do themselves.
    inner = participant(dice) if subject.pronoun in ("I", "you", "we") else referring_subject(dice, subject)
    clause = action(dice, dice.pick(DOABLE), inner, tense, plain=True)
    matrix.tail = subordinate(clause, question)
    return statement(matrix)


def infinitive_tail(dice: Dice, verbs: tuple[Verb, ...], subject: Nominal, german_opening: str = "") -> Phrase:
    """Write what the subject is to do, as an infinitive: `to buy bread`, `um Brot zu kaufen`."""
    clause = action(dice, dice.pick(verbs), subject, Tense.PRESENT, plain=True)
    return Phrase("to " + english_infinitive(clause), german_opening + zu_infinitive(clause))


PURSUIT_TENSES = {
    "try": (Tense.PROGRESSIVE, Tense.PAST, Tense.PERFECT, Tense.FUTURE),
    "plan": (Tense.PROGRESSIVE, Tense.PAST),
    "begin": (Tense.PAST, Tense.PERFECT, Tense.FUTURE),
    "forget": (Tense.PAST, Tense.PERFECT),
    "promise": (Tense.PAST, Tense.PERFECT),
    "decide": (Tense.PAST, Tense.PERFECT),
}


PURSUITS = tuple(verb for verb in DOABLE if verb.frame not in ("intransitive", "location"))


def infinitive_clause(dice: Dice) -> Phrase:
    """State what someone tries, forgets or decides to do."""
    verb = dice.pick(verbs_of("infinitive"))
    subject = person(dice, definite=True)
    tense = dice.pick(PURSUIT_TENSES[verb.english.base])
    matrix = Clause(subject, verb, settle_tense(verb, subject, tense, None))
    matrix.tail = infinitive_tail(dice, PURSUITS, subject)
    return statement(matrix)


ERRAND_KEYS = ("buy", "sell", "visit", "meet", "help", "pick up", "look for", "photograph", "draw", "show", "bring")
ERRANDS = tuple(verb_named(key) for key in ERRAND_KEYS)


def purpose(dice: Dice) -> Phrase:
    """State why someone goes somewhere: `to buy bread`, `um Brot zu kaufen`."""
    matrix = action(dice, dice.pick(verbs_of("direction")), person(dice, definite=True), plain=True)
    matrix.tail = infinitive_tail(dice, ERRANDS, matrix.subject, "um ")
    return statement(matrix)


JUDGEMENTS = (Phrase("important", "wichtig"), Phrase("difficult", "schwierig"), Phrase("boring", "langweilig"))
IMPERSONAL = tuple(verb for verb in PURSUITS if not verb.german.reflexive)


def judgement(dice: Dice) -> Phrase:
    """State how it is to do something; reflexive verbs would need someone to refer to."""
    matrix = Clause(IT, BE, dice.pick((Tense.PRESENT, Tense.PAST)), negated=dice.chance(0.2))
    matrix.complement = dice.pick(JUDGEMENTS)
    matrix.tail = infinitive_tail(dice, IMPERSONAL, PRONOUNS["you"])
    return statement(matrix)


def coordination(dice: Dice) -> Phrase:
    """Join two main clauses by and, but or so; after so, German puts the verb before the subject."""
    subject = participant(dice)
    tense = dice.pick((Tense.PAST, Tense.PAST, Tense.FUTURE))
    english = dice.pick(("and", "but", "so"))
    if english == "so":
        first = circumstance(dice, subject, tense)
    else:
        first = action(dice, dice.pick(DOABLE), subject, tense, plain=True)
    negated = english == "but" and dice.chance(0.5)
    second = action(dice, dice.pick(DOABLE), referring_subject(dice, subject), tense, negated=negated, plain=True)
    german = {
        "and": f" und {verb_second(second)}",
        "but": f", aber {verb_second(second)}",
        "so": f", {verb_second(second, 'deshalb')}",
    }[english]
    return finished(f"{english_statement(first)}, {english} {english_statement(second)}", verb_second(first) + german)
