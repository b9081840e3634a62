"""Attention (§3.2): the formula, the masks, the restricted neighbourhood, the step."""

import math

import numpy as np
import pytest
import torch
from counting import Allocations
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from regard.model.attention import (
    CrossAttention,
    SelfAttention,
    attend,
    attend_nearby,
    attention_weights,
    causal_mask,
    join_heads,
    split_heads,
)
from regard.model.past import Past

EXACT = 1e-12  # float64: sums of some dozen terms of size 1
CLOSE = 1e-6  # float32: the same


def random(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def softmax(scores):
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)


# ---- the formula -----------------------------------------------------------------------------------------------------


def test_attention_is_the_papers_formula_on_a_worked_example():
    queries = np.array([[1.0, 0.0, 2.0, 0.0], [0.0, 1.0, 0.0, -1.0]])  # d_k = 4, so that √d_k = 2
    keys = np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 2.0, 0.0, 0.0], [2.0, 0.0, 0.0, 4.0]])
    values = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])  # the weights themselves come out
    # Q Kᵀ is [[3, 0, 2], [0, 2, -4]]; halved and raised, each row over its sum:
    first = np.array([math.exp(1.5), math.exp(0), math.exp(1)]) / (math.exp(1.5) + 1 + math.exp(1))
    second = np.array([math.exp(0), math.exp(1), math.exp(-2)]) / (1 + math.exp(1) + math.exp(-2))

    mixed = attend(*(torch.tensor(x)[None, None] for x in (queries, keys, values)))[0, 0].numpy()

    np.testing.assert_allclose(mixed, [first, second], atol=EXACT)
    np.testing.assert_allclose(mixed, softmax(queries @ keys.T / np.sqrt(4)) @ values, atol=EXACT)


@pytest.mark.parametrize(("d_k", "d_v"), [(3, 7), (7, 3), (1, 1), (16, 16)])
def test_keys_and_values_may_have_widths_of_their_own(d_k, d_v):
    queries, keys, values = random(2, 3, 5, d_k), random(2, 3, 6, d_k, seed=1), random(2, 3, 6, d_v, seed=2)
    expected = softmax((queries @ keys.mT).numpy() / np.sqrt(d_k)) @ values.numpy()

    mixed = attend(queries, keys, values)

    assert mixed.shape == (2, 3, 5, d_v)
    np.testing.assert_allclose(mixed.numpy(), expected, atol=EXACT)


def test_a_mask_makes_scores_minus_infinity_before_the_softmax():
    queries, keys, values = random(1, 1, 2, 4), random(1, 1, 3, 4, seed=1), random(1, 1, 3, 4, seed=2)
    mask = torch.tensor([[True, False, True], [False, True, False]])
    scores = np.where(mask.numpy(), (queries @ keys.mT).numpy() / 2, -np.inf)

    mixed = attend(queries, keys, values, mask)

    np.testing.assert_allclose(mixed.numpy(), softmax(scores) @ values.numpy(), atol=EXACT)
    assert torch.equal(mixed[0, 0, 1], values[0, 0, 1])  # one key only: its value, untouched


def test_causal_attention_sees_itself_and_what_is_left_of_it():
    mask = causal_mask(3, 3, torch.device("cpu"))
    assert mask.tolist() == [[True, False, False], [True, True, False], [True, True, True]]
    queries, keys, values = random(2, 2, 5, 4), random(2, 2, 5, 4, seed=1), random(2, 2, 5, 4, seed=2)
    masked = attend(queries, keys, values, causal_mask(5, 5, torch.device("cpu")))
    torch.testing.assert_close(attend(queries, keys, values, causal=True), masked, atol=EXACT, rtol=0)


def test_heads_are_split_and_joined_in_the_papers_order():
    x = torch.arange(2 * 3 * 8).view(2, 3, 8)
    heads = split_heads(x, 4)  # (B, H, N, E)
    assert heads.shape == (2, 4, 3, 2)
    assert torch.equal(heads[1, 2, 0], x[1, 0, 4:6])  # the third head has the third part of the width
    assert torch.equal(join_heads(heads), x)


@given(st.integers(1, 6), st.integers(1, 6), st.booleans(), st.booleans(), st.integers(0, 10**6))
def test_weights_are_what_attend_uses(queries_count, keys_count, masked, causal, seed):
    queries, keys = random(2, 2, queries_count, 4, seed=seed), random(2, 2, keys_count, 4, seed=seed + 1)
    values = random(2, 2, keys_count, 3, seed=seed + 2)
    mask = random(2, 1, 1, keys_count, seed=seed + 3) > 0 if masked else None
    allowed = torch.ones(queries_count, keys_count, dtype=torch.bool) if mask is None else mask
    if causal:
        allowed = allowed & causal_mask(queries_count, keys_count, queries.device)

    weights = attention_weights(queries, keys, mask, causal)

    torch.testing.assert_close(weights @ values, attend(queries, keys, values, allowed), atol=EXACT, rtol=0)
    assert not weights[~allowed.expand_as(weights)].any()


# ---- a query that may look at nothing --------------------------------------------------------------------------------


@pytest.mark.parametrize("learning", [False, True])
@pytest.mark.parametrize("more_axes", [(), (3,)], ids=["4-D", "5-D"])
@pytest.mark.parametrize(("d_k", "d_v"), [(4, 4), (64, 64), (4, 8)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_fully_masked_row_gives_zeros_and_finite_gradients(learning, more_axes, d_k, d_v, dtype):
    sizes = {"queries": (5, d_k), "keys": (6, d_k), "values": (6, d_v)}
    queries, keys, values = (
        random(2, 2, *more_axes, *size, dtype=dtype).requires_grad_(learning) for size in sizes.values()
    )
    mask = torch.ones(2, *(1 for _ in more_axes), 1, 5, 6, dtype=torch.bool)
    mask[0] = False  # a sentence that is padding only
    mask[1, ..., 2, :] = False  # one query

    mixed = attend(queries, keys, values, mask)

    assert not mixed[0].any()
    assert not mixed[1, ..., 2, :].any()
    assert mixed[1, ..., 3, :].isfinite().all()
    if learning:
        mixed.float().square().sum().backward()
        for x in (queries, keys, values):
            assert x.grad.isfinite().all()
            assert not x.grad[0].any()


def test_weights_of_a_fully_masked_row_are_zeros():
    weights = attention_weights(random(1, 1, 2, 4), random(1, 1, 3, 4), torch.zeros(1, 1, 1, 3, dtype=torch.bool))
    assert torch.equal(weights, torch.zeros_like(weights))


@pytest.mark.parametrize("neighbours", [None, 4])
def test_a_source_of_padding_only_gives_numbers_and_gradients(neighbours):
    attention = SelfAttention(8, 2, 4, 4, bias=False, neighbours=neighbours)
    x = random(2, 9, 8, dtype=torch.float32).requires_grad_()
    mask = torch.ones(2, 1, 1, 9, dtype=torch.bool)
    mask[1] = False

    out = attention(x, mask)
    out.sum().backward()

    assert not out[1].any()
    assert x.grad.isfinite().all()
    assert all(weight.grad.isfinite().all() for weight in attention.parameters())


# ---- modules ---------------------------------------------------------------------------------------------------------


def test_self_attention_is_multi_head_attention_written_out():
    attention = SelfAttention(d_model=6, heads=2, d_k=3, d_v=5, bias=True).double()
    x = random(2, 4, 6)
    w = attention.query_key_value.weight.detach().numpy()
    b = random(w.shape[0], seed=3)
    attention.query_key_value.bias.data.copy_(b)
    w_q, w_k, w_v = np.split(w, [6, 12])
    b_q, b_k, b_v = np.split(b.numpy(), [6, 12])
    heads = []
    for i in range(2):
        keys_part, values_part = slice(3 * i, 3 * i + 3), slice(5 * i, 5 * i + 5)
        q = x.numpy() @ w_q[keys_part].T + b_q[keys_part]
        k = x.numpy() @ w_k[keys_part].T + b_k[keys_part]
        v = x.numpy() @ w_v[values_part].T + b_v[values_part]
        heads.append(softmax(q @ k.transpose(0, 2, 1) / np.sqrt(3)) @ v)
    expected = np.concatenate(heads, axis=-1) @ attention.output.weight.detach().numpy().T

    np.testing.assert_allclose(attention(x).detach().numpy(), expected, atol=EXACT)


def test_cross_attention_is_multi_head_attention_written_out():
    attention = CrossAttention(d_model=6, heads=2, d_k=3, d_v=5, bias=False).double()
    x, memory = random(2, 4, 6), random(2, 7, 6, seed=1)
    mask = torch.ones(2, 1, 1, 7, dtype=torch.bool)
    mask[0, ..., 5:] = False
    queries = split_heads(x @ attention.query.weight.T, 2)
    keys = split_heads(memory @ attention.key_value.weight[:6].T, 2)
    values = split_heads(memory @ attention.key_value.weight[6:].T, 2)
    expected = attend(queries, keys, values, mask).transpose(1, 2).reshape(2, 4, 10) @ attention.output.weight.T

    out = attention(x, attention.project_memory(memory), mask)

    assert out.shape == (2, 4, 6)
    torch.testing.assert_close(out, expected, atol=EXACT, rtol=0)


def test_attention_has_no_biases_unless_asked():
    def names(module):
        return {name.rpartition(".")[2] for name, _ in module.named_parameters()}

    assert names(SelfAttention(8, 2, 4, 4, bias=False)) == names(CrossAttention(8, 2, 4, 4, bias=False)) == {"weight"}
    assert names(SelfAttention(8, 2, 4, 4, bias=True)) == names(CrossAttention(8, 2, 4, 4, bias=True))
    assert "bias" in names(SelfAttention(8, 2, 4, 4, bias=True))


@given(
    neighbours=st.none() | st.integers(1, 9),
    causal=st.booleans(),
    masked=st.booleans(),
    length=st.integers(1, 12),
    seed=st.integers(0, 10**6),
)
def test_a_modules_weights_are_what_its_forward_uses(neighbours, causal, masked, length, seed):
    attention = SelfAttention(8, 2, 4, 3, bias=False, neighbours=neighbours).double()
    x = random(2, length, 8, seed=seed)
    mask = random(2, 1, 1, length, seed=seed + 1) > -0.5 if masked else None
    *_, values = attention.project(x)

    mixed = attention.weights(x, mask, causal) @ values

    torch.testing.assert_close(attention.output(join_heads(mixed)), attention(x, mask, causal), atol=EXACT, rtol=0)


def test_the_weights_of_cross_attention_are_what_its_forward_uses():
    attention = CrossAttention(8, 2, 4, 3, bias=True).double()
    memory = attention.project_memory(random(2, 5, 8, seed=1))
    x, mask = random(2, 3, 8), torch.tensor([[True] * 5, [True, True, False, False, False]])[:, None, None]
    mixed = attention.weights(x, memory, mask) @ memory.values
    torch.testing.assert_close(attention.output(join_heads(mixed)), attention(x, memory, mask), atol=EXACT, rtol=0)


# ---- restricted to a neighbourhood -----------------------------------------------------------------------------------


@given(
    length=st.integers(1, 40),
    reach=st.integers(0, 12),
    causal=st.booleans(),
    masked=st.booleans(),
    widths=st.sampled_from([(4, 4), (4, 7)]),
    seed=st.integers(0, 10**6),
)
def test_attending_nearby_equals_full_attention_with_a_band_mask(length, reach, causal, masked, widths, seed):
    d_k, d_v = widths
    queries, keys = random(2, 2, length, d_k, seed=seed), random(2, 2, length, d_k, seed=seed + 1)
    values = random(2, 2, length, d_v, seed=seed + 2)
    mask = random(2, 1, 1, length, seed=seed + 3) > -0.5 if masked else None
    position = torch.arange(length)
    band = (position[:, None] - position).abs() <= reach
    if causal:
        band = band & causal_mask(length, length, queries.device)
    if mask is not None:
        band = band & mask

    nearby = attend_nearby(queries, keys, values, reach, mask, causal)

    torch.testing.assert_close(nearby, attend(queries, keys, values, band), atol=EXACT, rtol=0)


def test_gradients_of_attending_nearby_are_those_of_the_band():
    inputs = [random(1, 1, 7, 3, seed=i).requires_grad_() for i in range(3)]
    mask = torch.tensor([True, True, False, False, False, True, True])[None, None, None]
    assert torch.autograd.gradcheck(lambda q, k, v: attend_nearby(q, k, v, 1, mask), inputs)


def test_the_cost_of_attending_nearby_grows_with_length_times_neighbourhood():
    def work(length, neighbours):
        attention = SelfAttention(8, 2, 4, 4, bias=False, neighbours=neighbours)
        x = random(1, length, 8, dtype=torch.float32)
        with torch.no_grad(), FlopCounterMode(display=False) as flops, Allocations() as allocations:
            attention(x, causal=True)
        projections = 2 * length * 8 * (24 + 8)
        return flops.get_total_flops() - projections, allocations.largest

    flops, largest = work(512, neighbours=16)
    assert flops > 0
    assert work(1024, neighbours=16) == (2 * flops, 2 * largest)  # n
    assert work(512, neighbours=32)[0] == 2 * flops  # r
    assert largest < 512 * 512  # no n × n tensor
    full = work(512, neighbours=None)[0]
    assert work(1024, neighbours=None)[0] == 4 * full  # n²: what the restriction saves


def test_what_a_step_remembers_does_not_grow_beyond_the_neighbourhood_and_some_room():
    attention = SelfAttention(8, 2, 4, 4, bias=False, neighbours=6)
    past, rooms = None, set()
    for _ in range(100):
        _, past = attention.step(random(1, 1, 8, dtype=torch.float32), past)
        rooms.add(past.buffers.keys.size(2))
    assert max(rooms) == 6 // 2 + 1 + 16


@pytest.mark.parametrize("neighbours", [None, 1, 2, 5, 6, 100])
def test_steps_equal_all_positions_at_once(neighbours):
    attention = SelfAttention(8, 2, 4, 6, bias=True, neighbours=neighbours).double()
    x = random(3, 11, 8)
    past: Past | None = None
    steps = []
    for position in range(11):
        out, past = attention.step(x[:, position : position + 1], past)
        steps.append(out)
    torch.testing.assert_close(torch.cat(steps, dim=1), attention(x, causal=True), atol=EXACT, rtol=0)


def test_a_neighbourhood_wider_than_the_sentence_is_full_attention():
    near, full = (SelfAttention(8, 2, 4, 4, bias=False, neighbours=n) for n in (64, None))
    near.load_state_dict(full.state_dict())
    x = random(2, 10, 8, dtype=torch.float32)
    torch.testing.assert_close(near(x, causal=True), full(x, causal=True), atol=CLOSE, rtol=0)


# ---- dropout on the weights, which is not the paper's ----------------------------------------------------------------


@pytest.mark.parametrize("causal", [False, True])
def test_dropout_falls_on_the_weights_after_the_softmax(causal):
    queries, keys = random(2, 3, 5, 4), random(2, 3, 5, 4, seed=1)
    values = torch.eye(5, dtype=torch.float64).expand(2, 3, 5, 5)  # the weights themselves come out
    torch.manual_seed(1)
    dropped = attend(queries, keys, values, causal=causal, dropout=0.4)
    whole = attention_weights(queries, keys, causal=causal)
    kept = dropped != 0
    assert 0.3 < kept[whole > 0].double().mean() < 0.9
    torch.testing.assert_close(dropped, whole * kept / (1 - 0.4), atol=EXACT, rtol=EXACT)


def test_dropped_weights_have_the_gradients_of_the_formula():
    queries, keys, values = (random(1, 2, 4, 3, seed=seed).requires_grad_() for seed in range(3))
    mask = torch.tensor([True, True, False, True]).view(1, 1, 1, 4)

    def mixed(queries, keys, values):
        torch.manual_seed(1)
        return attend(queries, keys, values, mask, dropout=0.4)

    assert torch.autograd.gradcheck(mixed, (queries, keys, values))


def test_a_query_that_may_look_at_nothing_gets_zeros_and_no_gradient_that_is_not_a_number():
    queries, keys, values = (random(1, 1, 2, 3, seed=seed).requires_grad_() for seed in range(3))
    mask = torch.tensor([[False, False], [True, True]])
    mixed = attend(queries, keys, values, mask, dropout=0.3)
    mixed.sum().backward()
    assert not mixed[0, 0, 0].any()
    assert all(bool(part.grad.isfinite().all()) for part in (queries, keys, values))


@pytest.mark.parametrize("neighbours", [None, 2])
def test_attention_drops_in_training_only_and_on_average_changes_nothing(neighbours):
    torch.manual_seed(1)
    attention = SelfAttention(8, 2, 4, 4, bias=False, neighbours=neighbours, dropout=0.3).double()
    x = random(1, 6, 8)
    usual = attention.eval()(x)
    assert torch.equal(usual, attention(x))
    with torch.no_grad():
        many = attention.train()(x.expand(20_000, -1, -1)).mean(dim=0)
    assert not torch.equal(attention(x), usual)
    # A mean of 20,000 draws with a standard deviation below 1.
    torch.testing.assert_close(many, usual[0].detach(), atol=0.03, rtol=0)


def test_the_decoder_drops_where_it_looks_at_the_source_as_well():
    torch.manual_seed(1)
    attention = CrossAttention(8, 2, 4, 4, bias=False, dropout=0.3).double()
    x, memory = random(3, 4, 8), attention.project_memory(random(3, 5, 8, seed=1))
    assert not torch.equal(attention.train()(x, memory), attention.eval()(x, memory))
