"""Stale and skip: what the process believes is older than the truth.

Stale: at a moment of a story one resource is frozen, for lists and watches alike, as on an API server that fell
behind; the process restarts on that old view, and sees the truth some seconds later. Skip: the events of one resource
are held while things happen, and then only the last state of each object is shown. Whatever is decided meanwhile must
do no harm: the end is that of an undisturbed run, and no child is made or removed that would not have been.
"""

import itertools
import random
import threading

from .. import scenarios
from ..arena import Arena, Operator
from ..reference import Reference, compare, play, take_reference
from ..report import Result
from ..scenarios import Run, Scenario

WATCHED = (
    "trainingjobs", "gpupools", "placementpolicies", "namespaces", "nodes", "pods", "jobs", "services", "configmaps",
    "persistentvolumeclaims", "persistentvolumes",
)
STORIES = ("preemption", "suspend and resume", "delete while running", "deleted and made anew under its name")
BLIND_SECONDS = 3.0


def _stale(arena: Arena, operator: Operator, run: Run, resource: str) -> None:
    """Arms a run: the view freezes while all is well, and the process restarts on it when it no longer is."""
    proxy = operator.proxy

    def freeze() -> None:
        proxy.valve(resource).close()
        proxy.freeze_lists(resource, lambda target: arena.api.raw("GET", target))

    def restart() -> None:
        operator.restart()
        threading.Timer(BLIND_SECONDS, thaw).start()

    def thaw() -> None:
        proxy.thaw_lists()
        proxy.valve(resource).open()

    run.on_running, run.on_struck = freeze, restart


def _skip(_: Arena, operator: Operator, run: Run, resource: str) -> None:
    """Arms a run: what happens is seen only as what has come of it."""
    valve = operator.proxy.valve(resource)
    run.on_running = valve.close
    run.on_struck = lambda: threading.Timer(BLIND_SECONDS, valve.open, [True]).start()


_WAYS = {"stale": _stale, "skip": _skip}


def _once(arena: Arena, operator: Operator, scenario: Scenario, reference: Reference, way: str, resource: str,
          result: Result) -> None:
    run = Run(arena)
    since = arena.recorder.catch_up()
    _WAYS[way](arena, operator, run, resource)
    problems = play(arena, operator, scenario, run)
    operator.proxy.thaw_lists()
    operator.proxy.valve(resource).open()
    problems += compare(arena, operator, reference, run, since)
    result.cut_points += 1
    result.faults[f"{way} watch"] += 1
    result.diverged(f"{scenario.name}, {way} {resource}", problems)
    arena.clear(run.namespace)


def run(arena: Arena, limit: int | None, only: str) -> Result:
    """The suite. With a `limit` so many cases are drawn."""
    result = Result("stale, skip")
    cases = list(itertools.product([name for name in STORIES if only in name], _WAYS, WATCHED))
    if limit is not None:
        cases = random.Random(arena.seed).sample(cases, min(limit, len(cases)))
    references: dict[str, Reference] = {}
    with arena.running_operator() as operator:
        for name, way, resource in cases:
            scenario = scenarios.by_name(name)
            if name not in references:
                references[name], problems = take_reference(arena, operator, scenario)
                result.diverged(f"{name}, undisturbed", problems)
                result.scenarios += 1
            print(f"  {name}: {way} {resource}", flush=True)
            _once(arena, operator, scenario, references[name], way, resource, result)
        result.faults["coalesced events"] = sum(operator.proxy.valve(name).coalesced for name in WATCHED)
    return result.finish()
