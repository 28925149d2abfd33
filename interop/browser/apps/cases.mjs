// What is done with each app: the call that opens it, what a person does there, what has come of it, and the faults that it names.

import assert from 'node:assert/strict';

const seen = page => page.evaluate(() => window.host.seen);
const INPUT = { text: 'a "quoted" text', number: 3, list: ['x', 'y'] };

/** Every app in a host that keeps the rules. `unused` are the rules that this call does not come to. */
export const APPS = [
    { tool: 'app_handshake', unused: { any: ['APP-33', 'APP-36', 'APP-37'] } },
    { tool: 'app_input', args: INPUT, unused: { any: ['APP-36', 'APP-37'] } },
    { tool: 'app_cancel', args: { ms: 200 }, unused: { any: ['APP-36', 'APP-37'] } },
    {
        tool: 'app_cancel',
        args: { ms: 60_000 },
        act: async page => {
            await page.waitForTimeout(500);
            await page.evaluate(() => window.host.cancel());
        },
        unused: { any: ['APP-35', 'APP-37'] }
    },
    {
        tool: 'app_calls',
        act: async page => {
            const { tools } = await page.evaluate(() => window.host.listAppTools());
            assert.equal(tools[0].name, 'count_letters');
            const result = await page.evaluate(() => window.host.callApp('count_letters', { text: 'abc' }));
            assert.equal(result.content[0].text, '3');
        },
        unused: { any: ['APP-33', 'APP-36', 'APP-37'] }
    },
    {
        tool: 'app_messages',
        args: { auto: true },
        unused: { any: ['APP-36', 'APP-37'] },
        look: async page => {
            const { messages, contexts, links, downloads, logs } = await seen(page);
            assert.equal(messages[0].content[0].text, 'A message of the app.');
            assert.deepEqual(contexts.at(-1).structuredContent, { app: 'messages', step: 2 });
            assert.deepEqual(links, ['https://app.example/']);
            assert.equal(downloads[0].resource.text, 'A note of the app.\n');
            assert.equal(logs[0].data, 'A log message of the app.');
        }
    },
    {
        tool: 'app_display',
        act: async (page, view) => {
            await page.evaluate(() => window.host.change({ theme: 'light' }));
            await view.waitForFunction(() => document.documentElement.dataset.theme === 'light');
        },
        unused: { any: ['APP-33', 'APP-36', 'APP-37', 'APP-46'] }
    },
    { tool: 'app_sandbox', unused: { any: ['APP-33', 'APP-36', 'APP-37'] } },
    {
        tool: 'app_teardown',
        args: { auto: true },
        act: async page => {
            await page.waitForFunction(() => window.host.seen.teardowns > 0);
            assert.deepEqual(await page.evaluate(() => window.host.teardown()), {});
        },
        unused: { any: ['APP-36'] }
    }
];

/** Hosts that break a rule, and the app that names it. */
export const FAULTS = [
    { fault: 'early', tool: 'app_handshake', rules: ['APP-29'] },
    { fault: 'no-context', tool: 'app_handshake', rules: ['APP-30'] },
    { fault: 'wrong-context', tool: 'app_handshake', rules: ['APP-47'] },
    { fault: 'number-ids', tool: 'app_handshake', rules: ['APP-52'] },
    { fault: 'any-method', tool: 'app_handshake', rules: ['APP-52'] },
    { fault: 'no-jsonrpc', tool: 'app_handshake', rules: ['APP-30', 'APP-52'] },
    { fault: 'no-input', tool: 'app_handshake', rules: ['APP-31', 'APP-32'] },
    { fault: 'input-twice', tool: 'app_input', args: INPUT, rules: ['APP-31'] },
    { fault: 'late-partial', tool: 'app_input', args: INPUT, rules: ['APP-33'] },
    { fault: 'result-first', tool: 'app_handshake', rules: ['APP-32'] },
    { fault: 'result-twice', tool: 'app_handshake', rules: ['APP-35'] },
    { fault: 'changed-result', tool: 'app_input', args: INPUT, rules: ['APP-35'] },
    {
        fault: 'late-result',
        tool: 'app_cancel',
        args: { ms: 60_000 },
        act: async page => {
            await page.waitForTimeout(500);
            await page.evaluate(() => window.host.cancel());
        },
        rules: ['APP-36']
    },
    { fault: 'model-tools', tool: 'app_calls', rules: ['APP-16'] },
    // The official bridge, where the client is given to it.
    { fault: 'forwarding', html: 'official.html', tool: 'app_calls', rules: ['APP-16'] },
    { fault: 'one-block', tool: 'app_messages', args: { auto: true }, rules: ['APP-49'] },
    { fault: 'any-link', tool: 'app_messages', args: { auto: true }, rules: ['APP-48'] },
    { fault: 'any-mode', tool: 'app_display', rules: ['APP-45'] },
    { fault: 'no-mode', tool: 'app_display', rules: ['APP-45', 'APP-46'] },
    { fault: 'fixed-size', tool: 'app_display', rules: ['APP-42'] },
    { fault: 'open-policy', tool: 'app_sandbox', rules: ['APP-19', 'APP-26'] },
    { fault: 'closed-policy', tool: 'app_sandbox', rules: ['APP-17'] },
    { fault: 'same-origin', tool: 'app_sandbox', rules: ['APP-19', 'APP-21', 'APP-22', 'APP-26'] },
    {
        fault: 'teardown-notification',
        tool: 'app_teardown',
        act: page => page.evaluate(() => window.host.teardown()),
        rules: ['APP-37']
    },
    {
        fault: 'after-teardown',
        tool: 'app_teardown',
        act: page => page.evaluate(() => window.host.teardown()),
        rules: ['APP-37']
    }
];
