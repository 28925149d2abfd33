// The consent page of the built-in authorization server, as a person meets it: in a browser.
//
// usage: node consent.mjs BASE_URL [SCREENSHOT_FOLDER]
//
// Registers a client with an awkward name, opens the page, reads it, presses its buttons, and tries what must not work.
// Prints a line of JSON about each check, `{"name", "ok", "detail"}`; codes and tokens are in none of them.
// Exit code 0: every check passed; 1: one did not; 2: wrong arguments.

import { createHash, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { launch } from './chromium.mjs';

const REVISION = '2025-11-25';
const NAME = 'Tester <script>alert(1)</script> "&amp;\'';
/** For one wait, and for everything. */
const PATIENCE = 5_000;
const LIMIT = 90_000;

const [base, screenshots] = process.argv.slice(2);
if (!base || !URL.canParse(base)) {
    console.error('usage: node consent.mjs BASE_URL [SCREENSHOT_FOLDER]');
    process.exit(2);
}
const origin = new URL(base).origin;
let failed = 0;

/** Runs a check: it fails by throwing, and may return what it saw. */
async function check(name, work) {
    let ok = true;
    let detail = '';
    try {
        detail = (await work()) ?? '';
    } catch (error) {
        ok = false;
        failed += 1;
        detail = withoutSecrets(String(error.message ?? error));
    }
    console.log(JSON.stringify({ name, ok, detail }));
    return ok;
}

function ensure(condition, otherwise) {
    if (!condition) throw new Error(otherwise);
}

/** Addresses are told in errors, and codes are in addresses. */
function withoutSecrets(text) {
    return text.replace(/\u001b\[\d+m/g, '').replace(/([?&;](?:code|state|code_challenge)=)[^&\s"']*/g, '$1…');
}

// ---------------------------------------------------------------------------------------------- the client

/** The place that the server sends the browser back to. It also has a page that frames another. */
async function listen() {
    const arrived = new Map();
    const waiting = new Map();
    const server = createServer((request, response) => {
        const url = new URL(request.url, 'http://127.0.0.1');
        response.setHeader('content-type', 'text/html; charset=utf-8');
        if (url.pathname === '/callback') {
            const state = url.searchParams.get('state');
            const arrival = { parameters: url.searchParams, referer: request.headers.referer };
            arrived.set(state, arrival);
            waiting.get(state)?.(arrival);
            response.end('<!doctype html><title>back</title>');
        } else if (url.pathname === '/frame') {
            const framed = url.searchParams.get('of').replaceAll('&', '&amp;').replaceAll('"', '&quot;');
            response.end(`<!doctype html><title>frame</title><iframe src="${framed}"></iframe>`);
        } else {
            response.writeHead(404).end();
        }
    });
    await new Promise(done => server.listen(0, '127.0.0.1', done));
    const here = `http://127.0.0.1:${server.address().port}`;
    return {
        redirectUri: `${here}/callback`,
        frameOf: url => `${here}/frame?of=${encodeURIComponent(url)}`,
        has: state => arrived.has(state),
        /** What the browser brings back for this state. */
        arrival: state =>
            new Promise((resolve, reject) => {
                if (arrived.has(state)) return resolve(arrived.get(state));
                const timer = setTimeout(() => reject(new Error('the browser did not come back')), PATIENCE);
                waiting.set(state, arrival => (clearTimeout(timer), resolve(arrival)));
            }),
        close: () => (server.closeAllConnections(), server.close())
    };
}

async function getJson(url, what) {
    const response = await fetch(url, { signal: AbortSignal.timeout(PATIENCE) });
    ensure(response.status === 200, `${what} answers ${response.status}`);
    return response.json();
}

function initialize(token) {
    const params = { protocolVersion: REVISION, capabilities: {}, clientInfo: { name: 'consent', version: '0.0.0' } };
    return fetch(new URL('/mcp', origin), {
        method: 'POST',
        headers: {
            'content-type': 'application/json',
            accept: 'application/json, text/event-stream',
            ...(token && { authorization: `Bearer ${token}` })
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }),
        signal: AbortSignal.timeout(PATIENCE)
    });
}

/** From the refusal to the endpoints, as a client goes that knows nothing but the server's address. */
async function discover() {
    const refusal = await initialize();
    ensure(refusal.status === 401, `without a token the server answers ${refusal.status}`);
    const challenge = refusal.headers.get('www-authenticate') ?? '';
    const pointer = /resource_metadata="([^"]+)"/.exec(challenge)?.[1];
    ensure(pointer, 'the challenge does not say where the metadata is');
    const resource = await getJson(pointer, 'the metadata of the resource');
    const issuer = resource.authorization_servers?.[0];
    ensure(issuer && new URL(issuer).origin === origin, `the authorization server is ${issuer}`);
    const well = '/.well-known/oauth-authorization-server';
    const server = await getJson(new URL(well, issuer), 'the metadata of the authorization server');
    ensure(server.issuer === issuer, 'the two documents name different issuers');
    const scopes = resource.scopes_supported ?? server.scopes_supported ?? [];
    ensure(scopes.length > 0, 'no scopes are offered');
    return { ...server, resource: resource.resource, scopes };
}

async function register(server, redirectUri) {
    const response = await fetch(server.registration_endpoint, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
            client_name: NAME,
            redirect_uris: [redirectUri],
            token_endpoint_auth_method: 'none',
            grant_types: ['authorization_code', 'refresh_token'],
            response_types: ['code']
        }),
        signal: AbortSignal.timeout(PATIENCE)
    });
    ensure(response.status === 201, `the registration is answered with ${response.status}`);
    const { client_id: id } = await response.json();
    ensure(typeof id === 'string' && id !== '', 'the registration gives no client id');
    return id;
}

/** A new request for authorization: where the browser is to go, and what only the client knows. */
function request(changes = {}) {
    const random = () => randomBytes(32).toString('base64url');
    const [state, verifier] = [random(), random()];
    const url = new URL(server.authorization_endpoint);
    const parameters = {
        response_type: 'code',
        client_id: clientId,
        redirect_uri: listener.redirectUri,
        scope: server.scopes.join(' '),
        state,
        code_challenge: createHash('sha256').update(verifier).digest('base64url'),
        code_challenge_method: 'S256',
        resource: server.resource,
        ...changes
    };
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
    return { url: url.href, state, verifier };
}

function redeem(code, verifier) {
    const body = new URLSearchParams({
        grant_type: 'authorization_code',
        code,
        redirect_uri: listener.redirectUri,
        client_id: clientId,
        code_verifier: verifier,
        resource: server.resource
    });
    return fetch(server.token_endpoint, { method: 'POST', body, signal: AbortSignal.timeout(PATIENCE) });
}

// ---------------------------------------------------------------------------------------------- the browser

/** Does the work in a browser of its own: no other cookies. */
async function inBrowser(work, options = {}) {
    const context = await browser.newContext(options);
    context.setDefaultTimeout(PATIENCE);
    try {
        return await work(context);
    } finally {
        await context.close();
    }
}

/** Opens the page of a request and notes what happens there. */
async function open(context, asked = request()) {
    const page = await context.newPage();
    const seen = { dialogs: [], errors: [], requests: [] };
    page.on('dialog', dialog => {
        seen.dialogs.push(dialog.message());
        dialog.dismiss().catch(error => seen.errors.push(`the dialog stays: ${error.message}`));
    });
    page.on('console', message => message.type() === 'error' && seen.errors.push(message.text()));
    page.on('pageerror', error => seen.errors.push(error.message));
    page.on('request', sent => seen.requests.push(sent.url()));
    const response = await page.goto(asked.url);
    return { ...asked, page, seen, response };
}

const button = (page, decision) => page.locator(`[type=submit][name=decision][value=${decision}], button[name=decision][value=${decision}]`);

/** The form as it would be sent, without the decision. */
function formOf(page) {
    return button(page, 'allow').evaluate(({ form }) => ({
        action: new URL(form.getAttribute('action') ?? '', location.href).href,
        fields: [...new FormData(form)]
    }));
}

/** Puts another page's form in the place of this one's. */
function replaceForm(page, { action, fields }) {
    const put = ({ form }, { action, fields }) => {
        for (const input of form.querySelectorAll('input[type=hidden]')) input.remove();
        for (const [name, value] of fields) {
            const input = document.createElement('input');
            Object.assign(input, { type: 'hidden', name, value });
            form.append(input);
        }
        form.setAttribute('action', action);
    };
    return button(page, 'allow').evaluate(put, { action, fields });
}

/** Presses a button, or sends the form otherwise, and waits until the browser is back at the client. */
async function comeBack({ page, seen, state }, press) {
    const arrival = listener.arrival(state);
    try {
        const [back] = await Promise.all([arrival, press()]);
        await page.waitForURL(url => url.href.startsWith(listener.redirectUri));
        ensure(back.referer === undefined, 'the browser tells the client where it comes from');
        const issuer = back.parameters.get('iss');
        ensure(issuer === server.issuer, `the issuer that is told is ${issuer}`);
        return back.parameters;
    } catch (error) {
        arrival.catch(() => {}); // what went wrong first is told
        throw new Error([error.message, ...seen.errors].join('; '));
    }
}

/** Presses Allow where that must lead nowhere. */
async function refused({ page, state }) {
    const isAnswer = response => response.request().isNavigationRequest() && response.request().method() === 'POST';
    const [answer] = await Promise.all([page.waitForResponse(isAnswer), button(page, 'allow').click()]);
    await answer.finished();
    const status = answer.status();
    ensure(!listener.has(state) && status >= 400 && status < 500, `it is answered with ${status}`);
    return `it is answered with ${status}`;
}

// ---------------------------------------------------------------------------------------------- the checks

const readable = text => text.replace(/\s+/g, ' ').trim();

async function reading() {
    await inBrowser(async context => {
        const { page, seen, response } = await open(context);
        const headers = response.headers();
        if (screenshots) await page.screenshot({ path: `${screenshots}/consent.png`, fullPage: true });

        await check('the page is there, in UTF-8 HTML', () => {
            ensure(response.status() === 200, `it is answered with ${response.status()}`);
            const type = headers['content-type'] ?? '';
            ensure(/^text\/html; ?charset=utf-8$/i.test(type), `its type is ${type}`);
        });
        await check('the page has a title, a language and one main heading', async () => {
            const title = readable(await page.title());
            ensure(title !== '', 'it has no title');
            const lang = await page.locator('html').getAttribute('lang');
            ensure(lang, 'it has no language');
            const levels = await page.locator('h1, h2, h3, h4, h5, h6').evaluateAll(all => all.map(one => Number(one.tagName[1])));
            ensure(levels.filter(level => level === 1).length === 1, `its headings are ${levels}`);
            ensure(levels.every((level, at) => level <= (levels[at - 1] ?? 0) + 1), `a level is left out: ${levels}`);
            return `${title} (${lang})`;
        });
        const text = readable(await page.locator('body').innerText());
        await check("the client's name is text and nothing else", async () => {
            ensure(seen.dialogs.length === 0, `the page opened a dialog: ${seen.dialogs}`);
            ensure(text.includes(NAME), 'the name is not shown as it is');
            const scripts = await page.locator('script').count();
            ensure(scripts === 0, `there are ${scripts} scripts in the page`);
        });
        await check('the page shows where the answer goes', () => {
            const { host } = new URL(listener.redirectUri);
            ensure(text.includes(host), `${host} is not on it`);
        });
        await check('the page shows every scope', () => {
            const absent = server.scopes.filter(scope => !text.includes(scope));
            ensure(absent.length === 0, `not on it: ${absent}`);
            return server.scopes.join(' ');
        });
        await check('every field and button has a name of its own', async () => {
            const nameless = await page
                .locator('input:not([type=hidden]):not([type=submit]), select, textarea')
                .evaluateAll(all => all.filter(one => one.labels.length === 0 && !one.ariaLabel).map(one => one.name));
            ensure(nameless.length === 0, `without a label: ${nameless}`);
            const named = page.getByRole('button', { name: /\S/ });
            for (const decision of ['allow', 'deny']) {
                const found = await named.and(button(page, decision)).count();
                ensure(found === 1, `${found} buttons for ${decision}`);
            }
            const names = (await named.evaluateAll(all => all.map(one => one.textContent || one.value))).map(readable);
            ensure(new Set(names).size === names.length, `the buttons are ${names}`);
            return names.join(', ');
        });
        await check('the keyboard reaches both buttons', async () => {
            const reached = new Set();
            for (let presses = 0; presses < 20; presses += 1) {
                await page.keyboard.press('Tab');
                reached.add(await page.evaluate(() => document.activeElement?.value));
            }
            for (const decision of ['allow', 'deny']) ensure(reached.has(decision), `it does not reach ${decision}`);
        });
        await check('the page fits a narrow window', async () => {
            await page.setViewportSize({ width: 320, height: 640 });
            const width = await page.evaluate(() => document.documentElement.scrollWidth);
            ensure(width <= 320, `it is ${width} pixels wide`);
        });
        await check('nothing is fetched from elsewhere', () => {
            const elsewhere = seen.requests.filter(url => new URL(url).origin !== origin && !url.startsWith('data:'));
            ensure(elsewhere.length === 0, elsewhere.join(', '));
            return `requests: ${seen.requests.length}`;
        });
        await check('the browser finds nothing wrong', () => {
            ensure(seen.errors.length === 0, seen.errors.join('; '));
        });
        await check('the headers keep the page from scripts, frames, stores and referrers', () => {
            const policy = new Map();
            for (const directive of (headers['content-security-policy'] ?? '').split(';')) {
                const [name, ...sources] = directive.trim().split(/\s+/);
                policy.set(name, sources.join(' '));
            }
            const wanted = [
                ['frame-ancestors', policy.get('frame-ancestors'), "'none'"],
                ['script-src', policy.get('script-src') ?? policy.get('default-src'), "'none'"],
                ['x-frame-options', headers['x-frame-options']?.toUpperCase(), 'DENY'],
                ['referrer-policy', headers['referrer-policy'], 'no-referrer']
            ];
            for (const [name, found, right] of wanted) ensure(found === right, `${name} is ${found}`);
            ensure(/\bno-store\b/.test(headers['cache-control']), `cache-control is ${headers['cache-control']}`);
        });
        await check('the cookies are for the server only', async () => {
            const cookies = await context.cookies();
            for (const { name, httpOnly, sameSite } of cookies) {
                ensure(httpOnly, `a script could read ${name}`);
                ensure(sameSite === 'Lax' || sameSite === 'Strict', `${name} is sent from every site`);
            }
            return `cookies: ${cookies.length}`;
        });
    });
}

async function framed() {
    await inBrowser(async context => {
        const page = await context.newPage();
        await page.goto(listener.frameOf(request().url));
        const frames = page.mainFrame().childFrames();
        ensure(frames.length === 1, `there are ${frames.length} frames`);
        const [frame] = frames;
        ensure(frame.url() === 'chrome-error://chromewebdata/', 'the frame has a page');
        ensure((await button(frame, 'allow').count()) === 0, 'the frame has the button');
    });
}

async function denied() {
    await inBrowser(async context => {
        const consent = await open(context);
        const { page } = consent;
        const back = await comeBack(consent, async () => {
            // By hand, as far as it takes.
            for (let presses = 0; presses < 20; presses += 1) {
                await page.keyboard.press('Tab');
                if ((await page.evaluate(() => document.activeElement?.value)) === 'deny') break;
            }
            await page.keyboard.press('Enter');
        });
        ensure(back.get('error') === 'access_denied', `the error is ${back.get('error')}`);
        ensure(!back.has('code'), 'there is a code all the same');
    });
}

async function allowed() {
    await inBrowser(async context => {
        const consent = await open(context);
        const form = await formOf(consent.page);
        let code;
        const came = await check('Allow gives a code', async () => {
            const back = await comeBack(consent, () => button(consent.page, 'allow').click());
            code = back.get('code');
            ensure(code && !back.has('error'), `what comes back is ${[...back.keys()]}`);
        });
        if (!came) return;
        await check('the code gives a token, and the token opens the server', async () => {
            const answer = await redeem(code, consent.verifier);
            ensure(answer.status === 200, `the code is answered with ${answer.status}`);
            const tokens = await answer.json();
            ensure(/^bearer$/i.test(tokens.token_type), `the token is a ${tokens.token_type}`);
            const hello = await initialize(tokens.access_token);
            ensure(hello.status === 200, `initialize is answered with ${hello.status}`);
            await hello.body?.cancel();
        });
        await check('the code is good for one time', async () => {
            const answer = await redeem(code, consent.verifier);
            const { error } = await answer.json();
            ensure(answer.status === 400 && error === 'invalid_grant', `it is answered with ${answer.status}, ${error}`);
        });
        await check('the form that was sent is refused when it is sent again', async () => {
            const { page } = consent;
            await page.goBack();
            if ((await button(page, 'allow').count()) === 0) return 'it is not there any more';
            // The browser may have asked for the page anew; what counts is the form that was used.
            await replaceForm(page, form);
            return refused({ page, state: `${consent.state} again` });
        });
    });
}

/** A user asks in their own browser and has another user send the form. */
async function ofAnotherBrowser() {
    return inBrowser(theirs =>
        inBrowser(async ours => {
            const bait = await open(theirs);
            const consent = await open(ours);
            await replaceForm(consent.page, await formOf(bait.page));
            return refused({ page: consent.page, state: bait.state });
        })
    );
}

async function withoutCookies() {
    return inBrowser(async context => {
        const consent = await open(context);
        await context.clearCookies();
        return refused(consent);
    });
}

async function astray(changes) {
    return inBrowser(async context => {
        const { page, state, response } = await open(context, request(changes));
        ensure(new URL(page.url()).origin === origin && !listener.has(state), 'the browser was sent on');
        const status = response.status();
        ensure(status >= 400 && status < 500, `it is answered with ${status}`);
        ensure((await button(page, 'allow').count()) === 0, 'it may be allowed');
    });
}

// A page that hangs must not hang this script.
const timer = setTimeout(() => {
    console.log(JSON.stringify({ name: 'the checks come to an end', ok: false, detail: `not within ${LIMIT / 1000} s` }));
    process.exit(1);
}, LIMIT);

const listener = await listen();
let server;
let clientId;
let browser;
const ready =
    (await check('Chromium starts', async () => (browser = await launch()).version())) &&
    (await check('the refusal leads to the endpoints', async () => void (server = await discover()))) &&
    (await check('a client registers', async () => void (clientId = await register(server, listener.redirectUri))));
if (ready) {
    if (await check('the page opens', () => inBrowser(async context => void (await formOf((await open(context)).page))))) {
        await reading();
        await check('the page shows nothing in a frame', framed);
        await check('Deny, by the keyboard, gives access_denied', denied);
        await allowed();
        await check('the form of another browser is refused', ofAnotherBrowser);
        await check('the form without its cookies is refused', withoutCookies);
    }
    const elsewhere = listener.redirectUri.replace('callback', 'elsewhere');
    await check('no redirect to an address that is not registered', () => astray({ redirect_uri: elsewhere }));
    await check('no redirect for an unknown client', () => astray({ client_id: 'unknown' }));
}
await browser?.close();
listener.close();
clearTimeout(timer);
process.exitCode = failed === 0 ? 0 : 1;
