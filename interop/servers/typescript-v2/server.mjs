// `node server.mjs stdio`, or `http PORT [resumable]` or `sse PORT`: serves until it is told to stop, or its input ends.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

import { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } from '@modelcontextprotocol/node';
import { createMcpHandler, isLegacyRequest } from '@modelcontextprotocol/server';
import { SSEServerTransport } from '@modelcontextprotocol/server-legacy/sse';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

import { keepTicking, makeServer, TICK } from './scenario.mjs';

const [way, port, resumable] = process.argv.slice(2);
const serve = { stdio, http: () => listen(streamableHttp()), sse: () => listen(httpSse()) }[way];
if (!serve) {
    console.error('usage: server.mjs stdio | http PORT | sse PORT');
    process.exit(2);
}
serve();

function stdio() {
    serveStdio(({ era }) => {
        const server = makeServer();
        if (era === 'modern') {
            keepTicking(server, () => server.server.sendResourceUpdated({ uri: TICK }));
        }
        return server;
    });
}

// Requests without a session go to one handler, those with a session to what the session began.
function streamableHttp() {
    const handler = createMcpHandler(makeServer, { legacy: 'reject' });
    setInterval(() => handler.notify.resourceUpdated(TICK), 100).unref();
    const modern = toNodeHandler(handler);
    const sessions = new Map();
    return async (request, response) => {
        const body = await bodyOf(request);
        if (!(await isLegacyRequest(await toWebRequest(request, body), body))) {
            return modern(request, response, body);
        }
        const id = request.headers['mcp-session-id'];
        if (id !== undefined && !sessions.has(id)) {
            return response.writeHead(404).end();
        }
        const transport = sessions.get(id) ?? (await begin());
        return transport.handleRequest(request, response, body);
    };
    async function begin() {
        const transport = new NodeStreamableHTTPServerTransport({
            sessionIdGenerator: randomUUID,
            eventStore: resumable ? new MemoryEvents() : undefined,
            onsessioninitialized: id => sessions.set(id, transport),
            onsessionclosed: id => sessions.delete(id),
        });
        await makeServer().connect(transport);
        return transport;
    }
}

// Events have consecutive numbers as ids, and are repeated for their own stream alone.
class MemoryEvents {
    events = [];
    async storeEvent(streamId, message) {
        return String(this.events.push({ streamId, message }));
    }
    async getStreamIdForEventId(id) {
        return this.events[Number(id) - 1]?.streamId;
    }
    async replayEventsAfter(id, { send }) {
        const streamId = await this.getStreamIdForEventId(id);
        for (const [index, event] of this.events.entries()) {
            if (index >= Number(id) && event.streamId === streamId) {
                await send(String(index + 1), event.message);
            }
        }
        return streamId;
    }
}

function httpSse() {
    const sessions = new Map();
    return async (request, response) => {
        const url = new URL(request.url, 'http://localhost');
        if (request.method === 'GET' && url.pathname === '/sse') {
            const transport = new SSEServerTransport('/messages', response);
            sessions.set(transport.sessionId, transport);
            response.on('close', () => sessions.delete(transport.sessionId));
            return makeServer().connect(transport);
        }
        const transport = sessions.get(url.searchParams.get('sessionId'));
        if (request.method === 'POST' && transport) {
            return transport.handlePostMessage(request, response);
        }
        return response.writeHead(request.method === 'POST' ? 404 : 405).end();
    };
}

async function bodyOf(request) {
    const chunks = [];
    for await (const chunk of request) {
        chunks.push(chunk);
    }
    return chunks.length > 0 ? JSON.parse(Buffer.concat(chunks).toString()) : undefined;
}

function listen(handle) {
    const http = createServer((request, response) => {
        handle(request, response).catch(error => {
            console.error(error);
            response.destroy();
        });
    });
    http.listen(Number(port), '127.0.0.1', () => console.error(`listening on ${port}`));
    process.on('SIGTERM', () => process.exit(0));
}
