//! Tests of words, good and bad, against schemas.

use std::io::Cursor;

use serde_json::json;

use super::parse::ArgumentErrors;
use super::schema::expected;
use super::*;

fn object(value: &Value) -> JsonObject {
    value.as_object().unwrap().clone()
}

fn schema() -> JsonObject {
    object(&json!({
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "What to say"},
            "short": {"type": "string", "maxLength": 3},
            "count": {"type": "integer", "minimum": 1, "maximum": 10},
            "ratio": {"type": "number", "exclusiveMinimum": 0},
            "loud": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "numbers": {"type": "array", "items": {"type": "integer"}},
            "mixed": {"type": "array"},
            "colour": {"type": "string", "enum": ["red", "green"], "enumNames": ["Red", "Green"]},
            "level": {"enum": [1, 2, "three", null]},
            "either": {"anyOf": [{"type": "integer"}, {"type": "boolean"}, {"type": "string"}]},
            "maybe": {"type": ["integer", "null"]},
            "titled": {"oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]},
            "point": {"$ref": "#/$defs/Point"},
            "wrapped": {"allOf": [{"$ref": "#/$defs/Point/properties/x"}], "description": "Wrapped"},
            "circle": {"$ref": "#/$defs/Circle"},
            "remote": {"$ref": "https://example.org/schema.json"},
            "free": {"type": "object"},
            "any": {},
            "dotted.name": {"type": "integer"},
        },
        "$defs": {
            "Point": {
                "type": "object",
                "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}, "on": {"$ref": "#/$defs/Point"}},
                "additionalProperties": false,
            },
            "Circle": {"$ref": "#/$defs/Circle"},
        },
    }))
}

fn read_in(schema: &JsonObject, words: &[&str], json: Option<&str>) -> Result<JsonObject, ArgumentErrors> {
    let words = ArgumentInput {
        words: words.iter().map(|word| (*word).to_owned()).collect(),
        json: json.map(str::to_owned),
    };
    let mut stdin = Cursor::new(b"from stdin".to_vec());
    parse_arguments(&words, schema, &mut ValueSource::new(&mut stdin)).finish(schema)
}

/// Without what cannot be checked as a whole: a reference to elsewhere and one in a circle.
fn checkable() -> JsonObject {
    let mut schema = schema();
    for name in ["remote", "circle"] {
        schema.get_mut("properties").unwrap().as_object_mut().unwrap().remove(name);
    }
    schema.get_mut("$defs").unwrap().as_object_mut().unwrap().remove("Circle");
    schema
}

#[test]
fn words_get_the_types_of_the_schema() {
    let cases: Vec<(Vec<&str>, Value)> = vec![
        (vec!["text=hello world"], json!({"text": "hello world"})),
        (vec!["text=5"], json!({"text": "5"})),
        (vec!["text=a=b"], json!({"text": "a=b"})),
        (vec!["text="], json!({"text": ""})),
        (vec!["text=@@home"], json!({"text": "@home"})),
        (vec!["text=@-"], json!({"text": "from stdin"})),
        (vec!["count=5"], json!({"count": 5})),
        (vec!["count=1e1"], json!({"count": 10})),
        (vec!["count=2.0"], json!({"count": 2})),
        (vec!["ratio=0.5"], json!({"ratio": 0.5})),
        (vec!["ratio=3"], json!({"ratio": 3})),
        (vec!["loud=yes"], json!({"loud": true})),
        (vec!["loud=False"], json!({"loud": false})),
        (vec!["tags=a,b"], json!({"tags": ["a", "b"]})),
        (vec!["tags=a,b", "tags=c"], json!({"tags": ["a,b", "c"]})),
        (vec!["tags=[\"a,b\"]"], json!({"tags": ["a,b"]})),
        (vec!["tags="], json!({"tags": []})),
        (vec!["numbers=1,2"], json!({"numbers": [1, 2]})),
        (vec!["numbers=1", "numbers:=2"], json!({"numbers": [1, 2]})),
        (vec!["mixed=1,x,true"], json!({"mixed": [1, "x", true]})),
        (vec!["colour=red"], json!({"colour": "red"})),
        (vec!["colour=Green"], json!({"colour": "green"})),
        (vec!["level=2"], json!({"level": 2})),
        (vec!["level=three"], json!({"level": "three"})),
        (vec!["level=null"], json!({"level": null})),
        (vec!["either=7"], json!({"either": 7})),
        (vec!["either=true"], json!({"either": true})),
        (vec!["either=x"], json!({"either": "x"})),
        (vec!["maybe=null"], json!({"maybe": null})),
        (vec!["maybe=7"], json!({"maybe": 7})),
        (vec!["titled=b"], json!({"titled": "b"})),
        (vec!["point.x=1", "point.y=2"], json!({"point": {"x": 1, "y": 2}})),
        (vec!["point.on.on.x=1"], json!({"point": {"on": {"on": {"x": 1}}}})),
        (vec!["point={\"x\":1}"], json!({"point": {"x": 1}})),
        (vec!["point:={\"x\":1}", "point.y=2"], json!({"point": {"x": 1, "y": 2}})),
        (vec!["wrapped=4"], json!({"wrapped": 4})),
        (vec!["free.a.b=1", "free.c=x"], json!({"free": {"a": {"b": 1}, "c": "x"}})),
        (vec!["any=1"], json!({"any": 1})),
        (vec!["any=\"1\""], json!({"any": "\"1\""})),
        (vec!["any=x"], json!({"any": "x"})),
        (vec!["dotted.name=3"], json!({"dotted.name": 3})),
        (vec!["new:=[1]"], json!({"new": [1]})),
        (vec![], json!({})),
    ];
    for (words, expected) in cases {
        let read = read_in(&checkable(), &words, None);
        assert_eq!(read.map(Value::Object), Ok(expected), "{words:?}");
    }
}

#[test]
fn references_are_followed_only_within_the_schema() {
    for (words, expected) in [
        (["circle=1"], json!({"circle": 1})),
        (["remote=x"], json!({"remote": "x"})),
        (["point.x=1"], json!({"point": {"x": 1}})),
    ] {
        assert_eq!(read_in(&schema(), &words, None).map(Value::Object), Ok(expected), "{words:?}");
    }
}

#[test]
fn words_that_do_not_fit_are_explained() {
    let cases: Vec<(Vec<&str>, &str)> = vec![
        (vec!["hello"], "hello: expected KEY=VALUE"),
        (vec!["=x"], "the key is missing"),
        (vec!["count=many"], "count: expected an integer from 1 to 10, not \"many\""),
        (vec!["count=11"], "expected an integer from 1 to 10"),
        (vec!["count=1.5"], "expected an integer"),
        (vec!["count=NaN"], "expected an integer"),
        (vec!["ratio=inf"], "expected a number above 0"),
        (vec!["ratio=0"], "expected a number above 0"),
        (vec!["short=long"], "expected a text of up to 3 characters"),
        (vec!["loud=maybe"], "expected true or false"),
        (vec!["numbers=1,x"], "expected a list, each item an integer, not \"1,x\""),
        (vec!["numbers=1", "numbers=x"], "expected an integer, not \"x\""),
        (vec!["numbers=[1"], "expected a list"),
        (vec!["numbers=[\"x\"]"], "/numbers/0: \"x\" is not of type \"integer\""),
        (vec!["colour=blue"], "expected one of red, green"),
        (vec!["level=4"], "expected one of 1, 2, three, null"),
        (vec!["titled=c"], "expected one of a, b"),
        (vec!["maybe=x"], "expected an integer or null"),
        (vec!["point=x"], "expected an object in JSON"),
        (vec!["point.z=1"], "there is no \"z\"; there are"),
        (vec!["point.x=a"], "point.x: expected an integer"),
        (vec!["point..x=1"], "expected names with a dot between them"),
        (vec!["text=a", "text=b"], "given 2 times, but it is no list"),
        (vec!["any=1", "any.b=2"], "\"any\" already has a value"),
        (vec!["txet=a"], "there is no \"txet\"; did you mean \"text\"?"),
        (vec!["Count=1"], "did you mean \"count\"?"),
        (vec!["zzzzzz=1"], "there is no \"zzzzzz\"; there are any, "),
        (
            vec!["count:=x"],
            "count: is no JSON: expected value at line 1 column 1; a text follows `=` instead of `:=`",
        ),
        (vec!["count:=\"x\""], "\"x\" is not of type"),
        (vec!["point:={\"z\":1}"], "/point: Additional properties are not allowed"),
        (vec!["text=@/no/such/file"], "cannot read the file \"/no/such/file\""),
        (vec!["text=@"], "needs the name of a file"),
        (vec!["text=@-", "any=@-"], "standard input can be read only once"),
    ];
    for (words, expected) in cases {
        let error = read_in(&checkable(), &words, None).unwrap_err().to_string();
        assert!(error.contains(expected), "{words:?}: {error}");
    }
}

#[test]
fn all_errors_are_reported_at_once() {
    let mut schema = checkable();
    schema.insert("required".to_owned(), json!(["text", "count", "colour"]));
    let error = read_in(&schema, &["count=x", "tgas=a"], None).unwrap_err();
    let keys: Vec<&str> = error.0.iter().map(|error| error.key.as_str()).collect();
    assert_eq!(keys, ["count", "tgas", "text", "colour"]);
    let text = error.to_string();
    assert!(text.starts_with("nothing was sent"), "{text}");
    assert!(text.contains("\n  text: missing, expected a text: What to say"), "{text}");
    assert!(text.contains("\n  colour: missing, expected one of red, green"), "{text}");
}

#[test]
fn words_add_to_json() {
    let json = Some("{\"text\":\"a\",\"point\":{\"x\":1}}");
    let read = read_in(&checkable(), &["text=b", "point.y=2"], json).unwrap();
    assert_eq!(Value::Object(read), json!({"text": "b", "point": {"x": 1, "y": 2}}));
    for (json, expected) in [
        ("[]", "--json: expected an object"),
        ("{", "--json: is no JSON"),
        ("{\"count\":0}", "/count: 0 is less"),
    ] {
        let error = read_in(&checkable(), &[], Some(json)).unwrap_err().to_string();
        assert!(error.contains(expected), "{json}: {error}");
    }
}

#[test]
fn files_hold_values() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    let (text, number) = (file("text", b"two\nlines\n"), file("number", b"7\n"));
    let (object, binary) = (file("object", b"{\"x\": 1}"), file("binary", b"\xff\xfe"));
    let read = |words: &[String], json: Option<String>| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        read_in(&checkable(), &words, json.as_deref()).map(Value::Object)
    };
    let words = [format!("text=@{text}"), format!("count=@{number}"), format!("point:=@{object}")];
    let expected = json!({"text": "two\nlines\n", "count": 7, "point": {"x": 1}});
    assert_eq!(read(&words, None), Ok(expected));
    assert_eq!(read(&[], Some(format!("@{object}"))), Ok(json!({"x": 1})));
    assert!(
        read(&[format!("text=@{binary}")], None).unwrap_err().to_string().contains("cannot read the file")
    );
}

#[test]
fn schemas_without_properties_take_anything_unless_they_are_closed() {
    let open = object(&json!({"type": "object"}));
    let read = read_in(&open, &["a=1", "b.c=x"], None).unwrap();
    assert_eq!(Value::Object(read), json!({"a": 1, "b": {"c": "x"}}));
    let closed = object(&json!({"type": "object", "properties": {}, "additionalProperties": false}));
    let error = read_in(&closed, &["a=1"], None).unwrap_err().to_string();
    assert!(error.contains("there are no arguments at all"), "{error}");
    let more = object(&json!({
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "additionalProperties": true,
    }));
    assert!(read_in(&more, &["a=1", "b=2"], None).is_ok());
}

#[test]
fn a_schema_that_nests_without_end_is_not_followed() {
    let mut inner = json!({"type": "integer"});
    for _ in 0..100 {
        inner = json!({"anyOf": [inner]});
    }
    let schema = object(&json!({"type": "object", "properties": {"deep": inner}}));
    assert!(read_in(&schema, &["deep=1"], None).is_err());
    let endless = object(&json!({
        "type": "object",
        "properties": {"list": {"$ref": "#/$defs/L"}},
        "$defs": {"L": {"anyOf": vec![json!({"$ref": "#/$defs/L"}); 20]}},
    }));
    assert!(expected(&endless, &endless["properties"]["list"]).chars().count() < 1000);
    assert!(read_in(&endless, &["list=1"], None).is_ok());
    assert!(read_in(&endless, &["list.a.b=1"], None).is_ok());
}

#[test]
fn missing_fields_are_the_required_ones() {
    let schema = object(&json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "title": "Name", "description": "Who", "default": "Ada"},
            "colour": {"$ref": "#/$defs/Colour", "description": "Which"},
            "key": {"type": "string", "format": "password"},
            "there": {"type": "string"},
            "optional": {"type": "string"},
        },
        "required": ["name", "colour", "key", "there", "ghost"],
        "$defs": {"Colour": {"enum": ["red", "green"]}},
    }));
    let found = missing_fields(&schema, &object(&json!({"there": "x"})));
    let names: Vec<&str> = found.iter().map(|field| field.name.as_str()).collect();
    assert_eq!(names, ["name", "colour", "key", "ghost"]);
    assert_eq!((found[0].title.as_deref(), found[0].default.as_ref()), (Some("Name"), Some(&json!("Ada"))));
    assert_eq!(found[1].choices, ["red", "green"]);
    assert_eq!(found[1].description.as_deref(), Some("Which"));
    assert!(found[2].secret && !found[0].secret);
    assert_eq!(found[3].expected, "any value");
    assert_eq!(found[1].parse(&schema, "red"), Ok(json!("red")));
    assert!(found[1].parse(&schema, "blue").is_err());
}

#[test]
fn prompts_take_strings_only() {
    let schema = prompt_schema(&[
        PromptArgument::new("code").required(true).description("What to review"),
        PromptArgument::new("language"),
    ]);
    let read = read_in(&schema, &["code=1", "language=true"], None).unwrap();
    assert_eq!(Value::Object(read), json!({"code": "1", "language": "true"}));
    for (words, expected) in [
        (vec!["language=x"], "code: missing, expected a text: What to review"),
        (vec!["code=x", "langauge=y"], "did you mean \"language\"?"),
        (vec!["code:=1"], "/code: 1 is not of type \"string\""),
    ] {
        let error = read_in(&schema, &words, None).unwrap_err().to_string();
        assert!(error.contains(expected), "{words:?}: {error}");
    }
}
