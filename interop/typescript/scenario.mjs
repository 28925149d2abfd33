// The feature scenario for the clients on the TypeScript SDKs. An adapter (../typescript-v1/client.mjs,
// ../typescript-v2/client.mjs) puts one SDK behind the few calls used here; see ../README.md.

import assert from 'node:assert/strict';
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { newExitRecorder, transportOf } from './exit_recorder.mjs';

const FEATURE_TIMEOUT_MS = 10_000;
const NOTIFICATION_TIMEOUT_MS = 3_000;
const QUIET_MS = 250; // how long to listen before believing that nothing comes
const REVISIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'];
const NEWEST = REVISIONS.at(-1);
const TODO = 'file:///notes/todo.txt';
const LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'];
const LOG_LEVEL_KEY = 'io.modelcontextprotocol/logLevel';
const TOOLS = (
    'echo sum get_weather long_task slow big_result image audio resource_link embedded_resource annotated mixed ' +
    'fail protocol_error log_all ask_user ask_model list_roots add_tool remove_tool add_prompt remove_prompt ' +
    'add_resource remove_resource touch_resource about_me cancellations test_simple_text test_image_content'
).split(' ');
const RESOURCES = [
    TODO,
    'file:///data/custom.json',
    'file:///project/src/main.rs',
    'file:///resources/notes.txt',
    'file:///resources/plans.md',
    'file:///resources/diagram.png',
    'test://static-text',
    'test://static-binary'
];
const PROMPTS = ['code_review', 'bug_report', 'refactor', 'test_simple_prompt', 'test_prompt_with_arguments'];
const LISTS = {
    tools: tool => tool.name,
    resources: resource => resource.uri,
    resourceTemplates: template => template.uriTemplate,
    prompts: prompt => prompt.name
};

/** The SDK cannot do it, or the revision does not have it; the message is the evidence. */
class Unsupported extends Error {}

/** What the server sends on its own, kept until a feature asks for it. */
class Inbox {
    messages = [];
    #waiting = [];

    push(method, params = {}) {
        this.messages.push({ method, params });
        for (const look of [...this.#waiting]) look();
    }

    of(method) {
        return this.messages.filter(message => message.method === method).map(message => message.params);
    }

    clear() {
        this.messages = [];
    }

    async next(method, matches = () => true) {
        return new Promise((resolve, reject) => {
            const stop = () => {
                clearTimeout(timer);
                this.#waiting = this.#waiting.filter(other => other !== look);
            };
            const look = () => {
                const params = this.of(method).find(matches);
                if (params === undefined) return;
                stop();
                resolve(params);
            };
            const timer = setTimeout(() => {
                stop();
                reject(new Error(`no ${method} within ${NOTIFICATION_TIMEOUT_MS} ms`));
            }, NOTIFICATION_TIMEOUT_MS);
            this.#waiting.push(look);
            look();
        });
    }
}

const json = value => JSON.stringify(value) ?? String(value);
const brief = value => (json(value).length > 300 ? json(value).slice(0, 300) + '…' : json(value));

function describe(error) {
    const code = error instanceof assert.AssertionError || error?.code === undefined ? '' : ` (code ${error.code})`;
    return `${error?.name ?? 'Error'}: ${String(error?.message ?? error).replace(/\s+/g, ' ')}${code}`;
}

const textOf = result => result.content.filter(block => block.type === 'text').map(block => block.text).join('\n');
const blocksOf = (result, type) => result.content.filter(block => block.type === type);
const has = (haystack, needle) => assert((typeof haystack === 'string' ? haystack : json(haystack)).includes(needle), `"${needle}" is not in ${brief(haystack)}`);

function hasAll(found, wanted) {
    const missing = wanted.filter(item => !found.includes(item));
    assert.deepEqual(missing, [], `missing from the list of ${found.length}`);
}

function decode(data, start, what) {
    assert.match(data, /^[A-Za-z0-9+/]+={0,2}$/, `${what} is not base64`);
    const bytes = Buffer.from(data, 'base64');
    assert(bytes.subarray(0, start.length).equals(Buffer.from(start, 'latin1')), `${what} starts with ${bytes.subarray(0, 8).toString('hex')}`);
    return bytes.length;
}

const PNG = '\x89PNG\r\n';

/** A code that 2026-07-28 keeps for itself or retired; none of those it defines means that a tool wants an error. */
const reservedCode = code => (code >= -32099 && code <= -32020) || code === -32002;

/** An answer that fits one field of an elicitation form. */
function answerField(name, field) {
    const options = field.enum ?? field.oneOf?.map(option => option.const);
    if (options) return options.at(-1);
    switch (field.type) {
        case 'array': {
            const choices = field.items.enum ?? field.items.anyOf.map(option => option.const);
            return choices.slice(0, Math.max(field.minItems ?? 0, Math.min(2, field.maxItems ?? 2)));
        }
        case 'boolean':
            return true;
        case 'integer':
        case 'number':
            return Math.min(Math.max(42, field.minimum ?? 42), field.maximum ?? 42);
        case 'string': {
            const formats = { email: 'test@example.org', uri: 'https://example.org/test', date: '2026-01-02', 'date-time': '2026-01-02T03:04:05Z' };
            const text = formats[field.format] ?? `test-${name}`;
            return text.padEnd(field.minLength ?? 0, 'x').slice(0, field.maxLength);
        }
        default:
            throw new Error(`field ${name} has a type that no revision allows: ${brief(field)}`);
    }
}

/** All the session knows, and the calls that several features make. */
class Scenario {
    inbox = new Inbox();
    traffic = []; // every message from the server during this feature, as it was on the wire
    sdkErrors = [];
    answers = { sampling: undefined, elicitation: undefined, roots: [] };

    constructor(adapter, revision, server, folder) {
        Object.assign(this, { adapter, revision, server, folder });
        this.transport = transportOf(server);
        this.exitRecorder = newExitRecorder(server, folder);
    }

    since(revision) {
        return this.revision >= revision;
    }

    get modern() {
        return this.since(NEWEST);
    }

    async connect(exitRecorder, inbox) {
        return this.adapter.connect({
            revision: this.revision,
            place: exitRecorder.place,
            received: message => this.traffic.push(message),
            notified: (method, params) => inbox.push(method, params),
            failed: error => this.sdkErrors.push(describe(error)),
            sampling: params => this.answers.sampling(params),
            elicitation: params => this.answers.elicitation(params),
            roots: () => this.answers.roots
        });
    }

    async call(name, args = {}, options = {}) {
        const result = await this.session.callTool(name, args, options);
        assert(Array.isArray(result.content), `${name} gave no content: ${brief(result)}`);
        return result;
    }

    async ok(name, args, options) {
        const result = await this.call(name, args, options);
        assert(!result.isError, `${name} failed: ${brief(result)}`);
        return result;
    }

    /** The JSON-RPC error that the call must end with. */
    async rpcError(promise) {
        let value;
        try {
            value = await promise;
        } catch (error) {
            const found = this.adapter.rpcError(error);
            if (found) return found;
            throw error;
        }
        assert.fail(`expected a JSON-RPC error, got ${brief(value)}`);
    }

    /** The requests that the server sent during this feature. */
    serverRequests() {
        return this.traffic.filter(message => message.method !== undefined && message.id !== undefined);
    }

    /** For a method this revision does not have: the refusal, the SDK's or the server's, is the evidence. */
    async noMethod(method, attempt) {
        const why = `no ${method} in this revision`;
        let value;
        try {
            value = await attempt();
        } catch (error) {
            if (this.adapter.refusedLocally(error)) throw new Unsupported(`${why}: ${describe(error)}`);
            const found = this.adapter.rpcError(error);
            if (found?.code === -32601) throw new Unsupported(`${why}: ${json(found)}`);
            throw error;
        }
        assert.fail(`${why}, yet it was answered with ${brief(value)}`);
    }

    /** For a question this revision does not have: the server must not ask it, and the tool must say so. */
    async noQuestion(form, why) {
        let said;
        try {
            const result = await this.call('ask_user', { form });
            assert.equal(result.isError, true, `${why}, yet ask_user gave ${brief(result)}`);
            said = textOf(result);
        } catch (error) {
            const found = this.adapter.rpcError(error);
            if (![-32600, -32601, -32602].includes(found?.code)) throw error;
            said = json(found);
        }
        assert.deepEqual(this.serverRequests(), [], `${why}, yet the server asked`);
        assert(said, `${why}: an error that says nothing`);
        throw new Unsupported(`${why}: ${said}`);
    }

    /** Waits until the server says that the work with this tag was cancelled and has stopped. */
    async stopped(tag, session = this.session) {
        const begin = Date.now();
        for (;;) {
            const report = json(await session.callTool('cancellations', { tag }, {}));
            if (report.includes(tag) && /stopped/i.test(report) && !/stopped[^:,]*:\s*(null|false)/i.test(report)) return;
            assert(Date.now() - begin < 3_000, `not cancelled and stopped after 3 s: ${brief(report)}`);
            await sleep(100);
        }
    }

    /** Without a session there is only what runs to be ended: a call that the client leaves stops. */
    async leaveRunning() {
        assert.deepEqual(this.exitRecorder.inSession(), [], 'requests in a session, which this revision does not have');
        const tag = `left-${process.pid}-${Date.now()}`;
        const left = this.call('long_task', { steps: 100, step_ms: 100, tag }).then(
            () => 'was answered',
            () => undefined
        );
        await sleep(300);
        const begin = Date.now();
        await this.session.close();
        const exitRecorder = newExitRecorder(this.server, this.folder);
        const session = await this.connect(exitRecorder, new Inbox());
        await this.stopped(tag, session);
        const took = Date.now() - begin;
        await session.close();
        assert.equal(await left, undefined, 'the call that was left');
        return `no session in this revision; the call that was left stopped after ${took} ms`;
    }

    /** Runs `work` while the server reports the named changes, by whatever means the revision has. */
    async watching(filter, work) {
        this.inbox.clear();
        if (!this.modern) return work();
        const stop = await this.session.listen(filter);
        try {
            return await work();
        } finally {
            await stop();
        }
    }
}

const FEATURES = {
    async handshake(scenario) {
        scenario.session = await scenario.connect(scenario.exitRecorder, scenario.inbox);
        const { revision, serverInfo, capabilities } = scenario.session;
        assert.equal(revision, scenario.revision, 'negotiated revision');
        assert.equal(serverInfo?.name, 'RefMCP-TestServer');
        assert(serverInfo.version, 'no server version');
        assert.equal(capabilities.tools?.listChanged, true, 'tools.listChanged');
        assert.equal(capabilities.prompts?.listChanged, true, 'prompts.listChanged');
        assert.equal(capabilities.resources?.listChanged, true, 'resources.listChanged');
        assert.equal(capabilities.resources?.subscribe, true, 'resources.subscribe');
        assert(capabilities.logging, 'logging');
        if (scenario.since('2025-03-26')) assert(capabilities.completions, 'completions');
        return `${serverInfo.name} ${serverInfo.version}, capabilities ${Object.keys(capabilities).join(' ')}`;
    },

    async 'tools/list'(scenario) {
        const tools = await scenario.session.listAll('tools');
        hasAll(tools.map(tool => tool.name), TOOLS);
        for (const tool of tools) {
            assert(tool.description, `${tool.name} has no description`);
            assert.equal(tool.inputSchema.type, 'object', `${tool.name} inputSchema`);
        }
        const sum = tools.find(tool => tool.name === 'sum');
        assert.deepEqual(Object.keys(sum.inputSchema.properties).sort(), ['a', 'b']);
        assert.equal(Boolean(sum.outputSchema), scenario.since('2025-06-18'), 'outputSchema of sum');
        if (scenario.since('2025-03-26')) assert(sum.annotations, 'annotations of sum');
        if (scenario.since('2025-06-18')) assert(sum.title, 'title of sum');
        return `${tools.length} tools`;
    },

    async pagination(scenario) {
        const exitRecorder = newExitRecorder(scenario.server, scenario.folder, { paged: true });
        const session = await scenario.connect(exitRecorder, new Inbox());
        const counts = [];
        try {
            for (const [kind, key] of Object.entries(LISTS)) {
                const whole = (await scenario.session.listAll(kind)).map(key);
                const seen = [];
                let pages = 0;
                for (let cursor; pages === 0 || cursor !== undefined; pages++) {
                    assert(pages <= whole.length, `${kind}: the cursors never end`);
                    const page = await session.listPage(kind, cursor);
                    assert(page[kind].length <= 5, `${kind}: a page of ${page[kind].length}`);
                    seen.push(...page[kind].map(key));
                    cursor = page.nextCursor;
                }
                assert.equal(new Set(seen).size, seen.length, `${kind}: duplicates in ${brief(seen)}`);
                assert.deepEqual([...seen].sort(), [...whole].sort(), `${kind}: paged and unpaged differ`);
                counts.push(`${seen.length} ${kind} in ${pages} pages`);
            }
            const aggregated = await session.listAll('tools');
            assert.deepEqual(aggregated.map(LISTS.tools).sort(), (await scenario.session.listAll('tools')).map(LISTS.tools).sort());
        } finally {
            await session.close();
            exitRecorder.reap();
        }
        return counts.join(', ');
    },

    async text(scenario) {
        const message = 'scenario: grüße, 世界, "quotes"\nand a second line \u{1F600}';
        const result = await scenario.ok('echo', { message });
        assert.equal(result.content[0].type, 'text');
        has(textOf(result), message);
    },

    async image(scenario) {
        const [image] = blocksOf(await scenario.ok('image'), 'image');
        assert(image, 'no image block');
        assert.equal(image.mimeType, 'image/png');
        return `${decode(image.data, PNG, 'image')} bytes`;
    },

    async audio(scenario) {
        const result = await scenario.ok('audio');
        const [audio] = blocksOf(result, 'audio');
        if (!scenario.since('2025-03-26')) {
            assert(!audio, 'an audio block, which this revision does not have');
            assert(textOf(result), 'nothing in place of the audio');
            return `no audio in this revision, instead: ${brief(textOf(result))}`;
        }
        assert(audio, 'no audio block');
        assert.equal(audio.mimeType, 'audio/wav');
        return `${decode(audio.data, 'RIFF', 'audio')} bytes`;
    },

    async resource_link(scenario) {
        const result = await scenario.ok('resource_link');
        const [link] = blocksOf(result, 'resource_link');
        if (!scenario.since('2025-06-18')) {
            assert(!link, 'a resource_link block, which this revision does not have');
            has(result, '://');
            return `no resource_link in this revision, instead: ${brief(result.content)}`;
        }
        assert(link?.name, 'no resource_link block with a name');
        assert.match(link.uri, /^[a-z]+:\/\//);
        return link.uri;
    },

    async embedded_resource(scenario) {
        const [block] = blocksOf(await scenario.ok('embedded_resource'), 'resource');
        assert(block, 'no resource block');
        assert.match(block.resource.uri, /^[a-z]+:\/\//);
        assert(block.resource.text || block.resource.blob, 'an empty resource');
        return block.resource.uri;
    },

    async annotated(scenario) {
        const result = await scenario.ok('annotated');
        const annotations = result.content.map(block => block.annotations).filter(Boolean);
        assert(annotations.length > 0, `no annotations in ${brief(result.content)}`);
        for (const { audience = [], priority } of annotations) {
            assert(audience.every(role => ['user', 'assistant'].includes(role)), `audience ${brief(audience)}`);
            assert(priority === undefined || (priority >= 0 && priority <= 1), `priority ${priority}`);
        }
        assert(annotations.some(one => one.audience?.length || one.priority !== undefined), `nothing said in ${brief(annotations)}`);
        return brief(annotations);
    },

    async mixed(scenario) {
        const result = await scenario.ok('mixed');
        const kinds = result.content.map(block => block.type);
        assert(new Set(kinds).size >= 3, `kinds ${kinds}`);
        for (const kind of ['text', 'image']) assert(kinds.includes(kind), `no ${kind} in ${kinds}`);
        return kinds.join(' ');
    },

    async structured_output(scenario) {
        const sum = await scenario.ok('sum', { a: 2, b: 3 });
        has(textOf(sum), '5');
        const weather = await scenario.ok('get_weather', { location: 'Berlin' });
        assert(textOf(weather).includes('\n'), 'the weather is not several lines');
        assert.deepEqual(await scenario.ok('get_weather', { location: 'Berlin' }), weather, 'the same place, other weather');
        if (!scenario.since('2025-06-18')) {
            assert.equal(sum.structuredContent, undefined, 'structuredContent, which this revision does not have');
            return 'no structured output in this revision, the text has it';
        }
        assert.deepEqual(sum.structuredContent, { total: 5 });
        const { temperature, conditions, humidity } = weather.structuredContent;
        assert.deepEqual([typeof temperature, typeof conditions, typeof humidity], ['number', 'string', 'number']);
        return brief(weather.structuredContent);
    },

    async tool_error(scenario) {
        const result = await scenario.call('fail', { message: 'scenario failure' });
        assert.equal(result.isError, true);
        has(textOf(result), 'scenario failure');
    },

    async protocol_error(scenario) {
        const error = await scenario.rpcError(scenario.call('protocol_error', { message: 'scenario protocol error' }));
        assert(Number.isInteger(error.code), `code ${error.code}`);
        has(error, 'scenario protocol error');
        if (scenario.modern) assert(!reservedCode(error.code), `code ${error.code} is reserved for the specification`);
        return brief(error);
    },

    async invalid_arguments(scenario) {
        const call = scenario.call('sum', { a: 'two', b: 3 });
        if (!scenario.since('2025-11-25')) {
            const error = await scenario.rpcError(call);
            assert.equal(error.code, -32602);
            assert.match(json(error), /[/.$["'`]a\b/, 'no path to the argument');
            return brief(error);
        }
        const result = await call;
        assert.equal(result.isError, true);
        has(textOf(result), 'number');
        return brief(textOf(result));
    },

    async 'resources/list'(scenario) {
        const resources = await scenario.session.listAll('resources');
        hasAll(resources.map(LISTS.resources), RESOURCES);
        for (const resource of resources) assert(resource.name, `${resource.uri} has no name`);
        const todo = resources.find(resource => resource.uri === TODO);
        assert.match(todo.mimeType, /^text\/plain/);
        assert(todo.annotations, 'todo.txt has no annotations');
        return `${resources.length} resources`;
    },

    async 'resources/read'(scenario) {
        const [todo] = (await scenario.session.readResource(TODO)).contents;
        assert.equal(todo.uri, TODO);
        assert(todo.text?.length > 0, 'todo.txt has no text');
        assert.equal(todo.blob, undefined);
        const [diagram] = (await scenario.session.readResource('file:///resources/diagram.png')).contents;
        assert.equal(diagram.mimeType, 'image/png');
        assert.equal(diagram.text, undefined);
        return `${todo.text.length} characters, ${decode(diagram.blob, PNG, 'diagram.png')} bytes`;
    },

    async resource_templates(scenario) {
        const templates = await scenario.session.listAll('resourceTemplates');
        hasAll(templates.map(LISTS.resourceTemplates), ['test://template/{id}/data']);
        const [data] = (await scenario.session.readResource('test://template/123/data')).contents;
        assert.equal(data.uri, 'test://template/123/data');
        assert.equal(data.mimeType, 'application/json');
        assert.equal(String(JSON.parse(data.text).id), '123');
        return `${templates.length} templates`;
    },

    async resource_not_found(scenario) {
        const uri = 'file:///notes/no-such-file.txt';
        const error = await scenario.rpcError(scenario.session.readResource(uri));
        assert.equal(error.code, scenario.modern ? -32602 : -32002);
        assert.equal(error.data?.uri, uri, `data ${brief(error.data)}`);
        return brief(error);
    },

    async subscribe(scenario) {
        const read = async () => (await scenario.session.readResource(TODO)).contents[0].text;
        const updated = params => params.uri === TODO;
        const before = await read();
        if (!scenario.modern) await scenario.session.subscribe(TODO);
        await scenario.watching({ resourceSubscriptions: [TODO] }, async () => {
            await scenario.ok('touch_resource', { uri: TODO });
            await scenario.inbox.next('notifications/resources/updated', updated);
            assert.notEqual(await read(), before, 'the content did not change');
        });
        if (!scenario.modern) await scenario.session.unsubscribe(TODO);
        await sleep(QUIET_MS); // an SDK may send the end of a subscription in its own time
        scenario.inbox.clear();
        await scenario.ok('touch_resource', { uri: TODO });
        await sleep(QUIET_MS);
        assert.deepEqual(scenario.inbox.of('notifications/resources/updated'), [], 'updated without a subscription');
    },

    async list_changed(scenario) {
        const changes = [
            ['tools', 'tool', { name: 'scenario_tool' }],
            ['prompts', 'prompt', { name: 'scenario_prompt' }],
            ['resources', 'resource', { uri: 'file:///scenario/added.txt' }]
        ];
        const filter = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true };
        await scenario.watching(filter, async () => {
            for (const [kind, one, args] of changes) {
                const key = args.name ?? args.uri;
                const listed = async () => (await scenario.session.listAll(kind)).map(LISTS[kind]).includes(key);
                assert(!(await listed()), `${key} was there before`);
                for (const [change, present] of [['add', true], ['remove', false]]) {
                    scenario.inbox.clear();
                    await scenario.ok(`${change}_${one}`, args);
                    await scenario.inbox.next(`notifications/${kind}/list_changed`);
                    assert.equal(await listed(), present, `${key} listed after ${change}_${one}`);
                }
            }
        });
    },

    async 'prompts/list'(scenario) {
        const prompts = await scenario.session.listAll('prompts');
        hasAll(prompts.map(LISTS.prompts), PROMPTS);
        for (const prompt of prompts) assert(prompt.description, `${prompt.name} has no description`);
        const args = prompts.find(prompt => prompt.name === 'code_review').arguments;
        assert.equal(args.find(arg => arg.name === 'code')?.required, true, 'code is required');
        assert(!args.find(arg => arg.name === 'language').required, 'language is optional');
        return `${prompts.length} prompts`;
    },

    async 'prompts/get'(scenario) {
        const code = 'fn scenario() -> u8 { 42 }';
        const { messages } = await scenario.session.getPrompt('code_review', { code, language: 'rust' });
        assert(messages.length > 0, 'no messages');
        for (const { role } of messages) assert(['user', 'assistant'].includes(role), `role ${role}`);
        has(messages, code);
        has(messages, 'rust');
        return `${messages.length} messages`;
    },

    async completion(scenario) {
        const ref = { type: 'ref/prompt', name: 'code_review' };
        const argument = { name: 'language', value: 'py' };
        const plain = (await scenario.session.complete({ ref, argument })).completion;
        assert(plain.values.length <= 100, `${plain.values.length} values`);
        assert(plain.values.some(value => /python/i.test(value)), `values ${brief(plain.values)}`);
        if (!scenario.since('2025-06-18')) return brief(plain.values);
        const context = { arguments: { code: 'print(1)' } };
        const informed = (await scenario.session.complete({ ref, argument, context })).completion;
        assert(informed.values.some(value => /python/i.test(value)), `with context: ${brief(informed.values)}`);
        return `${brief(plain.values)}, also with context`;
    },

    async logging(scenario) {
        const logged = async (level, options) => {
            scenario.inbox.clear();
            if (level && !scenario.modern) await scenario.session.setLevel(level);
            await scenario.ok('log_all', { text: 'scenario log' }, options);
            await sleep(QUIET_MS);
            const messages = scenario.inbox.of('notifications/message').filter(({ data }) => json(data).includes('scenario log'));
            return messages.map(message => message.level).sort();
        };
        for (const level of ['warning', 'debug']) {
            const wanted = LEVELS.slice(LEVELS.indexOf(level)).sort();
            const options = scenario.modern ? { meta: { [LOG_LEVEL_KEY]: level } } : {};
            assert.deepEqual(await logged(level, options), wanted, `levels logged at ${level}`);
        }
        if (!scenario.modern) return;
        scenario.inbox.clear();
        await scenario.ok('log_all', { text: 'scenario log' });
        await sleep(QUIET_MS);
        assert.deepEqual(scenario.inbox.of('notifications/message'), [], 'logged for a request without logLevel');
    },

    async progress(scenario) {
        const seen = [];
        await scenario.ok('long_task', { steps: 3, step_ms: 20 }, { onprogress: progress => seen.push(progress) });
        await sleep(QUIET_MS);
        // On the wire, as both SDKs hand over a notification later than a result read with it, and so lose the
        // progress that is read together with the result. They report each loss.
        const sent = scenario.traffic.filter(({ method }) => method === 'notifications/progress').map(({ params }) => params);
        assert.equal(scenario.traffic.at(-1).method, undefined, 'progress after the result');
        const lost = scenario.sdkErrors.filter(error => error.includes('progress notification for an unknown token')).length;
        assert.equal(seen.length + lost, sent.length, `${sent.length} sent, ${seen.length} handed over, ${lost} lost`);
        const steps = sent.map(({ progress }) => progress);
        assert.equal(steps.length, 3, `progress ${steps}`);
        assert(steps.every((step, index) => index === 0 || step > steps[index - 1]), `progress does not grow: ${steps}`);
        const { total } = sent.at(-1);
        assert(total === undefined || total === steps[2], `ended at ${steps[2]} of ${total}`);
        return `${steps}${total === undefined ? '' : ` of ${total}`}${lost ? `, ${lost} lost by the SDK` : ''}`;
    },

    async cancellation(scenario) {
        const tag = `scenario-${process.pid}-${Date.now()}`;
        const abort = new AbortController();
        const call = scenario.call('long_task', { steps: 100, step_ms: 100, tag }, { signal: abort.signal });
        const ended = call.then(
            result => ({ result }),
            error => ({ error })
        );
        await sleep(300);
        const cancelledAt = Date.now();
        abort.abort('scenario cancels');
        const { result, error } = await ended;
        assert(error, `the call was not cancelled: ${brief(result)}`);
        assert(Date.now() - cancelledAt < 1_000, `the call ended only after ${Date.now() - cancelledAt} ms`);
        await scenario.stopped(tag);
        return describe(error);
    },

    async sampling(scenario) {
        let asked;
        scenario.answers.sampling = params => {
            asked = params;
            return { role: 'assistant', model: 'scenario-model', stopReason: 'endTurn', content: { type: 'text', text: 'the scenario answers 4711' } };
        };
        const result = await scenario.ok('ask_model', { prompt: 'what does the scenario answer?' });
        assert(asked, 'the client was not asked');
        has(asked.messages, 'what does the scenario answer?');
        assert(asked.maxTokens > 0, `maxTokens ${asked.maxTokens}`);
        has(result, 'the scenario answers 4711');
    },

    async elicitation_form(scenario) {
        let asked, content;
        scenario.answers.elicitation = params => {
            asked = params;
            const fields = Object.entries(params.requestedSchema.properties);
            content = Object.fromEntries(fields.map(([name, field]) => [name, answerField(name, field)]));
            return { action: 'accept', content };
        };
        if (!scenario.since('2025-06-18')) await scenario.noQuestion('all', 'no elicitation in this revision');
        const result = await scenario.ok('ask_user', { form: 'all' });
        assert(asked?.message, 'the client was not asked');
        assert([undefined, 'form'].includes(asked.mode), `mode ${asked.mode}`);
        const fields = Object.values(asked.requestedSchema.properties);
        const kinds = fields.map(field => (field.enum || field.oneOf ? 'enum' : field.type));
        const wanted = ['string', 'boolean', 'enum', ...(scenario.since('2025-11-25') ? ['array'] : [])];
        hasAll(kinds, wanted);
        assert(kinds.includes('number') || kinds.includes('integer'), `kinds ${kinds}`);
        if (!scenario.since('2025-11-25')) {
            assert(!kinds.includes('array') && !fields.some(field => field.oneOf), `fields of a later revision: ${brief(fields)}`);
        }
        for (const value of Object.values(content).flat()) has(json(result).replaceAll('\\"', '"'), String(value));
        return `${fields.length} fields: ${[...new Set(kinds)].join(' ')}`;
    },

    async elicitation_decline(scenario) {
        let asked = false;
        scenario.answers.elicitation = () => {
            asked = true;
            return { action: 'decline' };
        };
        if (!scenario.since('2025-06-18')) await scenario.noQuestion('confirm', 'no elicitation in this revision');
        const result = await scenario.call('ask_user', { form: 'confirm' });
        assert(asked, 'the client was not asked');
        assert.match(json(result), /decline/i);
    },

    async elicitation_url(scenario) {
        let asked;
        scenario.answers.elicitation = params => {
            asked = params;
            return { action: 'accept' };
        };
        if (!scenario.since('2025-11-25')) await scenario.noQuestion('url', 'no URL elicitation in this revision');
        const result = await scenario.ok('ask_user', { form: 'url' });
        assert.equal(asked?.mode, 'url', `asked ${brief(asked)}`);
        assert.match(asked.url, /^https?:\/\//);
        if (!scenario.modern) assert(asked.elicitationId, 'no elicitationId');
        assert.match(json(result), /accept/i);
        return asked.url;
    },

    async roots(scenario) {
        scenario.answers.roots = [{ uri: 'file:///scenario/one', name: 'one' }, { uri: 'file:///scenario/two', name: 'two' }];
        const first = json(await scenario.ok('list_roots'));
        has(first, 'file:///scenario/one');
        has(first, 'file:///scenario/two');
        scenario.answers.roots = [{ uri: 'file:///scenario/three', name: 'three' }];
        if (!scenario.modern) await scenario.session.rootsChanged();
        const second = json(await scenario.ok('list_roots'));
        has(second, 'file:///scenario/three');
        assert(!second.includes('file:///scenario/one'), `old roots in ${brief(second)}`);
        return scenario.modern ? 'no roots/list_changed in this revision' : 'followed roots/list_changed';
    },

    async client_tasks(scenario) {
        if (!scenario.session.runsTasks) {
            const why = scenario.revision === '2025-11-25' ? 'the SDK runs no tasks for a server' : 'no tasks of clients in this revision';
            const result = await scenario.call('ask_model', { prompt: 'nothing', task: true });
            assert.equal(result.isError, true, `${why}, yet ask_model gave ${brief(result)}`);
            assert.deepEqual(scenario.serverRequests(), [], `${why}, yet the server asked`);
            throw new Unsupported(`${why}: ${textOf(result)}`);
        }
        scenario.answers.sampling = () => ({ role: 'assistant', model: 'scenario-model', content: { type: 'text', text: 'the task answers 4712' } });
        scenario.answers.elicitation = () => ({ action: 'accept', content: { confirm: true } });
        for (const [name, args, said] of [
            ['ask_model', { prompt: 'by a task' }, 'the task answers 4712'],
            ['ask_user', { form: 'confirm' }, 'accepted']
        ]) {
            scenario.traffic.length = 0;
            has(await scenario.ok(name, { ...args, task: true }), said);
            const requests = scenario.serverRequests();
            assert(requests[0]?.params.task, `${name} asked for no task: ${brief(requests)}`);
            hasAll(requests.map(request => request.method), ['tasks/get', 'tasks/result']);
        }
    },

    async concurrent_calls(scenario) {
        const begin = Date.now();
        const delays = Array.from({ length: 50 }, (_, index) => 200 + index);
        const results = await Promise.all(delays.map(ms => scenario.ok('slow', { ms })));
        const took = Date.now() - begin;
        results.forEach((result, index) => has(result, String(delays[index])));
        assert(took >= 200 && took < 3_000, `50 calls took ${took} ms`);
        return `${took} ms`;
    },

    async ping(scenario) {
        if (scenario.modern) await scenario.noMethod('ping', () => scenario.session.ping());
        assert.deepEqual(await scenario.session.ping(), {});
    },

    async discover(scenario) {
        if (!scenario.modern) await scenario.noMethod('server/discover', () => scenario.session.discover());
        const found = await scenario.session.discover();
        hasAll(found.supportedVersions, [NEWEST]);
        assert(found.capabilities.tools && found.capabilities.resources && found.capabilities.prompts, brief(found.capabilities));
        return `supports ${found.supportedVersions.join(' ')}`;
    },

    async resume(scenario) {
        const before = scenario.exitRecorder.resumptions().length;
        await scenario.ok('close_stream');
        const times = scenario.exitRecorder.resumptions().length - before;
        if (scenario.transport === 'http' && scenario.revision === '2025-11-25') {
            assert(times > 0, 'the client did not come back with Last-Event-ID: the stream was not closed');
            return 'came back with Last-Event-ID for the result';
        }
        const why = `no stream is closed before its result ${scenario.transport === 'http' ? 'in this revision' : `over ${scenario.transport}`}`;
        assert.equal(times, 0, `${why}, yet the client came back with Last-Event-ID`);
        throw new Unsupported(`${why}: close_stream answered, and nothing had to be resumed`);
    },

    async clean_exit(scenario) {
        if (scenario.transport === 'http' && scenario.modern) return scenario.leaveRunning();
        const begin = Date.now();
        await scenario.session.close();
        return `${await scenario.exitRecorder.clean()} after ${Date.now() - begin} ms`;
    }
};

async function within(milliseconds, promise) {
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`no end within ${milliseconds} ms`)), milliseconds);
    });
    try {
        return await Promise.race([promise, late]);
    } finally {
        clearTimeout(timer);
    }
}

const notices = scenario => [...new Set(scenario.sdkErrors)].slice(0, 3).map(error => `(the SDK noticed: ${error})`);

/** One feature: its status and what there is to say about it. */
async function runFeature(scenario, name) {
    if (name !== 'handshake' && !scenario.session) return { status: 'failed', detail: 'no session: the handshake failed' };
    scenario.sdkErrors.length = 0;
    scenario.traffic.length = 0;
    try {
        const detail = (await within(FEATURE_TIMEOUT_MS, FEATURES[name](scenario))) ?? '';
        if (scenario.modern) assert.deepEqual(scenario.serverRequests(), [], 'requests of the server, which this revision does not have');
        return { status: 'ok', detail: [detail, ...notices(scenario)].filter(Boolean).join(' ') };
    } catch (error) {
        if (error instanceof Unsupported) return { status: 'unsupported', detail: error.message };
        return { status: 'failed', detail: [describe(error), ...notices(scenario)].join(' ') };
    }
}

export async function runScenario(adapter, argv) {
    const split = argv.indexOf('--');
    const server = argv.slice(split + 1);
    if (split !== 2 || server.length === 0 || !REVISIONS.includes(argv[1])) {
        console.error(`usage: client.mjs FEATURES.jsonl ${REVISIONS.join('|')} -- SERVER [ARG...] | -- URL PAGED_URL`);
        process.exit(2);
    }
    const [output, revision] = argv;
    const folder = mkdtempSync(join(tmpdir(), 'scenario-'));
    const scenario = new Scenario(adapter, revision, server, folder);
    process.on('unhandledRejection', error => scenario.sdkErrors.push(describe(error))); // Node would end the scenario here
    writeFileSync(output, '');
    let failures = 0;
    const report = (feature, { status, detail }) => {
        if (status === 'failed') failures++;
        const spoken = scenario.session?.revision ?? revision;
        appendFileSync(output, json({ client: adapter.name, transport: scenario.transport, revision: spoken, feature, status, detail }) + '\n');
        console.log(`${adapter.name} ${scenario.transport} ${spoken} ${status.padEnd(11)} ${feature}  ${detail}`);
    };
    const refusal = await adapter.refusal?.(revision, scenario.transport);
    for (const feature of Object.keys(FEATURES)) {
        report(feature, refusal ? { status: 'unsupported', detail: refusal } : await runFeature(scenario, feature));
    }
    scenario.exitRecorder.reap();
    rmSync(folder, { recursive: true, force: true });
    process.exit(failures === 0 ? 0 : 1);
}
