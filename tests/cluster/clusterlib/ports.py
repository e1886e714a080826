"""Ports for one cluster, so that two clusters that start at the same moment never pick the same.

Ports come in blocks below the kernel's range for outgoing connections, since a port that is free now may otherwise be
taken by any client before its server binds. A block is locked while its cluster starts; afterwards its listening etcd
keeps others away from it.
"""

import contextlib
import fcntl
import random
import socket
from collections.abc import Iterator

from .errors import ClusterError
from .paths import cache_root

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
    """A port by each of NAMES, on 127.0.0.1; no other process gets the block while the body runs."""
    lock_file = cache_root() / "ports.lock"
    lock_file.parent.mkdir(parents=True, exist_ok=True)
    bases = list(range(_FIRST, _LAST, _BLOCK))
    random.shuffle(bases)
    # One file for all blocks: a block is locked by its own byte, and nothing has to be cleaned up after a crash.
    with lock_file.open("w") as lock:
        for base in bases:
            try:
                fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, base)
            except OSError:
                continue
            ports = {name: base + offset for offset, name in enumerate(NAMES)}
            if all(_is_free(port) for port in ports.values()):
                yield ports
                return
            fcntl.lockf(lock, fcntl.LOCK_UN, 1, base)
    raise ClusterError(f"no free ports between {_FIRST} and {_LAST} on 127.0.0.1")
