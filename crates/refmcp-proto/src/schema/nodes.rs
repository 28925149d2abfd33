//! The schemas of a document, and which of them apply which others.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use super::pattern;

/// Most schemas with an identifier of their own in one schema.
const MAX_RESOURCES: usize = 50;

/// Most states of all patterns.
const MAX_STATES: u64 = 500_000;

/// One schema.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// Steps of its own keywords.
    pub(super) steps: u64,
    /// Steps for the name of each member.
    pub(super) steps_per_member: u64,
    /// The types that it allows, as bits; `None` for all.
    pub(super) types: Option<u8>,
    /// Schemas that are applied to the same value.
    pub(super) in_place: Vec<usize>,
    /// True if they are applied once more, to find out what they have evaluated.
    pub(super) twice: bool,
    /// True if items are compared with each other.
    pub(super) unique: bool,
    /// True if it applies a schema that is not part of the document.
    pub(super) foreign: bool,
    pub(super) properties: BTreeMap<String, usize>,
    /// Schemas for members that are no properties.
    pub(super) other_members: Vec<usize>,
    pub(super) every_member: Vec<usize>,
    pub(super) member_names: Vec<usize>,
    pub(super) first_items: Vec<usize>,
    /// Schemas for items after the first ones.
    pub(super) other_items: Vec<usize>,
    pub(super) every_item: Vec<usize>,
}

impl Node {
    /// The steps of its own keywords.
    pub(super) fn own_steps(&self) -> u64 {
        let unique = if self.unique { 10 } else { 0 };
        self.steps.saturating_add(self.steps_per_member).saturating_add(unique)
    }

    /// The schemas that are applied to members and items.
    pub(super) fn below(&self) -> impl Iterator<Item = usize> {
        let lists = [
            &self.other_members,
            &self.every_member,
            &self.member_names,
            &self.first_items,
            &self.other_items,
            &self.every_item,
        ];
        self.properties.values().copied().chain(lists.into_iter().flatten().copied())
    }
}

/// Finds the schemas of a document, each once.
#[derive(Default)]
pub(super) struct Builder<'a> {
    /// The document, and the schemas in it with an identifier of their own. A reference may count from any of them: all
    /// that it could mean is taken, which is more than it does mean and never less.
    resources: Vec<(Option<&'a str>, &'a Value)>,
    anchors: HashMap<&'a str, Vec<&'a Value>>,
    /// The numbers of schemas, by their address.
    numbers: HashMap<*const Value, usize>,
    found: Vec<&'a Value>,
    states: u64,
}

impl<'a> Builder<'a> {
    /// # Errors
    /// Too many schemas have an identifier.
    pub(super) fn new(document: &'a Value) -> Result<Self, String> {
        let mut builder = Self { resources: vec![(None, document)], ..Self::default() };
        let mut left = vec![document];
        while let Some(value) = left.pop() {
            match value {
                Value::Object(members) => {
                    builder.name(value, members, std::ptr::eq(value, document));
                    left.extend(members.values());
                }
                Value::Array(items) => left.extend(items),
                _ => {}
            }
        }
        if builder.resources.len() > MAX_RESOURCES {
            return Err(format!("more than {MAX_RESOURCES} of its schemas have an identifier"));
        }
        Ok(builder)
    }

    /// Remembers the names of a schema.
    fn name(&mut self, schema: &'a Value, members: &'a Map<String, Value>, is_document: bool) {
        let text = |key: &str| members.get(key).and_then(Value::as_str);
        for anchor in ["$anchor", "$dynamicAnchor"].into_iter().filter_map(text) {
            self.anchors.entry(anchor).or_default().push(schema);
        }
        match text("$id") {
            Some(id) if id.starts_with('#') => {
                self.anchors.entry(id.trim_start_matches('#')).or_default().push(schema);
            }
            Some(id) if is_document => self.resources = vec![(Some(id), schema)],
            Some(id) => self.resources.push((Some(id), schema)),
            None => {}
        }
    }

    /// All schemas, the document first.
    ///
    /// # Errors
    /// The patterns are too large.
    pub(super) fn build(mut self) -> Result<Vec<Node>, String> {
        let Some(document) = self.resources.first().map(|(_, document)| *document) else {
            return Ok(Vec::new());
        };
        self.number(document);
        let mut nodes = Vec::new();
        while let Some(schema) = self.found.get(nodes.len()).copied() {
            nodes.push(self.node(schema));
        }
        if self.states > MAX_STATES {
            return Err("its patterns are too large".to_owned());
        }
        Ok(nodes)
    }

    /// The number of a schema.
    fn number(&mut self, schema: &'a Value) -> usize {
        let next = self.found.len();
        let number = *self.numbers.entry(std::ptr::from_ref(schema)).or_insert(next);
        if number == next {
            self.found.push(schema);
        }
        number
    }

    fn numbers(&mut self, schemas: impl IntoIterator<Item = &'a Value>) -> Vec<usize> {
        schemas.into_iter().map(|schema| self.number(schema)).collect()
    }

    fn node(&mut self, schema: &'a Value) -> Node {
        let mut node = Node { steps: 1, ..Node::default() };
        let Value::Object(keywords) = schema else { return node };
        node.steps += keywords.len() as u64;
        for (keyword, value) in keywords {
            self.keyword(&mut node, keyword, value);
        }
        // In older dialects a reference stands alone, and a type beside it is ignored.
        if keywords.contains_key("$ref") {
            node.types = None;
        }
        node
    }

    fn keyword(&mut self, node: &mut Node, keyword: &str, value: &'a Value) {
        match keyword {
            "$ref" | "$dynamicRef" | "$recursiveRef" => {
                let targets = self.targets(value.as_str().unwrap_or_default());
                node.foreign |= targets.is_empty();
                let targets = self.numbers(targets);
                node.in_place.extend(targets);
            }
            "allOf" | "anyOf" | "oneOf" => node.in_place.extend(self.numbers(list(value))),
            "not" | "if" | "then" | "else" => node.in_place.push(self.number(value)),
            "dependentSchemas" | "dependencies" => {
                let (lists, schemas): (Vec<_>, Vec<_>) = values(value).partition(|value| value.is_array());
                node.steps += lists.into_iter().map(|names| list(names).count() as u64).sum::<u64>();
                node.in_place.extend(self.numbers(schemas));
            }
            "properties" => {
                for (name, schema) in value.as_object().into_iter().flatten() {
                    node.properties.insert(name.clone(), self.number(schema));
                }
            }
            "patternProperties" => {
                for (pattern, schema) in value.as_object().into_iter().flatten() {
                    node.steps_per_member += self.pattern_steps(pattern);
                    node.every_member.push(self.number(schema));
                }
            }
            "additionalProperties" => node.other_members.push(self.number(value)),
            "unevaluatedProperties" => {
                node.other_members.push(self.number(value));
                node.twice = true;
            }
            "propertyNames" => node.member_names.push(self.number(value)),
            "prefixItems" => node.first_items.extend(self.numbers(list(value))),
            "items" if value.is_array() => node.first_items.extend(self.numbers(list(value))),
            "items" | "additionalItems" => node.other_items.push(self.number(value)),
            "contains" => node.every_item.push(self.number(value)),
            "unevaluatedItems" => {
                node.every_item.push(self.number(value));
                node.twice = true;
            }
            "uniqueItems" => node.unique = value.as_bool() == Some(true),
            "enum" | "required" => node.steps += list(value).count() as u64,
            "dependentRequired" => {
                node.steps += values(value).map(|names| list(names).count() as u64).sum::<u64>();
            }
            "pattern" => node.steps += self.pattern_steps(value.as_str().unwrap_or_default()),
            "type" => node.types = types(value),
            _ => {}
        }
    }

    fn pattern_steps(&mut self, pattern: &str) -> u64 {
        let states = pattern::states(pattern);
        self.states = self.states.saturating_add(states);
        1 + states / 16
    }

    /// All that a reference could mean.
    fn targets(&self, reference: &str) -> Vec<&'a Value> {
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let last = last_segment(document);
        // Names that could be written in another way are not compared.
        let is_plain = |name: &str| !matches!(name, "" | "." | "..") && !name.contains('%');
        let fits = |id: &str| !is_plain(id) || id == last;
        // A document without an identifier has no name.
        let resources = self.resources.iter().filter(|(id, _)| {
            !is_plain(last) || id.is_some_and(|id| fits(last_segment(id.trim_end_matches('#'))))
        });
        let resources = resources.map(|(_, schema)| *schema);
        match pattern::percent_decoded(fragment) {
            fragment if fragment.is_empty() => resources.collect(),
            fragment if fragment.starts_with('/') => {
                resources.filter_map(|schema| schema.pointer(&fragment)).collect()
            }
            fragment => self.anchors.get(&*fragment).cloned().unwrap_or_default(),
        }
    }
}

/// Types as bits; an integer is a number.
const TYPES: [(&str, u8); 7] = [
    ("null", 1),
    ("boolean", 2),
    ("number", 4),
    ("integer", 4),
    ("string", 8),
    ("array", 16),
    ("object", 32),
];

/// The type of a value, as a bit.
pub(super) fn type_of(value: &Value) -> u8 {
    match value {
        Value::Null => 1,
        Value::Bool(_) => 2,
        Value::Number(_) => 4,
        Value::String(_) => 8,
        Value::Array(_) => 16,
        Value::Object(_) => 32,
    }
}

/// The last segment of a URI's path, and what follows it.
fn last_segment(uri: &str) -> &str {
    uri.rsplit('/').next().unwrap_or_default()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn values(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_object().into_iter().flat_map(Map::values)
}

/// The types of a `type`, as bits; `None` where there is one that is not known.
fn types(value: &Value) -> Option<u8> {
    let bit =
        |name: &Value| TYPES.iter().find(|(known, _)| name.as_str() == Some(*known)).map(|(_, bit)| *bit);
    match value {
        Value::Array(names) => names.iter().try_fold(0, |bits, name| Some(bits | bit(name)?)),
        name => bit(name),
    }
}
