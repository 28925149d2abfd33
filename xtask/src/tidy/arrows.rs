//! Dependencies between our own crates go one way.

use super::{Violation, in_manifest};
use crate::metadata::Metadata;

/// What a crate may use of ours.
enum May {
    Use(&'static [&'static str]),
    UseAnything,
}

/// One line for each crate of the workspace; a new crate gets one before it is used.
const ARROWS: [(&str, May); 18] = [
    ("refmcp-proto", May::Use(&[])),
    ("refmcp-auth", May::Use(&[])),
    ("refmcp-issuer", May::Use(&["refmcp-auth"])),
    ("refmcp-audit", May::Use(&["refmcp-proto", "refmcp-transport"])),
    ("refmcp-transport", May::Use(&["refmcp-proto"])),
    ("refmcp-server", May::Use(&["refmcp-proto", "refmcp-transport"])),
    ("refmcp-client", May::Use(&["refmcp-auth", "refmcp-proto", "refmcp-transport"])),
    ("refmcp-http", May::Use(&["refmcp-auth", "refmcp-proto", "refmcp-transport", "refmcp-server"])),
    (
        "refmcp-testkit",
        May::Use(&["refmcp-audit", "refmcp-faults", "refmcp-proto", "refmcp-transport", "refmcp-server"]),
    ),
    ("refmcp-redis", May::Use(&["refmcp-proto", "refmcp-server"])),
    ("refmcp-reference", May::Use(&["refmcp-server"])),
    ("refmcp-faults", May::Use(&["refmcp-proto"])),
    (
        "refmcp-check",
        May::Use(&[
            "refmcp-audit",
            "refmcp-client",
            "refmcp-proto",
            "refmcp-transport",
            // For tests, which check our own server.
            "refmcp-http",
            "refmcp-reference",
            "refmcp-server",
        ]),
    ),
    ("refmcp-conformance", May::Use(&["refmcp-auth", "refmcp-client"])),
    ("refmcp", May::UseAnything),
    ("refmcp-fuzz", May::UseAnything),
    ("refmcp-runners", May::Use(&[])),
    ("xtask", May::Use(&["refmcp-runners"])),
];

/// What the tests of every crate may use besides.
const FOR_TESTS: &str = "refmcp-testkit";

/// Crates that nothing of ours may depend on.
const NEVER_USED: [&str; 2] = ["refmcp", "xtask"];

pub(crate) fn check(metadata: &Metadata) -> Vec<Violation> {
    let members = metadata.members();
    let mut violations = Vec::new();
    for package in &members {
        let Some((_, may)) = ARROWS.iter().find(|(name, _)| *name == package.name) else {
            let what = format!("{} has no line in xtask/src/tidy/arrows.rs: what may it use?", package.name);
            violations.push(in_manifest(metadata, package, "name", what));
            continue;
        };
        for dependency in &package.dependencies {
            let name = dependency.name.as_str();
            if !members.iter().any(|member| member.name == name) {
                continue;
            }
            let for_tests = dependency.kind.as_deref() == Some("dev") && name == FOR_TESTS;
            let allowed = match may {
                May::Use(names) => names.contains(&name) || for_tests,
                May::UseAnything => true,
            };
            if !allowed || NEVER_USED.contains(&name) {
                let what = format!("{} must not depend on {name}", package.name);
                violations.push(in_manifest(metadata, package, name, what));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::sample::{self, Sample};

    fn wrong(samples: &[Sample<'_>]) -> Vec<String> {
        check(&sample::metadata(samples)).into_iter().map(|violation| violation.what).collect()
    }

    #[test]
    fn arrows_that_point_down_are_right() {
        let found = wrong(&[
            ("refmcp-proto", &[("normal", "serde"), ("dev", "refmcp-testkit")]),
            ("refmcp-transport", &[("normal", "refmcp-proto")]),
            ("refmcp-server", &[("normal", "refmcp-proto"), ("normal", "refmcp-transport")]),
            ("refmcp-testkit", &[("normal", "refmcp-server")]),
            ("refmcp-reference", &[("normal", "refmcp-server"), ("dev", "refmcp-testkit")]),
            ("refmcp", &[("normal", "refmcp-reference"), ("normal", "refmcp-transport")]),
            ("serde", &[]),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn an_arrow_that_points_up_is_wrong_also_in_tests() {
        let found = wrong(&[
            ("refmcp-proto", &[("normal", "refmcp-transport")]),
            ("refmcp-reference", &[("normal", "refmcp-transport")]),
            ("refmcp-transport", &[("dev", "refmcp-server")]),
            ("refmcp-server", &[("normal", "refmcp-testkit")]),
            ("refmcp-testkit", &[]),
            ("refmcp", &[]),
            ("xtask", &[("normal", "refmcp")]),
        ]);
        assert_eq!(
            found,
            [
                "refmcp-proto must not depend on refmcp-transport",
                "refmcp-reference must not depend on refmcp-transport",
                "refmcp-server must not depend on refmcp-testkit",
                "refmcp-transport must not depend on refmcp-server",
                "xtask must not depend on refmcp",
            ]
        );
    }

    #[test]
    fn a_crate_that_the_table_does_not_know_is_asked_about() {
        let found = wrong(&[("refmcp-new", &[])]);
        assert_eq!(found, ["refmcp-new has no line in xtask/src/tidy/arrows.rs: what may it use?"]);
    }
}
