"""The embedded grammar: paradigms against tables written by hand, and properties of thousands of sentences."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

import pytest

from regard.text.grammar import Pair, make_splits, write_pairs
from regard.text.grammar.actions import settle_tense
from regard.text.grammar.circumstances import clock_time, digital_time
from regard.text.grammar.clauses import (
    CAN,
    HAVE_TO,
    MUST,
    WANT_TO,
    Adverb,
    Clause,
    Tense,
    english_infinitive,
    english_question,
    english_statement,
    german_imperative,
    statement,
    verb_first,
    verb_last,
    verb_second,
    zu_infinitive,
)
from regard.text.grammar.inflection import (
    Declension,
    Person,
    conjugate_past,
    conjugate_present,
    decline_noun,
    english_participle,
    imperative,
    indefinite_article,
    ing_form,
    past_form,
    past_participle,
    third_person,
)
from regard.text.grammar.lexicon import (
    ADJECTIVE_ENTRIES,
    NOUN_ENTRIES,
    PLACE_ENTRIES,
    VERB_ENTRIES,
    Case,
    read_english_verb,
    read_german_verb,
)
from regard.text.grammar.meaning import verb_key
from regard.text.grammar.numbers import english_number, german_number
from regard.text.grammar.phrases import (
    BARE,
    INDEFINITE,
    NONE,
    POSSESSIVES,
    PRONOUNS,
    THE,
    THIS,
    Determiner,
    NounPhrase,
    Phrase,
    adverbial,
    coordinate,
    counted,
    measure,
    name,
    name_as_owner,
    prepositional,
    relative_pronoun,
    unchanging,
)
from regard.text.grammar.splits import SHARES, is_held_out, write_drafts

NOUNS = {noun.english: noun for noun in (*NOUN_ENTRIES, *(place.noun for place in PLACE_ENTRIES))}
ADJECTIVES = {adjective.english: adjective for adjective in ADJECTIVE_ENTRIES}
VERBS = {(verb_key(verb), verb.frame): verb for verb in VERB_ENTRIES}
CASES = tuple(Case)


def verb(key, frame="transitive"):
    return VERBS[key, frame]


def the(noun, adjective=None, plural=False):
    return phrase(THE, noun, adjective, plural)


def phrase(determiner, noun, adjective=None, plural=False):
    return NounPhrase(determiner, NOUNS[noun], plural, ADJECTIVES[adjective] if adjective else None)


@pytest.fixture(scope="module")
def drafts():
    stream = write_drafts(seed=11)
    return [next(stream) for _ in range(50_000)]


@pytest.fixture(scope="module")
def corpus(drafts):
    return [draft.pair for draft in drafts]


@pytest.fixture(scope="module")
def splits():
    return make_splits(train=6_000, valid=200, test=300, heldout=200, seed=1)


# ------------------------------------------------------------------------------------------------- German noun phrases

# Nominative, accusative, dative, genitive of masculine, feminine, neuter and plural.
WEAK = """
der alte Mann    | die alte Frau    | das alte Buch    | die alten Bücher
den alten Mann   | die alte Frau    | das alte Buch    | die alten Bücher
dem alten Mann   | der alten Frau   | dem alten Buch   | den alten Büchern
des alten Mannes | der alten Frau   | des alten Buches | der alten Bücher
"""
MIXED = """
ein alter Mann    | eine alte Frau   | ein altes Buch    | keine alten Bücher
einen alten Mann  | eine alte Frau   | ein altes Buch    | keine alten Bücher
einem alten Mann  | einer alten Frau | einem alten Buch  | keinen alten Büchern
eines alten Mannes| einer alten Frau | eines alten Buches| keiner alten Bücher
"""
STRONG = """
kalter Wein  | kalte Milch  | kaltes Bier  | drei alte Bücher
kalten Wein  | kalte Milch  | kaltes Bier  | drei alte Bücher
kaltem Wein  | kalter Milch | kaltem Bier  | drei alten Büchern
"""


def table(text):
    return [[cell.strip() for cell in row.split("|")] for row in text.strip().splitlines()]


def declined(phrases, rows):
    return [[phrase.german(case) for phrase in phrases] for case in CASES[:rows]]


def test_adjectives_after_the_definite_article_are_weak():
    phrases = (the("man", "old"), the("woman", "old"), the("book", "old"), the("book", "old", plural=True))
    assert declined(phrases, 4) == table(WEAK)


def test_adjectives_after_the_indefinite_article_are_mixed():
    singular = [phrase(INDEFINITE, noun, "old") for noun in ("man", "woman", "book")]
    assert declined([*singular, phrase(NONE, "book", "old", plural=True)], 4) == table(MIXED)


def test_adjectives_without_an_article_are_strong():
    substances = [phrase(BARE, noun, "cold") for noun in ("wine", "milk", "beer")]
    assert declined([*substances, phrase(counted(3), "book", "old", plural=True)], 3) == table(STRONG)


@pytest.mark.parametrize(
    ("determiner", "expected"),
    [
        (THIS, "dieser diesen diesem dieses"),
        (NONE, "kein keinen keinem keines"),
        (POSSESSIVES["I"], "mein meinen meinem meines"),
        (POSSESSIVES["you"], "dein deinen deinem deines"),
        (POSSESSIVES["he"], "sein seinen seinem seines"),
        (POSSESSIVES["she"], "ihr ihren ihrem ihres"),
        (POSSESSIVES["we"], "unser unseren unserem unseres"),
        (POSSESSIVES["they"], "ihr ihren ihrem ihres"),
    ],
)
def test_determiners_decline(determiner, expected):
    assert [phrase(determiner, "man").german(case).split()[0] for case in CASES] == expected.split()


@pytest.mark.parametrize(
    ("noun", "expected"),
    [
        ("boy", "Junge Jungen Jungen Jungen"),
        ("student", "Student Studenten Studenten Studenten"),
        ("neighbour", "Nachbar Nachbarn Nachbarn Nachbarn"),
        ("bear", "Bär Bären Bären Bären"),
        ("house", "Haus Haus Haus Hauses"),
        ("child", "Kind Kind Kind Kindes"),
        ("teacher", "Lehrer Lehrer Lehrer Lehrers"),
        ("boss", "Chef Chef Chef Chefs"),
        ("car", "Auto Auto Auto Autos"),
        ("bus", "Bus Bus Bus Busses"),
        ("desk", "Schreibtisch Schreibtisch Schreibtisch Schreibtisches"),
        ("queen", "Königin Königin Königin Königin"),
    ],
)
def test_nouns_decline_in_the_singular(noun, expected):
    assert [decline_noun(NOUNS[noun], False, case) for case in CASES] == expected.split()


@pytest.mark.parametrize(
    ("noun", "expected"),
    [("child", "Kindern"), ("woman", "Frauen"), ("car", "Autos"), ("teacher", "Lehrern"), ("garden", "Gärten")],
)
def test_the_dative_plural_ends_in_n_unless_in_s(noun, expected):
    assert decline_noun(NOUNS[noun], True, Case.DATIVE) == expected


@pytest.mark.parametrize(
    ("adjective", "noun", "expected"),
    [
        ("expensive", "car", "ein teures Auto"),
        ("dark", "room", "ein dunkles Zimmer"),
        ("tired", "man", "ein müder Mann"),
    ],
)
def test_adjectives_with_a_stem_of_their_own(adjective, noun, expected):
    assert phrase(INDEFINITE, noun, adjective).german(Case.NOMINATIVE) == expected


def test_possessors_stand_in_the_genitive():
    owned = NounPhrase(THE, NOUNS["car"], adjective=ADJECTIVES["new"], possessor=the("doctor"))
    assert owned.english(subject=True) == "the doctor's new car"
    assert owned.german(Case.DATIVE) == "dem neuen Auto des Arztes"
    assert phrase(name_as_owner("Anna"), "brother", "young").german(Case.ACCUSATIVE) == "Annas jungen Bruder"


def test_measures_and_pairs_of_people_decline_in_all_parts():
    coffee = measure(phrase(INDEFINITE, "cup"), NOUNS["coffee"])
    assert (coffee.english(subject=False), coffee.german(Case.ACCUSATIVE)) == ("a cup of coffee", "eine Tasse Kaffee")
    both = coordinate(name("Anna", "she"), phrase(POSSESSIVES["she"], "brother"))
    assert (both.english(subject=True), both.german(Case.DATIVE)) == ("Anna and her brother", "Anna und ihrem Bruder")


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (the("man"), "der den dem dessen"),
        (the("woman"), "die die der deren"),
        (the("girl"), "das das dem dessen"),
        (the("child", plural=True), "die die denen deren"),
    ],
)
def test_relative_pronouns_take_gender_and_number_from_their_head(head, expected):
    assert [relative_pronoun(head).german(case) for case in CASES] == expected.split()


def test_pronouns_decline():
    declined = {key: " ".join(word.german(case) for case in CASES[:3]) for key, word in PRONOUNS.items()}
    assert declined == {
        "I": "ich mich mir",
        "you": "du dich dir",
        "he": "er ihn ihm",
        "she": "sie sie ihr",
        "we": "wir uns uns",
        "they": "sie sie ihnen",
    }


@pytest.mark.parametrize(
    ("preposition", "noun", "location", "direction"),
    [
        ("in", "garden", "im Garten", "in den Garten"),
        ("in", "kitchen", "in der Küche", "in die Küche"),
        ("in", "house", "im Haus", "ins Haus"),
        ("an", "lake", "am See", "an den See"),
        ("an", "window", "am Fenster", "ans Fenster"),
        ("auf", "table", "auf dem Tisch", "auf den Tisch"),
        ("unter", "bed", "unter dem Bett", "unter das Bett"),
    ],
)
def test_two_way_prepositions_take_the_dative_for_place_and_the_accusative_for_direction(
    preposition, noun, location, direction
):
    assert adverbial("-", preposition, the(noun), Case.DATIVE).german == location
    assert adverbial("-", preposition, the(noun), Case.ACCUSATIVE).german == direction


def test_only_the_bare_article_contracts():
    assert adverbial("to", "zu", the("station"), Case.DATIVE).german == "zum Bahnhof"
    assert adverbial("to", "zu", the("church"), Case.DATIVE).german == "zur Kirche"
    assert adverbial("in", "in", phrase(THIS, "garden"), Case.DATIVE).german == "in diesem Garten"
    assert adverbial("in", "in", phrase(POSSESSIVES["she"], "garden"), Case.DATIVE).german == "in ihrem Garten"
    assert prepositional("on", "an", the("report"), Case.DATIVE).german == "an dem Bericht"


# -------------------------------------------------------------------------------------------------------- German verbs


@pytest.mark.parametrize(
    ("text", "present", "past", "participle"),
    [
        ("kaufen", "kaufe kaufst kauft kaufen", "kaufte kauftest kaufte kauften", "gekauft"),
        ("arbeiten", "arbeite arbeitest arbeitet arbeiten", "arbeitete arbeitetest arbeitete arbeiteten", "gearbeitet"),
        ("öffnen", "öffne öffnest öffnet öffnen", "öffnete öffnetest öffnete öffneten", "geöffnet"),
        ("zeichnen", "zeichne zeichnest zeichnet zeichnen", "zeichnete zeichnetest zeichnete zeichneten", "gezeichnet"),
        ("lernen", "lerne lernst lernt lernen", "lernte lerntest lernte lernten", "gelernt"),
        ("lächeln", "lächle lächelst lächelt lächeln", "lächelte lächeltest lächelte lächelten", "gelächelt"),
        ("spielen", "spiele spielst spielt spielen", "spielte spieltest spielte spielten", "gespielt"),
        ("füttern", "füttere fütterst füttert füttern", "fütterte füttertest fütterte fütterten", "gefüttert"),
        ("tanzen", "tanze tanzt tanzt tanzen", "tanzte tanztest tanzte tanzten", "getanzt"),
        ("reparieren", "repariere reparierst repariert reparieren", "reparierte repariertest reparierte reparierten",
         "repariert"),
        ("besuchen", "besuche besuchst besucht besuchen", "besuchte besuchtest besuchte besuchten", "besucht"),
        ("übersetzen", "übersetze übersetzt übersetzt übersetzen", "übersetzte übersetztest übersetzte übersetzten",
         "übersetzt"),
        ("lesen lies las gelesen", "lese liest liest lesen", "las lasest las lasen", "gelesen"),
        ("geben gib gab gegeben", "gebe gibst gibt geben", "gab gabst gab gaben", "gegeben"),
        ("fahren fähr fuhr gefahren", "fahre fährst fährt fahren", "fuhr fuhrst fuhr fuhren", "gefahren"),
        ("betreten betritt betrat betreten", "betrete betrittst betritt betreten", "betrat betratst betrat betraten",
         "betreten"),
        ("bringen bring brachte gebracht", "bringe bringst bringt bringen", "brachte brachtest brachte brachten",
         "gebracht"),
        ("finden find fand gefunden", "finde findest findet finden", "fand fandst fand fanden", "gefunden"),
        ("wissen wiss wusste gewusst", "weiß weißt weiß wissen", "wusste wusstest wusste wussten", "gewusst"),
        ("bellen bell bellte gebellt", "belle bellst bellt bellen", "bellte belltest bellte bellten", "gebellt"),
        ("haben", "habe hast hat haben", "hatte hattest hatte hatten", "gehabt"),
        ("sein sei war gewesen", "bin bist ist sind", "war warst war waren", "gewesen"),
    ],
)  # fmt: skip
def test_german_verbs_conjugate(text, present, past, participle):
    german = read_german_verb(text)
    persons = (Person.I, Person.YOU, Person.ONE, Person.THEY)
    assert " ".join(conjugate_present(german, person) for person in persons) == present
    assert " ".join(conjugate_past(german, person) for person in persons) == past
    assert past_participle(german) == participle
    assert conjugate_present(german, Person.WE) == conjugate_present(german, Person.THEY)


@pytest.mark.parametrize(
    ("key", "frame", "expected"),
    [
        ("read", "transitive", "lies"),
        ("take along", "transitive", "nimm"),
        ("help", "dative", "hilf"),
        ("open", "transitive", "öffne"),
        ("feed", "transitive", "füttere"),
        ("drive", "direction", "fahr"),
        ("buy", "transitive", "kaufe"),
        ("invite", "transitive", "lade"),
        ("smile", "intransitive", "lächle"),
    ],
)
def test_requests_to_a_friend(key, frame, expected):
    assert imperative(verb(key, frame).german) == expected


# ------------------------------------------------------------------------------------------------------------- English


@pytest.mark.parametrize(
    ("text", "third", "past", "participle", "ing"),
    [
        ("watch", "watches", "watched", "watched", "watching"),
        ("tidy:up", "tidies", "tidied", "tidied", "tidying"),
        ("play", "plays", "played", "played", "playing"),
        ("plan", "plans", "planned", "planned", "planning"),
        ("visit", "visits", "visited", "visited", "visiting"),
        ("travel", "travels", "travelled", "travelled", "travelling"),
        ("lie/lay/lain", "lies", "lay", "lain", "lying"),
        ("go/went/gone", "goes", "went", "gone", "going"),
        ("have/had/had", "has", "had", "had", "having"),
        ("begin/began/begun", "begins", "began", "begun", "beginning"),
        ("see/saw/seen", "sees", "saw", "seen", "seeing"),
    ],
)
def test_english_verbs_inflect(text, third, past, participle, ing):
    english = read_english_verb(text)
    forms = (third_person(english.base), past_form(english), english_participle(english), ing_form(english.base))
    assert forms == (third, past, participle, ing)


@pytest.mark.parametrize(("word", "article"), [("apple", "an"), ("old", "an"), ("man", "a"), ("uncle", "an")])
def test_the_indefinite_article_follows_the_sound(word, article):
    assert indefinite_article(word) == article


# ---------------------------------------------------------------------------------------------------------- word order


def clause(key, tense, frame="transitive", subject=PRONOUNS["he"], **parts):
    return Clause(subject, verb(key, frame), tense, **parts)


def test_separable_verbs_split_join_and_take_ge_and_zu_inside():
    calls = clause("call", Tense.PRESENT, accusative=the("doctor"))
    called = clause("call", Tense.PERFECT, accusative=the("doctor"))
    assert verb_second(calls) == "er ruft den Arzt an"
    assert verb_last(calls, "weil") == "weil er den Arzt anruft"
    assert verb_first(calls) == "ruft er den Arzt an"
    assert verb_second(called) == "er hat den Arzt angerufen"
    assert verb_last(called, "dass") == "dass er den Arzt angerufen hat"
    assert zu_infinitive(calls) == "den Arzt anzurufen"
    assert german_imperative(calls) == "ruf den Arzt an"
    assert verb_second(clause("call", Tense.FUTURE, accusative=the("doctor"))) == "er wird den Arzt anrufen"


def test_a_fronted_time_takes_the_first_place():
    goes = clause("go", Tense.PAST, "direction", subject=the("man"), complement=Phrase("home", "nach Hause"))
    yesterday = Phrase("yesterday", "gestern")
    assert statement(goes, yesterday) == ("Yesterday the man went home.", "Gestern ging der Mann nach Hause.")


def test_the_perfect_takes_sein_where_one_moves():
    went = clause("go", Tense.PERFECT, "direction", complement=Phrase("home", "nach Hause"))
    assert statement(went) == ("He has gone home.", "Er ist nach Hause gegangen.")
    slept = clause("sleep", Tense.PLUPERFECT, "intransitive")
    assert statement(slept) == ("He had slept.", "Er hatte geschlafen.")


def test_pronouns_lead_the_middle_field_and_times_follow():
    gave = clause("give", Tense.PAST, "ditransitive", dative=PRONOUNS["she"], accusative=the("book"))
    gave.time = Phrase("yesterday", "gestern")
    assert statement(gave) == ("He gave her the book yesterday.", "Er gab ihr gestern das Buch.")
    gave.dative = the("woman")
    assert verb_second(gave) == "er gab gestern der Frau das Buch"


def test_the_recipient_may_come_last_in_english_only():
    explains = clause("explain", Tense.PRESENT, "recipient", dative=the("pupil"), accusative=the("rule"))
    assert statement(explains) == ("He explains the rule to the pupil.", "Er erklärt dem Schüler die Regel.")


def test_an_indefinite_object_is_denied_with_kein_and_others_with_nicht():
    denied = clause("buy", Tense.PAST, accusative=phrase(INDEFINITE, "car"), negated=True)
    assert statement(denied) == ("He did not buy a car.", "Er kaufte kein Auto.")
    denied.accusative = the("car")
    assert statement(denied) == ("He did not buy the car.", "Er kaufte das Auto nicht.")
    denied.accusative, denied.tense = phrase(BARE, "bread"), Tense.FUTURE
    assert statement(denied) == ("He will not buy bread.", "Er wird kein Brot kaufen.")


def test_nicht_stands_before_complement_and_place():
    waits = clause("wait for", Tense.PRESENT, "prepositional", negated=True)
    waits.complement = prepositional("for", "auf", PRONOUNS["she"], Case.ACCUSATIVE)
    waits.time = Phrase("today", "heute")
    assert statement(waits) == ("He does not wait for her today.", "Er wartet heute nicht auf sie.")


def test_modals_send_the_infinitive_to_the_end():
    reads = clause("read", Tense.PRESENT, accusative=the("letter"), modal=CAN)
    assert statement(reads) == ("He can read the letter.", "Er kann den Brief lesen.")
    assert verb_last(reads, "weil") == "weil er den Brief lesen kann"
    reads.modal, reads.tense = WANT_TO, Tense.PAST
    assert statement(reads) == ("He wanted to read the letter.", "Er wollte den Brief lesen.")
    assert english_question(reads) == "did he want to read the letter"


def test_must_not_is_a_ban_and_does_not_have_to_is_none():
    reads = clause("read", Tense.PRESENT, accusative=the("letter"), modal=MUST, negated=True)
    assert statement(reads) == ("He must not read the letter.", "Er darf den Brief nicht lesen.")
    reads.modal = HAVE_TO
    assert statement(reads) == ("He does not have to read the letter.", "Er muss den Brief nicht lesen.")


def test_pronouns_precede_a_heavy_subject_unless_they_would_be_taken_for_it():
    helps = clause("help", Tense.PAST, "dative", subject=the("doctor"), dative=PRONOUNS["I"])
    assert verb_second(helps, "gestern") == "gestern half mir der Arzt"
    assert verb_last(helps, "weil") == "weil mir der Arzt half"
    helps.subject = PRONOUNS["she"]
    assert verb_second(helps, "gestern") == "gestern half sie mir"
    calls = clause("call", Tense.PAST, subject=the("doctor"), accusative=PRONOUNS["she"])
    assert verb_last(calls, "weil") == "weil der Arzt sie anrief"
    calls.accusative = PRONOUNS["he"]
    assert verb_last(calls, "weil") == "weil ihn der Arzt anrief"


def test_nothing_stands_before_whose():
    owner = relative_pronoun(the("man")).german(Case.GENITIVE)
    sister = phrase(Determiner("whose", unchanging(owner), Declension.STRONG), "sister")
    rests = clause("rest", Tense.PAST, "intransitive", subject=sister)
    assert verb_last(rests, "") == "dessen Schwester sich ausruhte"


def test_reflexive_pronouns_agree_and_precede_a_heavy_subject():
    rests = clause("rest", Tense.PAST, "intransitive", subject=PRONOUNS["I"])
    assert verb_second(rests) == "ich ruhte mich aus"
    rests.subject = the("woman")
    assert verb_last(rests, "weil") == "weil sich die Frau ausruhte"
    assert verb_second(rests, "gestern") == "gestern ruhte sich die Frau aus"


def test_a_relative_clause_behind_an_object_waits_for_the_closing_verb():
    read = clause("read", Tense.PERFECT, accusative=the("letter"))
    wrote = clause("write", Tense.PERFECT, subject=phrase(POSSESSIVES["he"], "brother"))
    read.tail = Phrase(english_statement(wrote, "that"), verb_last(wrote, "den"))
    expected = "Er hat den Brief gelesen, den sein Bruder geschrieben hat."
    assert statement(read) == ("He has read the letter that his brother has written.", expected)


def test_particles_stand_behind_pronouns_and_before_nouns():
    picks = clause("pick up", Tense.PRESENT, accusative=PRONOUNS["she"])
    assert english_statement(picks) == "he picks her up"
    picks.accusative = the("girl")
    assert english_infinitive(picks) == "pick up the girl"


def test_a_preposition_stays_behind_when_its_object_is_in_front():
    assert english_question(clause("look for", Tense.PROGRESSIVE), "what") == "what is he looking for"


def test_already_follows_a_definite_object_in_german():
    read = clause("read", Tense.PERFECT, accusative=the("letter"), adverb=Adverb("already", "schon", late=True))
    assert statement(read) == ("He has already read the letter.", "Er hat den Brief schon gelesen.")
    read.accusative = phrase(counted(3), "letter", plural=True)
    assert verb_second(read) == "er hat schon drei Briefe gelesen"


def test_a_tense_that_english_does_not_show_is_replaced():
    put, buy = verb("put", "placing"), verb("buy")
    assert settle_tense(put, PRONOUNS["they"], Tense.PAST, None) is Tense.PAST_PROGRESSIVE
    assert settle_tense(put, PRONOUNS["he"], Tense.PAST, None) is Tense.PAST
    assert settle_tense(buy, PRONOUNS["they"], Tense.PAST, None) is Tense.PAST


# --------------------------------------------------------------------------------------------------- numbers and times


@pytest.mark.parametrize(
    ("number", "english", "german"),
    [
        (1, "one", "eins"),
        (7, "seven", "sieben"),
        (12, "twelve", "zwölf"),
        (16, "sixteen", "sechzehn"),
        (17, "seventeen", "siebzehn"),
        (20, "twenty", "zwanzig"),
        (21, "twenty-one", "einundzwanzig"),
        (30, "thirty", "dreißig"),
        (66, "sixty-six", "sechsundsechzig"),
        (77, "seventy-seven", "siebenundsiebzig"),
        (99, "ninety-nine", "neunundneunzig"),
    ],
)
def test_numbers_in_words(number, english, german):
    assert (english_number(number), german_number(number)) == (english, german)


@pytest.mark.parametrize(
    ("hour", "minute", "english", "german"),
    [
        (1, 0, "one o'clock", "ein Uhr"),
        (8, 0, "eight o'clock", "acht Uhr"),
        (7, 30, "half past seven", "halb acht"),
        (12, 30, "half past twelve", "halb eins"),
        (3, 15, "quarter past three", "Viertel nach drei"),
        (12, 45, "quarter to one", "Viertel vor eins"),
        (4, 50, "ten to five", "zehn vor fünf"),
        (1, 20, "twenty past one", "zwanzig nach eins"),
    ],
)
def test_clock_times(hour, minute, english, german):
    assert clock_time(hour, minute) == (english, german)


def test_digital_times():
    assert digital_time(8, 5) == ("8:05", "8:05 Uhr")


# ---------------------------------------------------------------------------------------------------------- the lexicon


def test_every_english_noun_and_adjective_has_one_german():
    nouns = Counter(noun.english for noun in NOUNS.values())
    plurals = Counter(noun.english_plural for noun in NOUNS.values() if noun.english_plural)
    assert max((nouns + plurals).values()) == 1
    assert len(ADJECTIVES) == len(ADJECTIVE_ENTRIES)
    assert len(NOUNS) == len(NOUN_ENTRIES) + len(PLACE_ENTRIES)
    assert len(VERBS) == len(VERB_ENTRIES)


def test_there_are_some_hundreds_of_words():
    assert 300 <= len(NOUNS) + len(ADJECTIVE_ENTRIES) + len(VERB_ENTRIES) <= 600


def test_every_kind_that_a_word_asks_for_exists():
    kinds = {kind for noun in NOUNS.values() for kind in noun.kinds}
    asked = {kind for entry in VERB_ENTRIES for kind in (*entry.subjects, *entry.objects, *entry.places)}
    asked.update(kind for entry in ADJECTIVE_ENTRIES for kind in entry.kinds)
    assert asked - kinds <= {"people", "home", "abroad"}


def test_german_nouns_are_capitalised():
    assert all(noun.german[0].isupper() for noun in NOUNS.values())
    assert all(noun.german_plural[:1].isupper() for noun in NOUNS.values() if noun.english_plural)


# -------------------------------------------------------------------------------------------- thousands of sentences


def test_every_english_sentence_has_one_german(corpus):
    german_of = {}
    for pair in corpus:
        assert german_of.setdefault(pair.source, pair.target) == pair.target


def test_sentences_seldom_repeat(corpus):
    assert len(set(corpus)) > 0.9 * len(corpus)


def test_sentences_begin_with_a_capital_and_end_in_one_mark(corpus):
    shape = re.compile(r"[A-ZÄÖÜ0-9][^?!]*[^\s,.][.?]")
    for pair in corpus:
        assert shape.fullmatch(pair.source), pair
        assert shape.fullmatch(pair.target), pair
        assert pair.source[-1] == pair.target[-1]


def test_spaces_and_commas_are_tidy(corpus):
    untidy = re.compile(r"  | [,.?]|,[^ ]|,,|^ | $|_|\n")
    for pair in corpus:
        assert not untidy.search(pair.source), pair
        assert not untidy.search(pair.target), pair


def test_a_and_an_follow_the_sound(corpus):
    for pair in corpus:
        for article, following in pairwise(pair.source.lower().split()):
            if article in ("a", "an"):
                assert (article == "an") == (following[0] in "aeiou"), pair


OPENING = re.compile(r"\b(weil|obwohl|dass|ob|nachdem|bevor|während)\b")


def test_german_sets_a_comma_before_every_conjunction(corpus):
    for pair in corpus:
        for found in OPENING.finditer(pair.target):
            assert pair.target[: found.start()].endswith(", "), pair


def test_the_verb_is_last_after_nachdem(corpus):
    """A pluperfect must close on its auxiliary, whatever stands before."""
    closing = re.compile(r"[Nn]achdem [^,.]* (hatte|hatten|war|waren)(,|\.)")
    found = [pair for pair in corpus if re.search(r"\b[Nn]achdem\b", pair.target)]
    assert found
    assert all(closing.search(pair.target) for pair in found)


def test_the_future_closes_on_werden_after_dass(corpus):
    found = [pair for pair in corpus if re.search(r"\bthat (I|we|he|she|they) will\b", pair.source)]
    assert found
    for pair in found:
        last = pair.target.split(", dass ")[1].split(",")[0].rstrip(".").split()[-1] if ", dass " in pair.target else ""
        assert last in ("werde", "wird", "werden", ""), pair


def test_yes_no_questions_begin_with_a_verb(corpus):
    auxiliaries = {"Did", "Do", "Does", "Is", "Are", "Am", "Was", "Were", "Has", "Have", "Will", "Can", "Could", "May"}
    auxiliaries |= {"Must", "Should", "Would"}
    asked = {"Who", "What", "Which", "How", "Where", "When", "Why"}
    firsts = {pair.source.split()[0] for pair in corpus if pair.source.endswith("?")}
    assert firsts <= auxiliaries | asked
    assert len(firsts & auxiliaries) > 10
    assert firsts >= asked


def test_lengths_are_those_of_everyday_sentences(corpus):
    lengths = [len(pair.source.split()) for pair in corpus]
    assert min(lengths) == 3
    assert max(lengths) < 30
    assert 8 <= sum(lengths) / len(lengths) <= 12


@pytest.mark.parametrize(
    "form",
    [
        r"\bnicht\b", r"\bkein", r"\b(im|am|zum|zur|ins|vom)\b", r"^Bitte ", r" zu \w+\.", r"\bum \w.* zu ",
        r"\w+zu\w+en\.", r"\bals\b", r"\bwie\b", r"^Als ", r"^Wenn ", r", (der|die|das|den|dem|denen|dessen|deren) ",
        r"\bsich\b", r"gibt es", r"\bwurden?\b", r" Uhr\b", r"\bhalb \w", r" \d+\. [A-Z]", r"\w+und\w+zig\b",
        r"deshalb", r"\bschon\b", r"^Wen\b", r"^Wem\b", r"^Wohin\b", r"^Welche", r"^Wie viele", r"\bnach Hause\b",
        r"\bist [^.]*ge\w+en\.", r"\bTassen? ",
    ],
)  # fmt: skip
def test_every_construction_occurs(corpus, form):
    found = sum(bool(re.search(form, pair.target)) for pair in corpus)
    assert found > len(corpus) // 2500, found


def test_the_shares_add_up_to_a_hundred():
    assert sum(SHARES.values()) == 100


# ------------------------------------------------------------------------------------------- determinism and the splits


def test_the_same_seed_writes_the_same_pairs():
    assert list(write_pairs(200, seed=5)) == list(write_pairs(200, seed=5))
    assert list(write_pairs(200, seed=5)) != list(write_pairs(200, seed=6))
    assert list(write_pairs(300, seed=5))[:200] == list(write_pairs(200, seed=5))


def test_the_parts_have_the_sizes_asked_for(splits):
    assert [len(part) for part in (splits.train, splits.valid, splits.test, splits.heldout)] == [6_000, 200, 300, 200]


def test_no_sentence_occurs_twice_in_either_language(splits):
    pairs = splits.train + splits.valid + splits.test + splits.heldout
    assert len({pair.source for pair in pairs}) == len(pairs)
    assert len({pair.target for pair in pairs}) == len(pairs)


def test_only_heldout_sentences_have_heldout_combinations(splits):
    marks = {}
    for draft in write_drafts(seed=1):
        marks.setdefault(draft.pair, draft.is_held_out())
        if splits.train[-1] in marks and splits.heldout[-1] in marks:
            break
    assert all(marks[pair] for pair in splits.heldout)
    assert not any(marks[pair] for pair in splits.train + splits.valid + splits.test)


def test_the_words_of_every_combination_stand_in_the_sentence(drafts):
    forms = {word.english: (word.english, word.english_comparative or word.english) for word in ADJECTIVE_ENTRIES}
    for entry in VERB_ENTRIES:
        english = entry.english
        words = (english.base, third_person(english.base), ing_form(english.base))
        forms[verb_key(entry)] = (*words, past_form(english), english_participle(english))
    for draft in drafts[:20_000]:
        words = " " + re.sub(r"[^\w ]", " ", draft.pair.source.lower()) + " "
        for word, noun in draft.combinations:
            assert any(f" {form} " in words for form in forms[word]), (draft, word)
            plural = NOUNS[noun].english_plural or noun
            assert f" {noun} " in words or f" {plural} " in words, (draft, noun)


def test_combinations_name_adjectives_and_verbs_with_their_nouns(drafts):
    seen = {combination for draft in drafts for combination in draft.combinations}
    assert ("read", "book") in seen
    assert ("old", "house") in seen
    held = [combination for combination in seen if is_held_out(combination)]
    assert 0.01 < len(held) / len(seen) < 0.06


def test_a_larger_training_part_leaves_the_test_sentences_alone(splits):
    larger = make_splits(train=7_000, valid=200, test=300, heldout=200, seed=1)
    assert (larger.valid, larger.test) == (splits.valid, splits.test)


def test_every_noun_of_the_heldout_part_is_known_from_training(splits):
    def nouns(pairs):
        text = " ".join(re.sub(r"[^\w ]", "", pair.source.lower()) for pair in pairs) + " "
        return {
            noun.english
            for noun in NOUNS.values()
            if re.search(rf"\b({noun.english}|{noun.english_plural or noun.english}) ", text)
        }

    assert nouns(splits.heldout) <= nouns(splits.train)


def test_a_pair_is_a_value():
    assert Pair("a", "b") == Pair("a", "b")
