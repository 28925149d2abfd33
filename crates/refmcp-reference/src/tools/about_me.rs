//! The tool `about_me`: what the server knows of the client.

use refmcp_server::finding::Findings;
use refmcp_server::model::{JsonObject, LogLevel};
use refmcp_server::transport::header::is_public;
use refmcp_server::{Call, CallError, Json, NoArguments, Tool};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::{VerdictSource, models};

pub(super) fn tools(verdicts: Option<&VerdictSource>) -> Vec<Tool> {
    let description = "Tells what the server knows of this client: revision, capabilities, transport, session, \
                       and which rules it broke";
    let verdicts = verdicts.cloned();
    let about_me = move |call: Call, _: NoArguments| {
        let verdict = verdicts.as_ref().and_then(|verdicts| verdicts.verdict(&call));
        about_me(call, verdict)
    };
    vec![Tool::new("about_me", description, about_me).title("About me").read_only()]
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct AboutMe {
    /// The revision of the protocol
    revision: &'static str,
    /// How the client is connected
    transport: &'static str,
    /// Who was authenticated
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<String>,
    /// What the client calls itself
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<JsonObject>,
    /// What the client can do
    capabilities: JsonObject,
    /// The least severe log message that is sent
    #[serde(skip_serializing_if = "Option::is_none")]
    log_level: Option<&'static str>,
    /// The model that sampling requests name
    model: &'static str,
    /// What holds for the session; absent where there is none
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<AboutSession>,
    /// The rules that the request broke, or the connection it came on; absent where a session keeps them
    #[serde(skip_serializing_if = "Option::is_none")]
    findings: Option<Vec<Broken>>,
    /// The verdict of the audit, as the resource refmcp://verdict has it; absent where the client is not judged
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<JsonObject>,
    /// The headers that came with the connection, values only of those that hold no secrets
    headers: Vec<Header>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct AboutSession {
    /// How long it has lasted, in milliseconds
    age_ms: f64,
    /// The resources it is subscribed to
    subscriptions: Vec<String>,
    /// How many requests are in flight, this one among them
    in_flight: usize,
    /// How often the client has said that its roots have changed
    roots_changes: u64,
    /// The rules that the client broke
    findings: Vec<Broken>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Broken {
    /// The rule
    rule: &'static str,
    /// What it demands
    demands: &'static str,
    /// What happened, the latest different texts
    what: Vec<String>,
    /// How often it happened
    count: u64,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Header {
    name: String,
    value: String,
}

async fn about_me(call: Call, verdict: Option<JsonObject>) -> Result<Json<AboutMe>, CallError> {
    let peer = call.peer();
    let mut about = AboutMe {
        revision: peer.revision.as_str(),
        transport: call.connection().transport,
        principal: call.principal().map(str::to_owned),
        client: peer.info.as_ref().and_then(object),
        capabilities: object(&peer.capabilities).unwrap_or_default(),
        log_level: call.log_level().map(LogLevel::as_str),
        model: models::active(&call)?,
        session: None,
        findings: None,
        verdict,
        headers: call.connection().headers.read().iter().map(header).collect(),
    };
    if let Some(session) = call.session() {
        let (age, roots_changes) = (session.age(), session.roots_changes());
        let seen = call.inspect(|engine| {
            let session = AboutSession {
                age_ms: (age.as_secs_f64() * 1000.0).round(),
                subscriptions: engine.subscriptions().map(str::to_owned).collect(),
                in_flight: engine.in_flight(),
                roots_changes,
                findings: broken(engine.findings()),
            };
            (engine.log_level(), session)
        });
        let (level, session) = seen.ok_or_else(|| CallError::new("the session is over"))?;
        about.log_level = Some(level.as_str());
        about.session = Some(session);
    } else {
        about.findings = call.inspect(|engine| broken(engine.findings()));
    }
    Ok(Json(about))
}

fn broken(findings: &Findings) -> Vec<Broken> {
    let broken = findings.iter().map(|found| Broken {
        rule: found.rule.id,
        demands: found.rule.text,
        what: found.texts.iter().cloned().collect(),
        count: found.count,
    });
    broken.collect()
}

fn object(value: &impl Serialize) -> Option<JsonObject> {
    match serde_json::to_value(value) {
        Ok(Value::Object(object)) => Some(object),
        _ => None,
    }
}

fn header((name, value): &(String, String)) -> Header {
    let value = if is_public(name) { value } else { "(not shown)" };
    Header { name: name.clone(), value: value.to_owned() }
}
