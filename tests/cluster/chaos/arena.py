"""One control plane with Loadline on it, whose operators reach the API server through fault proxies."""

import collections
import contextlib
import itertools
import os
import pathlib
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from clusterlib import controlplane, fleet, install, kubeconfig, processes, stories, volumes
from clusterlib.errors import ClusterError

from . import endstate, history, invariants
from .api import Api, Object, Refused
from .proxy import Cut, Proxy, Write

FLEET = "chaos"
_NAMESPACE_LABELS = {"loadline.dev/chaos": "true"}


def is_job_write(write: Write) -> bool:
    """A write for a TrainingJob: not the Lease, not an Event, not a pool's status."""
    return write.request.namespace != "" and write.request.resource not in ("leases", "events")


def _pool_of(node: str) -> str:
    return node.rpartition("-")[0]


class Operator:
    """One operator's process with a proxy of its own."""

    def __init__(self, arena: "Arena", name: str, leader_elect: bool, seed: int) -> None:
        cluster = arena.cluster
        certificate = (cluster.certs / "apiserver.crt", cluster.certs / "apiserver.key")
        self._arena = arena
        self._leader_elect = leader_elect
        self.name = name
        self.proxy = Proxy(cluster.server, cluster.certs / "ca.crt", certificate, seed)
        self._config = cluster.folder / f"{name}.kubeconfig"
        token = cluster.folder / "loadline" / "loadline-operator.token"
        kubeconfig.for_token_file(self._config, self.proxy.url, cluster.certs / "ca.crt", token, install.NAMESPACE)
        self.restarts = -1

    @property
    def process(self) -> processes.Process | None:
        """The newest process."""
        return self._arena.cluster.process(self.name)

    @property
    def pid(self) -> int:
        """Of the newest process; 0 when there was none."""
        return self.process.pid if self.process else 0

    def alive(self) -> bool:
        """Whether it runs."""
        return self.process is not None and self.process.alive()

    def start(self) -> None:
        """Starts it; it is at work within a second."""
        self.restarts += 1
        self.proxy.reopen()
        controlplane.start(
            self._arena.cluster,
            self.name,
            [
                str(self._arena.programs / "loadline-operator"),
                *("--kubeconfig", str(self._config)),
                *("--namespace", install.NAMESPACE),
                *("--health-listen", "127.0.0.1:0"),
                f"--leader-elect={'true' if self._leader_elect else 'false'}",
                *("--log-level", "debug"),
            ],
        )

    def signal(self, number: int) -> None:
        """Sends it a signal."""
        if self.process:
            self.process.signal(number)

    def kill(self) -> None:
        """Ends it as a crash does."""
        controlplane.kill(self._arena.cluster, self.name)

    def restart(self) -> None:
        """A crash, and a successor at once."""
        self.kill()
        self.start()

    def cut_at(self, number: int, before_answer: bool, counts: Callable[[Write], bool]) -> Cut:
        """Arms the proxy: the process dies at its `number`th write that `counts`, and is started again."""
        cut = Cut(number, before_answer, counts, lambda: self.signal(9))
        self.proxy.cut = cut

        def revive() -> None:
            cut.done.wait()
            process = self.process
            if self.proxy.cut is cut and process is not None:
                process.wait(10)
                self.start()

        threading.Thread(target=revive, daemon=True).start()
        return cut

    def writes_since(self, count: int) -> list[Write]:
        """Its writes after the first `count`, Leases and Events left out."""
        return [w for w in self.proxy.writes[count:] if w.request.resource not in ("leases", "events")]

    def stop(self) -> None:
        """Ends process and proxy."""
        controlplane.stop(self._arena.cluster, self.name)
        self.proxy.stop()


class Arena:
    """See the module. A context: everything that was started ends with it; logs stay when it ends by an error."""

    def __init__(self, programs: pathlib.Path, control_plane: str, seed: int) -> None:
        self.programs = programs.resolve()
        self.seed = seed
        self._control_plane = control_plane
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix="loadline-chaos-"))
        self._numbers = itertools.count(100)
        self._operators: list[Operator] = []
        self.fleet = fleet.load(FLEET)
        self.keep_logs = False

    def __enter__(self) -> "Arena":
        options = controlplane.Options(self._control_plane, owner_pid=os.getpid())
        self.cluster = controlplane.up(self._folder, options)
        try:
            fleet.create(self.cluster, self.fleet)
            install.install(self.cluster, self.programs, ["operator.replicas=1", "webhook.replicas=1"])
            install.stop_operator(self.cluster)
            self.api = Api(self.cluster)
            self.recorder = history.Recorder(self.api)
        except BaseException:
            controlplane.down(self._folder, keep_logs=True)
            raise
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.recorder.stop()
        for operator in self._operators:
            with contextlib.suppress(ClusterError):
                operator.stop()
        keep = self.keep_logs or error is not None
        controlplane.down(self._folder, keep_logs=keep)
        if keep:
            print(f"the logs of every program are in {self._folder / 'logs'}", file=sys.stderr)
        else:
            shutil.rmtree(self._folder, ignore_errors=True)

    def operator(self, leader_elect: bool = False, name: str = "operator") -> Operator:
        """A new operator, not started yet."""
        made = Operator(self, name, leader_elect, self.seed)
        self._operators.append(made)
        return made

    @contextlib.contextmanager
    def running_operator(self, leader_elect: bool = False, name: str = "operator") -> Iterator[Operator]:
        """An operator that runs while the body does."""
        made = self.operator(leader_elect, name)
        made.start()
        try:
            yield made
        finally:
            made.stop()
            self._operators.remove(made)

    def namespace(self) -> str:
        """A new namespace; names are equally long, so that what is cut to a length is cut alike."""
        name = f"chaos-{next(self._numbers):05d}"
        self.api.create("namespaces", {"metadata": {"name": name, "labels": _NAMESPACE_LABELS}})
        self.until("the service account of a new namespace", 60, lambda: self._has_account(name))
        return name

    def _has_account(self, namespace: str) -> bool:
        target = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        return b'"name":"default"' in self.api.raw("GET", target).replace(b'": "', b'":"')

    def until(self, what: str, seconds: float, holds: Callable[[], Any]) -> Any:
        """Polls until `holds` gives something, and returns that; an error says what was waited for in vain."""
        deadline = time.monotonic() + seconds
        while True:
            found = holds()
            if found:
                return found
            if time.monotonic() > deadline:
                raise ClusterError(f"waited {seconds:.0f} s in vain for {what}")
            time.sleep(0.15)

    # --- nodes and volumes ---

    def reclaim(self, node: str) -> None:
        """The cloud takes a node."""
        stories.reclaim(self.cluster, node)

    def nodes_of(self, pool: str) -> list[str]:
        """The nodes that a pool has now."""
        names = [node["metadata"]["name"] for node in self.api.list("nodes")]
        return [name for name in names if _pool_of(name) == pool]

    def node_of(self, namespace: str, job: str) -> str:
        """Where the first pod of a job that has one runs."""
        for pod in self.api.list("pods", namespace, f"loadline.dev/job-name={job}"):
            if not invariants.terminal(pod) and not pod["metadata"].get("deletionTimestamp"):
                return str(pod["spec"].get("nodeName", ""))
        raise ClusterError(f"{job} in {namespace} has no pod")

    def restore(self) -> None:
        """The fleet is whole again, and every volume free."""
        self.restore_nodes()
        self._restore_volumes()

    def restore_nodes(self) -> None:
        """As many nodes come as were taken, under new names, as a cloud's do: pod garbage collection keeps the names of
        those that went in mind for a while."""
        there = collections.Counter(_pool_of(node["metadata"]["name"]) for node in self.api.list("nodes"))
        made = set()
        for pool in self.fleet.pools:
            for node in pool.objects()[there[pool.name]:]:
                name = f"{pool.name}-{next(self._numbers)}"
                node["metadata"]["name"] = name
                node["metadata"]["labels"]["kubernetes.io/hostname"] = name
                node["spec"]["providerID"] += f"-{name}"
                self.api.create("nodes", node)
                made.add(name)
        if made:
            fleet.wait_ready(self.cluster, made)

    def _restore_volumes(self) -> None:
        """Volumes whose claim has gone are never bound again: they are made anew."""
        stored = {volume["metadata"]["name"]: volume for volume in self.api.list("persistentvolumes")}
        for volume in volumes.objects(self.fleet.volumes):
            name = volume["metadata"]["name"]
            if volume["kind"] != "PersistentVolume":
                continue
            if stored.get(name, {}).get("status", {}).get("phase") == "Released":
                self.api.delete("persistentvolumes", name)
                del stored[name]
            if name not in stored:
                with contextlib.suppress(Refused):  # the old one is still on its way out: the next run sees to it
                    self.api.create("persistentvolumes", volume)

    def clear(self, namespace: str) -> None:
        """The run holds no GPUs any more, and what is left of it goes by itself; the fleet is whole."""
        for job in self.api.list("trainingjobs", namespace):
            self.api.delete("trainingjobs", job["metadata"]["name"], namespace)

        def free() -> bool:
            pods = self.api.list("pods", namespace)
            for pod in pods:  # of nodes that are gone: nobody else would end them soon
                if pod["metadata"].get("deletionTimestamp") and not self.api.get("nodes", pod["spec"].get("nodeName")):
                    self.api.delete("pods", pod["metadata"]["name"], namespace, grace_seconds=0)
            return all(invariants.terminal(pod) for pod in pods) and not self.api.list("trainingjobs", namespace)

        self.until("the namespace to hold nothing", 180, free)
        self.api.raw("DELETE", f"/api/v1/namespaces/{namespace}")
        self.restore()

    # --- what has come of it ---

    def end_state(self, namespace: str) -> dict[str, object]:
        """See endstate.take."""
        return endstate.take(self.api, namespace)

    def violations(self, since: int) -> list[str]:
        """Invariants that did not hold after a revision."""
        self.recorder.catch_up()
        return invariants.violations(self.recorder.events(), since)

    def job(self, namespace: str, name: str) -> Object:
        """A TrainingJob; empty when there is none."""
        return self.api.get("trainingjobs", name, namespace) or {}
