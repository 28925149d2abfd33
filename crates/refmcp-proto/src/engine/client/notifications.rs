//! Notifications of the server: progress finds its call by the progress token, task statuses by the task.

use super::handshake::Phase;
use super::io::{CallResult, ClientOutput};
use super::{ClientEngine, exchange_of};
use crate::engine::report::ReportFindings;
use crate::engine::{CallId, ExchangeId};
use crate::jsonrpc::{Notification, RequestId, without_place};
use crate::model::ServerNotification;
use crate::revision::NotificationMethod;
use crate::rule;
use crate::time::Timestamp;

impl ClientEngine {
    pub(super) fn notification(
        &mut self,
        now: Timestamp,
        from: Option<ExchangeId>,
        received: &Notification<'_>,
    ) {
        let notification = match ServerNotification::read(&received.method, received.params.text) {
            Ok(notification) => notification,
            Err(error) => {
                let what = format!("{}: {}", received.method, without_place(&error));
                return self.report(&rule::RPC_01, what, "send the params of this notification");
            }
        };
        let call = match &notification {
            ServerNotification::Cancelled(cancelled) => {
                if let Some(id) = &cancelled.request_id {
                    self.cancelled_by_server(id);
                }
                return;
            }
            ServerNotification::Progress(progress) => {
                let Some(call) = self.call_by_id(&progress.progress_token) else {
                    let late =
                        exchange_of(&progress.progress_token).is_some_and(|it| it.0 <= self.last_number);
                    if !late {
                        self.report(
                            &rule::PROG_01,
                            "progress of a request that was never made",
                            "send the progressToken of the request",
                        );
                    }
                    return;
                };
                if !self.progress_grows(call, progress.progress.as_f64()) {
                    return self.report(
                        &rule::PROG_02,
                        "progress that does not grow",
                        "send a greater number each time",
                    );
                }
                self.restart_idle_timeout(now, call);
                Some(call)
            }
            ServerNotification::Task(params) | ServerNotification::TaskStatus(params) => {
                self.check_sender(notification.method(), params.meta.is_some());
                let call = self.call_of_task(&params.task_id);
                if let Some(call) = call {
                    self.task_notified(now, call, (**params).clone().into_task());
                }
                call
            }
            other => {
                let subscription = other.meta().and_then(|meta| meta.subscription_id.as_ref());
                self.check_sender(other.method(), subscription.is_some());
                subscription
                    .and_then(|id| self.call_by_id(id))
                    .or_else(|| from.and_then(|from| self.call_of(from)))
            }
        };
        self.outputs.push_back(ClientOutput::Notification(call, Box::new(notification)));
    }

    /// Reports a notification that the revision does not have, or that belongs to a subscription and names none.
    fn check_sender(&mut self, method: &str, subscribed: bool) {
        let (Phase::Open(server), Some(known)) = (&self.phase, NotificationMethod::known(method)) else {
            return;
        };
        let rules = server.rules();
        let what = format!("a notification that does not belong here: {method}");
        if !known.server_may_send(rules) && rule::LIFE_08.revisions.contains(rules.revision) {
            self.report(&rule::LIFE_08, what, "send what the agreed revision has");
        } else if rules.changes_by_listening && known != NotificationMethod::Log && !subscribed {
            self.report(&rule::SUB_04, what, "send it on a subscription, with its subscriptionId in _meta");
        }
    }

    /// The server has cancelled a request of its own, or a `subscriptions/listen` stream.
    fn cancelled_by_server(&mut self, id: &RequestId) {
        if !self.cancel_server_request(id)
            && self.is_stateless()
            && let Some(call) = self.call_by_id(id)
        {
            self.finish(call, Ok(CallResult::Complete("{}".into())));
        }
    }

    fn call_by_id(&self, id: &RequestId) -> Option<CallId> {
        exchange_of(id).and_then(|exchange| self.call_of(exchange))
    }

    fn progress_grows(&mut self, call: CallId, progress: Option<f64>) -> bool {
        let Some(call) = self.call_mut(call) else { return false };
        let grows = progress.is_some() && progress > call.progress;
        if grows {
            call.progress = progress;
        }
        grows
    }
}
