// The logins on @modelcontextprotocol/client, the TypeScript SDK's version 2.

import { auth, Client, ClientCredentialsProvider, DpopSession, SSEClientTransport, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';
import { runLogins } from '../typescript/logins.mjs';

const INFO = { name: 'refmcp-interop-typescript-v2', version: '0.0.0' };
/** When a token ends, so does the stream opened with it: the next request refreshes, and only one may. */
const reconnectionOptions = { initialReconnectionDelay: 1000, maxReconnectionDelay: 1000, reconnectionDelayGrowFactor: 1, maxRetries: 0 };

function open({ transport, url, fetch, provider, token }) {
    const authProvider = token ? { token: async () => token } : provider;
    const Transport = transport === 'sse' ? SSEClientTransport : StreamableHTTPClientTransport;
    return new Transport(url, { fetch, authProvider, reconnectionOptions });
}

async function connect(transport, revision) {
    const modern = revision >= '2026-07-28';
    const era = modern ? { versionNegotiation: { mode: { pin: revision } } } : { supportedProtocolVersions: [revision] };
    const client = new Client(INFO, era);
    await client.connect(transport);
    return client;
}

await runLogins(
    {
        open,
        connect,
        auth,
        dpop: () => DpopSession.create(),
        callback: parameters => parameters,
        isUnauthorized: error => error instanceof UnauthorizedError,
        unites: true,
        stepsUp: ({ transport }) => transport === 'http', // over HTTP+SSE it only heeds 401
        clientCredentials: ({ clientId, clientSecret, issuer }) => new ClientCredentialsProvider({ clientId, clientSecret, expectedIssuer: issuer })
    },
    process.argv.slice(2)
);
