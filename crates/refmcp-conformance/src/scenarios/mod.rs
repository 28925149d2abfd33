//! The scenarios by name. Each function runs one; the suite checks what it sees.

mod authorization;
mod headers;
mod skills;
mod tools;

use std::error::Error;
use std::future::Future;
use std::pin::Pin;

use refmcp_client::Client;

use crate::run_config::RunConfig;

/// Why a scenario failed.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// Runs a scenario. Gives the client, which is left to be closed.
pub(crate) type Scenario = fn(RunConfig) -> Pin<Box<dyn Future<Output = Result<Client, BoxError>>>>;

/// The scenarios with a function of their own.
const SCENARIOS: [(&str, Scenario); 22] = [
    ("initialize", |it| Box::pin(tools::initialize(it))),
    ("tools_call", |it| Box::pin(tools::call(it))),
    ("elicitation-sep1034-client-defaults", |it| Box::pin(tools::defaults(it))),
    ("sep-2322-client-request-state", |it| Box::pin(tools::request_state(it))),
    ("sse-retry", |it| Box::pin(tools::retry(it))),
    ("request-metadata", |it| Box::pin(headers::metadata(it))),
    ("http-standard-headers", |it| Box::pin(headers::standard(it))),
    ("http-custom-headers", |it| Box::pin(headers::mirrored(it))),
    ("http-invalid-tool-headers", |it| Box::pin(headers::invalid(it))),
    ("json-schema-ref-no-deref", |it| Box::pin(tools::references(it))),
    ("json-schema-2020-12-preservation", |it| Box::pin(tools::preservation(it))),
    ("sep-2640-client-no-prefetch", |it| Box::pin(skills::list(it))),
    ("sep-2640-client-verify-digest", |it| Box::pin(skills::load(it))),
    ("sep-2640-client-verify-size", |it| Box::pin(skills::load(it))),
    ("sep-2640-client-verify-frontmatter", |it| Box::pin(skills::load(it))),
    ("auth/pre-registration", |it| Box::pin(authorization::pre_registration(it))),
    ("auth/client-credentials-basic", |it| Box::pin(authorization::client_credentials(it))),
    ("auth/client-credentials-jwt", |it| Box::pin(authorization::client_assertion(it))),
    ("auth/enterprise-managed-authorization", |it| Box::pin(authorization::enterprise(it))),
    ("auth/wif-jwt-bearer", |it| Box::pin(authorization::workload(it))),
    ("auth/dpop", |it| Box::pin(authorization::proofs(it))),
    ("auth/dpop-nonce", |it| Box::pin(authorization::proofs(it))),
];

/// The prefix of all others, which need a login.
const LOGIN: &str = "auth/";

/// The scenario of this name.
pub(crate) fn find(name: &str) -> Option<Scenario> {
    let own = SCENARIOS.iter().find(|(known, _)| *known == name).map(|(_, scenario)| *scenario);
    let login: Scenario = |it| Box::pin(authorization::login(it));
    own.or_else(|| name.starts_with(LOGIN).then_some(login))
}

/// The names of the scenarios.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    SCENARIOS.iter().map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use refmcp_auth::jose::PrivateKey;
    use refmcp_client::model::JsonObject;

    use super::*;

    #[test]
    fn a_scenario_is_found_by_its_whole_name() {
        for name in names() {
            assert!(find(name).is_some(), "{name}");
        }
        assert!(find("initial").is_none());
        assert!(find("").is_none());
        assert_eq!(names().collect::<BTreeSet<_>>().len(), SCENARIOS.len());
    }

    #[test]
    fn without_a_server_every_scenario_fails() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let context =
            ["client_id", "client_secret", "idp_issuer", "idp_client_id", "idp_id_token", "valid_jwt"];
        let mut context: JsonObject = context.map(|name| (name.to_owned(), "x".into())).into_iter().collect();
        context.insert("idp_token_endpoint".to_owned(), "http://127.0.0.1:0/token".into());
        context.insert("signing_algorithm".to_owned(), "ES256".into());
        context.insert("private_key_pem".to_owned(), PrivateKey::generate().unwrap().reveal_pem().into());
        let login = ("auth/iss-supported", find("auth/iss-supported").unwrap());
        for (name, scenario) in SCENARIOS.into_iter().chain([login]) {
            let config = RunConfig {
                scenario: name.to_owned(),
                // Nothing listens on the port that stands for any.
                url: "http://127.0.0.1:0/mcp".to_owned(),
                revision: "2026-07-28".parse().unwrap(),
                context: context.clone(),
            };
            let error = runtime.block_on(scenario(config)).unwrap_err().to_string();
            assert!(error.contains("127.0.0.1"), "{name}: {error}");
        }
    }
}
