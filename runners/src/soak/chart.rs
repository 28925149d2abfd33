//! The samples of a run as SVG, readable on white and on black: memory above, latency below.

use super::sample::{MIB, Sample};

const WIDTH: f64 = 800.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 780.0;

/// Where a panel begins, and how high it is.
const MEMORY: (f64, f64) = (56.0, 170.0);
const LATENCY: (f64, f64) = (282.0, 90.0);

const STYLE: &str = "\
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-size: 15px; font-weight: 600 }
.faint { fill: #59636e }
.mark { stroke: #d1d9e0 }
path { fill: none }
.rss { stroke: #0969da; stroke-width: 1.5 }
.held { stroke: #bf8700; stroke-width: 1.5 }
.p99 { stroke: #8250df; stroke-width: 1.5 }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc }
  .faint { fill: #9198a1 }
  .mark { stroke: #3d444d }
  .rss { stroke: #4493f8 }
  .held { stroke: #d29922 }
  .p99 { stroke: #a371f7 }
}";

pub(super) fn draw(samples: &[Sample]) -> String {
    let height = LATENCY.0 + LATENCY.1 + 30.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n\
         <title>Memory and latency of refmcp serve under hostile load</title>\n<style>\n{STYLE}\n</style>\n"
    );
    svg += &text(10.0, 22.0, "title", "refmcp serve --memory 256M under hostile load");
    svg += &text(10.0, 42.0, "faint", "MiB: resident memory (blue), bytes held for clients (yellow)");
    let memory: [Curve; 2] =
        [("rss", |sample| sample.rss as f64 / MIB), ("held", |sample| sample.held as f64 / MIB)];
    svg += &panel(samples, MEMORY, &memory);
    svg += &text(10.0, LATENCY.0 - 14.0, "faint", "ms: p99 of a well-behaved client, each second");
    svg += &panel(samples, LATENCY, &[("p99", |sample| sample.p99)]);
    let end = samples.last().map_or(0.0, |sample| sample.at);
    svg += &format!(
        "<text class=\"faint\" x=\"{RIGHT}\" y=\"{:.1}\" text-anchor=\"end\">{end:.0} s</text>\n",
        height - 10.0
    );
    svg + "</svg>\n"
}

/// The class of a curve, and its values.
type Curve = (&'static str, fn(&Sample) -> f64);

fn panel(samples: &[Sample], (top, height): (f64, f64), curves: &[Curve]) -> String {
    let end = samples.last().map_or(1.0, |sample| sample.at.max(1.0));
    let values = samples.iter().flat_map(|sample| curves.iter().map(|(_, value)| value(sample)));
    let scale = round_up(values.fold(1.0, f64::max));
    let x = |sample: &Sample| LEFT + (RIGHT - LEFT) * sample.at / end;
    let y = |value: f64| top + height * (1.0 - value / scale);
    let mut svg = String::new();
    for mark in [0.0, scale / 2.0, scale] {
        let at = y(mark);
        svg += &format!("<path class=\"mark\" d=\"M{LEFT} {at:.1}H{RIGHT}\"/>\n");
        svg += &format!(
            "<text class=\"faint\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{mark}</text>\n",
            LEFT - 6.0,
            at + 4.0
        );
    }
    for (class, value) in curves {
        let points: Vec<String> =
            samples.iter().map(|sample| format!("{:.1} {:.1}", x(sample), y(value(sample)))).collect();
        svg += &format!("<path class=\"{class}\" d=\"M{}\"/>\n", points.join("L"));
    }
    svg
}

/// The next number with one digit and zeros, even so that its half is whole.
fn round_up(value: f64) -> f64 {
    let unit = 10f64.powf(value.log10().floor());
    let digit = (value / unit).ceil();
    if unit > 1.0 { digit * unit } else { (digit / 2.0).ceil() * 2.0 * unit }
}

fn text(x: f64, y: f64, class: &str, words: &str) -> String {
    format!("<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{words}</text>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_fill_their_panel() {
        let sample = |at, rss| Sample { at, rss, ..Sample::default() };
        let svg = draw(&[sample(0.0, 0), sample(10.0, 300 << 20)]);
        assert!(svg.contains("class=\"rss\" d=\"M56.0 226.0L780.0 56.0\""), "{svg}");
        assert!(svg.contains(">10 s</text>"), "{svg}");
    }

    #[test]
    fn scales_end_with_round_numbers() {
        assert_eq!([1.0, 3.0, 9.5, 12.0, 301.0].map(round_up), [2.0, 4.0, 10.0, 20.0, 400.0]);
    }
}
