// A host on the official implementation: its bridge to the app, and the official client to the server.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { AppBridge, PostMessageTransport, buildAllowAttribute } from '@modelcontextprotocol/ext-apps/app-bridge';
import { MIME_TYPE } from './mcp.js';
import { isVisible, policyOf } from './policy.js';

const AVAILABLE = ['inline', 'fullscreen'];
const INFO = { name: 'official-app-host', version: '1.0.0' };

/** Calls a tool and shows its app; what the app asked for is in `seen`. */
export async function openApp({ mcpUrl, sandboxUrl, mount, name, args = {}, faults = [] }) {
    const extensions = { 'io.modelcontextprotocol/ui': { mimeTypes: [MIME_TYPE] } };
    const client = new Client(INFO, { capabilities: { extensions } });
    await client.connect(new StreamableHTTPClientTransport(new URL(mcpUrl)));
    const { tools } = await client.listTools();
    const tool = tools.find(tool => tool.name === name);
    const cancellation = new AbortController();
    const call = client.callTool({ name, arguments: args }, { signal: cancellation.signal, timeout: 90_000 });
    call.catch(() => {});
    const page = (await client.readResource({ uri: tool._meta.ui.resourceUri })).contents[0];
    const { csp, permissions } = page._meta?.ui ?? {};
    const seen = { messages: [], contexts: [], links: [], downloads: [], logs: [], sizes: [], teardowns: 0 };
    let mode = 'inline';

    const frame = document.createElement('iframe');
    frame.title = tool.title;
    frame.setAttribute('sandbox', 'allow-scripts allow-same-origin');
    frame.allow = buildAllowAttribute(permissions);
    frame.style.cssText = 'width: 640px; height: 60px; border: 1px solid';
    mount.replaceChildren(frame);

    const capabilities = {
        openLinks: {},
        downloadFile: {},
        logging: {},
        serverTools: {},
        serverResources: {},
        message: { text: {} },
        updateModelContext: { text: {}, structuredContent: {} },
        sandbox: { permissions, csp }
    };
    const hostContext = {
        toolInfo: { tool },
        theme: 'dark',
        displayMode: mode,
        availableDisplayModes: AVAILABLE,
        containerDimensions: { width: 640, maxHeight: 4000 },
        locale: 'en',
        platform: 'web'
    };
    // A bridge that is given the client passes on all that an app calls. Which tools it may call is left to the host.
    const forwards = faults.includes('forwarding');
    const bridge = new AppBridge(forwards ? client : null, INFO, capabilities, { hostContext });
    if (!forwards) {
        bridge.oncalltool = async params => {
            const callable = tools.some(tool => tool.name === params.name && isVisible(tool, 'app'));
            if (!callable) throw new Error(`an app cannot call ${params.name}`);
            return client.callTool(params);
        };
        bridge.onreadresource = params => client.readResource(params);
    }
    bridge.onopenlink = async ({ url }) => {
        if (!/^https?:/.test(url)) return { isError: true };
        seen.links.push(url);
        return {};
    };
    bridge.onmessage = async message => {
        seen.messages.push(message);
        return {};
    };
    bridge.onupdatemodelcontext = async context => {
        seen.contexts.push(context);
        return {};
    };
    bridge.ondownloadfile = async ({ contents }) => {
        seen.downloads.push(...contents);
        return {};
    };
    bridge.onloggingmessage = log => void seen.logs.push(log);
    bridge.onrequestteardown = () => void (seen.teardowns += 1);
    const fit = () => mode === 'inline' && seen.sizes.length && (frame.style.height = `${seen.sizes.at(-1)}px`);
    bridge.onsizechange = ({ height }) => {
        seen.sizes.push(height);
        fit();
    };
    bridge.onrequestdisplaymode = async ({ mode: wanted }) => {
        const declared = bridge.getAppCapabilities()?.availableDisplayModes ?? AVAILABLE;
        if (wanted !== mode && AVAILABLE.includes(wanted) && declared.includes(wanted)) {
            mode = wanted;
            fit();
            await bridge.sendHostContextChange({ displayMode: mode });
        }
        return { mode };
    };

    const ready = new Promise(resolve => (bridge.oninitialized = resolve));
    bridge.onsandboxready = () => {
        bridge.sendSandboxResourceReady({ html: page.text, csp, permissions });
    };
    await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
    // The proxy takes the policy from its address, as one that sends it as a header would.
    const address = new URL(sandboxUrl);
    address.searchParams.set('policy', policyOf(csp));
    address.searchParams.set('allow', buildAllowAttribute(permissions));
    frame.src = address.href;

    ready.then(async () => {
        const names = Object.keys(args);
        for (let count = 0; count < names.length; count++) {
            const some = Object.fromEntries(names.slice(0, count).map(name => [name, args[name]]));
            await bridge.sendToolInputPartial({ arguments: some });
        }
        await bridge.sendToolInput({ arguments: args });
        await call.then(
            result => bridge.sendToolResult(result),
            error => bridge.sendToolCancelled({ reason: error.message })
        );
    });

    return {
        seen,
        cancel: () => cancellation.abort('cancelled by the user'),
        change: changes => ready.then(() => bridge.sendHostContextChange(changes)),
        callApp: (name, given) => ready.then(() => bridge.callTool({ name, arguments: given })),
        listAppTools: () => ready.then(() => bridge.listTools({})),
        teardown: () => ready.then(() => bridge.teardownResource({}))
    };
}
