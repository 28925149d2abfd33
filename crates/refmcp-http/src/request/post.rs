//! `POST`: a message of the client. `refmcp_proto::http` decides what it is.

use std::sync::Arc;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use refmcp_proto::engine::message_checks;
use refmcp_proto::finding::Finding;
use refmcp_proto::http::{
    Accept, AcceptRule, POST_KINDS, PostHeaders, PostRefusal, PostRoute, ResponseMode, check_mirrored,
    malformed_post, missing_accept, route_post,
};
use refmcp_proto::jsonrpc::{Incoming, Message, RequestId, decode, excerpt};
use refmcp_proto::revision::{Lifecycle, Method, Resumption, Revision};
use refmcp_server::Connection;

use crate::access::caller::Caller;
use crate::access::scopes;
use crate::endpoint::EndpointState;
use crate::ops::refusal_log;
use crate::refusal::{Reason, Refusal};
use crate::request::response::{CancelOnDrop, Exchange};
use crate::request::{body, headers, response};
use crate::session::SessionTransport;
use crate::session::driver::SessionDriver;
use crate::session::streams::Received;
use crate::stream::response_stream::ResponseStream;
use crate::stream::sse::SseFormat;

pub(crate) async fn post(
    endpoint: &Arc<EndpointState>,
    caller: Caller,
    head: Parts,
    body: Body,
) -> Result<Response, Refusal> {
    if let Err(refusal) = body::check_type(&head.headers) {
        return Err(Box::pin(body::refuse_unread(&head.headers, body, refusal)).await);
    }
    let body = body::read_message(endpoint, &caller, body).await?;
    match receive(endpoint, &caller, head, &body.bytes)? {
        Step::Respond(response) => Ok(response),
        Step::Wait(exchange) => {
            // The message was received; the response may take long.
            drop(body);
            Box::pin(exchange.response(endpoint, &caller)).await
        }
        Step::Open(driver, response) => {
            open_session(endpoint, &caller, driver, response, body.bytes.len()).await
        }
    }
}

/// What is left to do once a message was received. Receiving never waits, so no message is kept across an await.
enum Step {
    Respond(Response),
    Wait(Box<Exchange>),
    /// Open a session for a client whose `initialize` was answered with this response.
    Open(SessionDriver, Response),
}

impl Step {
    fn accepted() -> Self {
        Self::Respond(StatusCode::ACCEPTED.into_response())
    }

    /// The response, at once if the answer is there.
    fn respond(
        endpoint: &EndpointState,
        caller: &Caller,
        received: Received,
        lifecycle: Lifecycle,
        wait: impl FnOnce(Arc<ResponseStream>) -> Exchange,
    ) -> Self {
        match received {
            Received::Response(answer) => {
                Self::Respond(endpoint.json_response(&caller.memory, lifecycle, answer))
            }
            Received::Stream(stream) => Self::Wait(Box::new(wait(stream))),
        }
    }
}

/// A message that was read from a body, and what is needed to receive it.
struct Posted<'a> {
    endpoint: &'a Arc<EndpointState>,
    caller: &'a Caller,
    accept: Accept,
    incoming: &'a Incoming<'a>,
}

fn receive(
    endpoint: &Arc<EndpointState>,
    caller: &Caller,
    head: Parts,
    body: &[u8],
) -> Result<Step, Refusal> {
    let version = headers::value(&head.headers, &headers::PROTOCOL_VERSION);
    let headers = PostHeaders {
        version: version.as_ref().map(|version| *version).map_err(String::as_str),
        session: head.headers.contains_key(headers::SESSION_ID),
        accept: headers::accept(&head.headers, POST_KINDS),
    };
    let required = endpoint.options.require_accept;
    let incoming = match decode(body, &endpoint.limits()) {
        Ok(incoming) => incoming,
        Err(error) => {
            // The id of a response is one of ours: an error with it would be taken for the answer to another request.
            let id = error.id.as_ref().filter(|_| error.needs_response);
            let refusal = refuse(malformed_post(headers.accept, required, &error), id);
            let finding = message_checks::malformed(&error);
            match endpoint.named_session(caller, &head.headers) {
                Ok(session) => session.driver.record_refused_finding(&caller.observed, Some(finding)),
                Err(_) => record(endpoint, caller, &finding),
            }
            return Err(refusal);
        }
    };
    let posted = Posted { endpoint, caller, accept: headers.accept, incoming: &incoming };
    match route_post(&endpoint.config, &endpoint.peers, headers, required, &incoming) {
        Err(refusal) => Err(posted.refused(refusal, &head)),
        Ok(PostRoute::Ignored) => {
            posted.record_mistakes(Some(Revision::LATEST));
            Ok(Step::accepted())
        }
        Ok(PostRoute::Open) => posted.initialize(&head),
        Ok(PostRoute::Stateless(version)) => posted.stateless(head, &version),
        Ok(route) => posted.in_session(head, &route),
    }
}

fn id_of<'a>(incoming: &'a Incoming<'_>) -> Option<&'a RequestId> {
    match incoming {
        Incoming::One(Message::Request(request)) => Some(&request.id),
        _ => None,
    }
}

fn record(endpoint: &EndpointState, caller: &Caller, finding: &Finding) {
    let is_told = caller.observed.finding(finding);
    endpoint.server.record(None, finding, is_told);
}

fn refuse(refusal: PostRefusal, id: Option<&RequestId>) -> Refusal {
    let (reason, error) = match refusal {
        PostRefusal::NotAcceptable(why) => {
            return Refusal::new(StatusCode::NOT_ACCEPTABLE, Reason::Accept, why);
        }
        PostRefusal::Session(error) => (Reason::Session, error),
        PostRefusal::Revision(error) => (Reason::Revision, error),
        PostRefusal::Header(_, error) | PostRefusal::Message(_, error) => (Reason::Message, error),
    };
    refusal_log::rpc_error_found(&error);
    Refusal::rpc(reason, id, &error)
}

impl Posted<'_> {
    /// Why the message is refused, with what is wrong with it.
    fn refused(&self, refusal: PostRefusal, head: &Parts) -> Refusal {
        let stateless = headers::is_stateless(&head.headers);
        // A session of another revision has other rules.
        let session = self.endpoint.named_session(self.caller, &head.headers).ok();
        let rules = session.as_ref().and_then(|session| session.driver.session_rules());
        let agreed = rules.map(|rules| rules.revision);
        if let PostRefusal::Message(..) = refusal {
            self.record_mistakes(if stateless { Some(Revision::LATEST) } else { agreed });
        }
        let finding = refusal.finding(stateless).filter(|finding| finding.is_of(agreed));
        let refusal = refuse(refusal, id_of(self.incoming));
        match session.filter(|_| !stateless) {
            Some(session) => {
                session.driver.record_refused_finding(&self.caller.observed, finding);
                refusal
            }
            None => refusal.with_finding(finding),
        }
    }

    /// Records what is wrong with a message that no engine receives.
    fn record_mistakes(&self, revision: Option<Revision>) {
        if let Incoming::One(message) = self.incoming {
            let mistakes = message_checks::client_message(message, revision);
            mistakes.iter().for_each(|finding| record(self.endpoint, self.caller, finding));
        }
    }

    /// A request of a revision without sessions.
    fn stateless(&self, head: Parts, version: &str) -> Result<Step, Refusal> {
        let Self { endpoint, caller, accept, incoming } = *self;
        scopes::check(endpoint, caller, &head, None, incoming)?;
        let mut listens = false;
        if let Incoming::One(Message::Request(request)) = incoming {
            let header = |name: &str| headers::mirrored(&head.headers, name);
            let arguments = |tool: &str| endpoint.server.mirrored_arguments(tool);
            check_mirrored(header, arguments, version, &request.method, &request.params).map_err(
                |refusal| {
                    let finding = refusal.finding(true);
                    refuse(refusal, Some(&request.id)).with_finding(finding)
                },
            )?;
            listens = Method::known(&request.method) == Some(Method::Listen);
        }
        let connection = Connection {
            scopes: caller.scopes(),
            ..caller.connection(headers::of_request(head.headers, caller.client.address))
        };
        let driver = endpoint.open_driver(&caller.observed, connection);
        driver.observed().negotiated(|| version.parse().ok());
        driver.record_finding(missing_accept(accept, AcceptRule::StatelessPost));
        if listens {
            endpoint.add_listener(&driver);
        }
        let request = id_of(incoming).cloned();
        let received = driver.exchange(&caller.observed, usize::MAX, |engine, now, exchange| {
            engine.incoming(now, exchange, incoming);
        });
        let received = received.ok_or_else(too_many_streams)?;
        Ok(Step::respond(endpoint, caller, received, Lifecycle::PerRequest, |stream| {
            let guard = CancelOnDrop { driver: driver.clone(), exchange: stream.exchange };
            Exchange {
                driver,
                stream,
                request,
                lifecycle: Lifecycle::PerRequest,
                format: SseFormat::new(Resumption::Never, &endpoint.options),
                mode: ResponseMode::StreamOnMessage,
                guard: Some(guard),
            }
        }))
    }

    /// What belongs to the session that the headers name.
    fn in_session(&self, head: Parts, route: &PostRoute<'_>) -> Result<Step, Refusal> {
        let Self { endpoint, caller, accept, incoming } = *self;
        let session = endpoint.find_session(caller, &head.headers);
        let session = session.map_err(|refusal| refusal.into_rpc_error(id_of(incoming)))?;
        scopes::check(endpoint, caller, &head, Some(&session), incoming)?;
        let (driver, request) = (&session.driver, id_of(incoming).cloned());
        let mode = match route {
            PostRoute::Message => {
                driver.receive(&caller.observed, |engine, now, exchange| {
                    engine.incoming(now, exchange, incoming);
                });
                // After `initialized` a client may be silent for long.
                driver.shrink();
                return Ok(Step::accepted());
            }
            PostRoute::Request(mode) => *mode,
            _ => ResponseMode::StreamAfterDelay,
        };
        let context = caller.request_context(driver.connection(), head.headers);
        let received =
            driver.exchange(&caller.observed, endpoint.options.max_streams, |engine, now, exchange| {
                engine.incoming_with(now, exchange, incoming, context);
            });
        let received = received.ok_or_else(too_many_streams)?;
        if let PostRoute::Batch { has_requests: false } = route {
            return Ok(match received {
                Received::Response(answer) => {
                    Step::Respond(endpoint.json(StatusCode::BAD_REQUEST, answer.json))
                }
                Received::Stream(stream) => {
                    driver.close_exchange(stream.exchange);
                    Step::accepted()
                }
            });
        }
        driver.record_finding(missing_accept(accept, AcceptRule::Post));
        Ok(Step::respond(endpoint, caller, received, Lifecycle::Handshake, |stream| Exchange {
            driver: driver.clone(),
            stream,
            request,
            lifecycle: Lifecycle::Handshake,
            format: SseFormat::new(driver.rules().resumption, &endpoint.options),
            mode,
            guard: None,
        }))
    }

    fn initialize(&self, head: &Parts) -> Result<Step, Refusal> {
        let Self { endpoint, caller, accept, incoming } = *self;
        scopes::check(endpoint, caller, head, None, incoming)?;
        let connection = caller.connection(endpoint.session_headers.keep(&head.headers));
        let memory = Some(endpoint.memory.session(caller));
        let driver = endpoint.open_driver(&caller.observed, Connection { memory, ..connection });
        let received = driver.exchange(&caller.observed, usize::MAX, |engine, now, exchange| {
            engine.incoming(now, exchange, incoming);
        });
        // Now the revision is known, and with it whether it has the rule.
        driver.record_finding(missing_accept(accept, AcceptRule::Post));
        // The engine answers `initialize` itself, without a handler.
        let Some(Received::Response(answer)) = received else {
            return Err(Refusal::internal("the session cannot be opened"));
        };
        if driver.session_rules().is_none() {
            let status = response::status(Lifecycle::Handshake, &answer);
            let why =
                refusal_log::rpc_errors(&answer.json).next().map(|error| error.message).unwrap_or_default();
            return Err(Refusal::answered(status, Reason::Message, excerpt(&why), answer.json));
        }
        let response = endpoint.json_response(&caller.memory, Lifecycle::Handshake, answer);
        Ok(Step::Open(driver, response))
    }
}

fn too_many_streams() -> Refusal {
    Refusal::too_many(Reason::Streams, "too many streams in this session", 1)
}

async fn open_session(
    endpoint: &EndpointState,
    caller: &Caller,
    driver: SessionDriver,
    mut response: Response,
    client_bytes: usize,
) -> Result<Response, Refusal> {
    let session = endpoint.open_session(SessionTransport::Streamable, caller, driver, client_bytes).await?;
    if let Ok(id) = HeaderValue::try_from(session.id.reveal()) {
        response.headers_mut().insert(headers::SESSION_ID, id);
    }
    Ok(response)
}
