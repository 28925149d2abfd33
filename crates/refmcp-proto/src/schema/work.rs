//! The work that applying a schema can take: an upper bound for a value, counted before the value is validated.
//!
//! A schema of a few lines can take years: references that fan out ten times at each of twelve levels are 10^12 schemas for
//! one value, and a schema that applies itself twice to each member doubles with the depth of the value. Nothing is
//! evaluated here: every alternative counts, whether or not it would be looked at.

use serde_json::{Map, Value};

use super::nodes::{Builder, Node, type_of};

/// Most steps that a schema may take for one value, without the members and items of that value.
const MAX_STEPS_IN_PLACE: u64 = 100_000;

/// Most steps that a value may take with its members and items.
const MAX_STEPS: u64 = 5_000_000;

/// Steps up to which all faults are looked for. Faults cost more than an answer of yes or no, and evaluate what an answer
/// can leave out.
const MAX_STEPS_FOR_FAULTS: u64 = 200_000;

/// How deep schemas may apply each other to one value.
const MAX_DEPTH_IN_PLACE: usize = 100;

/// How deep schemas may apply each other while a value is validated: a validator needs stack for each level.
const MAX_DEPTH: usize = 1_000;

/// Steps for a reference to a schema that is not part of this one: those of the dialects are known to validators.
const FOREIGN_STEPS: u64 = 1_000;

/// Bytes of a string that count as one more step.
const BYTES_PER_STEP: usize = 64;

/// How a value may be validated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Allowance {
    /// With all of its faults.
    Faults,
    /// Only whether it is valid.
    Answer,
    /// Not at all.
    Nothing,
}

/// Which schemas of a document apply which others, to the same value or to its members and items.
#[derive(Debug)]
pub(super) struct WorkGraph {
    nodes: Vec<Node>,
    /// The steps of all schemas, each as often as it is applied; `None` where a schema applies itself to members or items.
    expanded: Option<u64>,
}

impl WorkGraph {
    /// Finds the schemas of a document.
    ///
    /// # Errors
    /// What makes it too much work.
    pub(super) fn new(document: &Value) -> Result<Self, String> {
        let mut graph = Self { nodes: Builder::new(document)?.build()?, expanded: None };
        let mut known = vec![None; graph.nodes.len()];
        for node in 0..graph.nodes.len() {
            if graph.in_place(node, &mut known, 0)? > MAX_STEPS_IN_PLACE {
                return Err(format!(
                    "applying it to one value could take more than {MAX_STEPS_IN_PLACE} steps"
                ));
            }
        }
        graph.expanded = graph.expand(0, &mut vec![None; graph.nodes.len()], 0);
        Ok(graph)
    }

    /// How a value may be validated.
    pub(super) fn allowance(&self, value: &Value) -> Allowance {
        let size = size(value);
        if self.expanded.is_some_and(|steps| steps.saturating_mul(size) <= MAX_STEPS_FOR_FAULTS) {
            return Allowance::Faults;
        }
        if (Walk { graph: self, left: MAX_STEPS_FOR_FAULTS, stops_at_type: false }).node(0, value, 0) {
            return Allowance::Faults;
        }
        if (Walk { graph: self, left: MAX_STEPS, stops_at_type: true }).node(0, value, 0) {
            return Allowance::Answer;
        }
        Allowance::Nothing
    }

    /// The steps for one value without its members and items.
    fn in_place(&self, node: usize, known: &mut [Option<Known>], depth: usize) -> Result<u64, String> {
        match known.get(node).copied().flatten() {
            Some(Known::Steps(steps)) => return Ok(steps),
            Some(Known::Begun) => return Err("it refers to itself without end".to_owned()),
            None if depth > MAX_DEPTH_IN_PLACE => {
                return Err(format!(
                    "more than {MAX_DEPTH_IN_PLACE} of its schemas refer to each other in a row"
                ));
            }
            None => {}
        }
        let Some(found) = self.nodes.get(node) else { return Ok(0) };
        set(known, node, Known::Begun);
        let mut steps: u64 = 0;
        for inner in &found.in_place {
            steps = steps.saturating_add(self.in_place(*inner, known, depth + 1)?);
        }
        steps = steps.saturating_mul(if found.twice { 2 } else { 1 }).saturating_add(found.own_steps());
        set(known, node, Known::Steps(steps));
        Ok(steps)
    }

    /// The steps of a schema and of all that it applies; `None` where it applies itself, or is too deep to tell.
    fn expand(&self, node: usize, known: &mut [Option<Known>], depth: usize) -> Option<u64> {
        match known.get(node).copied().flatten() {
            Some(Known::Steps(steps)) => return Some(steps),
            Some(Known::Begun) => return None,
            None if depth > MAX_DEPTH => return None,
            None => {}
        }
        let found = self.nodes.get(node).filter(|found| !found.foreign)?;
        set(known, node, Known::Begun);
        let mut steps: u64 = 0;
        for inner in &found.in_place {
            steps = steps.saturating_add(self.expand(*inner, known, depth + 1)?);
        }
        steps = steps.saturating_mul(if found.twice { 2 } else { 1 }).saturating_add(found.own_steps());
        for inner in found.below() {
            steps = steps.saturating_add(self.expand(inner, known, depth + 1)?);
        }
        set(known, node, Known::Steps(steps));
        Some(steps)
    }
}

/// What is known of a node while all are gone through.
#[derive(Debug, Clone, Copy)]
enum Known {
    Begun,
    Steps(u64),
}

fn set(known: &mut [Option<Known>], node: usize, what: Known) {
    if let Some(slot) = known.get_mut(node) {
        *slot = Some(what);
    }
}

/// Counts the steps of one value.
struct Walk<'a> {
    graph: &'a WorkGraph,
    left: u64,
    /// True if a value of another type ends a schema, as it does where only an answer is wanted.
    stops_at_type: bool,
}

impl Walk<'_> {
    /// False if there are more steps than are left.
    fn node(&mut self, node: usize, value: &Value, depth: usize) -> bool {
        let Some(node) = self.graph.nodes.get(node) else { return true };
        if depth > MAX_DEPTH || !self.take(node.steps.saturating_mul(length(value))) {
            return false;
        }
        if self.stops_at_type && node.types.is_some_and(|types| types & type_of(value) == 0) {
            return true;
        }
        if node.foreign || node.unique && value.is_array() {
            let each = if node.foreign { FOREIGN_STEPS } else { 1 };
            if !self.take(size(value).saturating_mul(each)) {
                return false;
            }
        }
        for _ in 0..=u8::from(node.twice) {
            for inner in &node.in_place {
                if !self.node(*inner, value, depth + 1) {
                    return false;
                }
            }
        }
        match value {
            Value::Object(members) => self.members(node, members, depth),
            Value::Array(items) => self.items(node, items, depth),
            _ => true,
        }
    }

    fn members(&mut self, node: &Node, members: &Map<String, Value>, depth: usize) -> bool {
        members.iter().all(|(name, member)| {
            let name_value = || Value::String(name.clone());
            let property = node.properties.get(name);
            let others: &[usize] = if property.is_some() { &[] } else { &node.other_members };
            self.take(node.steps_per_member)
                && node.member_names.iter().all(|inner| self.node(*inner, &name_value(), depth + 1))
                && property
                    .into_iter()
                    .chain(others)
                    .chain(&node.every_member)
                    .all(|inner| self.node(*inner, member, depth + 1))
        })
    }

    fn items(&mut self, node: &Node, items: &[Value], depth: usize) -> bool {
        items.iter().enumerate().all(|(at, item)| {
            let first = node.first_items.get(at);
            let others: &[usize] = if first.is_some() { &[] } else { &node.other_items };
            first
                .into_iter()
                .chain(others)
                .chain(&node.every_item)
                .all(|inner| self.node(*inner, item, depth + 1))
        })
    }

    fn take(&mut self, steps: u64) -> bool {
        let left = self.left.checked_sub(steps);
        self.left = left.unwrap_or(0);
        left.is_some()
    }
}

/// A value counts once, a long string more often.
fn length(value: &Value) -> u64 {
    match value {
        Value::String(text) => 1 + (text.len() / BYTES_PER_STEP) as u64,
        _ => 1,
    }
}

/// The lengths of a value and all in it.
fn size(value: &Value) -> u64 {
    length(value)
        + match value {
            Value::Object(members) => {
                members.iter().map(|(name, member)| (name.len() / BYTES_PER_STEP) as u64 + size(member)).sum()
            }
            Value::Array(items) => items.iter().map(size).sum(),
            _ => 0,
        }
}
