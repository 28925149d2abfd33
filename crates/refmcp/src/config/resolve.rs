//! Variables in entries, such as `${input:token}` and `${env:HOME}`.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use refmcp_auth::secret::Secret;

use super::{Input, Launch, ServerEntry, Servers};

impl Servers {
    /// The entry with its variables filled in; whatever they stand for is taken as it is and not searched again.
    ///
    /// Known are `${input:id}`, for which `ask` is called once for each id; `${env:NAME}`, `${NAME}` and
    /// `${NAME:-otherwise}`, which `env` knows; `${workspaceFolder}`, the directory that the file is for;
    /// `${workspaceFolderBasename}`; `${userHome}`; and `${pathSeparator}` or `${/}`. Paths that are not absolute
    /// count from the directory that the file is for.
    ///
    /// # Errors
    /// A variable has no value. The error names the variable, and no value of another one.
    pub(crate) fn resolve(
        &self,
        entry: &ServerEntry,
        ask: &dyn Fn(&Input) -> Result<String, String>,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<ServerEntry> {
        let folder = workspace(&entry.source);
        let source = &entry.source;
        let (asked, used) = (RefCell::default(), RefCell::default());
        let resolver = Resolver { inputs: &self.inputs, source, folder, ask, env, asked, used };
        let launch = resolver.launch(&entry.launch)?;
        let used_variables = resolver.used.into_inner().into_iter().collect();
        Ok(ServerEntry { launch, used_variables, ..entry.clone() })
    }
}

/// The directory that a file is for: the one it is in, or the one that has the editor's directory in it.
fn workspace(source: &Path) -> PathBuf {
    let parent = source.parent().unwrap_or(Path::new(""));
    let of_editor = parent.file_name().is_some_and(|name| name == ".vscode" || name == ".cursor");
    let folder = if of_editor { parent.parent().unwrap_or(Path::new("")) } else { parent };
    // Where the current directory is unknown, what is relative stays so.
    std::path::absolute(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
        .unwrap_or_else(|_| folder.to_owned())
}

struct Resolver<'a> {
    inputs: &'a [Input],
    source: &'a Path,
    folder: PathBuf,
    ask: &'a dyn Fn(&Input) -> Result<String, String>,
    env: &'a dyn Fn(&str) -> Option<String>,
    asked: RefCell<HashMap<String, String>>,
    /// Variables of the environment that were filled in.
    used: RefCell<BTreeSet<String>>,
}

impl Resolver<'_> {
    fn launch(&self, launch: &Launch) -> Result<Launch> {
        Ok(match launch {
            Launch::Command { program, args, env, cwd, env_file } => Launch::Command {
                program: self.text(program)?,
                args: args.iter().map(|arg| self.text(arg)).collect::<Result<_, _>>()?,
                env: self.pairs(env)?,
                cwd: self.path(cwd.as_deref())?,
                env_file: self.path(env_file.as_deref())?,
            },
            Launch::Remote { transport, url, headers } => {
                Launch::Remote { transport: *transport, url: self.text(url)?, headers: self.pairs(headers)? }
            }
        })
    }

    fn pairs(&self, pairs: &[(String, Secret)]) -> Result<Vec<(String, Secret)>> {
        let pair =
            |(name, value): &(String, Secret)| Ok((name.clone(), Secret::new(self.text(value.reveal())?)));
        pairs.iter().map(pair).collect()
    }

    fn path(&self, path: Option<&Path>) -> Result<Option<PathBuf>> {
        let Some(path) = path else { return Ok(None) };
        let text = self.text(&path.to_string_lossy())?;
        Ok(Some(self.folder.join(text)))
    }

    fn text(&self, text: &str) -> Result<String> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            filled.push_str(before);
            let (variable, after) = after
                .split_once('}')
                .ok_or_else(|| anyhow!("a variable that begins with \"${{\" has no end"))?;
            filled.push_str(&self.variable(variable)?);
            rest = after;
        }
        filled.push_str(rest);
        Ok(filled)
    }

    fn variable(&self, variable: &str) -> Result<String> {
        let missing = || anyhow!("${{{variable}}}: the environment has no variable of that name");
        if let Some(id) = variable.strip_prefix("input:") {
            return self.input(id);
        }
        if let Some(name) = variable.strip_prefix("env:") {
            return self.environment(name).ok_or_else(missing);
        }
        let folder = || self.folder.to_string_lossy().into_owned();
        match variable {
            "workspaceFolder" => return Ok(folder()),
            "workspaceFolderBasename" => {
                return Ok(self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned());
            }
            "userHome" => {
                return self
                    .environment("HOME")
                    .or_else(|| self.environment("USERPROFILE"))
                    .ok_or_else(missing);
            }
            "pathSeparator" | "/" => return Ok(std::path::MAIN_SEPARATOR.to_string()),
            _ => {}
        }
        let (name, otherwise) =
            variable.split_once(":-").map_or((variable, None), |(name, value)| (name, Some(value)));
        if !is_variable_name(name) {
            bail!("${{{variable}}} is no variable that is known here");
        }
        // As in a shell, what is empty counts as missing where there is something else to take.
        let is_taken = (self.env)(name).is_some_and(|value| otherwise.is_none() || !value.is_empty());
        let found = is_taken.then(|| self.environment(name)).flatten();
        found.or_else(|| otherwise.map(str::to_owned)).ok_or_else(missing)
    }

    /// The value of a variable of the environment, which is filled in.
    fn environment(&self, name: &str) -> Option<String> {
        let value = (self.env)(name)?;
        self.used.borrow_mut().insert(name.to_owned());
        Some(value)
    }

    fn input(&self, id: &str) -> Result<String> {
        if let Some(answer) = self.asked.borrow().get(id) {
            return Ok(answer.clone());
        }
        let input = self.inputs.iter().find(|input| input.id == id && input.source == *self.source);
        let input = input.ok_or_else(|| anyhow!("${{input:{id}}}: the file has no input of that id"))?;
        let answer = (self.ask)(input).map_err(|why| anyhow!("${{input:{id}}}: {why}"))?;
        if !input.allows(&answer) {
            bail!("${{input:{id}}}: the answer is none of the options");
        }
        self.asked.borrow_mut().insert(id.to_owned(), answer.clone());
        Ok(answer)
    }
}

/// True if a shell would take it for the name of a variable.
pub(crate) fn is_variable_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
