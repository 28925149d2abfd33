//! The built-in resources. Text resources change when the tool `touch_resource` touches them.

use std::collections::HashMap;

use parking_lot::Mutex;
use refmcp_server::model::{Annotations, ResourceContents, Role};
use refmcp_server::{CallError, Resource, Server, Timestamp};
use serde_json::json;

use crate::conformance;
use crate::media;

/// When the built-in resources were last modified, until they are touched.
pub(crate) const WRITTEN: &str = "2026-03-01T08:30:00Z";

const DIAGRAM: &str = "file:///resources/diagram.png";

/// A text resource that can be touched.
pub(crate) struct TextResource {
    pub(crate) uri: &'static str,
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) description: &'static str,
    pub(crate) mime_type: &'static str,
    pub(crate) audience: &'static [Role],
    pub(crate) priority: f64,
    /// What it says, given how often it was touched, and when last.
    pub(crate) text: fn(Option<Touched>) -> String,
}

/// How often something was touched, and when last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Touched {
    times: u64,
    last: Timestamp,
}

impl Touched {
    /// A line of text that says so.
    pub(crate) fn line(self) -> String {
        format!("Touched {} times, last at {}", self.times, self.last.to_rfc3339())
    }
}

/// What was touched, by URI.
#[derive(Default)]
struct Touches(Mutex<HashMap<&'static str, Touched>>);

const TEXT_RESOURCES: [TextResource; 5] = [
    TextResource {
        uri: "file:///notes/todo.txt",
        name: "todo.txt",
        title: "To do",
        description: "What is left to do",
        mime_type: "text/plain",
        audience: &[Role::User, Role::Assistant],
        priority: 0.9,
        text: |touched| {
            with_line("- [ ] water the plants\n- [ ] call the plumber\n- [x] test the client\n", touched)
        },
    },
    TextResource {
        uri: "file:///data/custom.json",
        name: "custom.json",
        title: "Custom data",
        description: "Some data of no particular meaning",
        mime_type: "application/json",
        audience: &[Role::Assistant],
        priority: 0.8,
        text: |touched| {
            let mut data = json!({ "kind": "custom", "values": [1, 2, 3], "nested": { "yes": true } });
            if let (Some(touched), Some(members)) = (touched, data.as_object_mut()) {
                members.insert("touched".to_owned(), touched.times.into());
                members.insert("lastTouched".to_owned(), touched.last.to_rfc3339().into());
            }
            format!("{data:#}\n")
        },
    },
    TextResource {
        uri: "file:///project/src/main.rs",
        name: "main.rs",
        title: "Rust Software Application Main File",
        description: "Says hello to the world; the code that a model may be asked to look at",
        mime_type: "text/x-rust",
        audience: &[Role::User, Role::Assistant],
        priority: 1.0,
        text: |touched| {
            let code = "fn main() {\n    println!(\"Hello world!\");\n}\n".to_owned();
            touched.map_or(code.clone(), |touched| format!("{code}\n// {}\n", touched.line()))
        },
    },
    TextResource {
        uri: "file:///resources/notes.txt",
        name: "notes.txt",
        title: "Notes",
        description: "Notes that change when they are touched",
        mime_type: "text/plain",
        audience: &[Role::User],
        priority: 0.5,
        text: |touched| with_line("Clients that subscribe to these notes hear of every change.\n", touched),
    },
    TextResource {
        uri: "file:///resources/plans.md",
        name: "plans.md",
        title: "Plans",
        description: "What comes next",
        mime_type: "text/markdown",
        audience: &[Role::User, Role::Assistant],
        priority: 0.6,
        text: |touched| {
            with_line("# Plans\n\n1. Read the specification\n2. Break something\n3. Mend it\n", touched)
        },
    },
];

/// The built-in resources, untouched.
pub(super) fn resources() -> Vec<Resource> {
    TEXT_RESOURCES.iter().map(|note| note.resource(None)).chain([diagram()]).collect()
}

fn diagram() -> Resource {
    let size = u64::try_from(media::DIAGRAM.len()).unwrap_or(u64::MAX);
    let resource = Resource::new(DIAGRAM, "diagram.png", |_| {
        let contents = ResourceContents::blob(DIAGRAM, media::base64(media::DIAGRAM)).mime_type(media::PNG);
        async move { Ok(contents) }
    });
    resource
        .title("Diagram")
        .description("Two boxes and an arrow")
        .mime_type(media::PNG)
        .size(size)
        .annotations(annotations(&[Role::User], 0.3, WRITTEN.to_owned()))
}

/// Changes a text resource and tells its subscribers.
pub(crate) fn touch(server: &Server, uri: &str) -> Result<(), CallError> {
    let watched = conformance::WATCHED;
    let note = TEXT_RESOURCES.iter().chain([watched]).find(|note| note.uri == uri);
    let Some(note) = note.filter(|note| server.catalog().has_resource(note.uri)) else {
        return Err(CallError::new(format!(
            "only built-in text resources can be touched, such as {}",
            TEXT_RESOURCES[0].uri
        )));
    };
    let touches = server.value::<Touches>();
    {
        // Under one lock with the list, so that the list tells of the last touch and not of another.
        let mut touches = touches.0.lock();
        let times = touches.get(note.uri).map_or(0, |touched| touched.times) + 1;
        let touched = Touched { times, last: server.now() };
        touches.insert(note.uri, touched);
        server.change_lists(|lists| lists.add_resource(note.resource(Some(touched))));
    }
    server.resource_updated(note.uri);
    Ok(())
}

impl TextResource {
    /// The resource, described as it is after being touched.
    pub(crate) fn resource(&'static self, touched: Option<Touched>) -> Resource {
        let size = u64::try_from((self.text)(touched).len()).unwrap_or(u64::MAX);
        let modified = touched.map_or_else(|| WRITTEN.to_owned(), |touched| touched.last.to_rfc3339());
        let resource = Resource::new(self.uri, self.name, move |call| async move {
            let touched = call.server().value::<Touches>().0.lock().get(self.uri).copied();
            Ok(ResourceContents::text(self.uri, (self.text)(touched)).mime_type(self.mime_type))
        });
        let resource = resource.description(self.description).mime_type(self.mime_type).size(size);
        resource.title(self.title).annotations(annotations(self.audience, self.priority, modified))
    }
}

pub(crate) fn annotations(audience: &[Role], priority: f64, last_modified: String) -> Annotations {
    Annotations {
        audience: Some(audience.to_vec()),
        priority: Some(priority),
        last_modified: Some(last_modified),
        ..Annotations::default()
    }
}

/// A text with a line that tells of touches, if there were any.
pub(crate) fn with_line(text: &str, touched: Option<Touched>) -> String {
    touched.map_or_else(|| text.to_owned(), |touched| format!("{text}\n{}\n", touched.line()))
}
