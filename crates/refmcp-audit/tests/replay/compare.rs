//! What differs between recordings, and what does not count.

use refmcp_audit::replay::{Comparison, DifferenceKind, comparison_text};

use super::recorded;

fn text(comparison: &Comparison) -> String {
    comparison_text(comparison, "a.jsonl", "b.jsonl", |_, text| text.to_owned())
}

#[test]
fn ids_tokens_cursors_and_times_do_not_count() {
    let before = recorded(
        "stdio",
        &[
            r#"c {"id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":1}}}"#,
            r#"s {"method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#,
            r#"s {"id":1,"result":{"at":"2026-11-18T10:00:00Z","nextCursor":"x"}}"#,
        ],
    );
    let after = recorded(
        "websocket",
        &[
            r#"c {"id":"q","method":"tools/call","params":{"_meta":{"progressToken":"z"},"name":"a"}}"#,
            r#"s {"method":"notifications/progress","params":{"progressToken":"z","progress":1}}"#,
            r#"s {"id":"q","result":{"at":"2027-01-01T00:00:00.5+01:00","nextCursor":"y"}}"#,
        ],
    );
    let comparison = Comparison::between(&before, &after, &[]);
    assert!(comparison.is_same() && comparison.same == 1, "{comparison:?}");
    assert!(text(&comparison).ends_with("No difference: 1 request is the same.\n"), "{}", text(&comparison));
}

#[test]
fn what_differs_is_shown_by_request_with_pointers() {
    let before = recorded(
        "stdio",
        &[
            r#"c {"id":1,"method":"tools/call","params":{"name":"a"}}"#,
            r#"s {"method":"notifications/message","params":{"data":"x"}}"#,
            r#"s {"id":1,"result":{"content":[{"text":"one\u001b[31m"}],"gone":1}}"#,
            r#"c {"id":2,"method":"ping"}"#,
            r#"s {"id":2,"result":{}}"#,
            r#"c {"id":3,"method":"prompts/list"}"#,
            r#"s {"id":3,"result":{}}"#,
        ],
    );
    let after = recorded(
        "stdio",
        &[
            r#"c {"id":2,"method":"ping"}"#,
            r#"s {"id":2,"result":{}}"#,
            r#"c {"id":1,"method":"tools/call","params":{"name":"a"}}"#,
            r#"s {"id":1,"result":{"content":[{"text":"two"}]}}"#,
            r#"c {"id":4,"method":"resources/list"}"#,
        ],
    );
    let comparison = Comparison::between(&before, &after, &[]);
    let kinds: Vec<_> = comparison.differences.iter().map(|it| (it.kind, it.message.as_str())).collect();
    assert_eq!(
        kinds,
        [
            (DifferenceKind::Changed, "response"),
            (DifferenceKind::Missing, "notifications/message"),
            (DifferenceKind::Missing, "prompts/list"),
            (DifferenceKind::Added, "resources/list"),
        ]
    );
    let text = text(&comparison);
    let first = "tools/call a: response changed from the server, lines 4 and 5\n  \
                 ~ /result/content/0/text: \"one\\u001b[31m\" -> \"two\"\n  - /result/gone: 1\n";
    assert!(text.starts_with(first) && !text.contains('\x1b'), "{text}");
    assert!(
        text.contains("4 messages differ: 1 changed, 2 missing, 1 added; 1 request is the same."),
        "{text}"
    );
    let ignored = ["/result/content/*/text".to_owned(), "/result/gone".to_owned()];
    assert_eq!(Comparison::between(&before, &after, &ignored).differences.len(), 3);
}
