"""The words of the embedded corpus: English and German, one entry a line.

Every English word stands for one German word, so that German is a function of English; the grammar's tests hold the
tables to that. Words of several parts are joined by `_` here and by spaces in sentences.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Gender(IntEnum):
    """A German noun's gender, as the column of a table; the plural, which has none, is a column of its own."""

    MASCULINE = 0
    FEMININE = 1
    NEUTER = 2
    PLURAL = 3


class Case(IntEnum):
    """A German case, as the row of a table."""

    NOMINATIVE = 0
    ACCUSATIVE = 1
    DATIVE = 2
    GENITIVE = 3


@dataclass(frozen=True, slots=True)
class Noun:
    """A noun of both languages; `kinds` say what may be done with it, `pronoun` how English refers back to a person."""

    english: str
    english_plural: str
    german: str
    german_plural: str
    gender: Gender
    weak: bool
    kinds: tuple[str, ...]
    pronoun: str


@dataclass(frozen=True, slots=True)
class Place:
    """A noun for somewhere to be or to go, with the prepositions that each language uses for that."""

    noun: Noun
    at: tuple[str, str]
    to: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Adjective:
    """An adjective; `stem` takes the German endings (teuer, ein teures Auto), `kinds` are the nouns that it suits."""

    english: str
    german: str
    stem: str
    english_comparative: str
    german_comparative: str
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EnglishVerb:
    """The principal parts of an English verb; a particle moves behind a pronoun (picks him up), a preposition stays."""

    base: str
    past: str
    participle: str
    particle: str
    preposition: str


@dataclass(frozen=True, slots=True)
class GermanVerb:
    """The principal parts of a German verb, without its separable prefix.

    `changed` is the stem of the second and third person (lies-, fähr-), the same as `stem` for most verbs.
    """

    prefix: str
    infinitive: str
    stem: str
    changed: str
    past: str
    participle: str
    auxiliary: str
    reflexive: bool


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb of both languages, with who does it (`subjects`), to what (`objects`) and in which surroundings."""

    english: EnglishVerb
    german: GermanVerb
    frame: str
    preposition: str
    case: Case
    subjects: tuple[str, ...]
    objects: tuple[str, ...]
    places: tuple[str, ...]
    traits: frozenset[str]


# ---------------------------------------------------------------------------------------------------------- the tables

# English singular and plural (`.` regular, `-` none), article, German singular and plural, then kinds;
# `weak` marks the n-declension (der Junge, den Jungen), `he` and `she` the pronoun that refers back.
NOUNS = """
man          men         der Mann            Männer             person he adult
woman        women       die Frau            Frauen             person she adult
child        children    das Kind            Kinder             person young own
boy          .           der Junge           Jungen             person he weak young
girl         .           das Mädchen         Mädchen            person she young
baby         .           das Baby            Babys              baby
teacher      .           der Lehrer          Lehrer             person he adult job own
doctor       .           der Arzt            Ärzte              person he adult job own
neighbour    .           der Nachbar         Nachbarn           person he adult weak own
student      .           der Student         Studenten          person he adult weak
pupil        .           der Schüler         Schüler            person he young
friend       .           der Freund          Freunde            kin he elder
colleague    .           der Kollege         Kollegen           person he adult weak own
boss         .           der Chef            Chefs              person he adult own
farmer       .           der Bauer           Bauern             person he adult weak job
baker        .           der Bäcker          Bäcker             person he adult job
policeman    policemen   der Polizist        Polizisten         person he adult weak job
waiter       .           der Kellner         Kellner            person he adult job
guest        .           der Gast            Gäste              person adult own
king         .           der König           Könige             person he adult
queen        .           die Königin         Königinnen         person she adult
writer       .           der Schriftsteller  Schriftsteller     person he adult job artist
painter      .           der Maler           Maler              person he adult job artist
lawyer       .           der Anwalt          Anwälte            person he adult job own
engineer     .           der Ingenieur       Ingenieure         person he adult job
customer     .           der Kunde           Kunden             person he adult weak
gardener     .           der Gärtner         Gärtner            person he adult job
judge        .           der Richter         Richter            person he adult job
tourist      .           der Tourist         Touristen          person he adult weak
father       .           der Vater           Väter              kin he adult single elder
mother       .           die Mutter          Mütter             kin she adult single elder
brother      .           der Bruder          Brüder             kin he elder
sister       .           die Schwester       Schwestern         kin she elder
son          .           der Sohn            Söhne              kin he
daughter     .           die Tochter         Töchter            kin she
uncle        .           der Onkel           Onkel              kin he adult elder
aunt         .           die Tante           Tanten             kin she adult elder
grandfather  .           der Großvater       Großväter          kin he adult single elder
grandmother  .           die Großmutter      Großmütter         kin she adult single elder
cousin       .           der Cousin          Cousins            kin he elder

dog          .           der Hund            Hunde              animal pet
cat          .           die Katze           Katzen             animal pet
horse        .           das Pferd           Pferde             animal
bird         .           der Vogel           Vögel              animal
cow          .           die Kuh             Kühe               animal
mouse        mice        die Maus            Mäuse              animal
rabbit       .           das Kaninchen       Kaninchen          animal pet
bear         .           der Bär             Bären              animal weak
fox          .           der Fuchs           Füchse             animal
duck         .           die Ente            Enten              animal
pig          .           das Schwein         Schweine           animal
goat         .           die Ziege           Ziegen             animal
donkey       .           der Esel            Esel               animal

apple        .           der Apfel           Äpfel              food fruit fresh
pear         .           die Birne           Birnen             food fruit fresh
orange       .           die Orange          Orangen            food fruit fresh
banana       .           die Banane          Bananen            food fruit fresh
tomato       tomatoes    die Tomate          Tomaten            food fruit fresh
egg          .           das Ei              Eier               food cooked fresh
potato       potatoes    die Kartoffel       Kartoffeln         food cooked
cake         .           der Kuchen          Kuchen             food
sausage      .           die Wurst           Würste             food
bread        -           das Brot            -                  food mass fresh
cheese       -           der Käse            -                  food mass
meat         -           das Fleisch         -                  food mass cooked
rice         -           der Reis            -                  food mass cooked
butter       -           die Butter          -                  food mass fresh
soup         -           die Suppe           -                  food mass cooked warm
salad        -           der Salat           -                  food mass fresh
chocolate    -           die Schokolade      -                  food mass
water        -           das Wasser          -                  drink mass
milk         -           die Milch           -                  drink mass fresh warm
coffee       -           der Kaffee          -                  drink mass warm
tea          -           der Tee             -                  drink mass warm
juice        -           der Saft            -                  drink mass
beer         -           das Bier            -                  drink mass
wine         -           der Wein            -                  drink mass

book         .           das Buch            Bücher             readable thing readable_thing
letter       .           der Brief           Briefe             readable thing message readable_thing
newspaper    .           die Zeitung         Zeitungen          readable thing readable_thing
novel        .           der Roman           Romane             readable work
poem         .           das Gedicht         Gedichte           readable work
story        .           die Geschichte      Geschichten        readable tale work
fairy_tale   .           das Märchen         Märchen            readable tale work
report       .           der Bericht         Berichte           readable message
message      .           die Nachricht       Nachrichten        readable message
email        .           die E-Mail          E-Mails            readable message
postcard     .           die Postkarte       Postkarten         readable thing message readable_thing
contract     .           der Vertrag         Verträge           readable
sentence     .           der Satz            Sätze              task
word         .           das Wort            Wörter             task
question     .           die Frage           Fragen             task
exercise     .           die Aufgabe         Aufgaben           task solvable
rule         .           die Regel           Regeln             task
mistake      .           der Fehler          Fehler             error
problem      .           das Problem         Probleme           error solvable
song         .           das Lied            Lieder             song
picture      .           das Bild            Bilder             image thing
photo        .           das Foto            Fotos              image thing

key          .           der Schlüssel       Schlüssel          thing small
bag          .           die Tasche          Taschen            thing luggage
umbrella     .           der Regenschirm     Regenschirme       thing colourful
ball         .           der Ball            Bälle              thing small colourful
cup          .           die Tasse           Tassen             thing vessel
glass        .           das Glas            Gläser             thing vessel
plate        .           der Teller          Teller             thing vessel
bottle       .           die Flasche         Flaschen           thing vessel
vase         .           die Vase            Vasen              thing vessel
knife        knives      das Messer          Messer             thing small
spoon        .           der Löffel          Löffel             thing small
pencil       .           der Bleistift       Bleistifte         thing small
box          .           die Kiste           Kisten             thing luggage packed
suitcase     .           der Koffer          Koffer             thing luggage packed
ring         .           der Ring            Ringe              thing small
doll         .           die Puppe           Puppen             thing colourful
gift         .           das Geschenk        Geschenke          thing packed
flower       .           die Blume           Blumen             plant
rose         .           die Rose            Rosen              plant
tree         .           der Baum            Bäume              landmark
camera       .           die Kamera          Kameras            thing machine
computer     .           der Computer        Computer           thing machine device
radio        .           das Radio           Radios             thing machine device
lamp         .           die Lampe           Lampen             thing machine device
television   .           der Fernseher       Fernseher          thing machine device
clock        .           die Uhr             Uhren              thing machine
guitar       .           die Gitarre         Gitarren           thing
coat         .           der Mantel          Mäntel             clothes thing
shirt        .           das Hemd            Hemden             clothes thing
hat          .           der Hut             Hüte               clothes thing
jacket       .           die Jacke           Jacken             clothes thing
sweater      .           der Pullover        Pullover           clothes thing
shoe         .           der Schuh           Schuhe             clothes thing
car          .           das Auto            Autos              vehicle machine
bus          .           der Bus             Busse              vehicle public
train        .           der Zug             Züge               vehicle public
ship         .           das Schiff          Schiffe            vehicle public
taxi         .           das Taxi            Taxis              vehicle
bicycle      .           das Fahrrad         Fahrräder          vehicle machine
door         .           die Tür             Türen              opening
window       .           das Fenster         Fenster            opening
gate         .           das Tor             Tore               opening
table        .           der Tisch           Tische             furniture surface
chair        .           der Stuhl           Stühle             furniture surface seat
bed          .           das Bett            Betten             furniture surface seat
sofa         .           das Sofa            Sofas              furniture surface seat
shelf        shelves     das Regal           Regale             furniture surface
cupboard     .           der Schrank         Schränke           furniture hanger
desk         .           der Schreibtisch    Schreibtische      furniture surface
"""

# As NOUNS, then the prepositions of being there and of going there, each English/German.
PLACES = """
house       . das Haus          Häuser         in/in  into/in  building dwelling going front own
castle      . das Schloss       Schlösser      in/in  to/zu    building sight going driving front returning
church      . die Kirche        Kirchen        in/in  into/in  building sight going front
tower       . der Turm          Türme          in/in  to/zu    building sight
bridge      . die Brücke        Brücken        on/auf to/zu    sight
hotel       . das Hotel         Hotels         in/in  to/zu    guesthouse pickup dwelling going front returning
hospital    . das Krankenhaus   Krankenhäuser  in/in  to/zu    building workplace going driving
restaurant  . das Restaurant    Restaurants    in/in  to/zu    guesthouse workplace going front
café        . das Café          Cafés          in/in  to/zu    guesthouse going
library     . die Bibliothek    Bibliotheken   in/in  to/zu    building workplace going
museum      . das Museum        Museen         in/in  to/zu    building sight workplace going front
theatre     . das Theater       Theater        in/in  to/zu    building sight going front
office      . das Büro          Büros          in/in  into/in  room workplace going driving
factory     . die Fabrik        Fabriken       in/in  to/zu    building workplace going driving
bakery      . die Bäckerei      Bäckereien     in/in  to/zu    shop workplace going
station     . der Bahnhof       Bahnhöfe       at/an  to/zu    building pickup going driving front returning
airport     . der Flughafen     Flughäfen      at/an  to/zu    building pickup going driving returning
market      . der Markt         Märkte         at/auf to/zu    shop going driving
kitchen     . die Küche         Küchen         in/in  into/in  room going
living_room . das Wohnzimmer    Wohnzimmer     in/in  into/in  room going
room        . das Zimmer        Zimmer         in/in  into/in  room
cellar      . der Keller        Keller         in/in  into/in  room going
garden      . der Garten        Gärten         in/in  into/in  outdoors going own
park        . der Park          Parks          in/in  to/zu    outdoors going
forest      . der Wald          Wälder         in/in  into/in  outdoors going
field       . das Feld          Felder         in/auf to/zu    outdoors
beach       . der Strand        Strände        on/an  to/zu    outdoors going driving returning
lake        . der See           Seen           by/an  to/zu    outdoors going driving returning
river       . der Fluss         Flüsse         by/an  to/zu    outdoors going
village     . das Dorf          Dörfer         in/in  into/in  town dwelling going driving
city        . die Stadt         Städte         in/in  into/in  town dwelling going driving
street      . die Straße        Straßen        on/auf onto/auf way going
"""

# English positive and comparative, German positive (with its stem after `/` where that differs) and comparative (`-`
# where the grammar does not compare), then the kinds that it suits.
ADJECTIVES = """
old          older             alt          älter        adult brother sister friend animal readable thing building town
young        younger           jung         jünger        adult animal landmark
small        smaller           klein        kleiner       young animal building room furniture town thing landmark
big          bigger            groß         größer        animal building room furniture town thing opening landmark
new          -                 neu          -             readable thing vehicle furniture building error song neighbour
friendly     friendlier        freundlich   freundlicher  person kin
tired        -                 müde         -             person kin animal
hungry       -                 hungrig      -             animal
happy        happier           glücklich    glücklicher   young
sad          -                 traurig      -             child work song
sick         -                 krank        -             person kin animal
clever       cleverer          klug         klüger        person kin pet
strong       stronger          stark        stärker       person kin
poor         poorer            arm          ärmer         person
rich         richer            reich        reicher       adult
famous       more_famous       berühmt      berühmter     work sight artist
polite       more_polite       höflich      höflicher     person
beautiful    more_beautiful    schön        schöner       sight plant clothes song image town outdoors
interesting  more_interesting  interessant  interessanter readable task sight
boring       -                 langweilig   -             readable task
difficult    more_difficult    schwierig    schwieriger   task error
important    more_important    wichtig      wichtiger     message task
long         longer            lang         länger        readable sentence
short        shorter           kurz         kürzer        readable sentence
expensive    more_expensive    teuer/teur   teurer        vehicle machine clothes furniture guesthouse
cheap        cheaper           billig       billiger      vehicle machine clothes furniture guesthouse
heavy        heavier           schwer       schwerer      luggage furniture
broken       -                 kaputt       -             machine
clean        cleaner           sauber       sauberer      clothes room vessel
dirty        -                 schmutzig    -             clothes room vessel vehicle
empty        -                 leer         -             vessel luggage guesthouse
quiet        quieter           ruhig        ruhiger       room outdoors town guesthouse
dark         darker            dunkel/dunkl dunkler       room forest
red          -                 rot          -             clothes plant vehicle colourful
blue         -                 blau         -             clothes vehicle vessel colourful
green        -                 grün         -             clothes vehicle opening vessel colourful
white        -                 weiß         -             clothes animal furniture
black        -                 schwarz      -             clothes animal vehicle
brown        -                 braun        -             animal furniture
fresh        -                 frisch       -             fresh
cold         colder            kalt         kälter        drink warm
warm         warmer            warm         wärmer        warm
sweet        sweeter           süß          süßer         fruit
good         better            gut          besser        food drink readable song teacher doctor
"""

# English verb (irregular past and participle after `/`; `:` before a particle, `@` before a preposition)
# | German verb (strong: changed stem, past, participle; `·` after a separable prefix; `*` perfect with sein; `sich`)
# | frame, or the German preposition and case of its object | subjects > objects | places | traits.
# The kind `people` stands for persons, kin, names and pronouns.
VERBS = """
read/read/read   | lesen lies las gelesen        | transitive | people > readable | outdoors room | quiet
write/wrote/written | schreiben schreib schrieb geschrieben | transitive | people > message work | room
translate        | übersetzen                    | transitive | people > message work contract | room
find/found/found | finden find fand gefunden     | transitive | people > thing pet | outdoors room | stative
lose/lost/lost   | verlieren verlier verlor verloren | transitive | people > small thing | outdoors town | stative
look@for         | suchen                        | transitive | people > thing pet person | outdoors room
buy/bought/bought | kaufen                        | transitive | people > thing food plant vehicle furniture | shop
sell/sold/sold   | verkaufen                     | transitive | people > thing vehicle furniture food | shop
need             | brauchen                      | transitive | people > thing vehicle furniture | | state
have/had/had     | haben                         | transitive | people > thing vehicle pet | | state
see/saw/seen     | sehen sieh sah gesehen        | transitive | people > people animal vehicle | outdoors town | stative
forget/forgot/forgotten | vergessen vergiss vergaß vergessen | transitive | people > thing | | stative
hide/hid/hidden  | verstecken                    | transitive | people > small gift message | room outdoors | quick
steal/stole/stolen | stehlen stiehl stahl gestohlen | transitive | person > thing vehicle
repair           | reparieren                    | transitive | people > machine | | quick
use              | benutzen                      | transitive | people > machine
wash             | waschen wäsch wusch gewaschen | transitive | people > clothes vessel
wear/wore/worn   | tragen träg trug getragen     | transitive | people > clothes
try:on | an·probieren                  | transitive | people > clothes
draw/drew/drawn  | zeichnen                      | transitive | people > animal landmark plant | outdoors | slow
paint            | malen                         | transitive | people > picture landmark plant | | slow
photograph       | fotografieren                 | transitive | people > sight animal
eat/ate/eaten    | essen iss aß gegessen         | transitive | people > food | kitchen guesthouse | slow quick
cook             | kochen                        | transitive | people > cooked | kitchen
drink/drank/drunk | trinken trink trank getrunken | transitive | people > drink | kitchen guesthouse | slow quick
order            | bestellen                     | transitive | people > food drink | guesthouse
meet/met/met     | treffen triff traf getroffen  | transitive | people > people | shop outdoors guesthouse
know/knew/known  | kennen kenn kannte gekannt    | transitive | people > people song sight | | state
love             | lieben                        | transitive | people > people pet song | | state
visit            | besuchen                      | transitive | people > people sight
ask              | fragen                        | transitive | people > people
invite           | ein·laden läd lud geladen     | transitive | people > people
call             | an·rufen ruf rief gerufen     | transitive | people > people
pick:up          | ab·holen                      | transitive | people > people | pickup
greet            | begrüßen                      | transitive | people > people
understand/understood/understood | verstehen versteh verstand verstanden | transitive | people > task | | state
recognise        | erkennen erkenn erkannte erkannt | transitive | people > people | | stative
miss             | vermissen                     | transitive | people > kin friend pet | | state
praise           | loben                         | transitive | people > people
watch            | beobachten                    | transitive | people > animal person | outdoors
feed/fed/fed     | füttern                       | transitive | people > animal | outdoors
hear/heard/heard | hören                         | transitive | people > song animal person | | stative
sing/sang/sung   | singen sing sang gesungen     | transitive | people > song | outdoors room | quiet loud
learn            | lernen                        | transitive | people > word rule poem | room | quick
repeat           | wiederholen                   | transitive | people > task | | slow
solve            | lösen                         | transitive | people > solvable | | quick
notice           | bemerken                      | transitive | people > error | | stative quick
build/built/built | bauen                        | transitive | people > house tower bridge castle church
leave/left/left  | verlassen verläss verließ verlassen | transitive | people > building room town | | quick quiet
enter            | betreten betritt betrat betreten | transitive | people > building room | | slow quiet
open             | öffnen                        | transitive | people > opening packed | | careful slow quick
close            | schließen schließ schloss geschlossen | transitive | people > opening | | careful quick
turn:on          | ein·schalten                  | transitive | people > device | room
turn:off         | aus·schalten                  | transitive | people > device | room
tidy:up          | auf·räumen                    | transitive | people > room | | quick
unpack           | aus·packen                    | transitive | people > packed | | careful slow
look@at          | an·sehen sieh sah gesehen     | transitive | people > image sight
bring/brought/brought:back | zurück·bringen bring brachte gebracht | transitive | people > readable_thing thing
take/took/taken:along | mit·nehmen nimm nahm genommen | transitive | people > thing
throw/threw/thrown:away | weg·werfen wirf warf geworfen | transitive | people > readable_thing clothes thing
plant            | pflanzen                      | transitive | people > plant landmark | garden | careful
help             | helfen hilf half geholfen     | dative | people > people | room outdoors
thank            | danken                        | dative | people > people
follow           | *folgen                       | dative | people animal > person animal | | quiet
trust            | vertrauen                     | dative | people > people | | state
listen@to        | zu·hören                      | dative | people > people
congratulate     | gratulieren                   | dative | people > people
belong@to        | gehören                       | dative | thing vehicle furniture > people | | state
give/gave/given  | geben gib gab gegeben         | ditransitive | people > thing plant
show/showed/shown | zeigen                        | ditransitive | people > thing image room
send/sent/sent   | schicken                      | ditransitive | people > message gift image
bring/brought/brought | bringen bring brachte gebracht | ditransitive | people > thing food drink plant
lend/lent/lent   | leihen leih lieh geliehen     | ditransitive | people > book luggage machine umbrella
tell/told/told   | erzählen                      | ditransitive | people > tale
explain          | erklären                      | recipient | people > task error | | slow
describe         | beschreiben beschreib beschrieb beschrieben | recipient | people > image sight error
recommend        | empfehlen empfiehl empfahl empfohlen | recipient | people > guesthouse book novel sight
wait@for         | warten                        | auf:acc | people > people public | pickup
think/thought/thought@of | denken denk dachte gedacht    | an:acc | people > people animal tale
talk@about       | sprechen sprich sprach gesprochen | über:acc | people > task error work | guesthouse room
talk@to          | sprechen sprich sprach gesprochen | mit:dat | people > people | outdoors room | quiet
laugh@at         | lachen                        | über:acc | people > tale image mistake | | loud
dream/dreamt/dreamt@of | träumen                | von:dat | people > animal sight vehicle | | stative
work@on          | arbeiten                      | an:dat | people > message work image | room
remember         | sich erinnern                 | an:acc | people > people tale song | | state
complain@about   | sich beschweren               | über:acc | people > person room guesthouse | | loud
look@after       | sich kümmern                  | um:acc | people > people animal
look@forward_to  | sich freuen                   | auf:acc | people > gift letter | | state
sleep/slept/slept | schlafen schläf schlief geschlafen | intransitive | people pet baby > | room hotel
work             | arbeiten                      | intransitive | people > | workplace | slow with
laugh            | lachen                        | intransitive | people baby > | | loud
cry  | weinen                        | intransitive | young baby > | room | loud quiet
dance            | tanzen                        | intransitive | people > | outdoors guesthouse | with
play             | spielen                       | intransitive | young pet > | outdoors room | with
smile            | lächeln                       | intransitive | people baby >
bark             | bellen bell bellte gebellt    | intransitive | dog > | outdoors | loud
arrive           | *an·kommen komm kam gekommen  | intransitive | people public > | pickup
depart           | *ab·fahren fähr fuhr gefahren | intransitive | public >
wake/woke/woken:up | *auf·wachen                   | intransitive | people pet baby > | | slow
get/got/got:up   | *auf·stehen steh stand gestanden | intransitive | people > | | slow quick
fall/fell/fallen:asleep | *ein·schlafen schläf schlief geschlafen | intransitive | people baby > | room | quick
come/came/come:back | *zurück·kommen komm kam gekommen | intransitive | people > | | with
celebrate        | feiern                        | intransitive | people > | room guesthouse | with loud
rest             | sich aus·ruhen                | intransitive | people > | outdoors room
hurry | sich beeilen                  | intransitive | people >
live             | wohnen                        | location | people > | dwelling | state with
stay             | *bleiben bleib blieb geblieben | location | people > | room dwelling outdoors | with
wait             | warten                        | location | people pet > | pickup outdoors | with
sit/sat/sat      | sitzen sitz saß gesessen      | location | people pet > | outdoors guesthouse seat | posture
stand/stood/stood | stehen steh stand gestanden  | location | person vehicle > | front | posture
lie/lay/lain     | liegen lieg lag gelegen       | location | pet small readable_thing > | surface | posture
hang/hung/hung   | hängen häng hing gehangen     | location | coat shirt jacket > | hanger | posture
go/went/gone     | *gehen geh ging gegangen      | direction | people > | going home | slow with
run/ran/run      | *laufen läuf lief gelaufen    | direction | people animal > | going | quick
drive/drove/driven | *fahren fähr fuhr gefahren    | direction | people > | driving home | slow quick with
travel           | *reisen                       | direction | people > | abroad | with vehicle
fly/flew/flown   | *fliegen flieg flog geflogen  | direction | people > | abroad | with
come/came/come   | *kommen komm kam gekommen     | direction | people > | going abroad home | with
return           | *zurück·kehren                | direction | people > | returning abroad | with
put/put/put      | legen                         | placing | people > small readable_thing | surface | careful
place            | stellen                       | placing | people > vessel plant | surface | careful
try  | versuchen                     | infinitive | people >
forget/forgot/forgotten | vergessen vergiss vergaß vergessen | infinitive | people >
promise          | versprechen versprich versprach versprochen | infinitive | people >
decide           | beschließen beschließ beschloss beschlossen | infinitive | people >
begin/began/begun | beginnen beginn begann begonnen | infinitive | people >
plan             | planen                        | infinitive | people >
say/said/said    | sagen                         | clause | people >
think/thought/thought | denken denk dachte gedacht    | clause | people >
know/knew/known  | wissen wiss wusste gewusst    | clause | people >
hope             | hoffen                        | clause | people >
believe          | glauben                       | clause | people >
"""

# Given names, with the pronoun that refers back; none ends in a hissing sound, whose genitive would need an apostrophe.
NAMES = "Anna/she Maria/she Julia/she Laura/she Emma/she Peter/he Paul/he Martin/he Jan/he Simon/he"

CITIES = "Berlin/Berlin Hamburg/Hamburg Munich/München Cologne/Köln Vienna/Wien Paris/Paris London/London Rome/Rom"
COUNTRIES = "Germany/Deutschland Austria/Österreich Italy/Italien France/Frankreich Spain/Spanien"

WEEKDAYS = "Monday/Montag Tuesday/Dienstag Wednesday/Mittwoch Thursday/Donnerstag Friday/Freitag Saturday/Samstag"
MONTHS = "January/Januar March/März April/April May/Mai June/Juni July/Juli August/August December/Dezember"
SEASONS = "spring/Frühling summer/Sommer autumn/Herbst winter/Winter"

# ------------------------------------------------------------------------------------------------------- reading them


def pairs(table: str) -> tuple[tuple[str, str], ...]:
    """Read `English/German` entries."""
    return tuple((english, german) for english, _, german in (entry.partition("/") for entry in table.split()))


def read_noun(columns: list[str], kinds: list[str]) -> Noun:
    """Read the columns of one noun; its own English name is one of its kinds, so that a verb can ask for it alone."""
    english, plural, article, german, german_plural = (column.replace("_", " ") for column in columns)
    english_plural = {".": pluralise(english), "-": ""}.get(plural, plural)
    gender = Gender(("der", "die", "das").index(article))
    pronoun = next((kind for kind in kinds if kind in ("he", "she")), "")
    return Noun(
        english,
        english_plural,
        german,
        "" if german_plural == "-" else german_plural,
        gender,
        "weak" in kinds,
        (columns[0], *kinds),
        pronoun,
    )


def pluralise(noun: str) -> str:
    """Form the regular English plural."""
    if noun.endswith(("s", "x", "ch", "sh")):
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + "s"


def read_place(columns: list[str]) -> Place:
    """Read one line of PLACES."""
    noun = read_noun(columns[:5], columns[7:])
    ((at_english, at_german), (to_english, to_german)) = pairs(" ".join(columns[5:7]))
    return Place(noun, (at_english, at_german), (to_english, to_german))


def read_adjective(columns: list[str]) -> Adjective:
    """Read one line of ADJECTIVES."""
    english, english_comparative, german, german_comparative = columns[:4]
    lemma, _, stem = german.partition("/")
    comparative = "" if english_comparative == "-" else english_comparative.replace("_", " ")
    return Adjective(
        english, lemma, stem or lemma, comparative, german_comparative.replace("-", ""), tuple(columns[4:])
    )


def read_english_verb(text: str) -> EnglishVerb:
    """Read `take/took/taken:along` or `look@at`; the past of a regular verb is left to its inflection."""
    forms, _, particle = text.partition(":")
    forms, _, preposition = forms.partition("@")
    base, past, participle = forms.split("/") if "/" in forms else (forms, "", "")
    return EnglishVerb(base, past, participle, particle, preposition.replace("_", " "))


def read_german_verb(text: str) -> GermanVerb:
    """Read `*an·kommen komm kam gekommen`, or an infinitive alone for a weak verb."""
    auxiliary = "sein" if text.startswith("*") else "haben"
    reflexive = text.startswith("sich ")
    infinitive, *parts = text.removeprefix("*").removeprefix("sich ").split()
    prefix, _, simple = infinitive.rpartition("·")
    stem = simple[:-2] if simple.endswith("en") else simple[:-1]
    changed, past, participle = parts if parts else (stem, "", "")
    return GermanVerb(prefix, simple, stem, changed, past, participle, auxiliary, reflexive)


def read_verb(line: str) -> Verb:
    """Read one line of VERBS."""
    english, german, frame, roles, *rest = (column.strip() for column in line.split("|"))
    places, traits = (*rest, "", "")[:2]
    subjects, _, objects = (part.split() for part in roles.partition(">"))
    preposition, _, case = frame.rpartition(":")
    if preposition:
        frame = "prepositional"
    return Verb(
        read_english_verb(english),
        read_german_verb(german),
        frame,
        preposition,
        Case.ACCUSATIVE if case == "acc" else Case.DATIVE,
        tuple(subjects),
        tuple(objects),
        tuple(places.split()),
        frozenset(traits.split()),
    )


def rows(table: str) -> list[list[str]]:
    """Split a table into the columns of its lines."""
    return [line.split() for line in table.splitlines() if line]


NOUN_ENTRIES = tuple(read_noun(columns[:5], columns[5:]) for columns in rows(NOUNS))
PLACE_ENTRIES = tuple(read_place(columns) for columns in rows(PLACES))
ADJECTIVE_ENTRIES = tuple(read_adjective(columns) for columns in rows(ADJECTIVES))
VERB_ENTRIES = tuple(read_verb(line) for line in VERBS.splitlines() if line)
