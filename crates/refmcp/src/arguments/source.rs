//! Values from files and standard input: `@FILE` and `@-`.

use std::fs::File;
use std::io::{self, Read};

/// The most bytes of one file.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Reads the values that are not on the command line.
pub(crate) struct ValueSource<'a> {
    stdin: &'a mut dyn Read,
    stdin_is_read: bool,
}

impl<'a> ValueSource<'a> {
    /// Files of this machine, and this as standard input.
    pub(crate) fn new(stdin: &'a mut dyn Read) -> Self {
        Self { stdin, stdin_is_read: false }
    }

    /// The text that a value stands for: `@FILE` and `@-` for what is there, `@@…` for a text that begins with `@`,
    /// anything else for itself.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is too large, or is no text.
    pub(super) fn text(&mut self, value: &str) -> Result<String, String> {
        match value.strip_prefix('@') {
            None => Ok(value.to_owned()),
            Some(rest) if rest.starts_with('@') => Ok(rest.to_owned()),
            Some("-") => {
                if std::mem::replace(&mut self.stdin_is_read, true) {
                    return Err("standard input can be read only once".to_owned());
                }
                bounded(self.stdin).map_err(|error| format!("cannot read standard input: {error}"))
            }
            Some("") => Err("`@` needs the name of a file after it".to_owned()),
            Some(path) => File::open(path)
                .and_then(|mut file| bounded(&mut file))
                .map_err(|error| format!("cannot read the file {path:?}: {error}")),
        }
    }
}

fn bounded(input: &mut dyn Read) -> io::Result<String> {
    let mut text = String::new();
    input.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(io::Error::other(format!("longer than {MAX_FILE_BYTES} bytes")));
    }
    Ok(text)
}
