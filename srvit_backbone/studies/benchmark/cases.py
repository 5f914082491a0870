"""The models and passes that are measured."""

from collections.abc import Callable, Iterable

import timm
import torch
from torch import Tensor, nn

import srvit_backbone  # noqa: F401  registers the variants


def plain_stack(size: int, depth: int, linear_after: Iterable[int]) -> nn.Module:
    """DeiT-S of timm with ``depth`` blocks, and a linear map behind some of them."""
    model = timm.create_model("deit_small_patch16_224", img_size=size, depth=depth, num_classes=0)
    layers: list[nn.Module] = []
    for index, block in enumerate(model.blocks):
        layers.append(block)
        if index in linear_after:
            layers.append(nn.Linear(model.embed_dim, model.embed_dim))
    model.blocks = nn.Sequential(*layers)
    return model


def step_ends(unit_depths: Iterable[int], recursion_depth: int) -> list[int]:
    """Indices, in the unrolled stack, of the blocks that a step transform follows."""
    ends, index = [], 0
    for depth in unit_depths:
        for step in range(recursion_depth):
            index += depth
            if step + 1 < recursion_depth:
                ends.append(index)
    return ends


def detectron2_vit(depth: int, windowed: bool) -> nn.Module:
    """Detectron2's ViT of SR-ViT-S's width at 1024 pixels.

    Windowed as ViTDet's configs have it: windows of 14 tokens, four global blocks at equal
    distances, relative positions. Global: no relative positions, which ours does not have either.
    """
    from detectron2.modeling import ViT

    global_blocks = {(index + 1) * depth // 4 - 1 for index in range(4)}
    return ViT(
        img_size=1024,
        embed_dim=384,
        depth=depth,
        num_heads=6,
        use_rel_pos=windowed,
        window_size=14 if windowed else 0,
        window_block_indexes=[i for i in range(depth) if windowed and i not in global_blocks],
    )


def our_backbone(window_size: int) -> nn.Module:
    """SR-ViT-S, T = 3, as Detectron2 gets it."""
    from srvit_backbone.detectron2.backbone import SRViTBackbone

    return SRViTBackbone("srvit_s_t3", img_size=1024, window_size=window_size)


def detectron2_case(name: str) -> nn.Module:
    """One of the four backbones that suite ``detectron2`` compares."""
    cases = {
        "ours": lambda: our_backbone(0),
        "ours, windowed": lambda: our_backbone(16),
        "Detectron2": lambda: detectron2_vit(32, False),
        "Detectron2, windowed": lambda: detectron2_vit(32, True),
    }
    return cases[name]().eval()


@torch.inference_mode()
def forward_pass(name: str, device: str) -> None:
    """Build one of the backbones and run it once."""
    detectron2_case(name).to(device)(torch.randn(1, 3, 1024, 1024, device=device))


def training_step(name: str, checkpointing: bool | str, device: str) -> None:
    """Forward, backward and AdamW's first step of a backbone on one image of 1024 pixels."""
    model = timm.create_model(name, img_size=1024, num_classes=0, global_pool="avg").to(device)
    model.set_grad_checkpointing(checkpointing)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(1, 3, 1024, 1024, device=device)).square().mean().backward()
    optimizer.step()


def infer(model: Callable[[Tensor], object], image: Tensor) -> None:
    """A forward pass without what gradients need."""
    with torch.inference_mode():
        model(image)
