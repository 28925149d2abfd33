//! What was read at an address: text or bytes, told apart by the name of a member.

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;

use super::{Extra, JsonObject, Meta, union};

/// What was read at an address: text, or bytes in base64.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceContents {
    /// The address.
    pub uri: String,
    /// The media type.
    pub mime_type: Option<String>,
    /// What was read.
    pub body: ResourceBody,
    /// Metadata, `_meta` on the wire.
    pub meta: Option<Meta>,
    /// Members this model does not name.
    pub extra: Extra,
}

/// The body of a resource; the name of the wire member, `text` or `blob`, tells which it is.
#[derive(Debug, Clone, PartialEq, Eq)]
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

impl Serialize for ResourceContents {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("uri", &self.uri)?;
        if let Some(mime_type) = &self.mime_type {
            map.serialize_entry("mimeType", mime_type)?;
        }
        match &self.body {
            ResourceBody::Text(text) => map.serialize_entry("text", text)?,
            ResourceBody::Blob(data) => map.serialize_entry("blob", data)?,
        }
        if let Some(meta) = &self.meta {
            map.serialize_entry("_meta", meta)?;
        }
        for (name, value) in &self.extra {
            map.serialize_entry(name, value)?;
        }
        map.end()
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
