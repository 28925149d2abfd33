"""The logins on the Python SDK's version 2 (the package `mcp`)."""

import sys
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2 as http
import mcp.client.session
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
from logins import run_logins  # noqa: E402

NEWEST = "2026-07-28"
UNITES = True


def provider(url, storage):
    async def callback():
        known = {name: storage.back.get(name) for name in ("code", "state", "iss")}
        return AuthorizationCodeResult(**known)

    metadata = OAuthClientMetadata(**storage.metadata)
    return OAuthClientProvider(url, metadata, storage, redirect_handler=storage.visit, callback_handler=callback)


def client_credentials(url, storage, client_id, client_secret, issuer):
    return ClientCredentialsOAuthProvider(url, storage, client_id, client_secret, issuer=issuer)


@asynccontextmanager
async def connect(revision, transport, url, wire, auth=None, token=None):
    """Gives what calls a tool."""

    def new_client(headers=None, timeout=None, auth=auth):
        client = create_mcp_http_client(headers=headers, timeout=timeout, auth=auth)
        client.event_hooks = {"response": [wire]}
        return client

    headers = {"Authorization": f"Bearer {token}"} if token else None
    if transport == "sse":
        opened = sse_client(url, headers=headers, auth=auth, httpx_client_factory=new_client)
    else:
        opened = streamable_http_client(url, http_client=new_client(headers))
    # `initialize` always proposes this constant; the newest revision is opened by `server/discover` instead.
    if revision != NEWEST:
        mcp.client.session.LATEST_HANDSHAKE_VERSION = revision
    async with Client(opened, mode="auto" if revision == NEWEST else "legacy") as client:
        assert client.protocol_version == revision, f"{client.protocol_version} was agreed on"

        async def call(name, arguments):
            result = await client.call_tool(name, arguments)
            return result.model_dump(by_alias=True, mode="json", exclude_none=True)

        yield call


if __name__ == "__main__":
    run_logins(sys.modules[__name__])
