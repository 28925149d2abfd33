//! What servers catalog, as far as it is known: names are found and completed by it.

use refmcp_client::model::{JsonObject, Prompt, Resource, ResourceTemplate, Tool};
use refmcp_client::{Client, Listable};

use super::commands::names;
use crate::args::ListKind;
use crate::command::client::extra_methods::ExtraMethods;
use crate::command::client::models::ModelList;
use crate::ui::suggest::{is_slip, nearest};
use crate::ui::text::one_line;

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
            models(client, ExtraMethods::MODELS.is_in(&has)),
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
    client.pages().all().await.unwrap_or_else(|error| {
        tracing::debug!("{}: {} is not known: {error}", client.name(), T::METHOD.name());
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
        Err(error) => {
            tracing::debug!("{}: models/list is not known: {error}", client.name());
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

/// The names of one kind of things in a catalog.
pub(super) type NamesOf = fn(&Catalog) -> Vec<&str>;

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

    /// What the server of this name catalogs.
    pub(super) fn of_server(&self, server: &str) -> Option<&Catalog> {
        self.servers.iter().find(|(known, _)| known == server).map(|(_, catalog)| &**catalog)
    }

    /// The command of the shell that may have been meant by a word, unless a tool is as near.
    pub(super) fn command_like(&self, word: &str) -> Option<String> {
        let commands = names();
        let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
        let near = nearest(word, &commands)?;
        // A tool whose name only has a command in it is not a slip of the pen.
        if !is_slip(word, near) {
            return None;
        }
        let offered = self.servers.iter().flat_map(|(_, catalog)| tools(catalog));
        let names: Vec<&str> = offered.chain([near]).collect();
        (nearest(word, &names) == Some(near)).then(|| near.to_owned())
    }

    /// What to say of a word that is no command, and no name of what it was taken for.
    pub(super) fn unknown(&self, taken_for: ListKind, word: &str) -> String {
        let (what, names, list): (_, NamesOf, _) = match taken_for {
            ListKind::Prompts => ("no prompt", prompts, "`prompts` lists them"),
            ListKind::Tools => {
                ("no command and no tool", tools, "`help` lists the commands, `tools` the tools")
            }
            _ => {
                ("no command, tool, prompt, resource or template", everything, "`list` and `help` list them")
            }
        };
        let offered: Vec<&str> = self.servers.iter().flat_map(|(_, catalog)| names(catalog)).collect();
        let has = |names: NamesOf| self.find(word, names) != Err(Unresolved::Unknown);
        let instead = if has(tools) {
            format!("it is a tool: write {word}")
        } else if has(prompts) {
            format!("it is a prompt: write /{word}")
        } else if has(resources) {
            format!("it is a resource: write read {word}")
        } else if has(templates) {
            format!("it is a resource template: write read {word}")
        } else if let Some(command) = self.command_like(word).filter(|_| taken_for != ListKind::Prompts) {
            format!("did you mean {command}?")
        } else if let Some(near) = nearest(word, &offered) {
            format!("did you mean {near:?}?")
        } else {
            list.to_owned()
        };
        one_line(&format!("there is {what} {word:?}; {instead}")).into_owned()
    }

    /// The server that is written before a name and is not connected.
    pub(super) fn absent_of(&self, word: &str) -> Option<&str> {
        self.absent.iter().map(String::as_str).find(|server| without_server(word, server).is_some())
    }

    /// The server that a name must mean although it is not known to have it: the one that is written before it, the one
    /// that is preferred, or the only one.
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

/// The names of a catalog's tools.
pub(super) fn tools(catalog: &Catalog) -> Vec<&str> {
    catalog.tools.iter().map(|tool| tool.name.as_str()).collect()
}

/// The names of a catalog's prompts.
pub(super) fn prompts(catalog: &Catalog) -> Vec<&str> {
    catalog.prompts.iter().map(|prompt| prompt.name.as_str()).collect()
}

/// The addresses of a catalog's resources.
pub(super) fn resources(catalog: &Catalog) -> Vec<&str> {
    catalog.resources.iter().map(|resource| resource.uri.as_str()).collect()
}

/// Everything that a catalog has a name or an address for.
fn everything(catalog: &Catalog) -> Vec<&str> {
    [tools, prompts, resources, templates].iter().flat_map(|names| names(catalog)).collect()
}

/// The names of a catalog's templates, also those for people, and the templates themselves.
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
    fn a_name_of_something_else_is_told_how_to_be_written() {
        let prompt = serde_json::from_value(serde_json::json!({"name": "review"})).unwrap();
        let resource = serde_json::from_value(serde_json::json!({"uri": "memo://a", "name": "a"})).unwrap();
        let tools = (0..9).map(|number| Tool::new(format!("tool_{number}"), "")).collect();
        let catalog =
            Catalog { tools, prompts: vec![prompt], resources: vec![resource], ..Catalog::default() };
        let catalogs = Catalogs { servers: vec![("a".to_owned(), Arc::new(catalog))], ..Catalogs::default() };
        for (taken_for, word, said) in [
            (ListKind::Tools, "review", "no tool \"review\"; it is a prompt: write /review"),
            (ListKind::Tools, "a.review", "it is a prompt: write /a.review"),
            (ListKind::Tools, "memo://a", "it is a resource: write read memo://a"),
            (ListKind::Tools, "tool_11", "did you mean \"tool_1\"?"),
            (ListKind::Tools, "hlep", "no command and no tool \"hlep\"; did you mean help?"),
            (ListKind::Tools, "frobnicate", "`help` lists the commands, `tools` the tools"),
            (ListKind::Prompts, "tool_1", "there is no prompt \"tool_1\"; it is a tool: write tool_1"),
            (ListKind::Prompts, "reviev", "did you mean \"review\"?"),
            (ListKind::Prompts, "hlep", "`prompts` lists them"),
            (ListKind::All, "conect", "did you mean connect?"),
            (ListKind::All, "frobnicate", "`list` and `help` list them"),
        ] {
            let text = catalogs.unknown(taken_for, word);
            assert!(text.ends_with(said), "{word}: {text}");
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
