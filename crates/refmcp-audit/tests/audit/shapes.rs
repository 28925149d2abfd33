//! Members of params and results: what the auditor demands of them is what the official schemas demand.

use refmcp_audit::verdict::Role;
use refmcp_proto::revision::{Lifecycle, Revision};
use refmcp_proto::rule;
use refmcp_testkit::schema::{Direction, Schema};
use serde_json::{Value, json};

use crate::script::{
    Example, SESSIONS, Script, client, notification, request, result, server, stateless_request,
    stateless_result,
};

/// Params or a result, and what is wrong with them: the pointer to a member, and another value for it; null takes it away.
struct Sample {
    from: Role,
    method: &'static str,
    is_result: bool,
    value: Value,
    wrong: Vec<(&'static str, Value)>,
}

fn sample(
    from: Role,
    method: &'static str,
    is_result: bool,
    value: Value,
    wrong: &[(&'static str, Value)],
) -> Sample {
    Sample { from, method, is_result, value, wrong: wrong.to_vec() }
}

fn params(from: Role, method: &'static str, value: Value, wrong: &[(&'static str, Value)]) -> Sample {
    sample(from, method, false, value, wrong)
}

fn answer(from: Role, method: &'static str, value: Value, wrong: &[(&'static str, Value)]) -> Sample {
    sample(from, method, true, value, wrong)
}

fn samples() -> Vec<Sample> {
    let (no, text) = (json!(null), json!({"type": "text", "text": "t"}));
    let uri = || json!({"uri": "a:b"});
    let uri_wrong = [("/uri", no.clone()), ("/uri", json!(5))];
    vec![
        params(
            Role::Client,
            "tools/call",
            json!({"name": "t", "arguments": {}}),
            &[("/name", no.clone()), ("/name", json!(5)), ("/arguments", json!(["x"]))],
        ),
        params(Role::Client, "resources/read", uri(), &uri_wrong),
        params(Role::Client, "resources/subscribe", uri(), &uri_wrong),
        params(Role::Client, "resources/unsubscribe", uri(), &uri_wrong),
        params(Role::Client, "prompts/get", json!({"name": "p"}), &[("/name", no.clone())]),
        params(
            Role::Client,
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}),
            &[
                ("/ref", no.clone()),
                ("/ref/type", no.clone()),
                ("/ref/type", json!("ref/tool")),
                ("/argument", no.clone()),
                ("/argument/name", no.clone()),
                ("/argument/value", json!(1)),
            ],
        ),
        params(
            Role::Server,
            "sampling/createMessage",
            json!({"messages": [{"role": "user", "content": text}], "maxTokens": 5, "systemPrompt": "s",
                   "temperature": 0.5, "stopSequences": ["x"]}),
            &[
                ("/messages", no.clone()),
                ("/messages", json!({})),
                ("/messages/0/role", json!("system")),
                ("/maxTokens", no.clone()),
                ("/maxTokens", json!("5")),
                ("/systemPrompt", json!(5)),
                ("/temperature", json!("warm")),
                ("/stopSequences", json!("x")),
            ],
        ),
        params(
            Role::Server,
            "notifications/message",
            json!({"level": "info", "data": "d", "logger": "l"}),
            &[("/data", no.clone()), ("/logger", json!(5))],
        ),
        answer(
            Role::Server,
            "tools/list",
            json!({"tools": [{"name": "t", "description": "d", "inputSchema": {"type": "object"}}]}),
            &[
                ("/tools", no.clone()),
                ("/tools", json!({})),
                ("/tools/0/name", no.clone()),
                ("/tools/0/description", json!(5)),
            ],
        ),
        answer(
            Role::Server,
            "tools/call",
            json!({"content": [], "isError": false}),
            &[("/isError", json!("no"))],
        ),
        answer(
            Role::Server,
            "resources/list",
            json!({"resources": [{"uri": "a:b", "name": "n", "description": "d", "mimeType": "m", "size": 5}]}),
            &[
                ("/resources", no.clone()),
                ("/resources/0/uri", no.clone()),
                ("/resources/0/name", no.clone()),
                ("/resources/0/description", json!(5)),
                ("/resources/0/mimeType", json!(5)),
                ("/resources/0/size", json!("5")),
            ],
        ),
        answer(
            Role::Server,
            "resources/templates/list",
            json!({"resourceTemplates": [{"uriTemplate": "a:{b}", "name": "n"}]}),
            &[
                ("/resourceTemplates", no.clone()),
                ("/resourceTemplates/0/uriTemplate", no.clone()),
                ("/resourceTemplates/0/name", no.clone()),
            ],
        ),
        answer(
            Role::Server,
            "prompts/list",
            json!({"prompts": [{"name": "p", "description": "d", "arguments": [{"name": "a", "required": true}]}]}),
            &[
                ("/prompts", no.clone()),
                ("/prompts/0/name", no.clone()),
                ("/prompts/0/description", json!(5)),
                ("/prompts/0/arguments", json!({})),
                ("/prompts/0/arguments/0/name", no.clone()),
                ("/prompts/0/arguments/0/required", json!("yes")),
            ],
        ),
        answer(
            Role::Server,
            "prompts/get",
            json!({"messages": [{"role": "user", "content": text}], "description": "d"}),
            &[("/messages", no.clone()), ("/messages/0/role", json!("system")), ("/description", json!(5))],
        ),
        answer(
            Role::Server,
            "completion/complete",
            json!({"completion": {"values": ["x"], "total": 1, "hasMore": false}}),
            &[
                ("/completion", no.clone()),
                ("/completion/values", no.clone()),
                ("/completion/values/0", json!(5)),
                ("/completion/total", json!("1")),
                ("/completion/hasMore", json!("no")),
            ],
        ),
        answer(
            Role::Client,
            "roots/list",
            json!({"roots": [{"uri": "file:///a", "name": "n"}]}),
            &[("/roots", no.clone()), ("/roots/0/name", json!(5))],
        ),
        answer(
            Role::Client,
            "sampling/createMessage",
            json!({"role": "assistant", "content": text, "model": "m", "stopReason": "endTurn"}),
            &[
                ("/role", no.clone()),
                ("/role", json!("robot")),
                ("/model", no.clone()),
                ("/stopReason", json!(5)),
            ],
        ),
    ]
}

fn with(value: &Value, pointer: &str, other: &Value) -> Value {
    let mut value = value.clone();
    if other.is_null() {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        value.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name).unwrap();
    } else {
        *value.pointer_mut(pointer).unwrap() = other.clone();
    }
    value
}

impl Sample {
    /// The request, without a session where the revision has none.
    fn request(&self, id: &str, revision: Revision, params: &Value) -> Value {
        match revision.lifecycle() {
            Lifecycle::PerRequest if self.asks() == Role::Client => {
                stateless_request(id, self.method, params.clone())
            }
            _ => request(id, self.method, params.clone()),
        }
    }

    /// Who sends the request.
    fn asks(&self) -> Role {
        match (self.is_result, self.from) {
            (false, role) => role,
            (true, Role::Client) => Role::Server,
            (true, Role::Server) => Role::Client,
        }
    }

    /// The message with these params or this result.
    fn message(&self, revision: Revision, value: &Value) -> Value {
        if self.method.starts_with("notifications/") {
            return notification(self.method, value.clone());
        }
        match revision.lifecycle() {
            _ if !self.is_result => self.request("x", revision, value),
            Lifecycle::PerRequest if self.from == Role::Server => {
                let mut members = value.clone();
                if self.method.ends_with("/list") {
                    members["ttlMs"] = json!(0);
                    members["cacheScope"] = json!("private");
                }
                stateless_result("x", members)
            }
            _ => result("x", value.clone()),
        }
    }

    /// The conversation in which it is sent.
    fn script(&self, revision: Revision, value: &Value) -> Script {
        let offer = json!({"tools": {}, "resources": {"subscribe": true}, "prompts": {}, "completions": {}, "logging": {}});
        let script = match revision.lifecycle() {
            Lifecycle::Handshake => {
                Script::session("stdio", revision.as_str(), json!({"roots": {}, "sampling": {}}), offer)
            }
            Lifecycle::PerRequest => Script::without_session("stdio", offer),
        };
        let say = |script: Script, role, message| match role {
            Role::Client => script.client(message),
            Role::Server => script.server(message),
        };
        let asked = match self.is_result {
            false => script,
            true => {
                let known = samples().into_iter().find(|it| it.method == self.method && !it.is_result);
                let params = known.map_or_else(|| json!({}), |it| it.value);
                say(script, self.asks(), self.request("x", revision, &params))
            }
        };
        say(asked, self.from, self.message(revision, value))
    }

    /// Whether the official schema allows it.
    fn is_allowed(&self, schema: &Schema, value: &Value) -> bool {
        let direction = match self.from {
            Role::Client => Direction::FromClient,
            Role::Server => Direction::FromServer,
        };
        let message = self.message(schema.revision(), value);
        schema.check(direction, &message, self.is_result.then_some(self.method)).is_ok()
    }
}

#[test]
fn what_the_schemas_demand_is_demanded() {
    let mut tried = 0;
    for revision in Revision::ALL {
        let schema = Schema::load(revision);
        // Methods that the revision does not have are left out.
        for sample in samples().into_iter().filter(|it| it.is_allowed(&schema, &it.value)) {
            let kept = sample.script(revision, &sample.value);
            let name = format!("{revision} {} {}", sample.method, sample.value);
            kept.kept(&rule::RPC_23, sample.from).unwrap_or_else(|why| panic!("{name}: {why}"));
            for (pointer, other) in &sample.wrong {
                let value = with(&sample.value, pointer, other);
                assert!(!sample.is_allowed(&schema, &value), "{name}: {pointer} may be {other}");
                let judged = sample.script(revision, &value).broken(&rule::RPC_23, sample.from);
                judged.unwrap_or_else(|why| panic!("{name}: {pointer} {other}: {why}"));
                tried += 1;
            }
        }
    }
    assert!(tried > 200, "{tried}");
}

pub(crate) fn examples() -> Vec<Example> {
    let newest: Revision = SESSIONS[3].parse().unwrap();
    let example = |from, method, make: fn(&'static rule::Rule, Script, Vec<Script>) -> Example| {
        let sample = samples().into_iter().find(|it| (it.from, it.method) == (from, method)).unwrap();
        let broken = sample.wrong.iter();
        let broken = broken
            .map(|(pointer, other)| sample.script(newest, &with(&sample.value, pointer, other)))
            .collect();
        make(&rule::RPC_23, sample.script(newest, &sample.value), broken)
    };
    vec![
        example(Role::Client, "tools/call", client),
        example(Role::Client, "sampling/createMessage", client),
        example(Role::Server, "tools/list", server),
    ]
}

#[test]
fn a_finding_names_the_member_and_what_it_has_to_be() {
    let revision: Revision = SESSIONS[3].parse().unwrap();
    let sample = samples().into_iter().find(|it| it.method == "prompts/list").unwrap();
    let told = |pointer: &str, other: &Value| {
        let judgement = sample.script(revision, &with(&sample.value, pointer, other)).judge();
        let verdict = judgement.verdicts.get(&rule::RPC_23, Role::Server).unwrap();
        let [violation] = &verdict.violations[..] else { panic!("{verdict:?}") };
        (violation.what.clone(), violation.expected.clone())
    };
    assert_eq!(
        told("/prompts/0/arguments/0/name", &json!(null)),
        (
            "the result of prompts/list without prompts[].arguments[].name".to_owned(),
            "send prompts[].arguments[].name in the result of prompts/list".to_owned()
        )
    );
    assert_eq!(
        told("/prompts/0/arguments/0/required", &json!("yes")),
        (
            "prompts[].arguments[].required in the result of prompts/list is not a boolean".to_owned(),
            "send prompts[].arguments[].required as a boolean".to_owned()
        )
    );
}

#[test]
fn what_stands_in_the_place_of_a_result_is_no_result() {
    let revision: Revision = SESSIONS[3].parse().unwrap();
    let sample = samples().into_iter().find(|it| it.method == "prompts/get" && it.is_result).unwrap();
    for value in [json!({"resultType": "input_required"}), json!({"task": {}})] {
        let judgement = sample.script(revision, &value).judge();
        assert!(judgement.verdicts.get(&rule::RPC_23, Role::Server).is_none(), "{value}");
    }
}
