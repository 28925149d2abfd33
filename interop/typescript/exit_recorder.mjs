// How the scenario reaches its servers, and what is to be seen of them when a client has left.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const PATIENCE_MS = 5_000;

/** `stdio`, or by the URL: `http` (streamable HTTP), `sse` (HTTP+SSE), `websocket`. */
export function transportOf([first]) {
    if (!/^(https?|wss?):/.test(first)) return 'stdio';
    const { protocol, pathname } = new URL(first);
    if (protocol.startsWith('ws')) return 'websocket';
    return pathname.endsWith('/sse') ? 'sse' : 'http';
}

/**
 * An exit recorder for one connection. `server` holds the words after `--`: a command, or the URLs of two servers.
 * The second of those has small pages, as a command gets by arguments.
 */
export function newExitRecorder(server, folder, { paged = false } = {}) {
    const transport = transportOf(server);
    if (transport === 'stdio') {
        return new ProcessExitRecorder(join(folder, paged ? 'paged' : 'main'), paged ? [...server, '--page-size', '5'] : server);
    }
    return new NetworkExitRecorder(transport, server[paged ? 1 : 0]);
}

/** The server processes started for one connection, as ../exit_recorder.sh saw them. */
class ProcessExitRecorder {
    constructor(log, command) {
        this.log = log;
        const script = fileURLToPath(new URL('../exit_recorder.sh', import.meta.url));
        this.place = { transport: 'stdio', command: 'sh', args: [script, log, ...command] };
        writeFileSync(log, '');
    }

    lines() {
        return readFileSync(this.log, 'utf8')
            .split('\n')
            .filter(Boolean)
            .map(line => line.split(' '));
    }

    started() {
        return this.lines().filter(([event]) => event === 'started').map(([, pid]) => Number(pid));
    }

    /** The end of the server of the session: the last one started, as an SDK may probe on an earlier one. */
    async clean() {
        const pid = this.started().at(-1);
        assert(pid, 'no server was started');
        const about = event => this.lines().find(line => line[0] === event && Number(line[1]) === pid);
        const deadline = Date.now() + PATIENCE_MS;
        while (!about('exited') && Date.now() < deadline) await sleep(20);
        assert(!about('signalled'), `server ${pid} did not end when its stdin closed: the SDK had to send a signal`);
        assert(about('exited'), `server ${pid} did not end`);
        assert.equal(about('exited')[2], '0', `exit code of server ${pid}`);
        for (const other of this.started()) assert(!alive(other), `server ${other} was left behind`);
        return 'exit code 0';
    }

    resumptions() {
        return [];
    }

    /** Leaves nothing running, whatever happened. */
    reap() {
        for (const pid of this.started()) if (alive(pid)) process.kill(pid, 'SIGKILL');
    }
}

/** What one connection sent over HTTP, and how its WebSocket closed. */
class NetworkExitRecorder {
    requests = [];
    closing = undefined;

    constructor(transport, url) {
        this.place = {
            transport,
            url: new URL(url),
            fetch: (target, init = {}) => {
                this.requests.push({ method: init.method ?? 'GET', url: String(target), headers: new Headers(init.headers) });
                return fetch(target, init);
            },
            closed: event => (this.closing = event)
        };
    }

    /** The requests that took up a stream where it had ended. */
    resumptions() {
        return this.requests.filter(({ method, headers }) => method === 'GET' && headers.has('last-event-id'));
    }

    /** The requests that named a session. */
    inSession() {
        return this.requests.filter(({ url, headers }) => headers.has('mcp-session-id') || url.includes('sessionId='));
    }

    /** The end of the session: its address is gone, or its socket was closed by both sides. */
    async clean() {
        const deadline = Date.now() + PATIENCE_MS;
        if (this.place.transport === 'websocket') {
            while (!this.closing && Date.now() < deadline) await sleep(20);
            assert(this.closing, 'the server did not close the socket');
            assert(this.closing.wasClean, `the socket was not closed by both sides: code ${this.closing.code}`);
            return 'the socket was closed by both sides';
        }
        const last = this.inSession().findLast(({ method }) => method === 'POST');
        assert(last, 'no session was used');
        const body = JSON.stringify({ jsonrpc: '2.0', method: 'scenario/after-the-end' });
        const status = async () => {
            const response = await fetch(last.url, { method: 'POST', headers: last.headers, body });
            await response.body?.cancel();
            return response.status;
        };
        let found = await status();
        while (found !== 404 && Date.now() < deadline) {
            await sleep(50);
            found = await status();
        }
        assert.equal(found, 404, 'status of a request to the session that was closed');
        const deleted = this.requests.some(({ method }) => method === 'DELETE');
        return `the session is gone${deleted ? ' by DELETE' : ''}: 404`;
    }

    reap() {}
}

function alive(pid) {
    try {
        process.kill(pid, 0);
        return true;
    } catch {
        return false;
    }
}
