// The verdict of an app on its host: checks, each kept, broken, open or not used, in the page and as JSON in #verdict.
'use strict';

const verdict = (() => {
    const SIGNS = { kept: '✓ kept', broken: '✗ broken', open: '… open', unused: '– not used' };
    const checks = [];
    let name = '';

    /** What the checks come to: open ones may still be decided, unused ones need not be. */
    function overall() {
        if (checks.some(check => check.state === 'broken')) return 'broken';
        return checks.some(check => check.state === 'open') ? 'open' : 'kept';
    }

    function cell(kind, text, className) {
        const made = document.createElement(kind);
        made.textContent = text;
        if (className) made.className = className;
        return made;
    }

    function show() {
        const state = overall();
        document.documentElement.dataset.verdict = state;
        const report = checks.map(({ rule, text, state, detail }) => ({ rule, text, state, detail }));
        document.getElementById('verdict').textContent = JSON.stringify({ app: name, verdict: state, checks: report });
        const count = wanted => checks.filter(check => check.state === wanted).length;
        const summary = `${count('kept')} kept, ${count('broken')} broken, ${count('open')} open`;
        const line = document.getElementById('summary');
        // What did not change is not read out again.
        if (line.textContent !== summary) line.textContent = summary;
        line.className = state;
        const rows = checks.map(check => {
            const row = document.createElement('tr');
            const rule = cell('th', check.rule);
            rule.scope = 'row';
            const text = check.detail ? `${check.text} (${check.detail})` : check.text;
            row.append(rule, cell('td', SIGNS[check.state], check.state), cell('td', text));
            return row;
        });
        document.querySelector('#checks tbody').replaceChildren(...rows);
    }

    /**
     * A check of a rule. It is open until it is kept or broken; one that nothing may ever decide begins as unused. A rule that
     * was broken stays broken.
     */
    function check(rule, text, { unused = false } = {}) {
        const entry = { rule, text, state: unused ? 'unused' : 'open', detail: '' };
        const become = (state, detail) => {
            if (entry.state === 'broken') return;
            Object.assign(entry, { state, detail: detail ?? '' });
            show();
        };
        checks.push(entry);
        show();
        return {
            keep: detail => become('kept', detail),
            fail: detail => become('broken', detail),
            skip: detail => become('unused', detail),
            expect: () => entry.state === 'unused' && become('open'),
            /** Decides by a condition. */
            judge: (good, detail) => become(good ? 'kept' : 'broken', good ? '' : detail),
            get state() {
                return entry.state;
            }
        };
    }

    return { check, show, begin: of => (name = of) };
})();
