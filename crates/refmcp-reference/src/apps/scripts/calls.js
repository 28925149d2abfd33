// Calls: tools and resources of the server by way of the host, which tools an app may call, and a tool of the app itself.
'use strict';

const called = app.check('APP-53', 'A tool for apps alone is called');
const parallel = app.check('APP-52', 'Responses of calls at the same time are told apart');
const failed = app.check('APP-53', 'A tool that fails gives a result with isError, not an error');
const hidden = app.check('APP-16', 'A tool for the model alone is refused');
const unknown = app.check('APP-16', 'A tool that the server does not have is refused');
const read = app.check('APP-53', 'A resource is read with its metadata');
const missing = app.check('APP-53', 'Reading what is not there gives an error');
const asked = app.check('APP-55', 'The host calls the tool of the app with its arguments', { unused: true });

const tool = {
    name: 'count_letters',
    description: 'Counts the letters of a text, in the app',
    inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] }
};
bridge.onRequest('tools/list', () => ({ tools: [tool] }));
bridge.onRequest('tools/call', ({ name, arguments: given }) => {
    asked.judge(name === tool.name && typeof given?.text === 'string', `${name} was called with ${JSON.stringify(given)}`);
    if (name !== tool.name || typeof given?.text !== 'string') {
        return { content: [{ type: 'text', text: `there is ${tool.name} with a text` }], isError: true };
    }
    return { content: [{ type: 'text', text: String([...given.text].length) }] };
});

const call = (name, given = {}) => bridge.request('tools/call', { name, arguments: given });
const told = error => error.message;

async function refused(rule, work) {
    try {
        const result = await work;
        rule.judge(result.isError === true, `it was answered with ${JSON.stringify(result).slice(0, 100)}`);
    } catch (error) {
        rule.judge(error instanceof bridge.HostError, told(error));
    }
}

async function tools() {
    const echo = async text => (await call('app_echo', { text })).structuredContent?.text === text;
    await echo('a').then(good => called.judge(good, 'the result is another one'), error => called.fail(told(error)));
    const all = Promise.all(['b', 'c', 'd'].map(echo));
    await all.then(good => parallel.judge(good.every(Boolean), 'results were mixed up'), error => parallel.fail(told(error)));
    const failing = call('fail', { message: 'on purpose' });
    await failing.then(result => failed.judge(result.isError === true, 'isError is missing'), error => failed.fail(told(error)));
    await refused(hidden, call('app_for_model'));
    await refused(unknown, call('refmcp_no_such_tool'));
}

async function resources() {
    const URI = 'ui://refmcp/calls';
    const page = bridge.request('resources/read', { uri: URI }).then(({ contents }) => contents?.[0]);
    await page.then(
        page => read.judge(page?.uri === URI && page.mimeType === 'text/html;profile=mcp-app' && page.text?.length > 0, 'it is another one'),
        error => read.fail(told(error))
    );
    const nothing = bridge.request('resources/read', { uri: 'ui://refmcp/no-such-page' });
    await nothing.then(() => missing.fail('there was a result'), error => missing.judge(error instanceof bridge.HostError, told(error)));
}

app.start({
    capabilities: { tools: {} },
    async onReady({ serverTools, serverResources }) {
        const none = 'the host does not offer it';
        if (serverTools) await tools();
        else [called, parallel, failed, hidden, unknown].forEach(rule => rule.skip(none));
        if (serverResources) await resources();
        else [read, missing].forEach(rule => rule.skip(none));
    }
});
