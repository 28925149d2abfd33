//! The environment variables of a server.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};

/// Inherited variables: paths, users and locales. None is a secret.
const NOT_SECRET: &str = "HOME LANG LANGUAGE LOGNAME PATH SHELL TERM TMPDIR TZ USER XDG_CACHE_HOME XDG_CONFIG_HOME \
                          XDG_DATA_HOME XDG_RUNTIME_DIR XDG_STATE_HOME";

/// The same on Windows.
const NOT_SECRET_ON_WINDOWS: &str = "APPDATA COMSPEC HOMEDRIVE HOMEPATH LOCALAPPDATA PATHEXT PROGRAMDATA PROGRAMFILES \
                                     SYSTEMDRIVE SYSTEMROOT TEMP TMP USERNAME USERPROFILE WINDIR";

fn is_not_secret(name: &str) -> bool {
    let is_in = |names: &str| names.split(' ').any(|listed| listed == name);
    is_in(NOT_SECRET) || (cfg!(windows) && is_in(NOT_SECRET_ON_WINDOWS)) || name.starts_with("LC_")
}

/// Which variables are inherited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Inherited {
    None,
    NotSecret,
    All,
}

/// The environment of a server.
#[derive(Clone)]
pub(super) struct Environment {
    inherited: Inherited,
    named: BTreeSet<OsString>,
    set: BTreeMap<OsString, OsString>,
}

impl Default for Environment {
    fn default() -> Self {
        Self { inherited: Inherited::NotSecret, named: BTreeSet::new(), set: BTreeMap::new() }
    }
}

impl Environment {
    pub(super) fn empty() -> Self {
        Self { inherited: Inherited::None, ..Self::default() }
    }

    pub(super) fn set(&mut self, name: &OsStr, value: &OsStr) {
        self.set.insert(name.to_owned(), value.to_owned());
    }

    pub(super) fn inherit(&mut self, names: impl Iterator<Item = OsString>) {
        self.named.extend(names);
    }

    pub(super) fn inherit_all(&mut self) {
        self.inherited = Inherited::All;
    }

    /// All variables.
    pub(super) fn variables(&self) -> BTreeMap<OsString, OsString> {
        self.choose(std::env::vars_os())
    }

    /// Variables that were set by name.
    pub(super) fn given(&self) -> impl Iterator<Item = (&OsString, &OsString)> {
        self.set.iter()
    }

    fn choose(&self, ours: impl Iterator<Item = (OsString, OsString)>) -> BTreeMap<OsString, OsString> {
        let mut all: BTreeMap<_, _> = ours.filter(|(name, value)| self.inherits(name, value)).collect();
        all.extend(self.set.clone());
        all
    }

    fn inherits(&self, name: &OsStr, value: &OsStr) -> bool {
        let not_secret = || {
            name.to_str().is_some_and(is_not_secret)
                // Shells run functions that are in variables.
                && !value.as_encoded_bytes().starts_with(b"()")
        };
        self.named.contains(name)
            || match self.inherited {
                Inherited::None => false,
                Inherited::NotSecret => not_secret(),
                Inherited::All => true,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(environment: &Environment) -> Vec<String> {
        let ours = [
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("LANG", "() { :; }"),
            ("GITHUB_TOKEN", "hush"),
            ("OTHER", "hush"),
        ];
        let ours = ours.into_iter().map(|(name, value)| (name.into(), value.into()));
        environment
            .choose(ours)
            .into_iter()
            .map(|(name, value)| format!("{}={}", name.display(), value.display()))
            .collect()
    }

    #[test]
    fn only_variables_without_secrets_and_named_ones_are_inherited() {
        let mut environment = Environment::default();
        assert_eq!(chosen(&environment), ["LC_ALL=C", "PATH=/bin"]);
        environment.set("PATH".as_ref(), "/mine".as_ref());
        environment.inherit(["OTHER".into()].into_iter());
        assert_eq!(chosen(&environment), ["LC_ALL=C", "OTHER=hush", "PATH=/mine"]);
    }

    #[test]
    fn nothing_and_everything_can_be_inherited() {
        let mut environment = Environment::empty();
        assert!(chosen(&environment).is_empty());
        environment.inherit_all();
        assert_eq!(chosen(&environment).len(), 5);
    }
}
