"""Garbage: objects that were stored while nothing checked them (no webhook, an older and laxer schema). Such a job gets
a condition that says what is wrong with it, or an Event where the API server refuses any status for it; the others go
on, and the process lives."""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from clusterlib.errors import ClusterError

from ..api import Api, Object, Refused
from ..arena import Arena
from ..report import Result
from ..scenarios import Run, training_job

_CRD = "trainingjobs.loadline.dev"
_REGISTRATIONS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")


def _set(*path: str, value: object) -> Callable[[Object], None]:
    def change(job: Object) -> None:
        for key in path[:-1]:
            job = job.setdefault(key, {})
        job[path[-1]] = value

    return change


# A name, and what is wrong. Each must be refused by a condition: none of them can be trained.
GARBAGE: dict[str, Callable[[Object], None]] = {
    "negative-gpus": _set("spec", "gpus", value={"count": -8}),
    "no-gpus": _set("spec", "gpus", value={"count": 0}),
    "huge-gpus": _set("spec", "gpus", value={"count": 9223372036854775807}),
    "half-a-gpu": _set("spec", "gpus", value={"count": 1.5}),
    "gpus-are-text": _set("spec", "gpus", value="eight"),
    "gpus-are-a-list": _set("spec", "gpus", value=[8]),
    "no-spec": lambda job: job.pop("spec"),
    "spec-is-null": _set("spec", value=None),
    "spec-is-text": _set("spec", value="train"),
    "no-model": lambda job: job["spec"].pop("model"),
    "two-models": _set("spec", "model", value={"preset": "llama-3.1-8b", "parameters": 7e9}),
    "unknown-model": _set("spec", "model", "preset", value="llama-99"),
    "negative-parameters": _set("spec", "model", value={"parameters": -1}),
    "endless-parameters": _set("spec", "model", value={"parameters": 1e308}),
    "no-template": lambda job: job["spec"].pop("template"),
    "no-containers": _set("spec", "template", value={"spec": {"containers": []}}),
    "containers-are-text": _set("spec", "template", value={"spec": {"containers": "trainer"}}),
    "negative-sequence": _set("spec", "training", "sequenceLength", value=-4096),
    "huge-sequence": _set("spec", "training", "sequenceLength", value=9223372036854775807),
    "foreign-method": _set("spec", "training", "method", value="alchemy"),
    "no-batch": _set("spec", "training", "globalBatchSize", value=0),
    "bad-backoff": _set("spec", "restart", value={"backoff": "soon"}),
    "bad-size": _set("spec", "checkpoint", value={"volume": {"size": "a lot"}}),
    "bad-interval": _set("spec", "checkpoint", value={"interval": "often"}),
}


@contextmanager
def _unchecked(api: Api) -> Iterator[None]:
    """While the body runs, everything is stored."""
    kept: list[tuple[str, Object]] = []
    for kind in _REGISTRATIONS:
        for registration in api.list(kind):
            kept.append((kind, registration))
            api.delete(kind, registration["metadata"]["name"])
    crd = api.get("customresourcedefinitions", _CRD)
    assert crd is not None
    lax = copy.deepcopy(crd)
    for version in lax["spec"]["versions"]:
        version["schema"]["openAPIV3Schema"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    api.replace("customresourcedefinitions", lax)
    try:
        yield
    finally:
        now = api.get("customresourcedefinitions", _CRD)
        assert now is not None
        now["spec"] = crd["spec"]
        api.replace("customresourcedefinitions", now)
        for kind, registration in kept:
            for key in ("resourceVersion", "uid", "creationTimestamp", "managedFields", "generation"):
                registration["metadata"].pop(key, None)
            api.create(kind, registration)


def _store(run: Run, name: str, spoil: Callable[[Object], None]) -> None:
    job = training_job(run.namespace, name)
    spoil(job)

    def stored() -> bool:  # the laxer schema takes a moment to hold
        try:
            run.apply(job)
        except Refused as refused:
            if refused.status != 409:
                return False
        return True

    run.arena.until(f"{name} to be stored", 20, stored)


def _says_why(run: Run, job: Object) -> bool:
    """A condition that is False, with words: the spec is none, or no pool can run it. Or a warning."""
    told = job.get("status", {}).get("conditions", [])
    if any(c["type"] in ("Admitted", "Placed") and c["status"] == "False" and c.get("message") for c in told):
        return True
    return any(event["regarding"].get("uid") == job["metadata"]["uid"] and event["type"] == "Warning"
               for event in run.api.list("events", run.namespace))


def run(arena: Arena, limit: int | None, only: str) -> Result:
    """The suite."""
    result = Result("garbage", scenarios=len(GARBAGE))
    with arena.running_operator() as operator:
        run = Run(arena)
        since = arena.recorder.catch_up()
        pid = operator.pid
        with _unchecked(arena.api):
            for name, spoil in GARBAGE.items():
                if only in name:
                    _store(run, name, spoil)
                    result.faults["garbage stored"] += 1
        for name in GARBAGE:
            if only in name:
                try:
                    run.wait("to say what is wrong", lambda job: _says_why(run, job), name, seconds=40)
                except ClusterError as error:  # the next ones are to be seen too
                    result.diverged(name, [str(error), str(run.status(name).get("conditions"))[:600]])
        run.apply(training_job(run.namespace, "good"))
        run.wait_finished("good")
        operator.restart()
        run.apply(training_job(run.namespace, "good-again"))
        run.wait_finished("good-again")
        children = {label for kind in ("jobs", "persistentvolumeclaims") for item in arena.api.list(kind, run.namespace)
                    if (label := item["metadata"].get("labels", {}).get("loadline.dev/job-name"))}
        result.diverged("garbage", [f"a child of {name}" for name in sorted(children - {"good", "good-again"})])
        result.diverged("garbage", [] if operator.restarts == 1 and pid else ["the process ended"])
        result.diverged("garbage", arena.violations(since))
        arena.clear(run.namespace)
    return result.finish()
