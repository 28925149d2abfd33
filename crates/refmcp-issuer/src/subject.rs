//! What tokens call those whom they are about. Of each kind there are as many names as anybody can think of, and none is
//! ever that of another kind.

/// Characters of a person's name.
const LONGEST: usize = 100;

const CLIENT: &str = "client:";
const EMPLOYEE: &str = "employee:";
const WORKLOAD: &str = "workload:";

/// A person who says that this is their name, if it can be one.
pub(crate) fn person(text: &str) -> Option<String> {
    let name = text.trim();
    let fits = !name.is_empty() && name.chars().count() <= LONGEST && !name.chars().any(char::is_control);
    let taken = [CLIENT, EMPLOYEE, WORKLOAD].iter().any(|prefix| name.starts_with(prefix));
    (fits && !taken).then(|| name.to_owned())
}

/// A client that acts for itself.
pub(crate) fn client(id: &str) -> String {
    format!("{CLIENT}{id}")
}

/// Whoever an identity provider calls by this name.
pub(crate) fn employee(issuer: &str, name: &str) -> String {
    qualified(EMPLOYEE, issuer, name)
}

/// Whatever a platform calls by this name.
pub(crate) fn workload(issuer: &str, name: &str) -> String {
    qualified(WORKLOAD, issuer, name)
}

/// The first space ends the issuer, so there is none in it.
fn qualified(prefix: &str, issuer: &str, name: &str) -> String {
    format!("{prefix}{} {name}", issuer.replace('%', "%25").replace(' ', "%20"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_called_as_somebody_else_is() {
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
    fn people_have_names_of_one_line() {
        for good in ["alice", " alice ", "Åsa Öberg", "client", "a:b", "https://me.example"] {
            assert_eq!(person(good).as_deref(), Some(good.trim()), "{good}");
        }
        for bad in ["", "  ", "a\nb", &"a".repeat(LONGEST + 1)] {
            assert_eq!(person(bad), None, "{bad}");
        }
    }
}
