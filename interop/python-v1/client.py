"""The scenario on the Python SDK's version 1 (the package `mcp`)."""

import sys
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import mcp.client.websocket
import websockets.asyncio.client
from mcp import ClientSession, McpError, StdioServerParameters, types
from mcp.client.experimental.task_handlers import ExperimentalTaskHandlers
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.experimental.tasks.helpers import RELATED_TASK_METADATA_KEY, cancel_task
from mcp.shared.experimental.tasks.in_memory_task_store import InMemoryTaskStore
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp.shared.version import SUPPORTED_PROTOCOL_VERSIONS

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
from scenario import run_scenario, tapped  # noqa: E402
from tour import run_tour  # noqa: E402

INFO = types.Implementation(name="refmcp-interop-python-v1", version="0.0.0")
LISTERS = {
    "tools": "list_tools",
    "resources": "list_resources",
    "resourceTemplates": "list_resource_templates",
    "prompts": "list_prompts",
}

name = "python-v1"


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
        case "websocket":
            # The SDK keeps the socket to itself.
            class Connect(websockets.asyncio.client.connect):
                async def __aenter__(self):
                    place.sockets.append(await super().__aenter__())
                    return place.sockets[-1]

            mcp.client.websocket.ws_connect = Connect
            async with mcp.client.websocket.websocket_client(place.url) as streams:
                yield streams


def new_http_client(*sent, **options):
    """The SDK's own, telling of every request."""
    client = create_mcp_http_client(**options)
    client.event_hooks = {"request": list(sent)}
    return client


def propose(revision):
    """The SDK always proposes this constant and has no option for another revision."""
    types.LATEST_PROTOCOL_VERSION = revision


def task_handlers(group, on_sampling, on_elicitation):
    """Runs what a server asks for as tasks. The store is the SDK's; what it is asked is ours."""
    store = InMemoryTaskStore()

    def by_task(answer):
        async def create(context, params, task_metadata):
            task = await store.create_task(task_metadata)

            async def work():
                await store.store_result(task.taskId, await answer(context, params))
                await store.update_task(task.taskId, status="completed")

            group.start_soon(work)
            return types.CreateTaskResult(task=task)

        return create

    async def get(context, params):
        task = await store.get_task(params.taskId)
        return types.GetTaskResult(**task.model_dump())

    async def result(context, params):
        outcome = wire(await store.get_result(params.taskId))
        outcome["_meta"] = {RELATED_TASK_METADATA_KEY: {"taskId": params.taskId}}
        return types.GetTaskPayloadResult(**outcome)

    async def cancel(context, params):
        return await cancel_task(store, params.taskId)

    return ExperimentalTaskHandlers(
        get_task=get,
        get_task_result=result,
        cancel_task=cancel,
        augmented_sampling=by_task(on_sampling),
        augmented_elicitation=by_task(on_elicitation),
    )


@asynccontextmanager
async def connect(*, revision, place, received, notified, sampling, elicitation, roots):
    async def on_sampling(context, params):
        text = types.TextContent(type="text", text=sampling(wire(params)))
        return types.CreateMessageResult(role="assistant", content=text, model="scenario-model", stopReason="endTurn")

    async def on_elicitation(context, params):
        return types.ElicitResult(**elicitation(wire(params)))

    async def on_roots(context):
        return types.ListRootsResult(roots=[types.Root(uri=uri, name=name) for uri, name in roots()])

    async def on_message(message):
        if isinstance(message, types.ServerNotification):
            notified(wire(message))

    propose(revision)
    runs_tasks = revision == "2025-11-25"
    async with tapped(open_transport(place), received) as (read, write), anyio.create_task_group() as group:
        session = ClientSession(
            read,
            write,
            sampling_callback=on_sampling,
            elicitation_callback=on_elicitation if revision >= "2025-06-18" else None,
            list_roots_callback=on_roots,
            message_handler=on_message,
            client_info=INFO,
            experimental_task_handlers=task_handlers(group, on_sampling, on_elicitation) if runs_tasks else None,
        )
        async with session:
            yield Session(session, await session.initialize(), runs_tasks)


class Session:
    def __init__(self, session, initialized, runs_tasks):
        self.session = session
        self.runs_tasks = runs_tasks
        self.revision = initialized.protocolVersion
        self.server_info = wire(initialized.serverInfo)
        self.capabilities = wire(initialized.capabilities)

    async def list_page(self, kind, cursor):
        params = types.PaginatedRequestParams(cursor=cursor) if cursor is not None else None
        return wire(await getattr(self.session, LISTERS[kind])(params=params))

    async def call_tool(self, name, args, on_progress=None, meta=None):
        return wire(await self.session.call_tool(name, args, progress_callback=on_progress, meta=meta))

    async def cancelled_call(self, name, args, after):
        """The SDK neither cancels a request nor tells its id; the next id is the only way to name it."""
        request_id = self.session._request_id
        async with anyio.create_task_group() as group:
            group.start_soon(self.session.call_tool, name, args)
            await anyio.sleep(after)
            params = types.CancelledNotificationParams(requestId=request_id, reason="scenario cancels")
            await self.session.send_notification(types.ClientNotification(types.CancelledNotification(params=params)))
            group.cancel_scope.cancel()
        return "the SDK cannot cancel a request: notifications/cancelled sent with send_notification"

    async def read_resource(self, uri):
        return wire(await self.session.read_resource(uri))

    async def get_prompt(self, name, args):
        return wire(await self.session.get_prompt(name, args))

    async def complete(self, prompt, argument, value, context):
        ref = types.PromptReference(type="ref/prompt", name=prompt)
        return wire(await self.session.complete(ref, {"name": argument, "value": value}, context))

    async def set_level(self, level):
        await self.session.set_logging_level(level)

    async def subscribe(self, uri):
        await self.session.subscribe_resource(uri)

    async def unsubscribe(self, uri):
        await self.session.unsubscribe_resource(uri)

    async def roots_changed(self):
        await self.session.send_roots_list_changed()

    async def ping(self):
        return wire(await self.session.send_ping())

    async def discover(self):
        return wire(await self.session.discover())


async def refusal(revision, transport):
    """What the SDK says to a server that answers `initialize` with this revision; nothing when it agrees."""
    if revision in SUPPORTED_PROTOCOL_VERSIONS:
        return None

    async def server(read, write):
        request = await read.receive()
        result = types.InitializeResult(protocolVersion=revision, capabilities=types.ServerCapabilities(), serverInfo=INFO)
        response = types.JSONRPCResponse(jsonrpc="2.0", id=request.message.root.id, result=wire(result))
        await write.send(SessionMessage(types.JSONRPCMessage(response)))

    propose(revision)
    async with create_client_server_memory_streams() as (near, far), anyio.create_task_group() as group:
        group.start_soon(server, *far)
        async with ClientSession(*near, client_info=INFO) as session:
            try:
                await session.initialize()
            except RuntimeError as error:
                return f"RuntimeError: {error} (SUPPORTED_PROTOCOL_VERSIONS: {' '.join(SUPPORTED_PROTOCOL_VERSIONS)})"
    return None


def refused_locally(error):
    return isinstance(error, AttributeError) and "has no attribute" in str(error)


def rpc_error(error):
    return wire(error.error) if isinstance(error, McpError) else None


if __name__ == "__main__":
    run = run_tour if sys.argv[1:2] == ["tour"] else run_scenario
    run(sys.modules[__name__])
