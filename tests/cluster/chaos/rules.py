"""What may go wrong between our processes and the API server, as data: which requests, and what befalls them."""

import dataclasses
import enum
import random
import threading
import urllib.parse

WRITES = frozenset({"create", "update", "patch", "delete"})
READS = frozenset({"get", "list", "watch"})


@dataclasses.dataclass(frozen=True)
class Request:
    """A request in the API's own terms."""

    verb: str
    resource: str
    namespace: str
    name: str
    subresource: str
    target: str  # path and query, as sent

    @property
    def is_write(self) -> bool:
        """Whether it may change something."""
        return self.verb in WRITES

    def __str__(self) -> str:
        what = "/".join(part for part in (self.resource, self.name, self.subresource) if part)
        return f"{self.verb} {what}" + (f" in {self.namespace}" if self.namespace else "")


_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def parse(method: str, target: str) -> Request:
    """Reads method and target. Paths outside of the API (/version) have an empty resource."""
    path, _, query = target.partition("?")
    parts = [urllib.parse.unquote(part) for part in path.strip("/").split("/")]
    rest = parts[2:] if parts[0] == "api" else parts[3:] if parts[0] == "apis" else []
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    resource, name, subresource = (rest + ["", "", ""])[:3]
    verb = _VERBS.get(method, "get")
    if verb == "get" and resource and not name:
        watching = urllib.parse.parse_qs(query).get("watch", ["false"])[0] in ("true", "1")
        verb = "watch" if watching else "list"
    if verb == "create":
        name = ""  # it is in the body; a name in the path is a subresource's
    return Request(verb, resource, namespace, name, subresource, target)


class Fault(enum.Enum):
    """What befalls a request, a watch, or one event of a watch."""

    DELAY = "delay"  # any request: `seconds` before it is forwarded
    ANSWER = "answer"  # any request: `status` at once, with Retry-After when `seconds` is not 0
    DROP_BEFORE = "drop before the commit"  # the connection is reset, nothing was forwarded
    DROP_AFTER = "drop after the commit"  # the server did it, and the connection is reset instead of the answer
    SILENCE = "half-open silence"  # forwarded and never answered; for watches: nothing more is passed on
    HOLD = "hold"  # a request waits before it is forwarded, until `released` is set
    RESET_MID_EVENT = "reset in the middle of an event"
    DUPLICATE = "event twice"
    GONE_EVENT = "410 as an event"  # the watch ends with an ERROR event
    END = "watch ended"  # a clean end, as at the server's own time


ON_EVENTS = frozenset({Fault.RESET_MID_EVENT, Fault.DUPLICATE, Fault.GONE_EVENT, Fault.END})


@dataclasses.dataclass
class Rule:
    """Lets `fault` befall the requests that match: the first `skip` of them pass, then `times` are hit (None: all),
    each with `chance`. For faults of ON_EVENTS it is the events of matching watches that are counted."""

    fault: Fault
    verbs: frozenset[str] = WRITES | READS
    resources: frozenset[str] = frozenset()  # empty: every resource but Leases and Events
    namespace: str = ""  # empty: all
    skip: int = 0
    times: int | None = 1
    chance: float = 1.0
    seconds: float = 0.0
    status: int = 500
    released: threading.Event = dataclasses.field(default_factory=threading.Event)
    hits: int = 0

    def matches(self, request: Request) -> bool:
        """Whether the rule is about such requests at all."""
        if request.verb not in self.verbs or (self.namespace and request.namespace != self.namespace):
            return False
        if self.resources:
            return request.resource in self.resources
        return request.resource not in ("", "leases", "events")

    def strikes(self, request: Request, dice: random.Random) -> bool:
        """Counts a match, and says whether the fault befalls it."""
        if not self.matches(request) or (self.times is not None and self.hits >= self.times):
            return False
        if self.chance < 1.0 and dice.random() >= self.chance:
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        self.hits += 1
        return True
