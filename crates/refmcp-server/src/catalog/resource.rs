//! Resources and templates: a definition and a function that reads.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use refmcp_proto::model::{self, Annotations, Icon, ReadResourceResult, ResourceContents};
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
pub struct Resource {
    pub(crate) definition: model::Resource,
    read: Arc<dyn Fn(Call) -> Work + Send + Sync>,
}

impl Resource {
    /// A resource by its URI, its name, and the function that reads it.
    pub fn new<O, F, Fut>(uri: impl Into<String>, name: impl Into<String>, read: F) -> Self
    where
        O: Into<ResourceOutput>,
        F: Fn(Call) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, CallError>> + Send + 'static,
    {
        Self::with(model::Resource::new(uri, name), read)
    }

    /// The same with every detail of the definition.
    pub fn with<O, F, Fut>(definition: model::Resource, read: F) -> Self
    where
        O: Into<ResourceOutput>,
        F: Fn(Call) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, CallError>> + Send + 'static,
    {
        let read = Arc::new(read);
        let work = move |call: Call| -> Work {
            let read = read.clone();
            Box::pin(async move { Ok(read(call).await?.into().0) })
        };
        Self { definition, read: Arc::new(work) }
    }

    pub(crate) fn read(&self, call: Call) -> Work {
        (self.read)(call)
    }
}

/// A family of resources: a URI template, and the function that reads any of them.
#[derive(Clone)]
pub struct ResourceTemplate {
    pub(crate) definition: model::ResourceTemplate,
    pub(crate) pattern: UriTemplate,
    pub(crate) completers: BTreeMap<String, Completer>,
    read: Arc<dyn Fn(Call, String, TemplateValues) -> Work + Send + Sync>,
}

impl ResourceTemplate {
    /// A family by its template, its name, and the function that reads one of it, given the URI and the values in it.
    pub fn new<O, F, Fut>(
        uri_template: impl Into<String>,
        name: impl Into<String>,
        read: F,
    ) -> Result<Self, UriTemplateError>
    where
        O: Into<ResourceOutput>,
        F: Fn(Call, String, TemplateValues) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, CallError>> + Send + 'static,
    {
        Self::with(model::ResourceTemplate::new(uri_template, name), read)
    }

    /// The same with every detail of the definition.
    pub fn with<O, F, Fut>(definition: model::ResourceTemplate, read: F) -> Result<Self, UriTemplateError>
    where
        O: Into<ResourceOutput>,
        F: Fn(Call, String, TemplateValues) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, CallError>> + Send + 'static,
    {
        let pattern = UriTemplate::parse(&definition.uri_template)?;
        let read = Arc::new(read);
        let work = move |call: Call, uri: String, values: TemplateValues| -> Work {
            let read = read.clone();
            Box::pin(async move { Ok(read(call, uri, values).await?.into().0) })
        };
        Ok(Self { definition, pattern, completers: BTreeMap::new(), read: Arc::new(work) })
    }

    /// Suggests values for a name in the template.
    #[must_use]
    pub fn complete<F, Fut>(mut self, name: impl Into<String>, suggest: F) -> Self
    where
        F: Fn(Call, CompletionRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<String>> + Send + 'static,
    {
        self.completers.insert(name.into(), Completer::new(suggest));
        self
    }

    pub(crate) fn read(&self, call: Call, uri: String, values: TemplateValues) -> Work {
        (self.read)(call, uri, values)
    }
}

/// Setters that resources and templates share.
macro_rules! described {
    ($($kind:ty),*) => {$(
        impl $kind {
            /// A name for people.
            #[must_use]
            pub fn title(mut self, title: impl Into<String>) -> Self {
                self.definition.title = Some(title.into());
                self
            }

            /// What is in it.
            #[must_use]
            pub fn description(mut self, description: impl Into<String>) -> Self {
                self.definition.description = Some(description.into());
                self
            }

            /// What kind of content it has.
            #[must_use]
            pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
                self.definition.mime_type = Some(mime_type.into());
                self
            }

            /// For whom it is, how important, how old.
            #[must_use]
            pub fn annotations(mut self, annotations: Annotations) -> Self {
                self.definition.annotations = Some(annotations);
                self
            }

            /// A picture for people.
            #[must_use]
            pub fn icon(mut self, icon: Icon) -> Self {
                self.definition.icons.get_or_insert_default().push(icon);
                self
            }
        }

        impl fmt::Debug for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($kind)).field("name", &self.definition.name).finish_non_exhaustive()
            }
        }
    )*};
}

described!(Resource, ResourceTemplate);

impl Resource {
    /// Its size in bytes.
    #[must_use]
    pub fn size(mut self, size: u64) -> Self {
        self.definition.size = Some(size);
        self
    }
}

/// What reading can give: one piece of content, several, or a result with every detail.
#[derive(Debug)]
pub struct ResourceOutput(ReadResourceResult);

impl From<ResourceContents> for ResourceOutput {
    fn from(contents: ResourceContents) -> Self {
        Self(ReadResourceResult::new(vec![contents]))
    }
}

impl From<Vec<ResourceContents>> for ResourceOutput {
    fn from(contents: Vec<ResourceContents>) -> Self {
        Self(ReadResourceResult::new(contents))
    }
}

impl From<ReadResourceResult> for ResourceOutput {
    fn from(result: ReadResourceResult) -> Self {
        Self(result)
    }
}
