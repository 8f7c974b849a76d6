"""Client of netsplit's REST API: one file for Python 3.9 or later, without other packages.

    import netsplit

    ns = netsplit.connect()                    # your own daemon on this machine
    with ns.partition(["r1"], ["r2", "r3"]):   # begins once it is proved that nothing passes
        ...                                    # and heals on any exit

In a test of pytest, the fixture ns is such a client:

    from netsplit import ns

    def test_failover(ns):
        with ns.partition(["r1"], ["r2", "r3"]):
            ...

The environment names another daemon, as for the commands of netsplit: NETSPLIT_API,
NETSPLIT_TOKEN and NETSPLIT_API_FINGERPRINT.
"""

import contextlib
import hashlib
import hmac
import http.client
import json
import logging
import os
import secrets
import socket
import ssl
import struct
import time
import urllib.parse

_log = logging.getLogger("netsplit")

PORT = 7070
"""Port of a daemon that was started without --listen."""

WAIT = 60
"""Seconds that the daemon waits at most in one request (Prefer: wait)."""


class Error(Exception):
    """What the daemon refused, or could not do.

    status is the HTTP status (0: there was no answer), problem the problem of RFC 9457.
    """

    def __init__(self, text, status=0, problem=None):
        super().__init__(text)
        self.status = status
        self.problem = problem or {}


def connect(api=None, token=None, fingerprint=None, cafile=None):
    """Return a client of a daemon; it sends nothing yet.

    api is https://HOST:PORT, unix:SOCKET, or 127.0.0.1:PORT; without a token that is your own
    daemon, as it is without api and without NETSPLIT_API. token is what its --token-file
    holds. fingerprint is the SHA-256 of its certificate, as netsplit serve prints it; cafile
    is a file of certificates that sign it. Without either, the authorities of this machine
    must have signed it.
    """
    api = api or os.environ.get("NETSPLIT_API", "")
    token = token or os.environ.get("NETSPLIT_TOKEN", "")
    fingerprint = fingerprint or os.environ.get("NETSPLIT_API_FINGERPRINT", "")
    if not api:
        return Client(_socket(), token="")
    if api.startswith("unix:"):
        return Client(api.removeprefix("unix:").removeprefix("//"), token="")
    try:
        url = urllib.parse.urlsplit(api if "://" in api else "http://" + api)
        port = url.port
    except ValueError:
        url, port = urllib.parse.urlsplit(""), None
    if url.scheme == "http" and url.hostname in ("localhost", "127.0.0.1", "::1"):
        if not token:
            return Client(_socket(port or 80), token="")  # your own daemon, as for commands
        if fingerprint:
            raise Error(f"fingerprint needs TLS, and {api} is plain HTTP: write https://{url.netloc}")
        return Client(None, host=url.hostname, port=port or 80, token=token, plain=True)
    if url.scheme != "https" or not url.hostname:
        raise Error(f"{api} is no address of a daemon: write https://HOST:PORT, unix:SOCKET, or 127.0.0.1:PORT")
    return Client(None, host=url.hostname, port=port or 443, token=token, fingerprint=fingerprint, cafile=cafile)


def _socket(port=PORT):
    uid = os.geteuid()
    folders = ["/run/netsplit-api"] if uid == 0 else [f"/run/user/{uid}/netsplit-api", f"/tmp/netsplit-api-{uid}"]
    for folder in folders:
        path = f"{folder}/{port}.sock"
        if os.path.lexists(path):
            return path
    raise Error(f"no netsplit daemon of this user (there is no socket {port}.sock in {' or '.join(folders)}): start one with netsplit serve, or name another with api or NETSPLIT_API")


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)
        _, uid, _ = struct.unpack("3i", self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        if uid not in (0, os.geteuid()) and not (os.geteuid() == 0 and _alone(uid, os.path.dirname(self._path))):
            self.sock.close()
            raise Error(f"user {uid} serves the socket {self._path}, and not root or you: nothing was sent")


def _alone(uid, folder):
    """Say whether a folder is a user's, and nobody else may write there."""
    st = os.stat(folder or ".")
    return st.st_uid == uid and not st.st_mode & 0o022


class _PinnedConnection(http.client.HTTPSConnection):
    def __init__(self, host, port, fingerprint, timeout):
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE  # in place of it: the fingerprint
        super().__init__(host, port, timeout=timeout, context=context)
        self._want = fingerprint.lower().removeprefix("sha256:").replace(":", "")

    def connect(self):
        super().connect()
        got = hashlib.sha256(self.sock.getpeercert(True)).hexdigest()
        if not hmac.compare_digest(got, self._want):
            self.sock.close()
            raise Error(f"the daemon's certificate has the fingerprint {got}, not that of fingerprint: nothing was sent")


class Client:
    """A daemon. Use connect to make one. It may not be shared by threads."""

    def __init__(self, path, host="", port=0, token="", fingerprint="", cafile=None, plain=False):
        self._path, self._host, self._port, self._token, self._plain = path, host, port, token, plain
        self._fingerprint, self._cafile = fingerprint, cafile
        self._cut = []

    def _connection(self, timeout):
        if self._path:
            return _UnixConnection(self._path, timeout)
        if self._plain:
            return http.client.HTTPConnection(self._host, self._port, timeout=timeout)
        if self._fingerprint:
            return _PinnedConnection(self._host, self._port, self._fingerprint, timeout)
        return http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=ssl.create_default_context(cafile=self._cafile))

    def request(self, method, path, body=None, wait=0, **query):
        """Send a request and return the JSON of its answer (None: it has none).

        Errors of the daemon are raised as Error. wait is how many seconds, 60 at most, it
        may wait for the outcome. Parameters of the query that are None are left out.
        """
        status, text = self._send(method, path, "application/json", body, wait, query)
        try:
            return json.loads(text) if text else None
        except ValueError as err:
            raise Error(f"{method} {path}: status {status} from a server that is not a netsplit daemon", status) from err

    def _send(self, method, path, accept, body=None, wait=0, query=None):
        """Send a request, and return the status and the body of its answer."""
        query = {k: v for k, v in (query or {}).items() if v is not None}
        if query:
            path += "?" + urllib.parse.urlencode(query)
        headers = {"Accept": accept}
        if self._token:
            headers["Authorization"] = "Bearer " + self._token
        if wait:
            headers["Prefer"] = f"wait={int(wait)}"
        if method == "POST":
            headers["Idempotency-Key"] = secrets.token_hex(16)
        data = None
        if body is not None:
            data = json.dumps(body)
            headers["Content-Type"] = "application/json"
        connection = self._connection(wait + 30)
        try:
            connection.request(method, path, data, headers)
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as err:
            raise Error(f"{method} {path}: {err}") from err
        finally:
            connection.close()
        if answer.status < 300:
            return answer.status, text
        try:
            problem = json.loads(text) if text else {}
        except ValueError as err:
            raise Error(f"{method} {path}: status {answer.status} from a server that is not a netsplit daemon", answer.status) from err
        if not isinstance(problem, dict):
            problem = {}
        where = "".join(f"\n  {e.get('location')}: {e.get('message')}" for e in problem.get("errors") or [])
        raise Error((problem.get("detail") or f"{method} {path}: status {answer.status}") + where, answer.status, problem)

    def items(self, path, **query):
        """Yield the elements of a list, page by page."""
        cursor = None
        while True:
            page = self.request("GET", path, cursor=cursor, **query)
            yield from page["items"]
            cursor = page.get("next")
            if not cursor:
                return

    @contextlib.contextmanager
    def partition(self, *groups, shape=None, name=None, most="10m", **spec):
        """Cut groups of hosts off from each other while the block runs.

        The block begins once it is proved that nothing passes; its end heals, and waits
        until a packet has passed. shape is partial for two groups, isolate for one, and
        complete for more, unless given; some shapes need no group. most is after how long
        the daemon heals by itself, should this process be killed. Other fields of a partition, such as only or effect,
        may be given as the API takes them.
        """
        if not groups and not shape:
            raise Error("partition: give groups of hosts, such as [\"r1\"], [\"r2\", \"r3\"]")
        if any(isinstance(g, str) for g in groups):
            raise Error("partition: a group is a list of hosts: write [\"r1\"] and not \"r1\"")
        shape = shape or {1: "isolate", 2: "partial"}.get(len(groups), "complete")
        name = name or "py-" + secrets.token_hex(6)
        asked = {"name": name, "shape": shape, "groups": [list(g) for g in groups], "for": most, **spec}
        self._cut.append(name)
        try:
            try:
                p = self.request("POST", "/v1/partitions", asked, wait=10)
            except Error as err:
                if 400 <= err.status < 500:  # it was not made; one of this name is somebody else's
                    self._cut.remove(name)
                raise
            until = time.monotonic() + 30
            while p["state"] == "requested" and time.monotonic() < until:
                time.sleep(0.1)
                p = self.request("GET", "/v1/partitions/" + name)
            if p["state"] != "in_force":
                raise Error(f"partition {name} is {p['state']} and not in force: {p.get('reason', '')}")
            yield p
        finally:
            if name in self._cut:
                self.heal(name)

    def heal(self, name):
        """Heal a partition, and wait until it is proved. One that is not there is healed."""
        try:
            p = self.request("DELETE", "/v1/partitions/" + name, wait=WAIT)
        except Error as err:
            if err.status != 404:
                raise
            p = {"state": "healed"}
        if p["state"] != "healed":
            raise Error(f"partition {name} is {p['state']} and not healed: {p.get('reason', '')}")
        self._cut = [n for n in self._cut if n != name]

    def close(self):
        """Heal what this client cut and has not healed."""
        for name in list(self._cut):
            self.heal(name)

    def reset(self):
        """Heal everything, whoever cut it, and return the names of the partitions."""
        return self.request("POST", "/v1/reset", wait=WAIT)["healed"]

    def campaign(self, target, progress=None, timeout=None, **spec):
        """Run a campaign on a target, and return it once it has ended.

        spec has the fields of a campaign as the API takes them, such as runs=20. progress
        is called with the campaign after each run, and when its state changes. While it is
        paused, the wait goes on: a warning of the logger netsplit says so. timeout is how
        many seconds to wait at most; then Error is raised. If the wait ends early, by this
        or another exception, the campaign is cancelled.
        """
        until = None if timeout is None else time.monotonic() + timeout
        c = self.request("POST", "/v1/campaigns", {"target": target, **spec})
        try:
            seen, over = None, False
            while c["state"] not in ("done", "cancelled", "failed"):
                if seen != (c["state"], c["done"]):
                    if c["state"] == "paused" and (seen is None or seen[0] != "paused"):
                        _log.warning("campaign %s is paused after %d runs; to continue it: netsplit campaign resume %s", c["id"], c["done"], c["id"])
                    seen = c["state"], c["done"]
                    if progress:
                        progress(c)
                if over:
                    raise Error(f"campaign {c['id']} has not ended after {timeout} s and is cancelled: it was {c['state']}, {c['done']} runs done")
                time.sleep(0.5 if until is None else max(0, min(0.5, until - time.monotonic())))
                over = until is not None and time.monotonic() >= until
                c = self.request("GET", "/v1/campaigns/" + c["id"])
        except BaseException:
            self.request("DELETE", "/v1/campaigns/" + c["id"])
            raise
        if c["state"] == "failed":
            raise Error(f"campaign {c['id']} failed: {c.get('reason', '')}")
        return c

    def campaign_report(self, campaign):
        """Return the report of a campaign, a page of HTML; while it goes on, as far as it got."""
        return self._send("GET", f"/v1/campaigns/{urllib.parse.quote(campaign)}/report", "text/html")[1].decode()

    def report(self, run):
        """Return the report of a run, a page of HTML."""
        return self._send("GET", f"/v1/runs/{urllib.parse.quote(run)}/report", "text/html")[1].decode()

    def runs(self, **of):
        """Yield runs; of may have campaign, target, strategy and verdict."""
        return self.items("/v1/runs", **of)

    def findings(self, campaign=None):
        """Yield findings of a campaign, or of all."""
        return self.items("/v1/findings", campaign=campaign)

    def query(self, run, sql, limit=None):
        """Ask the record of a run with SQL, and return its rows as dicts."""
        body = {"sql": sql} if limit is None else {"sql": sql, "limit": limit}
        out = self.request("POST", f"/v1/runs/{urllib.parse.quote(run)}/query", body)
        return [dict(zip(out["columns"], row)) for row in out["rows"]]


try:
    import pytest
except ImportError:
    pass
else:

    @pytest.fixture
    def ns():
        """A client of the daemon; what a test cut and did not heal heals at its end."""
        client = connect()
        yield client
        client.close()
