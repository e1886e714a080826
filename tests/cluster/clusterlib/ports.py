"""Ports for one cluster, so that two clusters that start at the same moment never pick the same.

Ports come in blocks below the kernel's range for outgoing connections, since a port that is free now may otherwise be
taken by any client before its server binds. A block is locked while its cluster starts; afterwards its listening etcd
keeps others away from it.
"""

import contextlib
import fcntl
import os
import pathlib
import random
import socket
import tempfile
from collections.abc import Iterator

from .errors import ClusterError

NAMES = (
    "etcd",
    "etcd-peer",
    "apiserver",
    "controller-manager",
    "scheduler",
    "kwok",
    "webhook",
    "webhook-health",
    "operator-health",
)
_BLOCK = 16
_FIRST, _LAST = 12000, 30000


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@contextlib.contextmanager
def reserved() -> Iterator[dict[str, int]]:
    """A port by each of NAMES, on 127.0.0.1; nobody else gets the block while the body runs."""
    locks = pathlib.Path(tempfile.gettempdir()) / f"loadline-ports-{os.getuid()}"
    locks.mkdir(exist_ok=True)
    bases = list(range(_FIRST, _LAST, _BLOCK))
    random.shuffle(bases)
    for base in bases:
        with (locks / str(base)).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            ports = {name: base + offset for offset, name in enumerate(NAMES)}
            if all(_is_free(port) for port in ports.values()):
                try:
                    yield ports
                finally:
                    (locks / str(base)).unlink(missing_ok=True)
                    with contextlib.suppress(OSError):
                        locks.rmdir()  # only when empty: nothing is left behind
                return
    raise ClusterError(f"no free ports between {_FIRST} and {_LAST} on 127.0.0.1")
