//! Licence expressions: `MIT OR (Apache-2.0 AND BSD-3-Clause)`.

/// Whether the expression can be met with allowed licences alone. What cannot be read cannot be met.
pub(crate) fn is_met(expression: &str, allowed: &[String]) -> bool {
    // Before expressions there was the slash.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = Words { rest: spaced.split_whitespace().collect(), allowed };
    words.rest.reverse();
    words.any() == Some(true) && words.rest.is_empty()
}

/// The words still to be read, next one last.
struct Words<'a> {
    rest: Vec<&'a str>,
    allowed: &'a [String],
}

impl Words<'_> {
    /// `all OR all OR …`
    fn any(&mut self) -> Option<bool> {
        let mut met = self.all()?;
        while self.take("OR") {
            met |= self.all()?;
        }
        Some(met)
    }

    /// `one AND one AND …`
    fn all(&mut self) -> Option<bool> {
        let mut met = self.one()?;
        while self.take("AND") {
            met &= self.one()?;
        }
        Some(met)
    }

    /// A licence, perhaps with an exception, or an expression in parentheses.
    fn one(&mut self) -> Option<bool> {
        let word = self.rest.pop()?;
        if word == "(" {
            let met = self.any()?;
            return self.take(")").then_some(met);
        }
        if ["AND", "OR", "WITH", ")"].contains(&word) {
            return None;
        }
        let name =
            if self.take("WITH") { format!("{word} WITH {}", self.rest.pop()?) } else { word.to_owned() };
        Some(self.allowed.contains(&name))
    }

    fn take(&mut self, word: &str) -> bool {
        let is_next = self.rest.last() == Some(&word);
        if is_next {
            self.rest.pop();
        }
        is_next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(expression: &str) -> bool {
        is_met(expression, &["MIT".to_owned(), "Apache-2.0".to_owned()])
    }

    #[test]
    fn a_choice_needs_one_and_a_sum_needs_all() {
        assert!(met("MIT"));
        assert!(met("GPL-3.0 OR MIT"));
        assert!(met("MIT/GPL-3.0"));
        assert!(met("MIT AND Apache-2.0"));
        assert!(!met("MIT AND GPL-3.0"));
        assert!(!met("GPL-3.0"));
    }

    #[test]
    fn parentheses_bind() {
        assert!(met("(MIT OR GPL-3.0) AND Apache-2.0"));
        assert!(!met("(MIT OR Apache-2.0) AND GPL-3.0"));
        assert!(met("GPL-3.0 AND MIT OR Apache-2.0"));
    }

    #[test]
    fn an_exception_is_part_of_the_licence() {
        assert!(!met("Apache-2.0 WITH LLVM-exception"));
        assert!(met("Apache-2.0 WITH LLVM-exception OR MIT"));
    }

    #[test]
    fn nonsense_is_not_met() {
        for expression in ["", "(MIT", "MIT)", "MIT OR", "OR MIT", "MIT MIT", "AND"] {
            assert!(!met(expression), "{expression}");
        }
    }
}
