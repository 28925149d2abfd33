"""The server of the scenario, on the official Python SDK 2.

`server.py stdio`, or `http PORT [resumable]` or `sse PORT`: serves until it is told to stop, or its input ends.
"""

import json
import pathlib
import sys
import warnings

import anyio
import mcp_types as types
import uvicorn
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.sse import SseServerTransport
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourceUpdated
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Mount, Route

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

bus = InMemorySubscriptionBus()
level = "info"


async def list_tools(_, __):
    sum_schema = {"type": "object", "properties": {"a": NUMBER, "b": NUMBER}, "required": ["a", "b"]}
    echo_schema = {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}
    sum_output = {"type": "object", "properties": {"sum": NUMBER}, "required": ["sum"]}
    described = [("count", "Counts to three"), ("ask", "Asks for a form"), ("think", "Asks for a model")]
    described += [("roots", "Asks for the roots"), ("fail", "Fails"), ("talk", "Logs")]
    return types.ListToolsResult(
        tools=[
            types.Tool(name="echo", description="Says it back", input_schema=echo_schema),
            types.Tool(
                name="sum", description="Adds two numbers", input_schema=sum_schema, output_schema=sum_output
            ),
            *(types.Tool(name=name, description=words, input_schema=NO_ARGUMENTS) for name, words in described),
        ]
    )


async def call_tool(context, params):
    tool = {"echo": echo, "sum": add, "count": count, "ask": ask, "think": think, "roots": roots}
    tool |= {"fail": fail, "talk": talk}
    if params.name not in tool:
        raise MCPError(types.INVALID_PARAMS, f"no tool {params.name}")
    return await tool[params.name](context, params, **(params.arguments or {}))


def block(words):
    return types.TextContent(text=words)


def text(words, **more):
    return types.CallToolResult(content=[block(words)], **more)


async def echo(_, __, message):
    return text(message)


async def add(_, __, a, b):
    answer = {"sum": a + b}
    return text(json.dumps(answer, separators=(",", ":")), structured_content=answer)


async def count(context, _, steps=3, ms=0):
    for number in range(1, steps + 1):
        await context.session.report_progress(number, steps, f"at {number}")
        await anyio.sleep(ms / 1000)
    return text(f"counted to {steps}")


async def asked(context, params, question, send):
    """The answer to a question: sent as a request where there are sessions, else returned and asked for anew."""
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return await send(), None
    if params.input_responses and "it" in params.input_responses:
        return params.input_responses["it"], None
    return None, types.InputRequiredResult(input_requests={"it": question}, request_state="asked")


async def ask(context, params):
    form = types.ElicitRequestFormParams(message="Who are you?", requested_schema=FORM)
    answer, question = await asked(
        context,
        params,
        types.ElicitRequest(params=form),
        lambda: context.session.elicit_form(form.message, FORM, context.request_id),
    )
    if question:
        return question
    content = answer.content or {}
    sure = json.dumps(content.get("sure"))
    return text(f"{answer.action}: {content.get('name')}, {content.get('age')}, {sure}")


async def think(context, params):
    messages = [types.SamplingMessage(role="user", content=block("six times seven?"))]
    answer, question = await asked(
        context,
        params,
        types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=messages, max_tokens=10)),
        lambda: context.session.create_message(messages, max_tokens=10, related_request_id=context.request_id),
    )
    return question or text(f"the model says {answer.content.text}")


async def roots(context, params):
    answer, question = await asked(context, params, types.ListRootsRequest(), context.session.list_roots)
    return question or text("\n".join(str(root.uri) for root in answer.roots))


async def fail(_, __):
    return text("it failed", is_error=True)


async def talk(context, _):
    modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
    for severity, words in (("debug", "a quiet word"), ("warning", "a loud word")):
        # Where each request says what it wants to hear, the SDK leaves out the rest.
        if modern or LEVELS.index(severity) >= LEVELS.index(level):
            await context.session.send_log_message(severity, words, "scenario", context.request_id)
    return text("talked")


async def set_level(_, params):
    global level
    level = params.level
    return types.EmptyResult()


async def list_resources(_, __):
    plain = "text/plain"
    listed = [types.Resource(uri=uri, name=uri.removeprefix("scenario://"), mime_type=plain) for uri in TEXTS]
    return types.ListResourcesResult(resources=listed)


async def list_resource_templates(_, __):
    template = types.ResourceTemplate(uri_template=GREETING + "{name}", name="greeting", mime_type="text/plain")
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def read_resource(context, params):
    uri = str(params.uri)
    words = TEXTS.get(uri)
    if words is None and uri.startswith(GREETING):
        words = f"Hello, {uri.removeprefix(GREETING)}!"
    if words is None:
        modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
        raise MCPError(types.INVALID_PARAMS if modern else -32002, "Resource not found", {"uri": uri})
    contents = [types.TextResourceContents(uri=uri, mime_type="text/plain", text=words)]
    return types.ReadResourceResult(contents=contents)


async def subscribe(context, params):
    background.start_soon(tick, context.session, params.uri)
    return types.EmptyResult()


async def unsubscribe(_, __):
    return types.EmptyResult()


async def tick(session, uri):
    """Sends updates until there is no subscriber."""
    while True:
        await anyio.sleep(TICK_EVERY)
        try:
            await session.send_resource_updated(uri)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, MCPError):
            return


async def tick_all():
    while True:
        await anyio.sleep(TICK_EVERY)
        await bus.publish(ResourceUpdated(uri="scenario://tick"))


async def list_prompts(_, __):
    arguments = [types.PromptArgument(name="name", required=True)]
    prompt = types.Prompt(name="greet", description="Greets a person", arguments=arguments)
    return types.ListPromptsResult(prompts=[prompt])


async def get_prompt(_, params):
    if params.name != "greet":
        raise MCPError(types.INVALID_PARAMS, f"no prompt {params.name}")
    message = types.PromptMessage(role="user", content=block(f"Say hello to {params.arguments['name']}."))
    return types.GetPromptResult(messages=[message])


async def complete(_, params):
    values = [name for name in NAMES if name.startswith(params.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=values, total=len(values), has_more=False))


warnings.simplefilter("ignore", DeprecationWarning)
server = Server(
    "scenario",
    version="1.0.0",
    instructions="For interoperability tests.",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
    on_list_resource_templates=list_resource_templates,
    on_read_resource=read_resource,
    on_subscribe_resource=subscribe,
    on_unsubscribe_resource=unsubscribe,
    on_subscriptions_listen=ListenHandler(bus),
    on_list_prompts=list_prompts,
    on_get_prompt=get_prompt,
    on_completion=complete,
    on_set_logging_level=set_level,
)


async def serve(streams):
    await server.run(*streams, server.create_initialization_options())


def http_app():
    return server.streamable_http_app(event_store=MemoryEvents() if "resumable" in sys.argv else None)


def sse_app():
    transport = SseServerTransport("/messages/")

    async def connect(request):
        async with transport.connect_sse(request.scope, request.receive, request._send) as streams:
            await serve(streams)
        return Response()

    return Starlette(routes=[Route("/sse", connect), Mount("/messages/", app=transport.handle_post_message)])


async def main(way, port):
    global background
    async with anyio.create_task_group() as background:
        background.start_soon(tick_all)
        if way == "stdio":
            async with stdio_server() as streams:
                await serve(streams)
        else:
            app = {"http": http_app, "sse": sse_app}[way]()
            config = uvicorn.Config(
                app, host="127.0.0.1", port=port, log_level="warning", timeout_graceful_shutdown=1
            )
            await uvicorn.Server(config).serve()
        background.cancel_scope.cancel()


anyio.run(main, sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0)
