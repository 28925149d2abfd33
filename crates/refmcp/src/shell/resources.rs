//! Resources: reading them, filling in the templates of their addresses, and hearing of their changes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use refmcp_client::model::{CompletionRef, ResourceTemplate, ResourceTemplateReference};
use refmcp_proto::uri_template::{expand, variables};

use super::catalog::{self, Unresolved};
use super::complete::{Ask, values};
use super::monitor::LISTENER;
use super::run::{Shell, ambiguous};
use super::servers::Connected;
use crate::args::{UsageError, usage};
use crate::command::client::requests::{self, check_names};
use crate::command::client::watch::{self, is_stateless};
use crate::ui::terminal::{AskError, Terminal};
use crate::ui::text::one_line;

/// How long to wait for a server to say what a variable could be.
const COMPLETION_TIMEOUT: Duration = Duration::from_millis(500);

/// Values that are offered for a variable.
const MAX_VALUES: usize = 20;

async fn read(server: &Connected, uri: &str) -> Result<()> {
    server.with_hint(requests::read(&server.session, uri)).await
}

impl Shell {
    /// Reads a resource, or one that a template and these variables lead to.
    pub(super) async fn read(&self, what: &str, given: Vec<(String, String)>) -> Result<()> {
        let catalogs = self.registry.catalogs().await;
        match catalogs.find(what, catalog::resources) {
            Ok((server, uri)) if given.is_empty() => {
                return read(&*self.registry.named(&server)?, &uri).await;
            }
            Err(Unresolved::Several(names)) => return Err(ambiguous(&names)),
            _ => {}
        }
        match catalogs.find(what, catalog::templates) {
            Ok((server, name)) => {
                let server = self.registry.named(&server)?;
                let uri = match catalogs.of_server(&server.name).and_then(|catalog| catalog.template(&name)) {
                    Some(template) => self.fill_in(&server, template, given).await?,
                    None => name,
                };
                read(&server, &uri).await
            }
            Err(Unresolved::Several(names)) => Err(ambiguous(&names)),
            Err(Unresolved::Unknown) if given.is_empty() => {
                let (server, uri) = self.server_of(what).await?;
                read(&server, &uri).await
            }
            Err(Unresolved::Unknown) => Err(usage!("no server has a template {what:?}").into()),
        }
    }

    /// The server that an address belongs to: the one that lists it, or has a template that begins like it.
    async fn server_of(&self, what: &str) -> Result<(Arc<Connected>, String)> {
        let catalogs = self.registry.catalogs().await;
        match catalogs.find(what, catalog::resources) {
            Ok((server, uri)) => return Ok((self.registry.named(&server)?, uri)),
            Err(Unresolved::Several(names)) => return Err(ambiguous(&names)),
            Err(Unresolved::Unknown) => {}
        }
        if let Some(server) = catalogs.absent_of(what) {
            self.registry.named(server)?;
        }
        if let Some((server, uri)) = catalogs.only(what) {
            return Ok((self.registry.named(&server)?, uri));
        }
        let begins = |one: &ResourceTemplate| {
            let text = one.uri_template.split('{').next().unwrap_or_default();
            !text.is_empty() && what.starts_with(text)
        };
        let mut servers = catalogs.servers.iter().filter(|(_, catalog)| catalog.templates.iter().any(begins));
        match (servers.next(), servers.next()) {
            (Some((server, _)), None) => Ok((self.registry.named(server)?, what.to_owned())),
            _ => Err(UsageError::new("which server has it? write SERVER.URI, or use SERVER first").into()),
        }
    }

    /// The address that a template and its variables make; variables that are missing are asked for.
    async fn fill_in(
        &self,
        server: &Connected,
        template: &ResourceTemplate,
        given: Vec<(String, String)>,
    ) -> Result<String> {
        let all = variables(&template.uri_template);
        let mut known: BTreeMap<String, String> = given.into_iter().collect();
        let names: Vec<&str> = all.iter().map(|variable| variable.name.as_str()).collect();
        check_names("template", "variable", known.keys().map(String::as_str), &names)?;
        for variable in all.iter().filter(|variable| !variable.optional) {
            if known.contains_key(&variable.name) {
                continue;
            }
            if !self.person.is_there() {
                return Err(usage!("{}= is missing", variable.name).into());
            }
            let ask = Ask {
                server: server.name.clone(),
                of: CompletionRef::Resource(ResourceTemplateReference::new(&template.uri_template)),
                argument: variable.name.clone(),
                prefix: String::new(),
                context: known.clone().into_iter().collect(),
            };
            let offered = tokio::time::timeout(COMPLETION_TIMEOUT, values(&ask, &self.registry))
                .await
                .unwrap_or_default();
            let name = variable.name.clone();
            match self.person.ask(move |terminal| ask_for(terminal, &name, &offered)).await {
                Some(Ok(value)) => drop(known.insert(variable.name.clone(), value)),
                Some(Err(error)) => return Err(UsageError::new(error.to_string()).into()),
                None => return Err(usage!("{}= is missing", variable.name).into()),
            }
        }
        expand(&template.uri_template, &known).map_err(|error| UsageError::new(error.to_string()).into())
    }

    /// Lets a server tell of the changes of a resource.
    pub(super) async fn subscribe(&self, uri: &str) -> Result<()> {
        let (server, uri) = self.server_of(uri).await?;
        server.with_hint(watch::check(&server.session, std::slice::from_ref(&uri))).await?;
        if !is_stateless(server.client()) {
            server.ask(server.client().subscribe(&uri)).await?;
        }
        self.say(&server.name, &format!("tells of changes of {uri}"));
        server.subscriptions.set_resource(LISTENER, &uri, true);
        server.apply_subscriptions().await;
        Ok(())
    }

    /// Lets it tell of them no more.
    pub(super) async fn unsubscribe(&self, uri: &str) -> Result<()> {
        let (server, uri) = self.server_of(uri).await?;
        if !server.subscriptions.set_resource(LISTENER, &uri, false) {
            return Err(usage!(
                "{} has no subscription to {uri}; `resources` lists what can be subscribed to",
                server.name
            )
            .into());
        }
        if !is_stateless(server.client()) {
            server.ask(server.client().unsubscribe(&uri)).await?;
        }
        server.apply_subscriptions().await;
        self.say(&server.name, &format!("no longer tells of changes of {uri}"));
        Ok(())
    }
}

/// Asks for the value of a variable: one of those that the server catalogs, by its number, or any other.
fn ask_for(terminal: &mut Terminal, name: &str, offered: &[String]) -> Result<String, AskError> {
    for (number, value) in (1..).zip(offered.iter().take(MAX_VALUES)) {
        terminal.say(&format!("  {number:>2}  {}", one_line(value)))?;
    }
    loop {
        let typed = terminal.line(name)?;
        let by_number = typed.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let chosen = by_number.filter(|index| *index < MAX_VALUES).and_then(|index| offered.get(index));
        match chosen {
            Some(value) => return Ok(value.clone()),
            None if typed.is_empty() => terminal.say("Please answer, or give up with ctrl-c.")?,
            None => return Ok(typed),
        }
    }
}
