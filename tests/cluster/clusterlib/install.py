"""Loadline itself on a test cluster.

The chart is installed as an admin would, and its pods run on pretended nodes. The real programs run beside the cluster,
with tokens of the chart's own service accounts: a right that the chart forgets to grant is missed here too. The API
server reaches the webhook by URL on the loopback address, since the cluster has no network of its own.
"""

import os
import pathlib
import subprocess

from . import controlplane, fleet, kubeconfig, kubectl
from .errors import ClusterError
from .paths import REPOSITORY
from .state import Cluster

NAMESPACE = "loadline-system"
_RELEASE = "loadline"
_WEBHOOK = "loadline-webhook"
_OPERATOR = "loadline-operator"
_TOKEN_LIFE = "24h"


def _folder(cluster: Cluster) -> pathlib.Path:
    folder = cluster.folder / "loadline"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o700)
    return folder


def _helm(cluster: Cluster, *arguments: str) -> None:
    """Helm with caches in the cluster's own folder; the user's stay as they are."""
    folders = {f"HELM_{kind}_HOME": str(_folder(cluster) / "helm" / kind) for kind in ("CACHE", "CONFIG", "DATA")}
    done = subprocess.run(
        [str(cluster.programs["helm"]), f"--kubeconfig={cluster.kubeconfig}", f"--namespace={NAMESPACE}", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **folders},
        check=False,
    )
    if done.returncode != 0:
        raise ClusterError(f"helm {arguments[0]}: {done.stderr.strip()}")


def _webhook_url(cluster: Cluster) -> str:
    return f"https://127.0.0.1:{cluster.ports['webhook']}"


def _credentials(cluster: Cluster, account: str) -> pathlib.Path:
    """A kubeconfig by a fresh token of one of the chart's service accounts."""
    token = kubectl.run(cluster, "create", "token", account, "--namespace", NAMESPACE, f"--duration={_TOKEN_LIFE}")
    token_file = _folder(cluster) / f"{account}.token"
    token_file.touch(mode=0o600)
    token_file.write_text(token.strip())
    config = _folder(cluster) / f"{account}.kubeconfig"
    kubeconfig.for_token_file(config, cluster.server, cluster.certs / "ca.crt", token_file, NAMESPACE)
    return config


def _program(cluster: Cluster, name: str) -> str:
    path = pathlib.Path(cluster.loadline_programs) / name
    if not path.is_file():
        raise ClusterError(f"no program {path}: build it first")
    return str(path)


def _require_stopped(cluster: Cluster, name: str) -> None:
    process = cluster.process(name)
    if process and process.alive():
        raise ClusterError(f"{name} runs already")


def start_webhook(cluster: Cluster) -> None:
    """start the webhook's program and wait until it answers and the API server trusts it"""
    _require_stopped(cluster, _WEBHOOK)
    controlplane.start(
        cluster,
        _WEBHOOK,
        [
            _program(cluster, _WEBHOOK),
            *("--kubeconfig", str(_credentials(cluster, _WEBHOOK))),
            *("--listen", f"127.0.0.1:{cluster.ports['webhook']}"),
            *("--namespace", NAMESPACE),
            *("--service", _WEBHOOK),
            *("--webhook-url", _webhook_url(cluster)),
            *("--health-listen", f"127.0.0.1:{cluster.ports['webhook-health']}"),
            *("--shutdown-grace", "0"),  # no load balancer here that would have to take notice
            *("--log-level", "info"),
        ],
    )
    controlplane.wait_healthy(cluster, _WEBHOOK, "webhook-health", "/readyz", tls=False, seconds=30)
    kubectl.wait_until("the webhook's authority in its registrations", 30, lambda: _is_trusted(cluster))


def _is_trusted(cluster: Cluster) -> bool:
    for kind in ("mutatingwebhookconfiguration", "validatingwebhookconfiguration"):
        registration = kubectl.get(cluster, kind, _RELEASE)
        if not all(webhook["clientConfig"].get("caBundle") for webhook in registration["webhooks"]):
            return False
    return True


def start_operator(cluster: Cluster) -> None:
    """start the operator's program and wait until it is ready"""
    _require_stopped(cluster, _OPERATOR)
    controlplane.start(
        cluster,
        _OPERATOR,
        [
            _program(cluster, _OPERATOR),
            *("--kubeconfig", str(_credentials(cluster, _OPERATOR))),
            *("--namespace", NAMESPACE),
            *("--health-listen", f"127.0.0.1:{cluster.ports['operator-health']}"),
            "--leader-elect=true",
            *("--log-level", "info"),
        ],
    )
    controlplane.wait_healthy(cluster, _OPERATOR, "operator-health", "/readyz", tls=False, seconds=60)


def stop_webhook(cluster: Cluster) -> None:
    """end the webhook's program with SIGTERM"""
    controlplane.stop(cluster, _WEBHOOK)


def stop_operator(cluster: Cluster) -> None:
    """end the operator's program with SIGTERM"""
    controlplane.stop(cluster, _OPERATOR)


def kill_webhook(cluster: Cluster) -> None:
    """end the webhook's program with SIGKILL, as a crash would"""
    controlplane.kill(cluster, _WEBHOOK)


def kill_operator(cluster: Cluster) -> None:
    """end the operator's program with SIGKILL, as a crash would"""
    controlplane.kill(cluster, _OPERATOR)


def install(cluster: Cluster, programs: pathlib.Path, values: list[str]) -> None:
    """Chart, programs, and the GPUPools of the fleets that are there. Waits until everything is ready."""
    cluster.loadline_programs = str(programs)
    cluster.save()
    for name in (_WEBHOOK, _OPERATOR):
        _program(cluster, name)
    settings = [f"--set={value}" for value in values]
    _helm(
        cluster,
        *("install", _RELEASE, str(REPOSITORY / "charts" / "loadline"), "--create-namespace"),
        f"--set-string=webhook.url={_webhook_url(cluster)}",
        *settings,
        *("--wait", "--timeout=90s"),
    )
    start_webhook(cluster)
    start_operator(cluster)
    pools = [pool for file in cluster.fleets for pool in fleet.load(file).gpu_pools()]
    kubectl.apply(cluster, pools)


def uninstall(cluster: Cluster) -> None:
    """end Loadline's programs and uninstall its chart (its CRDs and their objects stay, as with any chart)"""
    stop_operator(cluster)
    stop_webhook(cluster)
    _helm(cluster, "uninstall", _RELEASE, "--wait", "--timeout=90s")


COMMANDS = {
    "uninstall": uninstall,
    "start-webhook": start_webhook,
    "stop-webhook": stop_webhook,
    "kill-webhook": kill_webhook,
    "start-operator": start_operator,
    "stop-operator": stop_operator,
    "kill-operator": kill_operator,
}
