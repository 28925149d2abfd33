//! URL elicitation: a page that a server wants to be visited is opened only after it was shown in full and agreed to.

use refmcp_proto::model::{ElicitAction, ElicitUrlParams};
use url::Url;

use crate::ui::terminal::{AskError, Terminal};

/// What was decided about a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Consent {
    /// What to answer the server.
    pub(crate) action: ElicitAction,
    /// The page to open.
    pub(crate) open: Option<Url>,
}

impl Consent {
    fn without_opening(action: ElicitAction) -> Self {
        Self { action, open: None }
    }
}

/// Shows where a server wants to send the user, and asks. The end of the input cancels.
pub(crate) fn ask_to_visit(
    terminal: &mut Terminal,
    server: &str,
    params: &ElicitUrlParams,
) -> Result<Consent, AskError> {
    match ask(terminal, server, params) {
        Err(AskError::Ended) => Ok(Consent::without_opening(ElicitAction::Cancel)),
        other => other,
    }
}

fn ask(terminal: &mut Terminal, server: &str, params: &ElicitUrlParams) -> Result<Consent, AskError> {
    terminal.say_strong(&format!("The server {server} asks you to visit a page:"))?;
    terminal.say(&params.message)?;
    let page = match visitable(&params.url) {
        Ok(page) => page,
        Err(why) => {
            terminal.warn(&format!("It is not opened: {why}. The address is {}", params.url))?;
            return Ok(Consent::without_opening(ElicitAction::Decline));
        }
    };
    terminal.say(&format!("  address  {page}"))?;
    terminal.say(&format!("  host     {}", page.host_str().unwrap_or_default()))?;
    for warning in warnings(&page) {
        terminal.warn(&format!("  careful: {warning}"))?;
    }
    terminal.say_faint("The server chose this address. What you do there does not pass through refmcp.")?;
    let question = "Open it? [yes, No = decline, cancel]";
    Ok(match terminal.letter(question, &["yes", "no", "cancel"], 'n')? {
        'y' => Consent { action: ElicitAction::Accept, open: Some(page) },
        'c' => Consent::without_opening(ElicitAction::Cancel),
        _ => Consent::without_opening(ElicitAction::Decline),
    })
}

/// An address that may be opened at all.
fn visitable(address: &str) -> Result<Url, String> {
    let page = Url::parse(address).map_err(|fault| format!("the address cannot be read, {fault}"))?;
    match page.scheme() {
        "http" | "https" => Ok(page),
        other => Err(format!("only http and https are, not {other}")),
    }
}

/// What makes an address look like another.
fn warnings(page: &Url) -> Vec<String> {
    let mut warnings = Vec::new();
    let host = page.host_str().unwrap_or_default();
    if host.split('.').any(|label| label.starts_with("xn--")) {
        warnings.push("the host's name has letters that can look like others".to_owned());
    }
    if !page.username().is_empty() || page.password().is_some() {
        warnings.push(format!("what stands before the @ is not the host; the host is {host}"));
    }
    let local = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
    if page.scheme() == "http" && !local {
        warnings.push("the connection is not encrypted".to_owned());
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::terminal::scripted::scripted;

    fn asked(address: &str, typed: &str) -> (Consent, String) {
        let (mut terminal, screen) = scripted(typed);
        let params = ElicitUrlParams::new("Sign in", address);
        (ask_to_visit(&mut terminal, "shop", &params).unwrap(), screen.text())
    }

    #[test]
    fn the_whole_address_and_its_host_are_shown_and_asked_about() {
        let address = "https://example.org/sign-in?state=1234";
        for (typed, action, opened) in [
            ("y\n", ElicitAction::Accept, true),
            ("\n", ElicitAction::Decline, false),
            ("no\n", ElicitAction::Decline, false),
            ("c\n", ElicitAction::Cancel, false),
            ("", ElicitAction::Cancel, false),
        ] {
            let (consent, shown) = asked(address, typed);
            assert_eq!((consent.action, consent.open.is_some()), (action, opened), "{typed:?}");
            for part in ["The server shop asks you to visit", address, "host     example.org\n"] {
                assert!(shown.contains(part), "{part} in {shown}");
            }
            assert!(!shown.contains("careful"), "{shown}");
        }
    }

    #[test]
    fn tricks_are_pointed_out() {
        for (address, warning) in [
            ("http://example.org/", "not encrypted"),
            ("https://bank.example@evil.example/", "the host is evil.example"),
            ("https://ex\u{430}mple.org/", "look like others"),
        ] {
            let (_, shown) = asked(address, "n\n");
            assert!(shown.contains("careful") && shown.contains(warning), "{shown}");
        }
        assert!(!asked("http://localhost:3000/", "n\n").1.contains("careful"));
    }

    #[test]
    fn other_schemes_are_never_opened() {
        for address in ["file:///etc/passwd", "javascript:alert(1)", "ms-msdt:/x", "not an address", "-x", ""]
        {
            let (consent, shown) = asked(address, "y\n");
            assert_eq!(consent, Consent::without_opening(ElicitAction::Decline), "{address}");
            assert!(shown.contains("not opened"), "{shown}");
        }
    }
}
