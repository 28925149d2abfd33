//! Every rule that the digests of the specification have an id for is in the catalogue.

#![allow(clippy::disallowed_methods, reason = "files beside the checkout are read")]

use std::fs;
use std::path::Path;

use refmcp_proto::rule;
use refmcp_testkit::unchecked::not_checked;

/// The ids at the start of the rows of tables: capital letters, a hyphen and a number.
fn ids(text: &str) -> Vec<&str> {
    let is_id = |cell: &&str| {
        cell.split_once('-').is_some_and(|(family, number)| {
            let is_made_of =
                |text: &str, of: fn(&u8) -> bool| !text.is_empty() && text.as_bytes().iter().all(of);
            is_made_of(family, u8::is_ascii_uppercase) && is_made_of(number, u8::is_ascii_digit)
        })
    };
    let first_cells = text.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    first_cells.filter(is_id).collect()
}

#[test]
fn every_id_of_the_digests_is_in_the_catalogue() {
    // They lie beside the schemas.
    let schemas = refmcp_testkit::schema::folder();
    let folder = schemas.as_deref().and_then(Path::parent);
    for (name, least) in [("DIGEST.md", 300), ("EXTENSIONS.md", 150)] {
        let text = folder.map(|folder| fs::read_to_string(folder.join(name)));
        let Some(Ok(text)) = text else {
            not_checked(&format!("the ids of rules, since {name} is not beside ../shared/spec/schema"));
            continue;
        };
        let ids = ids(&text);
        let missing: Vec<_> = ids.iter().filter(|id| rule::find(id).is_none()).collect();
        assert!(missing.is_empty(), "{name} has rules that the catalogue lacks: {missing:?}");
        assert!(ids.len() >= least, "{name} has only {} ids", ids.len());
    }
}

#[test]
fn ids_are_those_of_rows() {
    let text = "| id | level |\n|---|---|\n| RPC-07 | MUST |\n| -32600 | MAY |\n| A-D | x |\nsee RPC-08\n";
    assert_eq!(ids(text), ["RPC-07"]);
}
