"""The compiled parts of training against torch: values and gradients."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from regard.model.attention import attention_weights
from regard.model.dropout import dropout_mask
from regard.model.layers import Residual
from regard.native import functions
from regard.native.library import find_library, library_of

FOUND = find_library()
KINDS = [] if FOUND is None else ["avx2"] if FOUND.kind == "avx2" else ["avx512", "avx2"]
pytestmark = pytest.mark.skipif(FOUND is None, reason="no compiled library: no C compiler, or another processor")
each_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def use(monkeypatch):
    """A function that lets the compiled parts be those of a kind of processor, or none for None."""

    def choose(kind):
        monkeypatch.setattr(functions, "find_library", lambda: kind and library_of(kind))

    return choose


def make_heads(batch, heads, length, width, seed):
    """Return (B, H, N, E) as the model has it: a part of wider rows, and where gradients arrive."""
    wide = torch.randn(batch, length, heads * width + 16, generator=torch.Generator().manual_seed(seed))
    rows = wide[:, :, : heads * width].requires_grad_()
    return rows, rows.view(batch, length, heads, width).transpose(1, 2)


@each_kind
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 1000),
    batch=st.integers(1, 3),
    heads=st.integers(1, 3),
    queries=st.integers(1, 40),
    keys=st.integers(1, 70),
    d_k=st.sampled_from([16, 32, 48]),
    d_v=st.sampled_from([16, 64]),
    masked=st.sampled_from(["nothing", "the end", "holes", "everything"]),
    causal=st.booleans(),
)
def test_attention_and_its_gradients_are_torch_s(kind, seed, batch, heads, queries, keys, d_k, d_v, masked, causal):
    keys = queries if causal else keys
    draw = torch.Generator().manual_seed(seed)
    mask = None
    if masked != "nothing":
        mask = torch.rand(batch, 1, 1, keys, generator=draw) < (0.6 if masked == "holes" else 2)
        if masked == "the end":
            mask = torch.arange(keys) < torch.randint(1, keys + 1, (batch, 1, 1, 1), generator=draw)
        mask[0] &= masked != "everything"
    inputs = [make_heads(batch, heads, *shape, seed) for shape in ((queries, d_k), (keys, d_k), (keys, d_v))]
    (q_rows, q), (k_rows, k), (v_rows, v) = inputs
    upstream = torch.randn(batch, heads, queries, d_v, generator=draw)
    right = attention_weights(q.double(), k.double(), mask, causal) @ v.double()
    expected = torch.autograd.grad((right * upstream).sum(), (q_rows, k_rows, v_rows))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(functions, "find_library", lambda: library_of(kind))
        assert functions.can_attend(q, k, v, mask)
        found = functions.attend(q, k, v, mask, causal)
        gradients = torch.autograd.grad((found * upstream).sum(), (q_rows, k_rows, v_rows))
    torch.testing.assert_close(found, right.float(), atol=2e-5, rtol=2e-5)
    for one, other in zip(gradients, expected, strict=True):
        torch.testing.assert_close(one, other, atol=5e-5, rtol=5e-5)


@each_kind
@pytest.mark.parametrize("probability", [0.0, 0.3])
@pytest.mark.parametrize("width", [16, 48, 128])
def test_the_end_of_a_residual_block_and_its_gradients_are_torch_s(kind, probability, width, use):
    block = Residual(width, probability, "post")
    torch.manual_seed(2)
    with torch.no_grad():
        block.layer_norm.weight.normal_()
        block.layer_norm.bias.normal_()
    x, change, upstream = (torch.randn(3, 7, width) for _ in range(3))
    wanted = (x.requires_grad_(), change.requires_grad_(), block.layer_norm.weight, block.layer_norm.bias)
    answers = []
    for choice in (None, kind):
        use(choice)
        torch.manual_seed(5)  # the same elements are dropped
        y = block.leave(x, change)
        answers.append([y, *torch.autograd.grad((y * upstream).sum(), wanted)])
    for one, other in zip(*answers, strict=True):
        torch.testing.assert_close(one, other, atol=3e-5, rtol=3e-5)
    torch.manual_seed(5)
    mask = dropout_mask(change.shape, probability) if probability else torch.ones_like(change)
    right = F.layer_norm(x + change * mask, (width,), block.layer_norm.weight, block.layer_norm.bias)
    torch.testing.assert_close(answers[1][0], right, atol=1e-5, rtol=1e-5)


@each_kind
def test_a_model_trains_as_without(kind, tiny_model, random_source, use):
    model = tiny_model(60, d_model=32, d_ff=48, heads=2, dropout=0.2).train()
    src, tgt = random_source([9, 4, 12], 60), random_source([7, 10, 3], 60, seed=1)
    answers = []
    for choice in (None, kind):
        use(choice)
        torch.manual_seed(3)
        model.zero_grad()
        model(src, tgt).square().sum().backward()
        answers.append([weight.grad for weight in model.parameters() if weight.grad is not None])
    assert len(answers[0]) == len(answers[1]) > 20
    for one, other in zip(*answers, strict=True):
        torch.testing.assert_close(one, other, atol=2e-4, rtol=2e-4)


def test_what_does_not_fit_is_left_to_torch(use):
    x = torch.randn(2, 2, 5, 16)
    assert functions.can_attend(x, x, x, None)
    assert not functions.can_attend(x.double(), x, x, None)
    assert not functions.can_attend(x[..., :10], x[..., :10], x, None)
    assert not functions.can_attend(x, x, x, torch.ones(2, 1, 5, 5, dtype=torch.bool))  # a mask for each query
    long = torch.randn(1, 1, functions._LONGEST + 1, 16)
    assert not functions.can_attend(long, long, long, None)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not functions.can_join(x, x)
    torch.set_num_threads(2)
    assert not functions.can_join(x, x)
    torch.set_num_threads(1)
    assert functions.can_join(x, x)
    use(None)
    assert not functions.can_join(x, x)


def test_nan_stays_nan():
    x = torch.randn(1, 2, 5, 16)
    broken = x.clone()
    broken[0, 0, 2, 3] = float("nan")
    assert functions.attend(broken, x, x, None, False)[0, 0, 2].isnan().all()
    assert functions.attend(x, broken, x, None, False)[0, 0].isnan().all()
    assert functions.join(broken, x, torch.ones(16), torch.zeros(16), 1e-5, None)[0, 0, 2].isnan().all()
