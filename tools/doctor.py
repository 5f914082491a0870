"""Say what is installed, what of the package works with it, and how to mend what does not.

python tools/doctor.py
"""

import importlib
import sys
import warnings
from argparse import ArgumentParser, Namespace
from importlib import metadata

from packaging.version import Version

# Imports nothing of the package, which may be what does not work.

# Name shown -> the distributions it may come from, the maintained one first.
PACKAGES = {
    "torch": ("torch",),
    "torchvision": ("torchvision",),
    "numpy": ("numpy",),
    "timm": ("timm",),
    "detectron2": ("detectron2", "sal-detectron2"),
    "setuptools": ("setuptools",),
    "mmcv": ("onedl-mmcv", "mmcv", "mmcv-lite"),
    "mmengine": ("onedl-mmengine", "mmengine"),
    "mmsegmentation": ("onedl-mmsegmentation", "mmsegmentation"),
    "mim": ("onedl-mim", "openmim"),
}
# What can be used -> the module that proves it, and how to get it.
PARTS = {
    "backbone (timm)": ("srvit_backbone", "pip install srvit-backbone"),
    "detection (Detectron2)": ("srvit_backbone.detectron2", "make setup"),
    "COCO evaluation": ("pycocotools", "pip install 'srvit-backbone[detection]'"),
    "segmentation (MMSegmentation)": ("mmseg.apis", "pip install 'srvit-backbone[segmentation]'"),
    "mini data sets": ("skimage", "pip install 'srvit-backbone[dev]'"),
    "export": ("onnxruntime", "pip install 'srvit-backbone[export]'"),
}


def installed() -> dict[str, tuple[str, Version]]:
    """Name shown -> (distribution, version) of what is installed."""
    found = {}
    for name, distributions in PACKAGES.items():
        for distribution in distributions:
            try:
                found[name] = (distribution, Version(metadata.version(distribution)))
                break
            except metadata.PackageNotFoundError:
                continue
    return found


def known_problems(found: dict[str, tuple[str, Version]]) -> list[str]:
    """Pairs of versions that do not work together, each with the fix."""

    def version(name: str) -> Version | None:
        return found[name][1] if name in found else None

    torch, vision, numpy = version("torch"), version("torchvision"), version("numpy")
    setuptools, mmcv, mmseg = version("setuptools"), version("mmcv"), version("mmsegmentation")
    problems = []
    if torch and torch < Version("2.1"):
        problems.append(f"torch {torch} is too old: pip install -U torch torchvision")
    # torch 2.(x) goes with torchvision 0.(x + 15).
    if torch and vision and vision.minor != torch.minor + 15:
        problems.append(
            f"torchvision {vision} is not of torch {torch}'s release: "
            f"pip install 'torchvision==0.{torch.minor + 15}.*'"
        )
    if torch and numpy and torch < Version("2.3") and numpy >= Version("2"):
        problems.append(f"torch {torch} was built for numpy 1: pip install 'numpy<2'")
    if "detectron2" in found and setuptools and setuptools >= Version("82"):
        problems.append(
            f"setuptools {setuptools} has no pkg_resources, which detectron2.model_zoo imports "
            "(our configs do not): pip install 'setuptools<81'"
        )
    if mmseg and mmcv and found["mmsegmentation"][0] == "mmsegmentation" and mmcv >= Version("2.2"):
        problems.append(
            f"mmsegmentation {mmseg} refuses mmcv {mmcv}: pip install mmcv==2.1.0, or the "
            "maintained onedl-mmcv onedl-mmengine onedl-mmsegmentation"
        )
    return problems


def parse(arguments: list[str] | None = None) -> Namespace:
    """The command line."""
    return ArgumentParser(description=__doc__).parse_args(arguments)


def main(_: Namespace) -> None:
    """Print the report; the exit status is the number of known problems."""
    warnings.simplefilter("ignore")
    found = installed()
    print(f"{'python':16} {sys.version.split()[0]}")
    for name in PACKAGES:
        distribution, version = found.get(name, ("", "not installed"))
        print(
            f"{name:16} {version}{f'  ({distribution})' if distribution not in ('', name) else ''}"
        )
    if "torch" in found:
        import torch

        gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        print(f"{'GPU':16} {', '.join(gpus) or 'none: training runs on the CPU, without AMP'}")
    print()
    for part, (module, remedy) in PARTS.items():
        try:
            importlib.import_module(module)
            print(f"{part:32} works")
        except Exception as error:  # whatever stops an import is what the user has to know
            print(f"{part:32} does not: {type(error).__name__}: {error} -> {remedy}")
    problems = known_problems(found)
    for problem in problems:
        print(f"problem: {problem}")
    sys.exit(len(problems))


if __name__ == "__main__":
    main(parse())
