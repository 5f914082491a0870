"""The model variants: one table of what differs from ``SRViT``'s defaults, and timm's entry points.

The defaults of SRViT are SR-ViT-S with T = 3. Tables 2 and 3 of the paper; ``srvit_deit_*`` are its
DeiT baselines (T = 1), and the nano models are ours, for demos and tests.
"""

from typing import Any

from timm.data import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD
from timm.models import build_model_with_cfg, generate_default_cfgs, register_model
from torch import nn

from srvit_backbone.checkpoint import convert
from srvit_backbone.srvit import SRViT

_TINY: dict[str, Any] = {"unit_depths": (3, 2, 1)}
_BASE: dict[str, Any] = {"embed_dim": 512, "num_heads": 8}
_NANO: dict[str, Any] = {"embed_dim": 96, "num_heads": 3, "unit_depths": (2, 1), "init": "fan_in"}

VARIANTS: dict[str, dict[str, Any]] = {
    "srvit_t_t2": {**_TINY, "recursion_depth": 2},
    "srvit_t_t3": {**_TINY, "recursion_depth": 3},
    "srvit_s_t2": {"recursion_depth": 2},
    "srvit_s_t3": {"recursion_depth": 3},
    "srvit_s_t4": {"recursion_depth": 4},
    "srvit_b_t2": {**_BASE, "recursion_depth": 2},
    "srvit_b_t3": {**_BASE, "recursion_depth": 3},
    "srvit_deit_s": {"recursion_depth": 1},
    "srvit_deit_b": {"embed_dim": 768, "num_heads": 12, "recursion_depth": 1},
    "srvit_nano_t2": {**_NANO, "recursion_depth": 2},
    "srvit_nano_t3": {**_NANO, "recursion_depth": 3},
}

PRETRAINED_CFG = {
    "url": "",
    "num_classes": 1000,
    "input_size": (3, 224, 224),
    "pool_size": None,
    "crop_pct": 0.875,
    "interpolation": "bicubic",
    "fixed_input_size": False,
    "mean": IMAGENET_DEFAULT_MEAN,
    "std": IMAGENET_DEFAULT_STD,
    "first_conv": "patch_embed.proj",
    "classifier": "head",
    "license": "apache-2.0",
}

default_cfgs = generate_default_cfgs({name: dict(PRETRAINED_CFG) for name in VARIANTS})


def variant_settings(variant: str, **overrides: Any) -> dict[str, Any]:
    """Arguments of SRViT for a variant.

    Args:
        variant: A name of VARIANTS.
        **overrides: Arguments that win over the variant's.

    Raises:
        ValueError: There is no such variant.
    """
    if variant not in VARIANTS:
        raise ValueError(f"unknown variant {variant!r}: choose one of {', '.join(VARIANTS)}")
    return {**VARIANTS[variant], **overrides}


def _create(variant: str, pretrained: bool = False, **kwargs: Any) -> nn.Module:
    if kwargs.get("distilled"):
        kwargs.setdefault("pretrained_cfg_overlay", {"classifier": ("head", "head_dist")})
    return build_model_with_cfg(
        SRViT,
        variant,
        pretrained,
        pretrained_filter_fn=lambda state, model: convert(state, model).state,
        # None: all feature points, so that no count is written twice.
        feature_cfg={"out_indices": kwargs.pop("out_indices", None), "feature_cls": "getter"},
        **variant_settings(variant, **kwargs),
    )


def _register(variant: str) -> None:
    def entry_point(pretrained: bool = False, **kwargs: Any) -> nn.Module:
        return _create(variant, pretrained, **kwargs)

    entry_point.__name__ = entry_point.__qualname__ = variant
    entry_point.__doc__ = f"SR-ViT variant {variant}, see VARIANTS."
    register_model(entry_point)


for _name in VARIANTS:
    _register(_name)
