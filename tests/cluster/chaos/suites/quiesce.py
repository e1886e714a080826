"""Quiesce: jobs in every state they can rest in are looked at again and again, and nothing is written: not by time,
not after every watch was lost, not after every watch has expired, not after a restart."""

import time

from ..arena import Arena, Operator
from ..report import Result
from ..rules import Fault, Rule
from ..scenarios import Run, training_job

# Longer than any period at which a job is looked at without cause (30 s while it runs, 60 s while it waits).
PATIENCE_SECONDS = 65


def _settle_jobs(run: Run) -> dict[str, str]:
    """Jobs and the phases they come to rest in."""
    resting = {}

    def apply(name: str, phase: str, change: dict[str, object], **played: str) -> None:
        job = training_job(run.namespace, name, **{"durations": "forever"} | played)  # type: ignore[arg-type]
        job["spec"] |= change
        run.apply(job)
        run.wait_phase(phase, name)
        resting[name] = phase

    apply("running", "Running", {"placement": {"pools": ["h100"]}})
    apply("waiting", "Waiting", {"placement": {"pools": ["h100"]}})
    apply("suspended", "Suspended", {"suspend": True})
    apply("succeeded", "Succeeded", {}, durations="1")
    apply("failed", "Failed", {"restart": {"maxFailures": 1}}, durations="1", exit_code="1")
    return resting


def _watch_quiet(operator: Operator, what: str, seconds: float, result: Result) -> None:
    before = len(operator.proxy.writes)
    time.sleep(seconds)
    written = operator.writes_since(before)
    result.diverged(what, [f"{len(written)} writes: {'; '.join(map(str, written[:5]))}"] if written else [])
    print(f"  {what}: {len(written)} writes in {seconds:.0f} s", flush=True)


def run(arena: Arena, limit: int | None, only: str) -> Result:
    """The suite."""
    result = Result("quiesce", scenarios=1)
    if only not in "quiesce":
        return result.finish()
    with arena.running_operator() as operator:
        run = Run(arena)
        since = arena.recorder.catch_up()
        _settle_jobs(run)
        time.sleep(5)  # pools gather what changed for two seconds before they write
        _watch_quiet(operator, "settled", PATIENCE_SECONDS if limit is None else 35, result)
        operator.proxy.reset_connections()
        result.faults["every connection reset"] += 1
        _watch_quiet(operator, "every watch was lost", 10, result)
        rule = operator.proxy.add(Rule(Fault.GONE_EVENT, verbs=frozenset({"watch"}), times=None))
        run.api.patch("namespaces", run.namespace, {"metadata": {"annotations": {"chaos": "touched"}}})
        for resource, name in (("trainingjobs", "running"), ("jobs", "running-a1")):
            run.api.patch(resource, name, {"metadata": {"annotations": {"chaos": "touched"}}}, run.namespace)
        _watch_quiet(operator, "watches expired", 10, result)
        result.faults[Fault.GONE_EVENT.value] += rule.hits
        operator.proxy.calm()
        operator.restart()
        result.faults["killed"] += 1
        _watch_quiet(operator, "restarted", 10, result)
        result.diverged("quiesce", arena.violations(since))
        arena.clear(run.namespace)
    return result.finish()
