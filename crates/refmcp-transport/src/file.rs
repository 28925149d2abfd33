//! Reading files of limited size that are not ours: a pipe would block, and a device has no end.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Opens a regular file for reading.
///
/// # Errors
/// It cannot be opened, or is no regular file ([`io::ErrorKind::InvalidInput`]).
pub fn open_regular(path: &Path) -> io::Result<File> {
    // Before it is opened: opening a pipe waits for a writer.
    if path.metadata()?.is_file() {
        return File::open(path);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file"))
}

/// Reads everything from `input`, which has at most `max` bytes.
///
/// # Errors
/// It cannot be read, or is longer ([`io::ErrorKind::FileTooLarge`]).
pub fn read_limited(input: impl Read, max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("longer than {max} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_up_to_a_limit_are_read() {
        let not_a_file = open_regular(Path::new("/")).unwrap_err();
        assert_eq!(not_a_file.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(open_regular(Path::new("/no/such/file")).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(read_limited(&b"abc"[..], 3).unwrap(), b"abc");
        assert_eq!(read_limited(io::repeat(0), 3).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }
}
