//! Sealed request states and cursors: only the text that was sealed opens, and only for its purpose.

use refmcp_proto::engine::Sealer;
use refmcp_server::StateSealer;

use crate::input::Input;

/// A content, a purpose, and either a change to the sealed text or a text to open.
pub fn run(bytes: &[u8]) {
    let sealer = StateSealer::with_key([7; 32]);
    let mut input = Input::new(bytes);
    let change = input.byte();
    let (purpose, content) = (input.line(), input.line());
    let sealed = sealer.seal(purpose, content);
    assert_eq!(sealer.open(purpose, &sealed).as_deref(), Some(content), "it opens");
    assert_eq!(sealer.open(&[purpose, b"."].concat(), &sealed), None, "another purpose");
    assert_eq!(StateSealer::with_key([8; 32]).open(purpose, &sealed), None, "another key");
    let changed = match change % 4 {
        0 => changed_character(&mut input, &sealed),
        1 => sealed[..usize::from(input.byte()) % sealed.len()].to_owned(),
        2 => format!("{sealed}{}", input.text()),
        _ => input.text(),
    };
    if changed != sealed {
        assert_eq!(sealer.open(purpose, &changed), None, "{changed} opens, as {sealed} does");
    }
}

fn changed_character(input: &mut Input<'_>, sealed: &str) -> String {
    let mut bytes = sealed.as_bytes().to_vec();
    let at = usize::from(input.byte()) % bytes.len();
    bytes[at] = input.byte();
    String::from_utf8_lossy(&bytes).into_owned()
}
