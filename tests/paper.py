"""The paper's printed figures, from the file where they are kept."""

from conftest import ROOT
from omegaconf import OmegaConf

FIGURES = OmegaConf.to_container(OmegaConf.load(ROOT / "tools" / "paper_figures.yaml"))
