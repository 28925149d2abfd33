// Cancellation: the tool takes long; cancel it in the host, or wait for its result.
'use strict';

const ended = app.check('APP-36', 'The call ends with a cancellation or a result; cancel it in the host');

app.start({
    onResult: () => ended.keep('with a result'),
    onCancelled: ({ reason }) => ended.keep(`cancelled: ${reason ?? 'no reason'}`)
});
