"""The page: a report's content as HTML, in one file, without scripts and without network."""

from collections.abc import Sequence

from regard.attention_maps import AttentionMaps, alignment_weights, describe_heads, group_words
from regard.evaluate import Score
from regard.progress import duration
from regard.report.charts import LINEAR, LOGARITHMIC, Line, heat_map, line_chart, small_map
from regard.report.content import Content, Sample, departures, describe_average, describe_retranslation
from regard.report.differences import mark_differences
from regard.report.markup import Markup, element, join
from regard.report.style import STYLE

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"  # a second lock: nothing of the page may load or run
_SECTIONS = {
    "scores": "Scores",
    "curves": "Curves",
    "translations": "Translations",
    "worst": "The worst",
    "attention": "Attention",
    "data": "Data",
    "settings": "Settings",
}


def write_page(content: Content) -> str:
    """Return a report as HTML."""
    bodies = {
        "scores": _scores(content),
        "curves": _curves(content),
        "translations": _samples(content, content.samples, f"{len(content.samples)} of {content.sentences:,}, evenly"),
        "worst": _samples(content, content.worst, "Those least like their reference, by chrF; the worst first"),
        "attention": _attention(content.attention),
        "data": _data(content),
        "settings": _settings(content),
    }
    there = {name: body for name, body in bodies.items() if body is not None}
    links = [element("a", _SECTIONS[name], href=f"#{name}") for name in there]
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("title", f"{content.title}: training report"),
        element("style", Markup(STYLE)),
    )
    sections = [element("section", element("h2", _SECTIONS[name]), body, id=name) for name, body in there.items()]
    main = element(
        "main", _header(content, links), *sections, element("footer", f"Written by regard {content.version}.")
    )
    return f"<!DOCTYPE html>\n{element('html', head, element('body', main), lang='en')}\n"


def _header(content: Content, links: Sequence[Markup]) -> Markup:
    model = content.settings.model
    told = (
        f"A Transformer of {model.encoder_layers} + {model.decoder_layers} layers, d_model {model.d_model}, "
        f"d_ff {model.d_ff}, {model.heads} heads; {content.step:,} steps."
    )
    return element("header", element("h1", content.title), element("p", told), element("nav", *links), _tiles(content))


def _tiles(content: Content) -> Markup:
    facts = [
        (one.name, f"{one.value:.1f}", f"{one.interval[0]:.1f} to {one.interval[1]:.1f}" if one.interval else "")
        for one in content.scores[:2]
    ]
    facts.append(("Training", duration(content.seconds), f"{content.step:,} steps"))
    facts.append(("Weights", _short(content.weights), f"{content.weights:,}"))
    facts.append(("Target tokens seen", _short(content.target_tokens), f"{content.target_tokens:,}"))
    tiles = [
        element("div", element("span", name), element("b", value), element("span", more or "\xa0"), class_=kind)
        for (name, value, more), kind in zip(facts, ["tile first", *["tile"] * len(facts)], strict=False)
    ]
    return element("div", *tiles, class_="tiles")


# ---- scores and curves -----------------------------------------------------------------------------------------------


def _scores(content: Content) -> Markup:
    search = content.settings.search
    if not content.scores:
        return element("p", "No validation text was given, so nothing is known about the model's quality.")
    told = (
        f"On {content.sentences:,} sentences of the validation text, beam {search.beam}, length penalty "
        f"{search.length_penalty:g}; 95 % intervals by bootstrap over sentences."
    )
    header = element("tr", *(element("th", name) for name in ("metric", "score", "95 % interval", "how")))
    rows = [_score_row(one) for one in content.scores]
    return join(element("p", told), element("div", element("table", header, *rows, class_="scores"), class_="box"))


def _score_row(score: Score) -> Markup:
    interval = f"{score.interval[0]:.2f} – {score.interval[1]:.2f}" if score.interval else ""
    name = f"{score.name} (lower is better)" if score.lower_is_better else score.name
    return element(
        "tr",
        element("td", name),
        element("td", element("b", f"{score.value:.2f}"), class_="number"),
        element("td", interval, class_="number"),
        element("td", score.detail, element("br"), element("code", score.signature)),
    )


def _curves(content: Content) -> Markup | None:
    curves = content.curves
    charts = [
        line_chart(
            "Loss",
            [Line("training, smoothed", "a", curves.loss), Line("validation", "b", curves.valid_loss, dots=True)],
            3,
            LINEAR,
        ),
        line_chart(
            "Perplexity",
            [
                Line("training", "a", curves.perplexity),
                Line("validation", "b", curves.valid_perplexity, dots=True),
            ],
            2,
            LOGARITHMIC,
        ),
        line_chart("BLEU", [Line("validation, greedy", "c", curves.bleu, dots=True)], 1, LINEAR),
    ]
    if not any(charts):
        return None
    told = (
        "By step. Losses are in nats a token; training's is that of smoothed labels. Perplexity is e to the plain loss."
    )
    return join(element("p", told), element("div", *charts, class_="charts"))


# ---- translations ----------------------------------------------------------------------------------------------------


def _samples(content: Content, samples: Sequence[Sample], told: str) -> Markup | None:
    if not samples:
        return None
    marks = join(
        f"{told}. Marked are ",
        element("mark", "words of the translation", class_="ours"),
        " that the reference has not in that place, and ",
        element("mark", "words of the reference", class_="theirs"),
        " that the translation has not. A difference need not be a mistake.",
    )
    data = content.settings.data
    cards = [_card(one, data.source_language or None, data.target_language or None) for one in samples]
    return join(element("p", marks), *cards)


def _card(sample: Sample, source_language: str | None, target_language: str | None) -> Markup:
    ours, theirs = mark_differences(sample.translation, sample.reference)
    source = element("span", sample.source, dir="auto", lang=source_language)
    sides = [
        element("p", element("small", name), element("span", text, dir="auto", lang=target_language))
        for name, text in (("translation", ours), ("reference", theirs))
    ]
    return element(
        "div",
        element("p", source, element("span", f"chrF {sample.score:.0f}"), class_="source"),
        element("div", *sides, class_="sides"),
        class_="card",
    )


# ---- attention -------------------------------------------------------------------------------------------------------


def _attention(pictures: Sequence[AttentionMaps]) -> Markup | None:
    if not pictures:
        return None
    told = (
        "Which source words (columns) the decoder looks at while it writes each word (rows): the mean of all heads of "
        "the upper half of its layers. Below, what each head of the encoder's last layer does with the first sentence."
    )
    maps = [element("div", _alignment(one), class_="card") for one in pictures]
    first = pictures[0]
    last = len(first.encoder) - 1
    verdicts = {
        one.head: one.verdict for one in describe_heads([first]) if one.kind == "encoder" and one.layer == last + 1
    }
    heads = [
        small_map(weights, f"head {number}: {verdicts[number]}")
        for number, weights in enumerate(first.encoder[last], 1)
    ]
    return join(element("p", told), element("div", *maps, class_="maps"), element("div", *heads, class_="heads"))


def _alignment(maps: AttentionMaps) -> Markup:
    """Draw what the decoder looks at in a sentence."""
    weights = alignment_weights(maps.cross)
    return heat_map(weights, _labels(maps.predicted_tokens), _labels(maps.source_tokens), "attention to the source")


def _labels(tokens: Sequence[str], longest: int = 14) -> list[str]:
    """Write tokens as they read: those that go on with a word have a hyphen before them."""
    words = group_words(tokens)
    labels = [
        f"-{token}" if number and words[number] == words[number - 1] and token.isalnum() else token.removeprefix("▁")
        for number, token in enumerate(tokens)
    ]
    return [label if len(label) <= longest else f"{label[: longest - 1]}…" for label in labels]


# ---- data and settings -----------------------------------------------------------------------------------------------


def _data(content: Content) -> Markup:
    corpora = [
        element("li", " and ".join(path.name for path in corpus.files), f", weight {corpus.weight:g}")
        for corpus in content.settings.data.train
    ]
    corpora += [element("li", line) for line in describe_retranslation(content.settings.data)]
    report = element("pre", "\n".join(content.data))
    return join(element("p", "Trained on:"), element("ul", *corpora), element("div", report, class_="box"))


def _settings(content: Content) -> Markup:
    training = content.settings.training
    skipped = f" {content.skipped:,} steps had no finite gradient and changed nothing." if content.skipped else ""
    told = f"{describe_average(training, content.averaged)} Seed {training.seed}.{skipped}"
    rows = [
        element("tr", element("td", element("code", key)), element("td", _shown(ours)), element("td", _shown(theirs)))
        for key, ours, theirs in departures(content.settings)
    ]
    header = element("tr", *(element("th", name) for name in ("setting", "here", "the paper's base model")))
    table = element("div", element("table", header, *rows), class_="box") if rows else None
    summary = element("summary", "All settings, as TOML")
    return join(element("p", told), table, element("details", summary, element("pre", content.settings.to_toml())))


def _shown(value: object) -> str:
    if value is None:
        return "unset"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _short(number: int) -> str:
    for size, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return str(number)
