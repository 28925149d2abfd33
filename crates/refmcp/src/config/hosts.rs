//! Where VS Code, Claude and Cursor keep their configuration files, on every platform.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde::Serialize;

/// A program that keeps its servers in a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ConfigHost {
    /// Visual Studio Code.
    #[value(name = "vscode")]
    #[serde(rename = "vscode")]
    VsCode,
    /// Claude Desktop.
    ClaudeDesktop,
    /// Claude Code.
    ClaudeCode,
    /// Cursor.
    Cursor,
}

/// Whom a configuration file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConfigScope {
    /// All who work in a folder: the file is in that folder.
    Folder,
    /// One user, in all folders.
    User,
}

/// The system, which decides where the files of a user are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Platform {
    /// Linux and other systems that follow the XDG base directory specification.
    Linux,
    MacOs,
    Windows,
}

/// What a path begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    /// The folder that is worked in.
    Folder,
    /// The user's home.
    Home,
    /// Where the platform keeps the settings of applications.
    Settings,
    /// Where Claude Code keeps its own settings: `CLAUDE_CONFIG_DIR`, or else the user's home.
    ClaudeCode,
}

/// Every file, in the order in which they are looked for: those of a folder first.
const FILES: &[(ConfigHost, ConfigScope, Base, &str)] = &[
    (ConfigHost::ClaudeCode, ConfigScope::Folder, Base::Folder, ".mcp.json"),
    (ConfigHost::VsCode, ConfigScope::Folder, Base::Folder, ".vscode/mcp.json"),
    (ConfigHost::Cursor, ConfigScope::Folder, Base::Folder, ".cursor/mcp.json"),
    (ConfigHost::Cursor, ConfigScope::User, Base::Home, ".cursor/mcp.json"),
    (ConfigHost::ClaudeDesktop, ConfigScope::User, Base::Settings, "Claude/claude_desktop_config.json"),
    (ConfigHost::VsCode, ConfigScope::User, Base::Settings, "Code/User/mcp.json"),
    (ConfigHost::ClaudeCode, ConfigScope::User, Base::ClaudeCode, ".claude.json"),
];

impl Platform {
    /// The one that this program was built for.
    pub(crate) const CURRENT: Self = if cfg!(windows) {
        Self::Windows
    } else if cfg!(target_os = "macos") {
        Self::MacOs
    } else {
        Self::Linux
    };

    /// Where a base is; `None` when the environment does not say.
    fn folder(self, base: Base, directory: &Path, env: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
        let variable = |name| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = || match self {
            Self::Windows => variable("USERPROFILE").or_else(|| variable("HOME")),
            _ => variable("HOME"),
        };
        match (base, self) {
            (Base::Folder, _) => Some(directory.to_owned()),
            (Base::Home, _) => home(),
            (Base::Settings, Self::Linux) => variable("XDG_CONFIG_HOME")
                .filter(|path| path.is_absolute())
                .or_else(|| Some(home()?.join(".config"))),
            (Base::Settings, Self::MacOs) => Some(home()?.join("Library/Application Support")),
            (Base::Settings, Self::Windows) => {
                variable("APPDATA").or_else(|| Some(home()?.join("AppData/Roaming")))
            }
            (Base::ClaudeCode, _) => variable("CLAUDE_CONFIG_DIR").or_else(home),
        }
    }
}

impl ConfigHost {
    /// The member of the file that lists the servers.
    pub(crate) fn member(self) -> &'static str {
        match self {
            Self::VsCode => "servers",
            _ => "mcpServers",
        }
    }

    /// Whether there is a file of this scope.
    pub(crate) fn has(self, scope: ConfigScope) -> bool {
        FILES.iter().any(|(host, of, ..)| *host == self && *of == scope)
    }

    /// The configuration file of this scope: `directory` is the folder that is worked in, `env` knows the environment
    /// variables. `None` when there is no such file, or the environment does not say where the user's files are.
    pub(crate) fn file(
        self,
        scope: ConfigScope,
        platform: Platform,
        directory: &Path,
        env: &dyn Fn(&str) -> Option<OsString>,
    ) -> Option<PathBuf> {
        let (_, _, base, path) = FILES.iter().find(|(host, of, ..)| *host == self && *of == scope)?;
        Some(platform.folder(*base, directory, env)?.join(path))
    }
}

/// The files in which servers are usually listed, for the current directory and user.
pub(crate) fn usual_files() -> Vec<PathBuf> {
    usual_files_in(Path::new("."), Platform::CURRENT, &|name| std::env::var_os(name))
}

/// The files in which servers are usually listed, the nearest first: those of a directory, then those of a user.
pub(super) fn usual_files_in(
    directory: &Path,
    platform: Platform,
    env: &dyn Fn(&str) -> Option<OsString>,
) -> Vec<PathBuf> {
    let found = FILES
        .iter()
        .filter_map(|(_, _, base, path)| Some(platform.folder(*base, directory, env)?.join(path)));
    // No host reads `mcp.json` by itself; documentation uses the name.
    std::iter::once(directory.join("mcp.json")).chain(found).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(platform: Platform, variables: &[(&str, &str)]) -> Vec<Option<String>> {
        let env = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
        let text = |path: PathBuf| path.to_str().unwrap().replace('\\', "/");
        [
            (ConfigHost::VsCode, ConfigScope::Folder),
            (ConfigHost::VsCode, ConfigScope::User),
            (ConfigHost::ClaudeDesktop, ConfigScope::Folder),
            (ConfigHost::ClaudeDesktop, ConfigScope::User),
            (ConfigHost::ClaudeCode, ConfigScope::Folder),
            (ConfigHost::ClaudeCode, ConfigScope::User),
            (ConfigHost::Cursor, ConfigScope::Folder),
            (ConfigHost::Cursor, ConfigScope::User),
        ]
        .map(|(host, scope)| {
            assert_eq!(host.has(scope), host != ConfigHost::ClaudeDesktop || scope == ConfigScope::User);
            host.file(scope, platform, Path::new("w"), &env).map(text)
        })
        .to_vec()
    }

    #[test]
    fn every_file_is_where_its_host_looks_on_every_platform() {
        let linux = [("HOME", "/h"), ("APPDATA", "/wrong"), ("USERPROFILE", "/wrong")];
        let macos = [("HOME", "/Users/h"), ("XDG_CONFIG_HOME", "/wrong")];
        let windows = [("USERPROFILE", "C:/h"), ("HOME", "/wrong"), ("APPDATA", "D:/roaming")];
        for (platform, variables, user) in [
            (
                Platform::Linux,
                &linux[..],
                [
                    "/h/.config/Code/User/mcp.json",
                    "/h/.config/Claude/claude_desktop_config.json",
                    "/h/.claude.json",
                    "/h/.cursor/mcp.json",
                ],
            ),
            (
                Platform::MacOs,
                &macos[..],
                [
                    "/Users/h/Library/Application Support/Code/User/mcp.json",
                    "/Users/h/Library/Application Support/Claude/claude_desktop_config.json",
                    "/Users/h/.claude.json",
                    "/Users/h/.cursor/mcp.json",
                ],
            ),
            (
                Platform::Windows,
                &windows[..],
                [
                    "D:/roaming/Code/User/mcp.json",
                    "D:/roaming/Claude/claude_desktop_config.json",
                    "C:/h/.claude.json",
                    "C:/h/.cursor/mcp.json",
                ],
            ),
        ] {
            let [vscode, desktop, code, cursor] = user.map(|path| Some(path.to_owned()));
            let near = |path: &str| Some(path.to_owned());
            let expected = [
                near("w/.vscode/mcp.json"),
                vscode,
                None,
                desktop,
                near("w/.mcp.json"),
                code,
                near("w/.cursor/mcp.json"),
                cursor,
            ];
            assert_eq!(files(platform, variables), expected, "{platform:?}");
        }
    }

    #[test]
    fn the_environment_moves_files() {
        let at = |platform, variables: &[_], index: usize| files(platform, variables)[index].clone();
        let xdg = |value| [("HOME", "/h"), ("XDG_CONFIG_HOME", value)];
        assert_eq!(at(Platform::Linux, &xdg("/x"), 1).unwrap(), "/x/Code/User/mcp.json");
        assert_eq!(at(Platform::Linux, &xdg("x"), 1).unwrap(), "/h/.config/Code/User/mcp.json");
        let profile = [("USERPROFILE", "C:/h")];
        assert_eq!(at(Platform::Windows, &profile, 1).unwrap(), "C:/h/AppData/Roaming/Code/User/mcp.json");
        let claude = [("HOME", "/h"), ("CLAUDE_CONFIG_DIR", "/c")];
        assert_eq!(at(Platform::MacOs, &claude, 5).unwrap(), "/c/.claude.json");
        for platform in [Platform::Linux, Platform::MacOs, Platform::Windows] {
            let nowhere = files(platform, &[("HOME", "")]);
            assert_eq!(nowhere.iter().flatten().count(), 3, "{platform:?}: only those of the folder");
        }
    }

    #[test]
    fn servers_are_looked_for_in_every_file() {
        let env = |name: &str| (name == "HOME").then(|| OsString::from("/h"));
        let all = usual_files_in(Path::new("/w"), Platform::Linux, &env);
        let expected = [
            "/w/mcp.json",
            "/w/.mcp.json",
            "/w/.vscode/mcp.json",
            "/w/.cursor/mcp.json",
            "/h/.cursor/mcp.json",
            "/h/.config/Claude/claude_desktop_config.json",
            "/h/.config/Code/User/mcp.json",
            "/h/.claude.json",
        ];
        assert_eq!(all, expected.map(PathBuf::from));
    }
}
