"""The cluster's certificates: one authority, a serving certificate, and a client certificate for each program.

Made by the openssl program, with P-256 keys: all of them take a fraction of a second.
"""

import pathlib
import subprocess

from .errors import ClusterError

_DAYS = "30"  # a test cluster that is older than this should be made anew anyway

# Who each client says it is. system:masters is the group that RBAC cannot refuse.
CLIENTS = {
    "admin": "/O=system:masters/CN=loadline-admin",
    "controller-manager": "/CN=system:kube-controller-manager",
    "scheduler": "/CN=system:kube-scheduler",
    "kwok": "/O=system:masters/CN=kwok",
}


def _openssl(*arguments: str | pathlib.Path, text: str | None = None) -> None:
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, input=text, check=False)
    if done.returncode != 0:
        raise ClusterError(f"openssl {arguments[0]} failed: {done.stderr.strip()}")


def _key(path: pathlib.Path) -> None:
    _openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", path)
    path.chmod(0o600)


def _signed(folder: pathlib.Path, name: str, subject: str, extensions: str) -> None:
    _key(folder / f"{name}.key")
    request = folder / f"{name}.csr"
    _openssl("req", "-new", "-key", folder / f"{name}.key", "-subj", subject, "-out", request)
    extension_file = folder / f"{name}.ext"
    extension_file.write_text(extensions)
    _openssl(
        *("x509", "-req", "-in", request, "-CA", folder / "ca.crt", "-CAkey", folder / "ca.key", "-CAcreateserial"),
        *("-days", _DAYS, "-sha256", "-extfile", extension_file, "-out", folder / f"{name}.crt"),
    )
    request.unlink()
    extension_file.unlink()


def make(folder: pathlib.Path) -> None:
    """Fills `folder` with ca, apiserver and one pair for each of CLIENTS (.crt, .key), and the key that signs
    service-account tokens (service-account.key, .pub)."""
    folder.mkdir(parents=True)
    folder.chmod(0o700)
    _key(folder / "ca.key")
    _openssl(
        *("req", "-x509", "-new", "-key", folder / "ca.key", "-sha256", "-days", _DAYS, "-subj", "/CN=test-cluster-ca"),
        *("-addext", "keyUsage=critical,keyCertSign,cRLSign", "-out", folder / "ca.crt"),
    )
    _signed(
        folder,
        "apiserver",
        "/CN=kube-apiserver",
        "keyUsage=critical,digitalSignature\nextendedKeyUsage=serverAuth\n"
        "subjectAltName=IP:127.0.0.1,IP:10.0.0.1,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,"
        "DNS:kubernetes.default.svc\n",
    )
    for name, subject in CLIENTS.items():
        _signed(folder, name, subject, "keyUsage=critical,digitalSignature\nextendedKeyUsage=clientAuth\n")
    _key(folder / "service-account.key")
    _openssl("ec", "-in", folder / "service-account.key", "-pubout", "-out", folder / "service-account.pub")
