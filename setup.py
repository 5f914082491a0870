"""Packaging of srvit-backbone: the core needs torch and timm, everything else is an extra."""

import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

EXTRAS = {
    # What Detectron2 needs, also what it uses without declaring it (setuptools for
    # pkg_resources in its model zoo, shapely for cropping polygons). Detectron2 itself is not on
    # PyPI under its own name: `make setup` installs it, the README gives the official way.
    "detection": [
        "torchvision",
        "setuptools<81",
        "shapely",
        "pycocotools>=2.0.2,!=2.0.9,!=2.0.10",
        "omegaconf>=2.1,<2.4",
        "hydra-core>=1.1",
        "fvcore",
        "iopath",
        "cloudpickle",
        "tabulate",
        "termcolor",
        "yacs",
        "tqdm",
        "matplotlib",
        "tensorboard",
    ],
    # The maintained distributions of mmcv, mmengine, mmsegmentation and mim (same import names).
    "segmentation": [
        "onedl-mmcv",
        "onedl-mmengine",
        "onedl-mmsegmentation",
        "onedl-mim",
        "tensorboard",
    ],
    "pretrain": ["torchvision", "omegaconf>=2.1,<2.4", "tensorboard", "tqdm"],
    # Photographs as phones store them (HEIC).
    "photos": ["pillow-heif"],
    "export": ["onnx", "onnxscript", "onnxruntime"],
    # scikit-image and scikit-learn carry the real pictures of the demo data sets.
    "dev": ["pytest", "pytest-xdist", "ruff", "mypy", "scikit-image", "scikit-learn"],
}
EXTRAS["all"] = sorted({requirement for extra in EXTRAS.values() for requirement in extra})

# Where a wheel has them, in srvit_backbone/configs.
CONFIGS = {
    "detection/configs": "detection",
    "detection/mmdet_configs": "mmdet",
    "segmentation/configs": "segmentation",
}


class BuildWithConfigs(build_py):
    """Puts the configs inside a wheel; an editable install uses them where they are."""

    def run(self) -> None:
        super().run()
        if getattr(self, "editable_mode", False):
            return
        for source, name in CONFIGS.items():
            target = Path(self.build_lib, "srvit_backbone", "configs", name)
            shutil.copytree(source, target, dirs_exist_ok=True)


setup(
    cmdclass={"build_py": BuildWithConfigs},
    name="srvit-backbone",
    version="0.1.0",
    description="SR-ViT as a backbone for Detectron2, MMSegmentation and timm",
    long_description=Path("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.10",
    packages=find_packages(include=["srvit_backbone", "srvit_backbone.*"]),
    install_requires=["torch>=2.1", "timm>=1.0.29", "safetensors"],
    extras_require=EXTRAS,
)
