//! The settings of a test engine as the head of a transcript writes them, and the engine as the server of a transcript.

use std::time::Duration;

use refmcp_proto::engine::{
    Change, CloseReason, DuplicateIds, EarlyRequests, EngineConfig, LogMessage, Policy,
};
use refmcp_proto::model::{Implementation, LogLevel};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::{Event, TestEngine, full_config};
use crate::transcript::{Endpoint, RevisionSet, Settings, duration};

/// The settings of a server that offers everything, changed as a transcript wants it.
pub fn config_from(settings: &Settings) -> Result<EngineConfig, String> {
    let mut config = full_config();
    for (name, value) in settings {
        set(&mut config, name, value).map_err(|why| format!("{name}: {value}: {why}"))?;
    }
    Ok(config)
}

fn set(config: &mut EngineConfig, name: &str, value: &str) -> Result<(), String> {
    match name {
        "policy" => {
            config.policy = match value {
                "strict" => Policy::STRICT,
                "lenient" => Policy::LENIENT,
                _ => return Err("strict or lenient".to_owned()),
            }
        }
        "hold early requests" => config.policy.early_requests = EarlyRequests::Hold(duration(value)?),
        "duplicate ids" => {
            config.policy.duplicate_ids = match value {
                "served" => DuplicateIds::Serve,
                "refused" => DuplicateIds::Refuse,
                "refused unless lenient" => DuplicateIds::RefuseUnlessLenient,
                _ => return Err("served, refused, or refused unless lenient".to_owned()),
            }
        }
        "announce end" => config.policy.announce_end = json_value(value)?,
        "offers" => config.capabilities = json_value(value)?,
        "speaks" => config.revisions = value.parse::<RevisionSet>()?.revisions(),
        "server" => config.server_info = json_value::<Implementation>(value)?.into(),
        "instructions" => config.instructions = Some(value.to_owned()),
        "most rounds" => config.max_rounds = json_value(value)?,
        "most in flight" => config.max_in_flight = json_value(value)?,
        "most subscriptions" => config.max_subscriptions = json_value(value)?,
        "most state bytes" => config.max_state_bytes = json_value(value)?,
        "log level" => config.log_level = json_value(&json!(value).to_string())?,
        "cache for" => config.cache.0 = duration(value)?,
        "answer within" => config.timeouts.client_response = duration(value)?,
        "state lasts" => config.timeouts.state = duration(value)?,
        "ping after" => config.timeouts.ping_after = Some(duration(value)?),
        "pong within" => config.timeouts.pong = duration(value)?,
        _ => return Err("no such setting".to_owned()),
    }
    Ok(())
}

fn json_value<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

impl Endpoint for TestEngine {
    fn send(&mut self, text: &str) {
        Self::send(self, text.as_bytes());
    }

    fn receive(&mut self) -> Vec<String> {
        let sent = self.take_sent();
        sent.into_iter().map(|sending| String::from_utf8_lossy(&sending.json).into_owned()).collect()
    }

    fn advance(&mut self, by: Duration) {
        Self::advance(self, by);
    }

    fn act(&mut self, order: &str) -> Result<(), String> {
        let (verb, object) = order.split_once(' ').unwrap_or((order, ""));
        match (verb, object) {
            ("finish", tag) if self.finish_tagged(tag) => {}
            ("finish", tag) => return Err(format!("no call with the tag {tag} is running")),
            ("change", "tools") => self.changed(&Change::Tools),
            ("change", "prompts") => self.changed(&Change::Prompts),
            ("change", "resources") => self.changed(&Change::Resources),
            ("change", uri) => self.changed(&Change::Resource(uri.to_owned())),
            ("log", data) => {
                self.engine
                    .log(None, LogMessage { level: LogLevel::Warning, logger: None, data: json!(data) });
            }
            ("wind", "down") => self.engine.wind_down(),
            ("cancel", "all") => self.engine.cancel_all(),
            _ => return Err(format!("unknown action: {order}")),
        }
        self.settle();
        Ok(())
    }

    fn events(&mut self) -> Vec<String> {
        let events = self.take_events();
        let told = events.into_iter().map(|event| match event {
            Event::Stopped(tag) => format!("stopped {tag}"),
            Event::RootsChanged => "roots changed".to_owned(),
            Event::Finding(rule) => format!("finding {rule}"),
            Event::Closed(CloseReason::PingTimeout) => "closed stale".to_owned(),
        });
        told.collect()
    }
}
