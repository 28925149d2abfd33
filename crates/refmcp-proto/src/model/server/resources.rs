//! Resources: what a server lets a client read.

use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::Value;

use crate::model::base::union;
use crate::model::{Annotations, Extra, Icon, InputResponses, JsonObject, Meta, RequestMeta};

json_object! {
    /// Something that can be read; also the body of a resource link.
    pub struct Resource {
        /// Its address.
        uri: String,
        /// The name for programs.
        name: String,
        /// The name for people.
        title?: String,
        /// What it holds.
        description?: String,
        /// Its media type.
        mime_type?: String,
        /// For whom and how important.
        annotations?: Annotations,
        /// Its size in bytes, before any encoding.
        size?: u64,
        /// Pictures of it.
        icons?: Vec<Icon>,
        _meta: Meta,
        /// A resource with an address and a name.
        fn new,
    }

    /// A family of resources whose addresses follow a template.
    pub struct ResourceTemplate {
        /// The template of the addresses, after RFC 6570.
        uri_template: String,
        /// The name for programs.
        name: String,
        /// The name for people.
        title?: String,
        /// What the resources hold.
        description?: String,
        /// The media type, when all resources share it.
        mime_type?: String,
        /// For whom and how important.
        annotations?: Annotations,
        /// Pictures of it.
        icons?: Vec<Icon>,
        _meta: Meta,
        /// A family with a template and a name.
        fn new,
    }

    /// Parameters of `resources/read`.
    pub struct ReadResourceParams {
        /// The address to read.
        uri: String,
        /// Answers to what an earlier round asked.
        input_responses?: InputResponses,
        /// The state an earlier round handed out.
        request_state?: String,
        _meta: RequestMeta,
    }

    /// Parameters of `resources/subscribe` and `resources/unsubscribe` (older revisions only).
    pub struct SubscribeParams {
        /// The address to watch, or to watch no longer.
        uri: String,
        _meta: RequestMeta,
    }

    /// One page of the resources.
    pub struct ListResourcesResult {
        /// The resources.
        resources: Vec<Resource>,
        /// Where the next page starts; absent on the last page.
        next_cursor?: String,
        ..cacheable_result,
        /// A page, the last one until `next_cursor` is set.
        fn new,
    }

    /// One page of the resource templates.
    pub struct ListResourceTemplatesResult {
        /// The templates.
        resource_templates: Vec<ResourceTemplate>,
        /// Where the next page starts; absent on the last page.
        next_cursor?: String,
        ..cacheable_result,
        /// A page, the last one until `next_cursor` is set.
        fn new,
    }

    /// What was read; several contents when the address stands for a collection.
    pub struct ReadResourceResult {
        /// The contents.
        contents: Vec<ResourceContents>,
        ..cacheable_result,
        /// The contents that were read.
        fn new,
    }
}

impl ReadResourceResult {
    /// Text read at one address.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(vec![ResourceContents::text(uri, text)])
    }
}

impl From<ResourceContents> for ReadResourceResult {
    fn from(contents: ResourceContents) -> Self {
        Self::new(vec![contents])
    }
}

impl From<Vec<ResourceContents>> for ReadResourceResult {
    fn from(contents: Vec<ResourceContents>) -> Self {
        Self::new(contents)
    }
}

/// What was read at an address: text, or bytes in base64.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceContents {
    /// The address.
    pub uri: String,
    /// The media type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// What was read.
    #[serde(flatten)]
    pub body: ResourceBody,
    /// Metadata, `_meta` on the wire.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
    /// Members this model does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The body of a resource; the name of the wire member, `text` or `blob`, tells which it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ResourceBody {
    /// Text.
    Text(String),
    /// Bytes, in base64.
    Blob(String),
}

impl ResourceContents {
    /// Contents with a body of either kind.
    pub fn new(uri: impl Into<String>, body: ResourceBody) -> Self {
        Self { uri: uri.into(), mime_type: None, body, meta: None, extra: Extra::new() }
    }

    /// Text read at an address.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(uri, ResourceBody::Text(text.into()))
    }

    /// Bytes read at an address, in base64.
    pub fn blob(uri: impl Into<String>, data: impl Into<String>) -> Self {
        Self::new(uri, ResourceBody::Blob(data.into()))
    }

    setters! {
        /// Sets the media type.
        mime_type: String,
        /// Sets `_meta`.
        meta: Meta,
    }
}

impl<'de> Deserialize<'de> for ResourceContents {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Frame {
            uri: String,
            mime_type: Option<String>,
            #[serde(rename = "_meta")]
            meta: Option<Meta>,
            #[serde(flatten)]
            extra: Extra,
        }

        let mut object = JsonObject::deserialize(deserializer)?;
        let present = |key: &str| object.get(key).is_some_and(|value| !value.is_null());
        let body = match (present("text"), present("blob")) {
            (true, false) => {
                ResourceBody::Text(union::take_string(&mut object, "text", "resource contents")?)
            }
            (false, true) => {
                ResourceBody::Blob(union::take_string(&mut object, "blob", "resource contents")?)
            }
            (true, true) => return Err(de::Error::custom("resource contents have both `text` and `blob`")),
            (false, false) => return Err(de::Error::custom("resource contents have no `text` or `blob`")),
        };
        // The other one can only be null here, and null means absent.
        object.retain(|key, value| !(value == &Value::Null && (key == "text" || key == "blob")));
        let Frame { uri, mime_type, meta, extra } = union::rest(object, "resource contents")?;
        Ok(Self { uri, mime_type, body, meta, extra })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_member_tells_text_from_blob() {
        let read = |json: Value| serde_json::from_value::<ResourceContents>(json).map_err(|e| e.to_string());
        let text = read(json!({"uri": "a:b", "text": "t", "blob": null, "x": 1})).unwrap();
        assert_eq!(text.body, ResourceBody::Text("t".into()));
        assert_eq!(serde_json::to_value(&text).unwrap(), json!({"uri": "a:b", "text": "t", "x": 1}));
        let blob = read(json!({"uri": "a:b", "blob": "", "mimeType": "x/y", "_meta": {}})).unwrap();
        assert_eq!(blob.body, ResourceBody::Blob(String::new()));
        for wrong in [
            json!({"uri": "a:b"}),
            json!({"uri": "a:b", "text": "", "blob": ""}),
            json!({"uri": "a:b", "text": 1}),
        ] {
            assert!(read(wrong).unwrap_err().contains("`text`"));
        }
        assert!(read(json!({"text": ""})).unwrap_err().contains("`uri`"));
    }
}
