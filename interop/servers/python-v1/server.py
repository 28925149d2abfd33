"""The server of the scenario, on the official Python SDK 1.

`server.py stdio`, or `http PORT [resumable]`, `sse PORT` or `websocket PORT`: serves until it is told to stop, or its input ends.
"""

import contextlib
import json
import pathlib
import sys
import warnings

import anyio
import uvicorn
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.sse import SseServerTransport
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.websocket import websocket_server
from mcp.shared.exceptions import McpError
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Mount, Route, WebSocketRoute

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from event_store import MemoryEvents  # noqa: E402

NAMES = ["Ada", "Alan", "Grace"]
TEXTS = {"scenario://note": "a note", "scenario://tick": "tick"}
GREETING = "scenario://greeting/"
TICK_EVERY = 0.1
LEVELS = list(types.LoggingLevel.__args__)
NO_ARGUMENTS = {"type": "object", "properties": {}}
NUMBER = {"type": "number"}
FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "Ada"},
        "age": {"type": "integer", "default": 36},
        "sure": {"type": "boolean", "default": True},
    },
    "required": ["name"],
}

server = Server("scenario", version="1.0.0", instructions="For interoperability tests.")
levels: dict[int, str] = {}


@server.list_tools()
async def list_tools():
    sum_schema = {"type": "object", "properties": {"a": NUMBER, "b": NUMBER}, "required": ["a", "b"]}
    echo_schema = {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}
    sum_output = {"type": "object", "properties": {"sum": NUMBER}, "required": ["sum"]}
    described = [("count", "Counts to three"), ("ask", "Asks for a form"), ("think", "Asks for a model")]
    described += [("roots", "Asks for the roots"), ("fail", "Fails"), ("talk", "Logs")]
    return [
        types.Tool(name="echo", description="Says it back", inputSchema=echo_schema),
        types.Tool(name="sum", description="Adds two numbers", inputSchema=sum_schema, outputSchema=sum_output),
        *(types.Tool(name=name, description=words, inputSchema=NO_ARGUMENTS) for name, words in described),
    ]


@server.call_tool()
async def call_tool(name, arguments):
    tool = {"echo": echo, "sum": add, "count": count, "ask": ask, "think": think, "roots": roots}
    tool |= {"fail": fail, "talk": talk}
    if name not in tool:
        raise ValueError(f"no tool {name}")
    return await tool[name](server.request_context, **arguments)


def text(words):
    return [types.TextContent(type="text", text=words)]


async def echo(_, message):
    return text(message)


async def add(_, a, b):
    return text(json.dumps({"sum": a + b}, separators=(",", ":"))), {"sum": a + b}


async def count(context, steps=3, ms=0):
    token = context.meta.progressToken if context.meta else None
    for number in range(1, steps + 1) if token is not None else ():
        words = f"at {number}"
        await context.session.send_progress_notification(token, number, steps, words, str(context.request_id))
        await anyio.sleep(ms / 1000)
    return text(f"counted to {steps}")


async def ask(context):
    answer = await context.session.elicit_form("Who are you?", FORM, context.request_id)
    content = answer.content or {}
    sure = json.dumps(content.get("sure"))
    return text(f"{answer.action}: {content.get('name')}, {content.get('age')}, {sure}")


async def think(context):
    question = types.SamplingMessage(role="user", content=text("six times seven?")[0])
    thought = await context.session.create_message(
        [question], max_tokens=10, related_request_id=context.request_id
    )
    return text(f"the model says {thought.content.text}")


async def roots(context):
    return text("\n".join(str(root.uri) for root in (await context.session.list_roots()).roots))


async def fail(_):
    return types.CallToolResult(content=text("it failed"), isError=True)


async def talk(context):
    least = LEVELS.index(levels.get(id(context.session), "info"))
    for level, words in (("debug", "a quiet word"), ("warning", "a loud word")):
        if LEVELS.index(level) >= least:
            await context.session.send_log_message(level, words, "scenario", context.request_id)
    return text("talked")


@server.set_logging_level()
async def set_level(level):
    levels[id(server.request_context.session)] = level


@server.list_resources()
async def list_resources():
    plain = "text/plain"
    return [types.Resource(uri=uri, name=uri.removeprefix("scenario://"), mimeType=plain) for uri in TEXTS]


@server.list_resource_templates()
async def list_resource_templates():
    template = GREETING + "{name}"
    return [types.ResourceTemplate(uriTemplate=template, name="greeting", mimeType="text/plain")]


@server.read_resource()
async def read_resource(uri):
    uri = str(uri)
    words = TEXTS.get(uri)
    if words is None and uri.startswith(GREETING):
        words = f"Hello, {uri.removeprefix(GREETING)}!"
    if words is None:
        raise McpError(types.ErrorData(code=-32002, message="Resource not found", data={"uri": uri}))
    return [ReadResourceContents(content=words, mime_type="text/plain")]


@server.subscribe_resource()
async def subscribe(uri):
    background.start_soon(tick, server.request_context.session, uri)


@server.unsubscribe_resource()
async def unsubscribe(_):
    pass


async def tick(session, uri):
    """Sends updates until there is no subscriber."""
    with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
        while True:
            await anyio.sleep(TICK_EVERY)
            await session.send_resource_updated(uri)


@server.list_prompts()
async def list_prompts():
    arguments = [types.PromptArgument(name="name", required=True)]
    return [types.Prompt(name="greet", description="Greets a person", arguments=arguments)]


@server.get_prompt()
async def get_prompt(name, arguments):
    if name != "greet":
        raise ValueError(f"no prompt {name}")
    words = f"Say hello to {arguments['name']}."
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=text(words)[0])])


@server.completion()
async def complete(_, argument, __):
    values = [name for name in NAMES if name.startswith(argument.value)]
    return types.Completion(values=values, total=len(values), hasMore=False)


async def serve(streams):
    await server.run(*streams, server.create_initialization_options())


def events():
    return MemoryEvents() if "resumable" in sys.argv else None


def http_app():
    sessions = StreamableHTTPSessionManager(server, event_store=events())

    @contextlib.asynccontextmanager
    async def lifespan(_):
        async with sessions.run():
            yield

    return Starlette(routes=[Mount("/mcp", app=sessions.handle_request)], lifespan=lifespan)


def sse_app():
    transport = SseServerTransport("/messages/")

    async def connect(request):
        async with transport.connect_sse(request.scope, request.receive, request._send) as streams:
            await serve(streams)
        return Response()

    return Starlette(routes=[Route("/sse", connect), Mount("/messages/", app=transport.handle_post_message)])


def websocket_app():
    async def connect(websocket):
        async with websocket_server(websocket.scope, websocket.receive, websocket.send) as streams:
            await serve(streams)

    return Starlette(routes=[WebSocketRoute("/ws", connect)])


async def main(way, port):
    global background
    apps = {"http": http_app, "sse": sse_app, "websocket": websocket_app}
    async with anyio.create_task_group() as background:
        if way == "stdio":
            async with stdio_server() as streams:
                await serve(streams)
        else:
            config = uvicorn.Config(
                apps[way](), host="127.0.0.1", port=port, log_level="warning", timeout_graceful_shutdown=1
            )
            await uvicorn.Server(config).serve()
        background.cancel_scope.cancel()


warnings.simplefilter("ignore", DeprecationWarning)
anyio.run(main, sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0)
