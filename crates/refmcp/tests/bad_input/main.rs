//! What the server makes of bad input over every transport: the right error or none, and then it goes on serving this
//! client and others, and holds nothing.

#[path = "../support/mod.rs"]
mod support;

mod asking;
mod batches;
mod catalogue;
mod cursors;
mod envelope;
mod files;
mod handshake;
mod in_flight;
mod methods;
mod peer;
mod repeats;
mod sockets;
mod table;
mod text;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

use files::Served;
use peer::{Peer, Site, WAYS, Way};
use support::wait_until;
use table::{Row, long};

/// Rows that belong together, and the inputs of the catalogue that they are.
struct Group {
    inputs: &'static [u8],
    rows: fn(Way) -> Vec<Row>,
}

const fn group(inputs: &'static [u8], rows: fn(Way) -> Vec<Row>) -> Group {
    Group { inputs, rows }
}

/// Every row of the table.
const GROUPS: [Group; 28] = [
    group(&[1, 2, 80], text::blank_messages),
    group(&[3], text::requests_cut_short_at_every_byte),
    group(&[4, 5, 6, 7], text::bytes_that_are_no_text),
    group(&[8], text::deep_nesting),
    group(&[9], text::numbers_beyond_all_measure),
    group(&[10], text::keys_that_come_twice),
    group(&[11], envelope::keys_in_another_case),
    group(&[12], envelope::the_version_of_json_rpc),
    group(&[13, 14], envelope::ids_of_every_kind),
    group(&[15, 19], envelope::responses_without_a_request),
    group(&[16], envelope::methods_of_every_kind),
    group(&[17], envelope::parameters_of_every_kind),
    group(&[18], batches::odd_batches),
    group(&[20, 39], envelope::notifications_with_odd_content),
    group(&[21], text::values_that_are_no_message),
    group(&[21], text::more_than_one_message_on_a_line),
    group(&[22], envelope::meta_of_every_kind),
    group(&[23], text::keys_that_mean_something_elsewhere_are_data),
    group(&[28], handshake::requests_that_lack_their_meta),
    group(&[32], methods::methods_of_the_other_lifecycle),
    group(&[33], methods::names_that_do_not_exist),
    group(&[34], methods::arguments_that_do_not_fit),
    group(&[34], methods::a_hundred_thousand_arguments),
    group(&[34], methods::other_parameters_that_do_not_fit),
    group(&[36], cursors::words_for_cursors),
    group(&[37], files::uris_that_lead_nowhere),
    group(&[40], methods::cancellations_of_what_is_not_there),
    group(&[42], asking::answers_to_no_question),
];

/// Rows times ways: none may vanish unseen.
const SENT: usize = 4599;

/// What must be as before once all clients are gone.
const HELD: [&str; 4] =
    ["refmcp_memory_bytes", "refmcp_requests_in_flight", "refmcp_streams", "refmcp_websockets"];

#[test]
fn every_row_over_every_transport() {
    let served = Served::new();
    let site = &Site::start(&["--resources", served.path()]);
    let before = HELD.map(|name| site.metric(name));
    let (sent, failed) = thread::scope(|scope| {
        let runs = WAYS.map(|way| scope.spawn(move || send_all(site, way)));
        let counts = runs.map(|run| run.join().unwrap_or_else(|panic| resume_unwind(panic)));
        counts.into_iter().fold((0, 0), |(sent, failed), count| (sent + count.0, failed + count.1))
    });
    assert_eq!(failed, 0, "of {sent} rows; each is told above");
    wait_until("nothing is held", || HELD.map(|name| site.metric(name)) == before);
    check_log(&site.log());
    assert_eq!(sent, SENT, "rows were added or are gone");
}

/// Sends every row; after each the same client is served, and another client of the same process too. Gives the number of rows,
/// and of those that failed.
fn send_all(site: &Site, way: Way) -> (usize, usize) {
    let mut peer = Peer::open(site, way);
    let mut bystander = peer.log().is_none().then(|| Peer::open(site, way));
    let (mut sent, mut failed) = (0, 0);
    for row in GROUPS.iter().flat_map(|group| (group.rows)(way)) {
        sent += 1;
        // One that fails does not hide the others.
        if catch_unwind(AssertUnwindSafe(|| row.check(site, &mut peer))).is_err() {
            failed += 1;
            peer = Peer::open(site, way);
        }
        if let Some(bystander) = &mut bystander {
            bystander.hears_nothing(row.name());
        }
    }
    if let Some(log) = peer.log() {
        check_log(&log);
    }
    peer.close();
    bystander.into_iter().for_each(Peer::close);
    (sent, failed)
}

fn check_log(log: &str) {
    assert!(!log.is_empty());
    assert!(!log.contains("panicked"), "{log}");
    if let Some(at) = log.find(&long(200)) {
        let around = log.get(at.saturating_sub(1000)..at + 200).unwrap_or_default();
        panic!("input in the log: {}", around.escape_debug());
    }
}
