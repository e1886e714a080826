"""Node fleets: a few lines a pool become Node objects that look like the cloud's, and GPUPool objects beside them."""

import dataclasses
import functools
import pathlib
from typing import Any

import yaml

from . import kubectl, volumes
from .errors import ClusterError
from .paths import CLUSTER_SOURCES, FLEETS
from .state import Cluster

MANAGED_LABEL = "kwok.x-k8s.io/node"
PROVIDER_ANNOTATION = "loadline.dev/fake-provider"
_POOL_KEYS = {"name", "provider", "machine", "zone", "capacity", "nodes", "labels", "taints", "gpuPool"}


@functools.cache
def _table(name: str) -> dict[str, Any]:
    table: dict[str, Any] = yaml.safe_load((CLUSTER_SOURCES / name).read_text())
    return table


def provider(name: str) -> dict[str, Any]:
    """A row of providers.yaml."""
    try:
        row: dict[str, Any] = _table("providers.yaml")[name]
        return row
    except KeyError:
        raise ClusterError(f"no provider {name!r}: there are {', '.join(_table('providers.yaml'))}") from None


@dataclasses.dataclass(frozen=True)
class Pool:
    """One entry of a fleet file with its rows of the tables."""

    name: str
    provider_name: str
    machine_name: str
    zone: str
    capacity: str
    nodes: int
    labels: dict[str, str]
    taints: list[dict[str, str]]
    gpu_pool: dict[str, Any] | None

    @property
    def provider(self) -> dict[str, Any]:
        """How this kind of cluster dresses nodes."""
        return provider(self.provider_name)

    @property
    def machine(self) -> dict[str, Any]:
        """The machine type's row."""
        row: dict[str, Any] = _table("machine-types.yaml")["machines"][self.machine_name]
        return row

    @property
    def gpu(self) -> dict[str, Any] | None:
        """The card's row; nothing for a machine without one."""
        product = self.machine.get("gpu")
        return _table("machine-types.yaml")["gpus"][product] if product else None

    def objects(self) -> list[dict[str, Any]]:
        """The pool's Node objects."""
        return [_node(self, number) for number in range(self.nodes)]

    def gpu_pool_object(self) -> dict[str, Any] | None:
        """The admin's GPUPool for this pool, when the fleet file describes one."""
        if self.gpu_pool is None or self.gpu is None:
            return None
        taints = _taints(self)
        spec: dict[str, Any] = {
            "nodeSelector": {self.provider["poolLabel"]: self.name},
            "gpu": {
                "product": self.machine["gpu"],
                "memoryMiBPerGPU": self.gpu["memoryMiB"],
                "perNode": self.machine["count"],
                "resourceName": "nvidia.com/gpu",
                "interconnect": self.gpu["link"] if self.machine["count"] > 1 else "pcie",
            },
            "network": {
                "gbpsPerNode": self.machine["gbps"],
                **({"extraResources": self.machine["extra"]} if "extra" in self.machine else {}),
            },
            "capacityType": self.capacity,
            "tolerations": [{**taint, "operator": "Equal" if "value" in taint else "Exists"} for taint in taints],
            **self.gpu_pool,
        }
        return {
            "apiVersion": "loadline.dev/v1alpha1",
            "kind": "GPUPool",
            "metadata": {"name": self.name},
            "spec": {key: value for key, value in spec.items() if value != []},
        }


def _fillings(pool: Pool) -> dict[str, str]:
    """What the braces of providers.yaml stand for; a machine lacks those it has no figure for."""
    machine, gpu = pool.machine, pool.gpu or {}
    values = {
        "pool": pool.name,
        "machine": pool.machine_name,
        "family": pool.machine_name.replace(".", "-").split("-")[0],
        "gbpsMegabit": machine["gbps"] * 1000,
        "gpuCount": machine.get("count"),
        "gkeAccelerator": machine.get("gke", gpu.get("gke")),
        "awsName": gpu.get("aws"),
        "awsMemoryMiB": gpu.get("awsMemoryMiB"),
    }
    return {name: str(value) for name, value in values.items() if value is not None}


def _labels(pool: Pool) -> dict[str, str]:
    kind, fillings = pool.provider, _fillings(pool)
    templates = {kind["poolLabel"]: "{pool}", **kind["labels"], **kind[pool.capacity]}
    if pool.gpu:
        templates |= kind["gpu"]
    labels = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": pool.machine_name,
    }
    if pool.zone:
        labels["topology.kubernetes.io/zone"] = pool.zone
        labels["topology.kubernetes.io/region"] = _region(pool.zone)
    for key, template in templates.items():
        try:
            labels[key] = template.format(**fillings)
        except KeyError:
            continue
    if pool.gpu and kind["discovery"]:
        labels |= _discovery_labels(pool)
    return labels | pool.labels


def _region(zone: str) -> str:
    """Google's us-central1-a and Azure's eastus-1 end in a part of their own, Amazon's us-east-1a in a letter."""
    head, _, last = zone.rpartition("-")
    return head if last.isalpha() or not last[-1].isalpha() else zone[:-1]


def _discovery_labels(pool: Pool) -> dict[str, str]:
    """What NVIDIA's GPU Feature Discovery writes."""
    assert pool.gpu is not None
    major, minor = pool.gpu["compute"].split(".")
    return {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": pool.machine["gpu"],
        "nvidia.com/gpu.count": str(pool.machine["count"]),
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/gpu.sharing-strategy": "none",
        "nvidia.com/gpu.memory": str(pool.gpu["memoryMiB"]),
        "nvidia.com/gpu.family": pool.gpu["family"],
        "nvidia.com/gpu.compute.major": major,
        "nvidia.com/gpu.compute.minor": minor,
        "nvidia.com/gpu.machine": pool.machine_name,
        "nvidia.com/gpu.mode": "compute",
        "nvidia.com/mig.capable": str(pool.gpu["family"] in ("ampere", "hopper")).lower(),
        "nvidia.com/mig.strategy": "single",
        "nvidia.com/cuda.driver-version.full": "570.124.06",
        "nvidia.com/cuda.driver-version.major": "570",
        "nvidia.com/cuda.runtime-version.full": "12.8",
    }


def _taints(pool: Pool) -> list[dict[str, str]]:
    taints: list[dict[str, str]] = list(pool.provider["gpuTaints"]) if pool.gpu else []
    if pool.capacity == "spot":
        taints += pool.provider["spotTaints"]
    return taints + pool.taints


def _node(pool: Pool, number: int) -> dict[str, Any]:
    name = f"{pool.name}-{number}"
    machine = pool.machine
    extended = {key: str(count) for key, count in machine.get("extra", {}).items()}
    if pool.gpu:
        extended["nvidia.com/gpu"] = str(machine["count"])
    memory_mib = machine["memoryGiB"] * 1024
    capacity = {"cpu": str(machine["cpu"]), "memory": f"{memory_mib}Mi", "ephemeral-storage": "500Gi", "pods": "110"}
    # What the system keeps for itself: a tenth of a core and 4 % of memory are near what the clouds reserve.
    allocatable = capacity | {"cpu": f"{machine['cpu'] * 1000 - 100}m", "memory": f"{memory_mib * 96 // 100}Mi"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, MANAGED_LABEL: "fake", **_labels(pool)},
            "annotations": {PROVIDER_ANNOTATION: pool.provider_name},
        },
        "spec": {"providerID": f"{pool.provider_name}:///{pool.zone}/{name}", "taints": _taints(pool)},
        "status": {
            "capacity": capacity | extended,
            "allocatable": allocatable | extended,
            "nodeInfo": {
                "architecture": "amd64",
                "operatingSystem": "linux",
                "kubeletVersion": "fake",
                "kubeProxyVersion": "fake",
                "containerRuntimeVersion": "fake",
                "kernelVersion": "fake",
                "osImage": "fake",
                "bootID": "",
                "machineID": "",
                "systemUUID": "",
            },
        },
    }


@dataclasses.dataclass(frozen=True)
class Fleet:
    """A fleet file."""

    source: pathlib.Path
    pools: list[Pool]
    volumes: list[volumes.Group]

    def gpu_pools(self) -> list[dict[str, Any]]:
        """GPUPool objects: they can be applied once Loadline's CRDs are there."""
        return [made for pool in self.pools if (made := pool.gpu_pool_object())]

    def objects(self) -> list[dict[str, Any]]:
        """Everything but the GPUPools."""
        nodes = [node for pool in self.pools for node in pool.objects()]
        return nodes + volumes.objects(self.volumes)

    def as_yaml(self) -> str:
        """All objects, for reading."""
        return yaml.safe_dump_all(self.objects() + self.gpu_pools(), sort_keys=False)

    def summary(self) -> str:
        """One line a pool, and one of volumes."""
        lines = []
        for pool in self.pools:
            cards = f", {pool.machine['count']} x {pool.machine['gpu']} each" if pool.gpu else ""
            zone = f" in {pool.zone}" if pool.zone else ""
            lines.append(f"  {pool.name}: {pool.nodes} x {pool.machine_name} ({pool.capacity}){zone}{cards}")
        count = sum(len(group.sizes) for group in self.volumes)
        return "\n".join([f"fleet {self.source.stem}:", *lines, f"  {count} volumes to claim"])


def _pool(source: pathlib.Path, entry: dict[str, Any]) -> Pool:
    unknown = set(entry) - _POOL_KEYS
    if unknown or not {"name", "provider", "machine"} <= set(entry):
        raise ClusterError(f"{source}: a pool needs name, provider and machine and may have {_POOL_KEYS}: {entry}")
    machines = _table("machine-types.yaml")["machines"]
    if entry["machine"] not in machines:
        raise ClusterError(f"{source}: no machine {entry['machine']!r}: there are {', '.join(machines)}")
    pool = Pool(
        name=entry["name"],
        provider_name=entry["provider"],
        machine_name=entry["machine"],
        zone=entry.get("zone", ""),
        capacity=entry.get("capacity", "on-demand"),
        nodes=entry.get("nodes", 1),
        labels=entry.get("labels", {}),
        taints=entry.get("taints", []),
        gpu_pool=entry.get("gpuPool"),
    )
    if pool.capacity not in ("spot", "on-demand"):
        raise ClusterError(f"{source}: pool {pool.name}: capacity is spot or on-demand, not {pool.capacity!r}")
    provider(pool.provider_name)
    return pool


def load(file_or_name: str) -> Fleet:
    """Reads a fleet file, or the one of that name beside this tool."""
    path = pathlib.Path(file_or_name)
    if not path.is_file():
        path = FLEETS / f"{file_or_name}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in FLEETS.glob("*.yaml")))
        raise ClusterError(f"no fleet {file_or_name}: neither a file nor one of {known}")
    document = yaml.safe_load(path.read_text())
    return Fleet(
        source=path.resolve(),
        pools=[_pool(path, entry) for entry in document["pools"]],
        volumes=volumes.groups(path, document.get("volumes", [])),
    )


def create(cluster: Cluster, fleet: Fleet) -> None:
    """Makes what is missing of a fleet (so that a reclaimed node comes back) and waits until its nodes take pods."""
    there = {node["metadata"]["name"] for node in kubectl.get(cluster, "nodes")["items"]}
    nodes = [node for pool in fleet.pools for node in pool.objects() if node["metadata"]["name"] not in there]
    if nodes:
        # Created, not applied: a node's status is kept at its creation only.
        kubectl.run(cluster, "create", "-f", "-", text=yaml.safe_dump_all(nodes, sort_keys=False))
    kubectl.apply(cluster, volumes.objects(fleet.volumes))
    if str(fleet.source) not in cluster.fleets:
        cluster.fleets.append(str(fleet.source))
        cluster.save()
    wait_ready(cluster, {node["metadata"]["name"] for node in nodes})
    if "gpupools" in kubectl.run(cluster, "api-resources", "--api-group=loadline.dev", "-o", "name"):
        kubectl.apply(cluster, fleet.gpu_pools())


def wait_ready(cluster: Cluster, names: set[str]) -> None:
    """Waits until these nodes are Ready and free of the not-ready taint that each is born with."""

    def waiting() -> set[str]:
        return {node["metadata"]["name"] for node in kubectl.get(cluster, "nodes")["items"] if not _takes_pods(node)}

    kubectl.wait_until(f"{len(names)} nodes to be ready", 60, lambda: not waiting() & names, lambda: str(waiting()))


def _takes_pods(node: dict[str, Any]) -> bool:
    ready = any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for condition in node["status"].get("conditions", [])
    )
    tainted = any(taint["key"] == "node.kubernetes.io/not-ready" for taint in node["spec"].get("taints", []))
    return ready and not tainted
