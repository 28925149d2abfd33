//! What servers catalog, as far as it is known: names are found and completed by it.

use refmcp_client::model::{JsonObject, Prompt, Resource, ResourceTemplate, Tool};
use refmcp_client::{Client, Listable};

use super::commands::names;
use crate::command::client::extra_methods::ExtraMethods;
use crate::command::client::models::ModelList;
use crate::ui::suggest::nearest;

/// How alike a word and a command have to be, of 1.
const SLIP: f64 = 0.7;

/// What one server catalogs.
#[derive(Debug, Clone, Default)]
pub(super) struct Catalog {
    pub(super) tools: Vec<Tool>,
    pub(super) resources: Vec<Resource>,
    pub(super) templates: Vec<ResourceTemplate>,
    pub(super) prompts: Vec<Prompt>,
    /// The names of its models.
    pub(super) models: Vec<String>,
}

impl Catalog {
    /// Asks the server for its lists, those that it says it has.
    pub(super) async fn fetch(client: &Client) -> Self {
        let has = client.server().capabilities.clone();
        let (tools, resources, templates, prompts, models) = tokio::join!(
            listed(client, has.tools.is_some()),
            listed(client, has.resources.is_some()),
            listed(client, has.resources.is_some()),
            listed(client, has.prompts.is_some()),
            models(client, ExtraMethods::Models.is_in(&has)),
        );
        Self { tools, resources, templates, prompts, models }
    }

    /// The template that a name means.
    pub(super) fn template(&self, name: &str) -> Option<&ResourceTemplate> {
        self.templates.iter().find(|template| names_of(template).any(|known| known == name))
    }
}

/// A list that fails is reported by the command that asks for it.
async fn listed<T: Listable>(client: &Client, has: bool) -> Vec<T> {
    if !has {
        return Vec::new();
    }
    client.pages().all().await.unwrap_or_else(|fault| {
        tracing::debug!("{}: {} is not known: {fault}", client.name(), T::METHOD);
        Vec::new()
    })
}

/// The names of the server's models.
async fn models(client: &Client, has: bool) -> Vec<String> {
    if !has {
        return Vec::new();
    }
    match client.raw("models/list", JsonObject::new()).read_as::<ModelList>().await {
        Ok(list) => list.models.into_iter().map(|model| model.name).collect(),
        Err(fault) => {
            tracing::debug!("{}: models/list is not known: {fault}", client.name());
            Vec::new()
        }
    }
}

/// What several servers catalog at one time.
#[derive(Debug, Clone, Default)]
pub(super) struct Catalogs {
    /// The connected servers by name.
    pub(super) servers: Vec<(String, std::sync::Arc<Catalog>)>,
    /// Servers that are known and not connected.
    pub(super) absent: Vec<String>,
    /// Servers that configuration files name.
    pub(super) configured: Vec<String>,
    /// The server that is preferred.
    pub(super) used: Option<String>,
}

/// Why a name leads nowhere.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unresolved {
    /// No server has it.
    Unknown,
    /// Several have it: what to write instead.
    Several(Vec<String>),
}

impl Catalogs {
    /// The server that a name means, and the name it has there. `SERVER.NAME` is clear; a name alone means the server
    /// that is preferred, or else the only one that has it.
    pub(super) fn find(
        &self,
        word: &str,
        names: impl Fn(&Catalog) -> Vec<&str>,
    ) -> Result<(String, String), Unresolved> {
        for (server, catalog) in &self.servers {
            if let Some(name) = without_server(word, server)
                && names(catalog).contains(&name)
            {
                return Ok((server.clone(), name.to_owned()));
            }
        }
        let having: Vec<&String> = self
            .servers
            .iter()
            .filter(|(_, catalog)| names(catalog).contains(&word))
            .map(|(server, _)| server)
            .collect();
        let preferred = having.iter().find(|server| Some(**server) == self.used.as_ref());
        match (preferred, having.as_slice()) {
            (Some(server), _) | (None, [server]) => Ok(((*server).clone(), word.to_owned())),
            (None, []) => Err(Unresolved::Unknown),
            (None, several) => {
                Err(Unresolved::Several(several.iter().map(|server| format!("{server}.{word}")).collect()))
            }
        }
    }

    /// The command of the shell that may have been meant by a word, unless a tool is as near.
    pub(super) fn command_like(&self, word: &str) -> Option<String> {
        let commands = names();
        let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
        let near = nearest(word, &commands)?;
        // A tool whose name only has a command in it is not a slip of the pen.
        if strsim::normalized_damerau_levenshtein(word, near) < SLIP {
            return None;
        }
        let offered = self.servers.iter().flat_map(|(_, catalog)| tools(catalog));
        let names: Vec<&str> = offered.chain([near]).collect();
        (nearest(word, &names) == Some(near)).then(|| near.to_owned())
    }

    /// The server that is written before a name and is not connected.
    pub(super) fn absent_of(&self, word: &str) -> Option<&str> {
        self.absent.iter().map(String::as_str).find(|server| without_server(word, server).is_some())
    }

    /// The server that a name must mean although it is not known to have it: the one that is written before it, or the
    /// one that is preferred, or the only one.
    pub(super) fn only(&self, word: &str) -> Option<(String, String)> {
        let written =
            self.servers.iter().find_map(|(server, _)| Some((server, without_server(word, server)?)));
        if let Some((server, name)) = written {
            return Some((server.clone(), name.to_owned()));
        }
        let only = match self.servers.as_slice() {
            [(server, _)] => Some(server),
            _ => self.used.as_ref(),
        };
        only.map(|server| (server.clone(), word.to_owned()))
    }
}

fn without_server<'a>(word: &'a str, server: &str) -> Option<&'a str> {
    word.strip_prefix(server)?.strip_prefix('.').filter(|name| !name.is_empty())
}

/// The names of an catalog's tools.
pub(super) fn tools(catalog: &Catalog) -> Vec<&str> {
    catalog.tools.iter().map(|tool| tool.name.as_str()).collect()
}

/// The names of an catalog's prompts.
pub(super) fn prompts(catalog: &Catalog) -> Vec<&str> {
    catalog.prompts.iter().map(|prompt| prompt.name.as_str()).collect()
}

/// The addresses of an catalog's resources.
pub(super) fn resources(catalog: &Catalog) -> Vec<&str> {
    catalog.resources.iter().map(|resource| resource.uri.as_str()).collect()
}

/// The names of an catalog's templates, also those for people, and the templates themselves.
pub(super) fn templates(catalog: &Catalog) -> Vec<&str> {
    catalog.templates.iter().flat_map(names_of).collect()
}

fn names_of(template: &ResourceTemplate) -> impl Iterator<Item = &str> {
    [template.name.as_str(), template.uri_template.as_str()].into_iter().chain(template.title.as_deref())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn catalogs(servers: &[(&str, &[&str])], used: Option<&str>) -> Catalogs {
        let catalog = |names: &[&str]| {
            let tools = names.iter().map(|name| Tool::new(*name, "")).collect();
            Arc::new(Catalog { tools, ..Catalog::default() })
        };
        let servers = servers.iter().map(|(server, names)| ((*server).to_owned(), catalog(names))).collect();
        Catalogs { servers, used: used.map(str::to_owned), ..Catalogs::default() }
    }

    #[test]
    fn names_lead_to_servers() {
        let servers: [(&str, &[&str]); 3] =
            [("a", &["echo", "sum", "b.echo"]), ("b", &["echo", "b.x"]), ("127.0.0.1:3000", &["web"])];
        for (word, used, expected) in [
            ("sum", None, Ok(("a", "sum"))),
            ("a.sum", None, Ok(("a", "sum"))),
            ("web", None, Ok(("127.0.0.1:3000", "web"))),
            ("127.0.0.1:3000.web", None, Ok(("127.0.0.1:3000", "web"))),
            ("echo", None, Err(Unresolved::Several(vec!["a.echo".to_owned(), "b.echo".to_owned()]))),
            ("echo", Some("b"), Ok(("b", "echo"))),
            ("sum", Some("b"), Ok(("a", "sum"))),
            ("b.echo", None, Ok(("b", "echo"))),
            ("a.b.echo", None, Ok(("a", "b.echo"))),
            ("b.x", None, Ok(("b", "b.x"))),
            ("nothing", None, Err(Unresolved::Unknown)),
            ("a.nothing", None, Err(Unresolved::Unknown)),
            ("a.", None, Err(Unresolved::Unknown)),
        ] {
            let expected = expected.map(|(server, name)| (server.to_owned(), name.to_owned()));
            assert_eq!(catalogs(&servers, used).find(word, tools), expected, "{word} {used:?}");
        }
    }

    #[test]
    fn a_name_that_no_server_has_may_still_mean_one_server() {
        let two: [(&str, &[&str]); 2] = [("a", &[]), ("b", &[])];
        let pair = |server: &str, name: &str| Some((server.to_owned(), name.to_owned()));
        assert_eq!(catalogs(&two, None).only("x"), None);
        assert_eq!(catalogs(&two, Some("b")).only("x"), pair("b", "x"));
        assert_eq!(catalogs(&two, None).only("a.x"), pair("a", "x"));
        assert_eq!(catalogs(&two[..1], None).only("x"), pair("a", "x"));
    }
}
