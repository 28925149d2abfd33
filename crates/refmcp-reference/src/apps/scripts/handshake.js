// Handshake: what the host says of itself, and how it answers messages that are unusual or wrong.
'use strict';

const ping = app.check('APP-52', 'ping is answered with {}');
const textId = app.check('APP-52', 'A request whose id is a text is answered with that id');
const unknown = app.check('APP-52', 'An unknown method is answered with error -32601');
const malformed = app.check('APP-52', 'ui/open-link without a url is refused');

app.start({
    async onReady() {
        const answers = (rule, work, good) =>
            work.then(
                result => rule.judge(good(result), `the answer is ${JSON.stringify(result)}`),
                error => rule.fail(error.message)
            );
        const refuses = (rule, work, good) =>
            work.then(
                result => rule.fail(`it was answered with ${JSON.stringify(result)}`),
                error => rule.judge(good(error), error.message)
            );
        await Promise.all([
            answers(ping, bridge.request('ping'), result => Object.keys(result).every(name => name === '_meta')),
            answers(textId, bridge.request('ping', {}, { id: 'text-1' }), () => true),
            refuses(unknown, bridge.request('refmcp/unknown'), error => error.code === -32601),
            refuses(malformed, bridge.request('ui/open-link', {}), error => error instanceof bridge.HostError)
        ]);
    }
});
