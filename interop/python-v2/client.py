"""The scenario on the Python SDK's version 2 (the package `mcp`)."""

import importlib
import sys
import warnings
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import mcp.client.session
import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.exceptions import MCPDeprecationWarning

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
from scenario import NEWEST, run_scenario, tapped  # noqa: E402
from tour import run_tour  # noqa: E402

warnings.simplefilter("ignore", MCPDeprecationWarning)

INFO = types.Implementation(name="refmcp-interop-python-v2", version="0.0.0")
LISTERS = {
    "tools": "list_tools",
    "resources": "list_resources",
    "resourceTemplates": "list_resource_templates",
    "prompts": "list_prompts",
}

name = "python-v2"


def wire(model):
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


@asynccontextmanager
async def open_transport(place):
    match place.transport:
        case "stdio":
            async with stdio_client(StdioServerParameters(command=place.command[0], args=place.command[1:])) as streams:
                yield streams
        case "http":
            async with new_http_client(place.sent) as client, streamable_http_client(place.url, http_client=client) as streams:
                yield streams
        case "sse":
            async with sse_client(place.url, httpx_client_factory=partial(new_http_client, place.sent)) as streams:
                yield streams


def new_http_client(*sent, **options):
    """The SDK's own, telling of every request."""
    client = create_mcp_http_client(**options)
    client.event_hooks = {"request": list(sent)}
    return client


@asynccontextmanager
async def connect(*, revision, place, received, notified, sampling, elicitation, roots):
    async def on_sampling(context, params):
        text = types.TextContent(type="text", text=sampling(wire(params)))
        return types.CreateMessageResult(role="assistant", content=text, model="scenario-model", stop_reason="endTurn")

    async def on_elicitation(context, params):
        return types.ElicitResult(**elicitation(wire(params)))

    async def on_roots(context):
        return types.ListRootsResult(roots=[types.Root(uri=uri, name=name) for uri, name in roots()])

    async def on_message(message):
        if isinstance(message, types.ServerNotification):
            notified(wire(message))

    # `initialize` always proposes this constant; the newest revision is opened by `server/discover` instead.
    if revision != NEWEST:
        mcp.client.session.LATEST_HANDSHAKE_VERSION = revision
    client = Client(
        tapped(open_transport(place), received),
        mode="auto" if revision == NEWEST else "legacy",
        sampling_callback=on_sampling,
        elicitation_callback=on_elicitation if revision >= "2025-06-18" else None,
        list_roots_callback=on_roots,
        message_handler=on_message,
        client_info=INFO,
    )
    async with client:
        yield Session(client)


class Session:
    def __init__(self, client):
        self.client = client
        self.revision = client.protocol_version
        self.server_info = wire(client.server_info) if client.server_info else None
        self.capabilities = wire(client.server_capabilities)

    async def list_page(self, kind, cursor):
        return wire(await getattr(self.client, LISTERS[kind])(cursor=cursor))

    async def call_tool(self, name, args, on_progress=None, meta=None):
        return wire(await self.client.call_tool(name, args, progress_callback=on_progress, meta=meta))

    async def cancelled_call(self, name, args, after):
        with anyio.move_on_after(after) as scope:
            await self.client.call_tool(name, args)
        assert scope.cancelled_caught, "the call was not cancelled"
        return "by leaving the call's cancel scope"

    async def read_resource(self, uri):
        return wire(await self.client.read_resource(uri))

    async def get_prompt(self, name, args):
        return wire(await self.client.get_prompt(name, args))

    async def complete(self, prompt, argument, value, context):
        ref = types.PromptReference(type="ref/prompt", name=prompt)
        return wire(await self.client.complete(ref, {"name": argument, "value": value}, context))

    async def set_level(self, level):
        await self.client.set_logging_level(level)

    async def subscribe(self, uri):
        await self.client.subscribe_resource(uri)

    async def unsubscribe(self, uri):
        await self.client.unsubscribe_resource(uri)

    @asynccontextmanager
    async def listen(self, resourceSubscriptions=(), toolsListChanged=False, promptsListChanged=False, resourcesListChanged=False):
        async with self.client.listen(
            resource_subscriptions=resourceSubscriptions,
            tools_list_changed=toolsListChanged,
            prompts_list_changed=promptsListChanged,
            resources_list_changed=resourcesListChanged,
        ) as subscription:
            yield wire(subscription.honored)

    async def roots_changed(self):
        await self.client.send_roots_list_changed()

    async def ping(self):
        return wire(await self.client.send_ping())

    async def discover(self):
        return wire(await self.client.session.send_request(types.DiscoverRequest(), types.DiscoverResult))


async def refusal(revision, transport):
    """What the SDK says to a transport that it does not have; it speaks all five revisions."""
    if transport != "websocket":
        return None
    try:
        importlib.import_module("mcp.client.websocket")
    except ModuleNotFoundError as error:
        return f"the package has no WebSocket transport: ModuleNotFoundError: {error}"
    return None


def refused_locally(error):
    return False  # it sends what it is told to send


def rpc_error(error):
    return wire(error.error) if isinstance(error, MCPError) else None


if __name__ == "__main__":
    run = run_tour if sys.argv[1:2] == ["tour"] else run_scenario
    run(sys.modules[__name__])
