//! Metadata of apps (`io.modelcontextprotocol/ui`): the member `ui` in `_meta` of tools, resources and their contents.
//!
//! The extension belongs to no revision: what is here travels in all of them. [`crate::app`] has its rules.

use crate::model::JsonObject;

/// The identifier of the extension.
pub const UI_EXTENSION: &str = "io.modelcontextprotocol/ui";

/// The media type of an app's page.
pub const APP_MIME_TYPE: &str = "text/html;profile=mcp-app";

/// The member of `_meta` that belongs to the extension.
pub const UI_META: &str = "ui";

open_enum! {
    /// Who may call a tool.
    pub enum UiVisibility {
        /// The model: hosts offer the tool to it.
        Model = "model",
        /// Apps of the same server connection.
        App = "app",
    }
}

json_object! {
    /// `_meta.ui` of a tool.
    pub struct UiToolMeta {
        /// The page that shows calls of the tool.
        resource_uri?: String,
        /// Who may call the tool; absent means both the model and apps.
        visibility?: Vec<UiVisibility>,
    }

    /// `_meta.ui` of a page, in `resources/list` and `resources/read`.
    pub struct UiResourceMeta {
        /// The origins that the page loads from and connects to.
        csp?: UiCsp,
        /// What the page would like to use of the device.
        permissions?: UiPermissions,
        /// The origin that the page would like to have, in a format of the host.
        domain?: String,
        /// Whether the page wants a border and a background around it.
        prefers_border?: bool,
    }

    /// The origins that a page loads from and connects to; everything else is blocked.
    pub struct UiCsp {
        /// Origins of requests: `fetch`, `XMLHttpRequest`, WebSocket.
        connect_domains?: Vec<String>,
        /// Origins of scripts, styles, images, fonts and media.
        resource_domains?: Vec<String>,
        /// Origins of nested frames.
        frame_domains?: Vec<String>,
        /// Origins that the base URI may have.
        base_uri_domains?: Vec<String>,
    }

    /// What a page would like to use of the device; the host decides.
    pub struct UiPermissions {
        /// The camera.
        camera?: JsonObject,
        /// The microphone.
        microphone?: JsonObject,
        /// The position.
        geolocation?: JsonObject,
        /// Writing to the clipboard.
        clipboard_write?: JsonObject,
    }
}

impl UiToolMeta {
    /// Whether this party may call the tool.
    pub fn is_visible_to(&self, party: &UiVisibility) -> bool {
        self.visibility.as_ref().is_none_or(|visible_to| visible_to.contains(party))
    }
}

impl UiCsp {
    /// The lists, by their names.
    pub fn lists(&self) -> [(&'static str, &[String]); 4] {
        let all = [
            ("connectDomains", &self.connect_domains),
            ("resourceDomains", &self.resource_domains),
            ("frameDomains", &self.frame_domains),
            ("baseUriDomains", &self.base_uri_domains),
        ];
        all.map(|(name, list)| (name, list.as_deref().unwrap_or_default()))
    }
}

impl UiPermissions {
    /// The permissions that are wanted, by their names in the `allow` attribute of a frame.
    pub fn features(&self) -> impl Iterator<Item = &'static str> {
        let all = [
            (&self.camera, "camera"),
            (&self.microphone, "microphone"),
            (&self.geolocation, "geolocation"),
            (&self.clipboard_write, "clipboard-write"),
        ];
        all.into_iter().filter_map(|(wanted, feature)| wanted.is_some().then_some(feature))
    }
}
