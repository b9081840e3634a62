"""A clause as both languages see it: one set of parts, two orders of words.

English keeps its subject before its verb and moves an auxiliary for a question. German fills fields: what stands in
front, the finite verb, the middle field, the verbs that close it, and what follows. The finite verb comes second,
first or last; the other fields keep their order.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from regard.text.grammar.inflection import (
    REFLEXIVE_PRONOUN,
    Person,
    conjugate_past,
    conjugate_present,
    english_participle,
    imperative,
    infinitive,
    infinitive_with_zu,
    ing_form,
    past_form,
    past_participle,
    third_person,
)
from regard.text.grammar.lexicon import Case, EnglishVerb, GermanVerb, Verb, read_english_verb, read_german_verb
from regard.text.grammar.phrases import Nominal, Phrase


class Tense(Enum):
    """A tense of English and the one that German uses for it: Präteritum for the past, Perfekt for the perfect."""

    PRESENT = auto()
    PROGRESSIVE = auto()
    PAST = auto()
    PAST_PROGRESSIVE = auto()
    PERFECT = auto()
    PLUPERFECT = auto()
    FUTURE = auto()
    PASSIVE = auto()  # of the past, with werden


@dataclass(frozen=True, slots=True)
class Modal:
    """A modal verb; English says some with a full verb (wants to), and denies one with the meaning of another."""

    english: tuple[str, str]  # for he and she, for the others
    english_past: str
    auxiliary: bool
    before_infinitive: str
    german: GermanVerb
    german_denied: GermanVerb


@dataclass(frozen=True, slots=True)
class Adverb:
    """An adverb of frequency or aspect; German puts `late` ones behind a definite object: `das Buch schon gelesen`."""

    english: str
    german: str
    late: bool = False


@dataclass(slots=True)
class Clause:
    """The parts of a clause; the verb asks for the `complement` as for objects, `settings` say where and with whom."""

    subject: Nominal
    verb: Verb
    tense: Tense
    modal: Modal | None = None
    negated: bool = False
    dative: Nominal | None = None
    accusative: Nominal | None = None
    manner: Phrase | None = None
    complement: Phrase | None = None
    settings: tuple[Phrase, ...] = ()
    adverb: Adverb | None = None
    time: Phrase | None = None
    tail: Phrase | None = None


SEIN = read_german_verb("*sein sei war gewesen")
HABEN = read_german_verb("haben")
WERDEN = read_german_verb("*werden wird wurde geworden")
KOENNEN, MUESSEN, DUERFEN = (read_german_verb(word) for word in ("können", "müssen", "dürfen"))
WOLLEN, MOECHTEN, SOLLTEN = (read_german_verb(word) for word in ("wollen", "möchten", "sollten"))

CAN = Modal(("can", "can"), "could", True, "", KOENNEN, KOENNEN)
MUST = Modal(("must", "must"), "", True, "", MUESSEN, DUERFEN)  # must not is a ban: darf nicht
HAVE_TO = Modal(("has", "have"), "had", False, "to ", MUESSEN, MUESSEN)
MAY = Modal(("may", "may"), "", True, "", DUERFEN, DUERFEN)
SHOULD = Modal(("should", "should"), "", True, "", SOLLTEN, SOLLTEN)
WANT_TO = Modal(("wants", "want"), "wanted", False, "to ", WOLLEN, WOLLEN)
WOULD_LIKE_TO = Modal(("would", "would"), "", True, "like to ", MOECHTEN, MOECHTEN)

BE = Verb(read_english_verb("be/was/been"), SEIN, "copula", "", Case.NOMINATIVE, (), (), (), frozenset(("state",)))
BECOME = Verb(read_english_verb("become/became/become"), WERDEN, "copula", "", Case.NOMINATIVE, (), (), (), frozenset())


# -------------------------------------------------------------------------------------------------------------- English

PRESENT_OF_BE = ("am", "are", "is", "are", "are")
PAST_OF_BE = ("was", "were", "was", "were", "were")


def finite_english(verb: EnglishVerb, person: Person, past: bool) -> str:
    """Make an English verb agree with its subject."""
    if verb.base == "be":
        return (PAST_OF_BE if past else PRESENT_OF_BE)[person]
    if past:
        return past_form(verb)
    return third_person(verb.base) if person == Person.ONE else verb.base


def english_verbs(clause: Clause, inverted: bool) -> tuple[str, str, bool]:
    """Split the English verbs into the finite one and the rest, and say whether the finite one is an auxiliary.

    A full verb gets do as auxiliary where it is denied or `inverted`.
    """
    verb, person, tense, modal = clause.verb.english, clause.subject.person, clause.tense, clause.modal
    third = person == Person.ONE
    if modal:
        rest = modal.before_infinitive + verb.base
        finite = modal.english_past if tense is Tense.PAST else modal.english[0 if third else 1]
        if modal.auxiliary or not (inverted or clause.negated):
            return finite, rest, modal.auxiliary
        full = "want" if modal is WANT_TO else "have"
        return do(person, tense), f"{full} {rest}", True
    match tense:
        case Tense.FUTURE:
            return "will", verb.base, True
        case Tense.PERFECT:
            return "has" if third else "have", english_participle(verb), True
        case Tense.PLUPERFECT:
            return "had", english_participle(verb), True
        case Tense.PROGRESSIVE:
            return PRESENT_OF_BE[person], ing_form(verb.base), True
        case Tense.PAST_PROGRESSIVE:
            return PAST_OF_BE[person], ing_form(verb.base), True
        case Tense.PASSIVE:
            return PAST_OF_BE[person], english_participle(verb), True
    if verb.base != "be" and (inverted or clause.negated):
        return do(person, tense), verb.base, True
    return finite_english(verb, person, tense is Tense.PAST), "", verb.base == "be"


def do(person: Person, tense: Tense) -> str:
    """Give the form of do that carries a question or a negation."""
    if tense is Tense.PAST:
        return "did"
    return "does" if person == Person.ONE else "do"


def english_objects(clause: Clause) -> list[str]:
    """List what follows the English verbs: particle, objects, manner, complement, settings, time."""
    verb = clause.verb.english
    words = [verb.particle]
    if clause.dative and clause.verb.frame != "recipient":
        words.append(with_preposition(verb, clause.dative))
    if clause.accusative:
        words.append(with_preposition(verb, clause.accusative))
        if verb.particle and clause.accusative.pronominal:  # picks him up
            words = [words[-1], verb.particle]
    if verb.preposition and not (clause.accusative or clause.dative or clause.complement):
        words.append(verb.preposition)  # left alone: the letter that she is looking for
    if clause.dative and clause.verb.frame == "recipient":
        words.append("to " + clause.dative.english(subject=False))
    if clause.manner:
        words.append(clause.manner.english)
    if clause.complement:
        words.append(clause.complement.english)
    words += [setting.english for setting in clause.settings]
    if clause.time:
        words.append(clause.time.english)
    if clause.tail:
        words.append(clause.tail.english)
    return words


def with_preposition(verb: EnglishVerb, nominal: Nominal) -> str:
    """Put a verb's preposition before its object: `looks at the picture`."""
    text = nominal.english(subject=False)
    return f"{verb.preposition} {text}" if verb.preposition else text


def english_statement(clause: Clause, front: str = "") -> str:
    """Write the English clause as a statement, after a conjunction or whatever else stands in front."""
    finite, rest, auxiliary = english_verbs(clause, inverted=False)
    adverb = clause.adverb.english if clause.adverb else ""
    subject = clause.subject.english(subject=True)
    denial = "not" if clause.negated else ""
    if denial and finite == "can":
        finite, denial = "cannot", ""
    verbs = [finite, denial, adverb, rest] if auxiliary else [adverb, finite, rest]
    return join([front, subject, *verbs, *english_objects(clause)])


def english_question(clause: Clause, front: str = "") -> str:
    """Write the English clause as a question, after a question word or none."""
    finite, rest, _ = english_verbs(clause, inverted=True)
    adverb = clause.adverb.english if clause.adverb else ""
    return join([front, finite, clause.subject.english(subject=True), adverb, rest, *english_objects(clause)])


def english_infinitive(clause: Clause) -> str:
    """Write the English clause without its subject, ready for to or please."""
    return join([clause.verb.english.base, *english_objects(clause)])


def join(words: list[str]) -> str:
    """Join the words that there are."""
    return " ".join(word for word in words if word)


# --------------------------------------------------------------------------------------------------------------- German


def german_verbs(clause: Clause) -> tuple[str, str, str]:
    """Split the German verbs into the finite one, its separable prefix, and the verbs that close the clause."""
    verb, person, tense, modal = clause.verb.german, clause.subject.person, clause.tense, clause.modal
    if modal:
        chosen = modal.german_denied if clause.negated else modal.german
        finite = conjugate_past(chosen, person) if tense is Tense.PAST else conjugate_present(chosen, person)
        return finite, "", infinitive(verb)
    match tense:
        case Tense.FUTURE:
            return conjugate_present(WERDEN, person), "", infinitive(verb)
        case Tense.PERFECT:
            return conjugate_present(auxiliary_of(verb), person), "", past_participle(verb)
        case Tense.PLUPERFECT:
            return conjugate_past(auxiliary_of(verb), person), "", past_participle(verb)
        case Tense.PASSIVE:
            return conjugate_past(WERDEN, person), "", past_participle(verb)
        case Tense.PAST | Tense.PAST_PROGRESSIVE:
            return conjugate_past(verb, person), verb.prefix, ""
    return conjugate_present(verb, person), verb.prefix, ""


def auxiliary_of(verb: GermanVerb) -> GermanVerb:
    """Choose the auxiliary of the perfect."""
    return SEIN if verb.auxiliary == "sein" else HABEN


def middle_field(clause: Clause) -> list[str]:
    """List the German middle field after the subject and the light words.

    `Sie`, time, frequency, dative, accusative, denial, manner, settings, complement.
    """
    dative, accusative = clause.dative, clause.accusative
    denied_object = clause.negated and accusative is not None and accusative.takes_kein
    words: list[str] = []
    if accusative and accusative.pronominal and accusative.german(Case.ACCUSATIVE) == "sie":
        words.append("sie")
    if clause.time:
        words.append(clause.time.german)
    adverb = clause.adverb
    object_first = adverb is not None and adverb.late and (accusative is None or accusative.definite)
    if adverb and not object_first:
        words.append(adverb.german)
    if dative and not dative.pronominal:
        words.append(dative.german(Case.DATIVE))
    if accusative and not accusative.pronominal:
        words.append((accusative.denied() if denied_object else accusative).german(Case.ACCUSATIVE))
    if adverb and object_first:
        words.append(adverb.german)
    if clause.negated and not denied_object:
        words.append("nicht")
    if clause.manner:
        words.append(clause.manner.german)
    words += [setting.german for setting in clause.settings]
    if clause.complement:
        words.append(clause.complement.german)
    return words


def light_words(clause: Clause) -> list[str]:
    """List the short pronouns that follow the finite verb at once.

    `sie` is not among them: before a noun it would be taken for the subject.
    """
    words = [REFLEXIVE_PRONOUN[clause.subject.person]] if clause.verb.german.reflexive else []
    if clause.accusative and clause.accusative.pronominal:
        words.append(clause.accusative.german(Case.ACCUSATIVE))
    if clause.dative and clause.dative.pronominal:
        words.append(clause.dative.german(Case.DATIVE))
    return [word for word in words if word != "sie"]


def german_subject(clause: Clause) -> list[str]:
    """Put the subject where the verb does not follow it: a pronoun before the light words, others behind.

    `Gestern half er mir`, but `gestern half mir der Arzt`.
    """
    subject = clause.subject.german(Case.NOMINATIVE)
    return [subject, *light_words(clause)] if clause.subject.pronominal else [*light_words(clause), subject]


def with_tail(clause: Clause, text: str) -> str:
    """Put what follows the closing verbs behind a comma."""
    return f"{text}, {clause.tail.german}" if clause.tail else text


def verb_second(clause: Clause, front: str = "") -> str:
    """Write the German clause with its finite verb second: after the subject, or after what stands in front."""
    finite, prefix, closing = german_verbs(clause)
    if front:
        opening = [front, finite, *german_subject(clause)]
    else:
        opening = [clause.subject.german(Case.NOMINATIVE), finite, *light_words(clause)]
    return with_tail(clause, join([*opening, *middle_field(clause), closing, prefix]))


def verb_first(clause: Clause) -> str:
    """Write the German clause as a question of yes or no."""
    finite, prefix, closing = german_verbs(clause)
    return with_tail(clause, join([finite, *german_subject(clause), *middle_field(clause), closing, prefix]))


def verb_last(clause: Clause, front: str) -> str:
    """Write the German clause with its finite verb last, after a conjunction or a relative pronoun."""
    finite, prefix, closing = german_verbs(clause)
    # Without anything in front, the subject is or holds the relative pronoun, which nothing may precede.
    subject = clause.subject.german(Case.NOMINATIVE)
    opening = [front, *german_subject(clause)] if front else [subject, *light_words(clause)]
    return with_tail(clause, join([*opening, *middle_field(clause), closing, prefix + finite]))


def zu_infinitive(clause: Clause) -> str:
    """Write the German clause without its subject, closed by an infinitive with zu."""
    closing = infinitive_with_zu(clause.verb.german)
    return with_tail(clause, join([*light_words(clause), *middle_field(clause), closing]))


def german_imperative(clause: Clause) -> str:
    """Write the German clause as a request to one friend."""
    verb = clause.verb.german
    return with_tail(clause, join([imperative(verb), *light_words(clause), *middle_field(clause), verb.prefix]))


# --------------------------------------------------------------------------------------------------------------- both


def statement(clause: Clause, front: Phrase | None = None) -> Phrase:
    """Write a sentence that states the clause, the subject first or behind what stands in front."""
    if front is None:
        return finished(english_statement(clause), verb_second(clause))
    return finished(english_statement(clause, front.english), verb_second(clause, front.german))


def subordinate(clause: Clause, opening: Phrase) -> Phrase:
    """Write a subordinate clause behind its conjunction, pronoun or question word."""
    return Phrase(english_statement(clause, opening.english), verb_last(clause, opening.german))


def finished(english: str, german: str, mark: str = ".") -> Phrase:
    """Make a sentence of two texts: a capital, one comma where two clauses end at once, and the closing mark."""
    german = german.replace(",,", ",").removesuffix(",")
    return Phrase(english[0].upper() + english[1:] + mark, german[0].upper() + german[1:] + mark)
