//! `refmcp servers`: the servers that configuration files name.

use std::collections::HashSet;
use std::path::Path;

use anyhow::Result;
use refmcp_auth::secret::Secret;
use serde::Serialize;

use crate::args::{ExitReason, ServersOptions, UrlTransport};
use crate::config::{self, Launch, Problem, ServerEntry, Severity};
use crate::store::StateFolder;
use crate::store::trust::{Trust, TrustStatus};
use crate::ui::output::{print_aside, show};
use crate::ui::redact;
use crate::ui::render::View;
use crate::ui::render::table::Table;
use crate::ui::text::one_line;

pub(crate) fn run(options: &ServersOptions) -> Result<ExitReason> {
    let files = match &options.config {
        Some(file) => config::check_exists(file).map(|()| vec![config::read(file)])?,
        None => config::usual_files().iter().map(|file| config::read_all(&[file])).collect(),
    };
    let (trust, error) = match StateFolder::from_env().and_then(|folder| Trust::load(&folder)) {
        Ok(trust) => (trust, None),
        Err(error) => (Trust::default(), Some(error)),
    };
    let listing = ServerListing::new(&files, &trust);
    if let Some(error) = error {
        let why = one_line(&format!("{error:#}")).into_owned();
        print_aside(&format!("refmcp: what may be started is not known: {why}\n"));
    }
    show(options.output, &listing, || {
        for problem in &listing.problems {
            print_aside(&format!("refmcp: {}\n", one_line(&problem.to_string())));
        }
        listing.text(&View::for_stdout(false))
    })?;
    let is_broken = files.iter().flat_map(|file| &file.problems).any(Problem::is_of_whole_file);
    Ok(if is_broken && listing.servers.is_empty() { ExitReason::Usage } else { ExitReason::Done })
}

/// What the files name, and what is wrong with them.
#[derive(Debug, Serialize)]
struct ServerListing<'a> {
    servers: Vec<Server<'a>>,
    problems: Vec<&'a Problem>,
}

/// A server of a file.
#[derive(Debug, Serialize)]
struct Server<'a> {
    name: &'a str,
    transport: &'static str,
    /// Where it is or how it is started, without secrets.
    target: String,
    /// Names of variables that the file sets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    env: Vec<&'a str>,
    /// Names of headers that the file sets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    headers: Vec<&'a str>,
    file: &'a Path,
    /// Whether it may be started; nothing where there is nothing to start.
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<&'static str>,
    /// Whether the file says that it is not to be used.
    disabled: bool,
    /// Whether another file that comes first has a server of that name.
    shadowed: bool,
}

impl<'a> ServerListing<'a> {
    fn new(files: &'a [config::Servers], trust: &Trust) -> Self {
        let mut names = HashSet::new();
        let mut listing = Self { servers: Vec::new(), problems: Vec::new() };
        for file in files {
            for entry in &file.servers {
                listing.servers.push(Server::new(file, entry, trust, !names.insert(entry.name.as_str())));
            }
            listing.problems.extend(&file.problems);
        }
        listing
    }

    fn text(&self, view: &View) -> String {
        let is_broken = self.problems.iter().any(|problem| problem.severity == Severity::Error);
        let none = if is_broken { "can be used" } else { "names a server" };
        let mut table = Table::new(&["NAME", "TRANSPORT", "TARGET", "START", "FILE"]);
        for server in &self.servers {
            let start = match server {
                Server { disabled: true, .. } => "disabled in the file",
                Server { shadowed: true, .. } => "not used: the name is taken",
                Server { start: Some("ask"), .. } => "asks first",
                Server { start: Some("changed"), .. } => "changed since; asks again",
                server => server.start.unwrap_or_default(),
            };
            let file = server.file.to_string_lossy();
            table.row([server.name, server.transport, &server.target, start, &file]);
        }
        table.render_or(&format!("no configuration file {none}"), view.paint, view.width)
    }
}

impl<'a> Server<'a> {
    fn new(known: &config::Servers, entry: &'a ServerEntry, trust: &Trust, shadowed: bool) -> Self {
        let names = |pairs: &'a [(String, Secret)]| pairs.iter().map(|(name, _)| name.as_str()).collect();
        let (transport, env, headers) = match &entry.launch {
            Launch::Command { env, .. } => ("stdio", names(env), Vec::new()),
            Launch::Remote { transport, headers, .. } => {
                let transport = match transport {
                    UrlTransport::Auto | UrlTransport::StreamableHttp => "http",
                    UrlTransport::Sse => "sse",
                    UrlTransport::WebSocket => "websocket",
                };
                (transport, Vec::new(), names(headers))
            }
        };
        // A file that cannot be read any more is not the one that was allowed.
        let status = config::trust_status(known, entry, trust).unwrap_or(Some(TrustStatus::Unknown));
        let start = status.map(|status| match status {
            TrustStatus::Allowed => "allowed",
            TrustStatus::Disabled => "disabled",
            TrustStatus::Unknown => "ask",
            TrustStatus::Changed => "changed",
        });
        Self {
            name: &entry.name,
            transport,
            target: redact::launch(&entry.launch),
            env,
            headers,
            file: &entry.source,
            start,
            disabled: entry.disabled,
            shadowed,
        }
    }
}
