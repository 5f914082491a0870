"""Layer-wise learning-rate decay in MMEngine."""

from typing import Any

from mmengine.optim import DefaultOptimWrapperConstructor
from mmengine.registry import OPTIM_WRAPPER_CONSTRUCTORS
from torch import nn

from srvit_backbone.layer_depth import layer_lr_scales
from srvit_backbone.srvit import SRViT


@OPTIM_WRAPPER_CONSTRUCTORS.register_module()
class SRViTLayerDecayOptimWrapperConstructor(DefaultOptimWrapperConstructor):
    """Layer-wise learning-rate decay over SR-ViT's stored blocks, the rule of ``layer_depth``.

    A shared block is one layer however often it runs. Norms, biases, position embedding and tokens
    are not weight-decayed. ``paramwise_cfg`` may hold

    * ``decay_rate``: factor per layer, default 1;
    * ``custom_keys``: as MMEngine's; the longest key in a name wins, its ``lr_mult`` comes on top
      of the layer's factor, its ``decay_mult`` replaces the rule above.

    Raises:
        ValueError: ``paramwise_cfg`` holds anything else.
    """

    KEYS = ("decay_rate", "custom_keys")
    paramwise_cfg: dict[str, Any]

    def _validate_cfg(self) -> None:
        super()._validate_cfg()
        unknown = sorted(set(self.paramwise_cfg) - set(self.KEYS))
        if unknown:
            raise ValueError(f"paramwise_cfg has {unknown}; known are {list(self.KEYS)}")
        # MMEngine asks for parameter groups only where there are options.
        self.paramwise_cfg = {"decay_rate": 1.0, **self.paramwise_cfg}

    def add_params(self, params: list[dict], module: nn.Module, prefix: str = "", **_: Any) -> None:
        """Append parameter groups for a whole model, one for each pair of rates."""
        scales = layer_lr_scales(module, self.paramwise_cfg["decay_rate"])
        custom_keys = self.paramwise_cfg.get("custom_keys", {})
        embeddings = {
            id(parameter)
            for backbone in module.modules()
            if isinstance(backbone, SRViT)
            for name, parameter in backbone.named_parameters()
            if name in backbone.no_weight_decay()
        }
        groups: dict[tuple[float, float | None], dict] = {}
        for name, parameter in module.named_parameters():
            if not parameter.requires_grad:
                continue
            key = max((k for k in custom_keys if k in name), key=len, default=None)
            custom = custom_keys[key] if key else {}
            decayed = parameter.ndim > 1 and id(parameter) not in embeddings
            lr = self.base_lr * scales[name] * custom.get("lr_mult", 1.0)
            decay = self.base_wd and self.base_wd * custom.get("decay_mult", float(decayed))
            group = groups.setdefault((lr, decay), {"params": [], "lr": lr})
            if decay is not None:
                group["weight_decay"] = decay
            group["params"].append(parameter)
        params.extend(groups.values())
