//! URI templates: expansion and matching agree.

use std::collections::BTreeMap;

use refmcp_proto::uri_template::{UriTemplate, expand, variables};

use crate::input::Input;

/// A template and a URI as they are written, then a template made of parts with values for it.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let (template, uri) = (input.text(), input.text());
    if let Ok(parsed) = UriTemplate::parse(&template) {
        let names: Vec<&str> = parsed.names().collect();
        let known = variables(&template);
        assert!(known.iter().map(|variable| variable.name.as_str()).eq(names.iter().copied()));
        if let Some(values) = parsed.matches(&uri) {
            assert!(values.keys().map(String::as_str).all(|name| names.contains(&name)));
            assert_eq!(values.len(), names.len());
        }
    }
    let any = BTreeMap::from(["a", "x"].map(|name| (name.to_owned(), uri.clone())));
    let _: Result<String, _> = expand(&template, &any);
    round_trip(&mut input);
}

/// Values that do not contain the text behind them are found again.
fn round_trip(input: &mut Input<'_>) {
    const NAMES: [&str; 4] = ["a", "b", "c", "d"];
    const TEXTS: [&str; 5] = ["/", "/x/", "?q=", "#", "--"];
    let mut template = format!("test://{}", input.pick(&["", "h/", "h/%41/"]));
    let mut values = BTreeMap::new();
    let mut apart = true;
    for (at, name) in NAMES.iter().enumerate().take(1 + input.below(NAMES.len())) {
        let reserved = input.flag();
        let (then, value) = (input.pick(&TEXTS), input.text());
        if at > 0 {
            template.push_str(then);
        }
        template.push_str(&if reserved { format!("{{+{name}}}") } else { format!("{{{name}}}") });
        let before = |text: &str| value.contains(text) || text.starts_with('-') && value.contains('-');
        apart &= !value.is_empty() && !TEXTS.iter().any(|text| before(text));
        values.insert((*name).to_owned(), value);
    }
    let parsed = UriTemplate::parse(&template).expect("a template of ours");
    let Ok(uri) = expand(&template, &values) else { return };
    let found = parsed.matches(&uri);
    if apart && uri.len() <= 8 << 10 {
        assert_eq!(found.as_ref(), Some(&values), "{template} as {uri}");
    } else if let Some(found) = found {
        // Other values are as good if they make the template into the same URI again, but for what is encoded in it.
        // A slash that was encoded can lead out of the template without.
        let Ok(again) = expand(&template, &found) else { return };
        assert_eq!(decoded(&again), decoded(&uri), "{template} by {found:?}");
    }
}

fn decoded(uri: &str) -> Vec<u8> {
    let mut parts = uri.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2).expect("two digits");
        bytes.push(u8::from_str_radix(digits, 16).expect("a number"));
        bytes.extend_from_slice(rest.as_bytes());
    }
    bytes
}
