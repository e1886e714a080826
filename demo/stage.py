"""The demonstration's means: a cluster that ends with it, kubectl as a person types it, and steps that must hold."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOL = ROOT / "tests" / "cluster" / "loadline-cluster"

sys.path.insert(0, str(TOOL.parent))

from clusterlib import processes  # noqa: E402  (the path above comes first)


class NotShown(Exception):
    """Something that the demonstration promises did not happen."""


def require(holds: bool, what: str) -> None:
    """Fails the demonstration, with what should have been seen."""
    if not holds:
        raise NotShown(what)


class Narrator:
    """Numbered steps with the time so far, and at the end what was shown."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._begun = time.monotonic()
        self.shown: list[str] = []

    def clock(self) -> str:
        seconds = int(time.monotonic() - self._begun)
        return f"{seconds // 60}:{seconds % 60:02d}"

    def step(self, title: str) -> None:
        number = len(self.shown) + 1
        print(f"\n=== {number}/{self._total} {title} ({self._total - number} left, {self.clock()} so far)", flush=True)
        self.shown.append(title)

    def say(self, text: str) -> None:
        print(f"--- {text}", flush=True)


class Stage:
    """One cluster. Leaving the context ends everything that was started; logs stay when something went wrong."""

    def __init__(self, programs: pathlib.Path, control_plane: str, fleet: str) -> None:
        self._programs = programs
        self._control_plane = control_plane
        self._fleet = fleet
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix="loadline-demo-"))
        self._kubectl = ""
        self._processes: list[dict[str, Any]] = []

    def __enter__(self) -> "Stage":
        self.tool("up", "--control-plane", self._control_plane, "--fleet", self._fleet, "--owner-pid", str(os.getpid()))
        self._kubectl = self._state()["programs"]["kubectl"]
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if not (self._folder / "state.json").is_file():
            return
        self._processes += self._state()["processes"]
        self.tool("down", *(["--keep-logs"] if error else []))
        if error:
            print(f"the logs of every program are in {self._folder / 'logs'}", file=sys.stderr)
        else:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads((self._folder / "state.json").read_text())
        return state

    def left_running(self) -> list[str]:
        """Programs of this cluster that still run; for after the end."""
        return [process["name"] for process in self._processes if processes.Process(**process).alive()]

    def tool(self, command: str, *arguments: str) -> None:
        """A command of tests/cluster/loadline-cluster on this cluster."""
        done = subprocess.run(
            [TOOL, command, "--dir", self._folder, *arguments], capture_output=True, text=True, check=False
        )
        for line in (done.stdout + done.stderr).splitlines():
            print(f"    {line}", flush=True)
        require(done.returncode == 0, f"loadline-cluster {command} {' '.join(arguments)}")

    def install(self) -> None:
        self.tool("install", "--bin", str(self._programs))

    def _run(self, arguments: tuple[str, ...], text: str | None = None) -> subprocess.CompletedProcess[str]:
        # Both streams in the order in which a terminal shows them.
        return subprocess.run(
            [self._kubectl, f"--kubeconfig={self._folder / 'kubeconfig'}", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            input=text,
            check=False,
        )

    def kubectl(self, *arguments: str, fails: bool = False, text: str | None = None, head: int = 0) -> str:
        """Runs kubectl, shows command and output (its first `head` lines) and returns all of it."""
        print("$ kubectl " + " ".join(f"'{word}'" if " " in word else word for word in arguments), flush=True)
        done = self._run(arguments, text)
        lines = done.stdout.splitlines()
        for line in lines[: head or None]:
            print(f"  {line}")
        if head and len(lines) > head:
            print(f"  ... {len(lines) - head} more lines")
        sys.stdout.flush()
        require((done.returncode != 0) == fails, "a refusal" if fails else "kubectl to succeed")
        return done.stdout

    def plugin(self, *arguments: str) -> str:
        """Runs kubectl-loadline, shows and returns its output."""
        print("$ kubectl loadline " + " ".join(arguments), flush=True)
        done = subprocess.run(
            [self._programs / "kubectl-loadline", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        print("".join(f"  {line}\n" for line in done.stdout.splitlines()), end="", flush=True)
        require(done.returncode == 0, "kubectl-loadline to say that it fits")
        return done.stdout

    def get(self, *arguments: str) -> Any:
        """`kubectl get -o json`, not shown; nothing when the object is not there."""
        done = self._run(("get", *arguments, "-o", "json"))
        return json.loads(done.stdout) if done.returncode == 0 else None

    def until(self, what: str, seconds: float, holds: Callable[[], Any]) -> Any:
        """Polls until `holds` returns something, and returns that."""
        deadline = time.monotonic() + seconds
        while True:
            found = holds()
            if found:
                return found
            require(time.monotonic() < deadline, f"within {seconds:.0f} s: {what}")
            time.sleep(0.3)
