//! `models` and `--model`: the models that a server knows, and the one its sampling requests name.

use std::collections::BTreeMap;

use anyhow::Result;
use refmcp_client::Lifecycle;
use refmcp_client::model::JsonObject;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::extra_methods::ExtraMethods;
use super::output::WithRawJson;
use super::session::Session;
use super::watch::is_stateless;
use crate::args::{ExitError, ExitReason};
use crate::ui::error::{reworded, rpc_of};
use crate::ui::render::{self, Rendered};
use crate::ui::suggest::nearest;

/// Where a request names its model when no session remembers one.
const META: &str = "refmcp/model";

/// The answer to `models/list`, as far as people are shown it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct ModelList {
    pub(crate) models: Vec<Model>,
    pub(crate) active: Option<String>,
}

impl ModelList {
    /// Whether a model of the list is the active one.
    pub(crate) fn is_active(&self, model: &Model) -> bool {
        model.active || self.active.as_ref() == Some(&model.name)
    }
}

/// One model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Model {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) context_length: Option<u64>,
    #[serde(default)]
    pub(crate) active: bool,
}

/// `list models`: the models, and which is active.
pub(crate) async fn list(session: &Session) -> Result<()> {
    let fetched = fetch(session).await?;
    session.printer.show(&fetched.text, |view| {
        let text = render::models(&fetched.item, view);
        Rendered::of_list(text, fetched.item.models.is_empty(), view)
    })
}

/// The models, and as the server wrote them.
pub(crate) async fn fetch(session: &Session) -> Result<WithRawJson<ModelList>> {
    ExtraMethods::MODELS.require(session)?;
    let request = session.client.raw("models/list", JsonObject::new()).read_as();
    session.ask(request).await.map_err(|error| session.fault("models/list", &error))
}

/// The text of each model in an answer to `models/list`.
pub(crate) fn texts(answer: &RawValue) -> Result<Vec<Box<RawValue>>> {
    let mut members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(answer.get())?;
    let texts = members.remove("models").map(|texts| serde_json::from_str(texts.get())).transpose()?;
    Ok(texts.unwrap_or_default())
}

/// `models select`: selects a model and tells how long that lasts.
pub(crate) async fn select(session: &Session, name: &str) -> Result<()> {
    select_quietly(session, name).await?;
    let server = session.client.server();
    session.printer.show(&json!({ "active": name }), |_| match server.rules().lifecycle {
        Lifecycle::PerRequest => format!(
            "{name} is a model of the server. Under {} there is no session to select it for: every request names its \
             model, with --model {name}\n",
            server.revision.as_str()
        ),
        _ => format!("{name} is selected for this session, which ends now: calls take --model {name}\n"),
    })
}

/// Selects a model: for the session, or for every request from now on where there is none.
pub(crate) async fn select_quietly(session: &Session, name: &str) -> Result<()> {
    ExtraMethods::MODELS.require(session)?;
    let client = &session.client;
    let per_request = is_stateless(client);
    let named = JsonObject::from_iter([(META.to_owned(), Value::from(name))]);
    let request = if per_request {
        // Asked with the model in `_meta`, the list says whether the server takes it.
        client.raw("models/list", JsonObject::new()).meta(named.clone())
    } else {
        client.raw("models/select", JsonObject::from_iter([("name".to_owned(), name.into())]))
    };
    let method = if per_request { "models/list" } else { "models/select" };
    let answer = match session.ask(request).await {
        Ok(answer) => answer,
        Err(error) => {
            let error = session.fault(method, &error);
            return Err(match suggested(session, name).await {
                Some(near) if rpc_of(&error).is_some() => {
                    reworded(&error, format!("{error}; did you mean {near:?}?"))
                }
                _ => error,
            });
        }
    };
    let active = answer.get("active").and_then(Value::as_str);
    if active != Some(name) {
        let active = active.unwrap_or("none");
        let what = format!("the server did not select {name:?}; its active model is {active}");
        return Err(ExitError::new(ExitReason::Failed, what).into());
    }
    if per_request {
        client.set_meta(named);
    }
    Ok(())
}

/// The model that may have been meant by a name that the server does not know.
async fn suggested(session: &Session, name: &str) -> Option<String> {
    let listed = fetch(session).await.ok()?.item;
    let names: Vec<&str> = listed.models.iter().map(|model| model.name.as_str()).collect();
    nearest(name, &names).filter(|near| *near != name).map(str::to_owned)
}
