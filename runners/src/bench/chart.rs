//! A bar chart as SVG, readable on white and on black.

/// A server: its CPU time per call, and how many times the limit's that is.
#[derive(Debug)]
pub(super) struct Bar {
    pub(super) name: &'static str,
    pub(super) times: f64,
    pub(super) micros: f64,
    pub(super) ours: bool,
}

const WIDTH: f64 = 800.0;
/// Where bars begin, and how far they may go; names stand left of them, figures right.
const LEFT: f64 = 230.0;
const RIGHT: f64 = 670.0;
const TOP: f64 = 64.0;
const ROW: f64 = 28.0;
const THICKNESS: f64 = 18.0;

/// The scale is logarithmic and begins here.
const LEAST: f64 = 0.5;
const MARKS: [f64; 8] = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0];

const STYLE: &str = "\
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-size: 15px; font-weight: 600 }
.faint { fill: #59636e }
.mark { stroke: #d1d9e0 }
.limit { stroke: #1f2328 }
.ours { fill: #0969da }
.other { fill: #8c959f }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc }
  .faint { fill: #9198a1 }
  .mark { stroke: #3d444d }
  .limit { stroke: #f0f6fc }
  .ours { fill: #4493f8 }
  .other { fill: #767e88 }
}";

pub(super) fn draw(bars: &[Bar]) -> String {
    let most = bars.iter().map(|bar| bar.times).fold(2.0, f64::max);
    let x = |times: f64| LEFT + (RIGHT - LEFT) * (times.max(LEAST) / LEAST).ln() / (most / LEAST).ln();
    let bottom = TOP + ROW * bars.len() as f64;
    let height = bottom + 30.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n\
         <title>Server CPU time per call, as a multiple of the limit</title>\n<style>\n{STYLE}\n</style>\n"
    );
    svg += &text(10.0, 22.0, "title", "Server CPU time per tools/call over HTTP, 64 connections");
    svg += &text(
        10.0,
        42.0,
        "faint",
        "As a multiple of a handler that only parses and writes JSON; logarithmic scale",
    );
    for mark in MARKS.into_iter().filter(|mark| *mark <= most) {
        let (class, at) = (if mark == 1.0 { "limit" } else { "mark" }, x(mark));
        svg += &format!("<path class=\"{class}\" d=\"M{at:.1} {TOP}V{bottom}\"/>\n");
        let name = if mark == 1.0 { "the limit".to_owned() } else { format!("{mark}×") };
        svg += &format!(
            "<text class=\"faint\" x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{name}</text>\n",
            bottom + 18.0
        );
    }
    for (index, bar) in bars.iter().enumerate() {
        let (y, end) = (TOP + ROW * index as f64, x(bar.times));
        let class = if bar.ours { "ours" } else { "other" };
        svg += &text(10.0, y + 18.0, "", bar.name);
        svg += &format!(
            "<rect class=\"{class}\" x=\"{LEFT}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{THICKNESS}\"/>\n",
            y + (ROW - THICKNESS) / 2.0,
            end - LEFT
        );
        svg += &text(end + 6.0, y + 18.0, "", &format!("{:.1}× ({:.0} µs)", bar.times, bar.micros));
    }
    svg + "</svg>\n"
}

fn text(x: f64, y: f64, class: &str, words: &str) -> String {
    let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
    format!("<text{class} x=\"{x:.1}\" y=\"{y:.1}\">{words}</text>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bar_ends_where_its_figure_begins() {
        let bar = |times| Bar { name: "other", times, micros: times * 10.0, ours: times < 2.0 };
        let svg = draw(&[bar(1.2), bar(80.0)]);
        assert_eq!(svg.matches("<rect").count(), 2);
        assert!(svg.contains("width=\"440.0\""), "the longest takes all the room: {svg}");
        assert!(svg.contains("x=\"676.0\" y=\"110.0\">80.0× (800 µs)"), "{svg}");
        assert!(!svg.contains("100×"), "no mark beyond the longest: {svg}");
    }
}
