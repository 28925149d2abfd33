//! Sending a person to log in, and waiting for their browser to come back.

use std::fmt;
use std::time::Duration;

use refmcp_client::auth::{Browser, BrowserError, is_redirect_for};
use refmcp_client::transport::BoxFuture;
use tokio::sync::{Mutex, OnceCell};
use url::Url;

use super::callback::Callback;
use crate::args::BrowserOptions;
use crate::command::client::Person;
use crate::ui::browser::open_url;
use crate::ui::progress::Bars;
use crate::ui::terminal::AskError;
use crate::ui::text::one_line;

/// The user's browser, which is redirected back to a port of this machine.
pub(crate) struct LocalBrowser {
    person: Person,
    bars: Bars,
    visit: BrowserOptions,
    /// The server to ask the user about before the login; `None` where the user has asked for the login.
    ask_about: Option<String>,
    /// The port that authorization servers know already: with another one they would have to be told anew.
    usual_port: Option<u16>,
    callback: OnceCell<Callback>,
    /// Held during a login: one at a time.
    turn: Mutex<()>,
}

impl fmt::Debug for LocalBrowser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalBrowser").field("ask_about", &self.ask_about).finish_non_exhaustive()
    }
}

impl LocalBrowser {
    /// For a user who has asked to log in.
    pub(crate) fn new(person: &Person, bars: &Bars, visit: BrowserOptions) -> Self {
        let (person, bars) = (person.clone(), bars.clone());
        let (callback, turn) = (OnceCell::new(), Mutex::default());
        Self { person, bars, visit, ask_about: None, usual_port: None, callback, turn }
    }

    /// The same, which comes back to this port if it is free and no other is asked for.
    pub(crate) fn usually_at(self, port: Option<u16>) -> Self {
        Self { usual_port: port, ..self }
    }

    /// The same, but asks the user first.
    pub(crate) fn asking(self, server: &str) -> Self {
        Self { ask_about: Some(server.to_owned()), ..self }
    }

    async fn callback(&self) -> Result<&Callback, BrowserError> {
        self.callback.get_or_try_init(|| self.bind()).await
    }

    async fn bind(&self) -> Result<Callback, BrowserError> {
        let port = self.visit.callback_port;
        if let (0, Some(usual)) = (port, self.usual_port)
            && let Ok(bound) = Callback::bind(usual).await
        {
            return Ok(bound);
        }
        Callback::bind(port).await.map_err(|error| {
            let at = if port == 0 { "any port".to_owned() } else { format!("port {port}") };
            BrowserError::Failed(format!("cannot listen on {at} of this machine for the browser: {error}"))
        })
    }

    /// Asks the user whether to log in at all, unless they have asked for it.
    async fn agreed(&self, page: &Url) -> Result<(), BrowserError> {
        let Some(server) = self.ask_about.clone() else { return Ok(()) };
        let host = page.host_str().unwrap_or_default().to_owned();
        let scopes =
            page.query_pairs().find(|(name, _)| name == "scope").map(|(_, scopes)| scopes.into_owned());
        let scopes = scopes.filter(|scopes| !scopes.is_empty()).map(|scopes| format!(" for {scopes}"));
        let answer = self.person.ask(move |terminal| {
            terminal.say_strong(&format!("{server} wants to know who you are."))?;
            terminal.confirm(&format!("Log in at {host}{}, with a browser?", scopes.unwrap_or_default()))
        });
        match answer.await {
            Some(Ok(true)) => Ok(()),
            Some(Ok(false) | Err(AskError::Ended)) => Err(BrowserError::Declined),
            Some(Err(error)) => Err(BrowserError::Failed(error.to_string())),
            None => Err(BrowserError::Unavailable),
        }
    }

    /// Sends the person there.
    fn send(&self, page: &Url) {
        // As an address it has no characters that a terminal would take for something else.
        if self.visit.no_browser {
            return self.bars.say(&format!("Log in at this page:\n  {page}\n"));
        }
        match open_url(page) {
            Ok(()) => self.bars.say(&format!(
                "Log in with the browser that opens now. If none does, visit this page:\n  {page}\n"
            )),
            Err(error) => {
                let error = one_line(&error.to_string()).into_owned();
                self.bars.say(&format!("No browser opens ({error}). Visit this page:\n  {page}\n"));
            }
        }
    }

    /// Waits until the user has pasted the address their browser, perhaps on another machine, was redirected to.
    async fn pasted(&self, sent: &Url) -> Result<Url, BrowserError> {
        if !self.visit.no_browser || !self.person.is_there() {
            return std::future::pending().await;
        }
        self.bars.say(
            "If that browser is on another machine, it ends at a page that it cannot show: paste its address here.\n",
        );
        loop {
            let line = self.person.ask(|terminal| terminal.line("Address")).await;
            let text = match line {
                Some(Ok(text)) => text,
                Some(Err(AskError::Ended)) => return Err(BrowserError::Declined),
                Some(Err(error)) => return Err(BrowserError::Failed(error.to_string())),
                None => return std::future::pending().await,
            };
            match Url::parse(&text) {
                Ok(url) if is_redirect_for(sent, &url) => return Ok(url),
                Ok(_) => self.bars.say("That is not where this login ends.\n"),
                Err(error) => self.bars.say(&format!("That is no address: {error}.\n")),
            }
        }
    }

    async fn go(&self, page: Url) -> Result<Url, BrowserError> {
        let _turn = self.turn.lock().await;
        self.agreed(&page).await?;
        let callback = self.callback().await?;
        self.send(&page);
        tokio::select! {
            came = callback.wait(&page, self.visit.login_timeout) => came,
            pasted = self.pasted(&page) => pasted,
        }
    }
}

impl Browser for LocalBrowser {
    fn redirect_uri(&self) -> BoxFuture<'_, Result<Url, BrowserError>> {
        Box::pin(async move {
            let text = self.callback().await?.redirect_uri();
            Url::parse(&text).map_err(|error| BrowserError::Failed(format!("{text}: {error}")))
        })
    }

    fn visit(&self, url: Url) -> BoxFuture<'_, Result<Url, BrowserError>> {
        Box::pin(self.go(url))
    }
}

/// How much longer than a person the library waits: who came back is known here.
pub(super) const MARGIN: Duration = Duration::from_secs(10);
