//! What must not be compiled into a crate, however far down it comes from.

use super::{Violation, in_manifest};
use crate::metadata::{Metadata, Package};

/// Who must do without what.
struct Ban {
    crates: Who,
    without: &'static [&'static str],
    because: &'static str,
}

enum Who {
    Only(&'static [&'static str]),
    AllBut(&'static [&'static str]),
}

const BANS: [Ban; 3] = [
    Ban {
        crates: Who::Only(&["refmcp-proto"]),
        without: &["tokio", "hyper", "axum", "rand"],
        because: "the protocol does no IO and has no randomness",
    },
    Ban {
        crates: Who::Only(&["refmcp-server"]),
        without: &["hyper", "axum", "reqwest"],
        because: "a stdio server compiles no HTTP",
    },
    Ban {
        crates: Who::AllBut(&["refmcp", "refmcp-runners", "xtask"]),
        without: &["anyhow", "clap"],
        because: "a library has its own errors and no command line",
    },
];

pub(crate) fn check(metadata: &Metadata) -> Vec<Violation> {
    metadata.members().into_iter().flat_map(|package| banned_in(metadata, package)).collect()
}

fn banned_in(metadata: &Metadata, package: &Package) -> Vec<Violation> {
    let tree = metadata.normal_tree(package);
    let mut violations = Vec::new();
    for ban in BANS.iter().filter(|ban| ban.crates.includes(&package.name)) {
        for way in ban.without.iter().filter_map(|name| tree.get(name)) {
            let (what, because) = (way.join(" -> "), ban.because);
            let what = format!("{} must do without {what}: {because}", package.name);
            violations.push(in_manifest(metadata, package, way[0], what));
        }
    }
    violations
}

impl Who {
    fn includes(&self, name: &str) -> bool {
        match self {
            Self::Only(names) => names.contains(&name),
            Self::AllBut(names) => !names.contains(&name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::sample::{self, Sample};

    fn wrong(samples: &[Sample<'_>]) -> Vec<String> {
        check(&sample::metadata(samples)).into_iter().map(|violation| violation.what).collect()
    }

    #[test]
    fn what_comes_from_afar_is_found_with_its_way() {
        let found = wrong(&[
            ("refmcp-server", &[("normal", "validator")]),
            ("validator", &[("normal", "reqwest")]),
            ("reqwest", &[]),
        ]);
        assert_eq!(
            found,
            ["refmcp-server must do without validator -> reqwest: a stdio server compiles no HTTP"]
        );
    }

    #[test]
    fn tests_may_use_what_the_crate_may_not() {
        let found = wrong(&[
            ("refmcp-proto", &[("dev", "proptest")]),
            ("proptest", &[("normal", "rand")]),
            ("rand", &[]),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn only_programs_have_a_command_line() {
        let samples: &[Sample<'_>] = &[
            ("refmcp", &[("normal", "clap")]),
            ("refmcp-reference", &[("normal", "clap")]),
            ("xtask", &[("normal", "anyhow")]),
            ("anyhow", &[]),
            ("clap", &[]),
        ];
        assert_eq!(wrong(samples).len(), 1);
        assert!(wrong(samples)[0].starts_with("refmcp-reference must do without clap"));
    }
}
