"""The paper's printed figures, from the file where they are kept."""

from srvit_backbone.studies.paper_figures import paper_figures

FIGURES = paper_figures()
