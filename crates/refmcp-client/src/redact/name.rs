//! Which names and which words are taken for secrets.

/// Parts of a name that say that its value is a secret.
const SECRET_PARTS: &str = "accesskeyid apikey auth authorization bearer cookie credential credentials creds dsn jwt \
                            key keys otp pass passcode passphrase passwd password pat pin private pwd secret secrets \
                            sessionid sig signature token";

/// Ends of a part that say the same: `accesstoken`, `secretkey`.
const SECRET_ENDS: [&str; 4] = ["token", "secret", "password", "key"];

/// Last parts of names whose value only says where a secret is, or how it comes.
const ABOUT_SECRETS: [&str; 8] = ["dir", "env", "file", "method", "mode", "path", "stdin", "type"];

/// How tokens of widespread services begin.
const TOKEN_STARTS: &str = "AIza AKIA eyJ ghp_ gho_ ghs_ github_pat_ glpat- hf_ lin_api_ npm_ ntn_ pat_ secret_ sk- \
                            xoxb- xoxp- ya29.";

/// The fewest characters of a token that begins like one of these, and of any other.
const MIN_KNOWN: usize = 16;
const MIN_RANDOM: usize = 20;
const MIN_HEX: usize = 32;

/// Whether the value of this name is a secret: of an option, a variable, a header or a member.
pub(super) fn is_secret(name: &str) -> bool {
    let parts = parts(name);
    if parts.last().is_some_and(|last| ABOUT_SECRETS.contains(&last.as_str())) {
        return false;
    }
    parts.iter().any(|part| {
        SECRET_PARTS.split(' ').any(|known| known == part)
            || SECRET_ENDS.iter().any(|end| part.ends_with(end))
    })
}

/// The parts of a name in small letters: `--apiKey`, `API_KEY` and `api.key` are `api` and `key`.
fn parts(name: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut part = String::new();
    let mut before_is_small = false;
    for c in name.chars() {
        let begins = c.is_uppercase() && before_is_small;
        if (begins || !c.is_alphanumeric()) && !part.is_empty() {
            parts.push(std::mem::take(&mut part));
        }
        if c.is_alphanumeric() {
            part.extend(c.to_lowercase());
        }
        before_is_small = c.is_lowercase() || c.is_numeric();
    }
    if !part.is_empty() {
        parts.push(part);
    }
    parts
}

/// Whether what follows an option of this name is a variable, `NAME=VALUE`.
pub(super) fn sets_variable(option: &str) -> bool {
    const VARIABLES: [&str; 6] = ["env", "envs", "environment", "var", "vars", "variable"];
    let parts = parts(option);
    let is_environment = parts.iter().any(|part| matches!(part.as_str(), "env" | "envs" | "environment"));
    option == "-e"
        || option.starts_with("--")
            && is_environment
            && parts.last().is_some_and(|last| VARIABLES.contains(&last.as_str()))
}

/// Whether the text before `=` or `:` leads to a member that is a secret: `password` in `options['password']`.
pub(super) fn is_secret_member(text: &str) -> bool {
    let is_closing = |c: char| c.is_whitespace() || "'\"`])".contains(c);
    let name = text.trim_end_matches(is_closing);
    let name = name.rsplit(|c: char| is_closing(c) || "[({,.".contains(c)).next().unwrap_or(name);
    is_name(name) && is_secret(name)
}

/// Words that begin with `p` and stand behind one dash in many programs: none of them is `-p` with a password.
const P_OPTIONS: [&str; 22] = [
    "ackage", "age", "arallel", "arams", "assive", "ath", "aths", "attern", "id", "ing", "lugin", "lugins",
    "olicy", "ort", "orts", "refix", "retty", "rint", "rofile", "roject", "rotocol", "roxy",
];

/// Programs whose option `-p` is anything but a password.
const P_PROGRAMS: [&str; 18] = [
    "bun", "bunx", "cargo", "deno", "docker", "mkdir", "node", "npm", "npx", "perl", "pnpm", "podman",
    "psql", "python", "python3", "ssh", "uv", "uvx",
];

/// Whether what follows `-p` of this program, attached or as the next word, is a password.
pub(super) fn is_password(program: &str, value: &str) -> bool {
    // A port, ports that are mapped, a version.
    let is_number = value.chars().all(|c| c.is_ascii_digit() || ":./-".contains(c));
    let is_path = value.contains(['/', '\\', '=']) || value.starts_with('.');
    !value.is_empty()
        && !is_number
        && !is_path
        && !P_PROGRAMS.contains(&program)
        && !P_OPTIONS.contains(&value)
}

/// Whether a word has the shape of a variable's name as environments have them: `API_KEY`.
pub(super) fn is_variable(name: &str) -> bool {
    let first = name.chars().next();
    first.is_some_and(|c| c.is_ascii_uppercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

/// Whether a word can be the name of a variable, an option or a member.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
}

/// Whether a word is a token by its shape: long, and of letters and digits as no language mixes them.
pub(super) fn is_random(word: &str) -> bool {
    let in_token = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if !word.chars().all(in_token) {
        return false;
    }
    if word.len() >= MIN_KNOWN && TOKEN_STARTS.split(' ').any(|start| word.starts_with(start)) {
        return true;
    }
    let has = |is: fn(&char) -> bool| word.chars().any(|c| is(&c));
    let digit = has(char::is_ascii_digit);
    let mixed = digit && has(char::is_ascii_uppercase) && has(char::is_ascii_lowercase);
    let in_hex = |c: char| c.is_ascii_hexdigit() || c == '-';
    let hex = digit && word.len() >= MIN_HEX && word.chars().all(in_hex);
    // Names of files and hosts have dots.
    (mixed && word.len() >= MIN_RANDOM && !word.contains('.')) || hex
}
