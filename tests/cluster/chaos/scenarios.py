"""Stories of TrainingJobs: what users, the cloud and the cluster do. Each ends in a state that does not move."""

import dataclasses
from collections.abc import Callable
from typing import Any

from .api import Object, Refused
from .arena import Arena
from .invariants import attempts, finished


def training_job(
    namespace: str, name: str = "llama", gpus: int = 8, durations: str = "1", **played: str
) -> Object:
    """Full fine-tuning of an 8B model. `durations` are seconds by attempt; `played` is more of what pod.yaml lists."""
    annotations = {"loadline.dev/fake-duration-seconds": durations}
    annotations |= {f"loadline.dev/fake-{key.replace('_', '-')}": value for key, value in played.items()}
    return {
        "apiVersion": "loadline.dev/v1alpha1",
        "kind": "TrainingJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "model": {"preset": "llama-3.1-8b"},
            "training": {
                "framework": "torchtitan",
                "method": "full",
                "sequenceLength": 4096,
                "globalBatchSize": 64,
                "activationCheckpointing": "full",
                "loss": "chunked",
                "tokens": 1.0e9,
            },
            "gpus": {"count": gpus},
            # Not auto: the best interval follows from rates of interruption, which are learned from run to run.
            "checkpoint": {
                "interval": "10m",
                "volume": {"storageClassName": "fast-rwx", "accessModes": ["ReadWriteMany"]},
            },
            "restart": {"backoff": "1s"},
            "template": {
                "metadata": {"annotations": annotations},
                "spec": {"containers": [{"name": "trainer", "image": "registry.example.com/train"}]},
            },
        },
    }


def _nothing() -> None:
    """What a suite does at a moment of a story, unless it has something in mind."""


class Run:
    """One telling of a story, in a namespace of its own."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self.api = arena.api
        self.namespace = arena.namespace()
        self.on_running: Callable[[], None] = _nothing  # everything is well, and something is about to happen
        self.on_struck: Callable[[], None] = _nothing  # it has just happened

    def apply(self, job: Object) -> None:
        """Creates a job; on a busy machine the webhook may ask for patience."""

        def created() -> bool:
            try:
                self.api.create("trainingjobs", job)
            except Refused as refused:
                if refused.status < 500:
                    raise
                return False
            return True

        self.arena.until(f"{job['metadata']['name']} to be created", 60, created)

    def edit(self, change: Object, name: str = "llama") -> None:
        """Changes a job's spec."""
        self.api.patch("trainingjobs", name, {"spec": change}, self.namespace)

    def status(self, name: str = "llama") -> dict[str, Any]:
        """What its status says."""
        told: dict[str, Any] = self.arena.job(self.namespace, name).get("status", {})
        return told

    def wait(self, what: str, holds: Callable[[Object], bool], name: str = "llama", seconds: float = 180) -> None:
        """Until the job is as `holds` says."""
        self.arena.until(
            f"{name} in {self.namespace} {what} (is {self.status(name).get('phase')})", seconds,
            lambda: (job := self.arena.job(self.namespace, name)) and holds(job),
        )

    def wait_running(self, attempt: int = 1, name: str = "llama") -> None:
        """Until all pods of this attempt run."""
        self.wait(f"to run attempt {attempt}", lambda job: _runs(job, attempt), name)

    def wait_finished(self, name: str = "llama") -> None:
        """Until it has succeeded or failed."""
        self.wait("to end", finished, name)

    def wait_phase(self, phase: str, name: str = "llama") -> None:
        """Until the STATUS column says so."""
        self.wait(f"to be {phase}", lambda job: job.get("status", {}).get("phase") == phase, name)

    def wait_gone(self, name: str = "llama") -> None:
        """Until neither it nor a child of it is there."""
        kinds = ("trainingjobs", "jobs", "pods", "services", "persistentvolumeclaims")
        self.arena.until(f"{name} to be gone", 180, lambda: not any(self.api.list(k, self.namespace) for k in kinds))

    def reclaim_spot_nodes(self) -> None:
        """All of them, the idle one first, so that nothing of the pool is left when the gang loses its own."""
        self.on_running()
        used = self.node()
        for node in sorted(self.arena.nodes_of("a100-spot"), key=lambda node: node == used):
            self.arena.reclaim(node)
        self.on_struck()

    def node(self, name: str = "llama") -> str:
        """Where the job's first pod runs."""
        return self.arena.node_of(self.namespace, name)


def _runs(job: Object, attempt: int) -> bool:
    told = attempts(job)
    return bool(told) and told[-1]["number"] >= attempt and "runningTime" in told[-1]


@dataclasses.dataclass(frozen=True)
class Scenario:
    """A story; its docstring is the name under which it is reported."""

    play: Callable[[Run], None]

    @property
    def name(self) -> str:
        """For people."""
        return (self.play.__doc__ or "").rstrip(".")


def _plain(run: Run) -> None:
    """plain run"""
    run.apply(training_job(run.namespace))
    run.wait_finished()


def _preemption(run: Run) -> None:
    """preemption"""
    run.apply(training_job(run.namespace, durations="forever|1"))
    run.wait_running()
    run.reclaim_spot_nodes()
    run.wait_finished()


def _suspension(run: Run) -> None:
    """suspend and resume"""
    run.apply(training_job(run.namespace, durations="forever|1"))
    run.wait_running()
    run.on_running()
    run.edit({"suspend": True})
    run.on_struck()
    run.wait_phase("Suspended")
    run.arena.until("its pods to end", 180, lambda: not run.api.list("pods", run.namespace))
    run.edit({"suspend": False})
    run.wait_finished()


def _deletion(run: Run) -> None:
    """delete while running"""
    job = training_job(run.namespace, durations="forever")
    job["spec"]["checkpoint"]["volume"]["retain"] = "Delete"
    run.apply(job)
    run.wait_running()
    run.on_running()
    run.api.delete("trainingjobs", "llama", run.namespace)
    run.on_struck()
    run.wait_gone()


def _renewal(run: Run) -> None:
    """deleted and made anew under its name"""
    job = training_job(run.namespace, durations="forever", stop_seconds="2")
    del job["spec"]["checkpoint"]
    job["spec"]["placement"] = {"capacityType": "on-demand"}
    run.apply(job)
    run.wait_running()
    run.on_running()
    run.api.delete("trainingjobs", "llama", run.namespace)
    run.arena.until("the first to go", 180, lambda: not run.arena.job(run.namespace, "llama"))
    job["spec"]["template"]["metadata"]["annotations"]["loadline.dev/fake-duration-seconds"] = "1"
    run.apply(job)
    run.on_struck()
    run.wait_finished()


def _failure(run: Run) -> None:
    """failure and retry"""
    run.apply(training_job(run.namespace, durations="1", exit_code="1|0", exit_message="ValueError: bad sample 17|"))
    run.wait_finished()


def _policy(run: Run) -> None:
    """policy change"""
    run.apply(training_job(run.namespace, durations="forever|1"))
    run.wait_running()
    run.api.create("placementpolicies", {
        "apiVersion": "loadline.dev/v1alpha1",
        "kind": "PlacementPolicy",
        "metadata": {"name": run.namespace},
        "spec": {"selector": {"namespaces": [run.namespace]}, "deny": {"pools": ["a100-spot"]}},
    })
    try:
        run.arena.reclaim(run.node())
        run.wait_finished()
    finally:
        run.api.delete("placementpolicies", run.namespace)


def _race(run: Run) -> None:
    """two jobs racing for one pool"""
    for name in ("first", "other"):
        job = training_job(run.namespace, name, gpus=16, durations="2")
        job["spec"]["placement"] = {"pools": ["a100-spot"]}
        run.apply(job)
    for name in ("first", "other"):
        run.wait_finished(name)


def _pinned(run: Run) -> None:
    """volume pinned to a zone"""
    job = training_job(run.namespace, durations="forever|1")
    job["spec"]["placement"] = {"pools": ["a100-spot", "h100"]}
    run.apply(job)
    run.wait_running()
    run.reclaim_spot_nodes()
    run.wait_phase("Waiting")
    run.arena.restore_nodes()
    run.wait_finished()


SCENARIOS = tuple(
    Scenario(play)
    for play in (_plain, _preemption, _suspension, _deletion, _renewal, _failure, _policy, _race, _pinned)
)


def by_name(name: str) -> Scenario:
    """The story of that name."""
    return next(scenario for scenario in SCENARIOS if scenario.name == name)
