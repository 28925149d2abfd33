//! `watch`: what changes, as it changes.

use std::future::IntoFuture;
use std::time::{Duration, Instant};

use anyhow::Result;
use refmcp_client::model::{Resource, ServerNotification, SubscriptionFilter};
use refmcp_client::{CallError, Client, Error, Event, Lifecycle, TransportError};
use tokio::sync::broadcast::error::RecvError;

use super::exit_error;
use super::output;
use super::session::Session;
use crate::args::{ExitError, ExitReason, OutputFormat};
use crate::ui::error::rpc_of;
use crate::ui::output::reader_left;
use crate::ui::suggest::nearest;
use crate::ui::text::{multi_line, one_line};
use refmcp_proto::revision::Method;

/// A stream that lasted this long is opened again when it breaks; a server that ends streams at once does not want it.
const MIN_STREAM_DURATION: Duration = Duration::from_secs(1);

/// How long a server may take to show that it is there.
pub(crate) const PING_TIMEOUT: Duration = Duration::from_secs(2);

/// How often a server with sessions is asked whether it is there.
const PING_INTERVAL: Duration = Duration::from_secs(5);

/// Shows changes until a signal comes, the server ends or standard output has no reader.
pub(crate) async fn watch(session: &Session, uris: &[String]) -> Result<()> {
    let mut events = session.events.subscribe();
    let client = &session.client;
    let stateless = is_stateless(client);
    check(session, uris).await?;
    let listening = async {
        if stateless {
            let filter = filter(uris.to_vec());
            let mut listened = false;
            loop {
                let since = Instant::now();
                let ended = client.listen(&filter).await.map(drop);
                let lasted = since.elapsed() >= MIN_STREAM_DURATION;
                let why = match ended {
                    Ok(()) => "the server ended the stream of changes".to_owned(),
                    Err(Error::Call(CallError::Transport(TransportError::Broken(why)))) => why,
                    Err(error) if listened => return Err(lost(&error.to_string())),
                    Err(error) => return Err(session.fault(Method::Subscribe.name(), &error)),
                };
                if !lasted {
                    return Err(lost(&why));
                }
                // Streams end with the token they were opened by, with a proxy's patience, or with the server.
                listened = true;
                let why = one_line(&why);
                session.bars.say(&format!(
                    "refmcp: the connection is lost: {why}; listening anew, changes in between are not shown\n"
                ));
            }
        } else {
            for uri in uris {
                let subscribed = session.budget.within(client.subscribe(uri).into_future()).await;
                subscribed.map_err(|error| session.fault(Method::Subscribe.name(), &error))?;
            }
            if session.shared.output == OutputFormat::Text
                && let Err(error) = output::write(b"listening\n")
            {
                tracing::warn!("standard output: {error:#}");
            }
            notice_loss(session).await
        }
    };
    let showing = async {
        loop {
            match events.recv().await {
                Ok(Event::Notification(told)) => show(session, &told)?,
                Ok(Event::Closed(why)) => {
                    return Err(lost(&why.to_string()));
                }
                Ok(Event::Reopened(_)) => {
                    tracing::warn!("the session was lost and opened anew");
                    if !stateless {
                        for uri in uris {
                            client.subscribe(uri).await.map_err(|error| exit_error::of_request(&error))?;
                        }
                    }
                }
                Ok(_) => {}
                Err(RecvError::Lagged(missed)) => {
                    tracing::warn!("{missed} changes came too fast to be shown");
                }
                Err(RecvError::Closed) => return Ok(()),
            }
        }
    };
    tokio::select! {
        ended = listening => ended,
        shown = showing => shown,
        () = reader_left() => Ok(()),
    }
}

/// The server is gone, and with it what was watched.
fn lost(why: &str) -> anyhow::Error {
    ExitError::new(ExitReason::Unreachable, multi_line(&format!("the connection is lost: {why}"))).into()
}

/// Asks a server with sessions now and then whether it is there: over HTTP nothing else tells of its end.
async fn notice_loss(session: &Session) -> Result<()> {
    loop {
        tokio::time::sleep(PING_INTERVAL).await;
        if let Err(why) = answers_within(&session.client, session.shared.timeout).await {
            return Err(lost(&why.unwrap_or_else(|| session.budget.over())));
        }
    }
}

/// Whether a server answers a ping; why not, if it does not just take too long.
pub(crate) async fn answers(client: &Client) -> Result<(), Option<String>> {
    answers_within(client, PING_TIMEOUT).await
}

async fn answers_within(client: &Client, limit: Duration) -> Result<(), Option<String>> {
    match tokio::time::timeout(limit, client.ping()).await {
        Ok(Ok(())) => Ok(()),
        // A server that refuses a ping is there.
        Ok(Err(error)) if error.rpc().is_some() => Ok(()),
        Ok(Err(error)) => Err(Some(error.to_string())),
        Err(_) => Err(None),
    }
}

/// Whether changes have to be listened for with a request.
pub(crate) fn is_stateless(client: &Client) -> bool {
    client.server().rules().lifecycle == Lifecycle::PerRequest
}

/// Changes of all lists, and of these resources.
pub(crate) fn filter(uris: Vec<String>) -> SubscriptionFilter {
    SubscriptionFilter {
        tools_list_changed: Some(true),
        prompts_list_changed: Some(true),
        resources_list_changed: Some(true),
        resource_subscriptions: Some(uris).filter(|uris| !uris.is_empty()),
        ..SubscriptionFilter::default()
    }
}

/// Whether there is something at each address. Not every revision, and not every server, tells that when it is
/// subscribed to: nothing would ever come.
pub(crate) async fn check(session: &Session, uris: &[String]) -> Result<()> {
    if uris.is_empty() {
        return Ok(());
    }
    let capabilities = &session.client.server().capabilities;
    if capabilities.resources.as_ref().is_none_or(|resources| resources.subscribe != Some(true)) {
        // Some servers that take subscriptions do not say so; those that do not may still fail to say that.
        session
            .bars
            .say("refmcp: the server declares no subscriptions to resources: perhaps nothing comes\n");
    }
    // A server that does not list its resources can still be asked for one.
    let listed = session.list::<Resource>().await.unwrap_or_default();
    for uri in uris.iter().filter(|uri| !listed.iter().any(|resource| resource.uri == **uri)) {
        let Err(error) = session.ask(session.client.read_resource(uri)).await else { continue };
        let error = session.fault(Method::ReadResource.name(), &error);
        let known: Vec<&str> = listed.iter().map(|resource| resource.uri.as_str()).collect();
        let near = nearest(uri, &known).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        let what = format!("{uri} cannot be watched: {error:#}{near}");
        return Err(ExitError::new(ExitReason::of(&error), one_line(&what)).answered(rpc_of(&error)).into());
    }
    Ok(())
}

fn show(session: &Session, told: &ServerNotification) -> Result<()> {
    match session.shared.output {
        OutputFormat::Text => match describe(told) {
            Some(line) => output::write(format!("{line}\n").as_bytes()),
            None => Ok(()),
        },
        OutputFormat::Json => output::write(format!("{}\n", serde_json::to_string(told)?).as_bytes()),
        // Each message was printed when it passed.
        OutputFormat::Jsonl => Ok(()),
    }
}

/// A change, for people; nothing for what is shown elsewhere.
pub(crate) fn describe(told: &ServerNotification) -> Option<String> {
    Some(match told {
        ServerNotification::ToolsListChanged(_) => "the tools have changed".to_owned(),
        ServerNotification::PromptsListChanged(_) => "the prompts have changed".to_owned(),
        ServerNotification::ResourcesListChanged(_) => "the resources have changed".to_owned(),
        ServerNotification::ResourceUpdated(updated) => format!("changed: {}", one_line(&updated.uri)),
        ServerNotification::ElicitationComplete(done) => {
            format!("done on the web page: {}", one_line(&done.elicitation_id))
        }
        ServerNotification::Task(task) | ServerNotification::TaskStatus(task) => {
            format!("task {}: {}", one_line(&task.task_id), one_line(task.status.as_str()))
        }
        ServerNotification::SubscriptionsAcknowledged(_) => "listening".to_owned(),
        ServerNotification::Custom { method, params } => {
            format!(
                "{} {}",
                one_line(method),
                one_line(&serde_json::Value::Object(params.clone()).to_string())
            )
        }
        ServerNotification::Log(_) | ServerNotification::Progress(_) | ServerNotification::Cancelled(_) => {
            return None;
        }
    })
}
