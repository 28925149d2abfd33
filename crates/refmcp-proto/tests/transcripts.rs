//! Transcripts: every one in `transcripts/` matches under every revision it names, and every message of the server fits
//! the official schema. `UPDATE=1 cargo test` rewrites what is expected.

use std::path::Path;

use refmcp_proto::revision::Revision;
use refmcp_testkit::engine::{TestEngine, config_from, server_info};
use refmcp_testkit::schema::{Checked, load_all};
use refmcp_testkit::transcript::{Endpoint, Settings, run_folder};

#[test]
fn transcripts_match() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let info = serde_json::to_value(server_info()).unwrap();
    let schemas = load_all();
    let mut start = |settings: &Settings, revision: Revision| {
        let rig = TestEngine::new(config_from(settings)?);
        Ok(Box::new(Checked::new(rig, revision, schemas.clone())) as Box<dyn Endpoint>)
    };
    match run_folder(&folder, &info, &mut start) {
        Ok(held) => assert!(held > 0, "no transcripts in {}", folder.display()),
        Err(problems) => panic!("{problems}"),
    }
}
