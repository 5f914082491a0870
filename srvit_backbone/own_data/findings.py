"""What was found out about a data set: one cause is one line."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from srvit_backbone.errors import InputError

SHOWN = 3  # places named of a finding
NAMED = 3  # problems named in an error


@dataclass
class Finding:
    """One cause, and everywhere it was found.

    Attributes:
        what: What is so.
        remedy: What to do, or what was done about it.
        harmless: A note: training takes it as it should.
        places: Files, or files and entries.
    """

    what: str
    remedy: str
    harmless: bool
    places: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{'note' if self.harmless else 'PROBLEM'}: {self.line()}"

    def line(self) -> str:
        """Without its kind."""
        count = len(self.places)
        shown = ", ".join(self.places[:SHOWN])
        more = f" and {count - SHOWN} more" if count > SHOWN else ""
        where = f" ({count}: {shown}{more})" if count > 1 else f" ({shown})" if shown else ""
        return f"{self.what}{where}{f': {self.remedy}' if self.remedy else ''}"


class Findings:
    """All findings about a data set, in the order in which their causes were met."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, bool], Finding] = {}

    def problem(self, what: str, place: object = "", remedy: str = "") -> None:
        """Something that would stop training, or make it learn what is wrong."""
        self._add(what, place, remedy, harmless=False)

    def note(self, what: str, place: object = "", remedy: str = "") -> None:
        """Something that is taken care of and worth knowing."""
        self._add(what, place, remedy, harmless=True)

    def _add(self, what: str, place: object, remedy: str, harmless: bool) -> None:
        key = what, remedy, harmless
        finding = self._found.setdefault(key, Finding(what, remedy, harmless))
        if str(place):
            finding.places.append(str(place))

    def extend(self, others: Iterable[Finding]) -> None:
        """Take over findings."""
        for other in others:
            for place in other.places or [""]:
                self._add(other.what, place, other.remedy, other.harmless)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._found.values())

    @property
    def problems(self) -> list[Finding]:
        """Those that stop training."""
        return [finding for finding in self if not finding.harmless]

    @property
    def notes(self) -> list[Finding]:
        """The others."""
        return [finding for finding in self if finding.harmless]

    def stop_on_problems(self) -> None:
        """Raise InputError, in one line, if there is a problem."""
        problems = self.problems
        if not problems:
            return
        more = f"; and {len(problems) - NAMED} more problems" if len(problems) > NAMED else ""
        raise InputError("; ".join(finding.line() for finding in problems[:NAMED]) + more)
