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


def _pods(cluster: Cluster, node: str) -> list[dict[str, Any]]:
    listed = kubectl.get(cluster, "pods", "--all-namespaces", f"--field-selector=spec.nodeName={node}")
    pods: list[dict[str, Any]] = listed["items"]
    return pods


def _is_terminal(pod: dict[str, Any]) -> bool:
    return pod["status"].get("phase") in ("Succeeded", "Failed")


def _annotate_pods(cluster: Cluster, node: str, annotation: str) -> None:
    kubectl.run(
        cluster,
        *("annotate", "pods", "--all-namespaces", "--overwrite", f"--field-selector=spec.nodeName={node}"),
        f"{annotation}=true",
    )


def _require(cluster: Cluster, node: str) -> dict[str, Any]:
    return kubectl.get(cluster, "node", node)


def _let_go(cluster: Cluster, node: str) -> None:
    """Nothing plays this node's pods any more once this returns."""
    if not _pods(cluster, node):
        return
    _annotate_pods(cluster, node, _LOST)

    def all_held() -> bool:
        return all(pod["metadata"].get("annotations", {}).get(_LOST) == "held" for pod in _pods(cluster, node))

    kubectl.wait_until(f"the pods of {node} to be let go of", 20, all_held)


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
    if _pods(cluster, node):
        _annotate_pods(cluster, node, _SHUTDOWN)

    def all_ended() -> bool:
        return all(_is_terminal(pod) for pod in _pods(cluster, node))

    kubectl.wait_until(f"the pods of {node} to end", 150, all_ended)
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
