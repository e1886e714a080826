"""Static volumes: no provisioner runs here, but the binder and the scheduler's volume plugin are real."""

import dataclasses
import pathlib
from typing import Any

from .errors import ClusterError


@dataclasses.dataclass(frozen=True)
class Group:
    """Volumes of one class in one zone; without a zone they can be reached from everywhere."""

    storage_class: str
    zone: str
    sizes: list[str]
    access_modes: list[str]


def groups(source: pathlib.Path, entries: list[dict[str, Any]]) -> list[Group]:
    """The `volumes` of a fleet file."""
    made = []
    for entry in entries:
        unknown = set(entry) - {"class", "zone", "sizes", "accessModes"}
        if unknown or not {"class", "sizes"} <= set(entry):
            raise ClusterError(f"{source}: volumes need class and sizes and may have zone and accessModes: {entry}")
        modes = entry.get("accessModes", ["ReadWriteMany", "ReadWriteOnce"])
        made.append(Group(entry["class"], entry.get("zone", ""), entry["sizes"], modes))
    return made


def objects(volume_groups: list[Group]) -> list[dict[str, Any]]:
    """StorageClasses and PersistentVolumes."""
    classes = sorted({group.storage_class for group in volume_groups})
    made = [_storage_class(name) for name in classes]
    for group in volume_groups:
        made += [_volume(group, number, size) for number, size in enumerate(group.sizes)]
    return made


def _storage_class(name: str) -> dict[str, Any]:
    """The claim is bound when its first pod is placed, so that the volume lies in the pod's zone."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
        "reclaimPolicy": "Retain",
    }


def _volume(group: Group, number: int, size: str) -> dict[str, Any]:
    name = "-".join(part for part in (group.storage_class, group.zone, str(number)) if part)
    labels = {"topology.kubernetes.io/zone": group.zone} if group.zone else {}
    zone_term = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [group.zone]}
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [zone_term]}]}}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": group.access_modes,
            "storageClassName": group.storage_class,
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": f"/volumes/{name}"},  # nothing ever reads it: no kubelet runs
            **(affinity if group.zone else {}),
        },
    }
