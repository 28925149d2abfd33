//! What the server tells about itself as a protected resource (RFC 9728). Anybody may read it.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use refmcp_auth::jose::Algorithm;
use refmcp_auth::metadata::ResourceMetadata;
use serde_json::Map;

use super::ResourceServer;
use super::verification::Head;
use crate::refusal::{Reason, Refusal};

impl ResourceServer {
    /// What it tells of the resource of this name, one of its own.
    fn metadata(&self, resource: &str) -> ResourceMetadata {
        let settings = &self.settings;
        let supported: Vec<String> = settings.supported.iter().map(str::to_owned).collect();
        ResourceMetadata {
            resource: resource.to_owned(),
            authorization_servers: self.issuers().map(str::to_owned).collect(),
            scopes_supported: (!supported.is_empty()).then_some(supported),
            bearer_methods_supported: Some(vec!["header".to_owned()]),
            resource_name: settings.title.clone(),
            resource_documentation: None,
            dpop_signing_alg_values_supported: Some(
                Algorithm::ALL.map(|algorithm| algorithm.name().to_owned()).to_vec(),
            ),
            dpop_bound_access_tokens_required: settings.only_bound.then_some(true),
            more: Map::new(),
        }
    }

    /// The document that is asked for.
    pub(crate) fn document(&self, head: &Head<'_>) -> Result<Response, Refusal> {
        let described = self.settings.names.described(head.uri.path(), head.by());
        let nothing = || Refusal::new(StatusCode::NOT_FOUND, Reason::Path, "there is nothing here");
        let metadata = self.metadata(described.ok_or_else(nothing)?);
        let json =
            serde_json::to_vec(&metadata).map_err(|_| Refusal::fault("the document cannot be written"))?;
        let kind = (header::CONTENT_TYPE, "application/json");
        Ok((StatusCode::OK, [kind, (header::CACHE_CONTROL, "no-store")], json).into_response())
    }
}
