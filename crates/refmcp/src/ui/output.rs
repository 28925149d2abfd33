//! Standard output. A reader that leaves has read enough, and that is no fault.

use std::io::{self, Write};

/// Writes to standard output.
pub(crate) fn print(bytes: &[u8]) -> io::Result<()> {
    write_wanted(&mut io::stdout().lock(), bytes)
}

fn write_wanted(output: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    match output.write_all(bytes).and_then(|()| output.flush()) {
        Err(fault) if fault.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Failing(io::ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn only_a_reader_who_left_is_no_fault() {
        assert!(write_wanted(&mut Failing(io::ErrorKind::BrokenPipe), b"x").is_ok());
        assert!(write_wanted(&mut Failing(io::ErrorKind::StorageFull), b"x").is_err());
    }
}
