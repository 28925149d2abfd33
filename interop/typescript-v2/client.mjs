// The tour on @modelcontextprotocol/client, the TypeScript SDK's version 2.

import { Client, ProtocolError, SdkError, SdkErrorCode } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { runTour } from '../typescript/tour.mjs';

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

const wireErrors = [];

function openTransport({ command, args }) {
    return new StdioClientTransport({ command, args, stderr: 'inherit' });
}

async function connect({ revision, command, args, received, notified, failed, sampling, elicitation, roots }) {
    const modern = revision >= '2026-07-28';
    const capabilities = { sampling: {}, roots: modern ? {} : { listChanged: true } };
    if (revision === '2025-06-18') capabilities.elicitation = {};
    if (revision >= '2025-11-25') capabilities.elicitation = { form: {}, url: {} };
    // `initialize` proposes the first supported version; the newest revision is opened by `server/discover` instead.
    const era = modern ? { versionNegotiation: { mode: { pin: revision } } } : { supportedProtocolVersions: [revision] };
    const client = new Client(INFO, { capabilities, ...era });
    client.onerror = failed;
    client.setRequestHandler('sampling/createMessage', async ({ params }) => sampling(params));
    client.setRequestHandler('roots/list', async () => ({ roots: roots() }));
    if (capabilities.elicitation) client.setRequestHandler('elicitation/create', async ({ params }) => elicitation(params));
    for (const name of NOTIFICATIONS) client.setNotificationHandler(name, ({ method, params }) => notified(method, params));
    const transport = openTransport({ command, args });
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
        close: () => client.close()
    };
}

/** As it was on the wire: the SDK shows a missing resource as -32602 whether that or -32002 was sent. */
function rpcError(error) {
    if (!(error instanceof ProtocolError)) return undefined;
    return wireErrors.findLast(sent => sent.message === error.message) ?? { code: error.code, message: error.message, data: error.data };
}

const refusedLocally = error => error instanceof SdkError && error.code === SdkErrorCode.MethodNotSupportedByProtocolVersion;

await runTour({ name: 'typescript-v2', connect, refusedLocally, rpcError }, process.argv.slice(2));
