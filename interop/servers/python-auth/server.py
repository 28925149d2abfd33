"""A server behind a login, on the official Python SDK 1 or 2, whichever this runs on.

`server.py http PORT [SECONDS]` or `server.py sse PORT [SECONDS]`: serves until it is told to stop. Who asks the SDK's
authorization server gets a code at once, without a person, and a token that lasts so many seconds. `echo` needs the scope
`mcp:read`, as everything does; `touch_resource` needs `mcp:write` as well.
"""

import json
import secrets
import sys
import time
import warnings

import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.shared.auth import OAuthToken

try:
    from mcp.server.fastmcp import FastMCP as Server
except ModuleNotFoundError:
    from mcp.server.mcpserver import MCPServer as Server

READ, WRITE = "mcp:read", "mcp:write"
PATHS = {"http": "/mcp", "sse": "/sse"}
CODE_SECONDS = 60
#: The tools that need more than the rest, by what they need.
NEEDED = {"touch_resource": WRITE}


def new_secret():
    """Where it must not be, it is found by how it begins."""
    return f"hush-{secrets.token_urlsafe(32)}"


class Memory(OAuthAuthorizationServerProvider):
    """Says yes to everybody, and forgets everything when it ends."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.clients, self.codes, self.tokens, self.refreshes = {}, {}, {}, {}

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client_info):
        client_info.scope = f"{READ} {WRITE}"  # whatever it asks for first, it may ask for more
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client, params):
        code = AuthorizationCode(
            code=new_secret(),
            client_id=client.client_id,
            scopes=params.scopes or [READ],
            expires_at=time.time() + CODE_SECONDS,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
            subject="ada",
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, client, authorization_code):
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client, authorization_code):
        del self.codes[authorization_code.code]
        return self.issue(client, authorization_code.scopes, authorization_code)

    async def load_refresh_token(self, client, refresh_token):
        return self.refreshes.get(refresh_token)

    async def exchange_refresh_token(self, client, refresh_token, scopes):
        if not set(scopes) <= set(refresh_token.scopes):
            raise TokenError("invalid_scope", "more than was granted")
        del self.refreshes[refresh_token.token]
        return self.issue(client, scopes, refresh_token)

    def issue(self, client, scopes, grant):
        about = {"client_id": client.client_id, "scopes": scopes, "resource": grant.resource, "subject": grant.subject}
        token, refresh = new_secret(), new_secret()
        self.tokens[token] = AccessToken(token=token, expires_at=int(time.time()) + self.seconds, **about)
        self.refreshes[refresh] = RefreshToken(token=refresh, **about)
        return OAuthToken(access_token=token, expires_in=self.seconds, scope=" ".join(scopes), refresh_token=refresh)

    async def load_access_token(self, token):
        return self.tokens.get(token)

    async def revoke_token(self, token):
        self.tokens.pop(token.token, None)
        self.refreshes.pop(token.token, None)


class ScopedTools:
    """Asks for more where a tool needs more; the SDK asks the same of every request."""

    def __init__(self, app, provider, metadata_url):
        self.app, self.provider, self.metadata_url = app, provider, metadata_url

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http" or scope["method"] != "POST":
            return await self.app(scope, receive, send)
        messages, body = [], b""
        while True:
            messages.append(await receive())
            body += messages[-1].get("body", b"")
            if not messages[-1].get("more_body"):
                break
        needed = NEEDED.get(called(body))
        granted = self.granted(dict(scope["headers"]).get(b"authorization", b"").decode())
        # Who has no token at all is the SDK's to refuse.
        if needed and granted and needed not in granted:
            return await self.refuse(send, needed)

        async def again():
            return messages.pop(0) if messages else await receive()

        await self.app(scope, again, send)

    def granted(self, header):
        token = self.provider.tokens.get(header.removeprefix("Bearer "))
        return token.scopes if token and token.expires_at >= time.time() else None

    async def refuse(self, send, needed):
        challenge = f'Bearer error="insufficient_scope", scope="{READ} {needed}", resource_metadata="{self.metadata_url}"'
        headers = [(b"www-authenticate", challenge.encode()), (b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 403, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


def called(body):
    """The tool that a request calls, if it is one."""
    try:
        message = json.loads(body)
        return message["params"]["name"] if message["method"] == "tools/call" else None
    except (ValueError, KeyError, TypeError):
        return None


def main(way, port, seconds):
    origin = f"http://127.0.0.1:{port}"
    provider = Memory(seconds)
    auth = AuthSettings(
        issuer_url=origin,
        resource_server_url=origin + PATHS[way],
        required_scopes=[READ],
        validate_token_resource=True,
        client_registration_options=ClientRegistrationOptions(
            enabled=True, valid_scopes=[READ, WRITE], default_scopes=[READ, WRITE]
        ),
        revocation_options=RevocationOptions(enabled=True),
    )
    server = Server("behind a login", auth_server_provider=provider, auth=auth)

    @server.tool(structured_output=False)
    def echo(message: str) -> str:
        return message

    @server.tool(structured_output=False)
    def touch_resource(uri: str) -> str:
        return f"touched {uri}"

    app = {"http": server.streamable_http_app, "sse": server.sse_app}[way]()
    metadata_url = f"{origin}/.well-known/oauth-protected-resource{PATHS[way]}"
    app = ScopedTools(app, provider, metadata_url)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", timeout_graceful_shutdown=1)


warnings.simplefilter("ignore", DeprecationWarning)
if len(sys.argv) not in (3, 4) or sys.argv[1] not in PATHS:
    sys.exit("usage: server.py http|sse PORT [SECONDS]")
main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) == 4 else 3600)
