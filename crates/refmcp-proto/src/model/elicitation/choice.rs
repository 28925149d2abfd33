//! The fields of a form that offer choices, in all the notations revisions have had for them.

use serde::{Deserialize, Serialize, Serializer, de};
use serde_json::{Value, json};

use crate::model::base::union;
use crate::model::{Extra, JsonObject};

/// What can be chosen, and how that is written.
#[derive(Debug, Clone, PartialEq)]
pub enum Choices {
    /// Values that speak for themselves: `enum`.
    Plain(Vec<String>),
    /// Values with a title each: `oneOf`, or `anyOf` where several may be chosen.
    Titled(Vec<TitledChoice>),
    /// Values and their titles in two lists, the old notation: `enum` and `enumNames`.
    Named {
        /// The values.
        values: Vec<String>,
        /// The titles, in the same order.
        names: Vec<String>,
    },
}

impl Choices {
    /// Choices with a title each, from pairs of value and title.
    pub fn titled<V: Into<String>, T: Into<String>>(choices: impl IntoIterator<Item = (V, T)>) -> Self {
        Self::Titled(choices.into_iter().map(|(value, title)| TitledChoice::new(value, title)).collect())
    }

    /// The values, in order.
    pub fn values(&self) -> Vec<&str> {
        match self {
            Self::Plain(values) | Self::Named { values, .. } => values.iter().map(String::as_str).collect(),
            Self::Titled(choices) => choices.iter().map(|choice| choice.value.as_str()).collect(),
        }
    }

    /// Whether the value is among them.
    pub fn contains(&self, value: &str) -> bool {
        self.values().contains(&value)
    }

    /// The same choices in the old notation; those without titles need none.
    #[must_use]
    pub fn to_named(&self) -> Self {
        match self {
            Self::Titled(choices) => Self::Named {
                values: choices.iter().map(|choice| choice.value.clone()).collect(),
                names: choices.iter().map(|choice| choice.title.clone()).collect(),
            },
            other => other.clone(),
        }
    }

    /// Takes the choices out of an object; `titled` names the member of the titled notation.
    fn take<E: de::Error>(object: &mut JsonObject, titled: &str, what: &str) -> Result<Self, E> {
        fn list<T: de::DeserializeOwned, E: de::Error>(value: Value, key: &str, what: &str) -> Result<T, E> {
            serde_json::from_value(value)
                .map_err(|error| E::custom(format_args!("`{key}` of {what}: {error}")))
        }

        let mut take = |key: &str| object.remove(key).filter(|value| !value.is_null());
        match (take("enum"), take(titled)) {
            (Some(values), None) => {
                let values = list(values, "enum", what)?;
                match take("enumNames") {
                    None => Ok(Self::Plain(values)),
                    Some(names) => Ok(Self::Named { values, names: list(names, "enumNames", what)? }),
                }
            }
            (None, Some(choices)) => list(choices, titled, what).map(Self::Titled),
            (Some(_), Some(_)) => Err(E::custom(format_args!("{what} has both `enum` and `{titled}`"))),
            (None, None) => Err(E::custom(format_args!("{what} has no `enum` or `{titled}`"))),
        }
    }

    /// The members that say the choices; `titled` names the member of the titled notation.
    fn members(&self, titled: &str) -> JsonObject {
        let mut members = JsonObject::new();
        match self {
            Self::Plain(values) => {
                members.insert("enum".to_owned(), json!(values));
            }
            Self::Titled(choices) => {
                members.insert(titled.to_owned(), json!(choices));
            }
            Self::Named { values, names } => {
                members.insert("enum".to_owned(), json!(values));
                members.insert("enumNames".to_owned(), json!(names));
            }
        }
        members
    }
}

impl<S: Into<String>> FromIterator<S> for Choices {
    fn from_iter<I: IntoIterator<Item = S>>(values: I) -> Self {
        Self::Plain(values.into_iter().map(Into::into).collect())
    }
}

json_object! {
    /// A value with a title.
    pub struct TitledChoice {
        /// The value, `const` on the wire.
        #[serde(rename = "const")]
        value: String,
        /// The title.
        title: String,
        /// A value with a title.
        fn new,
    }
}

/// One of several choices.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SingleChoiceSchema {
    /// The label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The explanation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What can be chosen.
    #[serde(flatten, serialize_with = "write_single")]
    pub choices: Choices,
    /// What is chosen at first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Members this model does not name.
    #[serde(flatten)]
    pub extra: Extra,
}

impl SingleChoiceSchema {
    /// One of these.
    pub fn new(choices: Choices) -> Self {
        Self { title: None, description: None, choices, default: None, extra: Extra::new() }
    }

    setters! {
        /// Sets the label.
        title: String,
        /// Sets the explanation.
        description: String,
    }

    setters! {
        /// Sets what is chosen at first; `default` would clash with the trait.
        with_default default: String,
    }

    /// Reads the members besides `type`.
    pub(super) fn from_members<E: de::Error>(mut object: JsonObject) -> Result<Self, E> {
        #[derive(Deserialize)]
        struct Frame {
            title: Option<String>,
            description: Option<String>,
            default: Option<String>,
            #[serde(flatten)]
            extra: Extra,
        }

        let what = "choice field";
        let choices = Choices::take(&mut object, "oneOf", what)?;
        let Frame { title, description, default, extra } = union::rest(object, what)?;
        Ok(Self { title, description, choices, default, extra })
    }
}

fn write_single<S: Serializer>(choices: &Choices, serializer: S) -> Result<S::Ok, S::Error> {
    choices.members("oneOf").serialize(serializer)
}

/// Any of several choices.
#[derive(Debug, Clone, PartialEq)]
pub struct MultiChoiceSchema {
    /// The label.
    pub title: Option<String>,
    /// The explanation.
    pub description: Option<String>,
    /// What can be chosen; the old notation with two lists is not defined here.
    pub choices: Choices,
    /// How many must be chosen.
    pub min_items: Option<u64>,
    /// How many may be chosen.
    pub max_items: Option<u64>,
    /// What is chosen at first.
    pub default: Option<Vec<String>>,
    /// Members of `items` that this model does not name.
    pub items_extra: Extra,
    /// Members this model does not name.
    pub extra: Extra,
}

impl MultiChoiceSchema {
    /// Any of these.
    pub fn new(choices: Choices) -> Self {
        Self {
            title: None,
            description: None,
            choices,
            min_items: None,
            max_items: None,
            default: None,
            items_extra: Extra::new(),
            extra: Extra::new(),
        }
    }

    setters! {
        /// Sets the label.
        title: String,
        /// Sets the explanation.
        description: String,
        /// Sets how many must be chosen.
        min_items: u64,
        /// Sets how many may be chosen.
        max_items: u64,
    }

    setters! {
        /// Sets what is chosen at first; `default` would clash with the trait.
        with_default default: Vec<String>,
    }

    /// Reads the members besides `type`.
    pub(super) fn from_members<E: de::Error>(object: JsonObject) -> Result<Self, E> {
        let what = "multiple choice field";
        let MultiFrame { title, description, min_items, max_items, mut items, default, extra } =
            union::rest(object, what)?;
        let choices = Choices::take(&mut items, "anyOf", what)?;
        if matches!(choices, Choices::Plain(_)) {
            items.remove("type");
        }
        Ok(Self { title, description, choices, min_items, max_items, default, items_extra: items, extra })
    }
}

/// The members of a multiple choice as they are on the wire, where the choices sit one level down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct MultiFrame {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    min_items: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_items: Option<u64>,
    items: JsonObject,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    default: Option<Vec<String>>,
    #[serde(flatten)]
    extra: Extra,
}

impl Serialize for MultiChoiceSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut items = self.choices.members("anyOf");
        if !matches!(self.choices, Choices::Titled(_)) {
            items.insert("type".to_owned(), Value::from("string"));
        }
        items.extend(self.items_extra.clone());
        MultiFrame {
            title: self.title.clone(),
            description: self.description.clone(),
            min_items: self.min_items,
            max_items: self.max_items,
            items,
            default: self.default.clone(),
            extra: self.extra.clone(),
        }
        .serialize(serializer)
    }
}
