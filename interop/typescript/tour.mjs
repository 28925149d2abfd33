// A client that lets itself be led through the tour (`refmcp … --tour`): it declares all that its SDK has, lists again when
// lists have changed, reads what was updated, and calls `tour` as long as there is a next step.

import { setTimeout as sleep } from 'node:timers/promises';
import { transportOf } from './exit_recorder.mjs';

const MAX_CALLS = 12;
const PAUSE_MS = 400; // for what the server sends on its own after a call
const CANCEL_AFTER_MS = 1_000;
const RESOURCE = 'file:///resources/notes.txt';
const NEWEST = '2026-07-28';
const LISTED = {
    'notifications/tools/list_changed': 'tools',
    'notifications/prompts/list_changed': 'prompts',
    'notifications/resources/list_changed': 'resources'
};
const form = schema => Object.fromEntries(Object.entries(schema.properties ?? {}).map(([name, field]) => [name, valueOf(field)]));

/** A value that fits a field of a form. */
function valueOf(field) {
    if (field.default !== undefined) return field.default;
    const choices = field.enum ?? (field.oneOf ?? []).map(choice => choice.const);
    if (choices.length > 0) return choices[0];
    switch (field.type) {
        case 'boolean':
            return true;
        case 'number':
        case 'integer':
            return field.minimum ?? 1;
        case 'array':
            return [];
        default:
            return { email: 'a@example.com', uri: 'https://example.com/', date: '2026-01-02', 'date-time': '2026-01-02T03:04:05Z' }[field.format] ?? 'Max';
    }
}

class Guest {
    constructor(adapter, revision, server) {
        const transport = transportOf(server);
        const place =
            transport === 'stdio'
                ? { transport, command: server[0], args: server.slice(1) }
                : { transport, url: new URL(server[0]), fetch, closed() {} };
        Object.assign(this, { adapter, revision, place });
    }

    async open() {
        this.session = await this.adapter.connect({
            revision: this.revision,
            place: this.place,
            received() {},
            notified: (method, params) => this.notified(method, params).catch(error => this.note(method, error)),
            failed: error => this.note('the SDK', error),
            sampling: () => ({ role: 'assistant', content: { type: 'text', text: 'Hello' }, model: 'tour', stopReason: 'endTurn' }),
            elicitation: params => ({ action: 'accept', ...(params.mode === 'url' ? {} : { content: form(params.requestedSchema) }) }),
            roots: () => [{ uri: 'file:///tour', name: 'tour' }]
        });
        const session = this.session;
        for (const kind of ['tools', 'resources', 'prompts']) await session.listAll(kind);
        if (this.revision === NEWEST) {
            const filter = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true, resourceSubscriptions: [RESOURCE] };
            await session.listen(filter);
        } else {
            await session.setLevel('debug');
            await session.subscribe(RESOURCE);
        }
    }

    async notified(method, { uri } = {}) {
        if (LISTED[method]) await this.session.listAll(LISTED[method]);
        if (method === 'notifications/resources/updated') await this.session.readResource(uri);
    }

    note(what, error) {
        console.log(`${what}: ${error?.message ?? error}`);
    }

    /** Calls the tool; what to do next, as the tool says. */
    async call(options = {}) {
        const meta = this.revision === NEWEST ? { 'io.modelcontextprotocol/logLevel': 'debug' } : undefined;
        try {
            const { content } = await this.session.callTool('tour', {}, { meta, onprogress() {}, timeout: 60_000, ...options });
            return content[0].text;
        } catch (error) {
            this.note('a call', error);
            this.isExpired = /session/i.test(error.message);
            return error.message;
        }
    }

    async go() {
        await this.open();
        let told = '';
        for (let calls = 0; calls < MAX_CALLS && !told.includes('The tour is over'); calls++) {
            const controller = new AbortController();
            if (told.includes('cancel that call')) setTimeout(() => controller.abort(), CANCEL_AFTER_MS).unref();
            told = await this.call({ signal: controller.signal });
            if (calls === 0 && this.revision !== NEWEST) await this.session.rootsChanged();
            await sleep(PAUSE_MS);
            if (this.isExpired) {
                this.isExpired = false;
                // The SDK leaves it to its application to open another session.
                await this.session.close().catch(error => this.note('closing', error));
                await this.open();
            }
        }
        await this.session.close().catch(error => this.note('closing', error));
    }
}

export async function runTour(adapter, [, revision, separator, ...server]) {
    if (separator !== '--' || server.length === 0) {
        console.error('usage: client.mjs tour REVISION -- SERVER [ARG...] | -- URL');
        process.exit(2);
    }
    process.on('unhandledRejection', error => console.log(`unhandled: ${error?.message ?? error}`));
    await new Guest(adapter, revision, server).go();
    process.exit(0);
}
