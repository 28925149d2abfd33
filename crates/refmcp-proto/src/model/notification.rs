//! Everything a server can tell without being asked.

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::{
    AcknowledgedParams, CancelledParams, ElicitationCompleteParams, Extra, JsonObject, LogParams,
    NotificationMeta, ProgressParams,
};

/// Parameters of a notification that needs nothing but `_meta`, such as those of changed lists.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NotificationParams {
    /// Metadata, `_meta` on the wire.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<NotificationMeta>,
    /// Members this model does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Parameters of `notifications/resources/updated`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceUpdatedParams {
    /// The address of what was updated; may lie below the one the client watches.
    pub uri: String,
    /// Metadata, `_meta` on the wire.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<NotificationMeta>,
    /// Members this model does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ResourceUpdatedParams {
    /// Tells of an update at an address.
    pub fn new(uri: impl Into<String>) -> Self {
        Self { uri: uri.into(), ..Self::default() }
    }
}

/// A notification from server to client. It is written as an object of `method` and `params`.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerNotification {
    /// The server calls off a request or a stream.
    Cancelled(CancelledParams),
    /// A request got further.
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
    /// The server listens to a wish to be told of changes.
    SubscriptionsAcknowledged(AcknowledgedParams),
    /// A visit to a URL is over (one older revision only).
    ElicitationComplete(ElicitationCompleteParams),
    /// Any other notification.
    Custom {
        /// The method.
        method: String,
        /// The parameters, `_meta` among them.
        params: JsonObject,
    },
}

impl ServerNotification {
    /// The list of tools changed.
    pub fn tools_list_changed() -> Self {
        Self::ToolsListChanged(NotificationParams::default())
    }

    /// The list of prompts changed.
    pub fn prompts_list_changed() -> Self {
        Self::PromptsListChanged(NotificationParams::default())
    }

    /// The list of resources changed.
    pub fn resources_list_changed() -> Self {
        Self::ResourcesListChanged(NotificationParams::default())
    }

    /// The resource at that address was updated.
    pub fn resource_updated(uri: impl Into<String>) -> Self {
        Self::ResourceUpdated(ResourceUpdatedParams::new(uri))
    }

    /// Reads a notification of this name, with the text of its parameters.
    ///
    /// # Errors
    /// When the parameters do not fit the name.
    pub fn read(method: &str, params: Option<&str>) -> Result<Self, serde_json::Error> {
        let params = params.unwrap_or("{}");
        Ok(match method {
            "notifications/cancelled" => Self::Cancelled(serde_json::from_str(params)?),
            "notifications/progress" => Self::Progress(serde_json::from_str(params)?),
            "notifications/message" => Self::Log(serde_json::from_str(params)?),
            "notifications/tools/list_changed" => Self::ToolsListChanged(serde_json::from_str(params)?),
            "notifications/prompts/list_changed" => Self::PromptsListChanged(serde_json::from_str(params)?),
            "notifications/resources/list_changed" => {
                Self::ResourcesListChanged(serde_json::from_str(params)?)
            }
            "notifications/resources/updated" => Self::ResourceUpdated(serde_json::from_str(params)?),
            "notifications/subscriptions/acknowledged" => {
                Self::SubscriptionsAcknowledged(serde_json::from_str(params)?)
            }
            "notifications/elicitation/complete" => Self::ElicitationComplete(serde_json::from_str(params)?),
            other => Self::Custom { method: other.to_owned(), params: serde_json::from_str(params)? },
        })
    }

    /// The metadata, of the notifications that the protocol has.
    pub fn meta(&self) -> Option<&NotificationMeta> {
        match self {
            Self::Cancelled(params) => params.meta.as_ref(),
            Self::Progress(params) => params.meta.as_ref(),
            Self::Log(params) => params.meta.as_ref(),
            Self::ToolsListChanged(params)
            | Self::PromptsListChanged(params)
            | Self::ResourcesListChanged(params) => params.meta.as_ref(),
            Self::ResourceUpdated(params) => params.meta.as_ref(),
            Self::SubscriptionsAcknowledged(params) => params.meta.as_ref(),
            Self::ElicitationComplete(params) => params.meta.as_ref(),
            Self::Custom { .. } => None,
        }
    }

    /// The method on the wire.
    pub fn method(&self) -> &str {
        match self {
            Self::Cancelled(_) => "notifications/cancelled",
            Self::Progress(_) => "notifications/progress",
            Self::Log(_) => "notifications/message",
            Self::ToolsListChanged(_) => "notifications/tools/list_changed",
            Self::PromptsListChanged(_) => "notifications/prompts/list_changed",
            Self::ResourcesListChanged(_) => "notifications/resources/list_changed",
            Self::ResourceUpdated(_) => "notifications/resources/updated",
            Self::SubscriptionsAcknowledged(_) => "notifications/subscriptions/acknowledged",
            Self::ElicitationComplete(_) => "notifications/elicitation/complete",
            Self::Custom { method, .. } => method,
        }
    }

    /// The parameters, to be written.
    pub fn params(&self) -> impl Serialize + '_ {
        Params(self)
    }

    /// The metadata, to be set or cleared; `None` for a custom notification, which has its own in `params`.
    pub fn meta_mut(&mut self) -> Option<&mut Option<NotificationMeta>> {
        match self {
            Self::Cancelled(params) => Some(&mut params.meta),
            Self::Progress(params) => Some(&mut params.meta),
            Self::Log(params) => Some(&mut params.meta),
            Self::ToolsListChanged(params)
            | Self::PromptsListChanged(params)
            | Self::ResourcesListChanged(params) => Some(&mut params.meta),
            Self::ResourceUpdated(params) => Some(&mut params.meta),
            Self::SubscriptionsAcknowledged(params) => Some(&mut params.meta),
            Self::ElicitationComplete(params) => Some(&mut params.meta),
            Self::Custom { .. } => None,
        }
    }
}

impl Serialize for ServerNotification {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("method", self.method())?;
        map.serialize_entry("params", &Params(self))?;
        map.end()
    }
}

/// The parameters alone, so that an envelope can be written around them without copying.
struct Params<'a>(&'a ServerNotification);

impl Serialize for Params<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            ServerNotification::Cancelled(params) => params.serialize(serializer),
            ServerNotification::Progress(params) => params.serialize(serializer),
            ServerNotification::Log(params) => params.serialize(serializer),
            ServerNotification::ToolsListChanged(params)
            | ServerNotification::PromptsListChanged(params)
            | ServerNotification::ResourcesListChanged(params) => params.serialize(serializer),
            ServerNotification::ResourceUpdated(params) => params.serialize(serializer),
            ServerNotification::SubscriptionsAcknowledged(params) => params.serialize(serializer),
            ServerNotification::ElicitationComplete(params) => params.serialize(serializer),
            ServerNotification::Custom { params, .. } => params.serialize(serializer),
        }
    }
}

/// Wraps the parameters that belong to one method only.
macro_rules! into_server_notification {
    ($($params:ty => $variant:ident),* $(,)?) => {
        $(
            impl From<$params> for ServerNotification {
                fn from(params: $params) -> Self {
                    Self::$variant(params)
                }
            }
        )*
    };
}

into_server_notification! {
    CancelledParams => Cancelled,
    ProgressParams => Progress,
    LogParams => Log,
    ResourceUpdatedParams => ResourceUpdated,
    AcknowledgedParams => SubscriptionsAcknowledged,
    ElicitationCompleteParams => ElicitationComplete,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::LogLevel;

    #[test]
    fn written_as_method_and_params() {
        let mut changed = ServerNotification::tools_list_changed();
        let json = json!({"method": "notifications/tools/list_changed", "params": {}});
        assert_eq!(serde_json::to_value(&changed).unwrap(), json);
        let meta = NotificationMeta { subscription_id: Some("l".into()), ..NotificationMeta::default() };
        *changed.meta_mut().unwrap() = Some(meta);
        let json = json!({"_meta": {"io.modelcontextprotocol/subscriptionId": "l"}});
        assert_eq!(serde_json::to_value(changed.params()).unwrap(), json);
    }

    #[test]
    fn what_was_written_is_read_again() {
        let all = [
            ServerNotification::from(ProgressParams::new(7, 1.0)),
            ServerNotification::from(LogParams::new(LogLevel::Info, "x")),
            ServerNotification::from(CancelledParams::new(1)),
            ServerNotification::tools_list_changed(),
            ServerNotification::prompts_list_changed(),
            ServerNotification::resources_list_changed(),
            ServerNotification::resource_updated("a:b"),
            ServerNotification::Custom { method: "x/y".into(), params: JsonObject::new() },
        ];
        for notification in all {
            let params = serde_json::to_string(&notification.params()).unwrap();
            let read = ServerNotification::read(notification.method(), Some(&params)).unwrap();
            assert_eq!(read, notification);
        }
        assert!(ServerNotification::read("notifications/progress", None).is_err());
    }

    #[test]
    fn whole_progress_has_no_fraction() {
        let progress = ServerNotification::from(ProgressParams::new("t", 50.0).total(100.0));
        let text = serde_json::to_string(&progress.params()).unwrap();
        assert_eq!(text, r#"{"progressToken":"t","progress":50,"total":100}"#);
    }
}
