//! Notifications of a server, and the parameters of those that belong to no feature: cancellation, progress.

use serde::ser::{Serialize, SerializeStruct, Serializer};
use serde_json::Number;

use super::number::{number_or_zero, plain_number};
use crate::jsonrpc::{ProgressToken, RequestId};
use crate::model::{
    AcknowledgedParams, ElicitationCompleteParams, Extra, JsonObject, LogParams, NotificationMeta,
    TaskNotificationParams,
};
use crate::revision::NotificationMethod;

/// Writes the union of all notifications of a server from a table of their parameters; [`NotificationMethod`] has their
/// methods under the same names.
macro_rules! server_notifications {
    ($($(#[$doc:meta])* $variant:ident($params:ty),)*) => {
        /// A notification from server to client, written as an object of `method` and `params`.
        #[derive(Debug, Clone, PartialEq)]
        pub enum ServerNotification {
            $($(#[$doc])* $variant($params),)*
            /// Any other notification.
            Custom {
                /// The method.
                method: String,
                /// The parameters, `_meta` among them.
                params: JsonObject,
            },
        }

        impl ServerNotification {
            /// Reads a notification of this method, with the text of its parameters.
            ///
            /// # Errors
            /// When the parameters do not fit the method.
            pub fn read(method: &str, params: Option<&str>) -> Result<Self, serde_json::Error> {
                let params = params.unwrap_or("{}");
                Ok(match NotificationMethod::known(method) {
                    $(Some(NotificationMethod::$variant) => Self::$variant(serde_json::from_str(params)?),)*
                    _ => Self::Custom { method: method.to_owned(), params: serde_json::from_str(params)? },
                })
            }

            /// The method on the wire.
            pub fn method(&self) -> &str {
                match self {
                    $(Self::$variant(_) => NotificationMethod::$variant.name(),)*
                    Self::Custom { method, .. } => method,
                }
            }

            /// The metadata, of the notifications that the protocol has.
            pub fn meta(&self) -> Option<&NotificationMeta> {
                match self {
                    $(Self::$variant(params) => params.meta.as_ref(),)*
                    Self::Custom { .. } => None,
                }
            }
        }

        impl Serialize for ServerNotification {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut object = serializer.serialize_struct("ServerNotification", 2)?;
                object.serialize_field("method", self.method())?;
                match self {
                    $(Self::$variant(params) => object.serialize_field("params", params)?,)*
                    Self::Custom { params, .. } => object.serialize_field("params", params)?,
                }
                object.end()
            }
        }
    };
}

server_notifications! {
    /// The server cancels a request or a stream.
    Cancelled(CancelledParams),
    /// Progress of a request.
    Progress(ProgressParams),
    /// A log message.
    Log(LogParams),
    /// The list of tools changed.
    ToolsListChanged(NotificationParams),
    /// The list of prompts changed.
    PromptsListChanged(NotificationParams),
    /// The list of resources changed.
    ResourcesListChanged(NotificationParams),
    /// A resource was updated.
    ResourceUpdated(ResourceUpdatedParams),
    /// The server has accepted a subscription.
    SubscriptionsAcknowledged(AcknowledgedParams),
    /// The user has finished at the URL of an elicitation (one older revision only).
    ElicitationComplete(ElicitationCompleteParams),
    /// What has become of a task, to those who listen for it.
    Task(Box<TaskNotificationParams>),
    /// What has become of a task (one older revision only).
    TaskStatus(Box<TaskNotificationParams>),
}

json_object! {
    /// Parameters of a notification that needs nothing but `_meta`, such as those of changed lists.
    pub struct NotificationParams {
        _meta: NotificationMeta,
    }

    /// Parameters of `notifications/resources/updated`.
    pub struct ResourceUpdatedParams {
        /// The address of what was updated; may lie below the one the client watches.
        uri: String,
        _meta: NotificationMeta,
        /// Tells of an update at an address.
        fn new,
    }

    /// Parameters of `notifications/cancelled`.
    pub struct CancelledParams {
        /// The request; one older revision lets it be absent.
        request_id?: RequestId,
        /// Why, for people.
        reason?: String,
        _meta: NotificationMeta,
    }
}

impl CancelledParams {
    /// Cancels a request.
    pub fn new(request_id: impl Into<RequestId>) -> Self {
        Self { request_id: Some(request_id.into()), ..Self::default() }
    }
}

json_object! {
    /// Parameters of `notifications/progress`.
    pub struct ProgressParams {
        /// The token the requestor chose.
        progress_token: ProgressToken,
        /// How far it got; grows with every notification.
        progress: Number,
        /// How far it has to get, when that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        total: Option<Number>,
        /// What it is doing.
        message?: String,
        _meta: NotificationMeta,
    } without Default
}

impl ProgressParams {
    /// Progress so far; whole numbers are written without a fraction, and NaN as 0.
    pub fn new(progress_token: impl Into<ProgressToken>, progress: f64) -> Self {
        Self {
            progress_token: progress_token.into(),
            progress: number_or_zero(progress),
            total: None,
            message: None,
            meta: None,
            extra: Extra::new(),
        }
    }

    /// Sets how far it has to get; NaN and infinities leave it open.
    #[must_use]
    pub fn total(mut self, total: f64) -> Self {
        self.total = plain_number(total);
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::LogLevel;

    #[test]
    fn server_notifications_are_written_as_method_and_params() {
        let mut params = NotificationParams::default();
        let json = json!({"method": "notifications/tools/list_changed", "params": {}});
        let changed = ServerNotification::ToolsListChanged(params.clone());
        assert_eq!(serde_json::to_value(changed).unwrap(), json);
        params.meta = Some(NotificationMeta { subscription_id: Some("l".into()), ..Default::default() });
        let changed = serde_json::to_value(ServerNotification::ToolsListChanged(params)).unwrap();
        assert_eq!(changed["params"], json!({"_meta": {"io.modelcontextprotocol/subscriptionId": "l"}}));
    }

    #[test]
    fn server_notifications_survive_a_round_trip() {
        let all = [
            ServerNotification::Progress(ProgressParams::new(7, 1.0)),
            ServerNotification::Log(LogParams::new(LogLevel::Info, "x")),
            ServerNotification::Cancelled(CancelledParams::new(1)),
            ServerNotification::ToolsListChanged(NotificationParams::default()),
            ServerNotification::PromptsListChanged(NotificationParams::default()),
            ServerNotification::ResourcesListChanged(NotificationParams::default()),
            ServerNotification::ResourceUpdated(ResourceUpdatedParams::new("a:b")),
            ServerNotification::Custom { method: "x/y".into(), params: JsonObject::new() },
        ];
        for notification in all {
            let written: Value = serde_json::to_value(&notification).unwrap();
            assert_eq!(written["method"], notification.method());
            let params = written["params"].to_string();
            let read = ServerNotification::read(notification.method(), Some(&params)).unwrap();
            assert_eq!(read, notification);
        }
        assert!(ServerNotification::read("notifications/progress", None).is_err());
    }

    #[test]
    fn whole_progress_has_no_fraction() {
        let text = serde_json::to_string(&ProgressParams::new("t", 50.0).total(100.0)).unwrap();
        assert_eq!(text, r#"{"progressToken":"t","progress":50,"total":100}"#);
    }
}
