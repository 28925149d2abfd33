//! `metadata`: what a server says of itself beyond the protocol.

use anyhow::Result;
use refmcp_client::model::JsonObject;
use serde_json::Value;
use serde_json::value::RawValue;

use super::declared::Family;
use super::session::Session;
use crate::ui::render;

/// Asks for the metadata and shows them.
pub(crate) async fn metadata(session: &Session) -> Result<()> {
    Family::Metadata.require(session)?;
    let request = session.client.raw("metadata/get", JsonObject::new()).read_as::<Box<RawValue>>();
    let written = session.ask(request).await.map_err(|fault| session.fault("metadata/get", &fault))?;
    let members: Value = serde_json::from_str(written.get())?;
    session.printer.show(&written, |view| render::metadata(&members, view))
}
