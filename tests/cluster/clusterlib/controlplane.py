"""Starts and ends one control plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok."""

import contextlib
import dataclasses
import http.client
import os
import pathlib
import shutil
import signal
import ssl
import subprocess
import sys
import time

from . import binaries, certs, kubeconfig, kubectl, ports, processes, state
from .errors import ClusterError
from .paths import CLUSTER_SOURCES, STAGES
from .state import Cluster

# A lost kubelet shows after this long. Three missed leases of kwok (it renews well within 10 s) are not yet a loss.
NODE_GRACE_SECONDS = 20
LEASE_SECONDS = 10

# The native gang-scheduling API by minor: it is off by default and its version changes with each release.
_WORKLOAD_API = {"1.36": "scheduling.k8s.io/v1alpha2", "1.37": "scheduling.k8s.io/v1beta1"}

# Programs that others call come last: each is ended only when nobody needs it any more.
_END_ORDER = (
    "keeper",
    "loadline-operator",
    "loadline-webhook",
    "kwok",
    "scheduler",
    "controller-manager",
    "apiserver",
    "etcd",
)


@dataclasses.dataclass(frozen=True)
class Options:
    """What `up` may be asked for."""

    control_plane: str = binaries.DEFAULT_CONTROL_PLANE
    owner_pid: int | None = None
    workload_api: bool = False


def _etcd(cluster: Cluster) -> list[str]:
    client = f"http://127.0.0.1:{cluster.ports['etcd']}"
    peer = f"http://127.0.0.1:{cluster.ports['etcd-peer']}"
    return [
        str(cluster.programs["etcd"]),
        f"--data-dir={cluster.folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync=true",
    ]


def _apiserver(cluster: Cluster, options: Options) -> list[str]:
    folder = cluster.certs
    command = [
        str(cluster.programs["kube-apiserver"]),
        f"--etcd-servers=http://127.0.0.1:{cluster.ports['etcd']}",
        "--bind-address=127.0.0.1",
        f"--secure-port={cluster.ports['apiserver']}",
        f"--tls-cert-file={folder / 'apiserver.crt'}",
        f"--tls-private-key-file={folder / 'apiserver.key'}",
        f"--client-ca-file={folder / 'ca.crt'}",
        f"--cert-dir={folder}",
        "--authorization-mode=RBAC",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--allow-privileged=true",
        "--endpoint-reconciler-type=none",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={folder / 'service-account.pub'}",
        f"--service-account-signing-key-file={folder / 'service-account.key'}",
    ]
    if options.workload_api:
        version = _WORKLOAD_API.get(options.control_plane)
        if not version:
            raise ClusterError(f"the gang-scheduling API of Kubernetes {options.control_plane} is not known here")
        command += ["--feature-gates=GenericWorkload=true", f"--runtime-config={version}=true"]
    return command


def _client_flags(cluster: Cluster, name: str) -> list[str]:
    config = cluster.folder / f"{name}.kubeconfig"
    return [
        f"--kubeconfig={config}",
        f"--authentication-kubeconfig={config}",
        f"--authorization-kubeconfig={config}",
        "--bind-address=127.0.0.1",
        f"--secure-port={cluster.ports[name]}",
        f"--cert-dir={cluster.certs / name}",
        "--leader-elect=false",
    ]


def _controller_manager(cluster: Cluster, options: Options) -> list[str]:
    return [
        str(cluster.programs["kube-controller-manager"]),
        *_client_flags(cluster, "controller-manager"),
        f"--root-ca-file={cluster.certs / 'ca.crt'}",
        f"--service-account-private-key-file={cluster.certs / 'service-account.key'}",
        "--use-service-account-credentials=true",
        "--node-monitor-period=1s",
        f"--node-monitor-grace-period={NODE_GRACE_SECONDS}s",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
        *(["--feature-gates=GenericWorkload=true"] if options.workload_api else []),
    ]


def _scheduler(cluster: Cluster, options: Options) -> list[str]:
    return [
        str(cluster.programs["kube-scheduler"]),
        *_client_flags(cluster, "scheduler"),
        *(["--feature-gates=GenericWorkload=true"] if options.workload_api else []),
    ]


def _kwok(cluster: Cluster) -> list[str]:
    return [
        str(cluster.programs["kwok"]),
        f"--kubeconfig={cluster.folder / 'kwok.kubeconfig'}",
        *(f"--config={stage}" for stage in sorted(STAGES.glob("*.yaml"))),
        # By label, since kwok does not notice when an annotation is taken away; a lost node loses this label.
        "--manage-nodes-with-label-selector=kwok.x-k8s.io/node=fake",
        f"--node-lease-duration-seconds={LEASE_SECONDS}",
        "--node-ip=127.0.0.1",  # without it a node's address stays empty
        f"--server-address=127.0.0.1:{cluster.ports['kwok']}",
    ]


def _healthy(cluster: Cluster, port: int, path: str, tls: bool = True) -> bool:
    connection: http.client.HTTPConnection
    if tls:
        context = ssl.create_default_context(cafile=str(cluster.certs / "ca.crt"))
        context.load_cert_chain(cluster.certs / "admin.crt", cluster.certs / "admin.key")
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=2, context=context)
    else:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def wait_healthy(cluster: Cluster, name: str, port_name: str, path: str, tls: bool, seconds: float) -> None:
    """Waits for a program's health check; one that ended meanwhile is an error at once, with the end of its log."""

    def holds() -> bool:
        process = cluster.process(name)
        if process is None or not process.alive():
            raise ClusterError(f"{name} ended while starting; {cluster.log(name)} ends:\n{_tail(cluster, name)}")
        return _healthy(cluster, cluster.ports[port_name], path, tls)

    kubectl.wait_until(f"{name} to be ready", seconds, holds, lambda: _tail(cluster, name))


def _tail(cluster: Cluster, name: str) -> str:
    return processes.tail(cluster.log(name))


def start(cluster: Cluster, name: str, command: list[str], environment: dict[str, str] | None = None) -> None:
    """Starts a program of this cluster and records it, before anything else can fail."""
    cluster.replace_process(processes.start(name, command, cluster.log(name), environment))


def _prepare(folder: pathlib.Path, control_plane: str, block: dict[str, int]) -> Cluster:
    programs = binaries.locate(control_plane)
    cluster = Cluster(folder=folder, control_plane=control_plane, ports=block, programs=programs)
    certs.make(cluster.certs)
    kubeconfig.for_certificate(cluster.kubeconfig, cluster.server, cluster.certs, "admin")
    for client in certs.CLIENTS:
        if client != "admin":
            kubeconfig.for_certificate(folder / f"{client}.kubeconfig", cluster.server, cluster.certs, client)
    cluster.save()
    return cluster


def up(folder: pathlib.Path, options: Options) -> Cluster:
    """Starts a control plane in `folder` (made, or empty) and returns when it serves and the `default` service account
    exists, from when on pods can be created. What was started is ended again when it fails; logs stay."""
    folder = folder.resolve()
    if state.exists(folder):
        raise ClusterError(f"a cluster is in {folder} already: `loadline-cluster down --dir {folder}` ends it")
    folder.mkdir(parents=True, exist_ok=True)
    if any(entry.name != "logs" for entry in folder.iterdir()):
        raise ClusterError(f"{folder} is not empty; a cluster needs a folder of its own")
    with ports.reserved() as block:
        cluster = _prepare(folder, options.control_plane, block)
        try:
            _start_all(cluster, options)
        except BaseException:
            down(folder, keep_logs=True)
            raise
    return cluster


def _start_all(cluster: Cluster, options: Options) -> None:
    if options.owner_pid is not None:
        _start_keeper(cluster, options.owner_pid)
    start(cluster, "etcd", _etcd(cluster))
    start(cluster, "apiserver", _apiserver(cluster, options))
    wait_healthy(cluster, "apiserver", "apiserver", "/readyz", tls=True, seconds=90)
    start(cluster, "controller-manager", _controller_manager(cluster, options))
    start(cluster, "scheduler", _scheduler(cluster, options))
    start(cluster, "kwok", _kwok(cluster))
    wait_healthy(cluster, "kwok", "kwok", "/healthz", tls=False, seconds=60)
    kubectl.wait_until(
        "the default service account",
        60,
        lambda: "default" in kubectl.run(cluster, "get", "serviceaccounts", "-n", "default", "-o", "name"),
        lambda: _tail(cluster, "controller-manager"),
    )


def _start_keeper(cluster: Cluster, owner_pid: int) -> None:
    """A test program that crashes cannot clean up; the keeper sees it gone and does."""
    owner = processes.of_pid("owner", owner_pid)
    if not owner or not owner.alive():
        raise ClusterError(f"the owner, process {owner_pid}, does not run")
    tool = CLUSTER_SOURCES / "loadline-cluster"
    start(
        cluster,
        "keeper",
        [sys.executable, str(tool), "keep", "--dir", str(cluster.folder), str(owner.pid), str(owner.started)],
    )


def keep(folder: pathlib.Path, owner_pid: int, owner_started: int) -> None:
    """The keeper's whole life: waits for the owner to end, then ends the cluster and keeps its logs. A folder that
    vanishes under a running cluster (`rm -rf build`) ends it too; `down` ends the keeper before it removes anything."""
    owner = processes.Process("owner", owner_pid, owner_started)
    cluster = state.load(folder)
    while owner.alive():
        time.sleep(0.5)
        try:
            cluster = state.load(folder)
        except ClusterError:
            _end_processes(cluster)
            return
    down(folder, keep_logs=True)


def stop(cluster: Cluster, name: str, patience_seconds: float = 10) -> None:
    """Ends one program of the cluster and forgets it."""
    process = cluster.process(name)
    if process:
        process.stop(patience_seconds)
        cluster.forget_process(name)


def kill(cluster: Cluster, name: str) -> None:
    """Ends one program without giving it a chance to clean up."""
    process = cluster.process(name)
    if process:
        process.signal(signal.SIGKILL)
        process.wait(5)
        cluster.forget_process(name)


def down(folder: pathlib.Path, keep_logs: bool = False) -> None:
    """Ends every program in order and removes what `up` made. Safe to call on a half-started or half-ended cluster."""
    folder = folder.resolve()
    _end_processes(state.load(folder))
    _remove_files(folder, keep_logs)


def _end_processes(cluster: Cluster) -> None:
    known = {process.name: process for process in cluster.processes if process.pid != os.getpid()}
    ordered = [name for name in reversed(list(known)) if name not in _END_ORDER]
    ordered += [name for name in _END_ORDER if name in known]
    stubborn = [name for name in ordered if not known[name].stop()]
    for name in stubborn:
        print(f"{name} did not end within 10 s of SIGTERM and was killed", file=sys.stderr)


def _remove_files(folder: pathlib.Path, keep_logs: bool) -> None:
    """Only what is known to be the cluster's: a wrong --dir must not cost anybody a file."""
    for entry in ("etcd", "certs", "loadline", *(() if keep_logs else ("logs",))):
        shutil.rmtree(folder / entry, ignore_errors=True)
    for pattern in ("kubeconfig", "*.kubeconfig", ".lock", "state.json"):
        for path in folder.glob(pattern):
            path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()


def exec_kubectl(folder: pathlib.Path, arguments: list[str]) -> int:
    """Runs kubectl with the caller's terminal."""
    return subprocess.run(kubectl.command(state.load(folder), *arguments), check=False).returncode
