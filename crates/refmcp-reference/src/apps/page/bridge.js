// Messages between an app and its host: JSON-RPC 2.0 by postMessage.
'use strict';

const bridge = (() => {
    const host = window.parent;
    const waiting = new Map();
    const answered = new Set();
    const requests = new Map([['ping', () => ({})]]);
    const notifications = new Map();
    const observers = [];
    let next = 0;

    const form = verdict.check('APP-52', 'Messages of the host are JSON-RPC 2.0');
    const isObject = value => typeof value === 'object' && value !== null && !Array.isArray(value);
    // The host's origin cannot be known here; what tells the host is its window.
    const post = message => host.postMessage({ jsonrpc: '2.0', ...message }, '*');

    class HostError extends Error {
        constructor({ code, message, data }) {
            super(`${code} ${message}`);
            Object.assign(this, { code, data });
        }
    }

    /** What is wrong with a message. */
    function fault(message) {
        if (!isObject(message)) return 'not an object';
        if (message.jsonrpc !== '2.0') return 'no "jsonrpc": "2.0"';
        const hasId = 'id' in message;
        if (hasId && typeof message.id !== 'string' && !Number.isInteger(message.id)) return 'an id of another type';
        if ('method' in message) {
            if (typeof message.method !== 'string') return 'a method that is no text';
            if ('params' in message && !isObject(message.params)) return `${message.method}: params is no object`;
            return 'result' in message || 'error' in message ? 'a request and a response in one' : '';
        }
        if (!hasId) return 'neither a method nor an id';
        if ('result' in message === 'error' in message) return 'not one of result and error';
        if ('result' in message && !isObject(message.result)) return 'a result that is no object';
        const error = message.error;
        const good = !('error' in message) || (isObject(error) && Number.isInteger(error.code) && typeof error.message === 'string');
        return good ? '' : 'an error without code and message';
    }

    function respond(message) {
        const waits = waiting.get(message.id);
        if (!waits) {
            const what = answered.has(message.id) ? 'a second response to' : 'a response to a request that was not sent,';
            return form.fail(`${what} id ${JSON.stringify(message.id)}`);
        }
        waiting.delete(message.id);
        answered.add(message.id);
        if ('error' in message) waits.reject(new HostError(message.error));
        else waits.resolve(message.result);
    }

    async function serve({ id, method, params }) {
        const handler = requests.get(method);
        if (!handler) return post({ id, error: { code: -32601, message: `the app has no method ${method}` } });
        try {
            post({ id, result: await handler(params ?? {}) });
        } catch (error) {
            post({ id, error: { code: -32000, message: String(error.message ?? error) } });
        }
    }

    window.addEventListener('message', ({ source, data }) => {
        // Frames within this one and other windows are not the host.
        if (source !== host) return;
        const wrong = fault(data);
        if (wrong) return form.fail(wrong);
        if (form.state === 'open') form.keep();
        if (!('method' in data)) return respond(data);
        for (const observe of observers) observe(data);
        if ('id' in data) serve(data);
        else notifications.get(data.method)?.(data.params ?? {});
    });

    /** Sends a request; the response, or an error: that of the host, or that there was none in time. */
    function request(method, params = {}, { id = ++next, patience = 5000 } = {}) {
        return new Promise((resolve, reject) => {
            const timer = setTimeout(() => {
                waiting.delete(id);
                answered.add(id);
                reject(new Error(`no response to ${method} in ${patience} ms`));
            }, patience);
            const ended = end => value => {
                clearTimeout(timer);
                end(value);
            };
            waiting.set(id, { resolve: ended(resolve), reject: ended(reject) });
            post({ id, method, params });
        });
    }

    return {
        request,
        HostError,
        isObject,
        notify: (method, params = {}) => post({ method, params }),
        /** Answers requests of the host, hears its notifications, sees both before that. */
        onRequest: (method, handler) => requests.set(method, handler),
        onNotification: (method, handler) => notifications.set(method, handler),
        observe: observer => observers.push(observer)
    };
})();
