//! `resources/list`, `resources/templates/list`, `resources/read` and subscriptions.

use std::sync::Arc;

use refmcp_proto::model::{
    EmptyResult, ListResourceTemplatesResult, ListResourcesResult, ReadResourceParams, SubscribeParams,
};

use refmcp_proto::revision::Method;

use super::page::page;
use super::{Plan, params};
use crate::call::Call;
use crate::catalog::{Resource, ResourceTemplate, TemplateValues};
use crate::error::CallError;

pub(super) fn list(call: &Call) -> Plan {
    let call = call.clone();
    Plan::now(async move {
        let page = page(&call, |catalog| &catalog.resources)?;
        let resources = page.items.iter().map(|resource| resource.definition.clone()).collect();
        Ok(ListResourcesResult { next_cursor: page.next, ..ListResourcesResult::new(resources) }.into())
    })
}

pub(super) fn list_templates(call: &Call) -> Plan {
    let call = call.clone();
    Plan::now(async move {
        let page = page(&call, |catalog| &catalog.templates)?;
        let templates = page.items.iter().map(|template| template.definition.clone()).collect();
        let result = ListResourceTemplatesResult::new(templates);
        Ok(ListResourceTemplatesResult { next_cursor: page.next, ..result }.into())
    })
}

pub(super) fn read(call: &Call) -> Plan {
    let uri = match params::<ReadResourceParams>(call) {
        Ok(params) => params.uri,
        Err(error) => return Plan::refuse(error),
    };
    let (reading, found, subject) = (call.clone(), find(call, &uri), uri.clone());
    let plan = Plan::later(async move {
        let result = match found {
            Some(Found::Resource(resource)) => resource.read(reading).await?,
            Some(Found::Member(template, values)) => template.read(reading, uri, values).await?,
            None => return Err(CallError::resource_not_found(uri)),
        };
        Ok(result.into())
    });
    plan.about(call, &subject)
}

pub(super) fn subscribe(call: &Call) -> Plan {
    let uri = match params::<SubscribeParams>(call) {
        Ok(params) => params.uri,
        Err(error) => return Plan::refuse(error),
    };
    // Whoever has had enough of a resource may say so even when it is gone.
    if call.dispatch().method == Method::Subscribe && find(call, &uri).is_none() {
        return Plan::refuse(CallError::resource_not_found(uri));
    }
    Plan::now(async { Ok(EmptyResult::default().into()) }).about(call, &uri)
}

/// Ends a subscription; what it was for may be gone by now.
pub(super) fn unsubscribe(call: &Call) -> Plan {
    match params::<SubscribeParams>(call) {
        Ok(params) => Plan::now(async { Ok(EmptyResult::default().into()) }).about(call, &params.uri),
        Err(error) => Plan::refuse(error),
    }
}

/// What a URI leads to.
enum Found {
    Resource(Arc<Resource>),
    Member(Arc<ResourceTemplate>, TemplateValues),
}

/// The resource at a URI, or the family it belongs to, the session's own first.
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
