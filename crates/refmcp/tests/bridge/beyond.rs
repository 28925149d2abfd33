//! A bridge that clients of other machines reach.

use super::CHILD;
use super::support::{Process, program, wait_until};

#[test]
fn beyond_this_machine_it_warns() {
    for (from, warns) in [
        ("http://0.0.0.0:0/mcp", true),
        ("ws://[::]:0/mcp", true),
        ("http://127.0.0.1:0/mcp", false),
        ("http://localhost:0/mcp", false),
    ] {
        let words: Vec<&str> = ["bridge", "--from", from].into_iter().chain(CHILD).collect();
        let bridge = Process::spawn(program(&words));
        bridge.next_line().expect("it says where it listens");
        let warned = || bridge.errors().contains("the bridge listens beyond this machine");
        if warns {
            wait_until("the warning", warned);
        }
        assert_eq!(warned(), warns, "{from}: {}", bridge.errors());
    }
}
