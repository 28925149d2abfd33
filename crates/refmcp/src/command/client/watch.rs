//! `watch`: what changes, as it changes.

use std::time::{Duration, Instant};

use anyhow::Result;
use refmcp_client::model::{ServerNotification, SubscriptionFilter};
use refmcp_client::{CallError, Error, Event, Lifecycle, WireError};
use tokio::sync::broadcast::error::RecvError;

use super::fault;
use super::output;
use super::session::Session;
use crate::args::{Exit, ExitReason, Output};
use crate::ui::text::one_line;

/// Whoever listened this long listens again when the stream breaks; a server that ends streams at once does not want it.
pub(crate) const LASTED: Duration = Duration::from_secs(1);

/// Shows changes until somebody has had enough, or the server has.
pub(crate) async fn watch(session: &Session, uris: &[String]) -> Result<()> {
    let mut events = session.events.subscribe();
    let client = &session.client;
    let stateless = client.server().rules().lifecycle == Lifecycle::PerRequest;
    let listening = async {
        if stateless {
            let filter = SubscriptionFilter {
                tools_list_changed: Some(true),
                prompts_list_changed: Some(true),
                resources_list_changed: Some(true),
                resource_subscriptions: Some(uris.to_vec()).filter(|uris| !uris.is_empty()),
                ..SubscriptionFilter::default()
            };
            loop {
                let since = Instant::now();
                match client.listen(&filter).await {
                    // Streams end with the token they were opened by, or with a proxy's patience.
                    Err(Error::Call(CallError::Wire(WireError::Broken(why))))
                        if since.elapsed() >= LASTED =>
                    {
                        tracing::info!(why, "listening anew; changes in between are not shown");
                    }
                    ended => return ended.map(drop),
                }
            }
        } else {
            for uri in uris {
                client.subscribe(uri).await?;
            }
            if session.shared.output == Output::Text
                && let Err(fault) = output::write(b"listening\n")
            {
                tracing::warn!("nobody reads: {fault:#}");
            }
            std::future::pending().await
        }
    };
    let showing = async {
        loop {
            match events.recv().await {
                Ok(Event::Told(told)) => show(session, &told)?,
                Ok(Event::Closed(why)) => {
                    return Err(Exit::new(ExitReason::Unreachable, one_line(&why.to_string())).into());
                }
                Ok(Event::Reopened(_)) => {
                    tracing::warn!("the session was lost and opened anew");
                    if !stateless {
                        for uri in uris {
                            client.subscribe(uri).await.map_err(|fault| fault::of_request(&fault))?;
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
        ended = listening => ended.map_err(|fault| fault::of_request(&fault)),
        shown = showing => shown,
    }
}

fn show(session: &Session, told: &ServerNotification) -> Result<()> {
    match session.shared.output {
        Output::Text => match describe(told) {
            Some(line) => output::write(format!("{line}\n").as_bytes()),
            None => Ok(()),
        },
        Output::Json => output::write(format!("{}\n", serde_json::to_string(told)?).as_bytes()),
        // Each message was printed when it passed.
        Output::Jsonl => Ok(()),
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
