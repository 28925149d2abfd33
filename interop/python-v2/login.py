"""The logins on the Python SDK's version 2 (the package `mcp`)."""

import sys
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2 as http
import mcp.client.session
from mcp import Client
from mcp.shared.auth import AuthorizationCodeResult

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
from logins import run_logins  # noqa: E402

NEWEST = "2026-07-28"
UNITES = True
ISSUER_ENDS_WITH = ""


def came_back(back):
    return AuthorizationCodeResult(**{name: back.get(name) for name in ("code", "state", "iss")})


@asynccontextmanager
async def connect(revision, opened):
    # `initialize` always proposes this constant; the newest revision is opened by `server/discover` instead.
    if revision != NEWEST:
        mcp.client.session.LATEST_HANDSHAKE_VERSION = revision
    async with Client(opened, mode="auto" if revision == NEWEST else "legacy") as client:
        assert client.protocol_version == revision, f"{client.protocol_version} was agreed on"
        yield client


if __name__ == "__main__":
    run_logins(sys.modules[__name__])
