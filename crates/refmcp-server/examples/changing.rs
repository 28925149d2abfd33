//! A server whose lists and contents change while clients look at them: notes that can be written and thrown away.
//!
//! Clients are notified of every new note, and subscribers of a note when it is rewritten.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use refmcp_server::model::ResourceContents;
use refmcp_server::{Call, CallError, Resource, Server, Tool};

/// The notes, by their names; the server keeps one of these.
#[derive(Default)]
struct Notes(Mutex<BTreeMap<String, String>>);

impl Notes {
    fn write(&self, name: &str, text: String) -> Option<String> {
        self.0.lock().insert(name.to_owned(), text)
    }

    fn read(&self, name: &str) -> Option<String> {
        self.0.lock().get(name).cloned()
    }

    fn throw_away(&self, name: &str) -> Option<String> {
        self.0.lock().remove(name)
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Write {
    /// The name of the note.
    name: String,
    /// What it says from now on.
    text: String,
}

async fn write(call: Call, Write { name, text }: Write) -> Result<String, CallError> {
    let server = call.server();
    if server.value::<Notes>().write(&name, text).is_some() {
        server.resource_updated(uri(&name));
        return Ok(format!("{name} was rewritten."));
    }
    server.change_lists(|catalog| catalog.add_resource(note(name.clone())));
    Ok(format!("{name} is new."))
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct ThrowAway {
    /// The name of the note.
    name: String,
}

async fn throw_away(call: Call, ThrowAway { name }: ThrowAway) -> Result<String, CallError> {
    let server = call.server();
    if server.value::<Notes>().throw_away(&name).is_none() {
        return Err(CallError::new(format!("There is no note {name}.")));
    }
    server.change_lists(|catalog| catalog.remove_resource(&uri(&name)));
    Ok(format!("{name} is gone."))
}

fn uri(name: &str) -> String {
    format!("note:///{name}")
}

/// A note as a resource, which is read from the server's notes each time.
fn note(name: String) -> Resource {
    let title = name.clone();
    Resource::new(uri(&name), title, move |call: Call| {
        let name = name.clone();
        async move {
            let text = call.server().value::<Notes>().read(&name);
            let text = text.ok_or_else(|| CallError::resource_not_found(uri(&name)))?;
            Ok(ResourceContents::text(uri(&name), text))
        }
    })
    .mime_type("text/plain")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::builder("notes", "1.0")
        .tool(Tool::new("write", "Writes a note, or writes it anew", write).idempotent())
        .tool(Tool::new("throw_away", "Throws a note away", throw_away).destructive())
        // A server says when it is built whether it has resources, so there is one from the start.
        .resource(note("welcome".to_owned()))
        .build()?;
    server.value::<Notes>().write("welcome", "Write some notes.".to_owned());
    server.stdio().await?;
    Ok(())
}
