"""The figures that the paper prints, from the one file where they are kept."""

from pathlib import Path
from typing import Any

import yaml


def paper_figures() -> dict[str, Any]:
    """Tables 2 to 5, as in paper_figures.yaml."""
    text = Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text)
