"""Soak: one operator for a long time under random faults, with jobs coming, being suspended, deleted and preempted all
along. Its memory and open files must stay flat, no invariant may break, and nothing may be lost: in the end every job
that was left alone has run to its end, and nothing is left of those that were deleted.
"""

import pathlib
import random
import time
from http import HTTPStatus

from clusterlib.errors import ClusterError

from .api import Refused
from .arena import Arena, Operator
from .invariants import finished, terminal
from .report import Result
from .rules import READS, WRITES, Fault, Rule
from .scenarios import Run, training_job

PERIOD_SECONDS = 1.0
JOBS_AT_A_TIME = 4
# Memory is compared between the end of the first part, when every pool of memory has been filled, and the end.
WARM_UP = 1 / 4
GROWTH_PERCENT = 10
FDS_MORE = 10

_FAULTS = (
    Rule(Fault.DELAY, chance=0.05, seconds=0.5),
    Rule(Fault.ANSWER, chance=0.02, status=500),
    Rule(Fault.ANSWER, chance=0.02, status=429, seconds=1),
    Rule(Fault.DROP_BEFORE, chance=0.02),
    Rule(Fault.DROP_AFTER, verbs=WRITES, chance=0.05),
    Rule(Fault.SILENCE, verbs=READS, chance=0.001),
    Rule(Fault.RESET_MID_EVENT, chance=0.01),
    Rule(Fault.GONE_EVENT, chance=0.005),
    Rule(Fault.END, chance=0.01),
    Rule(Fault.DUPLICATE, chance=0.05),
)


def memory_and_files(pid: int) -> tuple[float, int]:
    """Resident memory in MiB, and open files."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024, len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir()))


class _Crowd:
    """Users and the cloud."""

    def __init__(self, arena: Arena, run: Run, dice: random.Random) -> None:
        self._arena = arena
        self._run = run
        self._dice = dice
        self._number = 0
        self._living: dict[str, str] = {}  # what was last done to each job
        self._left: list[str] = []  # jobs that may have left a claim, which somebody must throw away
        self.done = dict.fromkeys(
            ("jobs", "refused", "deleted", "suspended", "nodes taken", "succeeded", "failed"), 0)

    def act(self) -> None:
        """One thing happens."""
        choice = self._dice.random()
        if len(self._living) < JOBS_AT_A_TIME:
            self._apply()
        elif choice < 0.04:
            self._delete()
        elif choice < 0.12:
            self._suspend_or_resume()
        elif choice < 0.15:
            self._take_node()
        elif choice < 0.25:
            self._clean_up()
        self._see_who_is_done()

    def _apply(self) -> None:
        self._number += 1
        name = f"job-{self._number:04d}"
        durations = "|".join(str(self._dice.randint(1, 8)) for _ in range(3))
        codes = "1|0" if self._dice.random() < 0.2 else "0"
        job = training_job(self._run.namespace, name, self._dice.choice((8, 8, 16)), durations, exit_code=codes)
        job["spec"]["restart"]["maxFailures"] = 5
        if self._dice.random() < 0.5:
            job["spec"]["checkpoint"]["volume"]["retain"] = "Delete"
        try:
            self._run.apply(job)
        except Refused as refused:  # no pool has two nodes left
            if refused.status != HTTPStatus.UNPROCESSABLE_ENTITY:
                raise
            self.done["refused"] += 1
            return self._arena.restore()
        self._living[name] = "applied"
        self._left.append(name)
        self.done["jobs"] += 1

    def _delete(self) -> None:
        name = self._dice.choice(sorted(self._living))
        self._run.api.delete("trainingjobs", name, self._run.namespace)
        del self._living[name]
        self.done["deleted"] += 1

    def _suspend_or_resume(self) -> None:
        name = self._dice.choice(sorted(self._living))
        suspend = self._living[name] != "suspended"
        self._run.edit({"suspend": suspend}, name)
        self._living[name] = "suspended" if suspend else "resumed"
        self.done["suspended"] += int(suspend)

    def _take_node(self) -> None:
        nodes = self._arena.nodes_of("a100-spot") + self._arena.nodes_of("a100")
        if not nodes:  # all are taken already
            return self._arena.restore()
        self._arena.reclaim(self._dice.choice(nodes))
        self.done["nodes taken"] += 1

    def _clean_up(self) -> None:
        """The cloud brings nodes back; users throw away the checkpoints of jobs that are gone."""
        for name in [name for name in self._left if not self._arena.job(self._run.namespace, name)]:
            self._run.api.delete("persistentvolumeclaims", f"{name}-checkpoint", self._run.namespace)
            self._left.remove(name)
        self._arena.restore()

    def _see_who_is_done(self) -> None:
        for name in list(self._living):
            job = self._arena.job(self._run.namespace, name)
            if job and finished(job):
                del self._living[name]
                self.done["succeeded" if job["status"]["phase"] == "Succeeded" else "failed"] += 1
                self._run.api.delete("trainingjobs", name, self._run.namespace)

    def go_home(self) -> list[str]:
        """Everybody resumes what they suspended and waits. Gives what does not end."""
        for name, last in list(self._living.items()):
            if last == "suspended":
                self._run.edit({"suspend": False}, name)
        deadline = time.monotonic() + 600
        while self._living and time.monotonic() < deadline:
            self._clean_up()
            self._see_who_is_done()
            time.sleep(PERIOD_SECONDS)
        return [f"lost: {name}: {self._run.status(name)}" for name in self._living]


def _leftovers(arena: Arena, run: Run) -> list[str]:
    """Children of jobs that are gone."""

    def left() -> list[str]:
        found = [f"{kind}/{item['metadata']['name']}" for kind in ("jobs", "services") for item in
                 arena.api.list(kind, run.namespace)]
        return found + [f"pods/{pod['metadata']['name']}" for pod in arena.api.list("pods", run.namespace)
                        if not terminal(pod) and not pod["metadata"].get("deletionTimestamp")]

    try:
        arena.until("nothing to be left", 120, lambda: not left())
    except ClusterError:
        return [f"left over: {name}" for name in left()]
    return []


def _judge(samples: list[tuple[float, float, int]], result: Result) -> None:
    """Whether memory and files stayed flat."""
    warm = samples[int(len(samples) * WARM_UP):]
    quarter = max(1, len(warm) // 4)
    early, late = warm[:quarter], warm[-quarter:]
    rss = [sum(s[1] for s in part) / len(part) for part in (early, late)]
    files = [max(s[2] for s in part) for part in (early, late)]
    result.notes.append(
        f"resident memory {samples[0][1]:.1f} MiB at first, {rss[0]:.1f} MiB on average after a quarter of the time,"
        f" {rss[1]:.1f} MiB at the end, {max(s[1] for s in samples):.1f} MiB at most")
    result.notes.append(f"open files {samples[0][2]} at first, at most {files[0]} after a quarter of the time and"
                        f" {files[1]} at the end")
    if rss[1] > rss[0] * (1 + GROWTH_PERCENT / 100):
        result.diverged("memory", [f"grew from {rss[0]:.1f} to {rss[1]:.1f} MiB"])
    if files[1] > files[0] + FDS_MORE:
        result.diverged("files", [f"grew from {files[0]} to {files[1]}"])


def run(arena: Arena, minutes: float) -> Result:
    """The soak."""
    result = Result("soak", scenarios=1)
    dice = random.Random(arena.seed)
    with arena.running_operator() as operator:
        since = arena.recorder.catch_up()
        told = Run(arena)
        crowd = _Crowd(arena, told, dice)
        for rule in _FAULTS:
            rule.times = None
            operator.proxy.add(rule)
        samples = _live(crowd, operator, minutes, result)
        operator.proxy.calm()
        result.diverged("soak", crowd.go_home())
        result.diverged("soak", _leftovers(arena, told))
        result.diverged("soak", arena.violations(since))
        result.faults.update(operator.proxy.injected)
        result.notes.append(", ".join(f"{count} {what}" for what, count in crowd.done.items()))
        result.notes.append(f"{operator.proxy.requests} requests, {len(operator.proxy.writes)} writes")
        _judge(samples, result)
        if operator.restarts:
            result.diverged("soak", ["the process ended"])
        arena.clear(told.namespace)
    return result.finish()


def _live(crowd: _Crowd, operator: Operator, minutes: float, result: Result) -> list[tuple[float, float, int]]:
    """Lets things happen for so long; samples of time, memory and files."""
    begun, told, samples = time.monotonic(), 0.0, []
    while (passed := time.monotonic() - begun) < minutes * 60:
        if not operator.alive():
            result.diverged("soak", ["the process ended"])
            break
        crowd.act()
        samples.append((passed, *memory_and_files(operator.pid)))
        if passed - told >= 60:
            told = passed
            print(f"  {passed / 60:.0f} of {minutes:.0f} min: {samples[-1][1]:.1f} MiB, {samples[-1][2]} files,"
                  f" {sum(operator.proxy.injected.values())} faults, {crowd.done}", flush=True)
        time.sleep(PERIOD_SECONDS)
    return samples
