"""Commands of `loadline-chaos`."""

import argparse
import os
import pathlib
import sys
from collections.abc import Callable

from clusterlib.errors import ClusterError

from . import report, soak
from .arena import Arena
from .report import Result
from .suites import cut, differential, garbage, leaders, quiesce, watches

SUITES: dict[str, Callable[[Arena, int | None, str], Result]] = {
    "cut": cut.run,
    "watches": watches.run,
    "leaders": leaders.run,
    "quiesce": quiesce.run,
    "differential": differential.run,
    "garbage": garbage.run,
}


def main() -> int:
    """Runs suites on a control plane of their own; the exit code for the shell."""
    parser = argparse.ArgumentParser(prog="loadline-chaos", description=__doc__)
    parser.add_argument("suite", nargs="*", help=f"of {', '.join(SUITES)}, soak; all but soak unless named")
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="folder of Loadline's programs")
    parser.add_argument("--control-plane", default=os.environ.get("CONTROL_PLANE", "1.36"), help="Kubernetes minor")
    parser.add_argument("--limit", type=int, help="at most so many runs with a fault in each suite, drawn by the seed")
    parser.add_argument("--seed", type=int, default=1, help="of everything that is drawn (default %(default)s)")
    parser.add_argument("--only", default="", metavar="WORDS", help="only stories whose name contains this")
    parser.add_argument("--minutes", type=float, default=30, help="how long the soak lasts (default %(default)s)")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    results: list[Result] = []
    try:
        with Arena(arguments.programs, arguments.control_plane, arguments.seed) as arena:
            for name in arguments.suite or SUITES:
                print(f"== {name}", flush=True)
                if name == "soak":
                    results.append(soak.run(arena, arguments.minutes))
                else:
                    results.append(SUITES[name](arena, arguments.limit, arguments.only))
                arena.keep_logs = arena.keep_logs or bool(results[-1].divergences)
    except ClusterError as error:
        print(f"loadline-chaos: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        if results:
            print(report.table(results))
    return 1 if any(result.divergences for result in results) else 0
