//! Subjects of tokens. Users, clients, employees and workloads have separate namespaces, so that no name of one kind equals
//! a name of another.

/// Limit of characters of a user name.
const MAX_CHARACTERS: usize = 100;

const CLIENT: &str = "client:";
const EMPLOYEE: &str = "employee:";
const WORKLOAD: &str = "workload:";

/// The subject of a user name, if it is valid.
pub(crate) fn person(text: &str) -> Option<String> {
    let name = text.trim();
    let fits =
        !name.is_empty() && name.chars().count() <= MAX_CHARACTERS && !name.chars().any(char::is_control);
    let taken = [CLIENT, EMPLOYEE, WORKLOAD].iter().any(|prefix| name.starts_with(prefix));
    (fits && !taken).then(|| name.to_owned())
}

/// The subject of a client that acts for itself.
pub(crate) fn client(id: &str) -> String {
    format!("{CLIENT}{id}")
}

/// The subject of an employee, as an identity provider names them.
pub(crate) fn employee(issuer: &str, name: &str) -> String {
    qualified(EMPLOYEE, issuer, name)
}

/// The subject of a workload, as its platform names it.
pub(crate) fn workload(issuer: &str, name: &str) -> String {
    qualified(WORKLOAD, issuer, name)
}

/// The first space ends the issuer, which contains none.
fn qualified(prefix: &str, issuer: &str, name: &str) -> String {
    format!("{prefix}{} {name}", issuer.replace('%', "%25").replace(' ', "%20"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_of_different_kinds_never_collide() {
        let names = [
            client("a"),
            client("https://i a"),
            employee("https://i", "a"),
            employee("https://j", "a"),
            workload("https://i", "a"),
            workload("https://i", "b a"),
            workload("https://i b", "a"),
            workload("https://i%20b", "a"),
        ];
        let distinct: std::collections::HashSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len(), "{names:?}");
        for name in &names {
            assert_eq!(person(name), None, "{name}");
            assert_eq!(person(&format!(" {name}")), None, "{name}");
        }
        assert_eq!(workload("https://i", "a"), "workload:https://i a");
    }

    #[test]
    fn user_names_are_one_line() {
        for good in ["alice", " alice ", "Åsa Öberg", "client", "a:b", "https://me.example"] {
            assert_eq!(person(good).as_deref(), Some(good.trim()), "{good}");
        }
        for bad in ["", "  ", "a\nb", &"a".repeat(MAX_CHARACTERS + 1)] {
            assert_eq!(person(bad), None, "{bad}");
        }
    }
}
