//! `resources/list`, `resources/templates/list`, `resources/read` and subscriptions.

use std::sync::Arc;

use refmcp_proto::model::{
    EmptyResult, ListResourceTemplatesResult, ListResourcesResult, ReadResourceParams, SubscribeParams,
};
use refmcp_proto::revision::Method;

use super::{PreparedCall, pagination, params};
use crate::call::Call;
use crate::catalog::{Resource, ResourceTemplate, TemplateValues};
use crate::error::CallError;

pub(super) fn list(call: &Call) -> Result<PreparedCall, CallError> {
    pagination::list(
        call,
        |catalog| &catalog.resources,
        |resource| resource.definition.clone(),
        |resources, next_cursor| {
            ListResourcesResult { next_cursor, ..ListResourcesResult::new(resources) }.into()
        },
    )
}

pub(super) fn list_templates(call: &Call) -> Result<PreparedCall, CallError> {
    pagination::list(
        call,
        |catalog| &catalog.templates,
        |template| template.definition.clone(),
        |templates, next_cursor| {
            ListResourceTemplatesResult { next_cursor, ..ListResourceTemplatesResult::new(templates) }.into()
        },
    )
}

pub(super) fn read(call: &Call) -> Result<PreparedCall, CallError> {
    let ReadResourceParams { uri, .. } = params(call)?;
    let (reading, found, subject) = (call.clone(), find(call, &uri), uri.clone());
    let prepared = PreparedCall::spawned(async move {
        let result = match found {
            Some(Found::Resource(resource)) => resource.read(reading).await?,
            Some(Found::Member(template, values)) => template.read(reading, uri, values).await?,
            None => return Err(CallError::resource_not_found(uri)),
        };
        Ok(result.into())
    });
    Ok(prepared.about(call, &subject))
}

/// `resources/subscribe` and `resources/unsubscribe`; the engine keeps the subscriptions.
pub(super) fn subscribe(call: &Call) -> Result<PreparedCall, CallError> {
    let SubscribeParams { uri, .. } = params(call)?;
    // A subscription can be ended after its resource is gone.
    if call.dispatch().method == Method::Subscribe && find(call, &uri).is_none() {
        return Err(CallError::resource_not_found(uri));
    }
    Ok(PreparedCall::inline(async { Ok(EmptyResult::default().into()) }).about(call, &uri))
}

/// What a URI leads to.
enum Found {
    Resource(Arc<Resource>),
    Member(Arc<ResourceTemplate>, TemplateValues),
}

/// The resource at a URI, or the template that it matches, the session's own first.
fn find(call: &Call, uri: &str) -> Option<Found> {
    let own = call.session().and_then(|session| session.catalog());
    let shared = call.server().catalog();
    let catalogs = || own.as_deref().into_iter().chain([&*shared]);
    if let Some(resource) = catalogs().find_map(|catalog| catalog.resources.get(uri)) {
        return Some(Found::Resource(resource.clone()));
    }
    let mut families = catalogs().flat_map(|catalog| catalog.templates.iter());
    families.find_map(|family| Some(Found::Member(family.clone(), family.pattern.matches(uri)?)))
}
