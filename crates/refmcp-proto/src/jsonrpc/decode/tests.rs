//! What is a message, and what exactly is wrong with everything else.

use super::*;

fn read(text: &str) -> Result<Message<'_>, DecodeError> {
    match decode(text.as_bytes(), &Limits::default())? {
        Incoming::One(message) => Ok(message),
        Incoming::Batch(_) => panic!("a batch"),
    }
}

#[track_caller]
fn refused(text: &str, code: i64, words: &str) -> DecodeError {
    let error = read(text).expect_err(text);
    assert_eq!(error.error.code, code, "{text}: {error}");
    assert!(error.error.message.contains(words), "{text}: {error}");
    error
}

#[test]
fn members_of_meta_are_its_own() {
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"x":{"progressToken":1,
        "io.modelcontextprotocol/protocolVersion":"nested"},"progress\u0054oken":2,
        "io.modelcontextprotocol/logLevel":null},"y":{"_meta":{"progressToken":3}}}}"#;
    let Message::Request(request) = read(text).unwrap() else { panic!("no request") };
    let meta = request.params.meta;
    assert_eq!((meta.progress_token, meta.protocol_version, meta.log_level), (Some("2"), None, None));
    let text =
        r#"{"jsonrpc":"2.0","id":1,"result":{"a":{"resultType":"complete","content":[]},"resultType":"x"}}"#;
    let Message::Response(response) = read(text).unwrap() else { panic!("no response") };
    assert_eq!((response.members.result_type, response.members.content), (Some("\"x\""), false));
}

#[test]
fn reads_a_request_and_finds_its_meta() {
    let text = r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"x","_meta":{"k":1}}}"#;
    let Message::Request(request) = read(text).unwrap() else { panic!("no request") };
    assert_eq!(request.id, RequestId::from("a"));
    assert_eq!(request.method, "tools/call");
    assert_eq!(request.params.meta.text, Some(r#"{"k":1}"#));
    assert_eq!(request.params.text, Some(r#"{"name":"x","_meta":{"k":1}}"#));
}

#[test]
fn reads_notifications_and_responses() {
    let note = read(r#"{"jsonrpc":"2.0","method":"n"}"#).unwrap();
    assert!(matches!(note, Message::Notification(Notification { params: Params { text: None, .. }, .. })));
    let result = read(r#"{"jsonrpc":"2.0","id":0,"result":{}}"#).unwrap();
    assert!(matches!(result, Message::Response(Response { result: Ok("{}"), .. })));
    let error = read(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"no"}}"#).unwrap();
    assert!(matches!(error, Message::Response(Response { id: None, result: Err(_), .. })));
}

#[test]
fn meta_beside_params_is_reported_and_not_read() {
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{},"_meta":{"progressToken":1}}"#;
    let message = read(text).unwrap();
    assert_eq!(message.misplaced_meta(), Some("params"));
    let Message::Request(request) = message else { panic!("no request") };
    assert_eq!(request.params.meta.text, None);
    assert!(request.params.misplaced_meta && !request.params.misplaced_version);
    let text = r#"{"jsonrpc":"2.0","method":"n","_meta":null}"#;
    assert_eq!(read(text).unwrap().misplaced_meta(), Some("params"));
    let text = r#"{"jsonrpc":"2.0","id":1,"result":{},"_meta":{}}"#;
    assert_eq!(read(text).unwrap().misplaced_meta(), Some("result"));
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{}}}"#;
    assert_eq!(read(text).unwrap().misplaced_meta(), None);
}

#[test]
fn not_json_is_a_parse_error() {
    refused("{\"jsonrpc\":", -32700, "byte 11");
    refused("{}{}", -32700, "byte 2");
    refused("\u{feff}{}", -32700, "byte order mark");
    refused(r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"\ud800"}}"#, -32700, "surrogate");
    let error = decode(b"{\"a\":\"\xff\"}", &Limits::default()).unwrap_err();
    assert_eq!((error.error.code, error.needs_response), (-32700, true));
    assert!(error.error.message.contains("UTF-8 at byte 6"));
    let utf16: Vec<u8> = "{}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(decode(&utf16, &Limits::default()).unwrap_err().error.code, -32700);
}

#[test]
fn json_that_is_no_message_is_an_invalid_request() {
    for text in ["1", "\"x\"", "null", "true"] {
        refused(text, -32600, "object");
    }
    refused(r#"{"jsonrpc":"2.0"}"#, -32600, "neither");
    refused(r#"{"id":1,"method":"x"}"#, -32600, "missing");
    refused(r#"{"jsonrpc":"1.0","id":1,"method":"x"}"#, -32600, "2.0");
    refused(r#"{"jsonrpc":"2.0","id":1,"method":5}"#, -32600, "not a string");
    refused(r#"{"jsonrpc":"2.0","id":1,"method":""}"#, -32600, "empty");
    for params in ["[1]", "\"a\"", "1", "null"] {
        refused(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{params}}}"#), -32600, "object");
    }
    refused(r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#, -32600, "both");
    refused(r#"{"jsonrpc":"2.0","id":1,"method":"x","result":{}}"#, -32600, "not both");
    refused(r#"{"jsonrpc":"2.0","id":1,"error":{"message":"x"}}"#, -32600, "code");
    refused(r#"{"jsonrpc":"2.0","result":{}}"#, -32600, "without an id");
    refused(r#"{"jsonrpc":"2.0","id":1,"method":"x","method":"y"}"#, -32600, "duplicate");
    refused(r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":{"b":1,"b":2}}}"#, -32600, "duplicate");
}

#[test]
fn ids_are_strings_or_integers() {
    for id in ["null", "true", "{}", "[]", "1.0", "1.5", "1e3"] {
        let error = refused(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"x"}}"#), -32600, "id");
        assert_eq!((error.id, error.needs_response), (None, true), "{id}");
    }
    let long = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"x"}}"#, "i".repeat(1 << 20));
    refused(&long, -32600, "longer");
    for id in ["0", "-1", "\"\"", "9007199254740993", "18446744073709551616", "-0"] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"x"}}"#);
        let Message::Request(request) = read(&text).unwrap() else { panic!("{id}") };
        assert_eq!(serde_json::to_string(&request.id).unwrap(), id);
    }
}

#[test]
fn look_alike_keys_are_refused() {
    for key in ["Method", "METHOD", "param\u{17f}", "ID"] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","{key}":{{}}}}"#);
        refused(&text, -32600, "case");
    }
}

#[test]
fn an_error_keeps_the_id_it_could_read() {
    let error = refused(r#"{"jsonrpc":"1.0","id":"here","method":"x"}"#, -32600, "2.0");
    assert_eq!(error.id, Some(RequestId::from("here")));
    let silent = refused(r#"{"jsonrpc":"1.0","method":"x"}"#, -32600, "2.0");
    assert!(!silent.needs_response, "a notification is never answered, not even a bad one");
}

#[test]
fn limits_hold() {
    let limits = Limits { max_message_size: 100, depth: 3, name_bytes: 10, batch: 2 };
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, "m".repeat(11));
    assert!(decode(text.as_bytes(), &limits).unwrap_err().error.message.contains("method"));
    assert!(decode(&[b' '; 101], &limits).unwrap_err().error.message.contains("longer"));
    let deep = r#"{"params":{"a":[[1]]}}"#;
    assert!(decode(deep.as_bytes(), &limits).unwrap_err().error.message.contains("deeper than 3"));
    assert!(decode(b"[1,2,3]", &limits).unwrap_err().error.message.contains("batch"));
}

#[test]
fn batches_are_read_item_by_item() {
    let text = r#"[{"jsonrpc":"2.0","id":1,"method":"a"},1,{"jsonrpc":"2.0","method":"b"}]"#;
    let Incoming::Batch(items) = decode(text.as_bytes(), &Limits::default()).unwrap() else { panic!("one") };
    assert!(matches!(items[0], Ok(Message::Request(_))));
    assert!(items[1].is_err());
    assert!(matches!(items[2], Ok(Message::Notification(_))));
    assert!(decode(b"[]", &Limits::default()).is_err());
}

#[test]
fn deep_nesting_is_refused_without_recursion() {
    let deep = "[".repeat(1_000_000);
    assert!(decode(deep.as_bytes(), &Limits::default()).unwrap_err().error.message.contains("deeper"));
}
