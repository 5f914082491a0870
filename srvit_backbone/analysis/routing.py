"""Pictures of the token-wise mixture weights (Fig. 4 of the paper)."""

import numpy as np
from matplotlib.colors import to_rgb

from srvit_backbone.analysis.figures import plt
from srvit_backbone.analysis.inputs import to_input
from srvit_backbone.errors import InputError
from srvit_backbone.srvit import SRViT

# One a step. Their lightness differs too, so that they are told apart in grey.
STEP_COLOURS = ("#0b2a6f", "#d1332e", "#5fbf5a", "#f7c948", "#b0e0e6", "#c49be0")
PANEL_INCHES = 3.2


def chosen_units(model: SRViT, unit: str) -> list[int]:
    """Indices of the units that "all", "last" or a number from 1 stands for.

    Raises:
        InputError: It is none of these, or the model has no router.
    """
    if model.recursion_depth == 1:
        raise InputError("a model of T = 1 has no units and no router: nothing to draw")
    units = len(model.unit_depths)
    if unit == "all":
        return list(range(units))
    numbers = {"last": units, **{str(number): number for number in range(1, units + 1)}}
    if unit not in numbers:
        raise InputError(f"--unit {unit}: must be 1 to {units}, last or all")
    return [numbers[unit] - 1]


def mixture_maps(model: SRViT, image: np.ndarray) -> list[np.ndarray]:
    """Mixture weights of every unit at the picture's resolution.

    Args:
        model: Backbone with T > 1 and a router.
        image: Picture (H, W, 3) in RGB, uint8.

    Returns:
        One (T, H, W) array a unit, float32, summing to 1 over T.

    Raises:
        InputError: The model has no router.
    """
    height, width = image.shape[:2]
    cell = model.patch_size
    maps = []
    try:
        found = model.routing_weights(to_input(image))
    except ValueError as error:
        raise InputError(str(error)) from None
    for weights in found:
        pixels = weights[0].repeat_interleave(cell, 1).repeat_interleave(cell, 2)
        # The grid is padded to whole patches on the right and below.
        maps.append(pixels[:, :height, :width].numpy())
    return maps


def blend(maps: np.ndarray) -> np.ndarray:
    """Weights (T, H, W) -> picture (H, W, 3) in [0, 1]: the steps' colours mixed by weight."""
    return np.einsum("thw,tc->hwc", maps, colours(len(maps)))


def shade(weights: np.ndarray, colour: np.ndarray) -> np.ndarray:
    """Weights (H, W) in [0, 1] -> picture (H, W, 3): white at 0, the colour at 1."""
    return 1 - weights[..., None] * (1 - colour)


def colours(count: int) -> np.ndarray:
    """RGB of the first ``count`` steps, (T, 3) in [0, 1]."""
    return np.array([to_rgb(STEP_COLOURS[index % len(STEP_COLOURS)]) for index in range(count)])


def draw_maps(
    pictures: dict[str, np.ndarray], units: dict[str, dict[str, np.ndarray]], title: str
) -> plt.Figure:
    """A sheet: for every picture and unit the picture, a map a step, and the blended map.

    Args:
        pictures: Name -> (H, W, 3) in RGB, uint8.
        units: Name of a picture -> name of a unit -> weights (T, H, W).
        title: Above the sheet.
    """
    rows = [(name, unit) for name in pictures for unit in units[name]]
    steps = max(len(maps) for found in units.values() for maps in found.values())
    tallest = max(p.shape[0] / p.shape[1] for p in pictures.values())
    size = (PANEL_INCHES * (steps + 2), PANEL_INCHES * tallest * len(rows) + 1)
    figure, axes = plt.subplots(
        len(rows), steps + 2, figsize=size, squeeze=False, layout="constrained"
    )
    for axis in axes.flat:
        axis.axis("off")
    for line, (name, unit) in zip(axes, rows, strict=True):
        maps = units[name][unit]
        _show(line[0], pictures[name], f"{name}\n{unit}")
        for step, (weights, colour) in enumerate(zip(maps, colours(len(maps)), strict=True)):
            _show(line[step + 1], shade(weights, colour), f"step {step + 1}")
        _show(line[-1], blend(maps), "all steps")
    patches = [
        plt.Rectangle((0, 0), 1, 1, color=colour, label=f"step {index + 1}")
        for index, colour in enumerate(colours(steps))
    ]
    figure.legend(handles=patches, loc="outside lower center", ncols=steps)
    figure.suptitle(f"{title}\nwhite: weight 0, full colour: weight 1", fontsize=10)
    return figure


def _show(axis: plt.Axes, picture: np.ndarray, title: str) -> None:
    axis.imshow(picture, vmin=0, vmax=1, interpolation="nearest")
    axis.set_title(title, fontsize=9)
