"""A client that lets itself be led through the tour (`refmcp … --tour`).

It declares all that its SDK has, lists again when lists have changed, reads what was updated, and calls `tour` as long as
there is a next step.
"""

import sys
from contextlib import AsyncExitStack

import anyio

from exit_recorder import Place, transport_of
from scenario import NEWEST

MAX_CALLS = 12
PAUSE = 0.4  # for what the server sends on its own after a call
CANCEL_AFTER = 1
RESOURCE = "file:///resources/notes.txt"
LISTED = {
    "notifications/tools/list_changed": "tools",
    "notifications/prompts/list_changed": "prompts",
    "notifications/resources/list_changed": "resources",
}
FORMATS = {
    "email": "a@example.com",
    "uri": "https://example.com/",
    "date": "2026-01-02",
    "date-time": "2026-01-02T03:04:05Z",
}


def value_of(field):
    """A value that fits a field of a form."""
    if "default" in field:
        return field["default"]
    choices = field.get("enum") or [choice["const"] for choice in field.get("oneOf", [])]
    if choices:
        return choices[0]
    match field.get("type"):
        case "boolean":
            return True
        case "number" | "integer":
            return field.get("minimum", 1)
        case "array":
            return []
        case _:
            return FORMATS.get(field.get("format"), "Max")


def elicitation(params):
    if params.get("mode") == "url":
        return {"action": "accept"}
    fields = params["requestedSchema"]["properties"]
    return {"action": "accept", "content": {name: value_of(field) for name, field in fields.items()}}


class Guest:
    def __init__(self, adapter, revision, server, group):
        self.adapter, self.revision, self.group = adapter, revision, group
        transport = transport_of(server)
        self.place = Place(transport, command=server) if transport == "stdio" else Place(transport, url=server[0])
        self.told = ""
        self.is_expired = False

    async def visit(self):
        """One session: calls until the tour is over, or the session is."""
        async with AsyncExitStack() as stack:
            changes, changed = anyio.create_memory_object_stream(100)
            self.session = await stack.enter_async_context(
                self.adapter.connect(
                    revision=self.revision,
                    place=self.place,
                    received=lambda message: None,
                    notified=changes.send_nowait,
                    sampling=lambda params: "Hello",
                    elicitation=elicitation,
                    roots=lambda: [("file:///tour", "tour")],
                )
            )
            group = await stack.enter_async_context(anyio.create_task_group())
            group.start_soon(self.follow, changed)
            for kind in ("tools", "resources", "prompts"):
                await self.list_all(kind)
            if self.revision == NEWEST:
                everything = {name: True for name in ("toolsListChanged", "promptsListChanged", "resourcesListChanged")}
                await stack.enter_async_context(self.session.listen(resourceSubscriptions=[RESOURCE], **everything))
            else:
                await self.session.set_level("debug")
                await self.session.subscribe(RESOURCE)
            for count in range(MAX_CALLS):
                cancels = "cancel that call" in self.told
                self.told = await self.call(cancels)
                if count == 0 and self.revision != NEWEST:
                    await self.session.roots_changed()
                await anyio.sleep(PAUSE)
                if "The tour is over" in self.told or self.is_expired:
                    break
            group.cancel_scope.cancel()

    async def list_all(self, kind):
        cursor = None
        while True:
            cursor = (await self.session.list_page(kind, cursor)).get("nextCursor")
            if cursor is None:
                return

    async def follow(self, changed):
        async for message in changed:
            method, params = message["method"], message.get("params") or {}
            try:
                if method in LISTED:
                    await self.list_all(LISTED[method])
                elif method == "notifications/resources/updated":
                    await self.session.read_resource(params["uri"])
            except Exception as error:
                print(f"{method}: {error}")

    async def call(self, cancels):
        """Calls the tool; what to do next, as the tool says."""

        async def on_progress(progress, total, message):
            pass

        meta = {"io.modelcontextprotocol/logLevel": "debug"} if self.revision == NEWEST else None
        try:
            if cancels:
                return await self.session.cancelled_call("tour", {}, CANCEL_AFTER)
            result = await self.session.call_tool("tour", {}, on_progress=on_progress, meta=meta)
            return result["content"][0]["text"]
        except Exception as error:
            print(f"a call: {error}")
            self.is_expired = "session" in str(error).lower()
            return str(error)

    async def go(self):
        await self.visit()
        if self.is_expired:
            self.is_expired = False
            # The SDK leaves it to its application to open another session.
            await self.visit()


async def travel(adapter, revision, server):
    async with anyio.create_task_group() as group:
        await Guest(adapter, revision, server, group).go()
        group.cancel_scope.cancel()


def run_tour(adapter):
    arguments = sys.argv[2:]
    if len(arguments) < 3 or arguments[1] != "--":
        sys.exit("usage: client.py tour REVISION -- SERVER [ARG...] | -- URL")
    revision, _, *server = arguments
    anyio.run(travel, adapter, revision, server)
