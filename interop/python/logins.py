"""The logins of the clients on the Python SDKs.

An adapter (../python-v1/login.py, ../python-v2/login.py) knows in what the two SDKs differ: the HTTP library, what a browser
comes back with, how a session is opened. What is done, and what is looked at, is here. Prints a line of JSON about each check, see ../README.md; tokens, codes and
secrets are in none of them. They go to the file that REFMCP_SECRETS names, one a line, for the search of the server's
logs for them.
"""

import json
import logging
import os
import re
import sys
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urljoin, urlsplit
from uuid import uuid4

import anyio
import mcp.client.auth
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import OAuthClientMetadata

READ, WRITE = "mcp:read", "mcp:write"
TODO = "file:///notes/todo.txt"
#: Nothing listens there: an authorization ends with the address that the browser would be sent back to.
REDIRECT = "http://127.0.0.1:9/callback"
#: For one check, beside what it waits for by itself.
PATIENCE = 20
#: An SDK that is refused may wait for an answer nevertheless.
REFUSED_WITHIN = 3
#: For how long the server may go by what it knew of a token before it was revoked.
REVOKED_WITHIN = 15
#: What is secret in a form.
SECRET = ("code", "code_verifier", "state", "refresh_token", "client_secret", "token")


def note(*secrets):
    """Records what must not be logged."""
    if path := os.environ.get("REFMCP_SECRETS"):
        with open(path, "a") as file:
            file.writelines(f"{secret}\n" for secret in secrets if secret)


def note_form(text):
    """Writes down what is secret in a form or in a query."""
    form = parse_qs(text)
    note(*(value for name in SECRET for value in form.get(name, [])))


class Unsupported(Exception):
    """The SDK cannot do it; the message is the evidence."""


class Storage:
    """What an application keeps for the SDK, and how it goes to the authorization page."""

    def __init__(self, http, refreshing=True):
        self.http = http
        self.tokens = self.client = self.back = None
        self.visits = []
        grants = ["authorization_code", "refresh_token"] if refreshing else ["authorization_code"]
        self.metadata = {
            "client_name": "refmcp interop",
            "redirect_uris": [REDIRECT],
            "grant_types": grants,
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        }

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        note(tokens.access_token, tokens.refresh_token)
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        note(client_info.client_secret)
        self.client = client_info

    @property
    def scopes(self):
        return (self.tokens.scope or "").split()

    async def visit(self, url):
        """Goes where a browser would be sent."""
        note_form(urlsplit(url).query)
        self.visits.append(parse_qs(urlsplit(url).query))
        async with self.http.AsyncClient() as client:
            response = await client.get(url)
        location = response.headers.get("location", "")
        assert location.startswith(REDIRECT), f"the authorization page answered {response.status_code} and did not redirect"
        note_form(urlsplit(location).query)
        self.back = {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}
        refusal = f"{self.back.get('error')}: {self.back.get('error_description')}"
        assert "code" in self.back, f"the login was refused: {refusal}"


class Wire:
    """What was sent to the server: whether a token came with it, and what it got."""

    def __init__(self, url):
        self.path = urlsplit(url).path
        self.seen = []

    async def __call__(self, response):
        path = response.request.url.path
        if path == "/token":
            note_form(response.request.content.decode())
        if path == self.path or path.startswith("/messages"):
            token = response.request.headers.get("authorization")
            note((token or "").removeprefix("Bearer "), response.headers.get("mcp-session-id"))
            self.seen.append((response.status_code, token, response.headers.get("www-authenticate", "")))

    def refused(self, status=401):
        """Refused as one without a good token must be, and with a pointer to where one is to be had."""
        challenges = [challenge for found, _, challenge in self.seen if found == status]
        assert challenges, f"nothing was refused with {status}"
        assert re.match(r'Bearer .*resource_metadata="http:', challenges[0]), f"WWW-Authenticate: {challenges[0]}"
        return challenges[0]


class Logins:
    def __init__(self, adapter, revision, url, brief, seconds):
        self.adapter, self.revision, self.url, self.brief, self.seconds = adapter, revision, url, brief, seconds
        self.transport = "sse" if urlsplit(url).path.endswith("/sse") else "http"

    def new_storage(self, **options):
        return Storage(self.adapter.http, **options)

    def provider(self, url, storage):
        async def callback():
            return self.adapter.came_back(storage.back)

        metadata = OAuthClientMetadata(**storage.metadata)
        return OAuthClientProvider(url, metadata, storage, redirect_handler=storage.visit, callback_handler=callback)

    def opened(self, url, wire, auth, token):
        """The SDK's transport, with what is on the wire looked at."""

        def new_client(headers=None, timeout=None, auth=auth):
            client = create_mcp_http_client(headers=headers, timeout=timeout, auth=auth)
            client.event_hooks = {"response": [wire]}
            return client

        headers = {"Authorization": f"Bearer {token}"} if token else None
        if self.transport == "sse":
            return sse_client(url, headers=headers, auth=auth, httpx_client_factory=new_client)
        return streamable_http_client(url, http_client=new_client(headers))

    @asynccontextmanager
    async def enter(self, url, wire, storage=None, auth=None, token=None):
        """A connection, through the login when the SDK asks for one. Gives what calls a tool."""
        if storage:
            auth = self.provider(url, storage)
        async with self.adapter.connect(self.revision, self.opened(url, wire, auth, token)) as session:

            async def call(name, arguments):
                result = await session.call_tool(name, arguments)
                return result.model_dump(by_alias=True, mode="json", exclude_none=True)

            yield call

    async def echo(self, call):
        said = f"hello {uuid4()}"
        assert text_of(await call("echo", {"message": said})) == said

    async def step_up(self, storage):
        wire = Wire(self.url)
        async with self.enter(self.url, wire, storage) as call:
            before = storage.scopes
            assert WRITE not in before, f"the first token already has {before}"
            result = await call("touch_resource", {"uri": TODO})
            assert not result.get("isError"), text_of(result)
            assert 'error="insufficient_scope"' in wire.refused(403)
            needed = {READ, WRITE} if self.adapter.UNITES else {WRITE}
            assert needed <= set(storage.scopes), f"the second token has {storage.scopes}"
            await self.echo(call)
        assert len(storage.visits) == 2, f"{len(storage.visits)} visits"
        return f"{','.join(before)} became {','.join(storage.scopes)}"

    async def refused_with(self, patience=0, **login):
        """The SDK has nothing but this, and the server does not take it, or not for long."""
        deadline = anyio.current_time() + patience
        while True:
            wire, taken = Wire(self.url), False
            with anyio.move_on_after(REFUSED_WITHIN):
                try:
                    async with self.enter(self.url, wire, **login):
                        taken = True
                except Exception:  # however the SDK puts it: what counts is what was on the wire
                    pass
            if not taken:
                return wire.refused()
            assert anyio.current_time() < deadline, "the server took it"
            await anyio.sleep(0.5)

    async def token(self, url):
        """A token that the server issued."""
        storage = self.new_storage()
        async with self.enter(url, Wire(url), storage):
            return storage.tokens.access_token, storage.client.client_id

    async def without_a_token(self):
        assert "error=" not in await self.refused_with(), "who sends no token has made no error"

    async def login(self):
        wire, storage = Wire(self.url), self.new_storage()
        async with self.enter(self.url, wire, storage) as call:
            await self.echo(call)
        assert storage.client.client_id, "no client was registered"
        assert len(storage.visits) == 1, f"{len(storage.visits)} visits"
        asked = storage.visits[0]
        assert asked["code_challenge_method"] == ["S256"]
        bearer = f"Bearer {storage.tokens.access_token}"
        first = next(at for at, (_, token, _) in enumerate(wire.seen) if token)
        assert all(status == 401 for status, _, _ in wire.seen[:first]), "something was answered without a token"
        assert all(token == bearer for _, token, _ in wire.seen[first:]), "a request came without the token"
        return f"scope {','.join(storage.scopes)}, resource {asked['resource'][0]}"

    async def plain_step_up(self):
        return await self.step_up(self.new_storage(refreshing=False))

    async def step_up_with_refresh_token(self):
        return await self.step_up(self.new_storage())

    async def refresh(self):
        wire, storage = Wire(self.brief), self.new_storage()
        provider = self.provider(self.brief, storage)
        async with self.enter(self.brief, wire, auth=provider) as call:
            before = storage.tokens
            assert before.refresh_token, "there is no refresh token"
            await anyio.sleep(self.seconds + 1)
            if self.transport == "http":
                await self.echo(call)
        if self.transport == "sse":
            # Its stream was the session, and went with the token.
            async with self.enter(self.brief, wire, auth=provider) as call:
                await self.echo(call)
        after = storage.tokens
        assert after.access_token != before.access_token, "the token is still the same"
        assert len(storage.visits) == 1, f"{len(storage.visits)} visits"
        assert after.scope == before.scope, f"{before.scope} became {after.scope}"
        same = after.refresh_token == before.refresh_token
        return "the refresh token stays" if same else "the refresh token is a new one too"

    async def dpop(self):
        names = [name for name in dir(mcp.client.auth) if not name.startswith("_")]
        assert not any("dpop" in name.lower() for name in names), "the SDK knows DPoP by now"
        raise Unsupported(f"nothing of it among what mcp.client.auth has: {' '.join(names)}")

    async def client_credentials(self):
        client_id, client_secret = os.environ.get("CLIENT_ID"), os.environ.get("CLIENT_SECRET")
        assert client_id and client_secret, "CLIENT_ID and CLIENT_SECRET are not set"
        storage = self.new_storage()
        issuer = origin_of(self.url) + self.adapter.ISSUER_ENDS_WITH
        provider = ClientCredentialsOAuthProvider(self.url, storage, client_id, client_secret, issuer=issuer)
        async with self.enter(self.url, Wire(self.url), auth=provider) as call:
            await self.echo(call)
        return f"scope {','.join(storage.scopes)}"

    async def revoked_token(self):
        token, client_id = await self.token(self.url)
        async with self.adapter.http.AsyncClient() as client:
            found = await client.get(urljoin(self.url, "/.well-known/oauth-authorization-server"))
            body = {"token": token, "client_id": client_id}
            revoked = await client.post(found.json()["revocation_endpoint"], data=body)
        assert revoked.status_code == 200, f"the revocation got {revoked.status_code}"
        assert 'error="invalid_token"' in await self.refused_with(REVOKED_WITHIN, token=token)

    async def foreign_token(self):
        token, _ = await self.token(self.brief)
        assert 'error="invalid_token"' in await self.refused_with(token=token)

    def checks(self):
        return {
            "without a token": self.without_a_token,
            "login": self.login,
            "step-up": self.plain_step_up,
            "step-up with a refresh token": self.step_up_with_refresh_token,
            "refresh": self.refresh,
            "DPoP": self.dpop,
            "client credentials": self.client_credentials,
            "a revoked token": self.revoked_token,
            "another server's token": self.foreign_token,
        }


def origin_of(url):
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def text_of(result):
    return "\n".join(block["text"] for block in result["content"] if block["type"] == "text")


def describe(error):
    if isinstance(error, BaseExceptionGroup):
        return ", ".join(describe(inner) for inner in error.exceptions)
    return f"{type(error).__name__}: {error}"


def without_secrets(told):
    """Nothing that is told may have a token or a code in it."""
    told = re.sub(r'Bearer [^\s,"]{20,}', "…", told)
    return re.sub(r"([?&](?:code|state|code_challenge|access_token)=)[^&\s\"']*", r"\1…", told)


async def go(logins):
    failed = False
    for name, check in logins.checks().items():
        told = {"name": name, "ok": True, "unsupported": False, "detail": ""}
        try:
            with anyio.fail_after(PATIENCE + logins.seconds):
                told["detail"] = await check() or ""
        except Unsupported as words:
            told |= {"unsupported": True, "detail": str(words)}
        except Exception as error:
            told |= {"ok": False, "detail": describe(error)}
        failed |= not told["ok"]
        print(json.dumps(told | {"detail": without_secrets(told["detail"])}), flush=True)
    return 1 if failed else 0


def run_logins(adapter):
    if len(sys.argv) != 5:
        sys.exit("usage: login.py REVISION URL URL_WITH_BRIEF_TOKENS SECONDS")
    _, revision, url, brief, seconds = sys.argv
    logging.disable()  # the SDK logs what it raises, and whole addresses with it
    sys.exit(anyio.run(go, Logins(adapter, revision, url, brief, int(seconds))))
