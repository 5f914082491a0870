"""What was done with every tensor of a file and of the model it was loaded into."""

from dataclasses import dataclass, field

from srvit_backbone.checkpoint.read import shorten


@dataclass
class LoadReport:
    """What was done with every tensor.

    Attributes:
        source: The file, and the key inside it.
        loaded: Names that were taken as they are.
        resized: name -> what was done, e.g. "14x14 -> 64x64".
        initialised: Names the file does not have; they keep the model's initial values.
        dropped: Names in the file that the model has no use for.
        zeroed: Of those the file does not have: set to 0, for a uniform mixture.
        folded: Which blocks of a plain ViT went where.
    """

    source: str
    loaded: list[str] = field(default_factory=list)
    resized: dict[str, str] = field(default_factory=dict)
    initialised: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    zeroed: list[str] = field(default_factory=list)
    folded: str = ""

    def __str__(self) -> str:
        taken = len(self.loaded) + len(self.resized)
        every = taken + len(self.initialised) + len(self.zeroed)
        lines = [f"{taken} of {every} tensors loaded from {self.source}"]
        if self.folded:
            lines.append(self.folded)
        if self.resized:
            lines.append("resized: " + ", ".join(f"{k} ({v})" for k, v in self.resized.items()))
        if self.zeroed:
            lines.append("set to 0 for a uniform mixture: " + shorten(self.zeroed))
        if self.initialised:
            lines.append("left at initial values: " + shorten(self.initialised))
        if self.dropped:
            lines.append("not used: " + shorten(self.dropped))
        return "; ".join(lines)
