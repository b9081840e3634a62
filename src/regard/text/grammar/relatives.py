"""Relative clauses: a noun as the subject, the object, the owner or the place of a clause of its own."""

from __future__ import annotations

from regard.text.grammar import phrases
from regard.text.grammar.actions import action, add_time, settle_tense
from regard.text.grammar.clauses import Clause, Tense, subordinate
from regard.text.grammar.inflection import Declension
from regard.text.grammar.lexicon import Case, Verb
from regard.text.grammar.meaning import Dice, nouns_of, person, verb_key, verb_named, verbs_done_by, verbs_done_to
from regard.text.grammar.phrases import Determiner, NounPhrase, Phrase, relative_pronoun

HEADS = (phrases.THE, phrases.INDEFINITE, phrases.MANY, phrases.SOME)
RELATIVE_TENSES = {
    "state": (Tense.PRESENT, Tense.PRESENT, Tense.PAST),
    "posture": (Tense.PROGRESSIVE, Tense.PAST),
    "stative": (Tense.PAST, Tense.PERFECT),
}
OTHER_RELATIVE_TENSES = (Tense.PAST, Tense.PAST, Tense.PERFECT, Tense.PROGRESSIVE)


def relative_tense(dice: Dice, verb: Verb) -> Tense:
    """Choose a tense that tells one noun from others: what happened, or what lasts."""
    trait = next((trait for trait in RELATIVE_TENSES if trait in verb.traits), "")
    return dice.pick(RELATIVE_TENSES.get(trait, OTHER_RELATIVE_TENSES))


def relative_clause(dice: Dice, head: NounPhrase, said: Verb) -> Phrase | None:
    """Write a relative clause about a noun phrase, if it can carry one, with another verb than was `said` of it."""
    noun = head.noun
    if head.determiner not in HEADS or head.possessor:
        return None
    if "person" in noun.kinds and dice.chance(0.65):
        return whose_clause(dice, head) if dice.chance(0.35) else who_clause(dice, head)
    if "dwelling" in noun.kinds or "workplace" in noun.kinds:
        return in_which_clause(dice, head)
    verbs = tuple(verb for verb in verbs_done_to(noun) if verb is not said)
    return that_clause(dice, head, dice.pick(verbs)) if verbs else None


def who_clause(dice: Dice, head: NounPhrase) -> Phrase:
    """Let the head be the subject: `the man who reads`, `der Mann, der liest`."""
    verb = dice.pick(verbs_done_by(head.noun))
    clause = action(dice, verb, relative_pronoun(head), relative_tense(dice, verb), plain=True)
    if clause.tense is Tense.PAST:
        add_time(dice, clause, 0.4)
    return subordinate(clause, Phrase("", ""))


def that_clause(dice: Dice, head: NounPhrase, verb: Verb) -> Phrase:
    """Let the head be the object: `the letter that she wrote`, `der Brief, den sie schrieb`."""
    dice.combine(verb_key(verb), head.noun)
    clause = Clause(person(dice, definite=True), verb, relative_tense(dice, verb))
    clause.tense = settle_tense(verb, clause.subject, clause.tense, None)
    if clause.tense is Tense.PAST:
        add_time(dice, clause, 0.4)
    case = Case.DATIVE if verb.frame == "dative" else Case.ACCUSATIVE
    return subordinate(clause, Phrase("that", relative_pronoun(head).german(case)))


def whose_clause(dice: Dice, head: NounPhrase) -> Phrase:
    """Let the head own the subject: `whose father works`, `dessen Vater arbeitet`."""
    pronoun = relative_pronoun(head).german(Case.GENITIVE)
    owner = Determiner("whose", phrases.unchanging(pronoun), Declension.STRONG)
    family = nouns_of(("elder",) if "young" in head.noun.kinds else ("kin",))
    relative = NounPhrase(owner, dice.pick(family))
    verb = dice.pick(verbs_done_by(relative.noun))
    clause = action(dice, verb, relative, relative_tense(dice, verb), plain=True)
    return subordinate(clause, Phrase("", ""))


def in_which_clause(dice: Dice, head: NounPhrase) -> Phrase:
    """Let the head be the place: `the house in which they live`, `das Haus, in dem sie wohnen`."""
    verb = verb_named("live" if "dwelling" in head.noun.kinds else "work")
    clause = Clause(person(dice, definite=True), verb, dice.pick((Tense.PRESENT, Tense.PRESENT, Tense.PAST)))
    clause.tense = settle_tense(verb, clause.subject, clause.tense, None)
    return subordinate(clause, Phrase("in which", f"in {relative_pronoun(head).german(Case.DATIVE)}"))
