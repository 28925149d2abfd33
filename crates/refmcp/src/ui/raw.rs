//! A terminal that hands over every key as it is pressed and shows none of them, for as long as this lives.

use std::io;

/// The terminal's settings from before.
#[cfg(unix)]
pub(super) struct RawMode<'a> {
    terminal: &'a std::os::fd::OwnedFd,
    before: rustix::termios::Termios,
}

#[cfg(unix)]
impl<'a> RawMode<'a> {
    /// Sets the terminal to hand over keys. Keys that would end the process are handed over too, since a process that
    /// ends like that leaves the terminal as it is now.
    pub(super) fn begin(terminal: &'a std::os::fd::OwnedFd) -> io::Result<Self> {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

        let before = tcgetattr(terminal)?;
        let mut keys = before.clone();
        keys.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        tcsetattr(terminal, OptionalActions::Drain, &keys)?;
        Ok(Self { terminal, before })
    }
}

#[cfg(unix)]
impl Drop for RawMode<'_> {
    fn drop(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};

        if let Err(fault) = tcsetattr(self.terminal, OptionalActions::Drain, &self.before) {
            tracing::warn!(%fault, "the terminal cannot be set back");
        }
    }
}

/// What is needed to switch a terminal.
#[cfg(unix)]
pub(super) type Switch = std::os::fd::OwnedFd;

/// Elsewhere, terminals are left as they are.
#[cfg(not(unix))]
pub(super) enum Switch {}

#[cfg(not(unix))]
pub(super) struct RawMode;

#[cfg(not(unix))]
impl RawMode {
    pub(super) fn begin(terminal: &Switch) -> io::Result<Self> {
        match *terminal {}
    }
}
