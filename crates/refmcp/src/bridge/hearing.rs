//! The other direction of a crossing: what the server says, and what it means when it says nothing more.

use std::sync::Arc;

use refmcp_proto::engine::client::{ExchangeId, TransportError};
use refmcp_proto::jsonrpc::RpcError;
use refmcp_proto::revision::Lifecycle;

use super::crossing::{Crossing, Heard, Over, Why, blame};
use super::first_words::{self, Refused};
use super::glance::{Message, read};

/// Questions of the server that are remembered.
const MOST_QUESTIONS: usize = 10_000;

impl Crossing {
    /// Passes what the server says on to the client.
    pub(super) fn heard(&self, from: Option<ExchangeId>, json: &[u8]) {
        let messages = match read(json) {
            Ok(messages) => messages,
            Err(fault) => return tracing::warn!(%fault, "the server sent something that is no message"),
        };
        {
            let mut state = self.state();
            state.reached = true;
            state.first_words.heard();
        }
        for message in &messages {
            if message.is_answer() { self.answered(from, message) } else { self.told(from, message) }
        }
    }

    fn answered(&self, from: Option<ExchangeId>, message: &Message<'_>) {
        let (exchange, id) = {
            let mut state = self.state();
            let found = match &message.id {
                Some(named) => state.waiting.answered(from, &named.id),
                // The server could not read a request: when that had a way of its own, it is clear which.
                None => from.filter(|from| state.waiting.get(*from).is_some()),
            };
            let asked = found.and_then(|exchange| state.waiting.get(exchange));
            let (id, method) = asked.map(|asked| (asked.id.clone(), asked.method.clone())).unzip();
            if let (Some(method), Some(result)) = (method, message.result) {
                state.learned.note(&method, result);
            }
            (found, id)
        };
        match (exchange, id) {
            (Some(exchange), Some(id)) if message.id.is_none() => {
                let error = message.error.and_then(|text| serde_json::from_str(text).ok());
                self.answer_for(exchange, &id, &error.unwrap_or_else(|| blame("the server's error is none")));
            }
            _ => self.near.hear(Heard { json: message.text, belongs_to: exchange, is_answer: true }),
        }
        // Only now: once no request waits any more, every message must have been passed on.
        if let Some(exchange) = exchange {
            self.forget(exchange);
        }
    }

    fn told(&self, from: Option<ExchangeId>, message: &Message<'_>) {
        let belongs_to = {
            let mut state = self.state();
            if let Some(question) = message.asks()
                && state.questions.len() < MOST_QUESTIONS
            {
                state.questions.insert(question.clone());
            }
            let state = &*state;
            let by_token = || message.params.token().and_then(|token| state.waiting.with_token(&token.id));
            let subscribed =
                || message.meta.subscription.as_ref().and_then(|named| state.waiting.find(&named.id));
            let ended = || {
                let request = message.params.request().filter(|_| message.is("notifications/cancelled"))?;
                let found = state.waiting.find(&request.id)?;
                // In sessions servers call off only what they have asked themselves.
                state
                    .waiting
                    .get(found)
                    .filter(|asked| asked.lifecycle == Lifecycle::PerRequest)
                    .map(|_| found)
            };
            let from = from.filter(|from| state.waiting.get(*from).is_some());
            from.or_else(by_token).or_else(subscribed).or_else(ended)
        };
        self.near.hear(Heard { json: message.text, belongs_to, is_answer: false });
    }

    /// Nothing more comes for a message.
    pub(super) fn ended(self: &Arc<Self>, exchange: ExchangeId, why: &TransportError) {
        let (id, reached) = {
            let mut state = self.state();
            match state.first_words.refused(exchange, why) {
                Refused::ForGood => {}
                Refused::SaidAgain => return,
                Refused::TryAnother => {
                    drop(state);
                    return first_words::say_again(self);
                }
            }
            (state.waiting.get(exchange).map(|asked| asked.id.clone()), state.reached)
        };
        match id {
            Some(id) => {
                self.answer_for(exchange, &id, &error_of(why));
                self.forget(exchange);
            }
            // Wires also say that nothing more comes for what was answered.
            None if matches!(
                why,
                TransportError::Closed | TransportError::Broken(_) | TransportError::Misbehaved(_)
            ) =>
            {
                tracing::debug!(%why, "nothing more comes for a message");
            }
            None => tracing::warn!(%why, "a message of the client did not reach the server"),
        }
        let no_server =
            (matches!(why, TransportError::Unreachable(_)) || why.needs_authorization()) && !reached;
        if no_server || *why == TransportError::SessionLost {
            self.end(why.clone());
        }
    }

    /// The connection has ended: every waiting request is answered with an error.
    pub(super) fn end(&self, why: TransportError) {
        let (waiting, reached) = {
            let mut state = self.state();
            if std::mem::replace(&mut state.over, true) {
                return;
            }
            (state.waiting.drain(), state.reached)
        };
        for (exchange, asked) in waiting {
            self.answer_for(exchange, &asked.id, &error_of(&why));
        }
        self.near.over(Over { why: Why::Server(why), reached });
    }
}

/// What the client is told when the way to the server fails.
fn error_of(why: &TransportError) -> RpcError {
    match why {
        TransportError::Refused { error: Some(error), .. } => error.clone(),
        _ => blame(why),
    }
}
