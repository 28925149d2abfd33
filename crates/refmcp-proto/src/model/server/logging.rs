//! Log messages from server to client.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::{NotificationMeta, RequestMeta};

/// How severe a message is; the levels of syslog, least severe first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Details for finding faults.
    Debug,
    /// What is going on.
    Info,
    /// Something worth a note.
    Notice,
    /// Something looks wrong.
    Warning,
    /// Something went wrong.
    Error,
    /// A part has failed.
    Critical,
    /// Someone has to act at once.
    Alert,
    /// Nothing works.
    Emergency,
}

impl LogLevel {
    /// All levels, least severe first.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for LogLevel {
    type Err = UnknownLogLevel;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|level| level.as_str() == name)
            .ok_or_else(|| UnknownLogLevel(name.to_owned()))
    }
}

/// A name that is no log level.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no log level")]
pub struct UnknownLogLevel(pub String);

json_object! {
    /// Parameters of `notifications/message`.
    pub struct LogParams {
        /// How severe it is.
        level: LogLevel,
        /// Which part of the server says it.
        logger?: String,
        /// What it says: text or any other JSON value.
        data: Value,
        _meta: NotificationMeta,
        /// A message.
        fn new,
    } without Default

    /// Parameters of `logging/setLevel` (older revisions only).
    pub struct SetLevelParams {
        /// The least severe message the client wants.
        level: LogLevel,
        _meta: RequestMeta,
    } without Default
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_ordered_and_have_one_name() {
        assert!(LogLevel::ALL.is_sorted());
        assert!(LogLevel::Debug < LogLevel::Emergency);
        for level in LogLevel::ALL {
            assert_eq!(serde_json::to_value(level).unwrap(), level.to_string());
            assert_eq!(level.as_str().parse(), Ok(level));
        }
        assert_eq!("loud".parse::<LogLevel>().unwrap_err().to_string(), "\"loud\" is no log level");
    }
}
