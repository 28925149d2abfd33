//! The suite's resources and its template.

use refmcp_server::model::{ResourceContents, Role};
use refmcp_server::{Resource, ResourceTemplate, UriTemplateError};
use serde_json::json;

use crate::media;
use crate::resources::builtin::{TextResource, with_line};

const TEXT: &str = "test://static-text";
const BINARY: &str = "test://static-binary";

/// The resource that clients subscribe to.
pub(crate) const WATCHED: &TextResource = &TextResource {
    uri: "test://watched-resource",
    name: "Watched Resource",
    title: "Watched resource",
    description: "A resource that can be subscribed to",
    mime_type: "text/plain",
    audience: &[Role::User, Role::Assistant],
    priority: 0.5,
    text: |touched| with_line("Watched resource content", touched),
};

pub(super) fn resources() -> [Resource; 3] {
    let text = Resource::new(TEXT, "Static Text Resource", |_| async {
        let text = "This is the content of the static text resource.";
        Ok(ResourceContents::text(TEXT, text).mime_type("text/plain"))
    });
    let binary = Resource::new(BINARY, "Static Binary Resource", |_| async {
        Ok(ResourceContents::blob(BINARY, media::base64(media::RED_PIXEL)).mime_type(media::PNG))
    });
    [
        text.title("Static text").description("A static text resource for testing").mime_type("text/plain"),
        binary
            .title("Static binary")
            .description("A static binary resource (image) for testing")
            .mime_type(media::PNG),
        WATCHED.resource(None),
    ]
}

pub(super) fn template() -> Result<ResourceTemplate, UriTemplateError> {
    let template = ResourceTemplate::new(
        "test://template/{id}/data",
        "Resource Template",
        |_, uri, values| async move {
            let id = values.get("id").map(String::as_str).unwrap_or_default();
            let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            Ok(ResourceContents::text(uri, data.to_string()).mime_type("application/json"))
        },
    )?;
    Ok(template
        .title("Resource template")
        .description("A resource template with parameter substitution")
        .mime_type("application/json")
        .complete("id", |_, typed| async move { typed.among(["123", "456", "789"]) }))
}
