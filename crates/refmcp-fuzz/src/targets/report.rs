//! Reports on recordings: any bytes are judged up to the line that is no event, a report is read back as it was written, and
//! nothing of a recording is markup or controls a display in any format.

use refmcp_audit::report::{Report, Reporter, Tone, html, junit, markdown, sarif, text};

/// The bytes are a recording.
pub fn run(bytes: &[u8]) {
    let mut reporter = Reporter::default();
    // What stands before a line that is no event has been judged.
    let _ = reporter.read("recording", bytes);
    let (report, excerpt) = reporter.finish(None);
    let json = report.to_json().expect("a report is JSON");
    assert_eq!(Report::from_json(&json).expect("it is read back"), report);
    sarif(&report).expect("SARIF is JSON");
    let plain = |_: Tone, text: &str| text.to_owned();
    let page = html(&report, &excerpt);
    assert!(!page.contains("<script") && !page.contains("<img"), "{page}");
    for shown in [page, junit(&report), markdown(&report), text(&report, plain)] {
        let controls = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
        assert!(!shown.contains(controls) && !shown.contains(['\u{202e}', '\u{2066}']), "{shown:?}");
    }
}
