//! Input that a task of 2026-07-28 needs: asked for once by its key, and sent by `tasks/update`.

use serde_json::Value;

use super::super::ClientEngine;
use super::super::io::{CallError, ClientOutput, ServerRequest, ServerRequestId};
use super::super::server_requests::PendingRequest;
use super::{FollowedTask, update_params};
use crate::engine::CallId;
use crate::engine::report::ReportFindings;
use crate::jsonrpc::RpcError;
use crate::model::InputRequests;
use crate::revision::Method;
use crate::rule;
use crate::time::Timestamp;

/// Bytes of all keys of a task that are kept.
const MAX_KEY_BYTES: usize = 64 << 10;

impl ClientEngine {
    /// Asks the host for input that it was not asked for before.
    pub(super) fn task_needs_input(&mut self, id: CallId, requests: InputRequests) {
        let (max_rounds, max_open) = (self.config.max_rounds, self.config.max_server_requests);
        let open = self.server_requests.len();
        let Some(task) = self.task_mut(id) else { return };
        let new: InputRequests =
            requests.into_iter().filter(|(key, _)| !task.known_keys.contains(key)).collect();
        if new.is_empty() {
            return;
        }
        task.rounds += 1;
        let bytes: usize = task.known_keys.iter().chain(new.keys()).map(String::len).sum();
        if task.rounds > max_rounds {
            return self.finish(id, Err(CallError::TooManyRounds { rounds: max_rounds }));
        }
        if new.len() + open > max_open || bytes > MAX_KEY_BYTES {
            let what = format!("it asks more than {max_open} questions at once, or by very long keys");
            return self.finish(id, Err(CallError::Protocol(what)));
        }
        if let Some(undeclared) = new.values().find(|request| !self.supports(request)) {
            let what = format!("its task asks for {}, which we did not offer", undeclared.method());
            self.report(&rule::MRTR_04, what.clone(), "ask for what the request's capabilities declare");
            return self.finish(id, Err(CallError::Protocol(what)));
        }
        for (key, request) in new {
            let number = self.next_server_request();
            if let Some(task) = self.task_mut(id) {
                task.known_keys.insert(key.clone());
                task.missing.insert(number, key);
            }
            self.server_requests.insert(number, PendingRequest::Task(id));
            self.outputs.push_back(ClientOutput::Request(ServerRequest {
                id: number,
                call: Some(id),
                request,
            }));
        }
    }

    /// Forgets input that the task no longer needs, as another holder of its id may have given it: the host is not asked
    /// further, and a response that was not sent never is. A server that shows such a request again, since messages may
    /// overtake each other, has it asked for again.
    pub(super) fn withdraw_stale_input(&mut self, id: CallId, requests: &InputRequests) {
        let Some(task) = self.task_mut(id) else { return };
        let is_stale = |key: &String| !requests.contains_key(key);
        let stale: Vec<ServerRequestId> =
            task.missing.iter().filter(|(_, key)| is_stale(key)).map(|(number, _)| *number).collect();
        for number in &stale {
            if let Some(key) = task.missing.remove(number) {
                task.known_keys.remove(&key);
            }
        }
        // What an open update has sent may have been taken already.
        if task.update.is_none() {
            let FollowedTask { responses, known_keys, .. } = task;
            responses.retain(|key, _| {
                let is_needed = requests.contains_key(key);
                if !is_needed {
                    known_keys.remove(key);
                }
                is_needed
            });
        }
        for number in stale {
            self.server_requests.remove(&number);
            self.outputs.push_back(ClientOutput::RequestCancelled(number));
        }
    }

    /// The host has responded to an input request of a task.
    pub(in super::super) fn task_input(
        &mut self,
        now: Timestamp,
        id: CallId,
        number: ServerRequestId,
        response: Result<Value, RpcError>,
    ) {
        let Some(task) = self.task_mut(id) else { return };
        let Some(key) = task.missing.remove(&number) else { return };
        match response {
            Ok(response) => {
                task.responses.insert(key, response);
                self.update_task(now, id);
            }
            // An input response cannot be an error.
            Err(error) => self.finish(id, Err(CallError::Refused(error))),
        }
    }

    /// Sends the responses once none is missing, and no others are under way.
    pub(super) fn update_task(&mut self, now: Timestamp, id: CallId) {
        let by = now + self.idle_of(id);
        let Some(task) = self.task_mut(id) else { return };
        if !task.missing.is_empty() || task.responses.is_empty() || task.update.is_some() {
            return;
        }
        // They stay until they are acknowledged, since an update may get lost.
        let params = update_params(&task.id, task.responses.clone());
        let sent = self.send_task_request(id, &Method::UpdateTask, &params);
        if let Some(task) = self.task_mut(id) {
            task.sent = task.responses.keys().cloned().collect();
            task.update = sent.map(|exchange| (exchange, by));
        }
        self.wake_for_task(id);
    }
}
