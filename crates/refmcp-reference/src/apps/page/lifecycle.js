// The life of an app: handshake, input and result of the tool, context of the host, size, teardown. Judges what every host does.
'use strict';

const app = (() => {
    const VERSION = '2026-01-26';
    const MODES = ['inline', 'fullscreen', 'pip'];
    const PATIENCE = 5000;
    const { check } = verdict;
    const { isObject } = bridge;
    const seen = { initialized: false, input: undefined, ended: '', torn: false };
    const context = {};
    const rules = {
        answer: check('APP-30', 'The host answers ui/initialize with version, host, capabilities and context'),
        quiet: check('APP-29', 'The host sends nothing before the app is initialized'),
        input: check('APP-31', 'The host sends the arguments of the tool once, also where there are none'),
        order: check('APP-32', 'The arguments come before the result'),
        partial: check('APP-33', 'Partial arguments come before the complete ones', { unused: true }),
        result: check('APP-35', 'The host sends the result of the tool, once'),
        cancelled: check('APP-36', 'The host says that the tool was cancelled, and sends no result after that', { unused: true }),
        teardown: check('APP-37', 'Teardown is a request, and nothing new follows it', { unused: true }),
        context: check('APP-47', 'Members of the context have the right types', { unused: true })
    };
    let settings = {};
    let arrived;
    const input = new Promise(resolve => (arrived = resolve));

    bridge.observe(({ id, method }) => {
        const calm = method === 'ping';
        if (!seen.initialized && !calm) rules.quiet.fail(`${method} came before ui/notifications/initialized`);
        if (seen.torn && !calm) rules.teardown.fail(`${method} came after ui/resource-teardown`);
        if (method === 'ui/resource-teardown' && id === undefined) rules.teardown.fail('it came as a notification, without an id');
    });

    // ------------------------------------------------------------------------------------------ the tool

    bridge.onNotification('ui/notifications/tool-input-partial', params => {
        if (seen.input !== undefined) rules.partial.fail('partial arguments came after the complete ones');
        else rules.partial.judge(isObject(params.arguments), 'params.arguments is no object');
        settings.onPartial?.(params.arguments);
    });
    bridge.onNotification('ui/notifications/tool-input', params => {
        if (seen.input !== undefined) return rules.input.fail('the arguments came twice');
        seen.input = isObject(params.arguments) ? params.arguments : {};
        rules.input.judge(isObject(params.arguments), 'params.arguments is no object; it is {} where there are none');
        if (!seen.ended) rules.order.keep();
        settings.onInput?.(seen.input);
        arrived(seen.input);
    });
    bridge.onNotification('ui/notifications/tool-result', params => {
        if (seen.input === undefined) rules.order.fail('the result came first');
        if (seen.ended === 'cancelled') return rules.cancelled.fail('a result came after the cancellation');
        if (seen.ended) return rules.result.fail('the result came twice');
        seen.ended = 'result';
        rules.result.judge(Array.isArray(params.content), 'the result has no list "content"');
        settings.onResult?.(params, seen.input);
    });
    bridge.onNotification('ui/notifications/tool-cancelled', params => {
        if (seen.ended === 'cancelled') return rules.cancelled.fail('the cancellation came twice');
        if (seen.ended) return rules.cancelled.fail('the cancellation came after the result');
        seen.ended = 'cancelled';
        rules.cancelled.judge(params.reason === undefined || typeof params.reason === 'string', 'the reason is no text');
        rules.result.skip('the tool was cancelled');
        settings.onCancelled?.(params);
    });

    // ------------------------------------------------------------------------------------------ the host

    const types = {
        toolInfo: value => isObject(value) && isObject(value.tool) && typeof value.tool.name === 'string',
        theme: value => value === 'light' || value === 'dark',
        styles: isObject,
        displayMode: value => MODES.includes(value),
        availableDisplayModes: value => Array.isArray(value) && value.every(mode => MODES.includes(mode)),
        containerDimensions: value => isObject(value) && Object.values(value).every(Number.isFinite),
        locale: value => typeof value === 'string',
        timeZone: value => typeof value === 'string',
        userAgent: value => typeof value === 'string',
        platform: value => ['web', 'desktop', 'mobile'].includes(value),
        deviceCapabilities: isObject,
        safeAreaInsets: value => isObject(value) && ['top', 'right', 'bottom', 'left'].every(side => Number.isFinite(value[side]))
    };

    /** Merges what the host says of itself, and looks like it. */
    function merge(changes) {
        for (const [member, value] of Object.entries(changes)) {
            const good = value === undefined || (types[member]?.(value) ?? true);
            if (good && rules.context.state === 'unused') rules.context.keep();
            if (!good) rules.context.fail(`${member} is ${JSON.stringify(value)}`);
            if (good) context[member] = value;
        }
        const root = document.documentElement;
        if (context.theme) {
            root.style.colorScheme = context.theme;
            root.dataset.theme = context.theme;
        }
        for (const [name, value] of Object.entries(context.styles?.variables ?? {})) {
            if (name.startsWith('--') && typeof value === 'string') root.style.setProperty(name, value);
        }
        const fonts = context.styles?.css?.fonts;
        if (typeof fonts === 'string') document.getElementById('fonts').textContent = fonts;
    }
    bridge.onNotification('ui/notifications/host-context-changed', params => {
        merge(params);
        settings.onContext?.(params);
    });
    bridge.onRequest('ui/resource-teardown', async params => {
        rules.teardown.keep();
        seen.torn = true;
        await settings.onTeardown?.(params);
        return {};
    });

    /** Tells the host how large the content is, when that changes. */
    function reportSize() {
        let last = '';
        const report = () => {
            const { width, height } = document.body.getBoundingClientRect();
            const size = { width: Math.ceil(width), height: Math.ceil(height) };
            if (last === JSON.stringify(size) || seen.torn) return;
            last = JSON.stringify(size);
            bridge.notify('ui/notifications/size-changed', size);
        };
        new ResizeObserver(report).observe(document.body);
        report();
    }

    function judgeAnswer(answer) {
        const missing = [
            ['protocolVersion', typeof answer.protocolVersion === 'string'],
            ['hostInfo', isObject(answer.hostInfo) && typeof answer.hostInfo.name === 'string' && typeof answer.hostInfo.version === 'string'],
            ['hostCapabilities', isObject(answer.hostCapabilities)],
            ['hostContext', isObject(answer.hostContext)]
        ].filter(([, good]) => !good);
        rules.answer.judge(missing.length === 0, `without a good ${missing.map(([name]) => name).join(', ')}`);
    }

    /** Opens the app; settings are what it does at each event. */
    async function start(given) {
        settings = given;
        const { capabilities = {} } = given;
        const params = {
            appInfo: { name: `refmcp-${document.title}`, version: '1.0.0' },
            appCapabilities: { availableDisplayModes: ['inline', 'fullscreen'], ...capabilities },
            protocolVersion: VERSION
        };
        let answer;
        try {
            answer = await bridge.request('ui/initialize', params, { patience: PATIENCE });
        } catch (error) {
            return rules.answer.fail(error.message);
        }
        judgeAnswer(answer);
        merge(isObject(answer.hostContext) ? answer.hostContext : {});
        // A host that does not wait for the next message shows itself meanwhile.
        await new Promise(resolve => setTimeout(resolve, 100));
        seen.initialized = true;
        if (rules.quiet.state === 'open') rules.quiet.keep();
        bridge.notify('ui/notifications/initialized');
        reportSize();
        setTimeout(() => seen.input === undefined && rules.input.fail(`no arguments within ${PATIENCE} ms`), PATIENCE);
        const capable = isObject(answer.hostCapabilities) ? answer.hostCapabilities : {};
        await settings.onReady?.(capable, context);
        if ((await input).auto === true) await Promise.all(actions.map(action => action()));
    }

    // ------------------------------------------------------------------------------------------ actions

    const actions = [];

    /**
     * Something that a person starts, or the argument `auto` of the tool: its effects are seen in the host. From then on its rules
     * are open.
     */
    function action(label, rules, work) {
        const button = document.createElement('button');
        button.type = 'button';
        button.textContent = label;
        const run = async () => {
            button.disabled = true;
            for (const rule of rules) rule.expect();
            try {
                await work();
            } finally {
                button.disabled = false;
            }
        };
        button.addEventListener('click', run);
        document.getElementById('actions').append(button);
        actions.push(run);
    }

    /** Asks the host for something that it may refuse, and judges what it says. */
    async function ask(rule, method, params, good = () => true) {
        try {
            const result = await bridge.request(method, params);
            if (result.isError === true) rule.keep('refused');
            else rule.judge(good(result), `the answer is ${JSON.stringify(result)}`);
        } catch (error) {
            if (error.code === -32000) rule.keep('refused');
            else rule.fail(error.message);
        }
    }

    return { start, action, ask, check, context, seen, PATIENCE, MODES };
})();
