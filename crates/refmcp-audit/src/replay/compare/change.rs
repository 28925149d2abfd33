//! What differs between two JSON values, member by member.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;

use super::MAX_CHANGES;

/// Members by which the items of a list are told apart, whatever their order.
const KEYS: [&str; 3] = ["name", "uri", "uriTemplate"];

/// A member that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// What happened to it.
    pub kind: ChangeKind,
    /// Where it is: a JSON pointer into the first message, or into the second where the first has none.
    pub pointer: String,
    /// Its value in the first message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// Its value in the second message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// What happened to a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// Only the second message has it.
    Added,
    /// Only the first message has it.
    Missing,
    /// Both have it, with different values.
    Changed,
    /// The items are the same, in another order.
    Order,
}

impl Change {
    pub(super) fn of_values(pointer: &str, before: Option<&Value>, after: Option<&Value>) -> Self {
        let kind = match (before, after) {
            (None, _) => ChangeKind::Added,
            (_, None) => ChangeKind::Missing,
            _ => ChangeKind::Changed,
        };
        Self { kind, pointer: pointer.to_owned(), before: before.cloned(), after: after.cloned() }
    }
}

/// The members that differ; the first ones where there are very many.
pub(super) fn changes(before: &Value, after: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    compare("", before, after, &mut changes);
    changes
}

fn compare(pointer: &str, before: &Value, after: &Value, changes: &mut Vec<Change>) {
    if changes.len() >= MAX_CHANGES || before == after {
        return;
    }
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            let added = new.iter().filter(|(name, _)| !old.contains_key(*name));
            for (name, value) in old {
                compare_items(&member(pointer, name), Some(value), new.get(name), changes);
            }
            for (name, value) in added {
                compare_items(&member(pointer, name), None, Some(value), changes);
            }
        }
        (Value::Array(old), Value::Array(new)) => match (by_key(old), by_key(new)) {
            (Some(old), Some(new)) => compare_lists(pointer, &old, &new, changes),
            _ => {
                for at in 0..old.len().max(new.len()) {
                    compare_items(&format!("{pointer}/{at}"), old.get(at), new.get(at), changes);
                }
            }
        },
        (old, new) => changes.push(Change::of_values(pointer, Some(old), Some(new))),
    }
}

fn compare_items(pointer: &str, before: Option<&Value>, after: Option<&Value>, changes: &mut Vec<Change>) {
    match (before, after) {
        (Some(before), Some(after)) => compare(pointer, before, after, changes),
        _ if changes.len() < MAX_CHANGES => changes.push(Change::of_values(pointer, before, after)),
        _ => {}
    }
}

/// The items of a list by what tells them apart; none where that does not tell them all apart.
fn by_key(items: &[Value]) -> Option<Vec<(&str, usize, &Value)>> {
    let key = KEYS.iter().find(|key| items.first().is_some_and(|item| item.get(**key).is_some()))?;
    let mut seen = HashMap::new();
    let keyed = items.iter().enumerate().map(|(at, item)| {
        let name = item.get(*key)?.as_str()?;
        seen.insert(name, at).is_none().then_some((name, at, item))
    });
    keyed.collect()
}

fn compare_lists(
    pointer: &str,
    before: &[(&str, usize, &Value)],
    after: &[(&str, usize, &Value)],
    changes: &mut Vec<Change>,
) {
    let new: HashMap<&str, &Value> = after.iter().map(|(name, _, item)| (*name, *item)).collect();
    let old: HashMap<&str, &Value> = before.iter().map(|(name, _, item)| (*name, *item)).collect();
    for (name, at, item) in before {
        compare_items(&format!("{pointer}/{at}"), Some(item), new.get(name).copied(), changes);
    }
    for (_, at, item) in after.iter().filter(|(name, ..)| !old.contains_key(name)) {
        compare_items(&format!("{pointer}/{at}"), None, Some(item), changes);
    }
    let common = |items: &[(&str, usize, &Value)], other: &HashMap<&str, &Value>| -> Vec<String> {
        items
            .iter()
            .filter(|(name, ..)| other.contains_key(name))
            .map(|(name, ..)| (*name).to_owned())
            .collect()
    };
    let (first, second) = (common(before, &new), common(after, &old));
    if first != second && changes.len() < MAX_CHANGES {
        let (before, after) = (Some(first.into()), Some(second.into()));
        changes.push(Change { kind: ChangeKind::Order, pointer: pointer.to_owned(), before, after });
    }
}

/// A pointer to a member (RFC 6901).
pub(super) fn member(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(before: &Value, after: &Value) -> Vec<String> {
        changes(before, after).iter().map(|it| format!("{:?} {}", it.kind, it.pointer)).collect()
    }

    #[test]
    fn members_are_added_missing_and_changed() {
        let before = json!({ "a": 1, "b/c": { "d": [1, 2] }, "e": null });
        let after = json!({ "a": 2, "b/c": { "d": [1, 3, 4] }, "f": {} });
        assert_eq!(
            shown(&before, &after),
            ["Changed /a", "Changed /b~1c/d/1", "Added /b~1c/d/2", "Missing /e", "Added /f"]
        );
        assert!(shown(&before, &before).is_empty());
    }

    #[test]
    fn items_with_names_are_compared_by_them() {
        let before = json!([{ "name": "a", "x": 1 }, { "name": "b" }, { "name": "c" }]);
        let after = json!([{ "name": "n" }, { "name": "b" }, { "name": "a", "x": 2 }]);
        assert_eq!(shown(&before, &after), ["Changed /0/x", "Missing /2", "Added /0", "Order "]);
        let twice = json!([{ "name": "a" }, { "name": "a" }]);
        assert_eq!(shown(&before, &twice), ["Missing /0/x", "Changed /1/name", "Missing /2"]);
    }

    #[test]
    fn changes_are_bounded() {
        let many: Value = (0..10_000).collect();
        assert_eq!(changes(&many, &json!([])).len(), MAX_CHANGES);
    }
}
