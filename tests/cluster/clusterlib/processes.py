"""Starts and ends programs that outlive the command that started them.

A process is known by its id and its start time together: an id alone may have passed to a stranger by the time it is
to be ended.
"""

import contextlib
import dataclasses
import os
import pathlib
import signal
import subprocess
import time


@dataclasses.dataclass(frozen=True)
class Process:
    """A started program. `started` is field 22 of /proc/PID/stat: clock ticks from boot to its start."""

    name: str
    pid: int
    started: int

    def alive(self) -> bool:
        """Still the same process, and not merely waiting to be reaped."""
        state = _stat(self.pid)
        return state is not None and state[1] == self.started and state[0] not in "ZX"

    def signal(self, number: int) -> None:
        """Sends a signal to its process group (each program leads its own); nothing happens when it is gone."""
        if self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)

    def wait(self, seconds: float) -> bool:
        """Whether it was gone within that time."""
        deadline = time.monotonic() + seconds
        while self.alive():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True

    def stop(self, patience_seconds: float = 10) -> bool:
        """SIGTERM, then SIGKILL when it did not listen. Whether SIGTERM was enough."""
        self.signal(signal.SIGTERM)
        if self.wait(patience_seconds):
            return True
        self.signal(signal.SIGKILL)
        self.wait(5)
        return False


def _stat(pid: int) -> tuple[str, int] | None:
    """State letter and start time. The name, in brackets, may itself hold spaces and brackets."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text[text.rindex(")") + 2 :].split()
    return fields[0], int(fields[19])


def of_pid(name: str, pid: int) -> Process | None:
    """The process that has this id now."""
    state = _stat(pid)
    return Process(name, pid, state[1]) if state else None


def start(name: str, command: list[str], log: pathlib.Path, environment: dict[str, str] | None = None) -> Process:
    """Starts a program in a session of its own, with its output appended to `log`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=environment,
            cwd="/",
        )
    child.returncode = 0  # it is not ours to wait for: silences the warning about a forgotten child
    state = _stat(child.pid)
    return Process(name, child.pid, state[1] if state else 0)


def tail(log: pathlib.Path, lines: int = 12, width: int = 300) -> str:
    """The end of a log for an error message. Lines are cut: kwok logs a template error with kilobytes of NULs."""
    try:
        data = log.read_bytes()[-64 * 1024 :]
    except FileNotFoundError:
        return f"(no {log})"
    text = data.replace(b"\0", b"").decode(errors="replace")
    return "\n".join(f"  {line[:width]}" for line in text.splitlines()[-lines:])
