// The server of the scenario, on the official TypeScript SDK 2: what it offers, whichever way it is reached.

import {
    acceptedContent,
    completable,
    inputRequired,
    inputResponse,
    McpServer,
    ResourceTemplate,
} from '@modelcontextprotocol/server';
import { z } from 'zod';

export const TICK = 'scenario://tick';
const TICK_EVERY_MS = 100;

const NAMES = ['Ada', 'Alan', 'Grace'];
const namesLike = prefix => NAMES.filter(name => name.startsWith(prefix));

const text = words => ({ content: [{ type: 'text', text: words }] });

const FORM = {
    type: 'object',
    properties: {
        name: { type: 'string', default: 'Ada' },
        age: { type: 'integer', default: 36 },
        sure: { type: 'boolean', default: true },
    },
    required: ['name'],
};

export function makeServer() {
    const server = new McpServer(
        { name: 'scenario', version: '1.0.0' },
        {
            capabilities: { logging: {}, resources: { subscribe: true } },
            instructions: 'For interoperability tests.',
        },
    );
    addTools(server);
    addResources(server);
    addPrompts(server);
    return server;
}

function addTools(server) {
    server.registerTool(
        'echo',
        { description: 'Says it back', inputSchema: z.object({ message: z.string() }) },
        ({ message }) => text(message),
    );
    server.registerTool(
        'sum',
        {
            description: 'Adds two numbers',
            inputSchema: z.object({ a: z.number(), b: z.number() }),
            outputSchema: z.object({ sum: z.number() }),
        },
        ({ a, b }) => ({ ...text(JSON.stringify({ sum: a + b })), structuredContent: { sum: a + b } }),
    );
    const pace = z.object({ steps: z.number().default(3), ms: z.number().default(0) });
    server.registerTool(
        'count',
        { description: 'Counts to three, or further', inputSchema: pace },
        async ({ steps, ms }, ctx) => {
            const progressToken = ctx.mcpReq._meta?.progressToken;
            for (let progress = 1; progress <= steps && progressToken !== undefined; progress += 1) {
                const params = { progressToken, progress, total: steps, message: `at ${progress}` };
                await ctx.mcpReq.notify({ method: 'notifications/progress', params });
                await new Promise(resolve => setTimeout(resolve, ms));
            }
            return text(`counted to ${steps}`);
        },
    );
    server.registerTool('ask', { description: 'Asks for a form' }, ctx => {
        const answers = ctx.mcpReq.inputResponses;
        const answer = inputResponse(answers, 'form');
        if (answer.kind === 'missing') {
            const form = inputRequired.elicit({ message: 'Who are you?', requestedSchema: FORM });
            return inputRequired({ inputRequests: { form }, requestState: 'asked' });
        }
        const { name, age, sure } = acceptedContent(answers, 'form') ?? {};
        return text(`${answer.action}: ${name}, ${age}, ${sure}`);
    });
    server.registerTool('think', { description: 'Asks for a model' }, ctx => {
        const answer = inputResponse(ctx.mcpReq.inputResponses, 'thought');
        if (answer.kind === 'missing') {
            const messages = [{ role: 'user', content: { type: 'text', text: 'six times seven?' } }];
            const thought = inputRequired.createMessage({ messages, maxTokens: 10 });
            return inputRequired({ inputRequests: { thought } });
        }
        return text(`the model says ${answer.result.content.text}`);
    });
    server.registerTool('roots', { description: 'Asks for the roots' }, ctx => {
        const answer = inputResponse(ctx.mcpReq.inputResponses, 'roots');
        if (answer.kind === 'missing') {
            return inputRequired({ inputRequests: { roots: inputRequired.listRoots() } });
        }
        return text(answer.roots.map(root => root.uri).join('\n'));
    });
    server.registerTool('fail', { description: 'Fails' }, () => ({ ...text('it failed'), isError: true }));
    server.registerTool('talk', { description: 'Logs' }, async ctx => {
        await ctx.mcpReq.log('debug', 'a quiet word', 'scenario');
        await ctx.mcpReq.log('warning', 'a loud word', 'scenario');
        return text('talked');
    });
}

function addResources(server) {
    const plain = (uri, words) => ({ contents: [{ uri, mimeType: 'text/plain', text: words }] });
    const described = { mimeType: 'text/plain' };
    server.registerResource('note', 'scenario://note', described, uri => plain(uri.href, 'a note'));
    server.registerResource('tick', TICK, described, uri => plain(uri.href, 'tick'));
    const template = new ResourceTemplate('scenario://greeting/{name}', {
        list: undefined,
        complete: { name: namesLike },
    });
    server.registerResource('greeting', template, described, (uri, { name }) =>
        plain(uri.href, `Hello, ${name}!`),
    );
    server.server.setRequestHandler('resources/subscribe', ({ params }) => {
        keepTicking(server, () => server.server.sendResourceUpdated({ uri: params.uri }));
        return {};
    });
    server.server.setRequestHandler('resources/unsubscribe', () => ({}));
}

// The clock holds nothing open: a server without connections may end.
export function keepTicking(server, tick) {
    const clock = setInterval(() => Promise.resolve(tick()).catch(() => clearInterval(clock)), TICK_EVERY_MS);
    clock.unref();
    const { onclose } = server.server;
    server.server.onclose = () => {
        clearInterval(clock);
        onclose?.();
    };
}

function addPrompts(server) {
    const argsSchema = z.object({ name: completable(z.string(), namesLike) });
    server.registerPrompt('greet', { description: 'Greets a person', argsSchema }, ({ name }) => ({
        messages: [{ role: 'user', content: { type: 'text', text: `Say hello to ${name}.` } }],
    }));
}
