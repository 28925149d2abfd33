//! What a Redis must be like, by what it says of itself: a pure function of the text of `INFO`.

use std::collections::HashMap;

use crate::ConnectError;

/// The oldest version that is used, which is the first one whose scripts can ask when a key expires.
const OLDEST: (u32, u32) = (7, 0);

/// What a Redis says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerInfo {
    /// Its name and version.
    pub(crate) version: String,
    /// It writes nothing to disk.
    pub(crate) is_volatile: bool,
}

/// Whether a Redis can be used, by the text of `INFO`.
pub(crate) fn check(info: &str, allow_volatile: bool) -> Result<ServerInfo, ConnectError> {
    let members: HashMap<&str, &str> =
        info.lines().filter_map(|line| line.trim_end().split_once(':')).collect();
    let member = |name: &'static str| members.get(name).copied().ok_or(ConnectError::Silent(name));
    let version = member("redis_version")?;
    let name = match members.get("server_name").copied() {
        Some("valkey") => format!("Valkey {}", members.get("valkey_version").unwrap_or(&version)),
        _ => format!("Redis {version}"),
    };
    let mut numbers = version.split('.').map(|number| number.parse().unwrap_or(0));
    if (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) < OLDEST {
        return Err(ConnectError::TooOld(name));
    }
    match member("redis_mode")? {
        "cluster" => return Err(ConnectError::Cluster),
        "sentinel" => return Err(ConnectError::Sentinel),
        _ => {}
    }
    if member("role")? != "master" {
        return Err(ConnectError::NotPrimary);
    }
    let policy = member("maxmemory_policy")?;
    if policy != "noeviction" {
        return Err(ConnectError::Eviction(policy.to_owned()));
    }
    let is_volatile = member("aof_enabled")? != "1";
    if is_volatile && !allow_volatile {
        return Err(ConnectError::Volatile);
    }
    Ok(ServerInfo { version: name, is_volatile })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(changes: &[(&str, &str)]) -> String {
        let mut members = vec![
            ("redis_version", "7.0.15"),
            ("redis_mode", "standalone"),
            ("role", "master"),
            ("maxmemory_policy", "noeviction"),
            ("aof_enabled", "1"),
        ];
        members.retain(|(name, _)| changes.iter().all(|(changed, _)| changed != name));
        members.extend(changes.iter().filter(|(_, value)| !value.is_empty()));
        let lines: Vec<String> = members.iter().map(|(name, value)| format!("{name}:{value}\r\n")).collect();
        format!("# Server\r\n{}", lines.concat())
    }

    #[test]
    fn a_right_one_is_used() {
        let found = check(&info(&[]), false).unwrap();
        assert_eq!(found, ServerInfo { version: "Redis 7.0.15".into(), is_volatile: false });
        let valkey = [("redis_version", "7.2.4"), ("server_name", "valkey"), ("valkey_version", "8.1.0")];
        assert_eq!(check(&info(&valkey), false).unwrap().version, "Valkey 8.1.0");
        assert!(check(&info(&[("aof_enabled", "0")]), true).unwrap().is_volatile);
        assert!(check(&info(&[("redis_version", "10.0.0")]), false).is_ok());
    }

    #[test]
    fn a_wrong_one_is_refused_with_what_to_do() {
        for (member, value, says) in [
            ("redis_version", "6.2.14", "7.0"),
            ("redis_mode", "cluster", "cluster"),
            ("redis_mode", "sentinel", "Sentinel"),
            ("role", "slave", "primary"),
            ("maxmemory_policy", "allkeys-lru", "maxmemory-policy noeviction"),
            ("aof_enabled", "0", "appendonly yes"),
            ("aof_enabled", "", "aof_enabled"),
        ] {
            let error = check(&info(&[(member, value)]), false).unwrap_err().to_string();
            assert!(error.contains(says), "{member} {value}: {error}");
        }
    }
}
