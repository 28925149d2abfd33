//! The protected resource metadata of the server (RFC 9728), which is public.

use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use refmcp_auth::jose::Algorithm;
use refmcp_auth::metadata::ResourceMetadata;
use serde_json::Map;

use super::ResourceServer;
use super::verification::request_origin;
use crate::endpoint::original_uri;
use crate::refusal::Refusal;

impl ResourceServer {
    /// The metadata of the resource of this name.
    fn metadata(&self, resource: &str) -> ResourceMetadata {
        let options = &self.settings.options;
        let supported: Vec<String> = options.scopes.iter().map(str::to_owned).collect();
        let algorithms = Algorithm::ALL.map(|algorithm| algorithm.name().to_owned());
        ResourceMetadata {
            resource: resource.to_owned(),
            authorization_servers: self.issuers().map(str::to_owned).collect(),
            scopes_supported: (!supported.is_empty()).then_some(supported),
            bearer_methods_supported: Some(vec!["header".to_owned()]),
            resource_name: options.title.clone(),
            resource_documentation: None,
            dpop_signing_alg_values_supported: Some(algorithms.to_vec()),
            dpop_bound_access_tokens_required: options.require_dpop.then_some(true),
            more: Map::new(),
        }
    }

    /// The metadata document that is requested.
    pub(crate) fn metadata_response(&self, head: &Parts) -> Result<Response, Refusal> {
        let resource = self.settings.names.described(original_uri(head).path(), request_origin(head));
        let metadata = self.metadata(resource.ok_or_else(Refusal::not_found)?);
        let json =
            serde_json::to_vec(&metadata).map_err(|_| Refusal::internal("the document cannot be written"))?;
        let kind = (header::CONTENT_TYPE, "application/json");
        Ok((StatusCode::OK, [kind, (header::CACHE_CONTROL, "no-store")], json).into_response())
    }
}
