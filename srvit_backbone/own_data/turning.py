"""Whether labels are of the picture as it is seen, or of its stored pixels: EXIF orientation."""

from collections.abc import Hashable

from srvit_backbone.own_data.findings import Findings
from srvit_backbone.own_data.headers import Header

KINDS = ("auto", "upright", "stored")


class Turns:
    """How labels lie on pictures that EXIF turns.

    A size that the labels state tells for pictures turned by a quarter, squares apart. Of the
    others one cannot know, and goes by those that tell.

    Args:
        kind: One of KINDS.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._known: dict[Hashable, tuple[int, tuple[int, int]]] = {}
        self._open: list[tuple[Hashable, str, Header]] = []
        self._told: dict[str, str] = {}

    def add(self, key: Hashable, name: str, header: Header, stated: tuple[int, int] | None) -> None:
        """Take note of a picture and of the size that its labels state, if any."""
        if header.orientation == 1:
            return
        if header.size != header.stored and stated in (header.size, header.stored):
            kind = "upright" if stated == header.size else "stored"
            self._told.setdefault(kind, name)
            self._decide(key, header, kind)
        elif self.kind != "auto":
            self._decide(key, header, self.kind)
        else:
            self._open.append((key, name, header))

    def settle(self, where: str, findings: Findings) -> None:
        """Decide on the pictures whose sizes do not tell."""
        if self._known:
            findings.note("pictures turned by EXIF", where, "they and their labels are put upright")
        if not self._open:
            return
        if len(self._told) == 1:
            (kind,) = self._told
            for key, name, header in self._open:
                self._decide(key, header, kind)
                findings.note(
                    f"pictures turned by EXIF whose labels are taken as {kind}",
                    name,
                    f"as those of {self._told[kind]} are",
                )
            return
        for _, name, _ in self._open:
            findings.problem(
                "pictures turned by EXIF, and nothing tells whether their labels are turned too",
                name,
                "say exif=upright (labelled as viewers show the picture, as most tools do) or "
                "exif=stored: own_data.exif=..., SEG_EXIF=..., --exif ...",
            )

    def of(self, key: Hashable) -> tuple[int, tuple[int, int]]:
        """The orientation to turn a picture's labels by, 1 for none, and its stored size."""
        return self._known.get(key, (1, (0, 0)))

    def _decide(self, key: Hashable, header: Header, kind: str) -> None:
        self._known[key] = (header.orientation if kind == "stored" else 1, header.stored)
