"""What befalls nodes, played as the cloud, the kubelet and the controllers would do it.

The pods of a node that is gone are let go of first (annotation loadline.dev/fake-lost): kwok would go on playing them,
and a pod would complete on a node that no longer exists.
"""

from collections.abc import Callable
from typing import Any

from . import fleet, kubectl
from .errors import ClusterError
from .state import Cluster

_LOST = "loadline.dev/fake-lost"
_SHUTDOWN = "loadline.dev/fake-shutdown"
_READY = "loadline.dev/fake-ready"


def _living_pods(cluster: Cluster, node: str) -> list[dict[str, Any]]:
    """The node's pods that have not ended: the others have nothing left to be played."""
    listed = kubectl.get(cluster, "pods", "--all-namespaces", f"--field-selector=spec.nodeName={node}")
    return [pod for pod in listed["items"] if pod["status"].get("phase") not in ("Succeeded", "Failed")]


def _annotate_pods(cluster: Cluster, pods: list[dict[str, Any]], annotation: str) -> None:
    for pod in pods:
        namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
        kubectl.run(cluster, "annotate", "--overwrite", "--namespace", namespace, "pod", name, f"{annotation}=true")


def _require(cluster: Cluster, node: str) -> dict[str, Any]:
    return kubectl.get(cluster, "node", node)


def _not_held(cluster: Cluster, node: str) -> list[dict[str, Any]]:
    return [
        pod
        for pod in _living_pods(cluster, node)
        if pod["metadata"].get("annotations", {}).get(_LOST) != "held"  # held already: the node was lost before
    ]


def _let_go(cluster: Cluster, node: str) -> None:
    """Nothing plays this node's pods any more once this returns."""
    _annotate_pods(cluster, _not_held(cluster, node), _LOST)
    kubectl.wait_until(f"the pods of {node} to be let go of", 20, lambda: not _not_held(cluster, node))


def lose(cluster: Cluster, node: str) -> str:
    """sudden loss: the machine stops answering; the Node object stays until a cloud would delete it"""
    _require(cluster, node)
    _let_go(cluster, node)
    kubectl.run(cluster, "label", "node", node, f"{fleet.MANAGED_LABEL}-")
    return f"{node} no longer sends heartbeats: in about 20 s it is Unknown and tainted unreachable"


def reclaim(cluster: Cluster, node: str) -> str:
    """the cloud takes the machine and deletes the Node object without a word; pod GC does the rest"""
    _require(cluster, node)
    _let_go(cluster, node)
    kubectl.run(cluster, "delete", "node", node, "--wait=true")
    return f"{node} is gone: pod garbage collection fails its pods within a minute"


def notice(cluster: Cluster, node: str) -> str:
    """reclaim notice: the platform's taint, then the kubelet shuts down and fails its pods (TerminationByKubelet)"""
    provider_name = _require(cluster, node)["metadata"]["annotations"].get(fleet.PROVIDER_ANNOTATION, "bare")
    sign = fleet.provider(provider_name)["notice"]
    if sign == "cordon":
        kubectl.run(cluster, "cordon", node)
    else:
        taint(cluster, node, f"{sign['key']}:{sign['effect']}")
    _annotate_pods(cluster, _living_pods(cluster, node), _SHUTDOWN)
    kubectl.wait_until(f"the pods of {node} to end", 150, lambda: not _living_pods(cluster, node))
    notready(cluster, node)
    return f"{node} had its notice: its pods are failed with TerminationByKubelet and it is not ready"


def notready(cluster: Cluster, node: str) -> str:
    """its kubelet reports Ready False; its pods run on"""
    _require(cluster, node)
    kubectl.run(cluster, "annotate", "node", node, "--overwrite", f"{_READY}=False")
    _wait_ready_is(cluster, node, "False")
    return f"{node} is not ready"


def recover(cluster: Cluster, node: str) -> str:
    """undoes notready and lose (pods let go of stay so)"""
    _require(cluster, node)
    kubectl.run(cluster, "annotate", "node", node, f"{_READY}-")
    kubectl.run(cluster, "label", "node", node, "--overwrite", f"{fleet.MANAGED_LABEL}=fake")
    _wait_ready_is(cluster, node, "True")
    return f"{node} is ready"


def taint(cluster: Cluster, node: str, *taints: str) -> str:
    """adds KEY=VALUE:EFFECT, or removes KEY-"""
    if not taints:
        raise ClusterError("taint needs KEY=VALUE:EFFECT, or KEY- to take one away")
    kubectl.run(cluster, "taint", "node", node, "--overwrite", *taints)
    return f"{node}: taint {' '.join(taints)}"


def _wait_ready_is(cluster: Cluster, node: str, status: str) -> None:
    def holds() -> bool:
        conditions = kubectl.get(cluster, "node", node)["status"]["conditions"]
        return any(condition["type"] == "Ready" and condition["status"] == status for condition in conditions)

    kubectl.wait_until(f"{node} to report Ready {status}", 30, holds)


STORIES: dict[str, Callable[..., str]] = {
    "lose": lose,
    "reclaim": reclaim,
    "notice": notice,
    "notready": notready,
    "recover": recover,
    "taint": taint,
}


def help_lines() -> list[str]:
    """Each story in a line."""
    return [f"{name}: {story.__doc__}" for name, story in STORIES.items()]
