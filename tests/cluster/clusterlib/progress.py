"""Says what a long run is doing, how many steps are left and how long it has taken so far."""

import contextlib
import time
from collections.abc import Iterator


def seconds_text(seconds: float) -> str:
    """ "212 s" up to ten minutes, then "12 min 05 s"."""
    if seconds < 600:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest:02d} s"


class Progress:
    """Numbered steps. Steps are announced before they start, so that a stuck one can be seen."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._number = 0
        self._begun = time.monotonic()

    @contextlib.contextmanager
    def step(self, what: str, usually: str = "") -> Iterator[None]:
        """Runs the body as one step; `usually` is a hint such as "about 330 s"."""
        self._number += 1
        mark = f"[{self._number}/{self._total}]"
        hint = f" ({usually})" if usually else ""
        print(f"{mark} {what}{hint} ...", flush=True)
        begun = time.monotonic()
        yield
        now = time.monotonic()
        left = self._total - self._number
        print(
            f"{mark} {what}: {seconds_text(now - begun)}; {left} left, {seconds_text(now - self._begun)} so far",
            flush=True,
        )
