//! `serve` and `stdio`: the options of the reference server and of its listener.

mod authorization;
mod backplane;
mod listen;

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use refmcp_http::{Options, Rate};
use refmcp_reference::{Profile, TourSteps, UnknownStep};

use super::value::{host_name, memory, ops_address, seconds, web_origin};
use super::{OutputFormat, RecordOptions};

pub(crate) use authorization::{AuthorizationOptions, BuiltinLogin, DpopPolicy, TokenIssuer};
pub(crate) use backplane::BackplaneOptions;
use listen::ListenOptions;
pub(super) use listen::check_together;

#[derive(Debug, clap::Args)]
pub(crate) struct ServeOptions {
    /// The address to listen on; beyond this machine only if you mean it.
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) host: String,

    /// The port to listen on; 0 takes any that is free.
    #[arg(long, default_value_t = 3000, env = "PORT")]
    pub(crate) port: u16,

    /// A further name under which clients may address the server; can be repeated.
    #[arg(long, value_name = "NAME", value_parser = host_name)]
    pub(crate) allow_host: Vec<String>,

    /// A further web origin whose pages may use the server; can be repeated.
    #[arg(long, value_name = "ORIGIN", value_parser = web_origin)]
    pub(crate) allow_origin: Vec<String>,

    /// Serve /healthz, /readyz and /metrics at this address instead, HOST:PORT or a port of this machine.
    #[arg(long, value_name = "ADDR", value_parser = ops_address)]
    pub(crate) ops_addr: Option<String>,

    /// A file of certificates in PEM, the server's own first; turns TLS on.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// The file of the certificate's private key, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,

    /// Requests per second that one client may make in the long run, and ten times as many at once; 0 for any
    /// number.
    #[arg(long, value_name = "N", default_value_t = Rate::default().per_second)]
    pub(crate) rate: u32,

    /// Hold clients on this machine to the rate as well.
    #[arg(long)]
    pub(crate) rate_on_loopback: bool,

    /// How many sessions may be open.
    #[arg(long, value_name = "N", default_value_t = Options::default().max_sessions)]
    pub(crate) max_sessions: usize,

    /// How many sessions one client may have: one principal where tokens are required, else one address; a quarter of all
    /// by default. Beyond it, the client's own longest unused session ends.
    #[arg(long, value_name = "N")]
    pub(crate) max_sessions_per_client: Option<usize>,

    /// How many connections may be open.
    #[arg(long, value_name = "N", default_value_t = Options::default().max_connections)]
    pub(crate) max_connections: usize,

    /// How many seconds a session may be silent before it ends.
    #[arg(long, value_name = "SECONDS", default_value = "1800", value_parser = seconds)]
    pub(crate) session_timeout: Duration,

    /// How many seconds a stream that has ended can still be resumed.
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = seconds)]
    pub(crate) retention: Duration,

    /// How many seconds running requests may take to finish when the server is told to stop.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub(crate) shutdown_timeout: Duration,

    /// The format of the banner, which says where the server listens.
    #[arg(long, short = 'o', value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) output: OutputFormat,

    #[command(flatten)]
    pub(crate) listen: ListenOptions,

    #[command(flatten)]
    pub(crate) server: ServerOptions,

    #[command(flatten)]
    pub(crate) backplane: BackplaneOptions,

    // Last, since its heading would be that of the options behind it.
    #[command(flatten)]
    pub(crate) authorization: AuthorizationOptions,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ServerOptions {
    /// Which tools, resources and prompts to offer: the reference server's own (reference), what the official conformance
    /// suite looks for (conformance), or both (all).
    #[arg(long, default_value = "all", value_parser = profile())]
    pub(crate) profile: Profile,

    /// A folder whose files are offered as resources; changes are noticed.
    #[arg(long, value_name = "DIR")]
    pub(crate) resources: Option<PathBuf>,

    /// A folder of prompt files (*.md, *.txt), with YAML front matter or without; changes are noticed.
    #[arg(long, value_name = "DIR")]
    pub(crate) prompts: Option<PathBuf>,

    /// A folder with skills in it, or one that is a skill: folders with a SKILL.md; changes are noticed.
    #[arg(long, value_name = "DIR")]
    pub(crate) skills: Option<PathBuf>,

    /// Things on one page of a list; 200 if left out, and 10 with --tour.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) page_size: Option<u32>,

    /// What to do with clients that break the protocol in tolerable ways: refuse them, or serve them and log a finding.
    #[arg(long, value_enum, default_value_t = Policy::Strict)]
    pub(crate) policy: Policy,

    /// The name the server gives itself.
    #[arg(long, default_value = "RefMCP-TestServer")]
    pub(crate) name: String,

    /// The version the server gives itself; refmcp's own if left out.
    #[arg(long, value_name = "VERSION", default_value = env!("CARGO_PKG_VERSION"))]
    pub(crate) server_version: String,

    /// Ping a client that has been silent for so many seconds, and leave when it does not answer.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) ping_after: Option<Duration>,

    /// How many seconds a client has to answer a ping.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub(crate) ping_timeout: Duration,

    #[command(flatten)]
    pub(crate) record: RecordOptions,

    /// Judge nothing. Without this and --audit, the beginning of each conversation is judged: rules that are broken are logged.
    #[arg(long, conflicts_with = "audit")]
    pub(crate) no_audit: bool,

    /// What the server sends goes wrong, as this plan says: a file, or the plan itself, such as 'tools/call 2: no answer'. What
    /// is recorded and judged is what the client gets.
    #[arg(long, value_name = "PLAN")]
    pub(crate) faults: Option<String>,

    /// Lead each client through everything that a server may do: all, or some steps separated by commas. Judges as --audit does;
    /// the report says what the client supports.
    #[arg(long, value_name = "STEPS", num_args = 0..=1, default_missing_value = "all", value_parser = tour_steps)]
    pub(crate) tour: Option<TourSteps>,

    /// Steps of the tour to leave out, separated by commas.
    #[arg(long, value_name = "STEPS", requires = "tour", value_parser = tour_steps)]
    pub(crate) tour_skip: Option<TourSteps>,

    /// How many bytes may be held in memory for all clients together: messages that are not complete, responses that are
    /// not read, logs of streams. A number with K, M or G; half of the machine's or the container's memory if left out.
    #[arg(long, value_name = "BYTES", value_parser = memory)]
    pub(crate) memory: Option<usize>,

    /// How many seconds running calls may take to finish when the client leaves.
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub(crate) grace: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Policy {
    /// Refuse what the specification does not allow.
    Strict,
    /// Serve what can be understood.
    Lenient,
}

impl ServerOptions {
    /// The same with what follows from the options: a tour is judged.
    pub(crate) fn completed(mut self) -> Self {
        self.record.audit |= self.tour.is_some();
        self
    }
}

/// Steps of the tour, separated by commas.
fn tour_steps(names: &str) -> Result<TourSteps, UnknownStep> {
    TourSteps::from_names(names.split(',').map(str::trim))
}

/// Profiles by their names.
fn profile() -> impl TypedValueParser<Value = Profile> {
    PossibleValuesParser::new(Profile::ALL.map(Profile::as_str))
        .try_map(|name| Profile::named(&name).ok_or("no such profile"))
}
