//! What is in `deploy`: the options that are used there are those of the program.

use crate::read;
use crate::support::Server;

/// The server starts with these options, wherever they say that it should listen.
fn starts(options: &[&str]) {
    let mut kept = Vec::new();
    let mut options = options.iter();
    while let Some(option) = options.next() {
        match *option {
            "--port" | "--host" => drop(options.next()),
            _ => kept.push(*option),
        }
    }
    assert!(!kept.is_empty());
    assert!(Server::start(&kept).greet().starts_with("HTTP/1.1 200 OK"), "{kept:?}");
}

#[test]
fn the_unit_starts_the_server() {
    let unit = read("deploy/refmcp.service");
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let words: Vec<&str> = line.split(' ').collect();
    assert_eq!(words[..2], ["/usr/local/bin/refmcp", "serve"]);
    starts(&words[2..]);
    assert!(unit.contains("ExecReload=/bin/kill -HUP $MAINPID"));
}

#[test]
fn the_image_starts_the_server() {
    let file = read("deploy/Containerfile");
    let line = file.lines().find_map(|line| line.strip_prefix("CMD ")).unwrap();
    let words: Vec<String> = serde_json::from_str(line).unwrap();
    assert_eq!(words[0], "serve");
    let words: Vec<&str> = words[1..].iter().map(String::as_str).collect();
    starts(&words);
    let version = env!("CARGO_PKG_RUST_VERSION");
    assert!(file.contains(&format!("rust:{version}-")), "it is built with the Rust that it needs: {version}");
}
