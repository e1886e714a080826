#!/usr/bin/env python3
"""The whole story on a real control plane, each step checked: sized at apply, refused with the sum, placed, carried
through a reclaimed node to the end. `make demo` builds what it needs and runs it."""

import argparse
import json
import pathlib
import sys
import tempfile
from typing import Any

import yaml
from stage import ROOT, Narrator, NotShown, Stage, require

NAMESPACE = "team-nlp"
# What a pod of the job does on nodes that only pretend: the first attempt would run for ten minutes, later ones for a
# few seconds. tests/cluster/stages/pod.yaml tells all such annotations.
PLAYED = {"loadline.dev/fake-duration-seconds": "600|12"}

POLICY = """
apiVersion: loadline.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: team-nlp}
spec:
  selector: {namespaces: [team-nlp]}
  deny: {pools: [gke-h100, eks-p5-spot]}
"""


class Demo:
    def __init__(self, stage: Stage, narrator: Narrator, scratch: pathlib.Path) -> None:
        self._stage = stage
        self._narrator = narrator
        self._scratch = scratch

    # --- small helpers ---

    def _example(self, name: str, rename: str = "", placement: dict[str, Any] | None = None) -> tuple[str, str]:
        """An example's job as a file for this cluster, and its name. What is changed is said."""
        documents = list(yaml.safe_load_all((ROOT / "examples" / name).read_text()))
        job = next(document for document in documents if document["kind"] == "TrainingJob")
        job["metadata"]["namespace"] = NAMESPACE
        metadata = job["spec"]["template"].setdefault("metadata", {})
        metadata.setdefault("annotations", {}).update(PLAYED)
        job["metadata"]["name"] = rename or job["metadata"]["name"]
        if placement is not None:
            job["spec"]["placement"] = placement
        path = self._scratch / f"{job['metadata']['name']}.yaml"
        path.write_text(yaml.safe_dump(job, sort_keys=False))
        changed = "" if placement is None else f", placement {json.dumps(placement)}"
        self._narrator.say(f"{path.name} is examples/{name}{changed}, annotated with how long these nodes play it")
        return str(path), job["metadata"]["name"]

    def _job(self, name: str) -> dict[str, Any]:
        job: dict[str, Any] = self._stage.get("trainingjob", name, "-n", NAMESPACE) or {}
        return job

    def _status(self, name: str) -> dict[str, Any]:
        status: dict[str, Any] = self._job(name).get("status", {})
        return status

    def _attempts(self, name: str) -> list[dict[str, Any]]:
        attempts: list[dict[str, Any]] = self._status(name).get("attempts", [])
        return attempts

    def _wait_running(self, name: str, attempt: int) -> None:
        def running() -> bool:
            status = self._status(name)
            return status.get("attempt") == attempt and status.get("phase") == "Running"

        self._stage.until(f"attempt {attempt} of {name} to run", 120, running)

    # --- the story ---

    def install(self) -> None:
        self._narrator.step("a fleet of GPU nodes, and Loadline installed by its chart")
        self._stage.install()
        self._stage.kubectl("create", "namespace", NAMESPACE)
        pools = self._stage.kubectl("get", "gpupools")
        require("gke-a100-80g-spot" in pools, "the fleet's pools")

    def dry_run(self, path: str) -> None:
        self._narrator.step("a dry run gives the verdict and changes nothing")
        said = self._stage.kubectl("apply", "--dry-run=server", "-f", path)
        require("Warning: needs" in said and "GiB per GPU" in said, "the need per GPU")
        require("created (server dry run)" in said, "a dry run")
        require(self._stage.get("trainingjobs", "-A")["items"] == [], "no job to exist")
        claims = self._stage.get("pvc,configmaps,jobs", "-n", NAMESPACE)["items"]
        claims = [item for item in claims if item["metadata"]["name"] != "kube-root-ca.crt"]
        require(claims == [], "no child to exist")

    def apply(self, path: str, name: str) -> None:
        self._narrator.step("apply says what each GPU needs, where it will run, for how long and for how much")
        said = self._stage.kubectl("apply", "-f", path)
        require("Warning: needs" in said and "GiB per GPU on 8 GPUs" in said, "the need per GPU")
        require("gke-a100-80g-spot" in said, "the pool that is chosen")
        require("checkpoint claim" in said, "the checkpoint claim")
        require(f"{name} created" in said, "the job to be created")

    def refuse(self) -> None:
        self._narrator.step("a job that can fit nowhere is refused, with the sum and with what would fit")
        path, name = self._example("jobs/llama-70b-full-on-l4.yaml", placement={})
        said = self._stage.kubectl("apply", "-f", path, fails=True)
        require("spec.gpus" in said and "GiB per GPU" in said, "field and sum")
        require("Would fit" in said, "what would fit")
        require(not self._job(name), "the job not to exist")

    def describe(self, name: str) -> None:
        self._narrator.step("a running job reads as an explanation")
        self._wait_running(name, 1)
        self._stage.kubectl("get", "tj", "-n", NAMESPACE)
        wide = self._stage.kubectl("get", "tj", "-n", NAMESPACE, "-o", "wide")
        require(max(len(line) for line in wide.splitlines()) <= 200, "a wide table that fits a terminal")
        said = self._stage.kubectl("describe", "tj", name, "-n", NAMESPACE)
        for word in ("Sizing:", "Placement:", "Checkpoint:", "Attempts:", "Explanation:", "Peak", "refused"):
            require(word in said, f"'{word}' in describe")
        env = self._stage.get("pods", "-n", NAMESPACE, "-l", f"loadline.dev/job-name={name}")["items"][0]
        trainer = next(item for item in env["spec"]["containers"] if item["name"] == "trainer")
        names = {variable["name"] for variable in trainer["env"]}
        wanted = {"MASTER_ADDR", "WORLD_SIZE", "PET_NNODES", "LOADLINE_CHECKPOINT_DIR", "LOADLINE_RESUME_FROM"}
        require(wanted <= names, f"the trainer's environment to have {sorted(wanted - names)}")

    def claim(self, name: str) -> str:
        self._narrator.step("a checkpoint volume of the right size is bound")
        claim: str = self._status(name)["checkpoint"]["claim"]
        self._stage.until("the claim to be bound", 60, lambda: self._phase_of_claim(claim) == "Bound")
        self._stage.kubectl("get", "pvc", claim, "-n", NAMESPACE)
        return claim

    def _phase_of_claim(self, claim: str) -> str:
        phase: str = (self._stage.get("pvc", claim, "-n", NAMESPACE) or {}).get("status", {}).get("phase", "")
        return phase

    def reclaim_while_operator_is_down(self, name: str, claim: str) -> None:
        self._narrator.step("the operator is killed, then the spot node is reclaimed: the gang still ends as one")
        job_name = self._attempts(name)[0]["jobName"]
        pods = self._stage.get("pods", "-n", NAMESPACE, "-l", f"loadline.dev/job-name={name}")["items"]
        node = pods[0]["spec"]["nodeName"]
        self._stage.tool("kill-operator")
        self._stage.tool("node", "reclaim", node)
        self._narrator.say("pod garbage collection takes up to a minute; the Job controller then ends the whole attempt")
        self._stage.kubectl(
            "wait", f"job/{job_name}", "-n", NAMESPACE, "--for=condition=Failed", "--timeout=120s"
        )
        require(self._status(name)["attempt"] == 1, "nobody to have touched the job meanwhile")

        self._narrator.step("the operator starts again: the ending is counted once, a second attempt runs elsewhere")
        self._stage.tool("start-operator")
        self._wait_running(name, 2)
        self._stage.kubectl("get", "tj", "-n", NAMESPACE)
        status = self._status(name)
        first, second = status["attempts"]
        require(first["cause"] == "Preempted", f"attempt 1 to be Preempted, not {first.get('cause')}")
        require(status["endings"]["preemptions"] == 1, "one preemption")
        require(second["pool"] != first["pool"], "another pool")
        require(status["checkpoint"]["claim"] == claim, "the same claim")
        mounted = self._stage.get("pods", "-n", NAMESPACE, "-l", "loadline.dev/attempt=2")["items"][0]
        claims = [v["persistentVolumeClaim"]["claimName"] for v in mounted["spec"]["volumes"] if "persistentVolumeClaim" in v]
        require(claims == [claim], "the second attempt to mount the same claim")
        self._narrator.say(f"attempt 1 on {first['pool']}: {first['detail']}")
        self._narrator.say(f"attempt 2 on {second['pool']}, with the same claim {claim}")

    def succeed(self, name: str) -> None:
        self._narrator.step("the job succeeds, and kubectl can wait for it")
        self._stage.kubectl(
            "wait", f"tj/{name}", "-n", NAMESPACE, "--for=condition=Succeeded", "--timeout=120s"
        )
        self._stage.kubectl("get", "tj", "-n", NAMESPACE)
        self._stage.kubectl("events", "-n", NAMESPACE, "--for", f"trainingjob/{name}")
        require(self._phase_of_claim(self._status(name)["checkpoint"]["claim"]) == "Bound", "the claim to be kept")

    def policy(self) -> None:
        self._narrator.step("a policy denies pools: the job goes elsewhere with the reason, or is refused")
        self._stage.kubectl("apply", "-f", "-", text=POLICY)
        path, name = self._example("jobs/llama-8b-full-sft.yaml", "only-h100", {"pools": ["gke-h100"]})

        def refused() -> str | None:
            # The webhook sees the policy when its watch has brought it.
            done = self._stage._run(("apply", "--dry-run=server", "-f", path))
            return done.stdout if done.returncode != 0 else None

        self._stage.until("the policy to hold", 20, refused)
        said = self._stage.kubectl("apply", "-f", path, fails=True)
        require("team-nlp" in said and "gke-h100" in said, "policy and pool in the refusal")

        path, name = self._example("jobs/llama-8b-full-sft.yaml", "anywhere-allowed")
        said = self._stage.kubectl("apply", "-f", path)
        self._wait_running(name, 1)
        explanation = "\n".join(self._status(name)["placement"]["explanation"])
        print("".join(f"  {line}\n" for line in explanation.splitlines()), end="")
        require("gke-h100" in explanation and "policy team-nlp" in explanation, "the policy among the reasons")
        self._stage.kubectl("delete", "tj", name, "-n", NAMESPACE)
        label = f"loadline.dev/job-name={name}"
        self._stage.until(
            "its children to be gone", 60, lambda: self._stage.get("pods,jobs", "-n", NAMESPACE, "-l", label)["items"] == []
        )

    def explain(self) -> None:
        self._narrator.step("every field explains itself")
        said = self._stage.kubectl("explain", "trainingjob.spec.training", head=25)
        require("microBatchSize" in said, "the fields of spec.training")
        said = self._stage.kubectl("explain", "trainingjob.spec.training.precision")
        require("ENUM" in said, "the words that precision takes")

    def offline(self, path: str) -> None:
        self._narrator.step("the same text offline, without a cluster")
        said = self._stage.plugin("estimate", "-f", path)
        require("GiB per GPU" in said and "Peak" in said, "the sum")


STEPS = 12


def play(stage: Stage, narrator: Narrator, scratch: pathlib.Path) -> None:
    demo = Demo(stage, narrator, scratch)
    demo.install()
    path, name = demo._example("jobs/llama-8b-full-sft.yaml")
    demo.dry_run(path)
    demo.apply(path, name)
    demo.refuse()
    demo.describe(name)
    claim = demo.claim(name)
    demo.reclaim_while_operator_is_down(name, claim)
    demo.succeed(name)
    demo.policy()
    demo.explain()
    demo.offline(path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="folder of Loadline's programs")
    parser.add_argument("--control-plane", default="1.36", help="Kubernetes minor (default %(default)s)")
    arguments = parser.parse_args()
    narrator = Narrator(STEPS)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            with Stage(arguments.programs.resolve(), arguments.control_plane, "demo") as stage:
                play(stage, narrator, pathlib.Path(scratch))
        left = stage.left_running()
        require(not left, f"nothing left running, but {', '.join(left)}")
    except NotShown as missing:
        print(f"\nNOT SHOWN at step {len(narrator.shown)}: {missing}", file=sys.stderr)
        return 1
    print(f"\nShown in {narrator.clock()}, by real kubectl on a real control plane:")
    for title in narrator.shown:
        print(f"  - {title}")
    print("Nothing of it is left running.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
