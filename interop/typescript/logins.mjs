// The logins of the clients on the TypeScript SDKs.
//
// An adapter (../typescript-v1/login.mjs, ../typescript-v2/login.mjs) opens the SDK's transports and knows its classes; what
// is done with them, and what is looked at, is here. Prints a line of JSON about each check, see ../README.md; tokens,
// codes and secrets are in none of them. They go to the file that REFMCP_SECRETS names, one a line, for the search of the
// server's logs for them.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const READ = 'mcp:read';
const WRITE = 'mcp:write';
const TODO = 'file:///notes/todo.txt';
/** Nothing listens there: an authorization ends with the address that the browser would be sent back to. */
const REDIRECT = 'http://127.0.0.1:9/callback';
/** For one check, beside what it waits for by itself. */
const PATIENCE_MS = 20_000;
/** For how long the server may go by what it knew of a token before it was revoked. */
const REVOKED_MS = 15_000;

/** What the SDK cannot do, in its own words. */
export class Unsupported extends Error {}

/** Records what must not be logged. */
function note(...secrets) {
    const { REFMCP_SECRETS: path } = process.env;
    if (path) appendFileSync(path, secrets.filter(Boolean).map(secret => `${secret}\n`).join(''));
}

/** What an application keeps for the SDK. */
class Provider {
    visits = [];
    #kept = {};

    constructor({ refreshing = true, dpop } = {}) {
        this.refreshing = refreshing;
        if (dpop) this.dpop = () => dpop;
        this.clientMetadata = {
            client_name: 'refmcp interop',
            redirect_uris: [REDIRECT],
            grant_types: refreshing ? ['authorization_code', 'refresh_token'] : ['authorization_code'],
            response_types: ['code'],
            token_endpoint_auth_method: 'none'
        };
    }

    get redirectUrl() {
        return REDIRECT;
    }

    state() {
        note((this.#kept.state = randomUUID()));
        return this.#kept.state;
    }

    clientInformation() {
        return this.#kept.client;
    }

    saveClientInformation(client) {
        note(client.client_secret);
        this.#kept.client = client;
    }

    tokens() {
        return this.#kept.tokens;
    }

    saveTokens({ refresh_token, ...tokens }) {
        note(tokens.access_token, refresh_token);
        this.#kept.tokens = this.refreshing && refresh_token ? { ...tokens, refresh_token } : tokens;
    }

    saveCodeVerifier(verifier) {
        note(verifier);
        this.#kept.verifier = verifier;
    }

    codeVerifier() {
        return this.#kept.verifier;
    }

    saveDiscoveryState(state) {
        this.#kept.discovery = state;
    }

    discoveryState() {
        return this.#kept.discovery;
    }

    redirectToAuthorization(url) {
        this.visits.push(url);
    }

    invalidateCredentials(what) {
        const keys = { client: 'client', tokens: 'tokens', verifier: 'verifier', discovery: 'discovery' };
        for (const key of what === 'all' ? Object.values(keys) : [keys[what]]) delete this.#kept[key];
    }

    /** Goes where a browser would be sent, and comes back with what it would bring. */
    async visit() {
        const response = await fetch(this.visits.at(-1), { redirect: 'manual' });
        await response.body?.cancel();
        const location = response.headers.get('location');
        assert(location?.startsWith(REDIRECT), `the authorization page answered ${response.status} and sent the browser elsewhere`);
        const back = new URL(location).searchParams;
        assert(back.has('code'), `the login was refused: ${back.get('error')}: ${back.get('error_description')}`);
        note(back.get('code'));
        assert.equal(back.get('state'), this.#kept.state, 'state');
        return back;
    }
}

/** What was sent to the server, but for secrets: whether a token came with it, and what it got. */
class Wire {
    requests = [];

    constructor(url) {
        this.path = new URL(url).pathname;
        this.fetch = async (target, init = {}) => {
            const request = { method: init.method ?? 'GET', url: new URL(target), token: new Headers(init.headers).get('authorization'), proof: new Headers(init.headers).get('dpop') };
            this.requests.push(request);
            note(request.token?.replace(/^\w+ /, ''), request.proof);
            const response = await fetch(target, init);
            note(response.headers.get('mcp-session-id'));
            request.status = response.status;
            request.challenge = response.headers.get('www-authenticate') ?? '';
            return response;
        };
    }

    /** The requests for the server itself, not for its authorization server. */
    get mcp() {
        return this.requests.filter(({ url }) => url.pathname === this.path || url.pathname.startsWith('/messages'));
    }

    /** Refused as one without a good token must be, and with a pointer to where one is to be had. */
    refused(status = 401) {
        const { challenge } = this.mcp.find(request => request.status === status) ?? assert.fail(`nothing was refused with ${status}`);
        assert.match(challenge, /^(Bearer|DPoP) .*resource_metadata="http:/, 'WWW-Authenticate');
        return challenge;
    }
}

const scopes = provider => (provider.tokens()?.scope ?? '').split(' ').filter(Boolean);
const text = result => result.content.map(block => block.text).join('\n');

class Logins {
    constructor(adapter, revision, url, brief, seconds) {
        Object.assign(this, { adapter, revision, url, brief, seconds });
        this.transport = new URL(url).pathname.endsWith('/sse') ? 'sse' : 'http';
    }

    /** Connects, through the login when the SDK asks for one. */
    async enter(url, login) {
        const wire = new Wire(url);
        const open = () => this.adapter.open({ transport: this.transport, url: new URL(url), fetch: wire.fetch, ...login });
        let transport = open();
        try {
            return { transport, wire, client: await this.adapter.connect(transport, this.revision) };
        } catch (error) {
            await transport.close();
            if (!this.adapter.isUnauthorized(error) || !login.provider?.visits?.length) throw Object.assign(error, { wire });
            await transport.finishAuth(this.adapter.callback(await login.provider.visit()));
        }
        transport = open();
        return { transport, wire, client: await this.adapter.connect(transport, this.revision) };
    }

    async leave({ transport, client }) {
        await transport.terminateSession?.();
        await client.close();
    }

    async echo({ client }) {
        const said = `hello ${randomUUID()}`;
        assert.equal(text(await client.callTool({ name: 'echo', arguments: { message: said } })), said);
    }

    /** A call of a tool that needs more than everything else; through a second login when the SDK asks for one. */
    async touch({ client, transport }, provider) {
        const call = () => client.callTool({ name: 'touch_resource', arguments: { uri: TODO } });
        try {
            return await call();
        } catch (error) {
            if (!this.adapter.isUnauthorized(error)) throw error;
            await transport.finishAuth(this.adapter.callback(await provider.visit()));
        }
        return call();
    }

    async stepUp(provider) {
        const here = await this.enter(this.url, { provider });
        const before = scopes(provider);
        assert(!before.includes(WRITE), `the first token already has ${before}`);
        try {
            const result = await this.touch(here, provider);
            assert(!result.isError, text(result));
        } catch (error) {
            here.wire.refused(403);
            if (this.adapter.stepsUp({ transport: this.transport, refreshing: provider.refreshing })) throw error;
            await this.leave(here);
            await this.wide();
            throw new Unsupported(`${error.message.trim()} (with both scopes from the start it works)`);
        }
        assert.match(here.wire.refused(403), /error="insufficient_scope"/);
        const after = scopes(provider);
        assert(after.includes(WRITE), `the second token has ${after}`);
        if (this.adapter.unites) assert(after.includes(READ), `the second token has ${after}`);
        await this.echo(here);
        await this.leave(here);
        assert.equal(provider.visits.length, 2, 'visits');
        return `${before} became ${after}`;
    }

    /** Asks for both scopes before anything else. */
    async wide() {
        const provider = new Provider();
        const asked = { serverUrl: this.url, scope: `${READ} ${WRITE}` };
        assert.equal(await this.adapter.auth(provider, asked), 'REDIRECT');
        const back = await provider.visit();
        await this.adapter.auth(provider, { ...asked, authorizationCode: back.get('code'), iss: back.get('iss') ?? undefined });
        const here = await this.enter(this.url, { provider });
        const result = await this.touch(here, provider);
        assert(!result.isError, text(result));
        assert.equal(provider.visits.length, 1, 'visits');
        await this.leave(here);
    }

    /** A token that the server issued. */
    async token(url) {
        const provider = new Provider();
        await this.leave(await this.enter(url, { provider }));
        return { token: provider.tokens().access_token, client: provider.clientInformation().client_id };
    }

    /** The SDK has nothing but this, and the server does not take it, or not for long. */
    async refusedWith(login, patience = 0) {
        const deadline = Date.now() + patience;
        for (;;) {
            try {
                await this.leave(await this.enter(this.url, login));
            } catch (error) {
                if (!error.wire) throw error;
                return error.wire.refused();
            }
            assert(Date.now() < deadline, 'the server took it');
            await sleep(500);
        }
    }

    checks = {
        'without a token': async () => {
            assert.doesNotMatch(await this.refusedWith({}), /error=/, 'who sends no token has made no error');
        },
        login: async () => {
            const provider = new Provider();
            const here = await this.enter(this.url, { provider });
            await this.echo(here);
            await this.leave(here);
            assert(provider.clientInformation()?.client_id, 'no client was registered');
            assert.equal(provider.visits.length, 1, 'visits');
            const asked = provider.visits[0].searchParams;
            assert.equal(asked.get('code_challenge_method'), 'S256');
            const bearer = `Bearer ${provider.tokens().access_token}`;
            const login = here.wire.mcp.findIndex(({ token }) => token);
            assert(here.wire.mcp.slice(0, login).every(({ status }) => status === 401), 'something was answered without a token');
            assert(here.wire.mcp.slice(login).every(({ token }) => token === bearer), 'a request came without the token');
            return `scope ${scopes(provider)}, resource ${asked.get('resource')}`;
        },
        'step-up': () => this.stepUp(new Provider({ refreshing: false })),
        'step-up with a refresh token': () => this.stepUp(new Provider()),
        refresh: async () => {
            const provider = new Provider();
            let here = await this.enter(this.brief, { provider });
            const before = provider.tokens();
            assert(before.refresh_token, 'there is no refresh token');
            await sleep((this.seconds + 1) * 1000);
            if (this.transport === 'sse') {
                // Its stream was the session, and went with the token.
                await this.leave(here);
                here = await this.enter(this.brief, { provider });
            }
            await this.echo(here);
            await this.leave(here);
            const after = provider.tokens();
            assert.notEqual(after.access_token, before.access_token, 'the token is still the same');
            assert.equal(provider.visits.length, 1, 'visits');
            assert.deepEqual(scopes(provider), (before.scope ?? '').split(' ').filter(Boolean), 'scopes');
            return after.refresh_token === before.refresh_token ? 'the refresh token stays' : 'the refresh token is a new one too';
        },
        DPoP: async () => {
            const provider = new Provider({ dpop: await this.adapter.dpop() });
            const here = await this.enter(this.url, { provider });
            await this.echo(here);
            await this.leave(here);
            const { access_token: token, token_type: type } = provider.tokens();
            assert.match(type, /^dpop$/i, 'token_type');
            const sent = here.wire.mcp.filter(request => request.token);
            assert(sent.every(request => request.token === `DPoP ${token}` && request.proof), 'a request came without a proof');
            assert.equal(new Set(sent.map(({ proof }) => proof)).size, sent.length, 'proofs');
            await this.refusedWith({ token });
            return `${sent.length} proofs; without one the token is refused`;
        },
        'client credentials': async () => {
            const { CLIENT_ID: clientId, CLIENT_SECRET: clientSecret } = process.env;
            assert(clientId && clientSecret, 'CLIENT_ID and CLIENT_SECRET are not set');
            const provider = this.adapter.clientCredentials({ clientId, clientSecret, issuer: new URL(this.url).origin });
            const here = await this.enter(this.url, { provider });
            await this.echo(here);
            await this.leave(here);
            return `scope ${scopes(provider)}`;
        },
        'a revoked token': async () => {
            const { token, client } = await this.token(this.url);
            const found = await fetch(new URL('/.well-known/oauth-authorization-server', this.url));
            const { revocation_endpoint: endpoint } = await found.json();
            const body = new URLSearchParams({ token, client_id: client });
            const revoked = await fetch(endpoint, { method: 'POST', body });
            assert.equal(revoked.status, 200, 'status of the revocation');
            assert.match(await this.refusedWith({ token }, REVOKED_MS), /error="invalid_token"/);
        },
        "another server's token": async () => {
            const { token } = await this.token(this.brief);
            assert.match(await this.refusedWith({ token }), /error="invalid_token"/);
        }
    };
}

/** Nothing that is told may have one of these in it. */
function withoutSecrets(told) {
    return told.replace(/Bearer [^\s,"]{20,}|([?&](?:code|state|code_challenge|access_token)=)[^&\s"']*/g, '$1…');
}

function within(milliseconds, work) {
    let timer;
    const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error('it takes too long')), milliseconds)));
    return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

export async function runLogins(adapter, args) {
    const [revision, url, brief, seconds] = args;
    if (args.length !== 4 || !URL.canParse(url) || !URL.canParse(brief) || !Number(seconds)) {
        console.error('usage: login.mjs REVISION URL URL_WITH_BRIEF_TOKENS SECONDS');
        process.exit(2);
    }
    const logins = new Logins(adapter, revision, url, brief, Number(seconds));
    let failed = false;
    for (const [name, check] of Object.entries(logins.checks)) {
        const told = { name, ok: true, unsupported: false, detail: '' };
        try {
            told.detail = (await within(PATIENCE_MS + logins.seconds * 1000, check())) ?? '';
        } catch (error) {
            told.unsupported = error instanceof Unsupported;
            told.ok = told.unsupported;
            told.detail = told.unsupported ? error.message : `${error.name}: ${error.message}`;
        }
        failed ||= !told.ok;
        console.log(JSON.stringify({ ...told, detail: withoutSecrets(told.detail) }));
    }
    process.exit(failed ? 1 : 0);
}
