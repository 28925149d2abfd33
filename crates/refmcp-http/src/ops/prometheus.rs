//! The text exposition format of Prometheus, version 0.0.4: families of samples with their help and type.

use std::fmt::{Display, Write};

use refmcp_server::Histogram;

pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The text that is being written.
#[derive(Debug, Default)]
pub(crate) struct Exposition(pub(crate) String);

impl Exposition {
    /// Begins a family; its samples follow.
    pub(crate) fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.write(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    pub(crate) fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "gauge", help);
        self.sample(name, &[], value);
    }

    pub(crate) fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "counter", help);
        self.sample(name, &[], value);
    }

    pub(crate) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (index, (label, text)) in labels.iter().enumerate() {
            let open = if index == 0 { '{' } else { ',' };
            self.write(format_args!("{open}{label}=\"{}\"", Escaped(text)));
        }
        let close = if labels.is_empty() { "" } else { "}" };
        self.write(format_args!("{close} {value}\n"));
    }

    pub(crate) fn histogram(&mut self, name: &str, labels: &[(&str, &str)], histogram: &Histogram) {
        let seconds = histogram.total().as_secs_f64();
        let bucket = format!("{name}_bucket");
        let mut all = 0;
        for (bound, count) in histogram.cumulative_buckets() {
            let bound = if bound.is_finite() { bound.to_string() } else { "+Inf".to_owned() };
            self.sample(&bucket, &[labels, &[("le", bound.as_str())]].concat(), count);
            all = count;
        }
        self.sample(&format!("{name}_sum"), labels, seconds);
        self.sample(&format!("{name}_count"), labels, all);
    }

    fn write(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        let _ = self.0.write_fmt(text);
    }
}

struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for character in self.0.chars() {
            match character {
                '\\' => f.write_str("\\\\")?,
                '"' => f.write_str("\\\"")?,
                '\n' => f.write_str("\\n")?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_values_are_escaped() {
        let mut out = Exposition::default();
        out.sample("a", &[("x", "quote \" backslash \\ line\nend"), ("y", "")], 1);
        assert_eq!(out.0, "a{x=\"quote \\\" backslash \\\\ line\\nend\",y=\"\"} 1\n");
    }
}
