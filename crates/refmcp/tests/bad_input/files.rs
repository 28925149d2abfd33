//! URIs that lead nowhere, or out of the directory of `--resources`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::json;
use tempfile::TempDir;

use crate::peer::{Peer, Site, WAYS, Way};
use crate::table::{Row, long, request, row};

const SECRET: &str = "must not be read";

/// A directory to serve, within another that must not be served.
pub(crate) struct Served {
    _outside: TempDir,
    dir: TempDir,
}

impl Served {
    pub(crate) fn new() -> Self {
        let outside = tempfile::tempdir().expect("a directory");
        fs::write(outside.path().join("secret.txt"), SECRET).expect("written");
        let dir = tempfile::Builder::new().prefix("served").tempdir_in(outside.path()).expect("a directory");
        let root = dir.path();
        fs::create_dir(root.join("sub")).expect("made");
        fs::write(root.join("sub/a b.txt"), "inside").expect("written");
        fs::write(root.join(".hidden"), SECRET).expect("written");
        symlink(outside.path().join("secret.txt"), root.join("link.txt")).expect("linked");
        symlink("../secret.txt", root.join("up.txt")).expect("linked");
        symlink(outside.path(), root.join("out")).expect("linked");
        symlink("loop", root.join("loop")).expect("linked");
        symlink("sub/a b.txt", root.join("within.txt")).expect("linked");
        let fifo = std::process::Command::new("mkfifo").arg(root.join("pipe")).status();
        assert!(fifo.is_ok_and(|status| status.success()));
        Self { _outside: outside, dir }
    }

    pub(crate) fn path(&self) -> &str {
        Path::to_str(self.dir.path()).expect("UTF-8")
    }
}

pub(crate) fn uris_that_lead_nowhere(way: Way) -> Vec<Row> {
    let code = if way.is_stateless() { -32602 } else { -32002 };
    let refused = |uri: String| -> Row {
        let sent = request(way, "resources/read", &json!({ "uri": uri }));
        row(uri.chars().take(60).collect::<String>(), sent).error(code, "resource not found")
    };
    let within = [
        "../secret.txt",
        "..",
        ".",
        "",
        "/",
        "sub/../../secret.txt",
        "sub/..",
        "./sub",
        "%2e%2e%2fsecret.txt",
        "%2E%2E/secret.txt",
        "..%2fsecret.txt",
        "%252e%252e%252fsecret.txt",
        "..\\secret.txt",
        "..%5csecret.txt",
        "....//secret.txt",
        "..;/secret.txt",
        "%c0%ae%c0%ae/secret.txt",
        "%2e%2e%c0%afsecret.txt",
        "/etc/passwd",
        "//etc/passwd",
        "%2fetc%2fpasswd",
        "sub/a b.txt%00",
        "%00",
        "sub%00/../../secret.txt",
        ".hidden",
        "sub/.",
        "sub",
        "link.txt",
        "up.txt",
        "out/secret.txt",
        "out",
        "loop",
        "pipe",
        "nothing.txt",
        "sub/a b.txt/",
        "C:\\Windows",
        "%",
        "%zz",
    ];
    let others = [
        "file:///etc/passwd",
        "file:///../../etc/passwd",
        "file://localhost/etc/passwd",
        "file:/etc/passwd",
        "/etc/passwd",
        "\\\\host\\share",
        "file://host/share",
        "javascript:alert(1)",
        "http://127.0.0.1/",
        "",
        " ",
        "file:",
        "file:///",
        "FILE:///notes/todo.txt",
        "file:///notes/todo.txt/..",
        "file:///notes//todo.txt",
        "\r\nx: y",
        "{+path}",
        "file:///dir/{path}",
    ];
    let long = [
        long(64 << 10),
        format!("file:///dir/{}", long(64 << 10)),
        format!("file:///dir/{}", "a/".repeat(500_000)),
        format!("file:///dir/{}", "%2e".repeat(300_000)),
        format!("test://template/{}", "{id}".repeat(250_000)),
    ];
    let within = within.into_iter().map(|path| refused(format!("file:///dir/{path}")));
    let others = others.into_iter().map(|uri| refused(uri.to_owned()));
    let long = long.into_iter().map(|uri| refused(uri).too_long_for_headers(way));
    within.chain(others).chain(long).collect()
}

#[test]
fn only_files_inside_the_directory_are_read() {
    let served = Served::new();
    let site = Site::start(&["--resources", served.path()]);
    for way in WAYS {
        let mut peer = Peer::open(&site, way);
        for path in ["sub/a%20b.txt", "within.txt"] {
            let read = peer.ask("resources/read", &json!({ "uri": format!("file:///dir/{path}") }));
            assert_eq!(read["result"]["contents"][0]["text"], "inside", "{way:?} {path}: {read}");
        }
        let name = served.path().rsplit('/').next().expect("a name");
        for path in [format!("../{name}/../secret.txt"), format!("../{name}/sub/a%20b.txt")] {
            let refused = peer.ask("resources/read", &json!({ "uri": format!("file:///dir/{path}") }));
            assert!(refused["error"].is_object() && !refused.to_string().contains(SECRET), "{refused}");
        }
        let list = peer.ask("resources/list", &json!({})).to_string();
        assert!(
            list.contains("a%20b.txt") && !list.contains("link.txt") && !list.contains("hidden"),
            "{list}"
        );
        let not_there = peer.ask("resources/read", &json!({ "uri": "file:///dir/out/secret.txt" }));
        assert_eq!(not_there["error"]["data"]["uri"], "file:///dir/out/secret.txt");
        assert!(!not_there.to_string().contains(served.path()), "no path of the server: {not_there}");
    }
}
