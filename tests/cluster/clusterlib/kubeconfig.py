"""Kubeconfig files, by client certificate or by token file."""

import base64
import pathlib

import yaml


def _encoded(path: pathlib.Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def _write(path: pathlib.Path, server: str, ca: pathlib.Path, user: dict[str, str], namespace: str) -> None:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": server, "certificate-authority-data": _encoded(ca)}}],
        "users": [{"name": "test", "user": user}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", "namespace": namespace}}],
        "current-context": "test",
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(document, sort_keys=False))


def for_certificate(path: pathlib.Path, server: str, certs: pathlib.Path, client: str) -> None:
    """A kubeconfig that carries everything itself, so that the one file can be handed on."""
    user = {
        "client-certificate-data": _encoded(certs / f"{client}.crt"),
        "client-key-data": _encoded(certs / f"{client}.key"),
    }
    _write(path, server, certs / "ca.crt", user, "default")


def for_token_file(path: pathlib.Path, server: str, ca: pathlib.Path, token_file: pathlib.Path, namespace: str) -> None:
    """A kubeconfig that names a token file, as a pod's mounted token is: its reader must follow its renewal."""
    _write(path, server, ca, {"tokenFile": str(token_file)}, namespace)
