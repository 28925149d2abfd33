//! `Clients`: several servers at once, with names that are prefixed by the server: `weather.forecast`. A server that
//! fails does not stop the others.

use std::collections::BTreeMap;
use std::sync::Arc;

use refmcp_proto::model::CallToolResult;
use serde::Serialize;
use tokio::task::JoinSet;

use crate::builder::ClientBuilder;
use crate::client::Client;
use crate::error::{ConnectError, Error};
use crate::list::Listable;
use crate::request::Request;
use crate::transport::Connector;

/// Several servers, by name.
#[derive(Debug, Default)]
pub struct Clients {
    connected: BTreeMap<String, Client>,
    failed: BTreeMap<String, ConnectError>,
}

/// An item of one of several servers.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerItem<T> {
    /// The name of the server.
    pub server: String,
    /// The tool, resource, template or prompt.
    pub item: T,
}

/// The items of several servers, and the servers that failed to list theirs.
#[derive(Debug)]
pub struct ServerItems<T> {
    /// All items, in the order of the servers' names.
    pub items: Vec<ServerItem<T>>,
    /// The servers that failed.
    pub failed: Vec<(String, Error)>,
}

impl Clients {
    /// Connects to servers concurrently; `builder` makes the client of each.
    pub async fn connect(
        servers: impl IntoIterator<Item = (String, Arc<dyn Connector>)>,
        builder: impl Fn(&str) -> ClientBuilder,
    ) -> Self {
        let mut clients = Self::default();
        clients.add(servers, builder).await;
        clients
    }

    /// Connects to more servers. One of the same name is replaced.
    pub async fn add(
        &mut self,
        servers: impl IntoIterator<Item = (String, Arc<dyn Connector>)>,
        builder: impl Fn(&str) -> ClientBuilder,
    ) {
        let mut connecting = JoinSet::new();
        for (name, connector) in servers {
            let builder = builder(&name);
            connecting.spawn(async move { (name, builder.connect_to(connector).await) });
        }
        while let Some(connected) = connecting.join_next().await {
            // A panic only affects its own server.
            let Ok((name, connected)) = connected else { continue };
            self.failed.remove(&name);
            match connected {
                Ok(client) => drop(self.connected.insert(name, client)),
                Err(error) => drop(self.failed.insert(name, error)),
            }
        }
    }

    /// The server of this name.
    pub fn get(&self, name: &str) -> Option<&Client> {
        self.connected.get(name)
    }

    /// All connected servers.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Client)> {
        self.connected.iter().map(|(name, client)| (name.as_str(), client))
    }

    /// All servers that are not connected, and why.
    pub fn failed(&self) -> impl Iterator<Item = (&str, &ConnectError)> {
        self.failed.iter().map(|(name, error)| (name.as_str(), error))
    }

    /// Removes a server, without closing its client.
    pub fn remove(&mut self, name: &str) -> Option<Client> {
        self.failed.remove(name);
        self.connected.remove(name)
    }

    /// Lists the items of all servers that have the capability.
    pub async fn list<T: Listable>(&self) -> ServerItems<T> {
        let mut listing = JoinSet::new();
        for (name, client) in &self.connected {
            let (name, client) = (name.clone(), client.clone());
            listing.spawn(async move {
                let listed = if T::offered(&client.server().capabilities) {
                    client.pages::<T>().all().await
                } else {
                    Ok(Vec::new())
                };
                (name, listed)
            });
        }
        let mut by_name = BTreeMap::new();
        while let Some(listed) = listing.join_next().await {
            by_name.extend(listed.ok());
        }
        let mut offers = ServerItems { items: Vec::new(), failed: Vec::new() };
        for (server, listed) in by_name {
            match listed {
                Ok(items) => {
                    let offered = items.into_iter().map(|item| ServerItem { server: server.clone(), item });
                    offers.items.extend(offered);
                }
                Err(error) => offers.failed.push((server, error)),
            }
        }
        offers
    }

    /// The server that a prefixed name belongs to, and the rest of the name.
    pub fn resolve<'n>(&self, name: &'n str) -> Option<(&Client, &'n str)> {
        // Names of servers may contain dots: the longest match counts.
        let splits = name.rmatch_indices('.').map(|(at, _)| (name.get(..at), name.get(at + 1..)));
        splits.into_iter().find_map(|(server, rest)| Some((self.connected.get(server?)?, rest?)))
    }

    /// Calls a tool by its prefixed name.
    ///
    /// # Errors
    /// No connected server has the prefix.
    pub fn call_tool(&self, name: &str, arguments: impl Serialize) -> Result<Request<CallToolResult>, Error> {
        let (client, tool) =
            self.resolve(name).ok_or_else(|| Error::Misuse(format!("no connected server has {name:?}")))?;
        Ok(client.call_tool(tool, arguments))
    }

    /// Closes all clients concurrently.
    pub async fn close(self) {
        let mut closing = JoinSet::new();
        for (_, client) in self.connected {
            closing.spawn(async move { client.close().await });
        }
        closing.join_all().await;
    }
}

impl<T> ServerItem<T> {
    /// A name of the item, prefixed with its server's.
    pub fn prefixed(&self, name: &str) -> String {
        format!("{}.{name}", self.server)
    }
}
