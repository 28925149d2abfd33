// Display: modes, size and theme. The host says which mode is set, follows the size, and tells of changes.
'use strict';

const offered = app.check('APP-46', 'A mode that the host offers is set, or the one that stays is named');
const other = app.check('APP-46', 'For a mode that is not available the one that stays is named');
const undeclared = app.check('APP-45', 'The host sets no mode that the app has not declared', { unused: true });
const agrees = app.check('APP-47', 'host-context-changed names the mode that was set', { unused: true });
const size = app.check('APP-42', 'The frame follows the size of the content where the host leaves it to the app');
const theme = app.check('APP-47', 'A change of the theme arrives', { unused: true });
const DECLARED = ['inline', 'fullscreen'];
let mode;
const pause = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds));

async function set(rule, wanted, good) {
    try {
        const { mode: result } = await bridge.request('ui/request-display-mode', { mode: wanted });
        if (!app.MODES.includes(result)) return rule.fail(`${wanted}: the mode is ${JSON.stringify(result)}`);
        if (!DECLARED.includes(result)) undeclared.fail(`${wanted}: the host set ${result}`);
        rule.judge(good(result), `${wanted} was answered with ${result}, and ${mode} was set`);
        mode = result;
    } catch (error) {
        rule.fail(`${wanted}: ${error.message}`);
    }
}

/** Makes the content higher and looks whether the frame grows with it. */
async function grow({ containerDimensions: room = {} }) {
    if ('height' in room) return size.skip('the host has fixed the height');
    const ADDED = 120;
    const limit = room.maxHeight ?? Infinity;
    const box = document.createElement('div');
    box.style.height = `${ADDED}px`;
    document.body.append(box);
    // The verdict is a part of the content, and changes its size.
    const wanted = () => Math.min(Math.ceil(document.body.getBoundingClientRect().height), limit);
    const follows = () => window.innerHeight + 8 >= wanted();
    const until = performance.now() + 3000;
    while (!follows() && performance.now() < until) await pause(50);
    size.judge(follows(), `the content is ${wanted()} px high and the frame ${window.innerHeight}`);
    box.remove();
}

app.start({
    capabilities: { availableDisplayModes: DECLARED },
    onContext(changes) {
        if (changes.theme) theme.judge(app.context.theme === changes.theme, `it is ${changes.theme}`);
        if (!changes.displayMode) return;
        if (!DECLARED.includes(changes.displayMode)) undeclared.fail(`the host set ${changes.displayMode}`);
        mode = changes.displayMode;
        agrees.keep(mode);
    },
    async onReady(capabilities, context) {
        mode = context.displayMode ?? 'inline';
        await grow(context);
        const available = context.availableDisplayModes ?? [mode];
        const usable = DECLARED.filter(wanted => available.includes(wanted));
        const before = mode;
        for (const wanted of usable.filter(wanted => wanted !== before).concat(before)) {
            await set(offered, wanted, result => result === wanted || result === mode);
        }
        if (usable.length === 0) offered.skip('the host offers none');
        const absent = DECLARED.find(wanted => !available.includes(wanted));
        if (absent) await set(other, absent, result => result !== absent);
        else other.skip('the host offers all');
        await set(undeclared, 'pip', result => DECLARED.includes(result));
    }
});
