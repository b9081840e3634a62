"""Hugging Face's Marian, the paper's Transformer in the library `transformers`: a plain loop, and `generate`."""

import os
import time
from collections.abc import Iterator, Sequence
from itertools import chain, count, islice
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F
from transformers import MarianConfig, MarianMTModel

from comparison.corpus import END, Pair, batches, padded
from comparison.job import Engine, Facts, Job, Setting, serve
from comparison.memory import PeakMemory
from comparison.translating import Group, Translate, latency, sizes, translation

PAD, START = 0, 2


def make_model(job: Job) -> MarianMTModel:
    """Return a Marian of the job's shape with random weights."""
    shape = job.shape
    config = MarianConfig(
        vocab_size=shape.vocabulary,
        decoder_vocab_size=shape.vocabulary,
        d_model=shape.d_model,
        encoder_layers=shape.layers,
        decoder_layers=shape.layers,
        encoder_attention_heads=shape.heads,
        decoder_attention_heads=shape.heads,
        encoder_ffn_dim=shape.d_ff,
        decoder_ffn_dim=shape.d_ff,
        activation_function="relu",
        max_position_embeddings=512,
        scale_embedding=True,
        share_encoder_decoder_embeddings=True,
        tie_word_embeddings=True,
        pad_token_id=PAD,
        decoder_start_token_id=START,
        bos_token_id=START,
        eos_token_id=END,
        forced_eos_token_id=None,  # or the last step would write an end whatever the model says
        dropout=shape.dropout,
        attention_dropout=0.0,  # the paper has dropout on sub-layers' outputs and on embeddings only
        activation_dropout=0.0,
    )
    return MarianMTModel(config)


# ---- training --------------------------------------------------------------------------------------------------------


def training(job: Job) -> Engine:
    """Train in a plain loop: its model, torch's smoothed cross-entropy and fused Adam, batches of like lengths."""
    pairs = [(source, target) for source, target in job.read("pairs.json")]
    model = make_model(job).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)
    ready = _tensors(pairs, job.shape.batch_tokens)

    def take(number: int) -> int:
        return sum(_step(model, optimizer, *batch) for batch in islice(ready, number))

    def measure(setting: Setting) -> Facts:
        torch.set_num_threads(setting["threads"])
        warmup, steps = job.steps(sample=setting.get("sample", False))
        take(warmup)
        started = time.perf_counter()
        tokens = take(steps)
        seconds = time.perf_counter() - started
        return {"figure": tokens / seconds, "tokens_a_step": tokens / steps}

    return Engine(measure, {"threads": [2, 1]})


def memory(job: Job) -> Engine:
    """Train as `training` does, and watch this process's memory."""
    trained = training(job)

    def measure(setting: Setting) -> Facts:
        with PeakMemory(os.getpid()) as watched:
            facts = trained.measure(setting)
        return {**facts, "figure": watched.peak}

    return Engine(measure, {"threads": [2]})


def _tensors(pairs: Sequence[Pair], budget: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for batch in chain.from_iterable(batches(pairs, budget, seed) for seed in count()):
        yield tuple(torch.from_numpy(padded(rows, PAD)) for rows in zip(*batch, strict=True))


def _step(model: Any, optimizer: torch.optim.Optimizer, src: torch.Tensor, tgt: torch.Tensor) -> int:
    """Take one step; return its real target tokens."""
    fed = torch.cat([torch.full((len(tgt), 1), START), tgt[:, :-1]], dim=1)
    logits = model(input_ids=src, attention_mask=src != PAD, decoder_input_ids=fed, use_cache=False).logits
    loss = F.cross_entropy(logits.flatten(0, 1), tgt.flatten(), ignore_index=PAD, label_smoothing=0.1)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    return int((tgt != PAD).sum())


# ---- translation -----------------------------------------------------------------------------------------------------


@torch.no_grad()
def load_weights(model: MarianMTModel, job: Job) -> None:
    """Copy the weights that all toolkits translate with.

    Marian's positions have all sines first and then all cosines. So the vectors' elements are put into that order
    wherever one is read or written; the model computes the same.
    """
    weights = np.load(job.material("weights.npz"))
    order = np.r_[0 : job.shape.d_model : 2, 1 : job.shape.d_model : 2]

    def take(name: str, reads: bool = False, writes: bool = False) -> torch.Tensor:
        array = weights[name]
        array = array[order] if writes else array
        return torch.from_numpy(array[:, order] if reads else array)

    def fill_attention(attention: Any, joined: Sequence[str], output: str) -> None:
        rows = torch.cat([take(name, reads=True) for name in joined])
        for linear, part in zip((attention.q_proj, attention.k_proj, attention.v_proj), rows.chunk(3), strict=True):
            linear.weight.copy_(part)
            linear.bias.zero_()
        attention.out_proj.weight.copy_(take(output, writes=True))
        attention.out_proj.bias.zero_()

    def fill_norm(norm: Any, name: str) -> None:
        norm.weight.copy_(take(f"{name}.layer_norm.weight", writes=True))
        norm.bias.copy_(take(f"{name}.layer_norm.bias", writes=True))

    model.get_encoder().embed_tokens.weight.copy_(take("encoder.entry.embedding.weight", reads=True))
    for side, stack in (("encoder", model.get_encoder()), ("decoder", model.get_decoder())):
        for number, layer in enumerate(stack.layers):
            name = f"{side}.stack.{number}"
            own = f"{name}.self_attention"
            fill_attention(layer.self_attn, [f"{own}.query_key_value.weight"], f"{own}.output.weight")
            fill_norm(layer.self_attn_layer_norm, f"{own}_residual")
            if side == "decoder":
                cross = f"{name}.cross_attention"
                joined = [f"{cross}.query.weight", f"{cross}.key_value.weight"]
                fill_attention(layer.encoder_attn, joined, f"{cross}.output.weight")
                fill_norm(layer.encoder_attn_layer_norm, f"{cross}_residual")
            layer.fc1.weight.copy_(take(f"{name}.feed_forward.inner.weight", reads=True))
            layer.fc1.bias.copy_(take(f"{name}.feed_forward.inner.bias"))
            layer.fc2.weight.copy_(take(f"{name}.feed_forward.outer.weight", writes=True))
            layer.fc2.bias.copy_(take(f"{name}.feed_forward.outer.bias", writes=True))
            fill_norm(layer.final_layer_norm, f"{name}.feed_forward_residual")


def _translator(job: Job) -> Translate:
    model = make_model(job).eval()
    load_weights(model, job)

    @torch.inference_mode()
    def translate(groups: Sequence[Group], setting: Setting) -> list[list[int]]:
        torch.set_num_threads(setting["threads"])
        found = []
        for group in groups:
            for start in range(0, len(group), setting["batch"]):
                src = torch.tensor(group[start : start + setting["batch"]])
                found += model.generate(
                    input_ids=src,
                    attention_mask=torch.ones_like(src),
                    max_new_tokens=src.size(1),
                    num_beams=job.beam,
                    do_sample=False,
                )[:, 1:].tolist()
        return found

    return translate


def many(job: Job) -> Engine:
    """Translate many sentences at a time."""
    return translation(job, _translator(job), {"threads": [2, 1], "batch": sizes(job, 32, 16, 64)})


def alone(job: Job) -> Engine:
    """Translate one sentence at a time."""
    return latency(job, _translator(job), {"threads": [2, 1], "batch": [1]})


if __name__ == "__main__":
    serve({"training": training, "memory": memory, "translation": many, "latency": alone})
