//! Apps that test hosts: each exercises a part of what a page and its host say to each other, and shows its verdict on the host.
//!
//! A page is plain HTML with its scripts inlined: what all of them share is in `page/`, what each does in `scripts/`. The verdict
//! is on the page, as JSON in its element `#verdict`, and in the attribute `data-verdict` of the root.

mod tools;

use refmcp_server::model::{JsonObject, UiCsp, UiPermissions};
use refmcp_server::{App, ServerBuilder};

/// Where the apps are, before their names.
const PREFIX: &str = "ui://refmcp/";

/// An app: its name, its title, what it is about, and its script.
struct Page {
    name: &'static str,
    title: &'static str,
    about: &'static str,
    script: &'static str,
}

/// Every app, with the tool `app_` and its name.
const PAGES: [Page; 8] = [
    Page {
        name: "handshake",
        title: "Handshake",
        about: "What the host says of itself, and how it answers unusual and wrong messages",
        script: include_str!("scripts/handshake.js"),
    },
    Page {
        name: "input",
        title: "Input and result",
        about: "Whether arguments and result of the tool arrive unchanged, partial arguments before them",
        script: include_str!("scripts/input.js"),
    },
    Page {
        name: "cancel",
        title: "Cancellation",
        about: "What the host says when the call of the tool is cancelled",
        script: include_str!("scripts/cancel.js"),
    },
    Page {
        name: "calls",
        title: "Calls",
        about: "Which tools and resources the host lets an app use, and whether it uses a tool of the app",
        script: include_str!("scripts/calls.js"),
    },
    Page {
        name: "messages",
        title: "Messages",
        about: "What the host makes of messages, context for the model, links, files and logs",
        script: include_str!("scripts/messages.js"),
    },
    Page {
        name: "display",
        title: "Display",
        about: "How the host handles display modes, the size of the content and its theme",
        script: include_str!("scripts/display.js"),
    },
    Page {
        name: "sandbox",
        title: "Sandbox",
        about: "Whether the host blocks what the page has not declared, and nothing else",
        script: include_str!("scripts/sandbox.js"),
    },
    Page {
        name: "teardown",
        title: "Teardown",
        about: "What the host says before it removes the page",
        script: include_str!("scripts/teardown.js"),
    },
];

/// Adds every app and its tools.
pub(crate) fn add(builder: ServerBuilder) -> ServerBuilder {
    let builder = PAGES.iter().fold(builder, |builder, page| builder.app(page.app()));
    tools::tools().into_iter().fold(builder, ServerBuilder::tool)
}

impl Page {
    fn app(&self) -> App {
        let app = App::new(self.uri(), self.html()).title(self.title).description(self.about);
        if self.name != "sandbox" {
            return app.prefers_border(true);
        }
        // Names of this kind lead nowhere, on any network.
        app.csp(UiCsp::default().connect_domains(["https://declared.example".to_owned()]))
            .permissions(UiPermissions::default().clipboard_write(JsonObject::new()))
    }

    fn uri(&self) -> String {
        format!("{PREFIX}{}", self.name)
    }

    /// The whole page: a default policy allows inline scripts and styles, and nothing to be loaded.
    fn html(&self) -> String {
        let style = include_str!("page/style.css");
        let shared = concat!(
            include_str!("page/verdict.js"),
            include_str!("page/bridge.js"),
            include_str!("page/lifecycle.js")
        );
        let Self { name, title, about, script } = self;
        format!(
            "<!doctype html>\n\
             <html lang=\"en\" data-verdict=\"open\">\n\
             <head>\n<meta charset=\"utf-8\">\n<title>{name}</title>\n<style>\n{style}</style>\n<style id=\"fonts\"></style>\n</head>\n\
             <body>\n<main>\n<h1>{title}</h1>\n<p>{about}.</p>\n<p id=\"summary\" role=\"status\"></p>\n<div id=\"actions\"></div>\n\
             <table id=\"checks\">\n<thead><tr><th scope=\"col\">Rule</th><th scope=\"col\">Verdict</th>\
             <th scope=\"col\">What the host does</th></tr></thead>\n<tbody></tbody>\n</table>\n</main>\n\
             <script type=\"application/json\" id=\"verdict\"></script>\n\
             <script>\n{shared}\nverdict.begin('{name}');\n</script>\n<script>\n{script}</script>\n</body>\n</html>\n"
        )
    }
}
