// The scenario on @modelcontextprotocol/sdk, the TypeScript SDK's version 1.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { WebSocketClientTransport } from '@modelcontextprotocol/sdk/client/websocket.js';
import { InMemoryTaskStore } from '@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import {
    CreateMessageRequestSchema,
    ElicitRequestSchema,
    ListRootsRequestSchema,
    LoggingMessageNotificationSchema,
    McpError,
    PromptListChangedNotificationSchema,
    ResourceListChangedNotificationSchema,
    ResourceUpdatedNotificationSchema,
    SUPPORTED_PROTOCOL_VERSIONS,
    ToolListChangedNotificationSchema
} from '@modelcontextprotocol/sdk/types.js';
import { WebSocket } from 'ws';
import { runScenario } from '../typescript/scenario.mjs';
import { runTour } from '../typescript/tour.mjs';

const INFO = { name: 'refmcp-interop-typescript-v1', version: '0.0.0' };
const NOTIFICATIONS = [
    LoggingMessageNotificationSchema,
    PromptListChangedNotificationSchema,
    ResourceListChangedNotificationSchema,
    ResourceUpdatedNotificationSchema,
    ToolListChangedNotificationSchema
];
const LISTERS = {
    tools: 'listTools',
    resources: 'listResources',
    resourceTemplates: 'listResourceTemplates',
    prompts: 'listPrompts'
};

function openTransport({ transport, command, args, url, fetch, closed }) {
    switch (transport) {
        case 'stdio':
            return new StdioClientTransport({ command, args, stderr: 'inherit' });
        case 'http':
            return new StreamableHTTPClientTransport(url, { fetch });
        case 'sse':
            return new SSEClientTransport(url, { fetch });
        case 'websocket':
            // The SDK takes the global one, which Node has since version 22.
            globalThis.WebSocket = class extends WebSocket {
                constructor(...args) {
                    super(...args);
                    this.addEventListener('close', closed);
                }
            };
            return new WebSocketClientTransport(url);
    }
}

/** The SDK proposes its newest revision and has no option for another; `request` is public, so it can be told here. */
class RevisionClient extends Client {
    revision;

    request(request, schema, options) {
        if (request.method === 'initialize') request.params.protocolVersion = this.revision;
        return super.request(request, schema, options);
    }
}

/** Runs work for a request as a task where the server asks for one. */
const byTask = work => async ({ params }, { taskStore, taskRequestedTtl }) => {
    if (!params.task) return work(params);
    const task = await taskStore.createTask({ ttl: taskRequestedTtl, pollInterval: 100 });
    setTimeout(async () => taskStore.storeTaskResult(task.taskId, 'completed', await work(params)), 400);
    return { task };
};

function newClient(revision, capabilities) {
    const taskStore = capabilities.tasks && new InMemoryTaskStore();
    const client = new RevisionClient(INFO, { capabilities, taskStore });
    client.revision = revision;
    return client;
}

async function connect({ revision, place, received, notified, failed, sampling, elicitation, roots }) {
    const capabilities = { sampling: {}, roots: { listChanged: true } };
    if (revision === '2025-06-18') capabilities.elicitation = {};
    if (revision >= '2025-11-25') Object.assign(capabilities, { elicitation: { form: {}, url: {} }, sampling: { tools: {} } });
    const runsTasks = revision === '2025-11-25';
    if (runsTasks) {
        const requests = { sampling: { createMessage: {} }, elicitation: { create: {} } };
        capabilities.tasks = { list: {}, cancel: {}, requests };
    }
    const client = newClient(revision, capabilities);
    client.onerror = failed;
    client.setRequestHandler(CreateMessageRequestSchema, byTask(async params => sampling(params)));
    client.setRequestHandler(ListRootsRequestSchema, async () => ({ roots: roots() }));
    if (capabilities.elicitation) client.setRequestHandler(ElicitRequestSchema, byTask(async params => elicitation(params)));
    for (const schema of NOTIFICATIONS) client.setNotificationHandler(schema, ({ method, params }) => notified(method, params));

    const transport = openTransport(place);
    transport.onmessage = received;
    let negotiated;
    const heed = transport.setProtocolVersion?.bind(transport);
    transport.setProtocolVersion = version => {
        negotiated = version;
        heed?.(version);
    };
    await client.connect(transport);

    const listPage = (kind, cursor) => client[LISTERS[kind]](cursor === undefined ? undefined : { cursor });
    return {
        revision: negotiated,
        runsTasks,
        serverInfo: client.getServerVersion(),
        capabilities: client.getServerCapabilities(),
        listPage,
        async listAll(kind) {
            const items = [];
            let cursor;
            do {
                const page = await listPage(kind, cursor);
                items.push(...page[kind]);
                cursor = page.nextCursor;
            } while (cursor !== undefined);
            return items;
        },
        callTool: (name, args, { meta, ...options }) => client.callTool({ name, arguments: args, ...(meta && { _meta: meta }) }, undefined, options),
        readResource: uri => client.readResource({ uri }),
        getPrompt: (name, args) => client.getPrompt({ name, arguments: args }),
        complete: params => client.complete(params),
        setLevel: level => client.setLoggingLevel(level),
        subscribe: uri => client.subscribeResource({ uri }),
        unsubscribe: uri => client.unsubscribeResource({ uri }),
        rootsChanged: () => client.sendRootsListChanged(),
        ping: () => client.ping(),
        discover: () => client.discover(),
        async close() {
            await transport.terminateSession?.(); // `close` alone leaves the session to the server
            await client.close();
        }
    };
}

/** What the SDK says to a server that answers `initialize` with this revision; nothing when it agrees. */
async function refusal(revision) {
    if (SUPPORTED_PROTOCOL_VERSIONS.includes(revision)) return undefined;
    const [near, far] = InMemoryTransport.createLinkedPair();
    far.onmessage = ({ id }) => {
        const result = { protocolVersion: revision, capabilities: {}, serverInfo: INFO };
        if (id !== undefined) far.send({ jsonrpc: '2.0', id, result });
    };
    await far.start();
    try {
        await newClient(revision, {}).connect(near);
    } catch (error) {
        return `${error.name}: ${error.message} (SUPPORTED_PROTOCOL_VERSIONS: ${SUPPORTED_PROTOCOL_VERSIONS.join(' ')})`;
    }
    return undefined;
}

const refusedLocally = error => error instanceof TypeError && /^client\.\w+ is not a function$/.test(error.message);
const rpcError = error => (error instanceof McpError ? { code: error.code, message: error.message, data: error.data } : undefined);

const run = process.argv[2] === 'tour' ? runTour : runScenario;
await run({ name: 'typescript-v1', connect, refusal, refusedLocally, rpcError }, process.argv.slice(2));
