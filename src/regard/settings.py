"""A recipe: every setting of regard with its type, its default (the paper's) and the text that is its help.

A recipe is a TOML file with the sections `[model]`, `[data]`, `[training]` and `[search]`, and optionally a first line
`preset = "name"` that gives everything the file does not say. The defaults are the paper's base model. A field whose
value departs from the paper says so in its text.
"""

import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from reprlib import Repr
from typing import Any, Literal, Self

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from regard.errors import SettingsError, UserError, did_you_mean
from regard.files import read_toml
from regard.presets import DEFAULT_PRESET, PRESETS

MOST_EXTRA_LENGTH = 65_535  # as the longest sentence of training
_LARGEST = 10**12  # of numbers that have no other limit, so that sums and products of them fit 64 bits
_EXPLAINED = 50  # mistakes of one recipe: a stranger's file may have any number


class Section(BaseModel):
    """A group of settings: frozen, typed, and closed to names it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=False)


class ModelSettings(Section):
    """The shape of the Transformer (§3)."""

    d_model: int = Field(
        512, ge=1, le=65_536, description="Width of embeddings and of every sub-layer's output (§3.1)."
    )
    d_ff: int = Field(2048, ge=1, le=1_048_576, description="Inner width of the feed-forward networks (§3.3).")
    heads: int = Field(8, ge=1, le=1024, description="Attention heads h (§3.2.2).")
    d_k: int | None = Field(
        None, ge=1, le=65_536, description="Width of a head's queries and keys; unset: d_model / heads."
    )
    d_v: int | None = Field(None, ge=1, le=65_536, description="Width of a head's values; unset: d_model / heads.")
    encoder_layers: int = Field(6, ge=1, le=1000, description="Encoder layers N (§3.1).")
    decoder_layers: int = Field(
        6,
        ge=1,
        le=1000,
        description="Decoder layers; the paper has as many as encoder layers. Fewer make translation faster.",
    )
    dropout: float = Field(
        0.1, ge=0, lt=1, description="P_drop: on each sub-layer's output and on embeddings plus positions (§5.4)."
    )
    attention_dropout: float = Field(
        0.0, ge=0, lt=1, description="Dropout on attention weights, after the softmax. Departs from the paper; 0: none."
    )
    activation_dropout: float = Field(
        0.0, ge=0, lt=1, description="Dropout inside the feed-forward networks. Departs from the paper; 0: none."
    )
    word_dropout: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="Probability with which an input token, of the source or of the target so far, loses its embedding "
        "in training, so that only its position is seen. Departs from the paper; 0: none.",
    )
    norm: Literal["post", "pre"] = Field(
        "post",
        description="'post' normalises after each residual sum, as the paper does; 'pre' normalises each sub-layer's "
        "input instead, which departs from the paper and trains deep stacks more easily.",
    )
    initial_gain: float = Field(
        1.0,
        gt=0,
        le=10,
        description="Factor of the first weights of what each sub-layer adds to its residual block. Below 1 a layer "
        "begins as little more than its input, so that words get through to where they are looked at: small corpora "
        "are learned in fewer epochs. Departs from the paper; 1: none.",
    )
    positions: Literal["sinusoidal", "learned"] = Field(
        "sinusoidal", description="Sines and cosines (§3.5), or a learned table as in Table 3 (E)."
    )
    max_positions: int = Field(
        1024, ge=2, le=1_048_576, description="Rows of the learned position table; sinusoids have no limit."
    )
    embeddings: Literal["shared", "target", "separate"] = Field(
        "shared",
        description="'shared': one matrix for source, target and output (§3.4). Departures: 'target' ties target and "
        "output only; 'separate' ties nothing.",
    )
    attention_bias: bool = Field(False, description="Biases in the attention projections; the paper has none.")
    activation: Literal["relu", "gelu", "swish"] = Field(
        "relu", description="Between the two feed-forward maps: the paper's ReLU, or a departure: GELU or Swish."
    )
    neighbours: int | None = Field(
        None,
        ge=2,
        le=_LARGEST,
        description="Restrict self-attention to a neighbourhood of this many positions around each position (§4, last "
        "row of Table 1); cost then grows as r·n. Unset: every position, as in the paper's models.",
    )

    @property
    def head_width(self) -> int:
        """d_model / h, the paper's width of one head."""
        return self.d_model // self.heads

    @property
    def key_width(self) -> int:
        """d_k, resolved."""
        return self.d_k or self.head_width

    @property
    def value_width(self) -> int:
        """d_v, resolved."""
        return self.d_v or self.head_width

    @model_validator(mode="after")
    def _check_heads(self) -> Self:
        if (self.d_k is None or self.d_v is None) and self.d_model % self.heads:
            raise ValueError(f"d_model ({self.d_model}) is not a multiple of heads ({self.heads}); set d_k and d_v")
        return self


class Corpus(Section):
    """One corpus: two text files of equal line count, or one file of tab-separated pairs; `.gz` is read as it is."""

    source: Path | None = Field(None, description="Text file, one source sentence a line.")
    target: Path | None = Field(None, description="Text file, one target sentence a line.")
    pairs: Path | None = Field(None, description="Tab-separated file: source, target; further columns are ignored.")
    weight: float = Field(1.0, gt=0, le=1000, description="How many times an epoch sees this corpus; 0.5: half of it.")

    @model_validator(mode="after")
    def _check_files(self) -> Self:
        if (self.pairs is None) == (self.source is None and self.target is None):
            raise ValueError("give either 'source' and 'target', or 'pairs'")
        if self.pairs is None and (self.source is None or self.target is None):
            raise ValueError("'source' and 'target' come together")
        return self

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of this corpus."""
        return tuple(path for path in (self.source, self.target, self.pairs) if path is not None)


class DataSettings(Section):
    """The corpora and how text becomes tokens (§5.1)."""

    source_language: str = Field("", description="Code of the source language, such as 'en'; for cards and metrics.")
    target_language: str = Field("", description="Code of the target language, such as 'de'; for cards and metrics.")
    train: tuple[Corpus, ...] = Field((), description="Training corpora: tables with source and target, or pairs.")
    valid: tuple[Corpus, ...] = Field((), description="Validation corpora: choose everything on these.")
    vocabulary: Path | None = Field(None, description="A SentencePiece model to use; unset: one is trained.")
    vocabulary_size: int = Field(
        37_000, ge=300, le=1_000_000, description="Subwords, shared by both languages; fewer if the text has no more."
    )
    character_coverage: float = Field(
        0.9999, gt=0.9, le=1, description="Share of characters with a subword of their own; the rest goes by bytes."
    )
    normalization: Literal["identity", "nfkc", "nmt_nfkc", "nfkc_cf", "nmt_nfkc_cf"] = Field(
        "identity", description="SentencePiece's rule for input text; 'identity' changes nothing, '_cf' folds case."
    )
    vocabulary_sentences: int = Field(
        200_000, ge=1, le=_LARGEST, description="At most this many sentences (evenly sampled) teach the vocabulary."
    )
    subword_dropout: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="BPE-dropout (Provilkov and others 2020): each merge of subwords is left out with this "
        "probability, so that training sees words cut another way in each epoch; validation and translation see the "
        "usual one. Departs from the paper; helps where text is scarce (0.1 is usual). 0: off, as in the paper.",
    )
    retranslation_steps: int = Field(
        0,
        ge=0,
        le=_LARGEST,
        description="Data diversification (Nguyen and others 2020): two models of the same kind are trained first, for "
        "so many steps each, one from source to target and one back, and the training text is used twice more: with "
        "its targets as the first translates its sources, and its sources as the second translates its targets. "
        "Departs from the paper; helps where text is scarce. 0: off, as in the paper.",
    )
    retranslation_models: int = Field(
        1,
        ge=1,
        le=100,
        description="Of the models that data.retranslation_steps has trained first, so many translate from source to "
        "target: they differ by chance, and together, by the mean of their probabilities, are better than one. Means "
        "nothing without data.retranslation_steps.",
    )
    retranslation_beam: int | None = Field(
        None,
        ge=1,
        le=1000,
        description="Hypotheses kept at each step when these models translate the training text; unset: search.beam. "
        "Fewer take less time. Means nothing without data.retranslation_steps.",
    )
    max_length: int = Field(
        256, ge=2, le=65_535, description="Longest sentence in training, in subwords with the end token, on each side."
    )
    max_ratio: float = Field(9.0, ge=1, description="Largest ratio of the two sides' lengths in training.")
    drop_duplicates: bool = Field(False, description="Train on each distinct pair once; repeats are counted anyway.")


class TrainingSettings(Section):
    """The optimisation (§5)."""

    steps: int = Field(100_000, ge=1, le=_LARGEST, description="Updates of the weights (§5.2).")
    batch_tokens: int = Field(
        25_000,
        ge=1,
        le=_LARGEST,
        description="At most so many source tokens and so many target tokens a step, over all processes (§5.1).",
    )
    micro_batch_tokens: int | None = Field(
        None,
        ge=1,
        le=_LARGEST,
        description="A step is computed in pieces of at most this many tokens and their gradients are added up; unset: "
        "half a batch, at most 4096. The result does not depend on how many processes share the pieces.",
    )
    warmup: int = Field(4000, ge=1, le=_LARGEST, description="Steps of rising learning rate (§5.3).")
    learning_rate: float | None = Field(
        None, gt=0, description="Peak of the learning rate, after warmup; unset: d_model^-0.5 · warmup^-0.5 (§5.3)."
    )
    schedule: Literal["paper", "linear"] = Field(
        "paper",
        description="How the learning rate falls after warmup: with 1/√step as in the paper (§5.3), or in a straight "
        "line to zero after the last step, which gets more out of few steps.",
    )
    beta1: float = Field(0.9, ge=0, lt=1, description="Adam's β1 (§5.3).")
    beta2: float = Field(0.98, ge=0, lt=1, description="Adam's β2 (§5.3).")
    epsilon: float = Field(1e-9, gt=0, description="Adam's ε (§5.3).")
    weight_decay: float = Field(
        0.0,
        ge=0,
        le=10,
        description="Each step also takes this share, times the learning rate, of every weight away (Loshchilov and "
        "Hutter 2019). Departs from the paper; helps where text is scarce (0.1 is usual). 0: off, as in the paper.",
    )
    label_smoothing: float = Field(0.1, ge=0, lt=1, description="ε_ls: share of probability spread evenly (§5.4).")
    consistency: float = Field(
        0.0,
        ge=0,
        le=1000,
        description="R-Drop's α (Liang and others 2021): each batch passes the model twice, with other dropout, and "
        "α/4 · (KL(p‖r) + KL(r‖p)) of the two distributions is added to their mean loss. Departs from the paper; helps "
        "where text is scarce (5 is usual) and takes twice the time. 0: off, as in the paper.",
    )
    consistency_start: int = Field(
        0,
        ge=0,
        le=_LARGEST,
        description="Steps that are taken with one pass before training.consistency counts: a model that knows little "
        "learns slowly while its passes must agree, and one pass takes half the time.",
    )
    softmax_tokens: int = Field(
        0,
        ge=0,
        le=_LARGEST,
        description="About so many tokens are in a step's softmax: its own targets, the commonest ones, and some drawn "
        "anew each time that stand for all others (Jean and others 2015). Departs from the paper; a small model with a "
        "large vocabulary learns faster. 0: all tokens, as in the paper.",
    )
    risk_steps: int = Field(
        0,
        ge=0,
        le=_LARGEST,
        description="Steps after all others, in which the model lowers the expected error of its own likeliest "
        "translations (minimum risk training, Shen and others 2016). Departs from the paper; a step takes several "
        "times as long, and a few hundred are usual. Needs training.average = 'exponential'. 0: off, as in the paper.",
    )
    risk_learning_rate: float = Field(
        4e-4, gt=0, description="Learning rate of the first of training.risk_steps; falls in a straight line to zero."
    )
    risk_candidates: int = Field(
        8, ge=2, le=1000, description="Translations of each source that training.risk_steps compare with the reference."
    )
    clip_norm: float | None = Field(
        None, gt=0, description="Largest norm of the gradient of the mean loss per token; unset: none, as in the paper."
    )
    seed: int = Field(
        1, ge=0, le=2**63 - 1, description="Every random number is a function of this, the step and the piece of it."
    )
    log_steps: int = Field(50, ge=1, le=_LARGEST, description="Write a line to log.jsonl every so many steps.")
    checkpoint_steps: int = Field(
        1500,
        ge=1,
        le=_LARGEST,
        description="Validate and write a checkpoint every so many steps; the paper's ten minutes are 1500.",
    )
    checkpoint_minutes: float = Field(
        10.0, ge=0, description="Also write a checkpoint after so many minutes, to go on from, never averaged; 0: none."
    )
    average: Literal["last", "best", "exponential"] = Field(
        "last",
        description="Average the last checkpoints, as the paper does (§6.1), or those that validate best; or, a "
        "departure, keep an exponential running mean of the weights over all steps, which is then what is validated "
        "and becomes the model.",
    )
    average_checkpoints: int = Field(
        5, ge=1, le=_LARGEST, description="How many checkpoints are averaged into the model (§6.1), if any are."
    )
    average_decay: float = Field(
        0.999,
        ge=0,
        lt=1,
        description="What an exponential mean keeps of itself at each step: it covers about 1 / (1 - decay) steps. It "
        "keeps less at first, (t - 1) / (t + 8) at step t.",
    )
    patience: int | None = Field(
        None,
        ge=1,
        le=_LARGEST,
        description="Stop after so many validations without a better one; unset: train all steps.",
    )
    choose_by: Literal["bleu", "loss"] = Field("loss", description="What makes a checkpoint better than another.")
    validation_bleu: bool = Field(True, description="Translate the validation set (greedily) at every validation.")
    validation_sentences: int = Field(
        1000,
        ge=1,
        le=_LARGEST,
        description="At most this many validation sentences, evenly spread, are translated for BLEU.",
    )
    precision: Literal["auto", "float32", "bfloat16"] = Field(
        "auto", description="Type of matrix products: 'auto' is bfloat16 on a GPU that has it, float32 elsewhere."
    )

    shard: bool = Field(
        False,
        description="Give each process a part of every weight, its gradient and Adam's state, instead of all (FSDP), "
        "for models that do not fit one device. Checkpoints are whole and load on any number of processes.",
    )

    @model_validator(mode="after")
    def _check_shard(self) -> Self:
        if self.softmax_tokens and self.shard:
            raise ValueError("softmax_tokens: not with shard")
        return self

    @model_validator(mode="after")
    def _check_risk(self) -> Self:
        if self.risk_steps and (self.average != "exponential" or self.patience is not None or self.shard):
            raise ValueError("risk_steps need average = 'exponential', and neither patience nor shard")
        return self

    @property
    def all_steps(self) -> int:
        """Steps of both kinds."""
        return self.steps + self.risk_steps

    @property
    def pieces(self) -> int:
        """Into how many micro-batches a step is cut."""
        wanted = self.micro_batch_tokens or min(4096, -(-self.batch_tokens // 2))
        return max(1, -(-self.batch_tokens // wanted))

    @property
    def piece_tokens(self) -> int:
        """Most tokens of one micro-batch on each side, padding counted."""
        return -(-self.batch_tokens // self.pieces)


class SearchSettings(Section):
    """How translations are found (§6.1)."""

    beam: int = Field(4, ge=1, le=1000, description="Hypotheses kept at each step (§6.1); 1 is greedy.")
    length_penalty: float = Field(0.6, ge=0, le=5, description="α of the length penalty ((5 + |Y|) / 6)^α (§6.1).")
    extra_length: int = Field(
        50, ge=0, le=MOST_EXTRA_LENGTH, description="Output may be longer than the input by so many tokens (§6.1)."
    )


class Settings(Section):
    """All settings of a run."""

    model: ModelSettings = ModelSettings()
    data: DataSettings = DataSettings()
    training: TrainingSettings = TrainingSettings()
    search: SearchSettings = SearchSettings()

    def to_toml(self) -> str:
        """Write every setting that has a value as TOML, so that reading it gives these settings again."""
        return tomli_w.dumps(self.model_dump(mode="json", exclude_none=True))


# ---- reading ---------------------------------------------------------------------------------------------------------


def read_recipe(path: Path, overrides: Iterable[str] = ()) -> Settings:
    """Read a recipe and apply overrides of the form `section.key=value`; corpora are relative to the recipe's folder.

    Raises `SettingsError` with every mistake of the file and of the overrides.
    """
    return resolve(read_toml(path), overrides, origin=str(path), folder=path.parent)


def resolve(
    values: Mapping[str, Any], overrides: Iterable[str] = (), *, origin: str = "settings", folder: Path = Path()
) -> Settings:
    """Lay `values` over their preset, then overrides over both; check everything at once."""
    problems: list[str] = []
    merged = _without(values, "preset")
    try:
        merged = _merge(preset_values(values.get("preset", DEFAULT_PRESET)), merged)
    except SettingsError as error:
        problems += error.problems
    for override in overrides:
        try:
            merged = _merge(merged, parse_override(override))
        except UserError as error:
            problems.append(str(error))
    try:
        settings = Settings.model_validate(merged)
    except ValidationError as error:
        problems += [_explain_problem(problem) for problem in islice(error.errors(include_url=False), _EXPLAINED)]
        if error.error_count() > _EXPLAINED:
            problems.append(f"and {error.error_count() - _EXPLAINED:,} more")
        raise SettingsError(origin, problems) from None
    problems += _unusable_paths(settings.data)
    if problems:
        raise SettingsError(origin, problems)
    return _rebase_paths(settings, folder)


def preset_values(name: object) -> dict[str, Any]:
    """Return what a preset says beyond the defaults; raises `SettingsError` for an unknown name."""
    if isinstance(name, str) and name in PRESETS:
        return {section: dict(values) for section, values in PRESETS[name].values.items()}
    hint = did_you_mean(str(name), list(PRESETS))
    raise SettingsError("preset", [f"no preset {name!r}.{hint} Known: {', '.join(PRESETS)}"])


def preset(name: str, overrides: Iterable[str] = ()) -> Settings:
    """Return the settings of a preset."""
    return resolve({"preset": name}, overrides, origin=f"preset {name}")


def parse_override(text: str) -> dict[str, Any]:
    """Turn `training.warmup=8000` into `{"training": {"warmup": 8000}}`; a value that is not TOML is a string."""
    key, equals, value = text.partition("=")
    parts = [part.strip() for part in key.split(".")]
    if not equals or not all(parts):
        raise UserError(f"override {text!r}: expected section.key=value, such as training.warmup=8000")
    if len(parts) > 10:
        raise UserError(f"override {_shown(text)}: a setting's name has two parts, such as training.warmup")
    try:
        parsed: Any = tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError):
        parsed = value.strip()
    for part in reversed(parts):
        parsed = {part: parsed}
    return dict(parsed)


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        merged[key] = _merge(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return merged


def _without(values: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name != key}


def _rebase_paths(settings: Settings, folder: Path) -> Settings:
    def rebase(path: Path | None) -> Path | None:
        return None if path is None else (folder / os.path.expanduser(path)).absolute()  # noqa: PTH111 - Path's raises for an unknown user

    def rebase_corpus(corpus: Corpus) -> Corpus:
        paths = {name: rebase(getattr(corpus, name)) for name in ("source", "target", "pairs")}
        return corpus.model_copy(update=paths)

    data = settings.data
    changed = {
        "train": tuple(map(rebase_corpus, data.train)),
        "valid": tuple(map(rebase_corpus, data.valid)),
        "vocabulary": rebase(data.vocabulary),
    }
    return settings.model_copy(update={"data": data.model_copy(update=changed)})


def _unusable_paths(data: DataSettings) -> list[str]:
    """Say which files can't be written down in TOML, and so can't be named in a run's settings."""
    corpora = [(name, corpus) for name in ("train", "valid") for corpus in getattr(data, name)]
    paths = [(f"data.{name}", path) for name, corpus in corpora for path in corpus.files]
    paths += [("data.vocabulary", data.vocabulary)] if data.vocabulary else []
    return [
        f"{name} = {str(path)!r}: no name that can be written as UTF-8 text; rename the file"
        for name, path in paths
        if "\0" in str(path) or not _is_text(str(path))
    ]


def _is_text(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _explain_problem(problem: ErrorDetails) -> str:
    """One sentence for one of pydantic's findings: the setting's path, what is wrong, what was meant."""
    where = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        *sections, name = problem["loc"]
        known = list(_section_fields(sections))
        hint = _found_elsewhere(str(name)) or did_you_mean(str(name), known) or f" Known here: {', '.join(known)}."
        return f"{where}: no such setting.{hint}"
    if problem["type"] == "tuple_type" and isinstance(problem["input"], Mapping):
        return f"{where}: a corpus is one of a list; write [[{where}]] instead of [{where}]"
    if problem["type"] == "model_type":
        return f"{where} = {_shown(problem['input'])}: is a section; write [{where}] and its settings below it"
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] in ("value_error", "missing"):
        return f"{where or 'recipe'}: {message}"
    return f"{where} = {_shown(problem['input'])}: {message[0].lower()}{message[1:]}"


def _shown(value: object) -> str:
    """Return what a setting was given as people would write it; not all of it if it is long or deep."""
    short = Repr()
    short.maxstring = short.maxlong = short.maxother = 200
    try:
        return short.repr(value)
    except ValueError:  # a number of more digits than Python writes
        return "a number of very many digits"


def _section_fields(path: list[int | str]) -> Mapping[str, FieldInfo]:
    section: type[Section] = Settings
    for part in path:
        if part in ("train", "valid"):
            return Corpus.model_fields
        if isinstance(part, str) and part in section.model_fields:
            annotation = section.model_fields[part].annotation
            if isinstance(annotation, type) and issubclass(annotation, Section):
                section = annotation
    return section.model_fields


def _found_elsewhere(name: str) -> str:
    places = [key for key, _ in list_settings() if key.rpartition(".")[2] == name]
    return f" Did you mean {places[0]!r}?" if places else ""


# ---- explaining ------------------------------------------------------------------------------------------------------


def list_settings() -> Iterator[tuple[str, FieldInfo]]:
    """Yield each setting's dotted name with its field, in the order of the sections."""
    for section, field in Settings.model_fields.items():
        annotation = field.annotation
        assert isinstance(annotation, type)
        assert issubclass(annotation, Section)
        for name, inner in annotation.model_fields.items():
            yield f"{section}.{name}", inner


def find_setting(key: str) -> FieldInfo:
    """Return a setting's field by its dotted name; raises `UserError` with a suggestion for an unknown one."""
    known = dict(list_settings())
    if key not in known:
        raise UserError(f"no setting {key!r}.{_found_elsewhere(key) or did_you_mean(key, list(known))}")
    return known[key]
