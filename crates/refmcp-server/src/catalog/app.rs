//! Apps: pages that hosts show beside calls of tools (`io.modelcontextprotocol/ui`).

use std::sync::Arc;

use refmcp_proto::app::{AppError, URI_PREFIX, check_csp, check_page, check_uri};
use refmcp_proto::model::{
    self, APP_MIME_TYPE, Meta, ResourceContents, UI_META, UiCsp, UiPermissions, UiResourceMeta,
};
use serde::Serialize;
use serde_json::Value;

use super::Resource;

/// A page that hosts show beside calls of tools: a resource with its own media type and metadata.
///
/// ```
/// use refmcp_server::model::{CallToolResult, UiCsp};
/// use refmcp_server::{App, Call, CallError, NoArguments, Server, Tool};
///
/// # fn main() -> Result<(), refmcp_server::BuildError> {
/// async fn cart(_: Call, _: NoArguments) -> Result<CallToolResult, CallError> {
///     Ok(CallToolResult::structured(serde_json::json!({ "items": ["bread"] })))
/// }
///
/// let page = App::new("ui://shop/cart", "<!doctype html><title>Cart</title>")
///     .csp(UiCsp::default().connect_domains(["https://api.example.com".to_owned()]));
/// let server = Server::builder("shop", "1.0")
///     .app(page)
///     .tool(Tool::new("cart", "Shows the cart", cart).app("ui://shop/cart"))
///     .build()?;
/// # let _ = server;
/// # Ok(()) }
/// ```
#[doc(alias = "ui")]
#[derive(Clone)]
#[must_use]
pub struct App {
    definition: model::Resource,
    html: Arc<str>,
    meta: UiResourceMeta,
}

/// Why an app cannot be offered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("app {uri}: {fault}")]
pub struct InvalidApp {
    /// The app.
    pub uri: String,
    /// What is wrong with it.
    pub fault: AppError,
}

impl App {
    /// An app by its URI, which begins with `ui://`, and its page, a whole HTML document. Its name is the rest of the URI.
    pub fn new(uri: impl Into<String>, html: impl Into<Arc<str>>) -> Self {
        let uri = uri.into();
        let name = uri.strip_prefix(URI_PREFIX).unwrap_or(&uri).to_owned();
        let definition = model::Resource::new(uri, name).mime_type(APP_MIME_TYPE);
        Self { definition, html: html.into(), meta: UiResourceMeta::default() }
    }

    /// Sets the name for programs.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.definition.name = name.into();
        self
    }

    /// Declares the origins that the page loads from and connects to. Hosts block all others.
    pub fn csp(mut self, csp: UiCsp) -> Self {
        self.meta.csp = Some(csp);
        self
    }

    /// Asks for permissions, which the host may or may not grant: the page has to look.
    pub fn permissions(mut self, permissions: UiPermissions) -> Self {
        self.meta.permissions = Some(permissions);
        self
    }

    /// Asks for an origin of its own, in the format of the host.
    pub fn domain(mut self, domain: impl Into<String>) -> Self {
        self.meta.domain = Some(domain.into());
        self
    }

    /// Says whether the page wants a border and a background around it.
    pub fn prefers_border(mut self, yes: bool) -> Self {
        self.meta.prefers_border = Some(yes);
        self
    }

    pub(crate) fn uri(&self) -> &str {
        &self.definition.uri
    }

    /// The resource. Its metadata is in the list and in what is read: hosts look at either.
    pub(crate) fn into_resource(mut self) -> Result<Resource, InvalidApp> {
        let invalid = |fault| InvalidApp { uri: self.definition.uri.clone(), fault };
        check_uri(&self.definition.uri).map_err(invalid)?;
        check_page(&self.html).map_err(invalid)?;
        check_csp(self.meta.csp.as_ref().unwrap_or(&UiCsp::default())).map_err(invalid)?;
        self.definition.size = u64::try_from(self.html.len()).ok();
        self.definition.meta = (self.meta != UiResourceMeta::default()).then(|| ui_meta(&self.meta));
        let contents = (self.definition.uri.clone(), self.html, self.definition.meta.clone());
        Ok(Resource::with(self.definition, move |_| {
            let (uri, html, meta) = contents.clone();
            let mut contents = ResourceContents::text(uri, &*html).mime_type(APP_MIME_TYPE);
            contents.meta = meta;
            async { Ok(contents) }
        }))
    }
}

item!(App: title, description);

/// `_meta` with this metadata of an app.
pub(super) fn ui_meta(ui: &impl Serialize) -> Meta {
    // Metadata of apps is plain JSON.
    Meta::from_iter([(UI_META.to_owned(), serde_json::to_value(ui).unwrap_or(Value::Null))])
}
