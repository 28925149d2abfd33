//! Responses: from results and errors to bytes.

use super::super::io::{ExchangeId, MessageKind, MessageTarget, OutgoingMessage, Output};
use super::batches::BatchId;
use super::{ReplyTo, ServerEngine};
use crate::jsonrpc::encode::{self, ResponseId};
use crate::jsonrpc::{RequestId, RpcError};
use crate::model::ServerResult;
use serde_json::value::RawValue;

use crate::revision::{Rules, UnreadableId, downgrade};

impl ServerEngine {
    /// Responds with a result, in the shape that these rules want.
    pub(super) fn respond(&mut self, to: &ReplyTo<'_>, rules: &Rules, result: &mut ServerResult) {
        downgrade::result(rules, &self.config, result);
        let mut json = Vec::with_capacity(256);
        match encode::result(&mut json, to.id, result) {
            Ok(()) => self.send_response(to, json, None),
            Err(error) => {
                self.respond_error(to, &RpcError::internal(format!("the result is not JSON: {error}")));
            }
        }
    }

    /// Responds with a result that another server wrote.
    pub(super) fn respond_raw(&mut self, to: &ReplyTo<'_>, result: &RawValue) {
        let mut json = Vec::with_capacity(result.get().len() + 64);
        match encode::result(&mut json, to.id, &result) {
            Ok(()) => {
                // Line breaks stand between tokens only: in a string they are escaped.
                json.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
                self.send_response(to, json, None);
            }
            Err(error) => {
                self.respond_error(to, &RpcError::internal(format!("the result is not JSON: {error}")));
            }
        }
    }

    pub(super) fn respond_error(&mut self, to: &ReplyTo<'_>, error: &RpcError) {
        let json = self.encode_error(Some(to.id), error);
        self.send_response(to, json, Some(error.code));
    }

    /// Responds to a message whose id could not be read.
    pub(super) fn respond_unreadable(&mut self, exchange: ExchangeId, error: &RpcError) {
        let json = self.encode_error(None, error);
        let kind = MessageKind::Response { error: Some(error.code) };
        self.outputs.push_back(Output::Send(OutgoingMessage {
            to: MessageTarget::Exchange(exchange),
            kind,
            json,
        }));
    }

    pub(super) fn encode_error(&self, id: Option<&RequestId>, error: &RpcError) -> Vec<u8> {
        let to = match (id, self.rules().unreadable_id) {
            (Some(id), _) => ResponseId::Id(id),
            (None, UnreadableId::Absent) if !self.config.policy.null_error_id => ResponseId::Absent,
            (None, _) => ResponseId::Null,
        };
        let mut json = Vec::with_capacity(192);
        if encode::error(&mut json, to, error).is_err() {
            // Codes, texts and JSON values can always be written; an id of digits is one by construction.
            json.clear();
        }
        json
    }

    fn send_response(&mut self, to: &ReplyTo<'_>, json: Vec<u8>, error: Option<i64>) {
        match to.batch {
            Some(batch) => {
                let most = self.config.max_batch_bytes;
                let fits = self.batches.bytes().saturating_add(json.len()) <= most;
                // An error is short, and the only thing that can be said instead.
                if fits || error.is_some() {
                    self.batches.add(batch, &json);
                } else {
                    let why = format!(
                        "the responses to batches that are not complete have more than {most} bytes; send this \
                         request by itself"
                    );
                    self.batches.add(batch, &self.encode_error(Some(to.id), &RpcError::internal(why)));
                }
                self.flush_batch(batch);
            }
            None => {
                let kind = MessageKind::Response { error };
                self.outputs.push_back(Output::Send(OutgoingMessage {
                    to: MessageTarget::Exchange(to.exchange),
                    kind,
                    json,
                }));
            }
        }
    }

    /// Bytes of responses that are kept until their batches are complete.
    pub fn batch_bytes(&self) -> usize {
        self.batches.bytes()
    }

    /// Replaces these responses by an error each, since there is no memory for them.
    pub fn refuse_batch_responses(&mut self, error: &RpcError) {
        self.batches.refuse(error);
    }

    pub(super) fn flush_batch(&mut self, batch: BatchId) {
        if let Some((exchange, json)) = self.batches.take_complete(batch) {
            let kind = MessageKind::Response { error: None };
            self.outputs.push_back(Output::Send(OutgoingMessage {
                to: MessageTarget::Exchange(exchange),
                kind,
                json,
            }));
        }
    }

    pub(super) fn send(
        &mut self,
        to: MessageTarget,
        kind: MessageKind,
        write: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>,
    ) {
        let mut json = Vec::with_capacity(192);
        if write(&mut json).is_ok() {
            self.outputs.push_back(Output::Send(OutgoingMessage { to, kind, json }));
        }
    }
}
