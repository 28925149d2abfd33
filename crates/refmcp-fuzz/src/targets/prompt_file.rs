//! Prompt files: any text is a prompt or a fault with its line, and a prompt that is offered has the arguments it uses.

use refmcp_reference::parse_prompt_file;

/// The bytes are a file.
pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match parse_prompt_file("prompt", &text) {
        Ok(prompt) => assert_eq!(prompt.name(), "prompt"),
        Err(error) => {
            assert!(!error.is_empty());
            // A fault of a line names one that the file has, or the end of it.
            if let Some(line) = error.strip_prefix("line ").and_then(|rest| rest.split(':').next()) {
                let line: usize = line.parse().expect("a number");
                // YAML ends a line with CR alone as well.
                let lines = text.matches(['\n', '\r']).count() + 1;
                assert!((1..=lines + 1).contains(&line), "{error}: the file has {lines} lines");
            }
        }
    }
}
