// Teardown: the host asks before it removes the page, waits for the answer, and sends nothing new.
'use strict';

const asked = app.check('APP-37', 'The host sends ui/resource-teardown before it removes the page; close the app');
const waits = app.check('APP-37', 'The host waits for the answer', { unused: true });

app.start({
    onReady() {
        app.action('Ask the host to close the app', [], async () => bridge.notify('ui/notifications/request-teardown'));
    },
    async onTeardown() {
        asked.keep();
        waits.expect();
        // A page that is removed meanwhile says nothing any more.
        await new Promise(resolve => setTimeout(resolve, 300));
        waits.keep();
    }
});
