"""As much of HTTP/1.1 as stands between our client and the API server: heads, bodies, chunks."""

import asyncio
import dataclasses
from collections.abc import AsyncIterator


class BrokenMessage(Exception):
    """What came is no HTTP message, or its sender went away in the middle of it."""


@dataclasses.dataclass
class Head:
    """Start line and headers of a request or an answer."""

    start: str
    headers: list[tuple[str, str]]

    def value(self, name: str) -> str:
        """The first header of that name; empty when there is none."""
        return next((value for key, value in self.headers if key.lower() == name), "")

    def without(self, *names: str) -> "Head":
        """The same without these headers, named in lower case."""
        return Head(self.start, [(key, value) for key, value in self.headers if key.lower() not in names])

    def encode(self) -> bytes:
        """The head on the wire, with the empty line after it."""
        lines = [self.start, *(f"{key}: {value}" for key, value in self.headers)]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    @property
    def status(self) -> int:
        """The status code of an answer."""
        return int(self.start.split(" ", 2)[1])

    @property
    def chunked(self) -> bool:
        """Whether the body comes in chunks."""
        return self.value("transfer-encoding").lower() == "chunked"


async def read_head(reader: asyncio.StreamReader) -> Head | None:
    """The next head; None when the sender ended before its first byte."""
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if not error.partial:
            return None
        raise BrokenMessage("ended within a head") from error
    lines = raw[:-4].decode("latin-1").split("\r\n")
    headers = [(key.strip(), value.strip()) for key, _, value in (line.partition(":") for line in lines[1:])]
    return Head(lines[0], headers)


async def read_chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """The chunks of a body, to its end."""
    while True:
        size = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
        data = await reader.readexactly(size + 2)
        if size == 0:
            return
        yield data[:-2]


async def read_body(reader: asyncio.StreamReader, head: Head) -> bytes:
    """The whole body of a message that says how long it is."""
    try:
        if head.chunked:
            return b"".join([chunk async for chunk in read_chunks(reader)])
        return await reader.readexactly(int(head.value("content-length") or 0))
    except asyncio.IncompleteReadError as error:
        raise BrokenMessage("ended within a body") from error


def chunk(data: bytes) -> bytes:
    """One chunk on the wire; empty data ends the body."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def with_body(head: Head, body: bytes) -> bytes:
    """A message with its body in one piece."""
    plain = head.without("transfer-encoding", "content-length")
    plain.headers.append(("Content-Length", str(len(body))))
    return plain.encode() + body


def answer(status: int, reason: str, message: str, retry_after: int | None = None) -> bytes:
    """An API server's refusal."""
    body = (
        f'{{"kind":"Status","apiVersion":"v1","status":"Failure","message":"{message}","reason":"{reason}",'
        f'"code":{status}}}'
    ).encode()
    headers = [("Content-Type", "application/json")]
    if retry_after is not None:
        headers.append(("Retry-After", str(retry_after)))
    return with_body(Head(f"HTTP/1.1 {status} {reason}", headers), body)
