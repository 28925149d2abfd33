//! What a host reads of an app: the metadata of a tool, and a page with its metadata.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{AppError, ContentSecurityPolicy, check_page, check_uri, check_visibility};
use crate::jsonrpc::excerpt;
use crate::model::{
    APP_MIME_TYPE, JsonObject, Meta, ReadResourceResult, Resource, ResourceBody, Tool, UI_META,
    UiPermissions, UiResourceMeta, UiToolMeta, UiVisibility,
};

/// The key that older servers have in place of `_meta.ui.resourceUri`.
const OLD_KEY: &str = "ui/resourceUri";

/// What a tool says about its app, and what is wrong with it.
///
/// A visibility that cannot be read makes a tool visible to neither the model nor apps; a URI that is none of a page is
/// left out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolUi {
    /// The metadata, without what is wrong.
    pub meta: UiToolMeta,
    /// What is wrong.
    pub faults: Vec<AppError>,
}

impl ToolUi {
    /// Reads the metadata of a tool; `None` where it says nothing about apps.
    pub fn of(tool: &Tool) -> Option<Self> {
        let mut faults = Vec::new();
        let declared = tool.meta.as_ref()?;
        let old = declared.get(OLD_KEY);
        let ui = declared.get(UI_META).or(old.map(|_| &Value::Null))?;
        let mut members = members_of(ui, &mut faults);
        if let (Some(old), false) = (old, members.contains_key("resourceUri")) {
            faults.push(AppError::OldKey);
            members.insert("resourceUri".to_owned(), old.clone());
        }
        let mut resource_uri: Option<String> = member(&mut members, "resourceUri", &mut faults);
        if let Some(fault) = resource_uri.as_deref().and_then(|uri| check_uri(uri).err()) {
            resource_uri = None;
            faults.push(fault);
        }
        // What cannot be read makes a tool visible to neither.
        let is_named = members.get("visibility").is_some_and(|value| !value.is_null());
        let mut visibility: Option<Vec<UiVisibility>> = member(&mut members, "visibility", &mut faults);
        if is_named {
            faults.extend(check_visibility(visibility.get_or_insert_default()).err());
        } else if !(ui.is_object() || ui.is_null()) {
            visibility = Some(Vec::new());
        }
        let meta = UiToolMeta { resource_uri, visibility, extra: members };
        Some(Self { meta, faults })
    }

    /// Whether a host may offer the tool to the model.
    pub fn is_offered_to_model(tool: &Tool) -> bool {
        Self::of(tool).is_none_or(|ui| ui.meta.is_visible_to(&UiVisibility::Model))
    }

    /// Whether a host lets an app of the same server connection call the tool.
    pub fn is_callable_by_app(tool: &Tool) -> bool {
        Self::of(tool).is_none_or(|ui| ui.meta.is_visible_to(&UiVisibility::App))
    }
}

/// Where the metadata of a page comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetaSource {
    /// From what was read.
    Contents,
    /// From the list of resources: what was read has none.
    List,
    /// There is none.
    None,
}

/// A page as a host shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct AppPage {
    /// Its URI.
    pub uri: String,
    /// The document: text, or bytes in base64.
    pub body: ResourceBody,
    /// Its metadata, without what is wrong.
    pub meta: UiResourceMeta,
    /// Where that comes from.
    pub source: MetaSource,
    /// What is wrong.
    pub faults: Vec<AppError>,
}

impl AppPage {
    /// Reads a page from the result of `resources/read`, and its entry in the list of resources where it has one. Metadata
    /// of what was read holds as a whole, and that of the list only where there is none.
    pub fn read(uri: &str, result: &ReadResourceResult, listed: Option<&Resource>) -> Result<Self, AppError> {
        let no_page = |why| AppError::NoPage { uri: excerpt(uri), why };
        check_uri(uri)?;
        let named = result.contents.iter().find(|contents| contents.uri == uri);
        let contents = match (named, result.contents.as_slice()) {
            (Some(contents), _) => contents,
            (None, []) => return Err(no_page("nothing")),
            (None, _) => return Err(no_page("only contents of other URIs")),
        };
        let mut faults = Vec::new();
        let mime_type = contents.mime_type.as_deref().unwrap_or_default();
        if mime_type != APP_MIME_TYPE {
            faults.push(AppError::MimeType(excerpt(mime_type)));
        }
        if let ResourceBody::Text(html) = &contents.body {
            faults.extend(check_page(html).err());
        }
        let of_contents = ui_member(contents.meta.as_ref());
        let of_list = ui_member(listed.and_then(|listed| listed.meta.as_ref()));
        if of_contents.is_some() && of_list.is_some() && of_contents != of_list {
            faults.push(AppError::MetaDiffers);
        }
        let (source, ui) = match (of_contents, of_list) {
            (Some(ui), _) => (MetaSource::Contents, ui),
            (None, Some(ui)) => (MetaSource::List, ui),
            (None, None) => (MetaSource::None, &Value::Null),
        };
        let meta = resource_meta(ui, &mut faults);
        faults.extend(ContentSecurityPolicy::new(meta.csp.as_ref()).faults().iter().cloned());
        Ok(Self { uri: uri.to_owned(), body: contents.body.clone(), meta, source, faults })
    }

    /// The policy to enforce on the page.
    pub fn policy(&self) -> ContentSecurityPolicy {
        ContentSecurityPolicy::new(self.meta.csp.as_ref())
    }

    /// The value of the attribute `allow` of the frame, where all permissions are granted that the page would like.
    pub fn allow(&self) -> String {
        let features = self.meta.permissions.iter().flat_map(UiPermissions::features);
        features.collect::<Vec<_>>().join("; ")
    }
}

fn ui_member(meta: Option<&Meta>) -> Option<&Value> {
    meta?.get(UI_META).filter(|ui| !ui.is_null())
}

/// Reads each member by itself, so that one which cannot be read takes no other with it.
fn resource_meta(ui: &Value, faults: &mut Vec<AppError>) -> UiResourceMeta {
    let mut members = members_of(ui, faults);
    UiResourceMeta {
        csp: member(&mut members, "csp", faults),
        permissions: member(&mut members, "permissions", faults),
        domain: member(&mut members, "domain", faults),
        prefers_border: member(&mut members, "prefersBorder", faults),
        extra: members,
    }
}

/// Takes a member that is there and can be read.
fn member<T: DeserializeOwned>(
    members: &mut JsonObject,
    name: &str,
    faults: &mut Vec<AppError>,
) -> Option<T> {
    let value = members.remove(name).filter(|value| !value.is_null())?;
    match serde_json::from_value(value) {
        Ok(value) => Some(value),
        Err(error) => {
            faults.push(AppError::Unreadable(format!("{name}: {}", excerpt(&error.to_string()))));
            None
        }
    }
}

/// The members of `_meta.ui`; what is no object has none.
fn members_of(ui: &Value, faults: &mut Vec<AppError>) -> JsonObject {
    match ui {
        Value::Object(members) => members.clone(),
        Value::Null => JsonObject::new(),
        other => {
            let what = format!("it is no object: {}", excerpt(&other.to_string()));
            faults.push(AppError::Unreadable(what));
            JsonObject::new()
        }
    }
}

#[cfg(test)]
mod tests;
