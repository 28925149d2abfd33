//! From what was typed to a server that may be connected.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use parking_lot::Mutex;
use refmcp_auth::Secret;
use refmcp_client::auth::Authorization;
use refmcp_client::child::ChildProcess;
use refmcp_client::http::{HttpSettings, HttpSse, StreamableHttp, read_certificates};
use refmcp_client::observer::Observer;
use refmcp_client::redact::{self, Secrets};
use refmcp_client::transport::Connector;
use refmcp_client::websocket::WebSocket;
use refmcp_client::{Client, Revision};
use url::Url;

use super::host::Person;
use super::server_stderr::{LastLines, stderr_to};
use crate::args::{
    ExitError, ExitReason, OutputFormat, ServerStderr, SharedOptions, Target, TargetName, UrlTransport,
    UsageError, usage,
};
use crate::command::auth;
use crate::config::{self, Input, InputKind, Launch, Problem, ServerEntry, Severity};
use crate::record::Recording;
use crate::store::StateFolder;
use crate::store::cache::VERSIONS;
use crate::ui::progress::Bars;
use crate::ui::redact::add_secrets;
use crate::ui::suggest::choices;

/// How long a program may take to end once its input is closed, and again once it is told to terminate.
const EXIT_GRACE: Duration = Duration::from_secs(2);

/// A server that may be connected.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) connector: Arc<dyn Connector>,
    /// What it is called in logs and in what was decided about its tools.
    pub(crate) name: TargetName,
    /// The last that it wrote to its stderr, where that is not shown.
    pub(crate) last_lines: LastLines,
    /// What writes the messages down, if that is wanted.
    pub(crate) observer: Option<Arc<dyn Observer>>,
}

/// Where a server is, and how it is talked to.
pub(crate) struct RemoteServer {
    pub(crate) url: Url,
    transport: UrlTransport,
    /// Header fields that a configuration file has for it.
    headers: Vec<(String, String)>,
}

/// Finds servers, as the options say.
pub(crate) struct Servers<'a> {
    pub(super) shared: &'a SharedOptions,
    pub(super) person: &'a Person,
    /// What writes the messages down, if that is wanted.
    pub(crate) observer: Option<Arc<dyn Observer>>,
    bars: Bars,
    last_lines: LastLines,
}

impl<'a> Servers<'a> {
    pub(crate) fn new(shared: &'a SharedOptions, person: &'a Person) -> Result<Self> {
        let observer = Recording::open(&shared.record, shared.output == OutputFormat::Jsonl)?.observer();
        Ok(Self { shared, person, observer, bars: Bars::hidden(), last_lines: LastLines::default() })
    }

    /// Shows what programs say on their stderr beside these bars.
    pub(crate) fn beside(mut self, bars: &Bars) -> Self {
        self.bars = bars.clone();
        self
    }

    /// The server that is meant, once the user has agreed to start it where that has to be asked.
    pub(crate) async fn find(&self, target: &Target) -> Result<Server> {
        let connector = match target {
            Target::Url { url, transport } => {
                let place = RemoteServer { url: url.clone(), transport: *transport, headers: Vec::new() };
                self.at(&place).await?
            }
            Target::Command(words) => Arc::new(self.typed(words)?),
            Target::Named(name) => self.configured(name).await?,
        };
        let last_lines = self.last_lines.clone();
        Ok(Server { connector, name: target.name(), last_lines, observer: self.observer.clone() })
    }

    /// Where the server is that is meant, once the user has agreed to what a configuration file has sent there.
    pub(crate) async fn place_to_connect(&self, target: &Target) -> Result<RemoteServer> {
        let Target::Named(name) = target else { return self.place(target).await };
        let entry = self.entry(name).await?;
        self.agreed_to_send(&entry).await?;
        Ok(place_of(&entry.launch)?.ok_or_else(|| nowhere(name))?)
    }

    /// Where the server is that is meant; one that is started is nowhere.
    pub(crate) async fn place(&self, target: &Target) -> Result<RemoteServer> {
        match target {
            Target::Url { url, transport } => {
                Ok(RemoteServer { url: url.clone(), transport: *transport, headers: Vec::new() })
            }
            Target::Command(_) => Err(nowhere(&target.to_string()).into()),
            Target::Named(name) => {
                let entry = self.entry(name).await?;
                Ok(place_of(&entry.launch)?.ok_or_else(|| nowhere(name))?)
            }
        }
    }

    /// The server at an address, with the tokens that are kept for it.
    async fn at(&self, place: &RemoteServer) -> Result<Arc<dyn Connector>> {
        let authorization = auth::kept(&place.url, self.shared, self.person, &self.bars).await;
        self.connector(place, authorization)
    }

    /// The server at an address, where one gets in like this.
    pub(crate) fn connector(
        &self,
        place: &RemoteServer,
        authorization: Authorization,
    ) -> Result<Arc<dyn Connector>> {
        let (url, headers, settings) = (place.url.as_str(), self.headers(place), self.http_settings()?);
        let made = || -> Result<Arc<dyn Connector>> {
            let mut headers = headers.iter();
            Ok(match place.transport {
                UrlTransport::Auto | UrlTransport::StreamableHttp => {
                    let server = StreamableHttp::new(url)?.settings(settings).authorization(authorization);
                    Arc::new(headers.try_fold(server, |server, (name, value)| server.header(name, value))?)
                }
                UrlTransport::Sse => {
                    let server = HttpSse::new(url)?.settings(settings).authorization(authorization);
                    Arc::new(headers.try_fold(server, |server, (name, value)| server.header(name, value))?)
                }
                UrlTransport::WebSocket => {
                    let server = WebSocket::new(url)?.settings(settings).authorization(authorization);
                    Arc::new(headers.try_fold(server, |server, (name, value)| server.header(name, value))?)
                }
            })
        };
        made().map_err(|error| UsageError::new(error.to_string()).into())
    }

    /// The header fields for a server at an address: those of a configuration file and those that were typed.
    fn headers(&self, place: &RemoteServer) -> Vec<(String, String)> {
        let typed = self.shared.headers.iter().map(|header| (header.name.clone(), header.value.clone()));
        let headers: Vec<(String, String)> = place.headers.iter().cloned().chain(typed).collect();
        let secrets = Secrets::default().with_url(place.url.as_str());
        add_secrets(&headers.iter().fold(secrets, |secrets, (_, value)| secrets.with_value(value)));
        headers
    }

    fn http_settings(&self) -> Result<HttpSettings> {
        let mut settings = HttpSettings::default();
        settings.connect_timeout = settings.connect_timeout.min(self.shared.timeout);
        settings.head_timeout = settings.head_timeout.min(self.shared.timeout);
        for file in &self.shared.cacert {
            settings.ca_certificates.extend(read_certificates(file).map_err(UsageError::new)?);
        }
        Ok(settings)
    }

    /// The server that is meant, to be checked: over HTTP by single requests. Tokens of a login are not used; a header is.
    pub(crate) async fn to_check(
        &self,
        target: &Target,
        transport: Option<UrlTransport>,
    ) -> Result<refmcp_check::Target> {
        let place = match target {
            Target::Command(words) => return Ok(refmcp_check::Target::child(self.typed(words)?)),
            Target::Url { .. } => self.place(target).await?,
            Target::Named(name) => {
                let entry = self.entry(name).await?;
                if let Some(child) = self.child_of(&entry).await? {
                    return Ok(refmcp_check::Target::child(child));
                }
                self.agreed_to_send(&entry).await?;
                place_of(&entry.launch)?.context("an entry without an address")?
            }
        };
        let place = RemoteServer { transport: transport.unwrap_or(place.transport), ..place };
        let (url, headers, settings) = (place.url.as_str(), self.headers(&place), self.http_settings()?);
        let usage = |error: refmcp_client::http::UrlError| UsageError::new(error.to_string());
        Ok(match place.transport {
            UrlTransport::Auto | UrlTransport::StreamableHttp => {
                refmcp_check::Target::http(url, settings, headers).map_err(usage)?
            }
            UrlTransport::Sse => refmcp_check::Target::http_sse(url, settings, headers).map_err(usage)?,
            UrlTransport::WebSocket => refmcp_check::Target::pipe(self.at(&place).await?),
        })
    }

    /// A command that was typed: that is agreement enough. `NAME=VALUE` before the program sets a variable, as in
    /// a shell.
    fn typed(&self, words: &[String]) -> Result<ChildProcess> {
        let is_variable =
            |word: &&String| word.split_once('=').is_some_and(|(name, _)| config::is_variable_name(name));
        let count = words.iter().take_while(is_variable).count();
        let (variables, command) = words.split_at_checked(count).unwrap_or((&[], words));
        let Some((program, args)) = command.split_first() else {
            return Err(UsageError::new("there is no command after `--`").into());
        };
        let variables = variables.iter().filter_map(|word| word.split_once('='));
        self.child(self.as_typed(ChildProcess::new(program).args(args).envs(variables)))
    }

    /// A program with the variables and the directory that were typed.
    fn as_typed(&self, child: ChildProcess) -> ChildProcess {
        let child = child.envs(self.shared.env.iter().cloned());
        match &self.shared.cwd {
            Some(folder) => child.current_dir(folder),
            None => child,
        }
    }

    fn child(&self, child: ChildProcess) -> Result<ChildProcess> {
        let child = child.stderr(stderr_to(self.shared, &self.bars, &self.last_lines)?);
        // What was shown is not said once more.
        let child = child.quote_stderr(self.shared.server_stderr != ServerStderr::Show);
        // A server that was given little time to answer is given no more to end.
        let child = child.grace(EXIT_GRACE.min(self.shared.timeout / 5), EXIT_GRACE);
        add_secrets(&child.secrets());
        Ok(child)
    }

    /// A server that a configuration file names.
    async fn configured(&self, name: &str) -> Result<Arc<dyn Connector>> {
        let entry = self.entry(name).await?;
        if let Some(child) = self.child_of(&entry).await? {
            return Ok(Arc::new(child));
        }
        self.agreed_to_send(&entry).await?;
        self.at(&place_of(&entry.launch)?.context("an entry without an address")?).await
    }

    /// The program that an entry names, if it names one, once the user has agreed to start it.
    async fn child_of(&self, entry: &ServerEntry) -> Result<Option<ChildProcess>> {
        let start = entry.start().map_err(|problem| UsageError::new(problem.to_string()))?;
        let Some(mut start) = start else { return Ok(None) };
        // What is agreed to is what is started: the program is looked for once.
        let found = self.as_typed(start.child.clone()).resolved();
        start.child = found.map_err(|why| ExitError::new(ExitReason::Unreachable, why.to_string()))?;
        self.agreed_to_start(entry, &start).await?;
        self.child(start.child).map(Some)
    }

    /// What a configuration file says about a server, with its variables filled in.
    async fn entry(&self, name: &str) -> Result<ServerEntry> {
        let known = self.known(Some(name))?;
        let Some(entry) = known.get(name) else { return Err(self.unknown(name, &known)) };
        warn_once(known.problems.iter().filter(|problem| problem.is_of_whole_file()));
        if entry.disabled {
            let file = entry.source.display();
            return Err(usage!("{name} is disabled in {file}").into());
        }
        self.resolved(&known, entry).await
    }

    /// Every server that the files name. What is wrong with the files is said once; of the server that is asked for, where
    /// its entry cannot be used, by the error that follows.
    pub(crate) fn known(&self, asked: Option<&str>) -> Result<config::Servers> {
        let known = self.read_files()?;
        let broken = known.problems.iter().find(|problem| problem.is_of_whole_file());
        if let Some(problem) = broken.filter(|_| self.shared.config.is_some()) {
            return Err(UsageError::new(problem.to_string()).into());
        }
        // One of several files that cannot be used is part of the error when a name is not found.
        let failed = asked.filter(|name| known.get(name).is_none());
        let is_error = |problem: &Problem| failed.is_some() && problem.server.as_deref() == failed;
        warn_once(known.problems.iter().filter(|problem| !problem.is_of_whole_file() && !is_error(problem)));
        Ok(known)
    }

    /// The same, without a word about what is wrong with the files.
    pub(crate) fn read_files(&self) -> Result<config::Servers> {
        let file = self.shared.config.as_deref();
        file.map_or(Ok(()), config::check_exists)?;
        Ok(config::read_named(file))
    }

    fn unknown(&self, name: &str, known: &config::Servers) -> anyhow::Error {
        if let Some(problem) = known.problems.iter().find(|problem| problem.server.as_deref() == Some(name)) {
            return usage!("the entry of {name:?} cannot be used: {problem}").into();
        }
        let names: Vec<&str> = known.servers.iter().map(|entry| entry.name.as_str()).collect();
        let broken = known.problems.iter().filter(|problem| problem.is_of_whole_file());
        let broken: Vec<String> = broken.map(ToString::to_string).collect();
        let hint = choices(name, &names, "there is").unwrap_or_else(|| match broken.as_slice() {
            [] => "no configuration file names any; give a URL, or a command after `--`".to_owned(),
            _ => "no configuration file can be used".to_owned(),
        });
        let hint = std::iter::once(hint).chain(broken).collect::<Vec<_>>().join("; ");
        usage!("no server is called {:?}: {hint}", redact::word(name)).into()
    }

    /// The entry with its variables filled in; those that a person has to know are asked for.
    async fn resolved(&self, known: &config::Servers, entry: &ServerEntry) -> Result<ServerEntry> {
        let (known, entry, person) = (known.clone(), entry.clone(), self.person.clone());
        let resolved = tokio::task::spawn_blocking(move || {
            let ask = |input: &Input| person.input(input);
            known.resolve(&entry, &ask, &|name| std::env::var(name).ok())
        });
        Ok(resolved.await?.map_err(|error| UsageError::new(error.to_string()))?)
    }
}

/// Tells what is wrong with configuration files, each problem once in a process.
pub(crate) fn warn_once<'a>(problems: impl Iterator<Item = &'a Problem>) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    for problem in problems {
        let text = problem.to_string();
        if !SAID.lock().insert(text.clone()) {
            continue;
        }
        match problem.severity {
            Severity::Error => tracing::warn!("{text}"),
            // `refmcp servers` tells of them; here they are about servers that were not asked for.
            Severity::Hint => tracing::info!("{text}"),
        }
    }
}

/// The error for a server that is started and is nowhere.
fn nowhere(what: &str) -> UsageError {
    usage!("{what} is started here and needs no login")
}

/// Where an entry of a configuration file says that its server is, if it is anywhere.
fn place_of(launch: &Launch) -> Result<Option<RemoteServer>, UsageError> {
    let Launch::Remote { transport, url, headers } = launch else { return Ok(None) };
    let unusable = |error| usage!("{:?} is no address: {error}", redact::word(url));
    let url = Url::parse(url).map_err(unusable)?;
    let headers = headers.iter().map(|(name, value)| (name.clone(), value.reveal().to_owned()));
    Ok(Some(RemoteServer { url, transport: *transport, headers: headers.collect() }))
}

impl Person {
    /// What a configuration file leaves to the person in front of the terminal.
    fn input(&self, input: &Input) -> Result<String, String> {
        let preset = input.default.as_ref().map(Secret::reveal);
        let answer = self.ask_now(|terminal| {
            let label = if input.description.is_empty() { &input.id } else { &input.description };
            match &input.kind {
                InputKind::Pick { options } => {
                    let preset = options.iter().position(|(_, value)| preset == Some(value.as_str()));
                    let shown: Vec<String> = options.iter().map(|(shown, _)| shown.clone()).collect();
                    let chosen = terminal.choose(label, &shown, preset)?;
                    Ok(options.get(chosen).map(|(_, value)| value.clone()).unwrap_or_default())
                }
                _ if input.is_secret() => terminal.hidden(label),
                _ => terminal.text(label, preset),
            }
        });
        match answer {
            Some(Ok(text)) => Ok(text),
            Some(Err(error)) => Err(error.to_string()),
            None => preset.map(str::to_owned).ok_or_else(|| "the user cannot be asked".to_owned()),
        }
    }
}

/// What a server spoke when it was last connected from here.
pub(crate) fn remembered(server: &TargetName) -> Option<Revision> {
    let spoken: String = VERSIONS.get(&StateFolder::from_env().ok()?, server.key(), SystemTime::now())?;
    spoken.parse().ok()
}

/// Remembers what a server speaks.
pub(crate) fn remember(server: &TargetName, client: &Client) {
    let remembered = StateFolder::from_env().and_then(|folder| {
        VERSIONS.put(&folder, server.key(), client.server().revision.as_str(), SystemTime::now())
    });
    if let Err(error) = remembered {
        tracing::debug!("what {server} speaks is not remembered: {error:#}");
    }
}
