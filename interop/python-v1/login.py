"""The logins on the Python SDK's version 1 (the package `mcp`)."""

import sys
from contextlib import asynccontextmanager
from pathlib import Path

import httpx as http
from mcp import ClientSession
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import OAuthClientMetadata

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
from logins import run_logins  # noqa: E402

#: It asks for what it is told to, and not for what it had before as well.
UNITES = False


def provider(url, storage):
    async def callback():
        return storage.back["code"], storage.back.get("state")

    metadata = OAuthClientMetadata(**storage.metadata)
    return OAuthClientProvider(url, metadata, storage, redirect_handler=storage.visit, callback_handler=callback)


def client_credentials(url, storage, client_id, client_secret, issuer):
    # It knows no address without a path: this is what it reads in the server's metadata.
    return ClientCredentialsOAuthProvider(url, storage, client_id, client_secret, issuer=issuer + "/")


@asynccontextmanager
async def connect(revision, transport, url, wire, auth=None, token=None):
    """It proposes the newest revision it knows, and has no option for another. Gives what calls a tool."""

    def new_client(headers=None, timeout=None, auth=auth):
        client = create_mcp_http_client(headers=headers, timeout=timeout, auth=auth)
        client.event_hooks = {"response": [wire]}
        return client

    headers = {"Authorization": f"Bearer {token}"} if token else None
    if transport == "sse":
        opened = sse_client(url, headers=headers, auth=auth, httpx_client_factory=new_client)
    else:
        opened = streamable_http_client(url, http_client=new_client(headers))
    async with opened as (read, write, *_), ClientSession(read, write) as session:
        await session.initialize()

        async def call(name, arguments):
            result = await session.call_tool(name, arguments)
            return result.model_dump(by_alias=True, mode="json", exclude_none=True)

        yield call


if __name__ == "__main__":
    run_logins(sys.modules[__name__])
