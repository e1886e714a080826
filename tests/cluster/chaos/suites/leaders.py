"""Two leaders: the leader is stopped in the middle of a write, for longer than its lease; another takes over and
carries the story to its end; then the old one is woken, and its write goes out. The process must end without another
write, and that one write must change nothing in the end: it is refused for its version or its name, or it makes a child
that nobody waits for any more, which the garbage collector or the new leader takes away. Those are told in the result. A
Job among them is suspended, so it has no pod; an empty checkpoint claim, which nobody owns, may stay.
"""

import contextlib
import random
import signal
import threading

from clusterlib.errors import ClusterError

from .. import scenarios
from ..arena import Arena, Operator
from ..reference import Reference, compare, take_reference
from ..report import Result
from ..rules import WRITES, Fault, Rule
from ..scenarios import Run, Scenario

STORIES = ("preemption", "suspend and resume", "delete while running")
LEASE = "/apis/coordination.k8s.io/v1/namespaces/loadline-system/leases/loadline-operator"


def _leader(arena: Arena, operators: list[Operator]) -> Operator | None:
    """Who holds the Lease, as far as it is one of these."""
    try:
        text = arena.api.raw("GET", LEASE).decode()
    except ClusterError:
        return None
    return next((o for o in operators if o.alive() and f"_{o.pid}_" in text), None)


def _once(arena: Arena, operators: list[Operator], scenario: Scenario, reference: Reference, number: int,
          result: Result) -> bool:
    """One run in which the leader is stopped at its `number`th write. False when the story has fewer."""
    for operator in operators:
        if not operator.alive():
            operator.start()
    leader: Operator = arena.until("a leader", 60, lambda: _leader(arena, operators))
    other = next(o for o in operators if o is not leader)
    run = Run(arena)
    since = arena.recorder.catch_up()
    held = leader.proxy.add(Rule(Fault.HOLD, verbs=WRITES, namespace=run.namespace, skip=number - 1))
    stopped = threading.Event()
    problems = _play_with_a_pause(arena, leader, other, held, scenario, run, stopped)
    reached = stopped.is_set()
    if reached:
        before = len(leader.proxy.writes)
        held.released.set()
        leader.signal(signal.SIGCONT)
        try:
            arena.until("the old leader to end", 30, lambda: not leader.alive())
        except ClusterError as error:
            problems.append(str(error))
        # The process does not wait for the answer of its last write, which the server carries out all the same.
        with contextlib.suppress(ClusterError):
            arena.until("the held write to be carried out", 5, lambda: len(leader.proxy.writes) > before)
        late = [write for write in leader.writes_since(before) if write.effective]
        problems += [f"the old leader wrote on after it was woken: {write}" for write in late[1:]]
        orphans = {f"{write.request.resource}/{write.name}" for write in late[:1]}
        result.notes += [f"{scenario.name}: {write} after the story's end" for write in late[:1]]
        problems += compare(arena, other, reference, run, since, orphans)
        result.cut_points += 1
        result.faults["leader stopped in a write"] += 1
    result.diverged(f"{scenario.name}, stopped at write {number}", problems)
    leader.proxy.calm()
    arena.clear(run.namespace)
    return reached


def _play_with_a_pause(arena: Arena, leader: Operator, other: Operator, held: Rule, scenario: Scenario,
                       run: Run, stopped: threading.Event) -> list[str]:
    """Tells the story; the leader is stopped as soon as its write is held, unless the story ended with that very write
    and nobody waits for more. A process that ends, as one does that could not renew its lease on a busy machine, is
    started again, as a kubelet would."""
    ended = threading.Event()

    def keep() -> None:
        while not ended.wait(0.005):
            if held.hits > 0 and not stopped.is_set():
                leader.signal(signal.SIGSTOP)
                stopped.set()
            for operator in (other,) if stopped.is_set() else (leader, other):
                if not operator.alive():
                    operator.start()

    keeper = threading.Thread(target=keep, daemon=True)
    keeper.start()
    try:
        scenario.play(run)
    except ClusterError as error:
        return [str(error)]
    finally:
        ended.set()
        keeper.join()
    return []


def run(arena: Arena, limit: int | None, only: str) -> Result:
    """The suite. With a `limit` one story is drawn, and half so many cut points: each waits for a lease to run out."""
    result = Result("two leaders")
    dice = random.Random(arena.seed)
    names = [name for name in STORIES if only in name]
    if limit is not None:
        names = dice.sample(names, min(1, len(names)))
    with arena.running_operator(True, "operator-a") as a, arena.running_operator(True, "operator-b") as b:
        for name in names:
            scenario = scenarios.by_name(name)
            leader = arena.until("a leader", 60, lambda: _leader(arena, [a, b]))
            reference, problems = take_reference(arena, leader, scenario)
            result.diverged(f"{name}, undisturbed", problems)
            result.scenarios += 1
            if limit is not None:
                for number in dice.sample(range(1, reference.writes + 1), max(1, limit // 2)):
                    print(f"  {name}: stopped at write {number}", flush=True)
                    _once(arena, [a, b], scenario, reference, number, result)
                continue
            number = 1
            while _once(arena, [a, b], scenario, reference, number, result):
                number += 1
            print(f"  {name}: {number - 1} cut points", flush=True)
    return result.finish()
