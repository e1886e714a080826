"""Builds the control plane's programs from their published Go modules and keeps them in the cache.

One folder a module, keyed by everything that could change its programs: go.mod, go.sum, build flags, stamps and the Go
version. So a change of helm's version does not rebuild Kubernetes, and two versions can lie side by side. Only the
programs are kept: the caches of a build are about 7 GB, the programs half a gigabyte.
"""

import contextlib
import dataclasses
import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
from collections.abc import Iterator

from . import toolchain
from .errors import ClusterError
from .paths import TOOLS, cache_root
from .progress import Progress

DEFAULT_CONTROL_PLANE = "1.36"
_FLAGS = ("-trimpath", "-buildvcs=false", "-mod=readonly")


@dataclasses.dataclass(frozen=True)
class Program:
    """One program: its file name, its main package, and how long its build takes on two cores from nothing."""

    name: str
    package: str
    usually: str


@dataclasses.dataclass(frozen=True)
class Module:
    """A tools module (a folder of tools/) and the programs built from it."""

    folder: pathlib.Path
    requires: str
    programs: tuple[Program, ...]

    @property
    def version(self) -> str:
        """The pinned version, "v1.36.3", as go.mod states it."""
        text = (self.folder / "go.mod").read_text()
        match = re.search(rf"^\s*(?:require )?{re.escape(self.requires)} (v\S+)", text, re.MULTILINE)
        if not match:
            raise ClusterError(f"{self.folder}/go.mod does not require {self.requires}")
        return match.group(1)


def known_control_planes() -> list[str]:
    """The Kubernetes minors that have a tools module, oldest first."""
    found = [folder.name.removeprefix("kubernetes-") for folder in TOOLS.glob("kubernetes-*")]
    return sorted(found, key=lambda minor: [int(part) for part in minor.split(".")])


def modules(control_plane: str) -> list[Module]:
    """Every module that a cluster of this Kubernetes minor ("1.36") needs."""
    kubernetes = TOOLS / f"kubernetes-{control_plane}"
    if not kubernetes.is_dir():
        raise ClusterError(f"no control plane {control_plane}: there are {', '.join(known_control_planes())}")
    return [
        Module(
            kubernetes,
            "k8s.io/kubernetes",
            (
                Program("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", "about 330 s on two cores"),
                Program("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager", "about 80 s"),
                Program("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler", "about 10 s"),
                Program("kubectl", "k8s.io/kubernetes/cmd/kubectl", "about 35 s"),
            ),
        ),
        Module(
            TOOLS / "etcd", "go.etcd.io/etcd/server/v3", (Program("etcd", "go.etcd.io/etcd/server/v3", "about 40 s"),)
        ),
        Module(TOOLS / "kwok", "sigs.k8s.io/kwok", (Program("kwok", "sigs.k8s.io/kwok/cmd/kwok", "about 95 s"),)),
        Module(TOOLS / "helm", "helm.sh/helm/v4", (Program("helm", "helm.sh/helm/v4/cmd/helm", "about 80 s"),)),
    ]


def _stamps(module: Module) -> dict[str, str]:
    """The variables that a release build sets. Without them `kubectl version` says v0.0.0-master and Helm's checks of
    kubeVersion go wrong. The values depend on the version alone, so that the same sources give the same programs."""
    version = module.version
    if module.requires == "k8s.io/kubernetes":
        major, minor, _ = version.removeprefix("v").split(".")
        values = {
            "gitVersion": version,
            "gitMajor": major,
            "gitMinor": minor,
            # A Go module carries no commit; the version's own hash is 40 hex digits and as unique.
            "gitCommit": hashlib.sha1(f"{module.requires}@{version}".encode()).hexdigest(),
            "gitTreeState": "clean",
            "buildDate": "2026-01-01T00:00:00Z",
        }
        packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
        return {f"{package}.{name}": value for package in packages for name, value in values.items()}
    if module.requires.startswith("helm.sh/helm/"):
        return {
            f"{module.requires}/internal/version.version": version,
            f"{module.requires}/internal/version.gitTreeState": "clean",
        }
    if module.requires == "sigs.k8s.io/kwok":
        return {"sigs.k8s.io/kwok/pkg/consts.Version": version}
    return {}  # etcd keeps its version in its sources


def _linker_flags(module: Module) -> str:
    return " ".join(["-s", "-w"] + [f"-X {name}={value}" for name, value in _stamps(module).items()])


def _folder(module: Module, go_version: str) -> pathlib.Path:
    digest = hashlib.sha256()
    for part in (
        (module.folder / "go.mod").read_bytes(),
        (module.folder / "go.sum").read_bytes(),
        " ".join(_FLAGS).encode(),
        _linker_flags(module).encode(),
        go_version.encode(),
    ):
        digest.update(hashlib.sha256(part).digest())
    return cache_root() / "control-plane" / f"{module.folder.name}-{digest.hexdigest()[:16]}"


def locate(control_plane: str) -> dict[str, pathlib.Path]:
    """The programs by name, all of them built; an error that names the command to run when one is not."""
    go = toolchain.find()
    if go:
        paths = {
            program.name: _folder(module, go.version) / program.name
            for module in modules(control_plane)
            for program in module.programs
        }
        if all(path.is_file() for path in paths.values()):
            return paths
    raise ClusterError(
        f"the control plane {control_plane} is not built yet: run"
        f" `loadline-cluster build --control-plane {control_plane}` (about 12 minutes on two cores)"
    )


@contextlib.contextmanager
def _only_one_build() -> Iterator[None]:
    """A second build waits and then finds everything there."""
    lock_file = cache_root() / "control-plane.lock"
    lock_file.parent.mkdir(parents=True, exist_ok=True)
    with lock_file.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("another build of the control plane is running: waiting for it", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build_environment(go: toolchain.Go) -> tuple[dict[str, str], pathlib.Path]:
    """The environment of `go build`, and the folder of throw-away caches. The user's own caches are used when the
    environment names them; they are not ours to fill with gigabytes otherwise."""
    scratch = cache_root() / "go-build"
    environment = {
        **os.environ,
        "CGO_ENABLED": "0",
        "GOFLAGS": "",
        "GOWORK": "off",
        "GOTOOLCHAIN": "local",
        "GOCACHE": os.environ.get("GOCACHE") or str(scratch / "cache"),
        "GOMODCACHE": os.environ.get("GOMODCACHE") or str(scratch / "modules"),
    }
    environment.pop("GOROOT", None)  # it would point another Go at the wrong library
    environment["PATH"] = f"{go.program.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return environment, scratch


def _remove_scratch(scratch: pathlib.Path) -> None:
    """Go writes its module cache read-only, so that plain removal fails for anyone but root."""
    if not scratch.exists():
        return
    for folder, _, _ in os.walk(scratch):
        os.chmod(folder, 0o700)
    shutil.rmtree(scratch)


def _build_program(
    go: toolchain.Go, environment: dict[str, str], module: Module, program: Program, target: pathlib.Path
) -> None:
    """Builds into a neighbour and renames: a half-written program is never found under its name."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    command = [str(go.program), "build", *_FLAGS]
    command += ["-ldflags", _linker_flags(module), "-o", str(partial), program.package]
    try:
        # Go names each module it fetches, hundreds of lines; only a failure needs them.
        done = subprocess.run(
            command, cwd=module.folder, env=environment, stderr=subprocess.PIPE, text=True, check=False
        )
        if done.returncode != 0:
            raise ClusterError(f"go build of {program.name} {module.version} failed:\n{done.stderr[-4000:]}")
        partial.rename(target)
    finally:
        partial.unlink(missing_ok=True)


def build(control_plane: str) -> dict[str, pathlib.Path]:
    """Builds what is missing and returns every program by name. Prints one line a step."""
    wanted = modules(control_plane)
    with _only_one_build():
        go = toolchain.find()
        if not go:
            print(f"no Go new enough for the control plane found: fetching {toolchain.PINNED}", flush=True)
            go = toolchain.fetch()
        missing = [
            (module, program, _folder(module, go.version) / program.name)
            for module in wanted
            for program in module.programs
            if not (_folder(module, go.version) / program.name).is_file()
        ]
        if missing:
            environment, scratch = _build_environment(go)
            progress = Progress(len(missing))
            for module, program, target in missing:
                with progress.step(f"{program.name} {module.version}", program.usually):
                    _build_program(go, environment, module, program, target)
            _remove_scratch(scratch)
    return locate(control_plane)
