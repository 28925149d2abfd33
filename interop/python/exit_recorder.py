"""How the scenario reaches its servers, and what is to be seen of them when a client has left."""

import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import anyio

PATIENCE = 5


@dataclass
class Place:
    """Where a server is, for an adapter's transport, which keeps the lists."""

    transport: str
    command: list = field(default_factory=list)
    url: str = ""
    requests: list = field(default_factory=list)  # everything sent over HTTP
    sockets: list = field(default_factory=list)  # every WebSocket opened

    async def sent(self, request):
        self.requests.append(request)


def transport_of(server):
    """`stdio`, or by the URL: `http` (streamable HTTP), `sse` (HTTP+SSE), `websocket`."""
    address = urlsplit(server[0])
    if address.scheme in ("ws", "wss"):
        return "websocket"
    if address.scheme in ("http", "https"):
        return "sse" if address.path.endswith("/sse") else "http"
    return "stdio"


def new_exit_recorder(server, folder, paged=False):
    """An exit recorder for one connection. `server` holds the words after `--`: a command, or the URLs of two servers.

    The second of those has small pages, as a command gets by arguments.
    """
    transport = transport_of(server)
    if transport != "stdio":
        return NetworkExitRecorder(transport, server[1 if paged else 0])
    if paged:
        return ProcessExitRecorder(folder / "paged", [*server, "--page-size", "5"])
    return ProcessExitRecorder(folder / "main", server)


class ProcessExitRecorder:
    """The server processes started for one connection, as ../exit_recorder.sh saw them."""

    def __init__(self, log, command):
        self.log = log
        self.log.touch()
        script = Path(__file__).resolve().parent.parent / "exit_recorder.sh"
        self.place = Place("stdio", command=["sh", str(script), str(log), *command])

    def lines(self):
        return [line.split() for line in self.log.read_text().splitlines()]

    def started(self):
        return [int(line[1]) for line in self.lines() if line[0] == "started"]

    async def clean(self, adapter):
        assert self.started(), "no server was started"
        pid = self.started()[-1]

        def about(event):
            return next((line for line in self.lines() if line[0] == event and int(line[1]) == pid), None)

        deadline = time.monotonic() + PATIENCE
        while not about("exited") and time.monotonic() < deadline:
            await anyio.sleep(0.02)
        assert not about("signalled"), f"server {pid} did not end when its stdin closed: the SDK had to send a signal"
        assert about("exited"), f"server {pid} did not end"
        assert about("exited")[2] == "0", f"exit code of server {pid}: {about('exited')[2]}"
        for other in self.started():
            assert not alive(other), f"server {other} was left behind"
        return "exit code 0"

    def resumptions(self):
        return []

    def reap(self):
        """Leaves nothing running, whatever happened."""
        for pid in self.started():
            if alive(pid):
                os.kill(pid, signal.SIGKILL)


class NetworkExitRecorder:
    """What one connection sent over HTTP, and how its WebSocket closed."""

    def __init__(self, transport, url):
        self.place = Place(transport, url=url)

    def resumptions(self):
        """The requests that took up a stream where it had ended."""
        return [request for request in self.place.requests if request.method == "GET" and "last-event-id" in request.headers]

    def in_session(self):
        """The requests that named a session."""
        return [
            request
            for request in self.place.requests
            if "mcp-session-id" in request.headers or "sessionId=" in str(request.url)
        ]

    async def clean(self, adapter):
        """The end of the session: its address is gone, or its socket was closed by both sides."""
        if self.place.transport == "websocket":
            code = self.place.sockets[-1].close_code
            assert code not in (None, 1006), f"the socket was not closed by both sides: code {code}"
            return "the socket was closed by both sides"
        posts = [request for request in self.in_session() if request.method == "POST"]
        assert posts, "no session was used"
        last = posts[-1]
        headers = {name: value for name, value in last.headers.items() if name != "content-length"}
        body = b'{"jsonrpc":"2.0","method":"scenario/after-the-end"}'
        deadline = time.monotonic() + PATIENCE
        async with adapter.new_http_client() as client:
            while (status := (await client.post(str(last.url), headers=headers, content=body)).status_code) != 404:
                assert time.monotonic() < deadline, f"a request to the session that was closed gave {status}"
                await anyio.sleep(0.05)
        deleted = any(request.method == "DELETE" for request in self.place.requests)
        return f"the session is gone{' by DELETE' if deleted else ''}: 404"

    def reap(self):
        pass


def alive(pid):
    try:
        os.kill(pid, 0)
        return True
    except ProcessLookupError:
        return False
