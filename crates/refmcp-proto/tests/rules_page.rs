//! `docs/rules.md` has the catalogue of rules; `cargo xtask rules-page --update` writes it.

#![allow(clippy::disallowed_methods, reason = "a page is compared with a file")]

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

use refmcp_proto::rule;

const INTRODUCTION: &str = "\
# Rules

What the specification demands of clients and servers, in sentences of this project; the ids are this project's too, and link to
the specification. Findings (in the log, in the metric `refmcp_findings_total`, in the tool `about_me`) name these ids.

`must` stands for MUST and MUST NOT, `should` for SHOULD and SHOULD NOT, `may` for MAY, `note` for what is described without
such a word or read between the lines. The tables come from `crates/refmcp-proto/src/rule/`; `cargo xtask rules-page --update`
writes them here.
";

#[test]
fn the_page_has_the_catalogue() {
    let mut page = INTRODUCTION.to_owned();
    for area in rule::CATALOG {
        write!(
            page,
            "\n## {}\n\n| id | level | bound | revisions | rule |\n|---|---|---|---|---|\n",
            area.title
        )
        .unwrap();
        for rule in area.rules {
            let (level, party, revisions) = (rule.level, rule.party, rule.revisions);
            let text = rule.text.replace('|', "\\|");
            writeln!(page, "| [{rule}]({}) | {level} | {party} | {revisions} | {text} |", rule.link())
                .unwrap();
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/rules.md");
    if env::var_os("UPDATE").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    let differs = written.lines().zip(page.lines()).find(|(written, line)| written != line);
    assert!(
        written == page,
        "docs/rules.md is not what the catalogue has, first {differs:?}; run: cargo xtask rules-page --update"
    );
}
