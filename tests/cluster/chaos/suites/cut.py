"""Cut: the process dies at each single write of a story, and starts again. The end must be that of an undisturbed run,
with no child made twice, and no invariant broken on the way.

Three ways for each write: the process dies after it has the answer; it dies before the answer comes; it lives, and only
the answer is lost. Cut points are counted, not chosen: the number goes up until a story ends before its cut is reached.
"""

import random

from ..arena import Arena, Operator, is_job_write
from ..proxy import Write
from ..reference import Reference, compare, play, take_reference, wait_quiet
from ..report import Result
from ..rules import WRITES, Fault, Rule
from ..scenarios import SCENARIOS, Run, Scenario

WAYS = ("after", "before its answer", "answer lost")


def cut_once(arena: Arena, operator: Operator, scenario: Scenario, reference: Reference, way: str, number: int,
             result: Result) -> bool:
    """One run with one cut. False when the story ended before its cut."""
    run = Run(arena)
    since = arena.recorder.catch_up()
    operator.proxy.calm()

    def counts(write: Write) -> bool:
        return is_job_write(write) and write.request.namespace == run.namespace

    if way == "answer lost":
        rule = operator.proxy.add(Rule(Fault.DROP_AFTER, verbs=WRITES, namespace=run.namespace, skip=number - 1))
        problems = play(arena, operator, scenario, run)
        reached = rule.hits > 0
        result.faults[Fault.DROP_AFTER.value] += rule.hits
    else:
        cut = operator.cut_at(number, way == "before its answer", counts)
        problems = play(arena, operator, scenario, run)
        # The story is told when its end can be seen; the operator may still have something to write.
        wait_quiet(arena, operator, 0.5)
        reached = cut.done.is_set()
        if reached:
            arena.until("the operator to be back", 20, operator.alive)
        operator.proxy.cut = None
        cut.done.set()
        result.faults[f"killed {way}"] += int(reached)
    operator.proxy.calm()
    if reached or problems:
        problems += compare(arena, operator, reference, run, since)
        result.diverged(f"{scenario.name}, {way}, write {number}", problems)
        result.cut_points += int(reached)
    if not operator.alive():
        operator.start()
    arena.clear(run.namespace)
    return reached


def _reference(arena: Arena, operator: Operator, scenario: Scenario, result: Result) -> Reference:
    reference, problems = take_reference(arena, operator, scenario)
    result.diverged(f"{scenario.name}, undisturbed", problems)
    result.scenarios += 1
    print(f"  {scenario.name}: {reference.writes} writes undisturbed", flush=True)
    return reference


def run(arena: Arena, limit: int | None, only: str = "") -> Result:
    """The suite. With a `limit` so many stories are drawn, and one cut point of each; `only` names one story."""
    result = Result("cut")
    dice = random.Random(arena.seed)
    stories = [scenario for scenario in SCENARIOS if only in scenario.name]
    with arena.running_operator() as operator:
        if limit is not None:
            for scenario in dice.sample(stories, min(limit, len(stories))):
                reference = _reference(arena, operator, scenario, result)
                way, number = dice.choice(WAYS), dice.randint(1, reference.writes)
                print(f"  {scenario.name}: {way}, write {number}", flush=True)
                cut_once(arena, operator, scenario, reference, way, number, result)
            return result.finish()
        for scenario in stories:
            reference = _reference(arena, operator, scenario, result)
            for way in WAYS:
                number = 1
                while cut_once(arena, operator, scenario, reference, way, number, result):
                    number += 1
                print(f"  {scenario.name}: {way}, {number - 1} cut points", flush=True)
    return result.finish()
