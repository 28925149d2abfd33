//! What `cargo metadata` says about the workspace and everything it depends on.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use refmcp_runners::shell;
use serde::Deserialize;

/// The part of cargo's answer that is used here, with its names.
#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    pub(crate) workspace_members: Vec<String>,
    pub(crate) resolve: Resolve,
    pub(crate) workspace_root: PathBuf,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) license: Option<String>,
    pub(crate) source: Option<String>,
    pub(crate) manifest_path: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) targets: Vec<Target>,
}

/// A line of a manifest.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) kind: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) kind: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Resolve {
    pub(crate) nodes: Vec<Node>,
}

/// A package and what it was really linked to.
#[derive(Debug, Deserialize)]
pub(crate) struct Node {
    pub(crate) id: String,
    pub(crate) deps: Vec<NodeDep>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct NodeDep {
    pub(crate) pkg: String,
    pub(crate) dep_kinds: Vec<DepKind>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct DepKind {
    pub(crate) kind: Option<String>,
}

impl Metadata {
    /// Asks cargo.
    pub(crate) fn load() -> Result<Self> {
        let text = shell::output(&mut shell::cargo(["metadata", "--format-version", "1", "--all-features"]))?;
        serde_json::from_str(&text).context("cannot read what cargo metadata printed")
    }

    /// The workspace's own packages, by name.
    pub(crate) fn members(&self) -> Vec<&Package> {
        let mut members: Vec<_> = self.packages.iter().filter(|package| self.is_member(package)).collect();
        members.sort_by_key(|package| &package.name);
        members
    }

    pub(crate) fn is_member(&self, package: &Package) -> bool {
        self.workspace_members.contains(&package.id)
    }

    /// For every package in the normal dependency tree of `package`, itself left out, the names on one shortest way
    /// to it.
    pub(crate) fn normal_tree(&self, package: &Package) -> HashMap<&str, Vec<&str>> {
        let nodes: HashMap<&str, &Node> =
            self.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
        let names: HashMap<&str, &str> =
            self.packages.iter().map(|package| (package.id.as_str(), package.name.as_str())).collect();
        let mut ways = HashMap::new();
        let mut seen = vec![package.id.as_str()];
        let mut front = vec![(package.id.as_str(), Vec::new())];
        while !front.is_empty() {
            let mut next = Vec::new();
            for (id, way) in front {
                let normal =
                    nodes.get(id).into_iter().flat_map(|node| &node.deps).filter(|dep| dep.is_normal());
                for dep in normal {
                    if seen.contains(&dep.pkg.as_str()) {
                        continue;
                    }
                    seen.push(&dep.pkg);
                    let name = names.get(dep.pkg.as_str()).copied().unwrap_or("?");
                    let mut way = way.clone();
                    way.push(name);
                    ways.entry(name).or_insert_with(|| way.clone());
                    next.push((dep.pkg.as_str(), way));
                }
            }
            front = next;
        }
        ways
    }

    /// A path as it is shown: from the workspace's folder, with forward slashes.
    pub(crate) fn relative(&self, path: &Path) -> String {
        path.strip_prefix(&self.workspace_root).unwrap_or(path).to_string_lossy().replace('\\', "/")
    }
}

impl NodeDep {
    fn is_normal(&self) -> bool {
        self.dep_kinds.iter().any(|kind| kind.kind.is_none())
    }
}

impl Package {
    /// Whether it has an integration test of this name.
    pub(crate) fn has_test(&self, name: &str) -> bool {
        self.targets.iter().any(|target| target.name == name && target.kind.iter().any(|kind| kind == "test"))
    }
}

/// Small workspaces for the tests of the checks.
#[cfg(test)]
pub(crate) mod sample {
    use super::*;

    /// A package: its name and `(kind, name)` of what it depends on; kind is `normal`, `dev` or `build`.
    pub(crate) type Sample<'a> = (&'a str, &'a [(&'a str, &'a str)]);

    /// A workspace whose members have names that start with `refmcp` or are `xtask`; the others come from a registry.
    pub(crate) fn metadata(samples: &[Sample<'_>]) -> Metadata {
        let ours = |name: &str| name.starts_with("refmcp") || name == "xtask";
        let kind = |kind: &str| (kind != "normal").then(|| kind.to_owned());
        Metadata {
            packages: samples.iter().map(|(name, deps)| package(name, deps, ours(name))).collect(),
            workspace_members: samples.iter().map(|s| s.0.to_owned()).filter(|name| ours(name)).collect(),
            resolve: Resolve {
                nodes: samples
                    .iter()
                    .map(|(name, deps)| Node {
                        id: (*name).to_owned(),
                        deps: deps
                            .iter()
                            .map(|(of, dep)| NodeDep {
                                pkg: (*dep).to_owned(),
                                dep_kinds: vec![DepKind { kind: kind(of) }],
                            })
                            .collect(),
                    })
                    .collect(),
            },
            workspace_root: "/nowhere".into(),
        }
    }

    fn package(name: &str, deps: &[(&str, &str)], ours: bool) -> Package {
        Package {
            id: name.to_owned(),
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            license: Some("MIT".to_owned()),
            source: (!ours).then(|| "registry+somewhere".to_owned()),
            manifest_path: format!("/nowhere/crates/{name}/Cargo.toml").into(),
            dependencies: deps
                .iter()
                .map(|(kind, dep)| Dependency {
                    name: (*dep).to_owned(),
                    kind: (*kind != "normal").then(|| (*kind).to_owned()),
                })
                .collect(),
            targets: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_normal_tree_leaves_out_what_only_tests_and_build_scripts_use() {
        let metadata = sample::metadata(&[
            ("refmcp", &[("normal", "a"), ("dev", "b"), ("build", "c")]),
            ("a", &[("normal", "d")]),
            ("b", &[]),
            ("c", &[]),
            ("d", &[("normal", "a")]),
        ]);
        let tree = metadata.normal_tree(metadata.members()[0]);
        assert_eq!(tree, HashMap::from([("a", vec!["a"]), ("d", vec!["a", "d"])]));
    }

    #[test]
    fn this_workspace_can_be_read() {
        let metadata = Metadata::load().unwrap();
        assert!(metadata.members().iter().any(|package| package.name == "xtask"));
    }
}
