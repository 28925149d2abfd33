//! The content security policy that a host enforces on a page.

use std::fmt;

use super::AppError;
use super::check::check_origin;
use crate::model::UiCsp;

/// The content security policy of a page: all that it has not declared is blocked.
///
/// ```
/// use refmcp_proto::app::ContentSecurityPolicy;
/// use refmcp_proto::model::UiCsp;
///
/// let csp = UiCsp::default().connect_domains(["https://api.example.com".to_owned()]);
/// let policy = ContentSecurityPolicy::new(Some(&csp));
/// assert_eq!(policy.sources("connect-src"), Some("'self' https://api.example.com"));
/// assert_eq!(policy.sources("frame-src"), Some("'none'"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentSecurityPolicy {
    directives: Vec<(&'static str, String)>,
    faults: Vec<AppError>,
}

impl ContentSecurityPolicy {
    /// The policy for what a page declares, or for one that declares nothing. What is no origin is left out.
    pub fn new(declared: Option<&UiCsp>) -> Self {
        let mut faults = Vec::new();
        let mut directives = vec![("default-src", "'none'".to_owned())];
        let nothing = UiCsp::default();
        let lists = declared.unwrap_or(&nothing).lists();
        let [connect, load, frames, bases] = lists.map(|(list, origins)| {
            let mut sources = String::new();
            for origin in origins {
                match check_origin(list, origin) {
                    Ok(()) => {
                        sources.push(' ');
                        sources.push_str(origin);
                    }
                    Err(fault) => faults.push(fault),
                }
            }
            sources
        });
        let or = |sources: String, otherwise: &str| match sources.trim_start() {
            "" => otherwise.to_owned(),
            sources => sources.to_owned(),
        };
        directives.push(("script-src", format!("'self' 'unsafe-inline'{load}")));
        directives.push(("style-src", format!("'self' 'unsafe-inline'{load}")));
        directives.push(("img-src", format!("'self' data:{load}")));
        directives.push(("media-src", format!("'self' data:{load}")));
        // A page that declares nothing at all gets less than one that declares empty lists.
        let declares = declared.is_some();
        directives.push(("font-src", if declares { format!("'self'{load}") } else { "'none'".to_owned() }));
        directives
            .push(("connect-src", if declares { format!("'self'{connect}") } else { "'none'".to_owned() }));
        directives.push(("frame-src", or(frames, "'none'")));
        directives.push(("object-src", "'none'".to_owned()));
        // These two do not follow `default-src`.
        directives.push(("base-uri", or(bases, "'self'")));
        directives.push(("form-action", "'none'".to_owned()));
        Self { directives, faults }
    }

    /// The directives with their sources.
    pub fn directives(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.directives.iter().map(|(name, sources)| (*name, sources.as_str()))
    }

    /// The sources of a directive.
    pub fn sources(&self, directive: &str) -> Option<&str> {
        self.directives().find(|(name, _)| *name == directive).map(|(_, sources)| sources)
    }

    /// What was left out, since it is no origin.
    pub fn faults(&self) -> &[AppError] {
        &self.faults
    }

    /// The policy as an element of the page's head, for hosts that cannot send a header.
    pub fn meta_element(&self) -> String {
        format!("<meta http-equiv=\"Content-Security-Policy\" content=\"{self}\">")
    }
}

/// The value of the header `Content-Security-Policy`.
impl fmt::Display for ContentSecurityPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (name, sources)) in self.directives().enumerate() {
            let separator = if number == 0 { "" } else { "; " };
            write!(f, "{separator}{name} {sources}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_declares_nothing_loads_nothing() {
        let policy = ContentSecurityPolicy::new(None);
        let text = "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; \
                    img-src 'self' data:; media-src 'self' data:; font-src 'none'; connect-src 'none'; \
                    frame-src 'none'; object-src 'none'; base-uri 'self'; form-action 'none'";
        assert_eq!(policy.to_string(), text);
        let empty = ContentSecurityPolicy::new(Some(&UiCsp::default()));
        assert_eq!(empty.sources("connect-src"), Some("'self'"));
        assert_eq!(empty.sources("font-src"), Some("'self'"));
        assert_eq!(empty.sources("frame-src"), Some("'none'"));
    }

    #[test]
    fn each_list_opens_its_own_directives() {
        let list = |origin: &str| vec![origin.to_owned()];
        let csp = UiCsp::default()
            .connect_domains(list("wss://c.example"))
            .resource_domains(list("https://*.r.example"))
            .frame_domains(list("https://f.example"))
            .base_uri_domains(list("https://b.example"));
        let policy = ContentSecurityPolicy::new(Some(&csp));
        let naming = |origin: &str| {
            let naming = policy.directives().filter(|(_, sources)| sources.contains(origin));
            naming.map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(naming("wss://c.example"), ["connect-src"]);
        assert_eq!(
            naming("https://*.r.example"),
            ["script-src", "style-src", "img-src", "media-src", "font-src"]
        );
        assert_eq!(naming("https://f.example"), ["frame-src"]);
        assert_eq!(naming("https://b.example"), ["base-uri"]);
        assert_eq!(policy.sources("base-uri"), Some("https://b.example"));
    }

    #[test]
    fn nothing_but_origins_gets_into_a_policy() {
        let wrong = ["*", "'unsafe-eval'", "https://a.example; script-src *", "\"><script>"];
        let csp = UiCsp::default().resource_domains(wrong.map(str::to_owned).to_vec());
        let policy = ContentSecurityPolicy::new(Some(&csp));
        let clean = ContentSecurityPolicy::new(Some(&UiCsp::default()));
        assert_eq!(policy.to_string(), clean.to_string());
        assert_eq!(policy.faults().len(), wrong.len());
        assert_eq!(policy.meta_element().matches('"').count(), 4);
    }
}
