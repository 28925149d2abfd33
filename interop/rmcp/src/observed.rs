//! An HTTP client for rmcp's transport that notes what is sent.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use anyhow::Result;
use futures::stream::BoxStream;
use http::{HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;

/// One exchange over HTTP.
#[derive(Clone)]
pub struct Request {
    pub method: &'static str,
    pub session: Option<Arc<str>>,
    pub headers: HashMap<HeaderName, HeaderValue>,
    pub resumes: bool,
}

/// What was sent so far.
pub type RequestLog = Arc<Mutex<Vec<Request>>>;

#[derive(Clone)]
pub struct Observed {
    client: reqwest::Client,
    log: RequestLog,
}

type Headers = HashMap<HeaderName, HeaderValue>;
type Failure = StreamableHttpError<reqwest::Error>;

impl Observed {
    pub fn new(log: RequestLog) -> Result<Self> {
        // Without idle connections, as rmcp's own default.
        let client = reqwest::Client::builder().pool_max_idle_per_host(0).build()?;
        Ok(Self { client, log })
    }

    fn note(&self, method: &'static str, session: Option<&Arc<str>>, headers: &Headers, resumes: bool) {
        let request = Request { method, session: session.cloned(), headers: headers.clone(), resumes };
        self.log.lock().unwrap().push(request);
    }
}

impl StreamableHttpClient for Observed {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.note("POST", session_id.as_ref(), &custom_headers, false);
        self.client.post_message(uri, message, session_id, auth_header, custom_headers).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<(), Failure> {
        self.note("DELETE", Some(&session_id), &custom_headers, false);
        self.client.delete_session(uri, session_id, auth_header, custom_headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        self.note("GET", session_id.as_ref(), &custom_headers, last_event_id.is_some());
        self.client.get_stream(uri, session_id, last_event_id, auth_header, custom_headers).await
    }
}
