//! Starting a configured server: the program that is found, its arguments, directory and variables. All of it is read once,
//! so that what is shown, remembered and started is the same.

use std::path::{Path, PathBuf};

use refmcp_auth::secret::Secret;
use refmcp_client::child::ChildProcess;

use super::{Launch, Problem, ServerEntry, env_file, read};
use crate::args::sha256_hex;
use crate::store::trust::Source;

/// How a server is started.
pub(crate) struct Start {
    pub(crate) child: ChildProcess,
    /// The program as it is written, and its arguments.
    pub(crate) words: Vec<String>,
    /// Variables that the file and its `envFile` set, as they come.
    pub(crate) variables: Vec<(String, Secret)>,
    /// The `envFile`, as it was read.
    pub(crate) env_file: Option<Source>,
}

impl ServerEntry {
    /// How its program is started, if it names one; its variables are filled in. Reads the file with its environment
    /// variables.
    ///
    /// # Errors
    /// That file cannot be read.
    pub(crate) fn start(&self) -> Result<Option<Start>, Problem> {
        let Launch::Command { program, args, env, cwd, env_file } = &self.launch else { return Ok(None) };
        let (mut variables, env_file) = match env_file {
            Some(path) => self.env_file(path).map(|(variables, file)| (variables, Some(file)))?,
            None => (Vec::new(), None),
        };
        // Those of the entry come first.
        variables.retain(|(name, _)| env.iter().all(|(own, _)| own != name));
        variables.extend(env.iter().cloned());
        let given = variables.iter().map(|(name, value)| (name, value.reveal()));
        let child = ChildProcess::new(program).args(args).envs(given);
        let child = match cwd {
            Some(cwd) => child.current_dir(cwd),
            None => child,
        };
        let words = std::iter::once(program).chain(args).cloned().collect();
        Ok(Some(Start { child, words, variables, env_file }))
    }

    /// The variables of an `envFile`, and the file.
    fn env_file(&self, path: &Path) -> Result<(Vec<(String, Secret)>, Source), Problem> {
        let text = read::text_of(path).map_err(|problem| {
            let why = format!("{} {}", path.display(), problem.message);
            Problem::error(&self.source, why).of_server(&self.name).of_member("envFile")
        })?;
        let file = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let file = Source { file: file.to_string_lossy().into_owned(), sha256: sha256_hex(text.as_bytes()) };
        Ok((env_file::parse(&text), file))
    }
}

impl Start {
    /// The absolute path of the directory that it runs in.
    pub(crate) fn directory(&self) -> PathBuf {
        let directory = self.child.directory().unwrap_or(Path::new("."));
        std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned())
    }

    /// The program as it is found, and its arguments.
    pub(crate) fn found_words(&self) -> Vec<String> {
        let program = self.child.program().to_string_lossy().into_owned();
        std::iter::once(program).chain(self.words.iter().skip(1).cloned()).collect()
    }
}

/// Variables that decide which programs or libraries run, or whom they talk to.
const CHANGE_WHAT_RUNS: &str = "BASHOPTS BASH_ENV BROWSER CDPATH CLASSPATH CURL_CA_BUNDLE CURL_HOME DOCKER_HOST \
    DOTNET_STARTUP_HOOKS EDITOR ENV GCONV_PATH GEM_HOME GEM_PATH HOME IFS JAVA_HOME JAVA_TOOL_OPTIONS \
    JDK_JAVA_OPTIONS KUBECONFIG LOCPATH LUA_CPATH LUA_INIT LUA_PATH NODE_EXTRA_CA_CERTS NODE_OPTIONS NODE_PATH \
    NODE_REPL_EXTERNAL_MODULE OPENSSL_CONF OPENSSL_MODULES PAGER PATH PATHEXT PERL5DB PERL5LIB PERL5OPT PERLLIB PHPRC \
    PHP_INI_SCAN_DIR PROMPT_COMMAND PS4 REQUESTS_CA_BUNDLE RUBYLIB RUBYOPT RUSTC_WRAPPER RUSTFLAGS SHELL SHELLOPTS \
    SSH_ASKPASS SSL_CERT_DIR SSL_CERT_FILE VISUAL XDG_CONFIG_HOME ZDOTDIR _JAVA_OPTIONS";

/// Beginnings of names of such variables.
const CHANGING_STARTS: &str =
    "BASH_FUNC_ CARGO_ CORECLR_ COR_ DYLD_ GIT_ LD_ NPM_CONFIG_ PIP_ PYTHON UV_ _RLD";

/// Whether a variable decides which programs or libraries run, or whom they talk to.
pub(crate) fn changes_what_runs(name: &str) -> bool {
    // Some of them are read in small letters as well, and on Windows letters are all the same.
    let name = name.to_ascii_uppercase();
    CHANGE_WHAT_RUNS.split_whitespace().any(|known| known == name)
        || CHANGING_STARTS.split_whitespace().any(|start| name.starts_with(start))
        || name.ends_with("_PROXY")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_change_what_runs_are_known() {
        for name in "PATH LD_PRELOAD LD_LIBRARY_PATH DYLD_INSERT_LIBRARIES NODE_OPTIONS PYTHONSTARTUP PYTHONPATH BASH_ENV \
                     ENV PERL5OPT RUBYOPT GIT_SSH_COMMAND HTTPS_PROXY http_proxy npm_config_registry Path"
            .split_whitespace()
        {
            assert!(changes_what_runs(name), "{name}");
        }
        for name in ["LOG_LEVEL", "API_KEY", "PATHS", "ENVIRONMENT", "PROXY_MODE"] {
            assert!(!changes_what_runs(name), "{name}");
        }
    }
}
