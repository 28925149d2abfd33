//! Pagination: lists of the server, whole, page by page or item by item.

use std::collections::HashSet;
use std::fmt;

use refmcp_proto::model::{
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListTasksResult, ListToolsResult,
    PaginatedParams, Prompt, Resource, ResourceTemplate, ServerCapabilities, Task, Tool,
};
use refmcp_proto::revision::Method;
use serde::de::DeserializeOwned;

use crate::client::Client;
use crate::error::Error;
use crate::request::Request;

const MAX_PAGES: usize = 10_000;

/// An item that servers list: tools, resources, templates, prompts, tasks.
pub trait Listable: Sized + Send + 'static {
    /// The result with one page.
    type Page: DeserializeOwned + Send + 'static;

    /// The method that lists it.
    const METHOD: Method;

    /// The items of a page, and the cursor of the next one.
    fn into_items(page: Self::Page) -> (Vec<Self>, Option<String>);

    /// True if a server with these capabilities lists it.
    fn offered(capabilities: &ServerCapabilities) -> bool {
        Self::METHOD.is_offered(capabilities)
    }

    /// The items that the client can use.
    #[doc(hidden)]
    fn usable(_client: &Client, items: Vec<Self>) -> Vec<Self> {
        items
    }
}

macro_rules! listable {
    ($($item:ty: $page:ty, $member:ident, $method:ident $(, $usable:path)?;)*) => {
        $(
            impl Listable for $item {
                type Page = $page;
                const METHOD: Method = Method::$method;

                fn into_items(page: $page) -> (Vec<Self>, Option<String>) {
                    (page.$member, page.next_cursor)
                }

                $(
                    fn usable(client: &Client, items: Vec<Self>) -> Vec<Self> {
                        $usable(client, items)
                    }
                )?
            }
        )*
    };
}

listable! {
    Tool: ListToolsResult, tools, ListTools, Client::usable_tools;
    Resource: ListResourcesResult, resources, ListResources;
    ResourceTemplate: ListResourceTemplatesResult, resource_templates, ListResourceTemplates;
    Prompt: ListPromptsResult, prompts, ListPrompts;
    Task: ListTasksResult, tasks, ListTasks;
}

/// A list that is being read.
pub struct Pages<T: Listable> {
    client: Client,
    next: Next,
    seen: HashSet<String>,
    fresh: bool,
    items: std::vec::IntoIter<T>,
}

enum Next {
    First,
    At(String),
    End,
}

impl<T: Listable> fmt::Debug for Pages<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages")
            .field("method", &T::METHOD)
            .field("pages", &self.seen.len())
            .finish_non_exhaustive()
    }
}

impl<T: Listable> Pages<T> {
    pub(crate) fn new(client: &Client, fresh: bool) -> Self {
        let items = Vec::new().into_iter();
        Self { client: client.clone(), next: Next::First, seen: HashSet::new(), fresh, items }
    }

    /// The next page; `None` after the last.
    ///
    /// # Errors
    /// As any request; and when the server's pages repeat.
    pub async fn next_page(&mut self) -> Result<Option<Vec<T>>, Error> {
        let cursor = match std::mem::replace(&mut self.next, Next::End) {
            Next::First => None,
            Next::At(cursor) => Some(cursor),
            Next::End => return Ok(None),
        };
        let params = PaginatedParams { cursor, ..PaginatedParams::default() };
        let mut request = Request::<T::Page>::new(&self.client, T::METHOD.name(), &params).cached();
        if self.fresh {
            request = request.fresh();
        }
        let page = match request.await {
            Ok(page) => page,
            Err(error) => {
                // Pages that belong together expire together.
                self.client.driver.cache.lock().invalidate_list(T::METHOD.name());
                return Err(error);
            }
        };
        let (items, next) = T::into_items(page);
        if let Some(next) = next {
            if self.seen.len() >= MAX_PAGES {
                return Err(Error::EndlessList(format!(
                    "{} has more than {MAX_PAGES} pages",
                    T::METHOD.name()
                )));
            }
            if !self.seen.insert(next.clone()) {
                return Err(Error::EndlessList(format!(
                    "{} goes back to a page it has given",
                    T::METHOD.name()
                )));
            }
            self.next = Next::At(next);
        }
        Ok(Some(T::usable(&self.client, items)))
    }

    /// The next item; `None` after the last.
    ///
    /// # Errors
    /// As [`next_page`](Self::next_page).
    pub async fn next(&mut self) -> Result<Option<T>, Error> {
        loop {
            if let Some(item) = self.items.next() {
                return Ok(Some(item));
            }
            match self.next_page().await? {
                Some(items) => self.items = items.into_iter(),
                None => return Ok(None),
            }
        }
    }

    /// All remaining items.
    ///
    /// # Errors
    /// As [`next_page`](Self::next_page).
    pub async fn all(mut self) -> Result<Vec<T>, Error> {
        let mut all: Vec<T> = self.items.by_ref().collect();
        while let Some(items) = self.next_page().await? {
            all.extend(items);
        }
        Ok(all)
    }
}
