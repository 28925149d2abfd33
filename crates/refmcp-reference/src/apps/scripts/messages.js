// Messages: what an app asks of the person and the model, each by a button. The host may refuse, and says so.
'use strict';

const message = app.check('APP-49', 'ui/message takes a list of content blocks', { unused: true });
const text = app.check('APP-50', 'ui/update-model-context takes content', { unused: true });
const data = app.check('APP-50', 'ui/update-model-context takes structuredContent, which replaces what was there', { unused: true });
const link = app.check('APP-48', 'ui/open-link opens or is refused', { unused: true });
const dangerous = app.check('APP-48', 'ui/open-link refuses javascript:', { unused: true });
const download = app.check('APP-54', 'ui/download-file saves or is refused', { unused: true });

app.start({
    onReady({ openLinks, downloadFile, logging }) {
        const block = said => [{ type: 'text', text: said }];
        app.action('Send a message', [message], () => app.ask(message, 'ui/message', { role: 'user', content: block('A message of the app.') }));
        app.action('Update the context of the model', [text, data], async () => {
            await app.ask(text, 'ui/update-model-context', { content: block('The app was here.') });
            await app.ask(data, 'ui/update-model-context', { structuredContent: { app: 'messages', step: 2 } });
        });
        if (openLinks) {
            app.action('Open a link', [link], () => app.ask(link, 'ui/open-link', { url: 'https://app.example/' }));
            app.action('Open a link that runs a script', [dangerous], async () => {
                try {
                    const result = await bridge.request('ui/open-link', { url: 'javascript:alert(1)' });
                    dangerous.judge(result.isError === true, 'the host opened it');
                } catch (error) {
                    dangerous.judge(error instanceof bridge.HostError, error.message);
                }
            });
        }
        if (downloadFile) {
            const resource = { uri: 'file:///note.txt', mimeType: 'text/plain', text: 'A note of the app.\n' };
            app.action('Download a file', [download], () => app.ask(download, 'ui/download-file', { contents: [{ type: 'resource', resource }] }));
        }
        if (logging) {
            const log = { level: 'info', logger: 'refmcp', data: 'A log message of the app.' };
            app.action('Write to the log', [], async () => bridge.notify('notifications/message', log));
        }
    }
});
