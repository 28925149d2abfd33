//! The steps that change lists and resources while the server runs. What was added goes after a while, and is announced again.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use refmcp_server::model::{PromptMessage, ResourceContents};
use refmcp_server::{Call, Catalog, Change, NoArguments, Prompt, Resource, Server, Session, Tool};
use tokio::time::sleep;

use super::step::Step;
use crate::resources::builtin;

/// The name of the tool and of the prompt.
const NAME: &str = "tour_added";
/// The address of the resource.
const URI: &str = "tour:///added";
/// How long they stay.
const STAY: Duration = Duration::from_secs(3);
/// What is updated for clients whose subscriptions are not known.
const UPDATED: &str = "file:///resources/notes.txt";

/// Where a change belongs: to a session, or, where there is none, to the whole server.
#[derive(Clone)]
pub(super) enum Lists {
    Session(Arc<Session>),
    Server(Server),
}

impl Lists {
    pub(super) fn of(call: &Call) -> Self {
        match call.session() {
            Some(session) => Self::Session(session.clone()),
            None => Self::Server(call.server().clone()),
        }
    }

    async fn change(&self, change: impl FnOnce(&mut Catalog) + Send) {
        match self {
            Self::Session(session) => session.change_lists(change).await,
            Self::Server(server) => server.change_lists(change),
        }
    }

    /// What the client has subscribed to, as far as that is known here.
    fn subscriptions(&self) -> Vec<String> {
        match self {
            Self::Session(session) => {
                let watched =
                    session.inspect(|engine| engine.watched_resources().map(str::to_owned).collect());
                watched.unwrap_or_default()
            }
            Self::Server(_) => vec![UPDATED.to_owned()],
        }
    }

    /// Whether the client has subscribed to something, or that is not known.
    pub(super) fn is_subscribed(&self) -> bool {
        !self.subscriptions().is_empty()
    }
}

/// Makes the change of a step, and says what was done; `None` for other steps.
pub(super) async fn change(step: Step, lists: Lists) -> Option<String> {
    match step {
        Step::ToolListChange | Step::PromptListChange | Step::ResourceListChange => {
            lists.change(|catalog| add(step, catalog)).await;
            tokio::spawn(async move {
                sleep(STAY).await;
                lists.change(|catalog| remove(step, catalog)).await;
            });
            Some("announced".to_owned())
        }
        Step::ResourceUpdate => {
            let subscriptions = lists.subscriptions();
            for uri in &subscriptions {
                update(&lists, uri).await;
            }
            Some(format!(
                "announced {} of resources",
                if subscriptions.len() == 1 { "an update" } else { "updates" }
            ))
        }
        _ => None,
    }
}

fn add(step: Step, catalog: &mut Catalog) {
    match step {
        Step::ToolListChange => {
            let tool = Tool::new(NAME, "Was added by the tour and goes soon", |_: Call, _: NoArguments| {
                ready(Ok("This tool was added by the tour"))
            });
            // Its schema is that of no arguments, which compiles.
            let _ = catalog.add_tool(tool.title("Added by the tour").read_only().idempotent().inline());
        }
        Step::PromptListChange => {
            let says = |_, _| ready(Ok(PromptMessage::user("This prompt was added by the tour.")));
            catalog.add_prompt(Prompt::new(NAME, says).title("Added by the tour"));
        }
        _ => {
            let contents = ResourceContents::text(URI, "This resource was added by the tour.\n");
            catalog.add_resource(Resource::new(URI, "added", move |_| ready(Ok(contents.clone()))));
        }
    }
}

fn remove(step: Step, catalog: &mut Catalog) {
    match step {
        Step::ToolListChange => catalog.remove_tool(NAME),
        Step::PromptListChange => catalog.remove_prompt(NAME),
        _ => catalog.remove_resource(URI),
    };
}

/// Updates a resource: a built-in text for all who have subscribed to it, any other for this session.
async fn update(lists: &Lists, uri: &str) {
    let server = match lists {
        Lists::Session(session) => session.server(),
        Lists::Server(server) => server,
    };
    if builtin::touch(server, uri).is_err()
        && let Lists::Session(session) = lists
    {
        session.published(Change::Resource(uri.to_owned())).await;
    }
}
