"""Commands of `loadline-cluster`."""

import argparse
import os
import pathlib
import sys
import time

from . import binaries, controlplane, fleet, install, state, stories
from .errors import ClusterError
from .progress import seconds_text


def _folder(text: str) -> pathlib.Path:
    return pathlib.Path(text).resolve()


def _build(arguments: argparse.Namespace) -> None:
    programs = binaries.build(arguments.control_plane)
    print(f"control plane {arguments.control_plane}: {len(programs)} programs in {programs['kubectl'].parent.parent}")


def _up(arguments: argparse.Namespace) -> None:
    begun = time.monotonic()
    pools = fleet.load(arguments.fleet) if arguments.fleet else None  # a bad file is told before anything starts
    options = controlplane.Options(arguments.control_plane, arguments.owner_pid, arguments.workload_api)
    cluster = controlplane.up(arguments.dir, options)
    if pools:
        try:
            fleet.create(cluster, pools)
        except BaseException:
            controlplane.down(arguments.dir, keep_logs=True)
            raise
    print(
        f"control plane {arguments.control_plane} at {cluster.server}, up in {seconds_text(time.monotonic() - begun)}"
    )
    if pools:
        print(pools.summary())
    print(f"export KUBECONFIG={cluster.kubeconfig}")


def _down(arguments: argparse.Namespace) -> None:
    controlplane.down(arguments.dir, keep_logs=arguments.keep_logs)


def _keep(arguments: argparse.Namespace) -> None:
    controlplane.keep(arguments.dir, arguments.owner_pid, arguments.owner_started)


def _fleet(arguments: argparse.Namespace) -> None:
    pools = fleet.load(arguments.file)
    fleet.create(state.load(arguments.dir), pools)
    print(pools.summary())


def _render(arguments: argparse.Namespace) -> None:
    print(fleet.load(arguments.file).as_yaml(), end="")


def _node(arguments: argparse.Namespace) -> None:
    story = stories.STORIES[arguments.story]
    print(story(state.load(arguments.dir), arguments.node, *arguments.details))


def _install(arguments: argparse.Namespace) -> None:
    with state.locked(arguments.dir) as cluster:
        install.install(cluster, arguments.bin, arguments.set)
    print("Loadline is installed and ready")


def _program(arguments: argparse.Namespace) -> None:
    with state.locked(arguments.dir) as cluster:
        install.COMMANDS[arguments.command](cluster)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="loadline-cluster", description="A real Kubernetes control plane with pretended GPU nodes, for tests."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name: str, help_text: str, run: object, folder: bool = True) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=help_text, description=help_text)
        made.set_defaults(run=run)
        if folder:
            made.add_argument("--dir", type=_folder, required=True, help="the cluster's folder")
        return made

    def control_plane(made: argparse.ArgumentParser) -> None:
        made.add_argument(
            "--control-plane",
            default=os.environ.get("CONTROL_PLANE", binaries.DEFAULT_CONTROL_PLANE),
            help=f"Kubernetes minor: {' or '.join(binaries.known_control_planes())} (default $CONTROL_PLANE, else"
            f" {binaries.DEFAULT_CONTROL_PLANE})",
        )

    control_plane(command("build", "build the control plane's programs that the cache lacks", _build, folder=False))

    up = command("up", "start a control plane, with a fleet of nodes when one is named", _up)
    control_plane(up)
    up.add_argument("--fleet", help="a file, or the name of one in tests/cluster/fleets")
    up.add_argument("--owner-pid", type=int, help="end the cluster when this process ends")
    up.add_argument("--workload-api", action="store_true", help="serve the native gang-scheduling API")

    down = command("down", "end the cluster and remove its files", _down)
    down.add_argument("--keep-logs", action="store_true", help="leave the folder's logs")

    keep = command("keep", "end the cluster once another process has ended (started by up --owner-pid)", _keep)
    keep.add_argument("owner_pid", type=int)
    keep.add_argument("owner_started", type=int)

    command("fleet", "add the pools of a fleet file", _fleet).add_argument("file")
    command("render", "print a fleet's objects, without a cluster", _render, folder=False).add_argument("file")

    node = command("node", "let something happen to a node: " + "; ".join(stories.help_lines()), _node)
    node.add_argument("story", choices=list(stories.STORIES))
    node.add_argument("node")
    node.add_argument("details", nargs="*", help="for taint: KEY=VALUE:EFFECT, or KEY- to take it away")

    made = command("install", "install Loadline's chart and start its programs beside the cluster", _install)
    made.add_argument("--bin", type=_folder, required=True, help="folder of loadline-webhook and loadline-operator")
    made.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a value of the chart")
    for name in install.COMMANDS:
        command(name, install.COMMANDS[name].__doc__ or "", _program)
    return parser


def main() -> int:
    """Runs one command; the exit code for the shell."""
    # kubectl's own flags are not ours to parse.
    if len(sys.argv) > 1 and sys.argv[1] == "kubectl":
        return _kubectl(sys.argv[2:])
    arguments = _parser().parse_args()
    try:
        arguments.run(arguments)
    except ClusterError as error:
        print(f"loadline-cluster: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _kubectl(arguments: list[str]) -> int:
    if len(arguments) < 2 or arguments[0] != "--dir":
        print("usage: loadline-cluster kubectl --dir DIR KUBECTL-ARGUMENT...", file=sys.stderr)
        return 2
    try:
        return controlplane.exec_kubectl(_folder(arguments[1]), arguments[2:])
    except ClusterError as error:
        print(f"loadline-cluster: {error}", file=sys.stderr)
        return 1
