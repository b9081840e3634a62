"""Where and when: places with the prepositions of both languages, and times that suit a tense."""

from __future__ import annotations

from functools import cache

from regard.text.grammar import phrases
from regard.text.grammar.clauses import Adverb, Modal, Tense
from regard.text.grammar.lexicon import (
    CITIES,
    COUNTRIES,
    MONTHS,
    PLACE_ENTRIES,
    SEASONS,
    WEEKDAYS,
    Case,
    Noun,
    Place,
    Verb,
    pairs,
)
from regard.text.grammar.meaning import Dice, adjectives_of, noun_is_ownable, nouns_of, possessive
from regard.text.grammar.numbers import english_number, german_number
from regard.text.grammar.phrases import NounPhrase, Phrase, adverbial

# --------------------------------------------------------------------------------------------------------------- places

HOME = Phrase("home", "nach Hause")
TOWNS = pairs(CITIES + " " + COUNTRIES)
UNDER = (("on", "auf"), ("on", "auf"), ("under", "unter"), ("next to", "neben"))
IN_FRONT = (("in front of", "vor"), ("behind", "hinter"), ("next to", "neben"))


@cache
def places_of(kinds: tuple[str, ...]) -> tuple[Place, ...]:
    """List the places of any of these kinds."""
    return tuple(place for place in PLACE_ENTRIES if set(kinds).intersection(place.noun.kinds))


def scenery(dice: Dice, noun: Noun, owner: str) -> NounPhrase:
    """Build the noun phrase of a place: definite, now and then owned or described."""
    determiner = phrases.THE
    if noun_is_ownable(noun) and dice.chance(0.25):
        determiner = possessive(dice, owner)
    phrase = NounPhrase(determiner, noun)
    if dice.chance(0.15) and adjectives_of(noun):
        phrase.adjective = dice.pick(adjectives_of(noun))
        dice.combine(phrase.adjective.english, noun)
    return phrase


def location(dice: Dice, kinds: tuple[str, ...], owner: str) -> Phrase:
    """Say where something is or happens; German asks for the dative."""
    kind = dice.pick(kinds)
    if kind in ("surface", "seat"):
        english, german = dice.pick(UNDER) if kind == "surface" else ("on", "auf")
        return adverbial(english, german, scenery(dice, dice.pick(nouns_of((kind,))), owner), Case.DATIVE)
    if kind == "hanger":
        return adverbial("in", "in", scenery(dice, dice.pick(nouns_of((kind,))), owner), Case.DATIVE)
    if kind == "dwelling" and dice.chance(0.4):
        english, german = dice.pick(TOWNS)
        return Phrase("in " + english, "in " + german)
    place = dice.pick(places_of((kind,)))
    english, german = dice.pick(IN_FRONT) if kind == "front" else place.at
    return adverbial(english, german, scenery(dice, place.noun, owner), Case.DATIVE)


def direction(dice: Dice, kinds: tuple[str, ...], owner: str) -> Phrase:
    """Say where someone goes; German asks for the accusative after in, an and auf."""
    kind = dice.pick(kinds)
    if kind == "home":
        return HOME
    if kind == "abroad":
        english, german = dice.pick(TOWNS)
        return Phrase("to " + english, "nach " + german)
    place = dice.pick(places_of((kind,)))
    english, german = place.to
    case = Case.DATIVE if german == "zu" else Case.ACCUSATIVE
    return adverbial(english, german, scenery(dice, place.noun, owner), case)


# ---------------------------------------------------------------------------------------------------------------- times

DAYS = tuple(Phrase("on " + english, "am " + german) for english, german in pairs(WEEKDAYS))
EVERY_DAY = tuple(Phrase(f"every {english}", f"jeden {german}") for english, german in pairs(WEEKDAYS))
IN_MONTHS = tuple(Phrase("in " + english, "im " + german) for english, german in pairs(MONTHS))
IN_SEASONS = tuple(Phrase("in " + english, "im " + german) for english, german in pairs(SEASONS))


def table_of_times(text: str) -> tuple[Phrase, ...]:
    """Read `English / German` times, one a line."""
    return tuple(Phrase(*(part.strip() for part in line.split("/"))) for line in text.strip().splitlines())


PAST_MOMENTS = table_of_times("""
    yesterday / gestern
    yesterday evening / gestern Abend
    last night / letzte Nacht
""")
PAST_SPANS = table_of_times("""
    last week / letzte Woche
    last month / letzten Monat
    last summer / letzten Sommer
    last year / letztes Jahr
""")
PAST_TIMES = PAST_MOMENTS * 2 + PAST_SPANS
FUTURE_TIMES = table_of_times("""
    tomorrow / morgen
    tomorrow / morgen
    tomorrow evening / morgen Abend
    next week / nächste Woche
    next year / nächstes Jahr
    next month / nächsten Monat
    soon / bald
    this evening / heute Abend
""")
HABITS = table_of_times("""
    every day / jeden Tag
    every week / jede Woche
    every evening / jeden Abend
    in the morning / am Morgen
    in the evening / am Abend
    on weekdays / an Werktagen
""")
NOW = table_of_times("""
    now / jetzt
    today / heute
    at the moment / im Moment
""")
RECENTLY = table_of_times("""
    today / heute
    this morning / heute Morgen
""")
FREQUENCIES = (
    Adverb("often", "oft"),
    Adverb("always", "immer"),
    Adverb("never", "nie"),
    Adverb("sometimes", "manchmal"),
    Adverb("rarely", "selten"),
)
ALREADY = Adverb("already", "schon", late=True)
JUST = Adverb("just", "gerade")


def clock_time(hour: int, minute: int) -> Phrase:
    """Say a time on the twelve-hour clock: German counts the half hour towards the next hour."""
    following = hour % 12 + 1
    if minute == 0:
        return Phrase(f"{english_number(hour)} o'clock", f"{'ein' if hour == 1 else german_number(hour)} Uhr")
    if minute == 30:
        return Phrase(f"half past {english_number(hour)}", f"halb {german_number(following)}")
    late = minute > 30
    distance = 60 - minute if late else minute
    english = "quarter" if distance == 15 else english_number(distance)
    german = "Viertel" if distance == 15 else german_number(distance)
    near = following if late else hour
    return Phrase(
        f"{english} {'to' if late else 'past'} {english_number(near)}",
        f"{german} {'vor' if late else 'nach'} {german_number(near)}",
    )


def digital_time(hour: int, minute: int) -> Phrase:
    """Write a time in digits."""
    return Phrase(f"{hour}:{minute:02d}", f"{hour}:{minute:02d} Uhr")


def clock(dice: Dice) -> Phrase:
    """Say at what time, in words or digits."""
    if dice.chance(0.3):
        time = digital_time(dice.between(6, 22), dice.between(1, 11) * 5)
    else:
        time = clock_time(dice.between(1, 12), dice.pick((0, 0, 0, 10, 15, 20, 30, 30, 40, 45, 50)))
    return Phrase("at " + time.english, "um " + time.german)


def calendar_date(dice: Dice) -> Phrase:
    """Say on which day of which month."""
    day = dice.between(1, 28)
    english, german = dice.pick(pairs(MONTHS))
    return Phrase(f"on {day} {english}", f"am {day}. {german}")


def ago(dice: Dice) -> Phrase:
    """Say how long ago; German counts in the dative."""
    number, unit = dice.between(2, 10), dice.pick((("days", "Tagen"), ("weeks", "Wochen"), ("years", "Jahren")))
    count = phrases.counted(number)
    return Phrase(f"{count.english} {unit[0]} ago", f"vor {count.forms[0][0]} {unit[1]}")


def time_for(dice: Dice, verb: Verb, tense: Tense, modal: Modal | None = None) -> Phrase:
    """Choose a time that goes with a tense, and with how long such things last."""
    match tense:
        case Tense.PROGRESSIVE:
            return dice.pick(NOW)
        case Tense.PERFECT:
            return dice.pick(RECENTLY)
        case Tense.PRESENT if not modal:
            seasonal = "abroad" in verb.places or "outdoors" in verb.places
            habits = (HABITS, HABITS, EVERY_DAY, IN_SEASONS if seasonal else HABITS)
            return dice.pick(dice.pick(habits)) if dice.chance(0.8) else clock(dice)
        case Tense.PAST_PROGRESSIVE:
            return dice.pick(PAST_MOMENTS) if dice.chance(0.6) else clock(dice)
    past = tense in (Tense.PAST, Tense.PASSIVE)
    if "state" in verb.traits:
        return dice.pick(PAST_SPANS)
    draw = dice.random()
    if draw < 0.22:
        return dice.pick(DAYS)
    if draw < 0.36:
        return clock(dice)
    if draw < 0.42:
        return calendar_date(dice)
    if draw < 0.5 and "abroad" in verb.places:
        return dice.pick(IN_MONTHS)
    if draw < 0.54 and past:
        return ago(dice)
    return dice.pick(PAST_TIMES if past else FUTURE_TIMES)
