"""The cluster's administrator in Python, straight at the API server: what a test itself does and sees. kubectl would do
as well, at a tenth of a second a call.

Thread-safety: each thread has a connection of its own.
"""

import contextlib
import http.client
import json
import socket
import ssl
import threading
import urllib.parse
from collections.abc import Iterator
from typing import Any

from clusterlib.errors import ClusterError
from clusterlib.state import Cluster

Object = dict[str, Any]

# Where each resource is served. The order is that in which a namespace is shown.
PATHS = {
    "trainingjobs": "/apis/loadline.dev/v1alpha1",
    "gpupools": "/apis/loadline.dev/v1alpha1",
    "placementpolicies": "/apis/loadline.dev/v1alpha1",
    "jobs": "/apis/batch/v1",
    "services": "/api/v1",
    "configmaps": "/api/v1",
    "persistentvolumeclaims": "/api/v1",
    "persistentvolumes": "/api/v1",
    "pods": "/api/v1",
    "nodes": "/api/v1",
    "events": "/apis/events.k8s.io/v1",
    "namespaces": "/api/v1",
    "customresourcedefinitions": "/apis/apiextensions.k8s.io/v1",
    "mutatingwebhookconfigurations": "/apis/admissionregistration.k8s.io/v1",
    "validatingwebhookconfigurations": "/apis/admissionregistration.k8s.io/v1",
}


class Refused(ClusterError):
    """The server answered, and would not."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


def path_of(resource: str, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """Where an object, or a collection, is."""
    scope = f"/namespaces/{namespace}" if namespace else ""
    rest = "".join(f"/{part}" for part in (name, subresource) if part)
    return f"{PATHS[resource]}{scope}/{resource}{rest}"


class Api:
    """See the module."""

    def __init__(self, cluster: Cluster) -> None:
        self._port = cluster.ports["apiserver"]
        self._context = ssl.create_default_context(cafile=str(cluster.certs / "ca.crt"))
        self._context.load_cert_chain(cluster.certs / "admin.crt", cluster.certs / "admin.key")
        self._own = threading.local()

    def _connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection("127.0.0.1", self._port, timeout=60, context=self._context)

    def raw(self, method: str, target: str, document: object = None, kind: str = "application/json") -> bytes:
        """One request; the body of its answer."""
        body = None if document is None else json.dumps(document)
        for last in (False, True):
            connection = getattr(self._own, "connection", None) or self._connect()
            self._own.connection = connection
            try:
                connection.request(method, target, body, {"Content-Type": kind})
                answer = connection.getresponse()
                data = answer.read()
                break
            except (OSError, http.client.HTTPException):  # a kept connection that the server has closed
                self._own.connection = None
                if last:
                    raise
        if answer.status >= 300:
            try:
                message = json.loads(data).get("message", "")
            except ValueError:
                message = data.decode(errors="replace")
            raise Refused(answer.status, f"{method} {target}: {message}")
        return data

    def _json(self, method: str, target: str, document: object = None, kind: str = "application/json") -> Object:
        parsed: Object = json.loads(self.raw(method, target, document, kind))
        return parsed

    def get(self, resource: str, name: str, namespace: str = "") -> Object | None:
        """The object, or nothing."""
        try:
            return self._json("GET", path_of(resource, namespace, name))
        except Refused as refused:
            if refused.status == 404:
                return None
            raise

    def list(self, resource: str, namespace: str = "", labels: str = "") -> list[Object]:
        """All objects, of one namespace or of all."""
        query = f"?labelSelector={urllib.parse.quote(labels)}" if labels else ""
        items: list[Object] = self._json("GET", path_of(resource, namespace) + query)["items"]
        return items

    def create(self, resource: str, document: Object) -> Object:
        """Creates it where its metadata says."""
        return self._json("POST", path_of(resource, document["metadata"].get("namespace", "")), document)

    def patch(self, resource: str, name: str, change: Object, namespace: str = "", subresource: str = "") -> Object:
        """A merge patch."""
        target = path_of(resource, namespace, name, subresource)
        return self._json("PATCH", target, change, "application/merge-patch+json")

    def replace(self, resource: str, document: Object, namespace: str = "") -> Object:
        """Writes the whole object."""
        return self._json("PUT", path_of(resource, namespace, document["metadata"]["name"]), document)

    def delete(self, resource: str, name: str, namespace: str = "", grace_seconds: int | None = None) -> None:
        """Asks for deletion, in the background; nothing happens when it is gone."""
        options: Object = {"propagationPolicy": "Background"}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        try:
            self.raw("DELETE", path_of(resource, namespace, name), options)
        except Refused as refused:
            if refused.status != 404:
                raise

    def version(self, resource: str) -> str:
        """The resourceVersion of the collection now."""
        version: str = self._json("GET", path_of(resource) + "?limit=1")["metadata"]["resourceVersion"]
        return version

    def watch(self, resource: str, version: str) -> "Watch":
        """Opens a watch from `version` on, bookmarks included."""
        connection = self._connect()
        connection.request("GET", f"{path_of(resource)}?watch=1&allowWatchBookmarks=true&resourceVersion={version}")
        answer = connection.getresponse()
        if answer.status != 200:
            raise Refused(answer.status, f"watch {resource}: {answer.read().decode(errors='replace')}")
        connection.sock.settimeout(None)  # a quiet watch is a healthy one
        return Watch(connection.sock, answer)


class Watch:
    """An open watch: iterate over its events. `close` from any thread ends the iteration."""

    def __init__(self, connection: ssl.SSLSocket, answer: http.client.HTTPResponse) -> None:
        self._socket = connection
        self._answer = answer

    def __iter__(self) -> Iterator[Object]:
        while line := self._answer.readline():
            yield json.loads(line)

    def close(self) -> None:
        """Ends the watch."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
