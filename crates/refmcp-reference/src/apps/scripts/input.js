// Input and result: the arguments as they were given, partial ones before, and the result of the tool unchanged.
'use strict';

const given = app.check('APP-31', 'The arguments are those that the tool got');
const unchanged = app.check('APP-35', 'The result has its content, structuredContent and _meta unchanged');
const growing = app.check('APP-33', 'Partial arguments only have members that the complete ones have', { unused: true });
const partial = new Set();

app.start({
    onPartial: fragment => Object.keys(fragment ?? {}).forEach(name => partial.add(name)),
    onInput(complete) {
        const extra = [...partial].filter(name => !(name in complete));
        if (partial.size) growing.judge(extra.length === 0, `${extra} is not in the complete ones`);
    },
    onResult(result, input) {
        const data = result.structuredContent;
        const sorted = value => JSON.stringify(Object.entries(value ?? {}).sort(([a], [b]) => (a < b ? -1 : 1)));
        given.judge(!data || sorted(data.arguments) === sorted(input), `the tool got ${sorted(data?.arguments)}`);
        // The text says what else there is: older revisions have no structuredContent.
        const text = result.content?.[0]?.text ?? '';
        const missing = [
            ['content', text.startsWith('ui://refmcp/input')],
            ['structuredContent', !text.includes('structuredContent') || bridge.isObject(data?.arguments)],
            ['_meta', result._meta?.['refmcp/for-the-app'] === 'unchanged']
        ].filter(([, good]) => !good);
        unchanged.judge(missing.length === 0, `${missing.map(([name]) => name)} is missing or changed`);
    }
});
