"""What must hold at every step, whatever fails: a fold over the history of a cluster, in its true order."""

from collections.abc import Callable, Iterable
from typing import Any

from .api import Object
from .history import Event

JOB_UID = "loadline.dev/job-uid"
ATTEMPT = "loadline.dev/attempt"
FINALIZER = "loadline.dev/cleanup"
GPU = "nvidia.com/gpu"
# A decision may rest on a node that went a moment ago: nobody can know of it at once.
NODE_GONE_UNSEEN_SECONDS = 5.0

_COUNTERS = {
    "Preempted": "preemptions",
    "Infrastructure": "infrastructure",
    "UserFailure": "userFailures",
    "OutOfMemory": "outOfMemory",
    "PolicyEviction": "policyEvictions",
}


def label(document: Object, name: str) -> str:
    """A label's value; empty when there is none."""
    return str(document["metadata"].get("labels", {}).get(name, ""))


def attempts(job: Object) -> list[Object]:
    """The attempts that a TrainingJob's status tells of."""
    told: list[Object] = job.get("status", {}).get("attempts", [])
    return told


def live_attempt(job: Object) -> Object | None:
    """The attempt that has no end yet."""
    newest = attempts(job)[-1:]
    return newest[0] if newest and not newest[0].get("cause") else None


def is_true(job: Object, condition: str) -> bool:
    """Whether the TrainingJob has this condition."""
    told = job.get("status", {}).get("conditions", [])
    return any(c["type"] == condition and c["status"] == "True" for c in told)


def finished(job: Object) -> bool:
    """Whether it is over for good."""
    return is_true(job, "Succeeded") or is_true(job, "Failed")


def gpus_of_pod(pod: Object) -> int:
    """What its containers request."""
    containers = pod["spec"].get("containers", [])
    return sum(int(c.get("resources", {}).get("limits", {}).get(GPU, 0)) for c in containers)


def terminal(pod: Object) -> bool:
    """Whether its containers have ended."""
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def matches(node: Object, pool: Object) -> bool:
    """Whether a node belongs to a GPUPool."""
    labels = node["metadata"].get("labels", {})
    wanted = pool["spec"].get("nodeSelector", {})
    return bool(wanted) and all(labels.get(key) == value for key, value in wanted.items())


class State:
    """The cluster between two events."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Object]] = {}  # by resource and uid
        self.gone_nodes: list[tuple[float, Object]] = []
        self.causes: dict[str, dict[int, str]] = {}  # of every attempt that ever ended, by job
        self.jobs_ever: set[str] = set()

    def all(self, resource: str) -> Iterable[Object]:
        """What exists of a resource."""
        return self.objects.get(resource, {}).values()

    def get(self, resource: str, uid: str) -> Object | None:
        """By identity."""
        return self.objects.get(resource, {}).get(uid)

    def apply(self, event: Event) -> None:
        """Takes the event in."""
        known = self.objects.setdefault(event.resource, {})
        if event.type == "DELETED":
            known.pop(event.uid, None)
            if event.resource == "nodes":
                self.gone_nodes.append((event.time, event.object))
            return
        known[event.uid] = event.object
        if event.resource == "trainingjobs":
            self.jobs_ever.add(event.uid)
            for attempt in attempts(event.object):
                if attempt.get("cause"):
                    self.causes.setdefault(event.uid, {}).setdefault(attempt["number"], attempt["cause"])


Rule = Callable[[State, Event, Object | None], str | None]


def _promises_fit(state: State, event: Event, before: Object | None) -> str | None:
    """GPUs promised never exceed what the pool has."""
    if event.resource != "trainingjobs":
        return None
    attempt, earlier = live_attempt(event.object), live_attempt(before) if before else None
    if attempt is None or (earlier is not None and earlier["number"] == attempt["number"]):
        return None
    pool = next((p for p in state.all("gpupools") if p["metadata"]["name"] == attempt["pool"]), None)
    if pool is None:
        return None
    nodes = [n for n in state.all("nodes") if matches(n, pool)]
    names = {n["metadata"]["name"] for n in nodes}
    nodes += [
        n for when, n in state.gone_nodes
        if event.time - when < NODE_GONE_UNSEEN_SECONDS and n["metadata"]["name"] not in names and matches(n, pool)
    ]
    capacity = sum(int(n["status"].get("allocatable", {}).get(GPU, 0)) for n in nodes)
    live = {job["metadata"]["uid"]: live_attempt(job) for job in state.all("trainingjobs")} | {event.uid: attempt}
    used = sum(int(a["gpus"]) for a in live.values() if a is not None and a["pool"] == attempt["pool"])
    for pod in state.all("pods"):
        mine = live.get(label(pod, JOB_UID))
        promised = mine is not None and label(pod, ATTEMPT) == str(mine["number"])
        if not promised and not terminal(pod) and pod["spec"].get("nodeName") in names:
            used += gpus_of_pod(pod)
    if used > capacity:
        return f"{used} GPUs of {attempt['pool']} are promised or held, it has {capacity}"
    return None


def _starts(event: Event, before: Object | None) -> bool:
    """Whether pods may be made for a gang from now on."""
    if event.resource != "jobs" or not label(event.object, JOB_UID):
        return False
    return not event.object["spec"].get("suspend") and (before is None or bool(before["spec"].get("suspend")))


def _gang_is_recorded_whole(state: State, event: Event, before: Object | None) -> str | None:
    """A Job is made suspended, and started as the one on record for an attempt that lives, for all of its nodes."""
    if not _starts(event, before):
        return None
    if before is None:
        return "a Job that is made running"
    owner = state.get("trainingjobs", label(event.object, JOB_UID))
    attempt = live_attempt(owner) if owner else None
    if attempt is None or str(attempt["number"]) != label(event.object, ATTEMPT):
        return "a Job without a live attempt that is recorded"
    if attempt.get("jobUID") != event.uid:
        return f"a Job that is not the one on record, {attempt.get('jobUID')}"
    spec = event.object["spec"]
    if not spec.get("completions") == spec.get("parallelism") == attempt["nodes"]:
        return f"a Job of {spec.get('parallelism')} of {spec.get('completions')} pods for {attempt['nodes']} nodes"
    return None


def _runs_only_whole(state: State, event: Event, before: Object | None) -> str | None:
    """Running is said only when every pod of the gang runs."""
    if event.resource != "trainingjobs":
        return None
    attempt = live_attempt(event.object)
    earlier = live_attempt(before) if before else None
    if attempt is None or not attempt.get("runningTime") or (earlier and earlier.get("runningTime")):
        return None
    pods = [
        pod for pod in state.all("pods")
        if label(pod, JOB_UID) == event.uid and label(pod, ATTEMPT) == str(attempt["number"])
        and pod.get("status", {}).get("phase") in ("Running", "Succeeded", "Failed")
    ]
    return None if len(pods) >= attempt["nodes"] else f"Running with {len(pods)} of {attempt['nodes']} pods"


def _one_attempt_at_a_time(state: State, event: Event, before: Object | None) -> str | None:
    """No gang starts while a pod of an earlier attempt might still write."""
    if not _starts(event, before):
        return None
    nodes = {node["metadata"]["name"] for node in state.all("nodes")}
    for pod in state.all("pods"):
        if label(pod, JOB_UID) != label(event.object, JOB_UID):
            continue
        earlier = int(label(pod, ATTEMPT) or 0) < int(label(event.object, ATTEMPT) or 0)
        if earlier and not terminal(pod) and pod["spec"].get("nodeName") in nodes:
            return f"pod {pod['metadata']['name']} of attempt {label(pod, ATTEMPT)} still runs"
    return None


def _terminal_is_sticky(_: State, event: Event, before: Object | None) -> str | None:
    """A job that has succeeded or failed stays as it is."""
    if event.resource != "trainingjobs" or before is None or not finished(before):
        return None
    same = all(is_true(before, c) == is_true(event.object, c) for c in ("Succeeded", "Failed"))
    if same and attempts(before) == attempts(event.object):
        return None
    return "a finished job goes on"


def _children_are_owned(state: State, event: Event, before: Object | None) -> str | None:
    """A child is owned by the job of its label. A checkpoint claim may outlive its job: it is only labelled."""
    if before is not None or event.resource not in ("jobs", "services", "configmaps", "persistentvolumeclaims"):
        return None
    uid = label(event.object, JOB_UID)
    if not uid:
        return None
    if uid not in state.jobs_ever:
        return "a child of a job that never was"
    owners = [o["uid"] for o in event.object["metadata"].get("ownerReferences", []) if o.get("controller")]
    wanted = [] if event.resource == "persistentvolumeclaims" else [uid]
    return None if owners == wanted else f"a child of {uid} that is owned by {owners}"


def _finalizer_comes_first(state: State, event: Event, before: Object | None) -> str | None:
    """A claim that is to go with its job is made only when the job cannot go without it."""
    if event.resource != "persistentvolumeclaims" or before is not None:
        return None
    owner = state.get("trainingjobs", label(event.object, JOB_UID))
    if owner is None:
        return None
    retain = owner["spec"].get("checkpoint", {}).get("volume", {}).get("retain", "Retain")
    if retain == "Retain" or FINALIZER in owner["metadata"].get("finalizers", []):
        return None
    return "a claim that would stay behind"


def _generation_never_falls(_: State, event: Event, before: Object | None) -> str | None:
    """observedGeneration only grows."""
    if event.resource != "trainingjobs" or before is None:
        return None
    was, now = (o.get("status", {}).get("observedGeneration", 0) for o in (before, event.object))
    return f"observedGeneration falls from {was} to {now}" if now < was else None


def _endings_count_once(state: State, event: Event, _: Object | None) -> str | None:
    """Each attempt ends once, for one cause, and is counted once; numbers grow one by one."""
    if event.resource != "trainingjobs":
        return None
    causes: dict[int, Any] = dict(state.causes.get(event.uid, {}))
    for attempt in attempts(event.object):
        number, cause = attempt["number"], attempt.get("cause")
        if number in causes and causes[number] != cause:
            return f"attempt {number} ended as {causes[number]} and then as {cause}"
        if cause:
            causes[number] = cause
    numbers = [attempt["number"] for attempt in attempts(event.object)]
    if numbers and numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        return f"attempts {numbers}"
    counted = event.object.get("status", {}).get("endings", {})
    for cause, counter in _COUNTERS.items():
        ended = sum(1 for value in causes.values() if value == cause)
        if counted and counted.get(counter, 0) != ended:
            return f"{ended} attempts ended as {cause}, {counted.get(counter, 0)} are counted"
    return None


RULES: tuple[Rule, ...] = (
    _promises_fit,
    _gang_is_recorded_whole,
    _runs_only_whole,
    _one_attempt_at_a_time,
    _terminal_is_sticky,
    _children_are_owned,
    _finalizer_comes_first,
    _generation_never_falls,
    _endings_count_once,
)


def violations(events: Iterable[Event], since: int = 0) -> list[str]:
    """What did not hold after revision `since`. The events before it tell what there was."""
    state = State()
    found = []
    for event in events:
        before = state.get(event.resource, event.uid)
        if event.revision > since and event.type != "DELETED":
            for rule in RULES:
                problem = rule(state, event, before)
                if problem:
                    what = f"{event.resource} {event.namespace}/{event.name}"
                    found.append(f"revision {event.revision}, {what}: {problem}")
        state.apply(event)
    return found
