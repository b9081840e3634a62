"""Someone doing something: a verb, a subject that can do it, an object that it can be done to, and a tense."""

from __future__ import annotations

from regard.text.grammar import phrases
from regard.text.grammar.circumstances import ALREADY, FREQUENCIES, JUST, direction, location, scenery, time_for
from regard.text.grammar.clauses import (
    BE,
    CAN,
    HAVE_TO,
    MAY,
    MUST,
    SHOULD,
    WANT_TO,
    WOULD_LIKE_TO,
    Clause,
    Modal,
    Tense,
)
from regard.text.grammar.inflection import Person, past_form
from regard.text.grammar.lexicon import Case, Noun, Verb
from regard.text.grammar.meaning import (
    DOABLE,
    EVERYDAY,
    NAME_ENTRIES,
    OTHERS,
    Dice,
    noun_phrase,
    nouns_of,
    someone_else,
    subject_for,
    verb_key,
)
from regard.text.grammar.phrases import POSSESSIVES, Nominal, NounPhrase, Phrase, Word, adverbial, prepositional

TENSES = (
    *(Tense.PRESENT,) * 4,
    *(Tense.PROGRESSIVE,) * 4,
    *(Tense.PAST,) * 6,
    *(Tense.PAST_PROGRESSIVE,),
    *(Tense.PERFECT,) * 4,
    *(Tense.FUTURE,) * 3,
)
TENSES_OF = {
    "state": (Tense.PRESENT, Tense.PRESENT, Tense.PAST),
    "posture": (Tense.PROGRESSIVE, Tense.PAST, Tense.PAST_PROGRESSIVE),
    "stative": (Tense.PRESENT, Tense.PAST, Tense.PAST, Tense.PERFECT, Tense.FUTURE),
}
MODALS = (CAN, CAN, MUST, SHOULD, WANT_TO, WANT_TO, HAVE_TO, WOULD_LIKE_TO, MAY)
PAST_MODALS = (CAN, WANT_TO, HAVE_TO)
MANNERS = {
    "slow": Phrase("slowly", "langsam"),
    "quick": Phrase("quickly", "schnell"),
    "careful": Phrase("carefully", "vorsichtig"),
    "quiet": Phrase("quietly", "leise"),
    "loud": Phrase("loudly", "laut"),
}
MANNER_TRAITS = tuple(MANNERS)


MODAL_VERBS = frozenset(DOABLE)


def choose_tense(dice: Dice, verb: Verb) -> tuple[Tense, Modal | None]:
    """Choose a tense that suits the verb, or a modal."""
    for trait, tenses in TENSES_OF.items():
        if trait in verb.traits:
            return dice.pick(tenses), None
    if verb in MODAL_VERBS and dice.chance(0.2):
        return (Tense.PAST, dice.pick(PAST_MODALS)) if dice.chance(0.25) else (Tense.PRESENT, dice.pick(MODALS))
    return dice.pick(TENSES), None


def settle_tense(verb: Verb, subject: Nominal, tense: Tense, modal: Modal | None) -> Tense:
    """Replace a tense that would be ambiguous in English or stilted in German.

    `They put` may be present or past; `du legtest` is what no one says.
    """
    if modal:
        return tense
    if subject.person == Person.YOU and verb is not BE:
        tense = {Tense.PAST: Tense.PERFECT, Tense.PAST_PROGRESSIVE: Tense.PROGRESSIVE}.get(tense, tense)
    ambiguous = past_form(verb.english) == verb.english.base and subject.person != Person.ONE
    in_progress = {Tense.PRESENT: Tense.PROGRESSIVE, Tense.PAST: Tense.PAST_PROGRESSIVE}
    return in_progress.get(tense, tense) if ambiguous else tense


def bare_clause(dice: Dice, verb: Verb, subject: Nominal) -> Clause:
    """Build a clause of subject, verb and tense whose objects are left open: `what does he read`."""
    tense, modal = choose_tense(dice, verb)
    clause = Clause(subject, verb, settle_tense(verb, subject, tense, modal), modal)
    say_what_goes_on(dice, clause)
    return clause


def action(
    dice: Dice,
    verb: Verb | None = None,
    subject: Nominal | None = None,
    tense: Tense | None = None,
    modal: Modal | None = None,
    negated: bool = False,
    plain: bool = False,
) -> Clause:
    """Build a clause about someone doing something; what is not given is chosen, `plain` leaves out what it can."""
    verb = verb or dice.pick(EVERYDAY)
    subject = subject or subject_for(dice, verb, definite=negated)
    free = tense is None
    if tense is None:
        tense, modal = choose_tense(dice, verb)
    clause = Clause(subject, verb, settle_tense(verb, subject, tense, modal), modal, negated)
    fill_frame(dice, clause)
    if not plain:
        add_settings(dice, clause)
    if free:
        say_what_goes_on(dice, clause)
    return clause


def say_what_goes_on(dice: Dice, clause: Clause) -> None:
    """Make a plain present progressive: English keeps the plain one for what is usual, and says so."""
    usual = clause.modal or clause.time or clause.adverb or NOT_IN_PROGRESS.intersection(clause.verb.traits)
    if clause.tense is Tense.PRESENT and not usual and dice.chance(0.7):
        clause.tense = Tense.PROGRESSIVE


NOT_IN_PROGRESS = frozenset(("state", "stative"))


def fill_frame(dice: Dice, clause: Clause) -> None:
    """Give the verb the objects that it demands."""
    verb, owner = clause.verb, clause.subject.pronoun
    match verb.frame:
        case "transitive":
            clause.accusative = object_for(dice, clause)
        case "dative":
            clause.dative = object_for(dice, clause)
        case "ditransitive" | "recipient":
            clause.dative = addressee(dice, verb, clause.subject, definite=True)
            clause.accusative = object_for(dice, clause)
        case "prepositional":
            nominal = object_for(dice, clause)
            clause.complement = prepositional(verb.english.preposition, verb.preposition, nominal, verb.case)
        case "direction":
            clause.complement = direction(dice, verb.places, owner)
        case "location":
            clause.settings = (location(dice, verb.places, owner),)
        case "placing":
            clause.accusative = object_for(dice, clause)
            surface = scenery(dice, dice.pick(nouns_of(("surface",))), owner)
            clause.complement = adverbial("on", "auf", surface, Case.ACCUSATIVE)


def addressee(dice: Dice, verb: Verb, subject: Nominal, definite: bool) -> Nominal:
    """Choose a person that the verb is done to."""
    other = someone_else(dice, subject, definite)
    if isinstance(other, NounPhrase):
        dice.combine(verb_key(verb), other.noun)
    return other


def object_for(dice: Dice, clause: Clause) -> Nominal:
    """Choose an object that the verb can be done to."""
    verb, subject = clause.verb, clause.subject
    if "people" in verb.objects and dice.chance(0.75):
        return addressee(dice, verb, subject, definite=clause.negated)
    noun = dice.pick(nouns_of(verb.objects))
    dice.combine(verb_key(verb), noun)
    if "drink" in noun.kinds and not clause.negated and dice.chance(0.3):
        return served(dice, noun)
    phrase = noun_phrase(dice, noun, subject.pronoun)
    # Numbers and the like under a negation would leave open what is denied.
    if clause.negated and not (phrase.definite or phrase.takes_kein):
        phrase.determiner = phrases.THE
    return phrase


VESSELS = {noun.english: noun for noun in nouns_of(("cup", "glass", "bottle"))}


def served(dice: Dice, drink: Noun) -> Word:
    """Pour a drink into what it is served in."""
    vessel = VESSELS["cup"] if drink.english in ("coffee", "tea") else VESSELS[dice.pick(("glass", "bottle"))]
    if dice.chance(0.7):
        return phrases.measure(NounPhrase(phrases.INDEFINITE, vessel), drink)
    return phrases.measure(NounPhrase(phrases.counted(dice.between(2, 4)), vessel, plural=True), drink)


def add_settings(dice: Dice, clause: Clause) -> None:
    """Add how, with whom, where and when."""
    verb, owner = clause.verb, clause.subject.pronoun
    manners = [trait for trait in MANNER_TRAITS if trait in verb.traits]
    # langsam einen Apfel, but den Apfel langsam: only a definite object keeps the order that is written here.
    settled = clause.accusative is None or clause.accusative.definite
    if manners and not clause.negated and settled and dice.chance(0.25):
        clause.manner = MANNERS[dice.pick(manners)]
    elif "with" in verb.traits and clause.subject.person != Person.THEY and dice.chance(0.3):
        clause.settings = (prepositional("with", "mit", companion(dice, clause.subject), Case.DATIVE), *clause.settings)
    elif "vehicle" in verb.traits and dice.chance(0.5):
        vehicle = NounPhrase(phrases.THE, dice.pick(nouns_of(("public",))))
        clause.settings = (Phrase("by " + vehicle.noun.english, "mit " + vehicle.german(Case.DATIVE)),)
    if verb.places and verb.frame in ("transitive", "dative", "prepositional", "intransitive") and dice.chance(0.45):
        clause.settings += (location(dice, verb.places, owner),)
    add_time(dice, clause)


def companion(dice: Dice, subject: Nominal) -> Nominal:
    """Choose whom the subject has with it."""
    if dice.chance(0.3):
        return dice.pick(tuple(name for name in NAME_ENTRIES if name is not subject))
    owner = subject.pronoun or dice.pick(OTHERS)
    return NounPhrase(POSSESSIVES[owner], dice.pick(nouns_of(("kin", "friend"))))


def add_time(dice: Dice, clause: Clause, probability: float = 0.6) -> None:
    """Add a time or an adverb of frequency where the tense allows one."""
    habit = clause.tense is Tense.PRESENT and not clause.modal
    # `Not every day` and `every day not` are two things; `he knows it now` is neither.
    timeless = (habit and clause.negated) or ("state" in clause.verb.traits and clause.tense is not Tense.PAST)
    if timeless or not dice.chance(probability):
        return
    if clause.tense is Tense.PERFECT and not clause.negated and dice.chance(0.6):
        clause.adverb = dice.pick((ALREADY, JUST))
    elif habit and dice.chance(0.5):
        clause.adverb = dice.pick(FREQUENCIES)
    else:
        clause.time = time_for(dice, clause.verb, clause.tense, clause.modal)
