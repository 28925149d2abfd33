//! Messages against the official schemas of the specification.
//!
//! The schemas are not part of this repository. They are read from the folder that the environment variable
//! `REFMCP_SCHEMAS` names, or from one beside the checkout, or from where `cargo xtask schemas` has put them: it fetches
//! them from the registry, and `cargo xtask test` does that by itself. Without them nothing can be checked, so tests
//! that need them fail.

mod checked;

use std::cell::RefCell;
use std::collections::HashMap;
use std::env;
use std::fs;
use std::iter;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use jsonschema::Validator;
use refmcp_proto::revision::Revision;
use serde_json::{Map, Value, json};

pub use checked::Checked;

/// Who sent a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The client.
    FromClient,
    /// The server.
    FromServer,
}

/// The schema of one revision.
#[derive(Debug)]
pub struct Schema {
    revision: Revision,
    whole: Value,
    /// Where the definitions stand: it changed with the dialect.
    keyword: &'static str,
    compiled: RefCell<HashMap<String, Rc<Validator>>>,
}

impl Schema {
    /// The schema of a revision.
    ///
    /// # Panics
    ///
    /// When there is none to be read: whatever was to be checked would go unchecked.
    pub fn load(revision: Revision) -> Self {
        let folder = folder().unwrap_or_else(|| {
            panic!("no official schemas to check against: run `cargo xtask schemas`, or set {VARIABLE} to their folder")
        });
        let path = folder.join(revision.as_str()).join("schema.json");
        Self::read(revision, &path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
    }

    fn read(revision: Revision, path: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
        let whole: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let keyword = if whole.get("$defs").is_some() { "$defs" } else { "definitions" };
        Ok(Self { revision, whole, keyword, compiled: RefCell::default() })
    }

    /// The revision it is of.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Checks a message; `answers` is the method of the request that a response answers.
    pub fn check(&self, direction: Direction, message: &Value, answers: Option<&str>) -> Result<(), String> {
        if let Value::Array(items) = message {
            return items.iter().try_for_each(|item| self.check(direction, item, answers));
        }
        if let Some(error) = message.get("error") {
            return self.check_error(message, error);
        }
        self.check_against("JSONRPCMessage", message)?;
        match (message.get("method").and_then(Value::as_str), message.get("result")) {
            (Some(method), _) => self.check_method(direction, method, message),
            (None, Some(result)) => match answers {
                Some(method) => self.check_result(method, result),
                None => Err(format!("a result without a request: {message}")),
            },
            (None, None) => Err(format!("neither method nor result nor error: {message}")),
        }
    }

    fn check_error(&self, message: &Value, error: &Value) -> Result<(), String> {
        let mut message = message.clone();
        if message.get("id").is_none_or(Value::is_null) {
            // Older schemas know no error without an id, but JSON-RPC wants a null where none could be read.
            message["id"] = json!(0);
        }
        let envelope = if self.has("JSONRPCErrorResponse") { "JSONRPCErrorResponse" } else { "JSONRPCError" };
        self.check_against(envelope, &message)?;
        let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
        let known = self.definitions().iter().find(|(name, definition)| {
            let is_response = definition.pointer("/properties/error").is_some();
            name.ends_with("Error")
                && is_response
                && definition.to_string().contains(&format!("\"const\":{code}"))
        });
        known.map_or(Ok(()), |(name, _)| self.check_against(name, &message))
    }

    fn check_method(&self, direction: Direction, method: &str, message: &Value) -> Result<(), String> {
        let request = message.get("id").is_some();
        let (sender, kind) = match (direction, request) {
            (Direction::FromClient, true) => ("ClientRequest", "a request of clients"),
            (Direction::FromClient, false) => ("ClientNotification", "a notification of clients"),
            (Direction::FromServer, true) => ("ServerRequest", "a request of servers"),
            (Direction::FromServer, false) => ("ServerNotification", "a notification of servers"),
        };
        let name = self.named(method).ok_or_else(|| format!("{method} is not in {}", self.revision))?;
        let allowed = self.definitions().get(sender).unwrap_or(&Value::Null);
        // A union of one is that one itself.
        let is_the_only = allowed.pointer("/properties/method/const") == Some(&json!(method));
        if !is_the_only && !allowed.to_string().contains(&format!("/{name}\"")) {
            return Err(format!("{method} is not {kind} in {}", self.revision));
        }
        self.check_against(&name, message)
    }

    fn check_result(&self, method: &str, result: &Value) -> Result<(), String> {
        if result.get("resultType") == Some(&json!("input_required")) {
            return self.check_against("InputRequiredResult", result);
        }
        if result.get("task").is_some_and(Value::is_object) && self.has("CreateTaskResult") {
            return self.check_against("CreateTaskResult", result);
        }
        if method == "tools/call" && result.get("taskId").is_some() {
            // The schema of the newest revision does not have the results of extensions.
            return self.check_against("Result", result);
        }
        let name = self
            .named(method)
            .and_then(|request| Some(format!("{}Result", request.strip_suffix("Request")?)));
        match name.filter(|name| self.has(name)) {
            Some(name) => self.check_against(&name, result),
            None => self.check_against("Result", result),
        }
    }

    /// The definition of the request or notification with this method.
    fn named(&self, method: &str) -> Option<String> {
        let is_it =
            |definition: &Value| definition.pointer("/properties/method/const") == Some(&json!(method));
        self.definitions().iter().find(|(_, definition)| is_it(definition)).map(|(name, _)| name.clone())
    }

    fn definitions(&self) -> &Map<String, Value> {
        self.whole.get(self.keyword).and_then(Value::as_object).expect("a schema has definitions")
    }

    fn has(&self, name: &str) -> bool {
        self.definitions().contains_key(name)
    }

    /// Checks a value against one definition.
    pub fn check_against(&self, name: &str, value: &Value) -> Result<(), String> {
        let validator = self.compile(name)?;
        let faults =
            validator.iter_errors(value).map(|error| format!("{} at {}", error, error.instance_path()));
        let faults: Vec<String> = faults.collect();
        if faults.is_empty() {
            return Ok(());
        }
        Err(format!("no {name} of {}: {}\n  {value}", self.revision, faults.join("; ")))
    }

    fn compile(&self, name: &str) -> Result<Rc<Validator>, String> {
        if let Some(validator) = self.compiled.borrow().get(name) {
            return Ok(validator.clone());
        }
        let mut schema = self.whole.clone();
        schema["$ref"] = json!(format!("#/{}/{name}", self.keyword));
        let validator = jsonschema::validator_for(&schema).map_err(|error| format!("{name}: {error}"))?;
        let validator = Rc::new(validator);
        self.compiled.borrow_mut().insert(name.to_owned(), validator.clone());
        Ok(validator)
    }
}

/// The schemas of all revisions. Compiled once, they serve many conversations.
pub type Schemas = Rc<HashMap<Revision, Schema>>;

/// Loads the schemas of all revisions.
///
/// # Panics
///
/// When one cannot be read, as [`Schema::load`] does.
pub fn load_all() -> Schemas {
    let schemas = Revision::ALL.into_iter().map(|revision| (revision, Schema::load(revision)));
    Rc::new(schemas.collect())
}

/// Names the folder of the schemas, one folder in it for each revision.
const VARIABLE: &str = "REFMCP_SCHEMAS";

/// The folder of the schemas, if there is one.
pub fn folder() -> Option<PathBuf> {
    if let Some(named) = env::var_os(VARIABLE) {
        return Some(PathBuf::from(named));
    }
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/spec/schema");
    let program = env::current_exe().unwrap_or_default();
    // A test runs from `target/debug/deps`.
    let fetched = program.ancestors().map(|folder| folder.join("spec/schema"));
    iter::once(beside).chain(fetched).find(|folder| folder.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(revision: Revision, message: &Value, answers: Option<&str>) -> Result<(), String> {
        Schema::load(revision).check(Direction::FromServer, message, answers)
    }

    #[test]
    fn results_are_checked_by_the_method_they_answer() {
        for revision in Revision::ALL {
            let message =
                json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": 1, "resultType": "complete"}});
            let checked = check(revision, &message, Some("tools/list"));
            assert!(checked.unwrap_err().contains("/tools"), "{revision}");
            assert!(check(revision, &message, None).is_err());
        }
        let empty = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
        assert_eq!(check(Revision::V2025_06_18, &empty, Some("logging/setLevel")), Ok(()));
        assert!(check(Revision::V2026_07_28, &empty, Some("server/discover")).is_err());
    }

    #[test]
    fn methods_are_checked_by_revision_and_direction() {
        let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        assert_eq!(check(Revision::V2024_11_05, &ping, None), Ok(()));
        assert!(check(Revision::V2026_07_28, &ping, None).is_err());
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a"}});
        assert!(check(Revision::V2025_06_18, &call, None).unwrap_err().contains("not a request of servers"));
        let progress =
            json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}});
        assert!(check(Revision::V2025_06_18, &progress, None).unwrap_err().contains("progressToken"));
    }

    #[test]
    fn the_only_notification_of_clients_is_known() {
        let cancel =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
        for revision in Revision::ALL {
            let checked = Schema::load(revision).check(Direction::FromClient, &cancel, None);
            assert_eq!(checked, Ok(()), "{revision}");
        }
    }

    #[test]
    fn errors_are_checked_by_their_code() {
        let error = |data: Value| json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32022, "message": "no", "data": data}});
        let good = error(json!({"supported": [], "requested": "x"}));
        assert_eq!(check(Revision::V2026_07_28, &good, None), Ok(()));
        assert!(check(Revision::V2026_07_28, &error(json!({})), None).is_err());
        let unread = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "no"}});
        assert_eq!(check(Revision::V2024_11_05, &unread, None), Ok(()));
    }
}
