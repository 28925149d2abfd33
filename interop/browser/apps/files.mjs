// Serves the files of this folder from two ports, since a sandbox has another origin than its host.

import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';

const FILES = ['host.html', 'host.js', 'mcp.js', 'official.html', 'official.js', 'policy.js'];
const MODULES = fileURLToPath(new URL('../node_modules/', import.meta.url));
const TYPES = { html: 'text/html; charset=utf-8', js: 'text/javascript', mjs: 'text/javascript' };

/** The file of a package; `..` is resolved before, as URLs do. */
const moduleOf = name => (/^modules\/.*\.m?js$/.test(name) ? MODULES + name.slice('modules/'.length) : undefined);

function listen(files) {
    const server = createServer((request, response) => {
        const name = new URL(request.url, 'http://127.0.0.1').pathname.slice(1);
        const path = files.get(name) ?? moduleOf(name);
        if (!path) return response.writeHead(404).end();
        if (!existsSync(path)) return response.writeHead(404).end();
        response.setHeader('content-type', TYPES[path.split('.').at(-1)]);
        response.end(readFileSync(path));
    });
    return new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(server)));
}

const origin = server => `http://127.0.0.1:${server.address().port}`;

/** The origins of the host and of the sandbox. */
export async function serveFiles() {
    const here = name => fileURLToPath(new URL(name, import.meta.url));
    const hosts = await listen(new Map(FILES.map(name => [name, here(name)])));
    const sandbox = await listen(new Map([['sandbox.html', here('sandbox.html')]]));
    return {
        hostOrigin: origin(hosts),
        sandboxOrigin: origin(sandbox),
        close: () => [hosts, sandbox].forEach(server => server.close())
    };
}
