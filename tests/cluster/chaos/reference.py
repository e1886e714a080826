"""An undisturbed run of a story, and how a disturbed one compares with it."""

import dataclasses
import time
from collections.abc import Set

from clusterlib.errors import ClusterError

from . import endstate
from .arena import Arena, Operator, is_job_write
from .scenarios import Run, Scenario

SETTLE_SECONDS = 60


@dataclasses.dataclass(frozen=True)
class Reference:
    """What an undisturbed run has come to."""

    state: dict[str, object]
    made: dict[str, int]
    writes: int


def play(arena: Arena, operator: Operator, scenario: Scenario, run: Run) -> list[str]:
    """Tells the story; problems are those of the telling itself."""
    try:
        scenario.play(run)
    except ClusterError as error:
        return [str(error)]
    if not operator.alive():
        arena.until("the operator to be back", 20, operator.alive)
    return []


def take_reference(arena: Arena, operator: Operator, scenario: Scenario) -> tuple[Reference, list[str]]:
    """Tells a story with nothing in its way, until nothing is written any more."""
    run = Run(arena)
    since = arena.recorder.catch_up()
    before = len(operator.proxy.writes)
    problems = play(arena, operator, scenario, run)
    wait_quiet(arena, operator)
    problems += arena.violations(since)
    writes = [w for w in operator.writes_since(before) if w.request.namespace == run.namespace and w.effective]
    state = arena.end_state(run.namespace)
    made = endstate.creations(arena.recorder.events(since), run.namespace)
    arena.clear(run.namespace)
    return Reference(state, dict(made), len(writes)), problems


def wait_quiet(arena: Arena, operator: Operator, seconds: float = 1.5) -> None:
    """Until the operator has written nothing for a job for a while."""
    last = {"count": -1, "since": 0.0}

    def quiet() -> bool:
        count = sum(1 for write in operator.proxy.writes if is_job_write(write))
        if count != last["count"]:
            last.update(count=count, since=time.monotonic())
        return time.monotonic() - last["since"] > seconds

    arena.until("the operator to come to rest", 60, quiet)


def compare(arena: Arena, operator: Operator, reference: Reference, run: Run, since: int,
            orphans: Set[str] = frozenset()) -> list[str]:
    """How a disturbed run differs from the reference; it may take a while to get there. `orphans` are children that
    were made once more when it was too late: all that is asked is that they are gone in the end, or, of a checkpoint claim,
    which nobody owns, nothing."""
    differences: list[str] = []
    stays = {f"/{orphan}: not in the reference" for orphan in orphans if orphan.startswith("persistentvolumeclaims/")}

    def same() -> bool:
        found = endstate.difference(reference.state, arena.end_state(run.namespace))
        differences[:] = [line for line in found if line not in stays]
        return not differences

    try:
        arena.until("the end state", SETTLE_SECONDS, same)
    except ClusterError:
        pass
    wait_quiet(arena, operator, 0.5)
    problems = [f"end state: {line}" for line in differences]
    known = [" {}/{}:".format(run.namespace, orphan.partition("/")[2]) for orphan in orphans]
    problems += [line for line in arena.violations(since) if not any(name in line for name in known)]
    made = endstate.creations(arena.recorder.events(since), run.namespace)
    for child in sorted(made.keys() | reference.made.keys()):
        expected = reference.made.get(child, 0)
        if made[child] != expected and not (child in orphans and made[child] == expected + 1):
            problems.append(f"{child} was made {made[child]} times, {expected} in the reference")
    return problems
