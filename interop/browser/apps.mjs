// The apps of the reference server in a browser: in a host of ours, in that host with its rules broken one by one, and in the
// official implementation of a host.
//
// usage: node apps.mjs MCP_URL [SCREENSHOT_FOLDER]
//
// Each app says in its page what it thinks of its host; that is read and compared with what the host is known to do. Prints a
// line of JSON about each check, `{"name", "ok", "detail"}`. Exit code 0: every check passed; 1: one did not; 2: wrong arguments.

import { isDeepStrictEqual } from 'node:util';
import { launch } from './chromium.mjs';
import { serveFiles } from './apps/files.mjs';
import { APPS, FAULTS } from './apps/cases.mjs';

/** For one wait, and for everything. */
const PATIENCE = 12_000;
const LIMIT = 150_000;

const [mcpUrl, screenshots] = process.argv.slice(2);
if (!mcpUrl || !URL.canParse(mcpUrl)) {
    console.error('usage: node apps.mjs MCP_URL [SCREENSHOT_FOLDER]');
    process.exit(2);
}
setTimeout(() => {
    console.error(`not done after ${LIMIT} ms`);
    process.exit(1);
}, LIMIT).unref();

let failed = 0;

/** Runs a check: it fails by throwing. */
async function check(name, work) {
    let ok = true;
    let detail = '';
    try {
        detail = (await work()) ?? '';
    } catch (error) {
        ok = false;
        failed += 1;
        detail = String(error.message ?? error).replace(/\u001b\[\d+m/g, '');
    }
    console.log(JSON.stringify({ name, ok, detail }));
}

function ensure(condition, otherwise) {
    if (!condition) throw new Error(otherwise);
}

/** The frame of the app: the innermost one. */
async function viewOf(page) {
    const until = Date.now() + PATIENCE;
    for (;;) {
        for (const frame of page.frames().slice(1)) {
            const found = await frame.evaluate(() => document.getElementById('verdict') !== null).catch(() => false);
            if (found) return frame;
        }
        ensure(Date.now() < until, 'the app does not appear');
        await page.waitForTimeout(50);
    }
}

const readVerdict = view => view.evaluate(() => JSON.parse(document.getElementById('verdict').textContent));

/** The verdict once no check is open, or as it is after a while. */
async function settled(view, patience = PATIENCE) {
    const until = Date.now() + patience;
    for (;;) {
        const verdict = await readVerdict(view);
        if (verdict.verdict === 'kept' || Date.now() > until) return verdict;
        if (verdict.verdict === 'broken' && !verdict.checks.some(({ state }) => state === 'open')) return verdict;
        await new Promise(resolve => setTimeout(resolve, 50));
    }
}

/** Calls a tool in a page that is a host, and gives what is needed to look at its app. */
async function show(browser, html, { tool, args = {}, faults = [] }, work) {
    const context = await browser.newContext({ colorScheme: 'light' });
    context.setDefaultTimeout(PATIENCE);
    const page = await context.newPage();
    const errors = [];
    page.on('pageerror', error => errors.push(error.message));
    try {
        await page.goto(`${files.hostOrigin}/${html}`);
        await page.waitForFunction(() => typeof window.openApp === 'function').catch(error => {
            throw new Error([error.message, ...errors].join('; '));
        });
        const options = { mcpUrl, sandboxUrl: `${files.sandboxOrigin}/sandbox.html`, name: tool, args, faults };
        await page.evaluate(options => window.openApp(options), options);
        return await work(page, await viewOf(page), errors);
    } finally {
        await context.close();
    }
}

const describe = ({ checks }) =>
    checks
        .filter(({ state }) => state === 'broken' || state === 'open')
        .map(({ rule, text, state, detail }) => `${rule} ${state}: ${text} (${detail})`)
        .join('; ');

/** An app in a host that keeps the rules: the app finds nothing else. */
function keeps(browser, html, app) {
    return show(browser, html, app, async (page, view, errors) => {
        await app.act?.(page, view);
        const verdict = await settled(view);
        ensure(verdict.verdict === 'kept', describe(verdict));
        const unused = new Set(verdict.checks.filter(({ state }) => state === 'unused').map(({ rule }) => rule));
        const expected = app.unused?.[html] ?? app.unused?.any ?? [];
        ensure(isDeepStrictEqual([...unused].sort(), [...expected].sort()), `not used: ${[...unused]}`);
        await app.look?.(page, view, verdict);
        ensure(errors.length === 0, errors.join('; '));
        if (screenshots) await page.screenshot({ path: `${screenshots}/${html}-${app.tool}.png`, fullPage: true });
        return `${verdict.checks.filter(({ state }) => state === 'kept').length} rules kept`;
    });
}

/** An app in a host that breaks a rule: the app names that rule, and no other. */
function names(browser, { fault, rules, html = 'host.html', ...app }) {
    return show(browser, html, { ...app, faults: [fault] }, async (page, view) => {
        await app.act?.(page, view);
        const until = Date.now() + PATIENCE;
        let broken;
        do {
            const { checks } = await readVerdict(view);
            broken = [...new Set(checks.filter(({ state }) => state === 'broken').map(({ rule }) => rule))].sort();
            await page.waitForTimeout(50);
        } while (!isDeepStrictEqual(broken, rules) && Date.now() < until);
        ensure(isDeepStrictEqual(broken, rules), `the app names ${broken.join(', ') || 'nothing'}, not ${rules.join(', ')}`);
        return rules.join(', ');
    });
}

const files = await serveFiles();
const browser = await launch();
try {
    for (const app of APPS) await check(`${app.tool} in our host`, () => keeps(browser, 'host.html', app));
    for (const app of APPS) await check(`${app.tool} in the official host`, () => keeps(browser, 'official.html', app));
    for (const fault of FAULTS) await check(`a host with ${fault.fault} is named by ${fault.tool}`, () => names(browser, fault));
} finally {
    await browser.close();
    files.close();
}
process.exit(failed === 0 ? 0 : 1);
