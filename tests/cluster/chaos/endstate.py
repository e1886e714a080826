"""What a namespace has come to, in a form in which two runs of the same story are equal.

The masks are all here: what may differ between two runs that went alike (identities, times, node names, the random
ends of pods' names, and expectations that rest on what pools have gone through), and nothing else.
"""

import collections
import json
import re
from collections.abc import Iterable

from .api import Api, Object
from .history import Event

RESOURCES = ("trainingjobs", "jobs", "services", "configmaps", "persistentvolumeclaims", "pods")

# Keys that tell one run from another, wherever they stand.
_MASKED_KEYS = frozenset({
    "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "generation", "managedFields", "selfLink",
    "lastTransitionTime", "lastProbeTime", "startTime", "runningTime", "endTime", "completionTime", "updated",
    "jobUID", "loadline.dev/job-uid", "batch.kubernetes.io/controller-uid", "controller-uid",
    "observedGeneration",
    # Expectations rest on rates of interruption, which are learned from run to run.
    "expectedCost", "expectedHours", "expectedInterruptions",
    # What was free at the time counts the pods of the story before, which may still have been going.
    "freeGPUs",
    "clusterIP", "clusterIPs", "volumeName", "volume.kubernetes.io/selected-node", "nodeName",
})
# Of a Kubernetes Job's own status only its verdict counts; a pod is told by its gang, its rank and how it ended.
_TEXT_MASKS = (
    (re.compile(r"\b([a-z0-9-]+-a\d+-\d+)-[a-z0-9]{5}\b"), r"\1"),  # a pod's random end
    (re.compile(r"\b(a100-spot|a100|h100)-\d+\b"), r"\1-N"),  # a node's number
    (re.compile(r"\b(fast|anywhere)-rwx(-us-central1-[ab])?-\d+\b"), r"\1-rwx\2"),  # one of several equal volumes
    (re.compile(r"\d+(\.\d+)? (d|h|min|s|USD|interruptions)\b"), r"N \2"),  # rates of interruption are learned
    (re.compile(r"x \d+\.\d+ for checkpoints"), "x N for checkpoints"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "TIME"),
)


def masked(value: object, namespace: str) -> object:
    """The value without what tells one run from another."""
    if isinstance(value, dict):
        return {key: masked(child, namespace) for key, child in value.items() if key not in _MASKED_KEYS}
    if isinstance(value, list):
        return [masked(child, namespace) for child in value]
    if isinstance(value, str):
        text = value.replace(namespace, "NAMESPACE")
        for pattern, replacement in _TEXT_MASKS:
            text = pattern.sub(replacement, text)
        return text
    return value


def _verdict(job: Object) -> list[str]:
    told = job.get("status", {}).get("conditions", [])
    return sorted(c["type"] for c in told if c["status"] == "True")


def _shown(resource: str, item: Object) -> tuple[str, Object] | None:
    """Its name and what counts of it; nothing for what does not."""
    name = item["metadata"]["name"]
    if resource == "pods":
        # A pod on its way out is the kubelet's and the garbage collector's business.
        if item["metadata"].get("deletionTimestamp"):
            return None
        return name.rpartition("-")[0], {"phase": item.get("status", {}).get("phase")}
    if resource == "configmaps" and name == "kube-root-ca.crt":
        return None
    if resource == "jobs":
        if item["metadata"].get("deletionTimestamp"):
            return None
        return name, {"spec": item["spec"], "labels": item["metadata"].get("labels"), "verdict": _verdict(item)}
    return name, item


def take(api: Api, namespace: str) -> dict[str, object]:
    """Everything that a user of the namespace could tell apart."""
    state: dict[str, object] = {}
    for resource in RESOURCES:
        for item in api.list(resource, namespace):
            shown = _shown(resource, item)
            if shown:
                state[f"{resource}/{shown[0]}"] = masked(shown[1], namespace)
    return state


def difference(reference: object, other: object, path: str = "") -> list[str]:
    """Each place where two states differ, in a line."""
    if isinstance(reference, dict) and isinstance(other, dict):
        lines = []
        for key in sorted(reference.keys() | other.keys()):
            if key not in reference or key not in other:
                where = "only in the reference" if key in reference else "not in the reference"
                lines.append(f"{path}/{key}: {where}")
            else:
                lines += difference(reference[key], other[key], f"{path}/{key}")
        return lines
    if isinstance(reference, list) and isinstance(other, list) and len(reference) == len(other):
        return [line for number, pair in enumerate(zip(reference, other))
                for line in difference(*pair, f"{path}/{number}")]
    if reference == other:
        return []
    return [f"{path}: {json.dumps(reference)[:300]} in the reference, {json.dumps(other)[:300]} here"]


def creations(events: Iterable[Event], namespace: str) -> collections.Counter[str]:
    """How often each child was made. Pods are told by their Job and rank."""
    made: collections.Counter[str] = collections.Counter()
    for event in events:
        if event.type == "ADDED" and event.namespace == namespace and event.resource in RESOURCES:
            name = event.name.rpartition("-")[0] if event.resource == "pods" else event.name
            made[f"{event.resource}/{name}"] += 1
    return made
