"""How words change: German declension and conjugation, English agreement and spelling.

Everything here is a rule or a short table of exceptions; which words there are is the lexicon's matter.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache

from regard.text.grammar.lexicon import Adjective, Case, EnglishVerb, Gender, GermanVerb, Noun


class Person(IntEnum):
    """Who the subject is: the five persons that English tells apart well enough to translate."""

    I = 0  # noqa: E741 - the pronoun's name
    YOU = 1
    ONE = 2  # he, she, it and every singular noun
    WE = 3
    THEY = 4


class Declension(IntEnum):
    """What an adjective's ending must still show, given what the determiner before it has shown."""

    WEAK = 0  # after der, dieser, jeder: the determiner shows it all
    MIXED = 1  # after ein, kein, mein: it shows some
    STRONG = 2  # after numbers or nothing: the adjective must


# ----------------------------------------------------------------------------------------------------- German: nouns

# Rows are cases (nominative, accusative, dative, genitive), columns masculine, feminine, neuter, plural.
DEFINITE_ARTICLE = (
    ("der", "die", "das", "die"),
    ("den", "die", "das", "die"),
    ("dem", "der", "dem", "den"),
    ("des", "der", "des", "der"),
)
RELATIVE_PRONOUN = (
    ("der", "die", "das", "die"),
    ("den", "die", "das", "die"),
    ("dem", "der", "dem", "denen"),
    ("dessen", "deren", "dessen", "deren"),
)
DER_WORD_ENDINGS = (
    ("er", "e", "es", "e"),
    ("en", "e", "es", "e"),
    ("em", "er", "em", "en"),
    ("es", "er", "es", "er"),
)
EIN_WORD_ENDINGS = (
    ("", "e", "", "e"),
    ("en", "e", "", "e"),
    ("em", "er", "em", "en"),
    ("es", "er", "es", "er"),
)
ADJECTIVE_ENDINGS = {
    Declension.WEAK: (
        ("e", "e", "e", "en"),
        ("en", "e", "e", "en"),
        ("en", "en", "en", "en"),
        ("en", "en", "en", "en"),
    ),
    Declension.MIXED: (
        ("er", "e", "es", "en"),
        ("en", "e", "es", "en"),
        ("en", "en", "en", "en"),
        ("en", "en", "en", "en"),
    ),
    Declension.STRONG: (
        ("er", "e", "es", "e"),
        ("en", "e", "es", "e"),
        ("em", "er", "em", "en"),
        ("en", "er", "en", "er"),
    ),
}
CONTRACTIONS = {
    ("in", "dem"): "im",
    ("in", "das"): "ins",
    ("an", "dem"): "am",
    ("an", "das"): "ans",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
    ("von", "dem"): "vom",
    ("bei", "dem"): "beim",
}


@cache
def decline_noun(noun: Noun, plural: bool, case: Case) -> str:
    """Give a noun's German form: `des Hauses`, `den Kindern`, `dem Jungen`."""
    if plural:
        form = noun.german_plural
        return form + "n" if case == Case.DATIVE and not form.endswith(("n", "s")) else form
    if noun.weak and case != Case.NOMINATIVE:
        return noun.german_plural
    if case == Case.GENITIVE and noun.gender != Gender.FEMININE:
        return noun.german + genitive_ending(noun)
    return noun.german


def genitive_ending(noun: Noun) -> str:
    """Choose between -es and -s: -es after a hissing sound and in short native words, -s elsewhere."""
    word = noun.german
    if noun.german_plural == word + "se":  # der Bus, des Busses
        return "ses"
    if word.endswith(("s", "ß", "z", "x", "sch")):
        return "es"
    foreign = noun.german_plural.endswith("s")
    syllables = sum(
        letter in "aeiouyäöü" and (i == 0 or word[i - 1].lower() not in "aeiouyäöü")
        for i, letter in enumerate(word.lower())
    )
    return "es" if syllables == 1 and not foreign and word[-1] not in "aeiou" else "s"


def inflect_adjective(adjective: Adjective, declension: Declension, case: Case, gender: Gender) -> str:
    """Give an adjective its German ending: `ein alter Mann`, `dem alten Mann`."""
    ending = ADJECTIVE_ENDINGS[declension][case][gender]
    # müde ends in the e that every ending begins with
    return adjective.stem + (ending[1:] if adjective.stem.endswith("e") else ending)


# ----------------------------------------------------------------------------------------------------- German: verbs

# In the order of Person.
IRREGULAR_PRESENT = {
    "sein": ("bin", "bist", "ist", "sind", "sind"),
    "haben": ("habe", "hast", "hat", "haben", "haben"),
    "werden": ("werde", "wirst", "wird", "werden", "werden"),
    "wissen": ("weiß", "weißt", "weiß", "wissen", "wissen"),
    "können": ("kann", "kannst", "kann", "können", "können"),
    "müssen": ("muss", "musst", "muss", "müssen", "müssen"),
    "dürfen": ("darf", "darfst", "darf", "dürfen", "dürfen"),
    "wollen": ("will", "willst", "will", "wollen", "wollen"),
    "möchten": ("möchte", "möchtest", "möchte", "möchten", "möchten"),
    "sollten": ("sollte", "solltest", "sollte", "sollten", "sollten"),
}
IRREGULAR_PAST = {
    "sein": "war",
    "haben": "hatte",
    "werden": "wurde",
    "können": "konnte",
    "müssen": "musste",
    "dürfen": "durfte",
    "wollen": "wollte",
}
INSEPARABLE_PREFIXES = ("be", "er", "ver", "ent", "emp", "zer", "ge", "über", "wieder")
REFLEXIVE_PRONOUN = ("mich", "dich", "sich", "uns", "sich")


def needs_linking_e(stem: str) -> bool:
    """Say whether an e must stand between this stem and an ending: `arbeitet`, `öffnet`, but `lernt`, `wohnt`."""
    if stem.endswith(("d", "t", "chn")):
        return True
    return stem[-1] in "mn" and stem[-2] not in "aeiouäöülrhmn"


@cache
def conjugate_present(verb: GermanVerb, person: Person) -> str:
    """Give the present tense without the separable prefix."""
    if verb.infinitive in IRREGULAR_PRESENT:
        return IRREGULAR_PRESENT[verb.infinitive][person]
    if person in (Person.WE, Person.THEY):
        return verb.infinitive
    if person == Person.I:
        # ich lächle: the stem's own e gives way
        return verb.stem[:-2] + "le" if verb.infinitive.endswith("eln") else verb.stem + "e"
    changed = verb.changed != verb.stem
    linking = "e" if needs_linking_e(verb.stem) and not changed else ""
    if person == Person.YOU:
        return verb.changed + linking + ("t" if verb.changed.endswith(("s", "ß", "z")) else "st")
    return verb.changed if changed and verb.changed.endswith("t") else verb.changed + linking + "t"


@cache
def conjugate_past(verb: GermanVerb, person: Person) -> str:
    """Give the Präteritum without the separable prefix."""
    form = IRREGULAR_PAST.get(verb.infinitive) or verb.past
    if not form:
        form = verb.stem + ("ete" if needs_linking_e(verb.stem) else "te")
    if person in (Person.I, Person.ONE):
        return form
    if form.endswith("e"):
        return form + ("st" if person == Person.YOU else "n")
    if person == Person.YOU:
        return form + ("est" if form.endswith(("s", "ß")) else "st")
    return form + "en"


@cache
def past_participle(verb: GermanVerb) -> str:
    """Give the past participle, prefix included: `angerufen`, `besucht`, `repariert`."""
    if verb.participle:
        return verb.prefix + verb.participle
    stem = verb.stem + ("et" if needs_linking_e(verb.stem) else "t")
    unstressed = verb.infinitive.endswith("ieren") or verb.infinitive.startswith(INSEPARABLE_PREFIXES)
    return verb.prefix + ("" if unstressed else "ge") + stem


def infinitive(verb: GermanVerb) -> str:
    """Give the bare infinitive: `anrufen`."""
    return verb.prefix + verb.infinitive


def infinitive_with_zu(verb: GermanVerb) -> str:
    """Give the infinitive with zu: `zu lesen`, `anzurufen`."""
    return f"{verb.prefix}zu{verb.infinitive}" if verb.prefix else f"zu {verb.infinitive}"


@cache
def imperative(verb: GermanVerb) -> str:
    """Give the imperative to one friend, without the separable prefix: `lies`, `fahr`, and with -e `kaufe`, `lade`."""
    if verb.changed != verb.stem and "ä" not in verb.changed:  # e becomes i here too; a stays a
        return verb.changed
    if verb.infinitive.endswith("eln"):
        return verb.stem[:-2] + "le"
    strong = bool(verb.past)
    return verb.stem if strong and not needs_linking_e(verb.stem) else verb.stem + "e"


# --------------------------------------------------------------------------------------------------- English: verbs

DOUBLED = ("begin", "forget", "travel")  # longer words that double all the same


def doubles_last_letter(base: str) -> bool:
    """Say whether the last consonant doubles before an ending: `sit`, `plan`, `begin`, but not `visit` or `cook`."""
    if base in DOUBLED:
        return True
    vowels = [letter in "aeiou" for letter in base]
    return sum(vowels) == 1 and len(base) > 2 and vowels[-2] and not vowels[-1] and base[-1] not in "wxy"


@cache
def third_person(base: str) -> str:
    """Give the form for he and she: `watches`, `carries`, `has`."""
    if base == "have":
        return "has"
    if base.endswith(("s", "x", "ch", "sh", "o")):
        return base + "es"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ies"
    return base + "s"


@cache
def past_form(verb: EnglishVerb) -> str:
    """Give the simple past."""
    return verb.past or regular_past(verb.base)


@cache
def english_participle(verb: EnglishVerb) -> str:
    """Give the past participle."""
    return verb.participle or regular_past(verb.base)


def regular_past(base: str) -> str:
    """Add -ed by the rules of spelling."""
    if base.endswith("e"):
        return base + "d"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ied"
    return base + base[-1] + "ed" if doubles_last_letter(base) else base + "ed"


@cache
def ing_form(base: str) -> str:
    """Add -ing by the rules of spelling."""
    if base.endswith("ie"):
        return base[:-2] + "ying"
    if base.endswith("e") and not base.endswith("ee"):
        return base[:-1] + "ing"
    return base + base[-1] + "ing" if doubles_last_letter(base) else base + "ing"


def indefinite_article(following: str) -> str:
    """Choose a or an by the sound of the word that follows."""
    silent_or_consonant = following.startswith(("uni", "use"))
    return "an" if following[0] in "aeiou" and not silent_or_consonant else "a"
