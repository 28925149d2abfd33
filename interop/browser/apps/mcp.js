// A client of MCP 2026-07-28 that does no more than a host of apps needs: one request, one response.

const REVISION = '2026-07-28';
const UI = 'io.modelcontextprotocol/ui';
export const MIME_TYPE = 'text/html;profile=mcp-app';

/** Requests to a server at this URL; an error of the server has its code. */
export function connect(url) {
    let id = 0;
    const meta = {
        'io.modelcontextprotocol/protocolVersion': REVISION,
        'io.modelcontextprotocol/clientInfo': { name: 'refmcp-app-host', version: '1.0.0' },
        'io.modelcontextprotocol/clientCapabilities': { extensions: { [UI]: { mimeTypes: [MIME_TYPE] } } }
    };
    return async function request(method, params = {}, { signal } = {}) {
        const headers = {
            accept: 'application/json, text/event-stream',
            'content-type': 'application/json',
            'mcp-protocol-version': REVISION,
            'mcp-method': method
        };
        const name = params.name ?? params.uri;
        if (name !== undefined) headers['mcp-name'] = name;
        const body = JSON.stringify({ jsonrpc: '2.0', id: ++id, method, params: { ...params, _meta: meta } });
        const response = await fetch(url, { method: 'POST', headers, body, signal });
        const text = await response.text();
        const message = response.headers.get('content-type')?.startsWith('text/event-stream') ? lastEvent(text) : JSON.parse(text);
        if (message.error) throw Object.assign(new Error(message.error.message), { code: message.error.code });
        return message.result;
    };
}

/** The response is the last message of its stream. */
function lastEvent(text) {
    const data = text.split(/\r?\n/).filter(line => line.startsWith('data:') && line.length > 6);
    return JSON.parse(data.at(-1).slice(5));
}
