"""One watch on its way through the proxy: its events can be held back, coalesced, doubled or cut short."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterable


_END_OF_LIST = b"k8s.io/initial-events-end"


def coalesce(lines: Iterable[bytes]) -> list[bytes]:
    """What a reader sees that was away meanwhile: of each object only its last state, of a short life nothing.

    An object that was deleted and made anew is shown changed, without its deletion, as after a new list. The last
    bookmark comes last, unless an earlier one marks the end of a streamed list: that mark must not be lost."""
    first: dict[str, str] = {}
    last: dict[str, dict[str, object]] = {}
    bookmark: bytes | None = None
    for line in lines:
        event = json.loads(line)
        if event["type"] == "BOOKMARK":
            bookmark = bookmark if bookmark and _END_OF_LIST in bookmark else line
            continue
        metadata = event["object"].get("metadata", {})
        key = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
        first.setdefault(key, event["type"])
        last.pop(key, None)  # so that objects come in the order of their last change
        last[key] = event
    shown = []
    for key, event in last.items():
        if first[key] == "ADDED" and event["type"] == "DELETED":
            continue
        if event["type"] != "DELETED":
            event["type"] = "ADDED" if first[key] == "ADDED" else "MODIFIED"
        shown.append(json.dumps(event, separators=(",", ":")).encode() + b"\n")
    return shown + ([bookmark] if bookmark else [])


class Valve:
    """The watches of one resource: closed, their events wait; opened, they flow, as they were or coalesced.

    Thread-safety: `close` and `open` from any thread; `pass_on` within the proxy's loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._lock = threading.Lock()
        self._closed = False
        self._waiting: dict[int, list[bytes]] = {}
        self._writers: dict[int, Callable[[bytes], None]] = {}
        self.coalesced = 0  # events that were never shown

    def join(self, watch: int, write: Callable[[bytes], None]) -> None:
        """A watch was opened; `write` sends a line of it."""
        self._writers[watch] = write

    def leave(self, watch: int) -> None:
        """It ended."""
        self._writers.pop(watch, None)
        self._waiting.pop(watch, None)

    def pass_on(self, watch: int, line: bytes) -> None:
        """A line came from the server."""
        with self._lock:
            if self._closed:
                self._waiting.setdefault(watch, []).append(line)
                return
        self._writers[watch](line)

    @property
    def held(self) -> int:
        """Lines that wait."""
        with self._lock:
            return sum(len(lines) for lines in self._waiting.values())

    def close(self) -> None:
        """From now on events wait."""
        with self._lock:
            self._closed = True

    def open(self, skip: bool = False) -> None:
        """Lets events flow again; with `skip` those that waited are coalesced first."""
        with self._lock:
            self._closed = False
            waiting, self._waiting = self._waiting, {}
        for watch, lines in waiting.items():
            shown = coalesce(lines) if skip else lines
            self.coalesced += len(lines) - len(shown)
            self._loop.call_soon_threadsafe(self._send, watch, shown)

    def _send(self, watch: int, lines: list[bytes]) -> None:
        write = self._writers.get(watch)
        for line in lines if write else []:
            write(line)
