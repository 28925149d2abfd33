//! Rules about roots.

use refmcp_proto::rule;
use serde_json::Value;

use super::VerdictWriter;
use super::values::{items, text, violation_unless};
use crate::auditor::conversation::State;

/// A client says that its roots have changed.
pub(super) fn changed(state: &State, verdicts: &mut VerdictWriter<'_>) {
    let Some(has_roots) = state.client.declares(&["roots"]) else { return };
    let what = "notifications/roots/list_changed of a client that does not declare roots";
    verdicts.judge(&rule::ROOT_01, violation_unless(has_roots, what, "declare the roots capability"));
    if let Some(declared) = state.client.declares(&["roots", "listChanged"]).filter(|_| has_roots) {
        let what = "notifications/roots/list_changed of a client that does not declare roots.listChanged";
        let expected = "declare roots.listChanged, or do not announce changes";
        verdicts.judge(&rule::ROOT_02, violation_unless(declared, what, expected));
    }
}

/// A client lists its roots.
pub(super) fn given(result: &Value, verdicts: &mut VerdictWriter<'_>) {
    let mut roots = items(result, "roots").iter();
    let are_files = roots.all(|root| text(root, "uri").is_some_and(|uri| uri.starts_with("file://")));
    let what = "a root whose uri is no file URI";
    verdicts.judge(&rule::ROOT_03, violation_unless(are_files, what, "list roots as file:// URIs"));
}
