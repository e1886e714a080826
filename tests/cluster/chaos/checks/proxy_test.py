"""The proxy does to a request, a watch and an event what its rules say, and nothing to others."""

import http.client
import http.server
import json
import threading
import unittest

from chaos import rules
from chaos.proxy import Cut, Proxy
from chaos.rules import Fault, Rule
from chaos.watches import coalesce


def _event(kind: str, name: str, version: int) -> bytes:
    metadata = {"namespace": "team", "name": name, "resourceVersion": str(version)}
    return json.dumps({"type": kind, "object": {"metadata": metadata}}).encode() + b"\n"


class _Server(http.server.BaseHTTPRequestHandler):
    """An API server of three answers: it counts writes, lists them, and tells two events to whoever watches."""

    protocol_version = "HTTP/1.1"
    commits: list[str] = []
    go_on = threading.Event()

    def log_message(self, *_: object) -> None:
        pass

    def _give(self, document: object) -> None:
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.commits.append(body["metadata"]["name"])
        self._give(body)

    def do_GET(self) -> None:
        if "watch=" not in self.path:
            return self._give({"items": list(self.commits)})
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for line in (_event("ADDED", "one", 1), _event("MODIFIED", "one", 2)):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            self.wfile.flush()
        self.go_on.wait(5)
        self.wfile.write(b"0\r\n\r\n")


JOBS = "/apis/batch/v1/namespaces/team/jobs"


class ProxyTest(unittest.TestCase):
    def setUp(self) -> None:
        _Server.commits.clear()
        _Server.go_on.clear()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Server)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.proxy = Proxy(f"http://127.0.0.1:{self.server.server_address[1]}", None, None)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.addCleanup(self.proxy.stop)
        self.addCleanup(_Server.go_on.set)

    def connect(self, timeout: float = 5) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("127.0.0.1", self.proxy.port, timeout=timeout)
        self.addCleanup(connection.close)
        return connection

    def create(self, name: str, target: str = JOBS) -> int:
        connection = self.connect()
        connection.request("POST", target, json.dumps({"metadata": {"name": name}}))
        answer = connection.getresponse()
        answer.read()
        return answer.status

    def watch(self, lines: int) -> list[bytes]:
        connection = self.connect(timeout=0.5)
        connection.request("GET", JOBS + "?watch=1")
        answer = connection.getresponse()
        return [answer.readline() for _ in range(lines)]

    def test_passes_everything_on_and_notes_writes(self) -> None:
        self.assertEqual(self.create("a"), 200)
        self.assertEqual(self.watch(2), [_event("ADDED", "one", 1), _event("MODIFIED", "one", 2)])
        self.assertEqual([(w.name, w.status, w.answered) for w in self.proxy.writes], [("a", 200, True)])

    def test_answers_in_the_servers_place(self) -> None:
        self.proxy.add(Rule(Fault.ANSWER, status=429, seconds=7))
        connection = self.connect()
        connection.request("POST", JOBS, json.dumps({"metadata": {"name": "a"}}))
        answer = connection.getresponse()
        self.assertEqual((answer.status, answer.getheader("Retry-After")), (429, "7"))
        self.assertEqual(_Server.commits, [])
        self.assertEqual(self.create("b"), 200, "the rule held for one request")

    def test_drops_before_the_commit(self) -> None:
        self.proxy.add(Rule(Fault.DROP_BEFORE))
        with self.assertRaises(OSError):
            self.create("a")
        self.assertEqual(_Server.commits, [])

    def test_drops_after_the_commit(self) -> None:
        self.proxy.add(Rule(Fault.DROP_AFTER))
        with self.assertRaises(OSError):
            self.create("a")
        self.assertEqual(_Server.commits, ["a"])
        self.assertEqual([w.answered for w in self.proxy.writes], [False])

    def test_skips_and_tells_resources_and_verbs_apart(self) -> None:
        rule = self.proxy.add(Rule(Fault.ANSWER, verbs=rules.WRITES, resources=frozenset({"jobs"}), skip=1))
        self.assertEqual(self.create("a", JOBS.replace("jobs", "pods")), 200)
        self.assertEqual([self.create(name) for name in "bcd"], [200, 500, 200])
        self.assertEqual(rule.hits, 1)

    def test_leaves_leases_and_events_alone_unless_named(self) -> None:
        self.proxy.add(Rule(Fault.ANSWER, times=None))
        self.assertEqual(self.create("a", "/apis/coordination.k8s.io/v1/namespaces/team/leases"), 200)
        self.proxy.add(Rule(Fault.ANSWER, resources=frozenset({"leases"})))
        self.assertEqual(self.create("a", "/apis/coordination.k8s.io/v1/namespaces/team/leases"), 500)

    def test_is_silent_after_the_commit(self) -> None:
        self.proxy.add(Rule(Fault.SILENCE))
        connection = self.connect(timeout=0.3)
        connection.request("POST", JOBS, json.dumps({"metadata": {"name": "a"}}))
        with self.assertRaises(TimeoutError):
            connection.getresponse()
        self.assertEqual(_Server.commits, ["a"])

    def test_holds_a_write_until_it_is_released(self) -> None:
        rule = self.proxy.add(Rule(Fault.HOLD))
        thread = threading.Thread(target=self.create, args=("a",))
        thread.start()
        while rule.hits == 0:
            pass
        self.create("b")
        self.assertEqual(_Server.commits, ["b"])
        rule.released.set()
        thread.join(5)
        self.assertEqual(_Server.commits, ["b", "a"])

    def test_ends_the_process_at_a_write_and_lets_nothing_more_through(self) -> None:
        for before_answer in (False, True):
            with self.subTest(before_answer=before_answer):
                _Server.commits.clear()
                ended = threading.Event()
                cut = Cut(2, before_answer, lambda w: w.request.resource == "jobs", ended.set)
                self.proxy.cut = cut
                self.create("a")
                self.create("x", JOBS.replace("jobs", "pods"))
                if before_answer:
                    with self.assertRaises((OSError, http.client.HTTPException)):
                        self.create("b")
                else:
                    self.assertEqual(self.create("b"), 200)
                self.assertTrue(ended.wait(5))
                with self.assertRaises((OSError, http.client.HTTPException)):
                    self.create("c")
                self.assertEqual(_Server.commits, ["a", "x", "b"])
                self.proxy.reopen()
                self.assertEqual(self.create("d"), 200)

    def test_resets_a_watch_in_the_middle_of_an_event(self) -> None:
        self.proxy.add(Rule(Fault.RESET_MID_EVENT, skip=1))
        with self.assertRaises((OSError, http.client.HTTPException)):
            lines = self.watch(2)
            if not lines[1].endswith(b"\n"):
                raise http.client.IncompleteRead(lines[1])

    def test_doubles_an_event(self) -> None:
        self.proxy.add(Rule(Fault.DUPLICATE))
        self.assertEqual([json.loads(line)["type"] for line in self.watch(3)], ["ADDED", "ADDED", "MODIFIED"])

    def test_ends_a_watch_with_410(self) -> None:
        self.proxy.add(Rule(Fault.GONE_EVENT, skip=1))
        lines = self.watch(3)
        self.assertEqual(json.loads(lines[1])["object"]["code"], 410)
        self.assertEqual(lines[2], b"")

    def test_ends_a_watch_cleanly(self) -> None:
        self.proxy.add(Rule(Fault.END, skip=1))
        self.assertEqual(self.watch(2), [_event("ADDED", "one", 1), b""])

    def test_is_silent_on_a_watch(self) -> None:
        self.proxy.add(Rule(Fault.SILENCE, verbs=frozenset({"watch"})))
        with self.assertRaises(TimeoutError):
            self.watch(1)

    def test_freezes_a_watch_and_lets_it_go_on(self) -> None:
        valve = self.proxy.valve("jobs")
        valve.close()
        with self.assertRaises(TimeoutError):
            self.watch(1)
        connection = self.connect()
        connection.request("GET", JOBS + "?watch=1")
        answer = connection.getresponse()
        while valve.held < 2:
            pass
        valve.open()
        self.assertEqual(answer.readline(), _event("ADDED", "one", 1))

    def test_answers_lists_from_the_past(self) -> None:
        def listed() -> list[str]:
            connection = self.connect()
            connection.request("GET", JOBS)
            items: list[str] = json.loads(connection.getresponse().read())["items"]
            return items

        self.create("a")
        self.assertEqual(listed(), ["a"])
        self.proxy.freeze_lists("jobs", lambda _: json.dumps({"items": ["a"]}).encode())
        self.create("b")
        self.assertEqual(listed(), ["a"])
        connection = self.connect()
        connection.request("GET", JOBS + "?watch=true&sendInitialEvents=true")
        status = connection.getresponse().status
        self.assertEqual(status, 422, "a streamed list is refused, so that pages are asked for")
        self.proxy.thaw_lists()
        self.assertEqual(listed(), ["a", "b"])


class RulesTest(unittest.TestCase):
    def test_reads_targets_as_the_api_means_them(self) -> None:
        cases = {
            ("GET", "/api/v1/pods?watch=true"): "watch pods",
            ("GET", "/api/v1/namespaces?limit=500"): "list namespaces",
            ("GET", "/api/v1/namespaces/team"): "get namespaces/team",
            ("GET", "/api/v1/namespaces/team/pods"): "list pods in team",
            ("POST", JOBS): "create jobs in team",
            ("PUT", "/apis/loadline.dev/v1alpha1/namespaces/team/trainingjobs/a/status"):
                "update trainingjobs/a/status in team",
            ("DELETE", JOBS + "/a"): "delete jobs/a in team",
            ("PATCH", "/apis/loadline.dev/v1alpha1/gpupools/a"): "patch gpupools/a",
            ("GET", "/version"): "get ",
        }
        for (method, target), meaning in cases.items():
            self.assertEqual(str(rules.parse(method, target)), meaning)


class CoalesceTest(unittest.TestCase):
    def shown(self, *lines: bytes) -> list[tuple[str, str, str]]:
        events = [json.loads(line) for line in coalesce(lines)]
        return [(e["type"], e["object"]["metadata"].get("name", ""), e["object"]["metadata"]["resourceVersion"])
                for e in events]

    def test_shows_the_last_state_of_each_object(self) -> None:
        shown = self.shown(_event("ADDED", "a", 1), _event("MODIFIED", "b", 2), _event("MODIFIED", "a", 3))
        self.assertEqual(shown, [("MODIFIED", "b", "2"), ("ADDED", "a", "3")])

    def test_shows_nothing_of_a_short_life(self) -> None:
        self.assertEqual(self.shown(_event("ADDED", "a", 1), _event("DELETED", "a", 2)), [])

    def test_shows_an_object_made_anew_as_changed(self) -> None:
        shown = self.shown(_event("DELETED", "a", 1), _event("ADDED", "a", 2))
        self.assertEqual(shown, [("MODIFIED", "a", "2")])

    def test_keeps_a_bookmark_for_last(self) -> None:
        bookmark = json.dumps({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9"}}}).encode() + b"\n"
        self.assertEqual(self.shown(bookmark, _event("MODIFIED", "a", 2))[-1], ("BOOKMARK", "", "9"))

    def test_keeps_the_mark_at_the_end_of_a_streamed_list(self) -> None:
        metadata = {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}}
        mark = json.dumps({"type": "BOOKMARK", "object": {"metadata": metadata}}).encode() + b"\n"
        later = mark.replace(b"k8s.io/initial-events-end", b"other")
        self.assertEqual(coalesce([mark, later]), [mark])
