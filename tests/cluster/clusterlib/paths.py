"""Where things lie: the sources, and the cache outside of them."""

import os
import pathlib

CLUSTER_SOURCES = pathlib.Path(__file__).resolve().parent.parent
REPOSITORY = CLUSTER_SOURCES.parent.parent
TOOLS = CLUSTER_SOURCES / "tools"
STAGES = CLUSTER_SOURCES / "stages"
FLEETS = CLUSTER_SOURCES / "fleets"


def cache_root() -> pathlib.Path:
    """Built programs outlive the work tree, so that a fresh clone need not build them again."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(base) / "loadline"
