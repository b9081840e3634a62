"""Sentences that ask: whether, who, what, where, when and why; and requests to a friend."""

from __future__ import annotations

from regard.text.grammar import phrases
from regard.text.grammar.actions import action, bare_clause
from regard.text.grammar.clauses import (
    Tense,
    english_infinitive,
    english_question,
    english_statement,
    finished,
    german_imperative,
    verb_first,
    verb_second,
)
from regard.text.grammar.lexicon import Case, Verb
from regard.text.grammar.meaning import ACTIONS, DOABLE, PEOPLE, Dice, nouns_of, subject_for, verb_key, verbs_of
from regard.text.grammar.phrases import PRONOUNS, Nominal, NounPhrase, Phrase
from regard.text.grammar.statements import feeling

DONE_BY_PEOPLE = tuple(verb for verb in ACTIONS if "people" in verb.subjects)
ASKED_FOR = verbs_of("transitive", "dative")
# English asks where someone comes and returns from; where to would sound odd.
GOING = tuple(verb for verb in verbs_of("direction") if verb.english.base not in ("come", "return"))


def yes_no_question(dice: Dice) -> Phrase:
    """Ask whether something is so."""
    if dice.chance(0.15):
        clause = feeling(dice, dice.pick(tuple(PRONOUNS.values())[1:]), Tense.PRESENT)
    else:
        verb = dice.pick(ACTIONS)
        clause = action(dice, verb, subject_for(dice, verb, definite=True), plain=dice.chance(0.5))
    return finished(english_question(clause), verb_first(clause), "?")


def who_question(dice: Dice) -> Phrase:
    """Ask who does something."""
    clause = action(dice, dice.pick(DONE_BY_PEOPLE), phrases.WHO, plain=dice.chance(0.5))
    return finished(english_statement(clause), verb_second(clause), "?")


def object_question(dice: Dice) -> Phrase:
    """Ask for the object: what, who, which or how many; German asks in the verb's case."""
    verb = dice.pick(ASKED_FOR)
    case = Case.DATIVE if verb.frame == "dative" else Case.ACCUSATIVE
    asked = question_object(dice, verb)
    clause = bare_clause(dice, verb, subject_for(dice, verb, definite=True))
    front = asked.english(subject=False)
    return finished(english_question(clause, front), verb_second(clause, asked.german(case)), "?")


def question_object(dice: Dice, verb: Verb) -> Nominal:
    """Choose the question word that suits what the verb is done to."""
    if {"people", *PEOPLE}.intersection(verb.objects):
        return phrases.WHO
    if dice.chance(0.4):
        return phrases.WHAT
    noun = dice.pick(nouns_of(verb.objects))
    dice.combine(verb_key(verb), noun)
    many = bool(noun.english_plural) and dice.chance(0.4)
    return NounPhrase(phrases.HOW_MANY if many else phrases.WHICH, noun, plural=many)


def adverb_question(dice: Dice) -> Phrase:
    """Ask where, where to, when or why."""
    draw = dice.random()
    verb = dice.pick(verbs_of("location") if draw < 0.25 else GOING if draw < 0.45 else DOABLE)
    subject = subject_for(dice, verb, definite=True)
    clause = bare_clause(dice, verb, subject) if draw < 0.45 else action(dice, verb, subject, plain=True)
    if draw < 0.25:
        question = Phrase("where", "wo")
    elif draw < 0.45:
        question = Phrase("where", "wohin")
    elif draw < 0.75 or clause.tense in (Tense.PERFECT, Tense.PROGRESSIVE, Tense.PAST_PROGRESSIVE):
        question = Phrase("why", "warum")
    else:
        question = Phrase("when", "wann")
    return finished(english_question(clause, question.english), verb_second(clause, question.german), "?")


REQUESTED_FRAMES = ("transitive", "dative", "ditransitive", "recipient", "placing", "direction")
REQUESTED = tuple(verb for verb in DOABLE if verb.frame in REQUESTED_FRAMES or verb.english.base in ("hurry", "get"))


def request(dice: Dice) -> Phrase:
    """Ask a friend to do something, or not to."""
    verb = dice.pick(REQUESTED)
    clause = action(dice, verb, PRONOUNS["you"], Tense.PRESENT, negated=dice.chance(0.2), plain=True)
    please = "please do not" if clause.negated else "please"
    return finished(f"{please} {english_infinitive(clause)}", f"bitte {german_imperative(clause)}")
