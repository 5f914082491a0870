import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from srvit_backbone import RecursiveUnit, SoftRouter

DIM, STEPS = 16, 3


def make_blocks(count):
    return [nn.Sequential(nn.Linear(DIM, DIM), nn.GELU()) for _ in range(count)]


def make_unit(blocks=2, **settings):
    unit = RecursiveUnit(make_blocks(blocks), DIM, STEPS, **settings)
    for norm in (m for m in unit.modules() if isinstance(m, nn.LayerNorm)):
        nn.init.normal_(norm.weight)  # so that a norm left out or shared wrongly shows
        nn.init.normal_(norm.bias)
    return unit


def plain_loop(unit, x, blocks_of_step):
    """Section 3.2 written out: all steps stacked, mixed at the end."""
    weights = unit.router(x)
    steps = []
    for step in range(STEPS):
        if step:
            x = x + unit.step_transforms[step - 1].proj(x)
        for block in blocks_of_step(step):
            x = block(x)
        steps.append(unit.norm(x))
    return (torch.stack(steps, dim=-1) * weights[:, :, None, :]).sum(-1)


def test_unit_equals_plain_loop_in_output_and_gradient():
    unit, x = make_unit(), torch.randn(2, 5, DIM)
    expected = plain_loop(unit, x, lambda step: unit.blocks)
    torch.testing.assert_close(unit(x), expected)
    parameters = list(unit.parameters())
    torch.testing.assert_close(
        torch.autograd.grad(unit(x).square().sum(), parameters),
        torch.autograd.grad(expected.square().sum(), parameters),
    )


def test_unshared_blocks_use_one_set_a_step():
    unit, x = make_unit(blocks=2 * STEPS, share_blocks=False), torch.randn(2, 5, DIM)
    expected = plain_loop(unit, x, lambda step: unit.blocks[2 * step : 2 * step + 2])
    torch.testing.assert_close(unit(x), expected)


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("steps", [1, 2])
def test_fewer_steps_mix_the_first_ones_with_renormalised_weights(steps, hard):
    unit, x = make_unit(aggregation="hard" if hard else "soft"), torch.randn(2, 5, DIM)
    with torch.no_grad():
        soft = unit.router.proj(unit.router.norm(x)).softmax(-1)[..., :steps]
    shares = soft / soft.sum(-1, keepdim=True)
    if hard:
        shares = (soft == soft.max(-1, keepdim=True).values).float()
    expected, step_output = torch.zeros_like(x), x
    for step in range(steps):
        if step:
            step_output = unit.step_transforms[step - 1](step_output)
        for block in unit.blocks:
            step_output = block(step_output)
        expected = expected + shares[..., step : step + 1] * unit.norm(step_output)
    unit.steps = steps
    torch.testing.assert_close(unit(x), expected)


def test_last_is_naive_recursion():
    unit, x = make_unit(aggregation="last", step_transform=False), torch.randn(2, 5, DIM)
    expected = x
    for _ in range(STEPS):
        expected = unit.blocks[1](unit.blocks[0](expected))
    assert torch.equal(unit(x), expected)
    assert {name.split(".")[0] for name, _ in unit.named_parameters()} == {"blocks"}


def test_hard_takes_each_token_from_one_step():
    unit, x = make_unit(aggregation="hard"), torch.randn(2, 50, DIM)
    torch.nn.init.normal_(unit.router.proj.weight)  # scores far enough apart for every step
    soft_scores = unit.router.proj(unit.router.norm(x))
    chosen = soft_scores.argmax(-1)
    steps, state = [], x
    for step in range(STEPS):
        state = unit.run_step(state, step)
        steps.append(unit.norm(state))
    expected = torch.stack(steps, -1).gather(-1, chosen[:, :, None, None].expand(-1, -1, DIM, 1))
    assert len(chosen.unique()) == STEPS
    torch.testing.assert_close(unit(x), expected[..., 0])
    weights = unit.router(x)
    assert set(weights.unique().tolist()) == {0.0, 1.0}
    unit(x).sum().backward()
    assert unit.router.proj.weight.grad.abs().sum() > 0  # straight through the softmax


def test_router_weights_are_a_distribution():
    weights = SoftRouter(DIM, STEPS)(torch.randn(2, 7, DIM) * 10)
    assert weights.shape == (2, 7, STEPS)
    assert (weights >= 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 7))


def test_added_parameters_are_those_of_the_tables():
    blocks = sum(p.numel() for b in make_blocks(2) for p in b.parameters())
    total = sum(p.numel() for p in make_unit().parameters())
    assert total - blocks == STEPS * (DIM + 1) + 4 * DIM + (STEPS - 1) * (DIM * DIM + DIM)


def test_each_weight_is_stored_once():
    state = make_unit().state_dict()
    pointers = [value.data_ptr() for value in state.values()]
    assert len(set(pointers)) == len(pointers)


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"recursion_depth": 1}, "recursion_depth"),
        ({"aggregation": "mean"}, "aggregation"),
        ({"blocks": []}, "blocks"),
        ({"share_blocks": False}, "steps"),
    ],
)
def test_bad_arguments(settings, word):
    arguments = {"blocks": make_blocks(2), "dim": DIM, "recursion_depth": STEPS, **settings}
    with pytest.raises(ValueError, match=word):
        RecursiveUnit(**arguments)


class CountAttention(TorchDispatchMode):
    """Counts fused attention calls."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = str(function)
        self.count += "scaled_dot_product" in name and "backward" not in name
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("window_size", [0, 2])
def test_checkpointing_policies_recompute_what_they_say_and_change_nothing(tiny, window_size):
    model = tiny(recursion_depth=2, window_size=window_size)
    image = torch.randn(2, 3, 64, 64)
    gradients, counts = {}, {}
    for policy in (False, True, "keep_attention"):
        model.set_grad_checkpointing(policy)
        model.zero_grad()
        with CountAttention() as counter:
            model(image).square().sum().backward()
        counts[policy] = counter.count
        gradients[policy] = [p.grad.clone() for p in model.parameters()]
    depth = model.effective_depth
    assert counts == {False: depth, True: 2 * depth, "keep_attention": depth}
    for policy in (True, "keep_attention"):
        for ours, reference in zip(gradients[policy], gradients[False], strict=True):
            torch.testing.assert_close(ours, reference, atol=1e-6, rtol=1e-5)


def test_keeping_attention_works_under_autocast(tiny):
    """Cast weights of a block that ran before are cached in the forward pass only."""
    model = tiny(recursion_depth=3)
    image = torch.randn(2, 3, 64, 64)
    gradients = []
    for policy in (False, "keep_attention"):
        model.set_grad_checkpointing(policy)
        model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(image).square().sum()
        loss.backward()
        gradients.append([p.grad.clone() for p in model.parameters()])
    for ours, reference in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, reference, atol=0.05, rtol=0.05)


def test_an_unknown_policy_is_refused(tiny):
    with pytest.raises(ValueError, match="keep_attention"):
        tiny().set_grad_checkpointing("attention")
