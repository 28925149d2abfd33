// The logins on @modelcontextprotocol/sdk, the TypeScript SDK's version 1.

import { auth, UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { ClientCredentialsProvider } from '@modelcontextprotocol/sdk/client/auth-extensions.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { runLogins, Unsupported } from '../typescript/logins.mjs';

const INFO = { name: 'refmcp-interop-typescript-v1', version: '0.0.0' };
/** When a token ends, so does the stream opened with it: the next request refreshes, and only one may. */
const reconnectionOptions = { initialReconnectionDelay: 1000, maxReconnectionDelay: 1000, reconnectionDelayGrowFactor: 1, maxRetries: 0 };

function open({ transport, url, fetch, provider, token }) {
    const requestInit = token && { headers: { Authorization: `Bearer ${token}` } };
    const Transport = transport === 'sse' ? SSEClientTransport : StreamableHTTPClientTransport;
    return new Transport(url, { fetch, authProvider: provider, requestInit, reconnectionOptions });
}

async function dpop() {
    const names = Object.keys(await import('@modelcontextprotocol/sdk/client/auth.js'));
    if (names.some(name => /dpop/i.test(name))) throw new Error('the SDK knows DPoP by now');
    throw new Unsupported(`nothing of it among what client/auth.js exports: ${names.join(' ')}`);
}

/** It proposes the newest revision it knows, and has no option for another. */
async function connect(transport) {
    const client = new Client(INFO);
    await client.connect(transport);
    return client;
}

await runLogins(
    {
        open,
        connect,
        auth,
        dpop,
        callback: parameters => parameters.get('code'),
        isUnauthorized: error => error instanceof UnauthorizedError,
        unites: false, // it asks for what it is told to, and not for what it had before as well
        // Over HTTP+SSE it only heeds 401; and a client with a refresh token is given a new token with the old scopes.
        stepsUp: ({ transport, refreshing }) => transport === 'http' && !refreshing,
        clientCredentials: ({ clientId, clientSecret, issuer }) => new ClientCredentialsProvider({ clientId, clientSecret, expectedIssuer: issuer })
    },
    process.argv.slice(2)
);
