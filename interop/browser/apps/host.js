// A small host of apps. It keeps every rule, unless it is told to break one: each fault is a name in `faults`.

import { MIME_TYPE, connect } from './mcp.js';
import { allowOf, isVisible, policyOf } from './policy.js';

const AVAILABLE = ['inline', 'fullscreen'];
const INFO = { name: 'refmcp-app-host', version: '1.0.0' };

/** Calls a tool and shows its app; what the app asked for is in `seen`. */
export async function openApp({ mcpUrl, sandboxUrl, mount, name, args = {}, faults = [] }) {
    const breaks = fault => faults.includes(fault);
    const mcp = connect(mcpUrl);
    const { tools } = await mcp('tools/list');
    const tool = tools.find(tool => tool.name === name);
    const cancellation = new AbortController();
    const call = mcp('tools/call', { name, arguments: args }, cancellation);
    // The page may be ready long after the call is done, or before.
    call.catch(() => {});
    const page = (await mcp('resources/read', { uri: tool._meta.ui.resourceUri })).contents[0];
    if (page.mimeType !== MIME_TYPE) throw new Error(`the page is ${page.mimeType}`);
    const ui = page._meta?.ui ?? {};
    const seen = { messages: [], contexts: [], links: [], downloads: [], logs: [], sizes: [], teardowns: 0, errors: [] };
    const waiting = new Map();
    let opened;
    // What the host has to say before the app is ready waits for that.
    const ready = new Promise(resolve => (opened = resolve));
    let mode = 'inline';
    let app = {};
    let next = 0;

    // ------------------------------------------------------------------------------------------ frames

    const frame = document.createElement('iframe');
    frame.title = tool.title;
    const allow = allowOf(ui.permissions);
    if (breaks('same-origin')) {
        frame.srcdoc = page.text;
    } else {
        frame.setAttribute('sandbox', 'allow-scripts allow-same-origin');
        frame.src = sandboxUrl;
    }
    if (allow) frame.allow = allow;
    frame.style.cssText = 'width: 640px; height: 60px; border: 1px solid';
    const post = message => frame.contentWindow?.postMessage(breaks('no-jsonrpc') ? message : { jsonrpc: '2.0', ...message }, '*');
    const notify = (method, params) => post({ method, params });

    async function request(method, params) {
        await ready;
        const id = `host-${++next}`;
        return new Promise((resolve, reject) => {
            waiting.set(id, { resolve, reject });
            post({ id, method, params });
        });
    }

    // ------------------------------------------------------------------------------------------ requests of the app

    const refusal = (code, message) => Object.assign(new Error(message), { code });

    /** Follows the size of the content, where it is the app that decides. */
    function fit() {
        const height = Math.min(seen.sizes.at(-1) ?? 60, 4000);
        if (mode === 'inline' && !breaks('fixed-size')) frame.style.height = `${height}px`;
    }

    /** The mode that is set in the end. */
    function setMode(wanted) {
        const declared = app.appCapabilities?.availableDisplayModes;
        const may = AVAILABLE.includes(wanted) && (declared?.includes(wanted) ?? true);
        if (wanted !== mode && (may || breaks('any-mode'))) {
            mode = wanted;
            fit();
            notify('ui/notifications/host-context-changed', { displayMode: mode });
        }
        return mode;
    }

    const handlers = {
        ping: () => ({}),
        'ui/initialize': params => {
            app = params;
            if (breaks('early')) setTimeout(() => notify('ui/notifications/tool-input', { arguments: args }), 10);
            const hostContext = {
                toolInfo: { tool },
                theme: 'dark',
                styles: { variables: { '--color-text-primary': 'light-dark(#111111, #eeeeee)' } },
                displayMode: mode,
                availableDisplayModes: AVAILABLE,
                containerDimensions: { width: 640, maxHeight: 4000 },
                locale: 'en',
                platform: 'web'
            };
            if (breaks('wrong-context')) hostContext.theme = 'blue';
            const hostCapabilities = {
                openLinks: {},
                downloadFile: {},
                logging: {},
                serverTools: {},
                serverResources: {},
                sandbox: { permissions: ui.permissions, csp: ui.csp }
            };
            const answer = { protocolVersion: '2026-01-26', hostInfo: INFO, hostCapabilities, hostContext };
            if (breaks('no-context')) delete answer.hostContext;
            return answer;
        },
        'tools/call': ({ name, arguments: given }) => {
            const callable = tools.some(tool => tool.name === name && (isVisible(tool, 'app') || breaks('model-tools')));
            if (!callable) throw refusal(-32602, `an app cannot call ${name}`);
            return mcp('tools/call', { name, arguments: given });
        },
        'resources/read': ({ uri }) => mcp('resources/read', { uri }),
        'ui/open-link': ({ url }) => {
            if (!URL.canParse(url)) throw refusal(-32602, 'no url');
            if (!breaks('any-link') && !/^https?:$/.test(new URL(url).protocol)) throw refusal(-32000, 'the link is not opened');
            seen.links.push(url);
            return {};
        },
        'ui/message': ({ role, content }) => {
            if (breaks('one-block') && Array.isArray(content)) throw refusal(-32603, 'content is no object');
            seen.messages.push({ role, content: [content].flat() });
            return {};
        },
        'ui/update-model-context': ({ content, structuredContent }) => {
            seen.contexts.push({ content, structuredContent });
            return {};
        },
        'ui/download-file': ({ contents }) => {
            seen.downloads.push(...contents);
            return {};
        },
        'ui/request-display-mode': ({ mode: wanted }) => (breaks('no-mode') ? (setMode(wanted), {}) : { mode: setMode(wanted) })
    };

    async function serve({ id, method, params }) {
        try {
            const handler = handlers[method] ?? (breaks('any-method') ? () => ({}) : undefined);
            if (!handler) throw refusal(-32601, `the host has no method ${method}`);
            post({ id: breaks('number-ids') ? Number(id) || 0 : id, result: await handler(params ?? {}) });
        } catch (error) {
            post({ id, error: { code: error.code ?? -32603, message: error.message } });
        }
    }

    // ------------------------------------------------------------------------------------------ notifications of the app

    async function tellOfCall() {
        const names = Object.keys(args);
        for (let count = 0; count < names.length; count++) {
            const some = Object.fromEntries(names.slice(0, count).map(name => [name, args[name]]));
            notify('ui/notifications/tool-input-partial', { arguments: some });
        }
        const input = () => notify('ui/notifications/tool-input', { arguments: args });
        if (!breaks('no-input') && !breaks('result-first') && !breaks('early')) input();
        if (breaks('input-twice')) input();
        if (breaks('late-partial')) notify('ui/notifications/tool-input-partial', { arguments: {} });
        try {
            let result = await call;
            if (breaks('changed-result')) result = { content: result.content };
            notify('ui/notifications/tool-result', result);
            if (breaks('result-twice')) notify('ui/notifications/tool-result', result);
        } catch (error) {
            notify('ui/notifications/tool-cancelled', { reason: error.message });
            if (breaks('late-result')) notify('ui/notifications/tool-result', { content: [] });
        }
        if (breaks('result-first')) input();
    }

    const heard = {
        'ui/notifications/sandbox-proxy-ready': () => {
            let policy = policyOf(ui.csp);
            if (breaks('open-policy')) policy = undefined;
            if (breaks('closed-policy')) policy = policyOf({});
            notify('ui/notifications/sandbox-resource-ready', { html: page.text, policy, allow, csp: ui.csp, permissions: ui.permissions });
        },
        'ui/notifications/initialized': () => {
            opened();
            return tellOfCall();
        },
        'ui/notifications/size-changed': ({ height }) => {
            seen.sizes.push(height);
            fit();
        },
        'ui/notifications/request-teardown': () => {
            seen.teardowns += 1;
        },
        'notifications/message': log => {
            seen.logs.push(log);
        }
    };

    const listener = ({ source, data }) => {
        if (source !== frame.contentWindow || data?.jsonrpc !== '2.0') return;
        if (data.method !== undefined) {
            if (data.id !== undefined) serve(data);
            else heard[data.method]?.(data.params ?? {});
            return;
        }
        const waits = waiting.get(data.id);
        if (!waits) return void seen.errors.push(data);
        waiting.delete(data.id);
        if (data.error) waits.reject(refusal(data.error.code, data.error.message));
        else waits.resolve(data.result);
    };
    window.addEventListener('message', listener);
    mount.replaceChildren(frame);

    return {
        seen,
        cancel: () => cancellation.abort(new Error('cancelled by the user')),
        change: changes => ready.then(() => notify('ui/notifications/host-context-changed', changes)),
        callApp: (name, given) => request('tools/call', { name, arguments: given }),
        listAppTools: () => request('tools/list', {}),
        ping: () => request('ping', {}),
        unknown: () => request('refmcp/unknown', {}).then(() => 0, error => error.code),
        /** Asks the app to end. It is removed by `remove`, so that what it says of this can still be read. */
        async teardown() {
            await ready;
            if (breaks('teardown-notification')) return notify('ui/resource-teardown', {});
            const answer = await request('ui/resource-teardown', { reason: 'closed' });
            if (breaks('after-teardown')) notify('ui/notifications/host-context-changed', { theme: 'light' });
            return answer;
        },
        remove() {
            window.removeEventListener('message', listener);
            frame.remove();
        }
    };
}
