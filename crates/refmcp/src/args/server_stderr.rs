//! What is done with the standard error of servers that are started.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

/// Where a server's standard error goes. Why a server ended is told in any case, with the last that it wrote.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum ServerStderr {
    /// To our own.
    #[default]
    Show,
    /// Nowhere.
    Hide,
    /// To the end of this file.
    File(PathBuf),
}

impl FromStr for ServerStderr {
    type Err = Infallible;

    /// A file that is called like one of the words is written with its folder: `./hide`.
    fn from_str(word: &str) -> Result<Self, Infallible> {
        Ok(match word {
            "show" => Self::Show,
            "hide" => Self::Hide,
            file => Self::File(file.into()),
        })
    }
}
