"""Differential: whatever valid edits a job has gone through, it ends as if its last spec had been applied afresh; and
after an edit that cannot be placed is taken back, everything is as before.
"""

import copy
import random
import re
from collections.abc import Callable
from http import HTTPStatus

from .. import endstate
from ..api import Object, Refused
from ..arena import Arena
from ..report import Result
from ..scenarios import Run, training_job

SEQUENCES = 20
EDITS = 6

# Valid while the job is suspended: what each edit of a spec draws from.
_EDITS: tuple[Callable[[random.Random], Object], ...] = (
    lambda dice: {"gpus": {"count": dice.choice((8, 16))}},
    lambda dice: {"training": {"sequenceLength": dice.choice((2048, 4096, 8192))}},
    lambda dice: {"training": {"tokens": dice.choice((1.0e9, 2.0e9))}},
    lambda dice: {"placement": {"pools": dice.choice((["a100-spot"], ["a100"], ["a100", "a100-spot"]))}},
    lambda dice: {"placement": {"capacityType": dice.choice(("any", "spot", "on-demand"))}},
    lambda dice: {"placement": None},
    lambda dice: {"restart": {"maxFailures": dice.choice((1, 3, 5))}},
    lambda dice: {"activeDeadlineSeconds": dice.choice((3600, 7200))},
    lambda dice: {"memory": {"marginPercent": dice.choice((5, 10))}},
)


def _story_free(state: dict[str, object]) -> dict[str, object]:
    """The end state without how often the job was started on the way there."""
    shown = copy.deepcopy(state)
    job = shown["trainingjobs/llama"]
    assert isinstance(job, dict)
    status = job["status"]
    newest = status["attempt"]
    job["spec"].pop("suspend", None)
    status["attempts"] = [{k: a.get(k) for k in ("pool", "layout", "gpus", "nodes")} for a in status["attempts"][-1:]]
    status.pop("endings", None)
    status.pop("attempt", None)
    status["conditions"] = [c for c in status["conditions"] if c["type"] != "Suspended"]

    def neutral(value: object) -> object:
        if isinstance(value, dict):
            return {neutral(k): neutral(v) for k, v in value.items() if k != "loadline.dev/attempt"}
        if isinstance(value, list):
            return [neutral(v) for v in value]
        if isinstance(value, str):
            # A job that was on a pool says that it stays, as it does when another is better by a rounding error only, or
            # why it moved.
            text = re.sub(r"; (stays there|moved from .*)", "", value)
            text = re.sub(r"\bllama-a\d+\b", "llama-aN", text)
            return re.sub(r'(attempt"?:?) \d+', r"\1 N", text)
        return value

    out: dict[str, object] = {}
    for key, value in shown.items():
        of_attempt = re.search(r"/llama-a(\d+)\b", key)
        if of_attempt is None or int(of_attempt[1]) == newest:  # ended attempts leave a Job and a plan behind
            out[str(neutral(key))] = _without_attempt_env(neutral(value))
    return out


def _without_attempt_env(value: object) -> object:
    """A container is told its attempt's number."""
    if isinstance(value, dict):
        return {k: _without_attempt_env(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_without_attempt_env(v) for v in value
                if not (isinstance(v, dict) and v.get("name") in ("LOADLINE_ATTEMPT", "LOADLINE_RESUME_FROM"))]
    return value


def _job(run: Run) -> Object:
    """A job whose volume holds it in no zone: where the first attempt was must not decide where the last one may be."""
    job = training_job(run.namespace, durations="forever")
    job["spec"]["checkpoint"]["volume"]["storageClassName"] = "anywhere-rwx"
    return job


def _edit(run: Run, dice: random.Random) -> str:
    """One edit as a user makes it: suspend, change, resume. Sometimes in a hurry. Valid by itself, it may contradict an
    earlier one: then it is refused, and changes nothing."""
    change = dice.choice(_EDITS)(dice)
    run.edit({"suspend": True})
    if dice.random() < 0.5:
        run.wait_phase("Suspended")
    told = str(change)
    try:
        run.edit(change)
    except Refused as refused:
        if refused.status != HTTPStatus.UNPROCESSABLE_ENTITY:
            raise
        told += ", refused"
    if dice.random() < 0.5:
        run.edit({"suspend": False})
    return told


def _sequence(arena: Arena, number: int, result: Result) -> None:
    dice = random.Random(f"{arena.seed}/{number}")
    run = Run(arena)
    since = arena.recorder.catch_up()
    run.apply(_job(run))
    if dice.random() < 0.7:
        run.wait_running()
    edits = [_edit(run, dice) for _ in range(EDITS)]
    run.edit({"suspend": False})
    run.wait("to run at last", lambda job: job["status"].get("phase") == "Running"
             and job["status"].get("observedGeneration") == job["metadata"]["generation"])
    edited = _story_free(arena.end_state(run.namespace))
    spec = arena.job(run.namespace, "llama")["spec"]
    problems = arena.violations(since)
    arena.clear(run.namespace)

    fresh = Run(arena)
    fresh.apply({**_job(fresh), "spec": spec})
    fresh.wait_running()
    wanted = _story_free(arena.end_state(fresh.namespace))
    problems += endstate.difference(wanted, edited)
    arena.clear(fresh.namespace)
    result.faults["edits"] += len(edits)
    result.diverged(f"sequence {number} ({'; '.join(edits)})", problems)


def _rollback(arena: Arena, result: Result) -> None:
    """An edit that cannot be placed, and the way back."""
    run = Run(arena)
    other = training_job(run.namespace, "other", durations="forever")
    other["spec"]["placement"] = {"pools": ["h100"]}
    run.apply(other)
    run.wait_running(name="other")
    run.apply(_job(run))
    run.wait_running()
    before = _story_free(arena.end_state(run.namespace))
    run.edit({"suspend": True})
    run.wait_phase("Suspended")
    run.edit({"placement": {"pools": ["h100"]}, "suspend": False})
    run.wait_phase("Waiting")
    run.edit({"suspend": True})
    run.wait_phase("Suspended")
    run.edit({"placement": None, "suspend": False})
    run.wait_running(2)
    result.faults["bad edits taken back"] += 1
    result.diverged("rollback", endstate.difference(before, _story_free(arena.end_state(run.namespace))))
    arena.clear(run.namespace)


def run(arena: Arena, limit: int | None, only: str) -> Result:
    """The suite."""
    result = Result("differential")
    with arena.running_operator():
        for number in range(SEQUENCES if limit is None else min(limit, SEQUENCES)):
            print(f"  sequence {number}", flush=True)
            _sequence(arena, number, result)
            result.scenarios += 1
        print("  rollback", flush=True)
        _rollback(arena, result)
        result.scenarios += 1
    return result.finish()
