"""The feature scenario for the clients on the Python SDKs.

An adapter (../python-v1/client.py, ../python-v2/client.py) puts one SDK behind the few calls used here and gives
every answer as the JSON the SDK read; see ../README.md.
"""

import base64
import json
import logging
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from exit_recorder import new_exit_recorder, transport_of

FEATURE_TIMEOUT = 10
NOTIFICATION_TIMEOUT = 3
QUIET = 0.25  # how long to listen before believing that nothing comes
REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
NEWEST = REVISIONS[-1]
TODO = "file:///notes/todo.txt"
LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel"
TOOLS = (
    "echo sum get_weather long_task slow big_result image audio resource_link embedded_resource annotated mixed "
    "fail protocol_error log_all ask_user ask_model list_roots add_tool remove_tool add_prompt remove_prompt "
    "add_resource remove_resource touch_resource about_me cancellations test_simple_text test_image_content"
).split()
RESOURCES = [
    TODO,
    "file:///data/custom.json",
    "file:///project/src/main.rs",
    "file:///resources/notes.txt",
    "file:///resources/plans.md",
    "file:///resources/diagram.png",
    "test://static-text",
    "test://static-binary",
]
PROMPTS = ["code_review", "bug_report", "refactor", "test_simple_prompt", "test_prompt_with_arguments"]
KEYS = {"tools": "name", "resources": "uri", "resourceTemplates": "uriTemplate", "prompts": "name"}
PNG = b"\x89PNG\r\n"


class Unsupported(Exception):
    """The SDK cannot do it, or the revision does not have it; the message is the evidence."""


class Inbox:
    """What the server sends on its own, kept until a feature asks for it."""

    def __init__(self):
        self.messages = []

    def push(self, message):
        self.messages.append(message)

    def of(self, method):
        return [message.get("params") or {} for message in self.messages if message["method"] == method]

    def clear(self):
        self.messages.clear()

    async def next(self, method, matches=lambda params: True):
        deadline = time.monotonic() + NOTIFICATION_TIMEOUT
        while time.monotonic() < deadline:
            for params in self.of(method):
                if matches(params):
                    return params
            await anyio.sleep(0.01)
        raise AssertionError(f"no {method} within {NOTIFICATION_TIMEOUT} s")


@asynccontextmanager
async def tapped(transport, received):
    """A transport's streams, with every message from the server also given to `received`."""
    async with transport as (read, write, *_), anyio.create_task_group() as group:
        forward, taken = anyio.create_memory_object_stream(0)

        async def pump():
            async with forward:
                async for item in read:
                    if not isinstance(item, Exception):
                        received(item.message.model_dump(by_alias=True, mode="json", exclude_unset=True))
                    await forward.send(item)

        group.start_soon(pump)
        yield taken, write
        group.cancel_scope.cancel()


def dump(value):
    return json.dumps(value, ensure_ascii=False)


def brief(value):
    text = dump(value)
    return text if len(text) <= 300 else text[:300] + "…"


def describe(error):
    if isinstance(error, BaseExceptionGroup):
        return ", ".join(describe(inner) for inner in error.exceptions)
    return f"{type(error).__name__}: {error}"


def text_of(result):
    return "\n".join(block["text"] for block in result["content"] if block["type"] == "text")


def block_of(result, kind):
    return next((block for block in result["content"] if block["type"] == kind), None)


def has(haystack, needle):
    assert needle in (haystack if isinstance(haystack, str) else dump(haystack)), f"{needle!r} is not in {brief(haystack)}"


def has_all(found, wanted):
    missing = [item for item in wanted if item not in found]
    assert not missing, f"missing from the list of {len(found)}: {missing}"


def same(found, wanted, what):
    assert found == wanted, f"{what}: {brief(found)} instead of {brief(wanted)}"


def decode(data, start, what):
    content = base64.b64decode(data, validate=True)
    assert content.startswith(start), f"{what} starts with {content[:8].hex()}"
    return len(content)


def answer_field(name, field):
    """An answer that fits one field of an elicitation form."""
    options = field.get("enum") or [option["const"] for option in field.get("oneOf", [])]
    if options:
        return options[-1]
    match field["type"]:
        case "array":
            items = field["items"]
            choices = items.get("enum") or [option["const"] for option in items["anyOf"]]
            return choices[: max(field.get("minItems", 0), min(2, field.get("maxItems", 2)))]
        case "boolean":
            return True
        case "integer" | "number":
            return min(max(42, field.get("minimum", 42)), field.get("maximum", 42))
        case "string":
            formats = {
                "email": "test@example.org",
                "uri": "https://example.org/test",
                "date": "2026-01-02",
                "date-time": "2026-01-02T03:04:05Z",
            }
            text = formats.get(field.get("format"), f"test-{name}")
            return text.ljust(field.get("minLength", 0), "x")[: field.get("maxLength")]
    raise AssertionError(f"field {name} has a type that no revision allows: {brief(field)}")


class Scenario:
    """All the session knows, and the calls that several features make."""

    def __init__(self, adapter, revision, server, folder):
        self.adapter = adapter
        self.revision = revision
        self.server = server
        self.transport = transport_of(server)
        self.folder = folder
        self.exit_recorder = new_exit_recorder(server, folder)
        self.inbox = Inbox()
        self.session = None
        self.sampling = None  # the three answers of the client, set by the features
        self.elicitation = None
        self.roots = []
        self.traffic = []  # every message from the server during this feature, as it was on the wire
        self.sdk_errors = []
        self.opened, self.closing, self.closed = anyio.Event(), anyio.Event(), anyio.Event()
        self.failure = None

    def since(self, revision):
        return self.revision >= revision

    @property
    def modern(self):
        return self.since(NEWEST)

    def connect(self, exit_recorder, inbox):
        return self.adapter.connect(
            revision=self.revision,
            place=exit_recorder.place,
            received=self.traffic.append,
            notified=inbox.push,
            sampling=lambda params: self.sampling(params),
            elicitation=lambda params: self.elicitation(params),
            roots=lambda: self.roots,
        )

    async def hold_session(self):
        """Keeps the session open in a task of its own, so that a feature's time limit does not enclose it."""
        try:
            async with self.connect(self.exit_recorder, self.inbox) as session:
                self.session = session
                self.opened.set()
                await self.closing.wait()
        except Exception as error:
            self.failure = error
        finally:
            self.opened.set()
            self.closed.set()

    async def call(self, name, args=None, **options):
        result = await self.session.call_tool(name, args or {}, **options)
        assert isinstance(result.get("content"), list), f"{name} gave no content: {brief(result)}"
        return result

    async def ok(self, name, args=None, **options):
        result = await self.call(name, args, **options)
        assert not result.get("isError"), f"{name} failed: {brief(result)}"
        return result

    async def rpc_error(self, awaitable):
        """The JSON-RPC error that the call must end with."""
        try:
            value = await awaitable
        except Exception as error:
            found = self.adapter.rpc_error(error)
            if found:
                return found
            raise
        raise AssertionError(f"expected a JSON-RPC error, got {brief(value)}")

    def server_requests(self):
        """The requests that the server sent during this feature."""
        return [message for message in self.traffic if "method" in message and "id" in message]

    async def no_method(self, method, attempt):
        """For a method this revision does not have: the refusal, the SDK's or the server's, is the evidence."""
        why = f"no {method} in this revision"
        try:
            value = await attempt()
        except Exception as error:
            found = self.adapter.rpc_error(error)
            if self.adapter.refused_locally(error):
                raise Unsupported(f"{why}: {describe(error)}") from error
            if found and found["code"] == -32601:
                raise Unsupported(f"{why}: {dump(found)}") from error
            raise
        raise AssertionError(f"{why}, yet it was answered with {brief(value)}")

    async def no_question(self, form, why):
        """For a question this revision does not have: the server must not ask it, and the tool must say so."""
        try:
            result = await self.call("ask_user", {"form": form})
            assert result.get("isError"), f"{why}, yet ask_user gave {brief(result)}"
            said = text_of(result)
        except Exception as error:
            found = self.adapter.rpc_error(error)
            if not found or found["code"] not in (-32600, -32601, -32602):
                raise
            said = dump(found)
        same(self.server_requests(), [], f"{why}, yet the server asked")
        assert said, f"{why}: an error that says nothing"
        raise Unsupported(f"{why}: {said}")

    async def stopped(self, tag, session=None):
        """Waits until the server says that the work with this tag was cancelled and has stopped."""
        began = time.monotonic()
        while True:
            report = dump(await (session or self.session).call_tool("cancellations", {"tag": tag}))
            if tag in report and "stopped" in report.lower() and not re.search(r"stopped[^:,]*:\s*(null|false)", report, re.I):
                return
            assert time.monotonic() - began < 3, f"not cancelled and stopped after 3 s: {brief(report)}"
            await anyio.sleep(0.1)

    async def leave(self):
        """Closes the session."""
        self.closing.set()
        await self.closed.wait()
        if self.failure:
            raise self.failure

    async def leave_running(self):
        """Without a session there is only what runs to be ended: a call that the client leaves stops."""
        assert not self.exit_recorder.in_session(), "requests in a session, which this revision does not have"
        tag = f"left-{os.getpid()}-{time.monotonic_ns()}"
        answered = []

        async def call():
            try:
                answered.append(await self.session.call_tool("long_task", {"steps": 100, "step_ms": 100, "tag": tag}))
            except Exception as error:
                self.sdk_errors.append(describe(error))

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await anyio.sleep(0.3)
            began = time.monotonic()
            await self.leave()
            async with self.connect(new_exit_recorder(self.server, self.folder), Inbox()) as session:
                await self.stopped(tag, session)
            took = time.monotonic() - began
            group.cancel_scope.cancel()
        same(answered, [], "the call that was left was answered")
        return f"no session in this revision; the call that was left stopped after {took * 1000:.0f} ms"

    @asynccontextmanager
    async def watching(self, **filter) -> AsyncIterator[None]:
        """The server reports the named changes meanwhile, by whatever means the revision has."""
        self.inbox.clear()
        if not self.modern:
            yield
            return
        async with self.session.listen(**filter) as honored:
            has_all([name for name, value in honored.items() if value], list(filter))
            yield

    async def list_all(self, kind, session=None):
        items, cursor = [], None
        while True:
            page = await (session or self.session).list_page(kind, cursor)
            items += page[kind]
            cursor = page.get("nextCursor")
            if cursor is None:
                return items


FEATURES = {}


def feature(name):
    def add(function):
        FEATURES[name] = function
        return function

    return add


@feature("handshake")
async def handshake(scenario):
    await scenario.opened.wait()
    if scenario.failure:
        raise scenario.failure
    session = scenario.session
    same(session.revision, scenario.revision, "negotiated revision")
    same((session.server_info or {}).get("name"), "RefMCP-TestServer", "server name")
    assert session.server_info["version"], "no server version"
    capabilities = session.capabilities
    for kind in ("tools", "prompts", "resources"):
        same(capabilities.get(kind, {}).get("listChanged"), True, f"{kind}.listChanged")
    same(capabilities["resources"].get("subscribe"), True, "resources.subscribe")
    assert "logging" in capabilities, "no logging capability"
    if scenario.since("2025-03-26"):
        assert "completions" in capabilities, "no completions capability"
    return f"{session.server_info['name']} {session.server_info['version']}, capabilities {' '.join(capabilities)}"


@feature("tools/list")
async def tools_list(scenario):
    tools = {tool["name"]: tool for tool in await scenario.list_all("tools")}
    has_all(tools, TOOLS)
    for name, tool in tools.items():
        assert tool.get("description"), f"{name} has no description"
        same(tool["inputSchema"]["type"], "object", f"{name} inputSchema")
    total = tools["sum"]
    same(sorted(total["inputSchema"]["properties"]), ["a", "b"], "arguments of sum")
    same("outputSchema" in total, scenario.since("2025-06-18"), "outputSchema of sum")
    if scenario.since("2025-03-26"):
        assert total.get("annotations"), "no annotations of sum"
    if scenario.since("2025-06-18"):
        assert total.get("title"), "no title of sum"
    return f"{len(tools)} tools"


@feature("pagination")
async def pagination(scenario):
    exit_recorder = new_exit_recorder(scenario.server, scenario.folder, paged=True)
    counts = []
    try:
        async with scenario.connect(exit_recorder, Inbox()) as session:
            for kind, key in KEYS.items():
                whole = [item[key] for item in await scenario.list_all(kind)]
                seen, pages, cursor = [], 0, None
                while pages == 0 or cursor is not None:
                    assert pages <= len(whole), f"{kind}: the cursors never end"
                    page = await session.list_page(kind, cursor)
                    assert len(page[kind]) <= 5, f"{kind}: a page of {len(page[kind])}"
                    seen += [item[key] for item in page[kind]]
                    cursor = page.get("nextCursor")
                    pages += 1
                assert len(set(seen)) == len(seen), f"{kind}: duplicates in {brief(seen)}"
                same(sorted(seen), sorted(whole), f"{kind}: paged and unpaged differ")
                counts.append(f"{len(seen)} {kind} in {pages} pages")
    finally:
        exit_recorder.reap()
    return ", ".join(counts)


@feature("text")
async def text(scenario):
    message = 'scenario: grüße, 世界, "quotes"\nand a second line \U0001f600'
    result = await scenario.ok("echo", {"message": message})
    same(result["content"][0]["type"], "text", "first block")
    has(text_of(result), message)


@feature("image")
async def image(scenario):
    block = block_of(await scenario.ok("image"), "image")
    assert block, "no image block"
    same(block["mimeType"], "image/png", "mimeType")
    return f"{decode(block['data'], PNG, 'image')} bytes"


@feature("audio")
async def audio(scenario):
    result = await scenario.ok("audio")
    block = block_of(result, "audio")
    if not scenario.since("2025-03-26"):
        assert not block, "an audio block, which this revision does not have"
        assert text_of(result), "nothing in place of the audio"
        return f"no audio in this revision, instead: {brief(text_of(result))}"
    assert block, "no audio block"
    same(block["mimeType"], "audio/wav", "mimeType")
    return f"{decode(block['data'], b'RIFF', 'audio')} bytes"


@feature("resource_link")
async def resource_link(scenario):
    result = await scenario.ok("resource_link")
    link = block_of(result, "resource_link")
    if not scenario.since("2025-06-18"):
        assert not link, "a resource_link block, which this revision does not have"
        has(result, "://")
        return f"no resource_link in this revision, instead: {brief(result['content'])}"
    assert link and link["name"], "no resource_link block with a name"
    assert re.match(r"[a-z]+://", link["uri"]), link["uri"]
    return link["uri"]


@feature("embedded_resource")
async def embedded_resource(scenario):
    block = block_of(await scenario.ok("embedded_resource"), "resource")
    assert block, "no resource block"
    resource = block["resource"]
    assert re.match(r"[a-z]+://", resource["uri"]), resource["uri"]
    assert resource.get("text") or resource.get("blob"), "an empty resource"
    return resource["uri"]


@feature("annotated")
async def annotated(scenario):
    result = await scenario.ok("annotated")
    annotations = [block["annotations"] for block in result["content"] if block.get("annotations")]
    assert annotations, f"no annotations in {brief(result['content'])}"
    for one in annotations:
        assert set(one.get("audience", [])) <= {"user", "assistant"}, f"audience in {brief(one)}"
        assert 0 <= one.get("priority", 0) <= 1, f"priority in {brief(one)}"
    assert any(one.get("audience") or "priority" in one for one in annotations), f"nothing said in {brief(annotations)}"
    return brief(annotations)


@feature("mixed")
async def mixed(scenario):
    kinds = [block["type"] for block in (await scenario.ok("mixed"))["content"]]
    assert len(set(kinds)) >= 3, f"kinds {kinds}"
    has_all(kinds, ["text", "image"])
    return " ".join(kinds)


@feature("structured_output")
async def structured_output(scenario):
    total = await scenario.ok("sum", {"a": 2, "b": 3})
    has(text_of(total), "5")
    weather = await scenario.ok("get_weather", {"location": "Berlin"})
    assert "\n" in text_of(weather), "the weather is not several lines"
    same(await scenario.ok("get_weather", {"location": "Berlin"}), weather, "the same place, other weather")
    if not scenario.since("2025-06-18"):
        assert "structuredContent" not in total, "structuredContent, which this revision does not have"
        return "no structured output in this revision, the text has it"
    same(total["structuredContent"], {"total": 5}, "structuredContent of sum")
    found = weather["structuredContent"]
    assert isinstance(found["temperature"], int | float) and isinstance(found["humidity"], int | float), brief(found)
    assert isinstance(found["conditions"], str), brief(found)
    return brief(found)


@feature("tool_error")
async def tool_error(scenario):
    result = await scenario.call("fail", {"message": "scenario failure"})
    same(result.get("isError"), True, "isError")
    has(text_of(result), "scenario failure")


@feature("protocol_error")
async def protocol_error(scenario):
    error = await scenario.rpc_error(scenario.call("protocol_error", {"message": "scenario protocol error"}))
    has(error, "scenario protocol error")
    # 2026-07-28 keeps these for itself or retired them; none of those it defines means that a tool wants an error
    reserved = -32099 <= error["code"] <= -32020 or error["code"] == -32002
    assert not (scenario.modern and reserved), f"code {error['code']} is reserved for the specification"
    return brief(error)


@feature("invalid_arguments")
async def invalid_arguments(scenario):
    call = scenario.call("sum", {"a": "two", "b": 3})
    if not scenario.since("2025-11-25"):
        error = await scenario.rpc_error(call)
        same(error["code"], -32602, "code")
        assert re.search(r"""[/.$["'`]a\b""", dump(error)), f"no path to the argument in {brief(error)}"
        return brief(error)
    result = await call
    same(result.get("isError"), True, "isError")
    has(text_of(result), "number")
    return brief(text_of(result))


@feature("resources/list")
async def resources_list(scenario):
    resources = {resource["uri"]: resource for resource in await scenario.list_all("resources")}
    has_all(resources, RESOURCES)
    for uri, resource in resources.items():
        assert resource["name"], f"{uri} has no name"
    assert resources[TODO]["mimeType"].startswith("text/plain"), resources[TODO]["mimeType"]
    assert resources[TODO].get("annotations"), "todo.txt has no annotations"
    return f"{len(resources)} resources"


@feature("resources/read")
async def resources_read(scenario):
    todo = (await scenario.session.read_resource(TODO))["contents"][0]
    same(todo["uri"], TODO, "uri")
    assert todo.get("text") and "blob" not in todo, f"todo.txt is {brief(todo)}"
    diagram = (await scenario.session.read_resource("file:///resources/diagram.png"))["contents"][0]
    same(diagram["mimeType"], "image/png", "mimeType")
    assert "text" not in diagram, "diagram.png has text"
    return f"{len(todo['text'])} characters, {decode(diagram['blob'], PNG, 'diagram.png')} bytes"


@feature("resource_templates")
async def resource_templates(scenario):
    templates = [template["uriTemplate"] for template in await scenario.list_all("resourceTemplates")]
    has_all(templates, ["test://template/{id}/data"])
    data = (await scenario.session.read_resource("test://template/123/data"))["contents"][0]
    same(data["uri"], "test://template/123/data", "uri")
    same(data["mimeType"], "application/json", "mimeType")
    same(str(json.loads(data["text"])["id"]), "123", "id")
    return f"{len(templates)} templates"


@feature("resource_not_found")
async def resource_not_found(scenario):
    uri = "file:///notes/no-such-file.txt"
    error = await scenario.rpc_error(scenario.session.read_resource(uri))
    same(error["code"], -32602 if scenario.modern else -32002, "code")
    same((error.get("data") or {}).get("uri"), uri, "data.uri")
    return brief(error)


@feature("subscribe")
async def subscribe(scenario):
    async def read():
        return (await scenario.session.read_resource(TODO))["contents"][0]["text"]

    before = await read()
    if not scenario.modern:
        await scenario.session.subscribe(TODO)
    async with scenario.watching(resourceSubscriptions=[TODO]):
        await scenario.ok("touch_resource", {"uri": TODO})
        await scenario.inbox.next("notifications/resources/updated", lambda params: params["uri"] == TODO)
        assert await read() != before, "the content did not change"
    if not scenario.modern:
        await scenario.session.unsubscribe(TODO)
    await anyio.sleep(QUIET)  # an SDK may send the end of a subscription in its own time
    scenario.inbox.clear()
    await scenario.ok("touch_resource", {"uri": TODO})
    await anyio.sleep(QUIET)
    same(scenario.inbox.of("notifications/resources/updated"), [], "updated without a subscription")


@feature("list_changed")
async def list_changed(scenario):
    changes = [
        ("tools", "tool", {"name": "scenario_tool"}),
        ("prompts", "prompt", {"name": "scenario_prompt"}),
        ("resources", "resource", {"uri": "file:///scenario/added.txt"}),
    ]

    async def listed(kind, args):
        return [*args.values()][0] in [item[KEYS[kind]] for item in await scenario.list_all(kind)]

    async with scenario.watching(toolsListChanged=True, promptsListChanged=True, resourcesListChanged=True):
        for kind, one, args in changes:
            assert not await listed(kind, args), f"{args} was there before"
            for change, present in (("add", True), ("remove", False)):
                scenario.inbox.clear()
                await scenario.ok(f"{change}_{one}", args)
                await scenario.inbox.next(f"notifications/{kind}/list_changed")
                same(await listed(kind, args), present, f"{args} listed after {change}_{one}")


@feature("prompts/list")
async def prompts_list(scenario):
    prompts = {prompt["name"]: prompt for prompt in await scenario.list_all("prompts")}
    has_all(prompts, PROMPTS)
    for name, prompt in prompts.items():
        assert prompt.get("description"), f"{name} has no description"
    arguments = {argument["name"]: argument for argument in prompts["code_review"]["arguments"]}
    same(arguments["code"].get("required"), True, "code is required")
    assert not arguments["language"].get("required"), "language is required"
    return f"{len(prompts)} prompts"


@feature("prompts/get")
async def prompts_get(scenario):
    code = "fn scenario() -> u8 { 42 }"
    messages = (await scenario.session.get_prompt("code_review", {"code": code, "language": "rust"}))["messages"]
    assert messages, "no messages"
    for message in messages:
        assert message["role"] in ("user", "assistant"), message["role"]
    has(messages, code)
    has(messages, "rust")
    return f"{len(messages)} messages"


@feature("completion")
async def completion(scenario):
    async def values(context=None):
        found = (await scenario.session.complete("code_review", "language", "py", context))["completion"]["values"]
        assert len(found) <= 100, f"{len(found)} values"
        assert any("python" in value.lower() for value in found), f"values {brief(found)}"
        return brief(found)

    plain = await values()
    if not scenario.since("2025-06-18"):
        return plain
    await values({"code": "print(1)"})
    return f"{plain}, also with context"


@feature("logging")
async def log_messages(scenario):
    async def logged(**options):
        scenario.inbox.clear()
        await scenario.ok("log_all", {"text": "scenario log"}, **options)
        await anyio.sleep(QUIET)
        messages = scenario.inbox.of("notifications/message")
        return sorted(message["level"] for message in messages if "scenario log" in dump(message["data"]))

    for level in ("warning", "debug"):
        if scenario.modern:
            found = await logged(meta={LOG_LEVEL_KEY: level})
        else:
            await scenario.session.set_level(level)
            found = await logged()
        same(found, sorted(LEVELS[LEVELS.index(level) :]), f"levels logged at {level}")
    if scenario.modern:
        same(await logged(), [], "logged for a request without logLevel")


@feature("progress")
async def progress(scenario):
    seen = []

    async def progressed(done, total, message):
        seen.append((done, total))

    await scenario.ok("long_task", {"steps": 3, "step_ms": 20}, on_progress=progressed)
    await anyio.sleep(QUIET)
    steps = [done for done, _ in seen]
    same(len(steps), 3, f"number of notifications in {seen}")
    assert steps == sorted(set(steps)), f"progress does not grow: {steps}"
    assert seen[-1][1] in (None, steps[-1]), f"ended at {steps[-1]} of {seen[-1][1]}"
    return brief(seen)


@feature("cancellation")
async def cancellation(scenario):
    tag = f"scenario-{os.getpid()}-{time.monotonic_ns()}"
    args = {"steps": 100, "step_ms": 100, "tag": tag}
    began = time.monotonic()
    how = await scenario.session.cancelled_call("long_task", args, after=0.3)
    took = time.monotonic() - began
    assert took < 1.3, f"the call ended only after {took:.1f} s"
    await scenario.stopped(tag)
    return how


@feature("sampling")
async def sampling(scenario):
    asked = []

    def answer(params):
        asked.append(params)
        return "the scenario answers 4711"

    scenario.sampling = answer
    result = await scenario.ok("ask_model", {"prompt": "what does the scenario answer?"})
    assert asked, "the client was not asked"
    has(asked[0]["messages"], "what does the scenario answer?")
    assert asked[0]["maxTokens"] > 0, f"maxTokens {asked[0]['maxTokens']}"
    has(result, "the scenario answers 4711")


@feature("elicitation_form")
async def elicitation_form(scenario):
    asked, content = [], {}

    def answer(params):
        asked.append(params)
        fields = params["requestedSchema"]["properties"]
        content.update({name: answer_field(name, field) for name, field in fields.items()})
        return {"action": "accept", "content": content}

    scenario.elicitation = answer
    if not scenario.since("2025-06-18"):
        await scenario.no_question("all", "no elicitation in this revision")
    result = await scenario.ok("ask_user", {"form": "all"})
    assert asked and asked[-1]["message"], "the client was not asked"
    assert asked[-1].get("mode") in (None, "form"), f"mode {asked[-1]['mode']}"
    fields = asked[-1]["requestedSchema"]["properties"].values()
    kinds = ["enum" if "enum" in field or "oneOf" in field else field["type"] for field in fields]
    has_all(kinds, ["string", "boolean", "enum"])
    assert "number" in kinds or "integer" in kinds, f"kinds {kinds}"
    if scenario.since("2025-11-25"):
        assert "array" in kinds, f"kinds {kinds}"
    else:
        assert "array" not in kinds and not any("oneOf" in field for field in fields), f"later fields in {brief([*fields])}"
    said = dump(result).replace('\\"', '"')
    for value in content.values():
        for one in value if isinstance(value, list) else [value]:
            has(said, dump(one).strip('"'))
    return f"{len(kinds)} fields: {' '.join(dict.fromkeys(kinds))}"


@feature("elicitation_decline")
async def elicitation_decline(scenario):
    asked = []

    def answer(params):
        asked.append(params)
        return {"action": "decline"}

    scenario.elicitation = answer
    if not scenario.since("2025-06-18"):
        await scenario.no_question("confirm", "no elicitation in this revision")
    result = await scenario.call("ask_user", {"form": "confirm"})
    assert asked, "the client was not asked"
    assert "decline" in dump(result).lower(), brief(result)


@feature("elicitation_url")
async def elicitation_url(scenario):
    asked = []

    def answer(params):
        asked.append(params)
        return {"action": "accept"}

    scenario.elicitation = answer
    if not scenario.since("2025-11-25"):
        await scenario.no_question("url", "no URL elicitation in this revision")
    result = await scenario.ok("ask_user", {"form": "url"})
    assert asked and asked[-1].get("mode") == "url", f"asked {brief(asked)}"
    assert re.match(r"https?://", asked[-1]["url"]), asked[-1]["url"]
    assert scenario.modern or asked[-1].get("elicitationId"), "no elicitationId"
    assert "accept" in dump(result).lower(), brief(result)
    return asked[-1]["url"]


@feature("roots")
async def roots(scenario):
    scenario.roots = [("file:///scenario/one", "one"), ("file:///scenario/two", "two")]
    first = await scenario.ok("list_roots")
    has(first, "file:///scenario/one")
    has(first, "file:///scenario/two")
    scenario.roots = [("file:///scenario/three", "three")]
    if not scenario.modern:
        await scenario.session.roots_changed()
    second = await scenario.ok("list_roots")
    has(second, "file:///scenario/three")
    assert "file:///scenario/one" not in dump(second), f"old roots in {brief(second)}"
    return "no roots/list_changed in this revision" if scenario.modern else "followed roots/list_changed"


@feature("client_tasks")
async def client_tasks(scenario):
    if not getattr(scenario.session, "runs_tasks", False):
        why = "the SDK runs no tasks for a server" if scenario.revision == "2025-11-25" else "no tasks of clients in this revision"
        result = await scenario.call("ask_model", {"prompt": "nothing", "task": True})
        assert result.get("isError"), f"{why}, yet ask_model gave {brief(result)}"
        same(scenario.server_requests(), [], f"{why}, yet the server asked")
        raise Unsupported(f"{why}: {text_of(result)}")
    scenario.sampling = lambda params: "the task answers 4712"
    scenario.elicitation = lambda params: {"action": "accept", "content": {"confirm": True}}
    for name, args, said in [
        ("ask_model", {"prompt": "by a task"}, "the task answers 4712"),
        ("ask_user", {"form": "confirm"}, "accepted"),
    ]:
        scenario.traffic.clear()
        has(await scenario.ok(name, {**args, "task": True}), said)
        requests = scenario.server_requests()
        assert requests and requests[0]["params"].get("task"), f"{name} asked for no task: {brief(requests)}"
        has_all([request["method"] for request in requests], ["tasks/get", "tasks/result"])


@feature("concurrent_calls")
async def concurrent_calls(scenario):
    results = {}

    async def slow(ms):
        results[ms] = await scenario.ok("slow", {"ms": ms})

    began = time.monotonic()
    async with anyio.create_task_group() as group:
        for ms in range(200, 250):
            group.start_soon(slow, ms)
    took = time.monotonic() - began
    same(len(results), 50, "answers")
    for ms, result in results.items():
        has(result, str(ms))
    assert 0.2 <= took < 3, f"50 calls took {took:.1f} s"
    return f"{took * 1000:.0f} ms"


@feature("ping")
async def ping(scenario):
    if scenario.modern:
        await scenario.no_method("ping", scenario.session.ping)
    same(await scenario.session.ping(), {}, "answer")


@feature("discover")
async def discover(scenario):
    if not scenario.modern:
        await scenario.no_method("server/discover", scenario.session.discover)
    found = await scenario.session.discover()
    has_all(found["supportedVersions"], [NEWEST])
    has_all(found["capabilities"], ["tools", "resources", "prompts"])
    assert found["ttlMs"] >= 0 and found["cacheScope"] in ("public", "private"), brief(found)
    return f"supports {' '.join(found['supportedVersions'])}"


@feature("resume")
async def resume(scenario):
    before = len(scenario.exit_recorder.resumptions())
    await scenario.ok("close_stream")
    times = len(scenario.exit_recorder.resumptions()) - before
    if scenario.transport == "http" and scenario.revision == "2025-11-25":
        assert times > 0, "the client did not come back with Last-Event-ID: the stream was not closed"
        return "came back with Last-Event-ID for the result"
    why = f"no stream is closed before its result {'in this revision' if scenario.transport == 'http' else f'over {scenario.transport}'}"
    same(times, 0, f"{why}, yet the client came back with Last-Event-ID")
    raise Unsupported(f"{why}: close_stream answered, and nothing had to be resumed")


@feature("clean_exit")
async def clean_exit(scenario):
    if scenario.transport == "http" and scenario.modern:
        return await scenario.leave_running()
    began = time.monotonic()
    await scenario.leave()
    ended = await scenario.exit_recorder.clean(scenario.adapter)
    return f"{ended} after {(time.monotonic() - began) * 1000:.0f} ms"


async def run_feature(scenario, name):
    """One feature: its status and what there is to say about it."""
    if name != "handshake" and scenario.session is None:
        return "failed", "no session: the handshake failed"
    scenario.sdk_errors.clear()
    scenario.traffic.clear()
    try:
        with anyio.fail_after(FEATURE_TIMEOUT):
            status, detail = "ok", await FEATURES[name](scenario) or ""
        if scenario.modern:
            same(scenario.server_requests(), [], "requests of the server, which this revision does not have")
    except Unsupported as reason:
        return "unsupported", str(reason).strip()
    except TimeoutError as error:
        status, detail = "failed", f"no end within {FEATURE_TIMEOUT} s {error}"
    except Exception as error:
        status, detail = "failed", describe(error)
    notices = [f"(the SDK noticed: {notice})" for notice in dict.fromkeys(scenario.sdk_errors)]
    return status, " ".join(filter(None, [detail.strip(), *notices[:3]]))


class Notices(logging.Handler):
    def __init__(self, notices):
        super().__init__(logging.WARNING)
        self.notices = notices

    def emit(self, record):
        self.notices.append(record.getMessage())


async def travel(adapter, output, revision, server):
    folder = Path(tempfile.mkdtemp(prefix="scenario-"))
    scenario = Scenario(adapter, revision, server, folder)
    logging.getLogger().addHandler(Notices(scenario.sdk_errors))
    failures = 0
    refusal = await adapter.refusal(revision, scenario.transport)
    with open(output, "w", encoding="utf-8") as lines:
        async with anyio.create_task_group() as group:
            if not refusal:
                group.start_soon(scenario.hold_session)
            for name in FEATURES:
                status, detail = ("unsupported", refusal) if refusal else await run_feature(scenario, name)
                failures += status == "failed"
                spoken = scenario.session.revision if scenario.session else revision
                line = {
                    "client": adapter.name,
                    "transport": scenario.transport,
                    "revision": spoken,
                    "feature": name,
                    "status": status,
                    "detail": detail,
                }
                print(dump(line), file=lines, flush=True)
                print(f"{adapter.name} {scenario.transport} {spoken} {status:11} {name}  {detail}", flush=True)
            group.cancel_scope.cancel()
    scenario.exit_recorder.reap()
    shutil.rmtree(folder, ignore_errors=True)
    return 1 if failures else 0


def run_scenario(adapter):
    arguments = sys.argv[1:]
    if len(arguments) < 4 or arguments[2] != "--" or arguments[1] not in REVISIONS:
        sys.exit(f"usage: client.py FEATURES.jsonl {'|'.join(REVISIONS)} -- SERVER [ARG...] | -- URL PAGED_URL")
    output, revision, _, *server = arguments
    sys.exit(anyio.run(travel, adapter, output, revision, server))
