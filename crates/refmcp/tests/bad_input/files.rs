//! URIs that lead nowhere, or out of the directory of `--resources`.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use crate::support::{Client, Version};
use crate::table::{Row, VERSIONS, long, request, row, try_under};

const SECRET: &str = "must not be read";

#[test]
fn only_files_inside_the_directory_are_read() {
    let outside = tempfile::tempdir().expect("a directory");
    fs::write(outside.path().join("secret.txt"), SECRET).expect("written");
    let dir = tempfile::tempdir_in(outside.path()).expect("a directory");
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
    let dir_option = root.to_str().expect("UTF-8");
    let name = root.file_name().and_then(|name| name.to_str()).expect("UTF-8");

    for version in VERSIONS {
        let code = if version == Version::Stateless { -32602 } else { -32002 };
        let refused = |uri: String| -> Row {
            let sent = request(version, "resources/read", &json!({ "uri": uri }));
            row(uri.chars().take(60).collect::<String>(), sent).error(code, "resource not found")
        };
        let mut rows: Vec<Row> = [
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
        ]
        .into_iter()
        .map(|path| refused(format!("file:///dir/{path}")))
        .collect();
        rows.push(refused(format!("file:///dir/../{name}/../secret.txt")));
        for uri in [
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
        ] {
            rows.push(refused(uri.to_owned()));
        }
        rows.push(refused(long(64 << 10)));
        rows.push(refused(format!("file:///dir/{}", long(64 << 10))));
        rows.push(refused(format!("file:///dir/{}", "a/".repeat(500_000))));
        rows.push(refused(format!("file:///dir/{}", "%2e".repeat(300_000))));
        rows.push(refused(format!("test://template/{}", "{id}".repeat(250_000))));
        try_under(version, &["--resources", dir_option], &rows);

        let mut client = Client::start(version, &["--resources", dir_option]);
        for path in ["sub/a%20b.txt", "within.txt"] {
            let read = client.ask("resources/read", &json!({ "uri": format!("file:///dir/{path}") }));
            assert_eq!(read["result"]["contents"][0]["text"], "inside", "{path}: {read}");
        }
        let list = client.ask("resources/list", &json!({})).to_string();
        assert!(
            list.contains("a%20b.txt") && !list.contains("link.txt") && !list.contains("hidden"),
            "{list}"
        );
        let not_there = client.ask("resources/read", &json!({ "uri": "file:///dir/out/secret.txt" }));
        assert_eq!(not_there["error"]["data"]["uri"], "file:///dir/out/secret.txt");
        assert!(!not_there.to_string().contains(dir_option), "no path of the server: {not_there}");
    }
}
