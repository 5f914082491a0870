"""Window attention: global attention restricted to windows and the class token."""

import pytest
import torch

from srvit_backbone import SRViT
from srvit_backbone.windows import Windows

SETTINGS = {
    "img_size": 96,
    "embed_dim": 24,
    "num_heads": 2,
    "unit_depths": (2, 1),
    "num_classes": 5,
    "init": "fan_in",
}


def pair(window_size, **settings):
    """A model with global attention and one with windows, of equal weights."""
    plain = SRViT(**SETTINGS, **settings).double().eval()
    windowed = SRViT(**SETTINGS, **settings, window_size=window_size).double().eval()
    windowed.load_state_dict(plain.state_dict())
    return plain, windowed


@pytest.mark.parametrize("grid", [(6, 6), (5, 7), (2, 9), (3, 3)])
def test_windows_put_every_token_back(grid):
    tokens = torch.randn(2, 2 + grid[0] * grid[1], 4)
    windows = Windows(3, grid, 2)
    pieces, _ = windows.split(tokens)
    assert pieces.shape[0] == 2 * -(-grid[0] // 3) * -(-grid[1] // 3)
    torch.testing.assert_close(windows.join(pieces), tokens)


@pytest.mark.parametrize("recursion_depth", [1, 3])
@pytest.mark.parametrize("size", [(96, 96), (80, 112)])
def test_a_window_over_the_whole_grid_is_global_attention(recursion_depth, size):
    plain, windowed = pair(99, recursion_depth=recursion_depth)
    image = torch.randn(2, 3, *size).double()
    torch.testing.assert_close(windowed(image), plain(image), atol=1e-12, rtol=0)


@pytest.mark.parametrize("grid", [(4, 6), (5, 7)])
def test_a_block_on_windows_equals_a_loop_over_them(grid):
    """Also where windows reach over the border: their hidden cells do not matter."""
    size, (height, width) = 3, grid
    block = SRViT(**SETTINGS).double().eval().blocks[0]
    tokens = torch.randn(1, 1 + height * width, 24).double()
    windows = Windows(size, grid, 1)
    pieces, mask = windows.split(tokens)
    result = windows.join(block(pieces, attn_mask=mask))

    index = torch.arange(height * width).reshape(height, width)
    expected, prefixes = torch.zeros_like(tokens), []
    for top in range(0, height, size):
        for left in range(0, width, size):
            members = index[top : top + size, left : left + size].flatten() + 1
            out = block(torch.cat([tokens[:, :1], tokens[:, members]], dim=1))
            expected[:, members] = out[:, 1:]
            prefixes.append(out[:, :1])
    expected[:, :1] = torch.stack(prefixes).mean(0)
    torch.testing.assert_close(result, expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("recursion_depth", [1, 2])
def test_global_are_the_ends_of_units_and_the_last_block(recursion_depth, monkeypatch):
    _, model = pair(2, recursion_depth=recursion_depth)
    calls = []
    split = Windows.split
    monkeypatch.setattr(Windows, "split", lambda self, x: calls.append(1) or split(self, x))
    model(torch.zeros(1, 3, 96, 96).double())
    # Of 5 (T = 1) or 8 applications, the ends of the two units and the last block are global.
    assert len(calls) == model.effective_depth - 3


def test_every_parameter_learns_and_checkpointing_changes_nothing():
    _, model = pair(4, recursion_depth=2)
    image = torch.randn(2, 3, 90, 100).double()
    gradients = []
    for enable in (False, True):
        model.zero_grad()
        model.set_grad_checkpointing(enable)
        model(image).square().sum().backward()
        gradients.append({name: p.grad.clone() for name, p in model.named_parameters()})
    assert all(gradient.abs().sum() > 0 for gradient in gradients[0].values())
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], gradient)


def test_a_negative_window_is_refused():
    with pytest.raises(ValueError, match="window_size=-1"):
        SRViT(**SETTINGS, window_size=-1)
