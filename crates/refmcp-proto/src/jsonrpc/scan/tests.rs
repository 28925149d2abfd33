//! What the scanner accepts, compared with serde_json, and what exactly it says of everything else.

use proptest::prelude::*;
use serde_json::Value;

use super::*;

/// A text of these pieces is JSON now and then, and often nearly.
const PIECES: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    " ",
    "\n",
    "\"",
    "\"a\"",
    "\"\\u0061\"",
    "\"b\\n\"",
    "\"\\ud83d\\ude00\"",
    "\"\\ud800\"",
    "\"\\udc00\\ud800\"",
    "\\",
    "\\u",
    "00e9",
    "\u{e9}",
    "\u{1f600}",
    "\u{7f}",
    "\u{0}",
    "\t",
    "\"plain text that is longer than eight bytes\"",
    "0",
    "-",
    "-0",
    "1.5",
    ".",
    "e",
    "E+7",
    "12",
    "true",
    "false",
    "null",
    "nul",
    "\"_\":",
    "\"a\":",
    "\"k\":{",
    "[[",
    "]]",
    "}}",
    "/",
];

/// JSON with anything in its strings, written with more escapes than are needed.
fn json() -> impl Strategy<Value = String> {
    let character = prop_oneof![
        any::<char>(),
        prop::sample::select(vec!['"', '\\', '\n', '\u{0}', '\u{1f}', '\u{7f}', '\u{80}', 'a', '\u{1f600}']),
    ];
    let string = prop::collection::vec((character, any::<bool>()), 0..20).prop_map(|characters| {
        let mut text = "\"".to_owned();
        for (character, is_escaped) in characters {
            if is_escaped || character < ' ' || character == '"' || character == '\\' {
                let units = &mut [0; 2];
                character.encode_utf16(units).iter().for_each(|unit| text += &format!("\\u{unit:04x}"));
            } else {
                text.push(character);
            }
        }
        text + "\""
    });
    let number = any::<f64>().prop_filter("finite", |number| number.is_finite());
    let leaf = prop_oneof![
        string.clone(),
        number.prop_map(|number| serde_json::to_string(&number).unwrap()),
        any::<i64>().prop_map(|number| number.to_string()),
        prop::sample::select(vec!["true", "false", "null", " {} ", "[ ]"]).prop_map(str::to_owned),
    ];
    leaf.prop_recursive(5, 60, 30, move |inner| {
        let members = prop::collection::vec((string.clone(), inner.clone()), 0..30);
        let objects = members.prop_map(|members| {
            let members = members.into_iter().map(|(key, value)| format!("{key} : {value}"));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        });
        prop_oneof![
            objects,
            prop::collection::vec(inner, 0..6).prop_map(|items| format!("[{}]", items.join(" ,"))),
        ]
    })
}

/// Whether this is accepted exactly if serde_json does so too, but for what is refused beyond JSON.
#[track_caller]
fn is_as_serde_json_reads_it(text: &str) {
    match (scan(text), serde_json::from_str::<Value>(text)) {
        (Ok(()), Ok(_)) | (Err(_), Err(_)) => {}
        (Ok(()), Err(error)) => assert!(error.to_string().contains("out of range"), "{text:?}: {error}"),
        (Err(error), Ok(_)) => assert!(
            matches!(
                error.what,
                ScanErrorKind::DuplicateKey(_) | ScanErrorKind::TooDeep(_) | ScanErrorKind::LongNumber
            ),
            "{text:?}: {error}"
        ),
    }
}

proptest! {
    #[test]
    fn texts_are_json_as_for_serde_json(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..12),
    ) {
        is_as_serde_json_reads_it(&pieces.concat());
    }

    #[test]
    fn changed_json_is_json_as_for_serde_json(
        text in json(), at in any::<prop::sample::Index>(), piece in prop::sample::select(PIECES),
    ) {
        is_as_serde_json_reads_it(&text);
        let at = text.char_indices().map(|(at, _)| at).nth(at.index(text.chars().count())).unwrap();
        is_as_serde_json_reads_it(&format!("{}{piece}{}", &text[..at], &text[at..]));
        is_as_serde_json_reads_it(&text[..at]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]

    #[test]
    fn members_are_those_of_serde_json(members in prop::collection::btree_map(any::<String>(), json(), 0..40)) {
        let text = members.iter().map(|(key, value)| format!("{}:{value}", Value::from(key.as_str())));
        let text = format!("{{{}}}", text.collect::<Vec<_>>().join(","));
        let mut found = Vec::new();
        let scanned = Scanner::new(&text, 64).members(|scanner, key| {
            found.push((key.to_owned(), scanner.value()?));
            Ok(())
        });
        if !matches!(&scanned, Err(error) if matches!(error.what, ScanErrorKind::DuplicateKey(_))) {
            prop_assert_eq!(scanned.map_err(|error| *error), Ok(&*text));
            let wanted: Vec<_> =
                members.iter().map(|(key, value)| (key.clone(), value.trim())).collect();
            prop_assert_eq!(found, wanted);
        }
    }
}

fn scan(text: &str) -> Result<(), ScanError> {
    let mut scanner = Scanner::new(text, 8);
    scanner.value().and_then(|_| scanner.end()).map_err(|error| *error)
}

#[test]
fn valid_json_is_accepted() {
    for text in [
        "null",
        " true ",
        "-0",
        "1.5e-7",
        "\"\\ud83d\\ude00\"",
        "[]",
        "{}",
        "[1,[2,[3]]]",
        r#"{"a":{"a":1},"b":[{"a":2}]}"#,
        "\"\u{7f}\"",
    ] {
        assert_eq!(scan(text), Ok(()), "{text}");
    }
}

#[test]
fn invalid_json_is_refused_at_the_right_byte() {
    let cases = [
        ("", 0, ScanErrorKind::Truncated),
        ("{\"a\":1,}", 7, ScanErrorKind::Expected("a string")),
        ("[1,]", 3, ScanErrorKind::Expected("a JSON value")),
        ("{\"a\":1,\"a\":2}", 7, ScanErrorKind::DuplicateKey("a".into())),
        ("{\"a\":1,\"\\u0061\":2}", 7, ScanErrorKind::DuplicateKey("a".into())),
        ("[\"\\ud800\"]", 2, ScanErrorKind::LoneSurrogate),
        ("[\"\\ud800\\u0061\"]", 2, ScanErrorKind::LoneSurrogate),
        ("[\"\\udc00\"]", 2, ScanErrorKind::LoneSurrogate),
        ("[\"\\x\"]", 2, ScanErrorKind::Expected("a known escape")),
        ("01", 1, ScanErrorKind::Trailing),
        ("1.", 2, ScanErrorKind::Truncated),
        ("+1", 0, ScanErrorKind::Expected("a JSON value")),
        ("tru", 3, ScanErrorKind::Truncated),
        ("[[[[[[[[[", 9, ScanErrorKind::TooDeep(8)),
        ("{} {}", 3, ScanErrorKind::Trailing),
        ("\"a\nb\"", 2, ScanErrorKind::Expected("no control character in a string")),
    ];
    for (text, at, what) in cases {
        assert_eq!(scan(text), Err(ScanError { at, what }), "{text}");
    }
    assert!(matches!(scan(&"9".repeat(30_000)), Err(ScanError { what: ScanErrorKind::LongNumber, .. })));
}

#[test]
fn plain_characters_are_counted_at_every_offset() {
    for end in [b'"', b'\\', 0, 0x1f, b'\n'] {
        for offset in 0..40 {
            for filler in [b' ', b'!', b'#', b'[', b']', 0x7f, 0x80, 0xa2, 0xdc, 0xff] {
                let mut bytes = vec![filler; 40];
                assert_eq!(plain_length(&bytes), 40, "{filler}");
                bytes[offset] = end;
                assert_eq!(plain_length(&bytes), offset, "{filler} {end}");
                bytes[39] = b'"';
                assert_eq!(plain_length(&bytes), offset, "{filler} {end}");
            }
        }
    }
}

#[test]
fn keys_are_told_apart_in_objects_of_any_number_of_members() {
    for count in 1..60 {
        let members: Vec<String> = (0..count).map(|n| format!("\"k{n}\":{{\"k0\":{n}}}")).collect();
        let members = members.join(",");
        for outer in ["", "\"\\u006f1\":1,\"o2\":[],"] {
            assert_eq!(scan(&format!("{{{outer}\"in\":{{{members}}},\"k0\":0}}")), Ok(()), "{count}");
            for known in [0, count / 2, count - 1] {
                let twice = format!("{{{outer}\"in\":{{{members},\"\\u006b{known}\":1}}}}");
                let what = ScanErrorKind::DuplicateKey(format!("k{known}"));
                assert_eq!(scan(&twice).map_err(|error| error.what), Err(what), "{count}");
            }
        }
    }
}

#[test]
fn many_keys_are_no_quadratic_work() {
    let members: Vec<String> = (0..100_000).map(|n| format!("\"k{n}\":{n}")).collect();
    assert_eq!(scan(&format!("{{{}}}", members.join(","))), Ok(()));
    let twice = format!("{{{},\"k99999\":1}}", members.join(","));
    assert!(matches!(scan(&twice), Err(ScanError { what: ScanErrorKind::DuplicateKey(_), .. })));
}

#[test]
fn every_prefix_is_refused() {
    let text = r#"{"a":[1.5,-2e3,"\u00e9\n",true,null],"b":{"c":false}}"#;
    for end in 0..text.len() {
        if text.is_char_boundary(end) {
            assert!(scan(&text[..end]).is_err(), "{}", &text[..end]);
        }
    }
}
