"""Each invariant is broken by some history, and none by a proper one."""

import copy
import unittest

from chaos.api import Object
from chaos.endstate import difference, masked
from chaos.history import Event
from chaos.invariants import violations

LABELS = {"loadline.dev/job-uid": "u1", "loadline.dev/attempt": "1"}
OWNER = [{"uid": "u1", "controller": True}]


def node(name: str) -> Object:
    return {"metadata": {"name": name, "uid": name, "labels": {"pool": "spot"}},
            "status": {"allocatable": {"nvidia.com/gpu": "8"}}}


def pool() -> Object:
    return {"metadata": {"name": "spot", "uid": "pool"}, "spec": {"nodeSelector": {"pool": "spot"}}}


def job(uid: str = "u1", *attempts: Object, endings: Object | None = None, **status: object) -> Object:
    told = {"attempts": list(attempts), "observedGeneration": 1, **({"endings": endings} if endings else {}), **status}
    return {"metadata": {"name": uid, "namespace": "team", "uid": uid}, "spec": {}, "status": told}


def attempt(number: int = 1, gpus: int = 8, **more: object) -> Object:
    return {"number": number, "pool": "spot", "gpus": gpus, "nodes": gpus // 8, **more}


def child(name: str, labels: Object | None = None, owners: object = None, **spec: object) -> Object:
    return {"metadata": {"name": name, "namespace": "team", "uid": name, "labels": LABELS if labels is None else labels,
                         "ownerReferences": OWNER if owners is None else owners}, "spec": spec}


def pod(name: str, number: int = 1, phase: str = "Running") -> Object:
    made = child(name, {**LABELS, "loadline.dev/attempt": str(number)}, nodeName="n0",
                 containers=[{"resources": {"limits": {"nvidia.com/gpu": "8"}}}])
    return made | {"status": {"phase": phase}}


def history(*steps: tuple[str, str, Object]) -> list[Event]:
    """Events in this order, a second apart."""
    return [Event(number, kind, resource, copy.deepcopy(document), float(number))
            for number, (kind, resource, document) in enumerate(steps, 1)]


def gang(number: int = 1) -> tuple[tuple[str, str, Object], ...]:
    """A Job is made, and started."""
    labels = {**LABELS, "loadline.dev/attempt": str(number)}
    made, started = (child(f"a{number}", labels, completions=1, parallelism=1, suspend=s) for s in (True, False))
    return ("ADDED", "jobs", made), ("MODIFIED", "jobs", started)


START = (("ADDED", "nodes", node("n0")), ("ADDED", "gpupools", pool()), ("ADDED", "trainingjobs", job()))
LIVE = ("MODIFIED", "trainingjobs", job("u1", attempt(jobUID="a1")))
ENDED = job("u1", attempt(cause="Preempted"), endings={"preemptions": 1})
OVER = [{"type": "Succeeded", "status": "True"}]


class InvariantsTest(unittest.TestCase):
    def broken(self, *steps: tuple[str, str, Object]) -> str:
        found = violations(history(*START, *steps))
        self.assertLessEqual(len(found), 1, found)
        return found[0] if found else ""

    def test_hold_for_a_preemption(self) -> None:
        second = attempt(2, jobUID="a2")
        self.assertEqual("", self.broken(
            LIVE, *gang(), ("ADDED", "pods", pod("p1")),
            ("MODIFIED", "trainingjobs", job("u1", attempt(runningTime="now"))),
            ("DELETED", "nodes", node("n0")), ("MODIFIED", "trainingjobs", ENDED), ("ADDED", "nodes", node("n1")),
            ("MODIFIED", "trainingjobs", job("u1", attempt(cause="Preempted"), second, endings={"preemptions": 1})),
            *gang(2), ("ADDED", "pods", pod("p2", 2)),
            ("MODIFIED", "trainingjobs", job("u1", attempt(cause="Preempted"), second | {"runningTime": "now"},
                                             endings={"preemptions": 1})),
        ))

    def test_more_gpus_promised_than_there_are(self) -> None:
        other = job("u2", attempt())
        self.assertIn("16 GPUs of spot", self.broken(LIVE, ("ADDED", "trainingjobs", other)))

    def test_gpus_promised_that_a_foreign_pod_holds(self) -> None:
        foreign = pod("stranger")
        foreign["metadata"]["labels"] = {}
        self.assertIn("16 GPUs of spot", self.broken(("ADDED", "pods", foreign), LIVE))

    def test_gpus_of_a_node_that_went_long_ago(self) -> None:
        wait = [("ADDED", "nodes", node(f"other{n}") | {"metadata": {"name": "x", "uid": f"x{n}"}}) for n in range(6)]
        self.assertIn("it has 0", self.broken(("DELETED", "nodes", node("n0")), *wait, LIVE))

    def test_a_gang_that_is_not_recorded(self) -> None:
        self.assertIn("without a live attempt", self.broken(*gang()))

    def test_a_gang_that_is_not_the_one_on_record(self) -> None:
        other = ("MODIFIED", "trainingjobs", job("u1", attempt(jobUID="a1 of before")))
        self.assertIn("not the one on record", self.broken(other, *gang()))

    def test_a_gang_that_is_made_running(self) -> None:
        running = ("ADDED", "jobs", child("a1", completions=1, parallelism=1))
        self.assertIn("made running", self.broken(LIVE, running))

    def test_a_part_of_a_gang(self) -> None:
        record = ("MODIFIED", "trainingjobs", job("u1", attempt(gpus=16, jobUID="a1")))
        more = ("ADDED", "nodes", node("n1"))
        self.assertIn("1 of 1 pods for 2 nodes", self.broken(more, record, *gang()))

    def test_running_with_half_a_gang(self) -> None:
        record = ("MODIFIED", "trainingjobs", job("u1", attempt(gpus=16, runningTime="now")))
        more = ("ADDED", "nodes", node("n1"))
        self.assertIn("Running with 1 of 2", self.broken(more, ("ADDED", "pods", pod("p1")), record))

    def test_two_attempts_at_a_time(self) -> None:
        told = job("u1", attempt(cause="Preempted"), attempt(2, jobUID="a2"), endings={"preemptions": 1})
        second = ("MODIFIED", "trainingjobs", told)
        more = ("ADDED", "nodes", node("n1"))
        self.assertIn("of attempt 1 still runs", self.broken(
            more, LIVE, ("ADDED", "pods", pod("p1")), second, *gang(2)))

    def test_a_finished_job_that_goes_on(self) -> None:
        done = job("u1", conditions=OVER)
        self.assertIn("goes on", self.broken(("MODIFIED", "trainingjobs", done), LIVE))

    def test_a_child_of_another_owner(self) -> None:
        self.assertIn("owned by []", self.broken(("ADDED", "services", child("s", owners=[]))))
        self.assertIn("owned by ['u1']", self.broken(("ADDED", "persistentvolumeclaims", child("c"))))
        stranger = child("c", {**LABELS, "loadline.dev/job-uid": "u9"})
        self.assertIn("never was", self.broken(("ADDED", "configmaps", stranger)))

    def test_a_claim_before_the_finalizer(self) -> None:
        owner = job() | {"spec": {"checkpoint": {"volume": {"retain": "Delete"}}}}
        claim = ("ADDED", "persistentvolumeclaims", child("c", owners=[]))
        self.assertIn("stay behind", self.broken(("MODIFIED", "trainingjobs", owner), claim))
        owner["metadata"]["finalizers"] = ["loadline.dev/cleanup"]
        self.assertEqual("", self.broken(("MODIFIED", "trainingjobs", owner), claim))

    def test_a_generation_that_falls(self) -> None:
        self.assertIn("falls from 1 to 0", self.broken(("MODIFIED", "trainingjobs", job(observedGeneration=0))))

    def test_an_ending_counted_twice(self) -> None:
        twice = job("u1", attempt(cause="Preempted"), endings={"preemptions": 2})
        said = self.broken(LIVE, ("MODIFIED", "trainingjobs", twice))
        self.assertIn("1 attempts ended as Preempted, 2 are counted", said)

    def test_an_ending_that_changes(self) -> None:
        other = job("u1", attempt(cause="UserFailure"), endings={"userFailures": 1})
        self.assertIn("and then as UserFailure", self.broken(
            LIVE, ("MODIFIED", "trainingjobs", ENDED), ("MODIFIED", "trainingjobs", other)))

    def test_an_attempt_left_out(self) -> None:
        gap = job("u1", attempt(cause="Preempted"), attempt(3), endings={"preemptions": 1})
        self.assertIn("attempts [1, 3]", self.broken(("MODIFIED", "trainingjobs", gap)))


class EndStateTest(unittest.TestCase):
    def test_is_equal_for_two_runs_that_differ_by_name_time_and_uid(self) -> None:
        one = {"metadata": {"namespace": "chaos-1", "uid": "a"}, "node": "a100-spot-107", "pod": "llama-a1-0-x7k2p"}
        two = {"metadata": {"namespace": "chaos-2", "uid": "b"}, "node": "a100-spot-3", "pod": "llama-a1-0-bbbbb"}
        self.assertEqual(masked(one, "chaos-1"), masked(two, "chaos-2"))

    def test_tells_what_differs(self) -> None:
        one, two = {"a": [1, {"b": 2}], "c": 3}, {"a": [1, {"b": 4}], "d": 3}
        self.assertEqual(difference(one, two), [
            "/a/1/b: 2 in the reference, 4 here", "/c: only in the reference", "/d: not in the reference"])
