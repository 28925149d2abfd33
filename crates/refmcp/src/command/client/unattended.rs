//! What is answered without a terminal where `--yes` was given. Everything that is declined is said on stderr.

use refmcp_client::Host;
use refmcp_client::model::{ElicitAction, ElicitResult};

use crate::ui::progress::Bars;
use crate::ui::text::one_line;

/// Accepts forms with their defaults; declines forms that need more, and web pages.
pub(crate) fn host(host: Host, server: &str, bars: &Bars) -> Host {
    let (forms, pages) = (Declining::new(server, bars), Declining::new(server, bars));
    host.elicitation(move |params| {
        let content = params.requested_schema.defaults();
        let result = match params.requested_schema.check(&content) {
            Ok(()) => ElicitResult::accept(content),
            Err(why) => forms.decline(
                &format!("the form {:?}", params.message),
                &format!("{why}, and --yes answers with defaults only"),
            ),
        };
        async { Ok(result) }
    })
    .url_elicitation(move |params| {
        let what = format!("the page {} ({:?})", params.url, params.message);
        let result = pages.decline(&what, "--yes opens no web pages; run it at a terminal");
        async { Ok(result) }
    })
}

struct Declining {
    server: String,
    bars: Bars,
}

impl Declining {
    fn new(server: &str, bars: &Bars) -> Self {
        Self { server: server.to_owned(), bars: bars.clone() }
    }

    fn decline(&self, what: &str, why: &str) -> ElicitResult {
        let line = format!("refmcp: declined {what} of {}: {why}", self.server);
        self.bars.say(&format!("{}\n", one_line(&line)));
        ElicitResult::new(ElicitAction::Decline)
    }
}
