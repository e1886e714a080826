"""What a running cluster is: DIR/state.json, and the names of the files beside it."""

import contextlib
import dataclasses
import fcntl
import json
import os
import pathlib
from collections.abc import Iterator

from .errors import ClusterError
from .processes import Process


@dataclasses.dataclass
class Cluster:
    """A cluster's folder and what was started in it. `processes` is in the order of starting."""

    folder: pathlib.Path
    control_plane: str
    ports: dict[str, int]
    programs: dict[str, pathlib.Path]
    processes: list[Process] = dataclasses.field(default_factory=list)
    fleets: list[str] = dataclasses.field(default_factory=list)  # the fleet files that were created
    loadline_programs: str = ""  # the folder of Loadline's own programs, once it is installed

    @property
    def server(self) -> str:
        """The API server's address."""
        return f"https://127.0.0.1:{self.ports['apiserver']}"

    @property
    def certs(self) -> pathlib.Path:
        """Certificates and keys."""
        return self.folder / "certs"

    @property
    def kubeconfig(self) -> pathlib.Path:
        """The administrator's kubeconfig."""
        return self.folder / "kubeconfig"

    @property
    def logs(self) -> pathlib.Path:
        """One log a program."""
        return self.folder / "logs"

    def log(self, name: str) -> pathlib.Path:
        """A program's log."""
        return self.logs / f"{name}.log"

    def process(self, name: str) -> Process | None:
        """The newest process of that name, dead or alive."""
        return next((process for process in reversed(self.processes) if process.name == name), None)

    def replace_process(self, process: Process) -> None:
        """Records a newly started process in place of an older one of its name."""
        self.processes = [other for other in self.processes if other.name != process.name] + [process]
        self.save()

    def forget_process(self, name: str) -> None:
        """Drops a process that was ended."""
        self.processes = [other for other in self.processes if other.name != name]
        self.save()

    def save(self) -> None:
        """Writes state.json whole or not at all."""
        document = {
            "controlPlane": self.control_plane,
            "ports": self.ports,
            "programs": {name: str(path) for name, path in self.programs.items()},
            "processes": [dataclasses.asdict(process) for process in self.processes],
            "fleets": self.fleets,
            "loadlinePrograms": self.loadline_programs,
        }
        partial = self.folder / f".state.json.{os.getpid()}"
        partial.write_text(json.dumps(document, indent=2) + "\n")
        partial.rename(_file(self.folder))


def _file(folder: pathlib.Path) -> pathlib.Path:
    return folder / "state.json"


def exists(folder: pathlib.Path) -> bool:
    """Whether a cluster was started there and not yet taken down."""
    return _file(folder).is_file()


def load(folder: pathlib.Path) -> Cluster:
    """The cluster of that folder."""
    try:
        document = json.loads(_file(folder).read_text())
    except FileNotFoundError:
        raise ClusterError(f"no cluster in {folder}: start one with `loadline-cluster up --dir {folder}`") from None
    return Cluster(
        folder=folder,
        control_plane=document["controlPlane"],
        ports=document["ports"],
        programs={name: pathlib.Path(path) for name, path in document["programs"].items()},
        processes=[Process(**process) for process in document["processes"]],
        fleets=document["fleets"],
        loadline_programs=document["loadlinePrograms"],
    )


@contextlib.contextmanager
def locked(folder: pathlib.Path) -> Iterator[Cluster]:
    """The cluster, with the right to change its state: two commands on one cluster take turns."""
    load(folder)  # names the missing cluster before a lock file is made for it
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield load(folder)
