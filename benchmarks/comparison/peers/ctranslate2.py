"""CTranslate2: the weights as its own model, made with its own specification, and its batched translation."""

import shutil
from collections.abc import Sequence
from typing import Any

import ctranslate2
import numpy as np

from comparison.corpus import END
from comparison.job import Engine, Job, Setting, serve
from comparison.translating import Group, Translate, latency, sizes, translation

LONGEST = 512


def convert(job: Job) -> str:
    """Write the weights in CTranslate2's format, in float32; a smaller type is made of it when it is loaded."""
    folder = job.material(f"ctranslate2-{job.precision}-{job.kind}-{job.beam}")
    shutil.rmtree(folder, ignore_errors=True)
    shape, weights = job.shape, np.load(job.material("weights.npz"))
    spec = ctranslate2.specs.TransformerSpec.from_config(
        shape.layers, shape.heads, pre_norm=False, activation=ctranslate2.specs.Activation.RELU
    )
    embedding = weights["encoder.entry.embedding.weight"]
    for ours, theirs in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        tables = theirs.embeddings if ours == "encoder" else [theirs.embeddings]
        tables[0].weight = embedding
        theirs.position_encodings.encodings = sinusoids(LONGEST, shape.d_model)
        for number, layer in enumerate(theirs.layer):
            _fill_layer(layer, weights, f"{ours}.stack.{number}")
    spec.decoder.projection.weight = embedding
    names = token_names(shape.vocabulary)
    spec.register_source_vocabulary(names)
    spec.register_target_vocabulary(names)
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = names[1], names[2], names[END]
    spec.validate()
    spec.optimize()
    folder.mkdir()
    spec.save(str(folder))
    return str(folder)


def _fill_layer(layer: Any, weights: Any, name: str) -> None:
    attention = layer.self_attention
    attention.linear[0].weight = weights[f"{name}.self_attention.query_key_value.weight"]
    attention.linear[1].weight = weights[f"{name}.self_attention.output.weight"]
    _fill_norm(attention.layer_norm, weights, f"{name}.self_attention_residual")
    if hasattr(layer, "attention"):
        for number, part in enumerate(("query", "key_value", "output")):
            layer.attention.linear[number].weight = weights[f"{name}.cross_attention.{part}.weight"]
        _fill_norm(layer.attention.layer_norm, weights, f"{name}.cross_attention_residual")
    for linear, part in ((layer.ffn.linear_0, "inner"), (layer.ffn.linear_1, "outer")):
        linear.weight = weights[f"{name}.feed_forward.{part}.weight"]
        linear.bias = weights[f"{name}.feed_forward.{part}.bias"]
    _fill_norm(layer.ffn.layer_norm, weights, f"{name}.feed_forward_residual")


def _fill_norm(norm: Any, weights: Any, name: str) -> None:
    norm.gamma, norm.beta = weights[f"{name}.layer_norm.weight"], weights[f"{name}.layer_norm.bias"]


def sinusoids(length: int, d_model: int) -> np.ndarray:
    """Return the paper's table of positions (§3.5), sines and cosines in turn."""
    angle = np.arange(length)[:, None] / 10_000 ** (np.arange(0, d_model, 2) / d_model)
    return np.stack([np.sin(angle), np.cos(angle)], axis=2).reshape(length, d_model).astype(np.float32)


def token_names(vocabulary: int) -> list[str]:
    """Return a name for each id; CTranslate2's tokens are strings."""
    return ["<blank>", "<unk>", "<s>", "</s>", *(str(token) for token in range(END + 1, vocabulary))]


def _translator(job: Job) -> Translate:
    path, names = convert(job), token_names(job.shape.vocabulary)
    ids = {name: number for number, name in enumerate(names)}
    opened: dict[tuple[int, int], Any] = {}

    def translate(groups: Sequence[Group], setting: Setting) -> list[list[int]]:
        workers, threads = setting["workers_threads"]
        if (workers, threads) not in opened:
            opened[workers, threads] = ctranslate2.Translator(
                path, compute_type=job.precision, inter_threads=workers, intra_threads=threads
            )
        # A length holds for a whole call, so each group is a call; all are handed in at once, to keep workers busy.
        handed_in = [
            opened[workers, threads].translate_batch(
                [[names[token] for token in sentence] for sentence in group],
                beam_size=job.beam,
                max_decoding_length=len(group[0]),
                max_batch_size=setting["batch"],
                asynchronous=True,
            )
            for group in groups
        ]
        return [[ids[name] for name in one.result().hypotheses[0]] for results in handed_in for one in results]

    return translate


def many(job: Job) -> Engine:
    """Translate many sentences at a time."""
    return translation(job, _translator(job), {"workers_threads": [(2, 1), (1, 2)], "batch": sizes(job, 16, 8, 32, 64)})


def alone(job: Job) -> Engine:
    """Translate one sentence at a time."""
    return latency(job, _translator(job), {"workers_threads": [(1, 1), (1, 2)], "batch": [1]})


if __name__ == "__main__":
    serve({"translation": many, "latency": alone})
