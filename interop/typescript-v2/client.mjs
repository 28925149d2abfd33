// The scenario on @modelcontextprotocol/client, the TypeScript SDK's version 2.

import * as sdk from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { runScenario } from '../typescript/scenario.mjs';
import { runTour } from '../typescript/tour.mjs';

const { Client, ProtocolError, SSEClientTransport, SdkError, SdkErrorCode, StreamableHTTPClientTransport } = sdk;

const INFO = { name: 'refmcp-interop-typescript-v2', version: '0.0.0' };
const NOTIFICATIONS = [
    'notifications/message',
    'notifications/prompts/list_changed',
    'notifications/resources/list_changed',
    'notifications/resources/updated',
    'notifications/tools/list_changed'
];
const LISTS = {
    tools: ['tools/list', 'listTools'],
    resources: ['resources/list', 'listResources'],
    resourceTemplates: ['resources/templates/list', 'listResourceTemplates'],
    prompts: ['prompts/list', 'listPrompts']
};

const SESSIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];

const wireErrors = [];

function openTransport({ transport, command, args, url, fetch }) {
    switch (transport) {
        case 'stdio':
            return new StdioClientTransport({ command, args, stderr: 'inherit' });
        case 'http':
            return new StreamableHTTPClientTransport(url, { fetch });
        case 'sse':
            return new SSEClientTransport(url, { fetch });
    }
}

/** What the SDK says to a transport that it does not have. */
async function refusal(revision, transport) {
    if (transport !== 'websocket') return undefined;
    try {
        await import('@modelcontextprotocol/client/websocket');
    } catch (error) {
        const transports = Object.keys(sdk).filter(name => name.endsWith('ClientTransport'));
        const absent = error.code === 'ERR_PACKAGE_PATH_NOT_EXPORTED' && !transports.some(name => name.startsWith('WebSocket'));
        if (absent) return `the package has no WebSocket transport, only stdio and ${transports.join(', ')}: ${error.message.replace(/ in .*/, '')}`;
    }
    return undefined;
}

async function connect({ revision, place, received, notified, failed, sampling, elicitation, roots }) {
    const modern = revision >= '2026-07-28';
    const capabilities = { sampling: {}, roots: modern ? {} : { listChanged: true } };
    if (revision === '2025-06-18') capabilities.elicitation = {};
    if (revision >= '2025-11-25') Object.assign(capabilities, { elicitation: { form: {}, url: {} }, sampling: { tools: {} } });
    // `initialize` proposes the first supported version; the newest revision is opened by `server/discover` instead.
    const era = modern ? { versionNegotiation: { mode: { pin: revision } } } : { supportedProtocolVersions: SESSIONS.filter(it => it <= revision) };
    const client = new Client(INFO, { capabilities, ...era });
    client.onerror = failed;
    client.setRequestHandler('sampling/createMessage', async ({ params }) => sampling(params));
    client.setRequestHandler('roots/list', async () => ({ roots: roots() }));
    if (capabilities.elicitation) client.setRequestHandler('elicitation/create', async ({ params }) => elicitation(params));
    for (const name of NOTIFICATIONS) client.setNotificationHandler(name, ({ method, params }) => notified(method, params));
    const transport = openTransport(place);
    transport.onmessage = message => {
        if (message.error) wireErrors.push(message.error);
        received(message);
    };
    await client.connect(transport);

    return {
        revision: client.getNegotiatedProtocolVersion(),
        serverInfo: client.getServerVersion(),
        capabilities: client.getServerCapabilities(),
        listPage: (kind, cursor) => client.request({ method: LISTS[kind][0], params: cursor === undefined ? {} : { cursor } }),
        listAll: async kind => (await client[LISTS[kind][1]]())[kind],
        callTool: (name, args, { meta, ...options }) => client.callTool({ name, arguments: args, ...(meta && { _meta: meta }) }, options),
        readResource: uri => client.readResource({ uri }),
        getPrompt: (name, args) => client.getPrompt({ name, arguments: args }),
        complete: params => client.complete(params),
        setLevel: level => client.setLoggingLevel(level),
        subscribe: uri => client.subscribeResource({ uri }),
        unsubscribe: uri => client.unsubscribeResource({ uri }),
        async listen(filter) {
            const subscription = await client.listen(filter);
            const { honoredFilter } = subscription;
            for (const name of Object.keys(filter)) if (!honoredFilter[name]) throw new Error(`${name} is not honoured`);
            return () => subscription.close();
        },
        rootsChanged: () => client.sendRootsListChanged(),
        ping: () => client.ping(),
        discover: () => client.discover(),
        async close() {
            await transport.terminateSession?.(); // `close` alone leaves the session to the server
            await client.close();
        }
    };
}

/** As it was on the wire: the SDK shows a missing resource as -32602 whether that or -32002 was sent. */
function rpcError(error) {
    if (!(error instanceof ProtocolError)) return undefined;
    return wireErrors.findLast(sent => sent.message === error.message) ?? { code: error.code, message: error.message, data: error.data };
}

const refusedLocally = error => error instanceof SdkError && error.code === SdkErrorCode.MethodNotSupportedByProtocolVersion;

const run = process.argv[2] === 'tour' ? runTour : runScenario;
await run({ name: 'typescript-v2', connect, refusal, refusedLocally, rpcError }, process.argv.slice(2));
