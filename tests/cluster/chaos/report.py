"""What the suites found, as counts and as words."""

import collections
import dataclasses
import time

from clusterlib.progress import seconds_text


@dataclasses.dataclass
class Result:
    """Of one suite."""

    suite: str
    scenarios: int = 0
    cut_points: int = 0
    faults: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    divergences: list[str] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)
    begun: float = dataclasses.field(default_factory=time.monotonic)
    seconds: float = 0.0

    def diverged(self, where: str, problems: list[str]) -> None:
        """A run went another way than it should; it is told at once."""
        for problem in problems:
            line = f"{where}: {problem}"
            self.divergences.append(line)
            print(f"  DIVERGENCE {line}", flush=True)

    def finish(self) -> "Result":
        """The suite is over."""
        self.seconds = time.monotonic() - self.begun
        return self


def table(results: list[Result]) -> str:
    """One line a suite, then the kinds of faults."""
    lines = [f"{'suite':<14} {'scenarios':>9} {'cut points':>10} {'faults injected':>15} {'divergences':>11}  time"]
    faults: collections.Counter[str] = collections.Counter()
    for result in results:
        faults += result.faults
        lines.append(
            f"{result.suite:<14} {result.scenarios:>9} {result.cut_points:>10} {sum(result.faults.values()):>15}"
            f" {len(result.divergences):>11}  {seconds_text(result.seconds)}"
        )
    if faults:
        lines.append("faults: " + ", ".join(f"{count} x {fault}" for fault, count in sorted(faults.items())))
    lines += [f"{result.suite}: {note}" for result in results for note in result.notes]
    return "\n".join(lines)
