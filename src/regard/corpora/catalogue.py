"""The catalogue: where each corpus comes from, on which terms, and which text files are made of it.

Sizes and checksums are those of files that were read, or those that another project publishes for the same file: the
training archives of WMT 2014 have TensorFlow Datasets' (`url_checksums/wmt14_translate.txt`), the test sets
sacreBLEU's. Where neither exists there is none; it is recorded at the first fetch and checked ever after.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from regard.corpora.describe import Corpus, Download, Piece, Text, all_but_every, every, share_of_sources
from regard.errors import UserError, did_you_mean

# ---- Multi30k --------------------------------------------------------------------------------------------------------

_MULTI30K = "https://raw.githubusercontent.com/multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1"
_MULTI30K_PARTS = {"train": "train", "valid": "val"} | {
    name: name for name in ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco")
}
_MULTI30K_LINES = {"train": 29_000, "valid": 1014, "test_2017_mscoco": 461}  # the others have 1,000
# SHA-256 of the text, read from files of that commit.
_MULTI30K_TEXTS = {
    "train.en": "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6",
    "train.de": "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72",
    "valid.en": "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227",
    "valid.de": "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660",
    "test_2016_flickr.en": "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182",
    "test_2016_flickr.de": "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16",
    "train.lc.tok.en": "08925f8e0572bcd5a006702fc5fe20e2d77c6917d4eebd576fc20de6693c2119",
    "train.lc.tok.de": "cb5a23529b65ec2061f1dc446192a9c37382b63cc75f81a0be59d34894b3a505",
    "valid.lc.tok.en": "46573ce391ae227f1c72f873392436a20ef18e0a6d518098cfbd70b77c8572ec",
    "valid.lc.tok.de": "97232bd273eceb7207f689527386a97e4be2616b18ada47576bdaf96c8ae1f00",
    "test_2016_flickr.lc.tok.en": "5b7f32627cf99eced828311b955dae9800bb52bc8b91cf8b6526829e605b29d2",
    "test_2016_flickr.lc.tok.de": "c6a33d39d48f9f510de147651316cd9d918e09ad0219df734a2f16b6baccacc4",
}
# Bytes of the tokenised files, which lie at their origin as plain text.
_MULTI30K_SIZES = {
    "train.lc.norm.tok.en": 1_837_696,
    "train.lc.norm.tok.de": 2_150_008,
    "val.lc.norm.tok.en": 64_608,
    "val.lc.norm.tok.de": 77_273,
    "test_2016_flickr.lc.norm.tok.en": 63_307,
    "test_2016_flickr.lc.norm.tok.de": 71_917,
}


def _multi30k() -> Corpus:
    downloads, texts = [], []
    for part, theirs in _MULTI30K_PARTS.items():
        for language in ("en", "de", "fr"):
            raw, tokenised = f"{theirs}.{language}.gz", f"{theirs}.lc.norm.tok.{language}"
            also = tuple(f"{theirs}.{middle}.{language}.gz" for middle in ("lc.norm.tok", "lc.tok"))
            downloads.append(Download(raw, f"{_MULTI30K}/raw/{raw}"))
            downloads.append(
                Download(tokenised, f"{_MULTI30K}/tok/{tokenised}", _MULTI30K_SIZES.get(tokenised), also=also)
            )
            for name, file in ((f"{part}.{language}", raw), (f"{part}.lc.tok.{language}", tokenised)):
                known = _MULTI30K_TEXTS.get(name)
                lines = _MULTI30K_LINES.get(part, 1000)
                texts.append(Text(name, (Piece(file),), lines=lines, sha256=known, extra=known is None))
    return Corpus(
        name="multi30k",
        about="image captions: raw, and lowercased, normalised and Moses-tokenised (.lc.tok)",
        languages=("en", "de", "fr"),
        pairs="29,000",
        origin="github.com/multi30k/dataset at a3d2e0d2",
        licence="none stated for the text; use it for measuring only",
        downloads=tuple(downloads),
        texts=tuple(texts),
        recipe="recipes/multi30k-en-de-paper.toml",
    )


# ---- Tatoeba ---------------------------------------------------------------------------------------------------------


def _tatoeba() -> Corpus:
    piece = Piece("deu-eng.zip", "deu.txt")
    parts = {"train": (30, 1000), "valid": (0, 15), "test": (15, 30)}  # thousandths of the English sentences
    return Corpus(
        name="tatoeba",
        about="short everyday sentences; one English sentence has several German ones, all in the same part",
        languages=("en", "de"),
        pairs="164,673 of the 169,813 that were read here; the origin's file grows",
        origin="manythings.org/anki, from tatoeba.org",
        licence="CC BY 2.0",
        downloads=(
            Download("deu-eng.zip", "https://www.manythings.org/anki/deu-eng.zip", also=("eng-deu.tsv.gz", "deu.txt")),
        ),
        texts=tuple(
            Text(f"{part}.{language}", (piece,), keep=share_of_sources(*range_), column=column)
            for part, range_ in parts.items()
            for column, language in enumerate(("en", "de"))
        ),
        recipe="recipes/tatoeba-en-de.toml",
        notes="The origin's file changes from time to time, so no checksum of it can stand here.",
    )


# ---- IWSLT 2014 ------------------------------------------------------------------------------------------------------


def _iwslt14() -> Corpus:
    archive = "de-en.tgz"
    tests = ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")

    def texts() -> Iterator[Text]:
        for language in ("en", "de"):
            train = (Piece(archive, f"de-en/train.tags.de-en.{language}", "talks"),)
            members = [f"de-en/IWSLT14.{test}.de-en.{language}.xml" for test in tests]
            test = tuple(Piece(archive, member, "segments") for member in members)
            yield Text(f"train.{language}", train, keep=all_but_every(23))
            yield Text(f"valid.{language}", train, keep=every(23))
            yield Text(f"test.{language}", test)

    return Corpus(
        name="iwslt14",
        about="talks; validation is every 23rd sentence and the test five sets joined, as is usual",
        languages=("en", "de"),
        pairs="about 160,000",
        origin="wit3.fbk.eu, as fairseq keeps it",
        licence="Creative Commons BY-NC-ND, the terms of the talks",
        downloads=(Download(archive, f"https://dl.fbaipublicfiles.com/fairseq/data/iwslt14/{archive}"),),
        texts=tuple(texts()),
        notes="Cased raw text; published results are often of lowercased, tokenised and length-filtered text.",
    )


# ---- WMT 2014 --------------------------------------------------------------------------------------------------------

_EUROPARL = Download(
    "training-parallel-europarl-v7.tgz",
    "https://www.statmt.org/wmt13/training-parallel-europarl-v7.tgz",
    657_632_379,
    "sha256:0224c7c710c8a063dfd893b0cc0830202d61f4c75c17eb8e31836103d27d96e7",
)
_COMMON_CRAWL = Download(
    "training-parallel-commoncrawl.tgz",
    "https://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz",
    918_311_367,
    "sha256:c7a74e2ea01ac6c920123108627e35278d4ccb5701e15428ffa34de86fa3a9e5",
)
_NEWS_COMMENTARY = Download(
    "training-parallel-nc-v9.tgz",
    "https://www.statmt.org/wmt14/training-parallel-nc-v9.tgz",
    80_418_416,
    "sha256:cb8953f292298e6877ae433c98912b927cb0766b303f4540512ddd286c748485",
)
_UN = Download("training-parallel-un.tgz", "https://www.statmt.org/wmt13/training-parallel-un.tgz")
_GIGA = Download("training-giga-fren.tar", "https://www.statmt.org/wmt10/training-giga-fren.tar")
_NEWSTEST2013 = Download(
    "wmt13-test.tgz", "https://www.statmt.org/wmt13/test.tgz", checksum="md5:48eca5d02f637af44e85186847141f67"
)
_NEWSTEST2014 = Download(
    "wmt14-test-full.tgz", "https://www.statmt.org/wmt14/test-full.tgz", checksum="md5:a8cd784e006feb32ac6f3d9ec7eb389a"
)


def _wmt14(target: str, training: Mapping[Download, str], pairs: str, recipe: str, **words: str) -> Corpus:
    """English to a language: `training` maps each archive to its member, with {language} for the ending."""

    def texts() -> Iterator[Text]:
        for language, side in (("en", "src"), (target, "ref")):
            train = tuple(
                Piece(download.file, member.format(language=language)) for download, member in training.items()
            )
            valid = Piece(_NEWSTEST2013.file, f"test/newstest2013-src.{language}.sgm", "segments")
            test = f"test-full/newstest2014-{target}en-{side}.{language}.sgm"
            yield Text(f"train.{language}", train)
            yield Text(f"valid.{language}", (valid,), lines=3000)
            yield Text(f"test.{language}", (Piece(_NEWSTEST2014.file, test, "segments"),), lines=3003)

    return Corpus(
        name=f"wmt14-en-{target}",
        languages=("en", target),
        pairs=pairs,
        origin="statmt.org/wmt14: the translation task of 2014",
        downloads=(*training, _NEWSTEST2013, _NEWSTEST2014),
        texts=tuple(texts()),
        recipe=recipe,
        **words,
    )


_LICENCE = "free for research, as statmt.org says; each part has terms of its own"

CORPORA: Mapping[str, Corpus] = MappingProxyType(
    {
        corpus.name: corpus
        for corpus in (
            _multi30k(),
            _tatoeba(),
            _iwslt14(),
            _wmt14(
                "de",
                {
                    _EUROPARL: "training/europarl-v7.de-en.{language}",
                    _COMMON_CRAWL: "commoncrawl.de-en.{language}",
                    _NEWS_COMMENTARY: "training/news-commentary-v9.de-en.{language}",
                },
                "about 4.5 million",
                "recipes/wmt14-en-de-base.toml",
                about="parliament, web and news; validation is newstest2013, the test newstest2014",
                licence=_LICENCE,
            ),
            _wmt14(
                "fr",
                {
                    _EUROPARL: "training/europarl-v7.fr-en.{language}",
                    _COMMON_CRAWL: "commoncrawl.fr-en.{language}",
                    _UN: "un/undoc.2000.fr-en.{language}",
                    _NEWS_COMMENTARY: "training/news-commentary-v9.fr-en.{language}",
                    _GIGA: "giga-fren.release2.fixed.{language}.gz",
                },
                "about 36 million, as the paper counts; it does not say what it left out",
                "recipes/wmt14-en-fr-big.toml",
                about="parliament, web, United Nations and news; validation is newstest2013, the test newstest2014",
                licence=_LICENCE,
            ),
        )
    }
)


def find_corpus(name: str) -> Corpus:
    """Return a corpus by its name; raises `UserError` with a suggestion for an unknown one."""
    if name not in CORPORA:
        raise UserError(f"no corpus {name!r}.{did_you_mean(name, list(CORPORA))} Known: {', '.join(CORPORA)}")
    return CORPORA[name]
