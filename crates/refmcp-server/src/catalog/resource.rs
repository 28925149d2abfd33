//! Resources and resource templates: a definition and a function that reads.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use refmcp_proto::model::{self, ReadResourceResult};
use refmcp_proto::uri_template::{UriTemplate, UriTemplateError};

use super::prompt::{Completer, CompletionRequest};
use crate::call::Call;
use crate::error::CallError;

type Work = Pin<Box<dyn Future<Output = Result<ReadResourceResult, CallError>> + Send>>;

/// The values that a URI gives to the names of its template.
pub type TemplateValues = BTreeMap<String, String>;

/// A resource: what clients are told about it, and the function that reads it.
///
/// ```
/// use refmcp_server::{Resource, model::ResourceContents};
///
/// let motd = Resource::new("motd://today", "motd", |_call| async {
///     Ok(ResourceContents::text("motd://today", "Be kind."))
/// })
/// .mime_type("text/plain");
/// # let _ = motd;
/// ```
#[derive(Clone)]
#[must_use]
pub struct Resource {
    pub(crate) definition: model::Resource,
    read: Arc<dyn Fn(Call) -> Work + Send + Sync>,
}

impl Resource {
    /// A resource by its URI, its name, and the function that reads it.
    pub fn new<O, F, Fut>(uri: impl Into<String>, name: impl Into<String>, read: F) -> Self
    where
        O: Into<ReadResourceResult>,
        F: Fn(Call) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, CallError>> + Send + 'static,
    {
        Self::with(model::Resource::new(uri, name), read)
    }

    /// The same with a whole definition.
    pub fn with<O, F, Fut>(definition: model::Resource, read: F) -> Self
    where
        O: Into<ReadResourceResult>,
        F: Fn(Call) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, CallError>> + Send + 'static,
    {
        let read = Arc::new(read);
        let work = move |call: Call| -> Work {
            let read = read.clone();
            Box::pin(async move { Ok(read(call).await?.into()) })
        };
        Self { definition, read: Arc::new(work) }
    }

    pub(crate) fn read(&self, call: Call) -> Work {
        (self.read)(call)
    }
}

/// A resource template: a URI template, and the function that reads the resources that match it.
#[derive(Clone)]
#[must_use]
pub struct ResourceTemplate {
    pub(crate) definition: model::ResourceTemplate,
    pub(crate) pattern: UriTemplate,
    pub(crate) completers: BTreeMap<String, Completer>,
    read: Arc<dyn Fn(Call, String, TemplateValues) -> Work + Send + Sync>,
}

impl ResourceTemplate {
    /// A template by its URI template, its name, and the function that reads a resource, given its URI and values.
    pub fn new<O, F, Fut>(
        uri_template: impl Into<String>,
        name: impl Into<String>,
        read: F,
    ) -> Result<Self, UriTemplateError>
    where
        O: Into<ReadResourceResult>,
        F: Fn(Call, String, TemplateValues) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, CallError>> + Send + 'static,
    {
        Self::with(model::ResourceTemplate::new(uri_template, name), read)
    }

    /// The same with a whole definition.
    pub fn with<O, F, Fut>(definition: model::ResourceTemplate, read: F) -> Result<Self, UriTemplateError>
    where
        O: Into<ReadResourceResult>,
        F: Fn(Call, String, TemplateValues) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, CallError>> + Send + 'static,
    {
        let pattern = UriTemplate::parse(&definition.uri_template)?;
        let read = Arc::new(read);
        let work = move |call: Call, uri: String, values: TemplateValues| -> Work {
            let read = read.clone();
            Box::pin(async move { Ok(read(call, uri, values).await?.into()) })
        };
        Ok(Self { definition, pattern, completers: BTreeMap::new(), read: Arc::new(work) })
    }

    pub(crate) fn read(&self, call: Call, uri: String, values: TemplateValues) -> Work {
        (self.read)(call, uri, values)
    }
}

item!(Resource: title, description, mime_type, annotations);
item!(ResourceTemplate: title, description, mime_type, annotations, complete);

impl Resource {
    /// Its size in bytes.
    pub fn size(mut self, size: u64) -> Self {
        self.definition.size = Some(size);
        self
    }

    /// Whether the definitions are the same, but for size and time of modification.
    pub(crate) fn differs_only_in_content(&self, other: &Self) -> bool {
        let without_content = |resource: &Self| {
            let mut definition = resource.definition.clone();
            definition.size = None;
            if let Some(annotations) = &mut definition.annotations {
                annotations.last_modified = None;
            }
            definition
        };
        without_content(self) == without_content(other)
    }
}
