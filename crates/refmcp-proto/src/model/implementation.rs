//! Who speaks: names and versions of clients and servers, and the icons shown for anything that has one.

use serde::{Deserialize, Serialize};

use super::Extra;

/// A client or server, by name and version.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Implementation {
    /// The name for programs.
    pub name: String,
    /// The version, in any notation.
    pub version: String,
    /// The name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Where to read more about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub website_url: Option<String>,
    /// Pictures of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<Vec<Icon>>,
    /// Members this model does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Implementation {
    /// An implementation with a name and a version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into(), ..Self::default() }
    }

    setters! {
        /// Sets the name for people.
        title: String,
        /// Sets what it is for.
        description: String,
        /// Sets where to read more.
        website_url: String,
        /// Sets the pictures.
        icons: Vec<Icon>,
    }
}

/// A picture, in one or more sizes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Icon {
    /// Where it is: a URL or a `data:` URI.
    pub src: String,
    /// Its media type, when the source does not tell or tells wrongly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The sizes it is good for, such as `48x48` or `any`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Vec<String>>,
    /// The background it was drawn for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theme: Option<IconTheme>,
    /// Members this model does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Icon {
    /// An icon at a URL or in a `data:` URI.
    pub fn new(src: impl Into<String>) -> Self {
        Self { src: src.into(), ..Self::default() }
    }

    setters! {
        /// Sets the media type.
        mime_type: String,
        /// Sets the background it was drawn for.
        theme: IconTheme,
    }

    /// Adds a size, such as `48x48` or `any`.
    #[must_use]
    pub fn size(mut self, size: impl Into<String>) -> Self {
        self.sizes.get_or_insert_default().push(size.into());
        self
    }
}

open_enum! {
    /// The background an icon was drawn for.
    pub enum IconTheme {
        /// A light background.
        Light = "light",
        /// A dark background.
        Dark = "dark",
    }
}
