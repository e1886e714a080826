"""The built kubectl as the cluster's administrator. It is the only Kubernetes client of these tools."""

import json
import subprocess
import time
from collections.abc import Callable
from typing import Any

import yaml

from .errors import ClusterError
from .state import Cluster


def command(cluster: Cluster, *arguments: str) -> list[str]:
    """The command line that runs kubectl on this cluster and no other."""
    return [str(cluster.programs["kubectl"]), f"--kubeconfig={cluster.kubeconfig}", *arguments]


def run(cluster: Cluster, *arguments: str, text: str | None = None) -> str:
    """Runs kubectl and returns what it printed; an error carries kubectl's own words."""
    done = subprocess.run(command(cluster, *arguments), capture_output=True, text=True, input=text, check=False)
    if done.returncode != 0:
        raise ClusterError(f"kubectl {' '.join(arguments)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def get(cluster: Cluster, *arguments: str) -> dict[str, Any]:
    """`kubectl get ... -o json`, parsed."""
    parsed: dict[str, Any] = json.loads(run(cluster, "get", *arguments, "-o", "json"))
    return parsed


def apply(cluster: Cluster, objects: list[dict[str, Any]]) -> str:
    """Server-side apply of all objects in one call: no read before the write, and no annotation left behind."""
    if not objects:
        return ""
    text = yaml.safe_dump_all(objects, sort_keys=False)
    return run(cluster, "apply", "--server-side", "--force-conflicts", "-f", "-", text=text)


def patch(cluster: Cluster, resource: str, name: str, change: dict[str, Any], *arguments: str) -> None:
    """A merge patch."""
    run(cluster, "patch", resource, name, "--type=merge", "-p", json.dumps(change), *arguments)


def wait_until(what: str, seconds: float, holds: Callable[[], bool], details: Callable[[], str] = lambda: "") -> None:
    """Polls until `holds`; an error says what was waited for, and what `details` has to say."""
    deadline = time.monotonic() + seconds
    pause = 0.05
    while not holds():
        if time.monotonic() > deadline:
            raise ClusterError(f"waited {seconds:.0f} s in vain for {what}\n{details()}".rstrip())
        time.sleep(pause)
        pause = min(pause * 1.3, 0.5)
