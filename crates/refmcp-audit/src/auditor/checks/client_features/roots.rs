//! Rules about roots.

use refmcp_proto::rule;
use serde_json::Value;

use crate::auditor::checks::Context;
use crate::auditor::checks::values::{items, text};

/// A client says that its roots have changed.
pub(in crate::auditor::checks) fn changed(context: &mut Context<'_>) {
    let Some(has_roots) = context.state.client.declares(&["roots"]) else { return };
    let what = "notifications/roots/list_changed of a client that does not declare roots";
    context.require(&rule::ROOT_01, has_roots, what, "declare the roots capability");
    if let Some(declared) = context.state.client.declares(&["roots", "listChanged"]).filter(|_| has_roots) {
        let what = "notifications/roots/list_changed of a client that does not declare roots.listChanged";
        let expected = "declare roots.listChanged, or do not announce changes";
        context.require(&rule::ROOT_02, declared, what, expected);
    }
}

/// A client lists its roots.
pub(in crate::auditor::checks) fn given(result: &Value, context: &mut Context<'_>) {
    let mut roots = items(result, "roots").iter();
    let are_files = roots.all(|root| text(root, "uri").is_some_and(|uri| uri.starts_with("file://")));
    let what = "a root whose uri is no file URI";
    context.require(&rule::ROOT_03, are_files, what, "list roots as file:// URIs");
}
