//! The rules of a protocol revision: what differs between revisions, as one table.

use super::Revision;

/// Everything about a revision that other code may ask.
///
/// A new revision is a new table; a new difference is a new member here. Nothing else in the project compares
/// revisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Which revision this is, for messages and logs.
    pub revision: Revision,
    /// How a connection opens, and what describes the client.
    pub lifecycle: Lifecycle,
    /// Whether several messages may come in one array.
    pub batches: BatchRule,
    /// How a server gets input from the client.
    pub input_mode: InputMode,
    /// What the log level is attached to.
    pub log_scope: LogScope,
    /// Whether requests over HTTP name the revision in a header.
    pub version_header: bool,
    /// Whether a stream of messages that broke can be resumed.
    pub resumption: Resumption,
    /// Audio content blocks.
    pub audio: bool,
    /// Links to resources as content blocks.
    pub resource_links: bool,
    /// Structured tool output and its schema.
    pub structured_output: StructuredOutput,
    /// Hints about what a tool does.
    pub tool_annotations: bool,
    /// Human-readable titles, `_meta` and modification times on items.
    pub titles: bool,
    /// Icons, and descriptions and web sites of implementations.
    pub icons: bool,
    /// A text beside the numbers of a progress notification.
    pub progress_message: bool,
    /// The `completions` capability (completion itself is older).
    pub completions_capability: bool,
    /// What a server may ask a person.
    pub elicitation: Elicitation,
    /// Whether a person may be sent to a web page.
    pub url_elicitation: UrlElicitation,
    /// Tools and lists of content blocks in sampling.
    pub sampling_tools: bool,
    /// Calls that go on as tasks, which the client polls.
    pub tasks: Tasks,
    /// The map of extensions in capabilities.
    pub extensions: bool,
    /// Whether every result has a `resultType` and names the server in its `_meta`.
    pub stamped_results: bool,
    /// How long and for whom results may be kept.
    pub cache_hints: bool,
    /// Whether changes are notified only on `subscriptions/listen` streams.
    pub changes_by_listening: bool,
    /// The code for a resource that does not exist.
    pub resource_not_found: i64,
    /// What becomes of tool arguments that do not fit the schema.
    pub bad_arguments: BadArguments,
    /// The id in a response to an unreadable message.
    pub unreadable_id: UnreadableId,
}

/// How a connection opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lifecycle {
    /// By `initialize`; what was agreed holds for the session.
    Handshake,
    /// Not at all; each request carries what the server must know.
    PerRequest,
}

/// Whether several messages may come in one array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchRule {
    /// An array is refused.
    Refused,
    /// An array is read.
    Accepted,
}

/// How a server gets input from the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputMode {
    /// By a request of its own.
    ServerRequest,
    /// By an `input_required` result; the client repeats its request with the responses.
    InputRequired,
}

/// What a log level is attached to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogScope {
    /// The session, set by a request of its own.
    Session,
    /// Each request, which has to opt in.
    Request,
}

/// Whether a stream of messages that broke can be resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resumption {
    /// No; closing it cancels the request.
    Never,
    /// Yes, behind any message.
    ByEventId,
    /// Yes, from its very beginning, and the server may break it off itself.
    Polling,
}

/// How much structure tool output may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StructuredOutput {
    /// None.
    Unknown,
    /// A JSON object.
    Object,
    /// Any JSON value.
    Any,
}

/// What a server may ask a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Elicitation {
    /// Nothing.
    Unknown,
    /// Plain forms: one choice of several.
    PlainForms,
    /// Forms with titled and multiple choices.
    Forms,
}

/// Whether a person may be sent to a web page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UrlElicitation {
    /// No.
    Unknown,
    /// Yes, and the request has an id that its completion can refer to.
    WithId,
    /// Yes.
    Plain,
}

/// What a revision has of tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tasks {
    /// Nothing.
    Unknown,
    /// The experimental feature of the protocol itself, in both directions.
    Experimental,
    /// The extension, from client to server.
    Extension,
}

/// What becomes of tool arguments that do not fit the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadArguments {
    /// A JSON-RPC error.
    ProtocolError,
    /// A tool result that says what to correct.
    ToolResult,
}

/// The id in a response to an unreadable message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnreadableId {
    /// `null`, as JSON-RPC has it.
    Null,
    /// Nothing.
    Absent,
}
