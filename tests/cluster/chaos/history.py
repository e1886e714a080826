"""Everything that happened in a cluster, in the order in which it happened.

Watches of several resources come in any order, but etcd counts all changes with one counter: sorted by
resourceVersion, the events are the one true order.
"""

import dataclasses
import http.client
import threading
import time

from clusterlib.errors import ClusterError

from .api import Api, Object, Watch

RESOURCES = ("trainingjobs", "jobs", "pods", "services", "configmaps", "persistentvolumeclaims", "nodes", "gpupools")


@dataclasses.dataclass(frozen=True)
class Event:
    """One change: ADDED, MODIFIED or DELETED."""

    revision: int
    type: str
    resource: str
    object: Object
    time: float = 0.0  # when we heard of it; for what may lag a little

    @property
    def namespace(self) -> str:
        """Empty for what is cluster-wide."""
        return str(self.object["metadata"].get("namespace", ""))

    @property
    def name(self) -> str:
        """The object's name."""
        return str(self.object["metadata"]["name"])

    @property
    def uid(self) -> str:
        """The object's identity."""
        return str(self.object["metadata"]["uid"])


class Recorder:
    """Records from its making until `stop`. What existed before is recorded as ADDED, under its own version."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._events: dict[tuple[int, str], Event] = {}  # by revision and uid: a second telling is no second change
        self._seen = dict.fromkeys(RESOURCES, 0)
        self._lock = threading.Lock()
        self._watches: dict[str, Watch] = {}
        self._stopped = False
        self._threads = [threading.Thread(target=self._follow, args=(name,), daemon=True) for name in RESOURCES]
        for thread in self._threads:
            thread.start()

    def _follow(self, resource: str) -> None:
        version = "0"  # whatever the server has, as ADDED events, then all changes
        while not self._stopped:
            try:
                watch = self._api.watch(resource, version)
                with self._lock:
                    self._watches[resource] = watch
                for told in watch:
                    if told["type"] == "ERROR":
                        raise ClusterError(str(told["object"].get("message")))
                    version = told["object"]["metadata"]["resourceVersion"]
                    self._take(Event(int(version), told["type"], resource, told["object"], time.time()))
            except (OSError, http.client.HTTPException, ValueError):
                time.sleep(0.2)  # the connection broke; the version is still good
            except ClusterError:
                version = "0"  # it has expired

    def _take(self, event: Event) -> None:
        with self._lock:
            self._seen[event.resource] = max(self._seen[event.resource], event.revision)
            if event.type != "BOOKMARK":
                self._events.setdefault((event.revision, event.uid), event)

    def catch_up(self) -> int:
        """Returns once all that is done by now is recorded, with the revision that this is."""
        newest = {resource: self._newest(resource) for resource in RESOURCES}
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with self._lock:
                caught_up = all(self._seen[resource] >= version for resource, version in newest.items())
            time.sleep(0.1)  # a deletion leaves no object to wait for
            if caught_up:
                with self._lock:
                    return max(self._seen.values())
        raise ClusterError("the watches of the record do not catch up")

    def _newest(self, resource: str) -> int:
        """The newest version that an object of this resource has: an event with it will come, or has."""
        return max((int(item["metadata"]["resourceVersion"]) for item in self._api.list(resource)), default=0)

    def events(self, after: int = 0) -> list[Event]:
        """All events later than revision `after`, in order."""
        with self._lock:
            return sorted((e for e in self._events.values() if e.revision > after), key=lambda e: e.revision)

    def forget(self, before: int) -> None:
        """Drops what is older: for runs that last."""
        with self._lock:
            self._events = {key: event for key, event in self._events.items() if event.revision >= before}

    def stop(self) -> None:
        """Ends the watches."""
        self._stopped = True
        with self._lock:
            watches = list(self._watches.values())
        for watch in watches:
            watch.close()
        for thread in self._threads:
            thread.join(5)
