"""A proxy between one of our processes and the real API server, at which things go wrong as a script says.

Semantics stay those of the real server: a request is forwarded as it is, or not at all; an answer or an event is
passed on, late, twice or never. The process is told from others by using a proxy of its own.

Thread-safety: the public members may be called from any thread; the proxy runs a loop in a thread of its own.
"""

import asyncio
import collections
import contextlib
import dataclasses
import json
import pathlib
import random
import socket
import ssl
import struct
import threading
import time
import urllib.parse
from collections.abc import Callable

from . import http1, rules, watches
from .rules import Fault, Request, Rule


@dataclasses.dataclass(frozen=True)
class Write:
    """One write as the proxy saw it. `status` is the server's, 0 when it was never asked."""

    time: float
    request: Request
    name: str  # also for a create, whose name is in its body
    status: int
    answered: bool

    @property
    def effective(self) -> bool:
        """Whether the server did it."""
        return 200 <= self.status < 300

    def __str__(self) -> str:
        end = str(self.status or "never sent") + ("" if self.answered else ", answer lost")
        return f"{self.request.verb} {self.request.resource} {self.name} {self.request.subresource} -> {end}"


@dataclasses.dataclass
class Cut:
    """Ends our process at its `number`th effective write among those that `counts`."""

    number: int
    before_answer: bool
    counts: Callable[[Write], bool]
    end_process: Callable[[], None]
    seen: int = 0
    done: threading.Event = dataclasses.field(default_factory=threading.Event)


class _Lost(Exception):
    """The client's connection is to be reset."""


def _stop_hard(writer: asyncio.StreamWriter) -> None:
    """Ends a connection by RST, as a dead peer's host does."""
    with contextlib.suppress(OSError, AttributeError):
        plain = writer.get_extra_info("socket")
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


class Proxy:
    """See the module. `server` is https://HOST:PORT (or http://, for tests of the proxy itself)."""

    def __init__(self, server: str, ca: pathlib.Path | None, certificate: tuple[pathlib.Path, pathlib.Path] | None,
                 seed: int = 0) -> None:
        address = urllib.parse.urlsplit(server)
        self._host, self._port = address.hostname or "", address.port or 443
        self._upstream = ssl.create_default_context(cafile=str(ca)) if ca else None
        self._serving = None
        if certificate:
            self._serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._serving.load_cert_chain(*certificate)
        self._dice = random.Random(seed)
        self._rules: list[Rule] = []
        self._lock = threading.Lock()
        self._loop = asyncio.new_event_loop()
        self._valves: dict[str, watches.Valve] = {}
        self._stale: dict[str, bytes] = {}  # by resource and label selector
        self._listed: dict[str, str] = {}  # targets of lists that were asked for, by resource and label selector
        self._gate_open = True
        self._clients: set[asyncio.StreamWriter] = set()
        self._watch_count = 0
        self.cut: Cut | None = None
        self.writes: list[Write] = []
        self.injected: collections.Counter[str] = collections.Counter()
        self.requests = 0
        started: threading.Event = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self._thread.start()
        started.wait(10)

    # --- from other threads ---

    @property
    def url(self) -> str:
        """Where the process finds the API server."""
        return f"{'https' if self._serving else 'http'}://127.0.0.1:{self.port}"

    def add(self, rule: Rule) -> Rule:
        """From now on `rule` holds."""
        with self._lock:
            self._rules.append(rule)
        return rule

    def calm(self) -> None:
        """No rule holds any more, every valve is open and nothing is stale."""
        with self._lock:
            for rule in self._rules:
                rule.released.set()
            self._rules.clear()
            self._stale.clear()
            self.cut = None
        for valve in list(self._valves.values()):
            valve.open()

    def valve(self, resource: str) -> watches.Valve:
        """The watches of this resource."""
        with self._lock:
            return self._valves.setdefault(resource, watches.Valve(self._loop))

    def freeze_lists(self, resource: str, fetch: Callable[[str], bytes]) -> None:
        """Lists of this resource are answered as the server would now, however late they are asked: an old API
        server's view. `fetch` gets a target's body from the real server."""
        with self._lock:
            targets = {key: target for key, target in self._listed.items() if key.split("?")[0] == resource}
        for key, target in targets.items():
            body = fetch(target)
            with self._lock:
                self._stale[key] = body

    def thaw_lists(self) -> None:
        """Lists are the server's own again."""
        with self._lock:
            self._stale.clear()

    def shut(self) -> None:
        """Resets every connection and accepts none: for the time between a process and its successor."""
        self._gate_open = False
        self._loop.call_soon_threadsafe(self._drop_clients)

    def reopen(self) -> None:
        """Accepts connections again."""
        self._gate_open = True

    def reset_connections(self) -> None:
        """Resets every connection once."""
        self._loop.call_soon_threadsafe(self._drop_clients)

    def stop(self) -> None:
        """Ends the proxy."""
        self.calm()
        self._gate_open = False
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    # --- within the loop ---

    def _run(self, started: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        self._server = self._loop.run_until_complete(
            asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._serving, limit=1 << 20)
        )
        self.port = self._server.sockets[0].getsockname()[1]
        self._loop.set_exception_handler(lambda *_: None)  # peers that reset are what this is for
        started.set()
        self._loop.run_forever()

    async def _end(self) -> None:
        self._server.close()
        self._drop_clients()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def _drop_clients(self) -> None:
        for writer in list(self._clients):
            _stop_hard(writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._gate_open:
            return _stop_hard(writer)
        self._clients.add(writer)
        upstream: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        try:
            while (head := await http1.read_head(reader)) is not None:
                body = await http1.read_body(reader, head)
                if upstream is None or upstream[0].at_eof() or upstream[1].is_closing():
                    upstream = await asyncio.open_connection(
                        self._host, self._port, ssl=self._upstream, limit=16 << 20)
                if not await self._exchange(head, body, writer, upstream):
                    break
        except (_Lost, OSError, ssl.SSLError, http1.BrokenMessage, asyncio.IncompleteReadError):
            _stop_hard(writer)
        finally:
            self._clients.discard(writer)
            for end in (writer, upstream[1] if upstream else None):
                if end is not None:
                    with contextlib.suppress(RuntimeError):  # asyncio's TLS stream is closing already
                        end.close()

    def _strike(self, request: Request, on_events: bool) -> Rule | None:
        with self._lock:
            for rule in self._rules:
                if (rule.fault in rules.ON_EVENTS) == on_events and rule.strikes(request, self._dice):
                    self.injected[rule.fault.value] += 1
                    return rule
        return None

    async def _exchange(self, head: http1.Head, body: bytes, writer: asyncio.StreamWriter,
                        upstream: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> bool:
        """One request and its answer. False when the connection is over."""
        method, target, _ = head.start.split(" ")
        request = rules.parse(method, target)
        self.requests += 1
        rule = self._strike(request, on_events=False)
        fault = rule.fault if rule else None
        if rule and fault is Fault.DELAY:
            await asyncio.sleep(rule.seconds)
        elif rule and fault is Fault.ANSWER:
            self._note(request, body, 0, answered=True)
            retry_after = int(rule.seconds) if rule.seconds else None
            writer.write(http1.answer(rule.status, "InjectedFault", "as the test's script says", retry_after))
            await writer.drain()
            return True
        elif fault is Fault.DROP_BEFORE:
            self._note(request, body, 0, answered=False)
            raise _Lost
        elif rule and fault is Fault.HOLD:
            await self._loop.run_in_executor(None, rule.released.wait, 120)
        stale = self._stale_answer(request)
        if stale is not None:
            writer.write(stale)
            await writer.drain()
            return True
        if not self._gate_open:
            raise _Lost
        up_reader, up_writer = upstream
        up_writer.write(http1.with_body(head.without("accept-encoding"), body))
        await up_writer.drain()
        answer = await http1.read_head(up_reader)
        if answer is None:
            raise _Lost
        if request.verb == "watch" and answer.status == 200:
            silent = fault is Fault.SILENCE
            await self._watch(request, answer, up_reader, writer, silent)
            return False
        content = await http1.read_body(up_reader, answer) if answer.status not in (204, 304) else b""
        return await self._give_answer(request, body, answer, content, fault, writer)

    async def _give_answer(self, request: Request, sent: bytes, answer: http1.Head, content: bytes,
                           fault: Fault | None, writer: asyncio.StreamWriter) -> bool:
        lost = fault in (Fault.DROP_AFTER, Fault.SILENCE)
        cut = self._reach_cut(request, sent, answer.status)
        if request.is_write:
            self._note(request, sent, answer.status, answered=not lost and not (cut and cut.before_answer))
        if cut:
            self._gate_open = False
            if not cut.before_answer:
                writer.write(http1.with_body(answer, content))
                await writer.drain()
                await asyncio.sleep(0.02)  # for the answer to be read; whatever is asked next goes nowhere
            cut.end_process()
            self._drop_clients()
            cut.done.set()
            raise _Lost
        if fault is Fault.DROP_AFTER:
            raise _Lost
        if fault is Fault.SILENCE:
            await asyncio.sleep(3600)
        writer.write(http1.with_body(answer, content))
        await writer.drain()
        return True

    def _name_in(self, request: Request, body: bytes) -> str:
        if request.name or request.verb != "create":
            return request.name
        with contextlib.suppress(ValueError):
            return str(json.loads(body).get("metadata", {}).get("name", ""))
        return ""

    def _note(self, request: Request, body: bytes, status: int, answered: bool) -> None:
        if request.is_write:
            self.writes.append(Write(time.time(), request, self._name_in(request, body), status, answered))

    def _reach_cut(self, request: Request, body: bytes, status: int) -> Cut | None:
        cut = self.cut
        if cut is None or cut.done.is_set() or not request.is_write:
            return None
        write = Write(time.time(), request, self._name_in(request, body), status, True)
        if not write.effective or not cut.counts(write):
            return None
        cut.seen += 1
        return cut if cut.seen == cut.number else None

    def _stale_answer(self, request: Request) -> bytes | None:
        """The answer to a list from the past. A streamed one is refused then, so that pages are asked for."""
        path, _, text = request.target.partition("?")
        query = urllib.parse.parse_qs(text)
        streamed = request.verb == "watch" and query.get("sendInitialEvents") == ["true"]
        if request.verb != "list" and not streamed:
            return None
        selector = query.get("labelSelector", [""])[0]
        key = f"{request.resource}?{selector}"
        with self._lock:
            self._listed[key] = f"{path}?labelSelector={urllib.parse.quote(selector)}"
            body = self._stale.get(key)
        if body is None:
            return None
        if streamed:
            return http1.answer(422, "Invalid", "sendInitialEvents is not served here, as the test's script says")
        return http1.with_body(http1.Head("HTTP/1.1 200 OK", [("Content-Type", "application/json")]), body)

    async def _watch(self, request: Request, answer: http1.Head, reader: asyncio.StreamReader,
                     writer: asyncio.StreamWriter, silent: bool) -> None:
        """Passes a watch on, event by event."""
        valve = self.valve(request.resource)
        self._watch_count += 1
        number = self._watch_count
        writer.write(answer.encode())
        valve.join(number, lambda line: writer.write(http1.chunk(line)))
        pending = b""
        try:
            async for data in http1.read_chunks(reader):
                *lines, pending = (pending + data).split(b"\n")
                for line in lines:
                    if not silent and not await self._event(request, valve, number, line + b"\n", writer):
                        writer.write(http1.chunk(b""))
                        return await writer.drain()
                await writer.drain()
            writer.write(http1.chunk(b""))
            await writer.drain()
        finally:
            valve.leave(number)

    async def _event(self, request: Request, valve: watches.Valve, number: int, line: bytes,
                     writer: asyncio.StreamWriter) -> bool:
        """Passes one event on. False when the watch is to end with it."""
        rule = self._strike(request, on_events=True)
        fault = rule.fault if rule else None
        if fault is Fault.RESET_MID_EVENT:
            writer.write(http1.chunk(line[: len(line) // 2]))
            await writer.drain()
            raise _Lost
        if fault is Fault.GONE_EVENT:
            status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410,
                      "message": "too old resource version, as the test's script says"}
            writer.write(http1.chunk(json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"))
        if fault in (Fault.GONE_EVENT, Fault.END):
            return False
        valve.pass_on(number, line)
        if fault is Fault.DUPLICATE:
            valve.pass_on(number, line)
        return True
