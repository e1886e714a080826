#!/usr/bin/env python3
"""Runs clang-tidy over the sources of the programs, and skips files that were found clean before.

A file is known by the content of itself, of every header of ours it includes, of .clang-tidy and by its compile command;
so a change of one header checks again exactly what includes it. Usage: tidy.py BUILD_FOLDER
"""

import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("base", "kube", "api", "estimator", "placement", "serve", "webhook", "operator", "cli", "score")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def cache_folder() -> pathlib.Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(base) / "loadline" / "tidy"


class Keys:
    """The key of a source file, by what it is made of."""

    def __init__(self, build: pathlib.Path, tidy_version: str) -> None:
        self._roots = (ROOT, build / "generated")
        self._salt = (ROOT / ".clang-tidy").read_text() + tidy_version

    @functools.lru_cache(maxsize=None)
    def _text(self, path: pathlib.Path) -> str:
        return path.read_text(errors="replace")

    def _includes(self, path: pathlib.Path) -> list[pathlib.Path]:
        found = []
        for name in INCLUDE.findall(self._text(path)):
            found += [root / name for root in self._roots if (root / name).is_file()][:1]
        return found

    def of(self, source: pathlib.Path, command: str) -> str:
        seen: set[pathlib.Path] = set()
        waiting = [source]
        while waiting:
            path = waiting.pop()
            if path not in seen:
                seen.add(path)
                waiting += self._includes(path)
        digest = hashlib.sha256((self._salt + command).encode())
        for path in sorted(seen):
            digest.update(hashlib.sha256(self._text(path).encode()).digest())
        return digest.hexdigest()


def check(build: pathlib.Path, source: pathlib.Path) -> tuple[bool, str]:
    done = subprocess.run(
        ["clang-tidy", "--quiet", "-p", str(build), str(source)], capture_output=True, text=True, check=False
    )
    return done.returncode == 0, done.stdout + (done.stderr if done.returncode else "")


def main() -> int:
    build = pathlib.Path(sys.argv[1]).resolve()
    version = subprocess.run(["clang-tidy", "--version"], capture_output=True, text=True, check=True).stdout
    keys = Keys(build, version)
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)

    todo: list[tuple[pathlib.Path, pathlib.Path]] = []
    known = 0
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = pathlib.Path(entry["file"])
        if not source.is_relative_to(ROOT) or source.relative_to(ROOT).parts[0] not in FOLDERS:
            continue
        stamp = cache / keys.of(source, entry["command"].replace(str(ROOT), ""))
        if stamp.exists():
            stamp.touch()
            known += 1
        else:
            todo.append((source, stamp))

    print(f"clang-tidy: {known} files known to be clean, {len(todo)} to check", flush=True)
    begun = time.monotonic()
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        futures = {pool.submit(check, build, source): (source, stamp) for source, stamp in todo}
        for number, future in enumerate(concurrent.futures.as_completed(futures), 1):
            source, stamp = futures[future]
            clean, output = future.result()
            print(
                f"  [{number}/{len(todo)}, {time.monotonic() - begun:.0f} s] {source.relative_to(ROOT)}"
                + ("" if clean else ": FAILED"),
                flush=True,
            )
            if clean:
                stamp.touch()
            else:
                failed += 1
                print(output, flush=True)
    forget_old(cache)
    return 1 if failed else 0


def forget_old(cache: pathlib.Path, days: int = 60) -> None:
    for stamp in cache.iterdir():
        if stamp.stat().st_mtime < time.time() - days * 86400:
            stamp.unlink()


if __name__ == "__main__":
    if not shutil.which("clang-tidy"):
        sys.exit("clang-tidy is not installed: make setup")
    sys.exit(main())
