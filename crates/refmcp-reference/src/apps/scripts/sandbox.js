// Sandbox: what the page declares works, and everything else is blocked.
'use strict';

const apart = app.check('APP-21', 'The page cannot reach into the host');
const origin = app.check('APP-22', 'The page has another origin than the host');
const closed = app.check('APP-19', 'Connections to undeclared origins are blocked');
const open = app.check('APP-17', 'Connections to the declared origin are not blocked');
const images = app.check('APP-19', 'Images of undeclared origins are blocked');
const frames = app.check('APP-26', 'Nested frames are blocked');
const objects = app.check('APP-26', 'Nested objects are blocked');
const base = app.check('APP-26', 'The base URI cannot be moved to another origin');
const granted = app.check('APP-51', 'What hostCapabilities.sandbox grants can be used', { unused: true });
const DECLARED = 'https://declared.example';
const UNDECLARED = 'https://undeclared.example';
const blocked = new Set();
document.addEventListener('securitypolicyviolation', ({ effectiveDirective, blockedURI }) => {
    blocked.add(`${effectiveDirective} ${blockedURI}`);
});
const pause = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds));
const wasBlocked = (directive, uri) => [...blocked].some(entry => entry.startsWith(`${directive} ${uri}`));

function reach() {
    for (const [name, frame] of [['parent', window.parent], ['top', window.top]]) {
        try {
            void frame.document.body;
            return apart.fail(`the document of ${name} is open`);
        } catch (error) {
            if (error.name !== 'SecurityError') return apart.fail(String(error));
        }
    }
    apart.keep();
}

/** Adds an element that loads something, for a while. */
async function attempt(kind, members) {
    const element = Object.assign(document.createElement(kind), members);
    // What is not rendered at all may not be loaded either.
    element.style.cssText = 'position: absolute; width: 1px; height: 1px; border: 0';
    document.body.append(element);
    await pause(300);
    element.remove();
}

app.start({
    async onReady({ sandbox }) {
        reach();
        let hosts;
        try {
            hosts = window.top.location.origin;
        } catch {
            hosts = undefined;
        }
        origin.judge(hosts === undefined, `both are at ${hosts}`);
        await Promise.allSettled([fetch(`${UNDECLARED}/`), fetch(`${DECLARED}/`)]);
        await attempt('img', { src: `${UNDECLARED}/image.png`, alt: '' });
        await attempt('iframe', { src: `${UNDECLARED}/`, title: 'A frame that is to be blocked' });
        await attempt('object', { data: `${UNDECLARED}/` });
        const moved = Object.assign(document.createElement('base'), { href: `${UNDECLARED}/` });
        document.head.append(moved);
        base.judge(!document.baseURI.startsWith(UNDECLARED), `it is ${document.baseURI}`);
        moved.remove();
        await pause(300);
        closed.judge(wasBlocked('connect-src', UNDECLARED), 'no policy kept the page from connecting');
        open.judge(!wasBlocked('connect-src', DECLARED), 'the policy lacks what csp.connectDomains declares');
        images.judge(wasBlocked('img-src', UNDECLARED), 'no policy kept the page from loading it');
        frames.judge(wasBlocked('frame-src', UNDECLARED), 'no policy kept the page from framing it');
        objects.judge(wasBlocked('object-src', UNDECLARED), 'no policy kept the page from loading it');
        if (sandbox?.permissions?.clipboardWrite && document.featurePolicy) {
            granted.judge(document.featurePolicy.allowsFeature('clipboard-write'), 'the frame has no allow="clipboard-write"');
        }
    }
});
