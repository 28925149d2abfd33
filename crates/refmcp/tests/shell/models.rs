//! Models and metadata in the shell: what is selected holds for the lines below.

use crate::REFMCP;
use crate::scripts::{run, text};

#[test]
fn a_model_that_is_selected_stays_selected() {
    for version in ["2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28"] {
        let script = "models\nmodel claude-v2\nmodels\nask_model prompt=hm\nmodel gpt-9\nask_model prompt=hm\nmetadata\n";
        let output = run(
            script,
            &["--protocol-version", version, "--sampler", "grep -o '\"name\":\"[^\"]*\"'", "--yes"],
        );
        let (said, complaints) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(1), "{version}: {said}{complaints}");
        assert!(complaints.contains("unknown model"), "{version}: {complaints}");
        let active: Vec<&str> = said.lines().filter(|line| line.contains("  yes  ")).collect();
        assert_eq!(active.len(), 2, "{version}: {said}");
        assert!(active[0].starts_with("gpt-4 ") && active[1].starts_with("claude-v2 "), "{version}: {said}");
        assert_eq!(said.matches("\"name\":\"claude-v2\"").count(), 2, "{version}: {said}");
        assert!(said.contains("authRequired  false"), "{version}: {said}");
    }
}

#[test]
fn the_shell_can_begin_with_a_model() {
    let output = run("models\n", &["--model", "gpt-3.5-turbo"]);
    let said = text(&output.stdout);
    assert!(said.lines().any(|line| line.starts_with("gpt-3.5-turbo ") && line.contains("yes")), "{said}");
    let output = run("models\n", &["--model", "gpt-9"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("unknown model"));
}

#[test]
fn of_several_servers_those_that_know_models_are_asked() {
    let script = format!(
        "connect -- {REFMCP} stdio --profile conformance\nservers\nmodel claude-v2\nmodels refmcp\n\
         models refmcp-2\ndisconnect refmcp\nmodel claude-v2\n"
    );
    let output = run(&script, &[]);
    let (said, complaints) = (text(&output.stdout), text(&output.stderr));
    assert!(said.contains("refmcp-2 "), "{said}");
    assert!(said.lines().any(|line| line.starts_with("claude-v2 ") && line.contains("yes")), "{said}");
    assert_eq!(complaints.matches("the server declares no models").count(), 2, "{complaints}");
    assert_eq!(output.status.code(), Some(1));
}
