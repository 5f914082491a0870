"""Export to ONNX and to torch.export's own format; every shared weight is stored once."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

INPUT = "image"


class Features(nn.Module):
    """A backbone as a module from an image (B, 3, H, W) to a tuple of maps (B, C, H', W').

    Args:
        model: SRViT, which gives its last map after the final norm, or a module that gives a dict
            of maps, as Detectron2's backbones and pyramids.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model: Any = model

    def forward(self, image: Tensor) -> tuple[Tensor, ...]:
        """Maps in the order of the model."""
        if hasattr(self.model, "output_shape"):
            return tuple(self.model(image).values())
        return tuple(
            self.model.forward_intermediates(
                image, indices=[-1], norm=True, intermediates_only=True
            )
        )


def export_program(
    model: nn.Module, shape: tuple[int, ...], dynamic: bool = False
) -> torch.export.ExportedProgram:
    """torch.export of a model in evaluation mode.

    Args:
        model: Module with one image as input.
        shape: Input shape (B, 3, H, W).
        dynamic: Leave batch, height and width open.
    """
    free = torch.export.Dim.DYNAMIC
    # A size of 1 would be taken for a constant.
    example = torch.zeros(max(2, shape[0]) if dynamic else shape[0], *shape[1:])
    sizes = ({0: free, 2: free, 3: free},) if dynamic else None
    with torch.no_grad():
        return torch.export.export(model.eval(), (example,), dynamic_shapes=sizes)


def export_onnx(
    model: nn.Module, path: str | Path, shape: tuple[int, ...], dynamic: bool = False
) -> None:
    """Write a model as ONNX; input "image", outputs in the model's order.

    Args: as in ``export_program``, and the file to write.
    """
    program = torch.onnx.export(
        export_program(model, shape, dynamic), (), dynamo=True, input_names=[INPUT], verbose=False
    )
    if program is None:  # with dynamo=True there always is one
        raise RuntimeError("torch.onnx.export gave no program")
    program.save(str(path), external_data=False)
