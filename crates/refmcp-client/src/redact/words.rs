//! The words of a command, one after the other: what a word means depends on those before it.

use serde_json::Value;

use super::name::{is_name, is_password, is_random, is_secret, is_secret_member, is_variable, sets_variable};
use super::script::{Piece, pieces, unquoted};
use super::url::masked_query;
use super::{MASK, url};

/// Scripts within scripts that are looked into; a word with more of them is hidden whole.
const DEEPEST: usize = 4;

/// What the words are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// To be shown or written down.
    Shown,
    /// To be agreed to.
    Confirmed,
}

/// What the next word is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Anything,
    /// The value of a secret option.
    Secret,
    /// `NAME=VALUE`, whatever the name.
    Variable,
    /// `NAME: VALUE`.
    Header,
    /// `USER:PASSWORD`.
    Login,
    /// The value of `-p`: a password, or a port, a path, a package.
    PasswordOrPort,
    /// `=` and then a secret, as in `options['password'] = 'secret'`.
    Assignment,
    /// A script for a shell.
    Script,
}

/// The words with their secrets masked.
pub(super) fn masked<'a>(words: impl Iterator<Item = &'a str>, mode: Mode, depth: usize) -> Vec<String> {
    let mut masking = Masking { mode, depth, next: Next::Anything, variables: true, program: String::new() };
    words.map(|word| masking.word(word)).collect()
}

struct Masking {
    mode: Mode,
    depth: usize,
    next: Next,
    /// Whether `NAME=VALUE` sets a variable here: before the program, and after `env`.
    variables: bool,
    program: String,
}

impl Masking {
    fn word(&mut self, word: &str) -> String {
        let bare = unquoted(word).map_or(word, |(_, bare)| bare);
        let next = match self.next {
            // The value was left out.
            Next::Secret if is_option(bare) => Next::Anything,
            Next::Assignment if !is_assignment(bare) => Next::Anything,
            Next::PasswordOrPort if bare.starts_with('-') || !self.is_password(bare) => Next::Anything,
            next => next,
        };
        self.next = self.after(bare, next);
        let shown = match next {
            Next::Secret if is_scheme(bare) => bare.to_owned(),
            Next::Secret | Next::PasswordOrPort => self.hidden(bare),
            Next::Assignment => bare.to_owned(),
            Next::Header => self.header(bare),
            Next::Login => match bare.split_once(':') {
                Some((user, password)) => format!("{user}:{}", self.hidden(password)),
                None => self.any(bare),
            },
            Next::Variable => match bare.split_once('=') {
                Some((name, value)) => format!("{name}={}", self.hidden(value)),
                None => self.any(bare),
            },
            Next::Script => self.script(bare),
            Next::Anything => self.first_or_any(bare),
        };
        let ends_variables = self.variables && !bare.contains('=') && !bare.starts_with('-');
        if ends_variables {
            program(bare).clone_into(&mut self.program);
            self.variables = self.program == "env";
        }
        match unquoted(word) {
            Some((quote, _)) if shown != MASK => format!("{quote}{shown}{quote}"),
            _ => shown,
        }
    }

    /// What comes after a word that is this.
    fn after(&self, word: &str, is: Next) -> Next {
        match (word, is) {
            // `Authorization: Bearer …` in a script.
            (word, Next::Secret | Next::Anything) if is_scheme(word) => Next::Secret,
            (_, Next::Assignment) => Next::Secret,
            (_, is) if is != Next::Anything => Next::Anything,
            ("-c" | "/c", _) => Next::Script,
            ("-p", _) => Next::PasswordOrPort,
            (word, _) if sets_variable(word) => Next::Variable,
            ("-H" | "--header" | "--headers", _) => Next::Header,
            ("-u" | "--user", _) => Next::Login,
            (word, _) if word.starts_with('-') && is_name(word) && is_secret(word) => Next::Secret,
            (word, _) if word.strip_suffix(':').is_some_and(is_secret_member) => Next::Secret,
            // An option as Windows programs have them.
            (word, _) if word.strip_prefix('/').is_some_and(|name| is_name(name) && is_secret(name)) => {
                Next::Secret
            }
            (word, _) if is_secret_member(word) => Next::Assignment,
            _ => Next::Anything,
        }
    }

    /// Whether this is the password after `-p`. Where a person agrees to a command it is not hidden: `-p` may name the
    /// package that is run.
    fn is_password(&self, value: &str) -> bool {
        self.mode == Mode::Shown && is_password(&self.program, value)
    }

    fn first_or_any(&self, word: &str) -> String {
        match word.split_once('=') {
            Some((name, value)) if self.variables && is_name(name) && !name.starts_with('-') => {
                format!("{name}={}", self.hidden(value))
            }
            _ => self.any(word),
        }
    }

    fn any(&self, word: &str) -> String {
        // A connection string: `Server=db;Password=…`.
        if word.contains(';') && word.contains('=') && !word.contains("://") {
            return word.split(';').map(|part| self.setting(part)).collect::<Vec<_>>().join(";");
        }
        if let Some((name, value)) = word.split_once('=').filter(|(name, _)| is_name(name)) {
            let short = name.strip_prefix("-e").is_some_and(is_variable);
            let value = match name {
                "-H" | "--header" | "--headers" => self.header(value),
                _ if sets_variable(name) => match value.split_once('=') {
                    Some((variable, value)) => format!("{variable}={}", self.hidden(value)),
                    None => value.to_owned(),
                },
                _ if short || is_variable(name) || is_secret(name) => self.hidden(value),
                _ => self.any(value),
            };
            return format!("{name}={value}");
        }
        if let Some(value) = word.strip_prefix("-p").filter(|value| self.is_password(value)) {
            return format!("-p{}", self.hidden(value));
        }
        // `options['password']='secret'`.
        if let Some((before, value)) = word.split_once('=')
            && is_secret_member(before)
        {
            return format!("{before}={}", self.hidden(value));
        }
        if word.starts_with(['{', '['])
            && let Ok(value) = serde_json::from_str(word)
        {
            return self.json(value).to_string();
        }
        if word.contains(char::is_whitespace) {
            return self.script(word);
        }
        if word.contains("://") {
            return url(word);
        }
        // An address whose scheme was left out.
        if let Some((place, query)) = word.split_once('?').filter(|(_, query)| query.contains('=')) {
            return format!("{}?{}", self.any(place), masked_query(query));
        }
        // A login without a scheme: `user:password@host`.
        if let Some((login, host)) = word.rsplit_once('@').filter(|(login, _)| login.contains(':')) {
            return format!("{}@{host}", self.hidden(login));
        }
        // `--token:VALUE`, `/token:VALUE`.
        if let Some((name, value)) = word.split_once(':')
            && name
                .strip_prefix('/')
                .unwrap_or(name)
                .starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-')
            && is_name(name.strip_prefix('/').unwrap_or(name))
            && is_secret(name)
        {
            return format!("{name}:{}", self.hidden(value));
        }
        if is_random(word) { self.hidden(word) } else { word.to_owned() }
    }

    /// A part of a connection string. Its names may have blanks in them.
    fn setting(&self, part: &str) -> String {
        match part.split_once('=') {
            Some((name, value)) if is_secret(name) => format!("{name}={}", self.hidden(value)),
            Some((name, value)) => format!("{name}={}", self.any(value)),
            None => self.any(part),
        }
    }

    fn header(&self, header: &str) -> String {
        match header.split_once(':') {
            Some((name, value)) => {
                let value = value.trim_start();
                // A value for HTTP may have spaces in it.
                let shown = if self.mode == Mode::Shown || is_inert(&value.replace([' ', '/'], "")) {
                    MASK
                } else {
                    value
                };
                format!("{name}: {shown}")
            }
            None => self.hidden(header),
        }
    }

    /// Texts in JSON are all hidden: what they are for only the program knows.
    fn json(&self, value: Value) -> Value {
        match value {
            Value::String(text) => self.hidden(&text).into(),
            Value::Array(items) => items.into_iter().map(|item| self.json(item)).collect(),
            Value::Object(members) => {
                members.into_iter().map(|(name, value)| (name, self.json(value))).collect()
            }
            other => other,
        }
    }

    fn script(&self, script: &str) -> String {
        if self.depth >= DEEPEST {
            return MASK.to_owned();
        }
        let pieces = pieces(script);
        let words = pieces.iter().filter_map(|piece| match piece {
            Piece::Word(word) => Some(*word),
            Piece::Separator(_) => None,
        });
        let mut words = masked(words, self.mode, self.depth + 1).into_iter();
        let shown = pieces.iter().map(|piece| match piece {
            Piece::Separator(text) => (*text).to_owned(),
            Piece::Word(_) => words.next().unwrap_or_default(),
        });
        shown.collect()
    }

    fn hidden(&self, value: &str) -> String {
        if value.is_empty() || (self.mode == Mode::Confirmed && !is_inert(value)) {
            return value.to_owned();
        }
        MASK.to_owned()
    }
}

/// Whether a shell does nothing with a value and it is no path.
fn is_inert(value: &str) -> bool {
    value.chars().all(|c| c.is_ascii_alphanumeric() || "_.~+=:-".contains(c))
}

fn is_option(word: &str) -> bool {
    word.starts_with("--") || (word.starts_with('-') && word.len() == 2)
}

/// What stands between a name and its value, in the languages that programs are given on a command line.
fn is_assignment(word: &str) -> bool {
    matches!(word, "=" | ":" | ":=" | "=>" | "==")
}

/// A scheme of HTTP's authorization, before the secret.
fn is_scheme(word: &str) -> bool {
    ["bearer", "basic", "dpop"].iter().any(|scheme| word.eq_ignore_ascii_case(scheme))
}

fn program(word: &str) -> &str {
    word.rsplit(['/', '\\']).next().unwrap_or(word)
}
