//! Log messages from server to client.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::{NotificationMeta, RequestMeta};

named_enum! {
    /// How severe a message is; the levels of syslog, least severe first.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum LogLevel {
        /// Details for finding faults.
        Debug = "debug",
        /// What is going on.
        Info = "info",
        /// Something worth a note.
        Notice = "notice",
        /// Something looks wrong.
        Warning = "warning",
        /// Something went wrong.
        Error = "error",
        /// A part has failed.
        Critical = "critical",
        /// Someone has to act at once.
        Alert = "alert",
        /// Nothing works.
        Emergency = "emergency",
    } else UnknownLogLevel = |name| UnknownLogLevel(name.to_owned())
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
