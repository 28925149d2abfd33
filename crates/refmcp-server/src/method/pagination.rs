//! Pagination: opaque cursors that are valid for one list and survive changes to it.

use std::sync::Arc;

use refmcp_proto::jsonrpc::RpcError;
use refmcp_proto::model::{PaginatedParams, ServerResult};

use super::{PreparedCall, params};
use crate::call::Call;
use crate::catalog::{Catalog, OrderedMap};
use crate::error::CallError;

/// Prepares a call of a method that lists.
pub(super) fn list<T: Send + Sync + 'static, D: 'static>(
    call: &Call,
    items: fn(&Catalog) -> &OrderedMap<T>,
    definition: fn(&T) -> D,
    result: fn(Vec<D>, Option<String>) -> ServerResult,
) -> Result<PreparedCall, CallError> {
    let call = call.clone();
    Ok(PreparedCall::inline(async move {
        let (items, next_cursor) = page(&call, items)?;
        Ok(result(items.iter().map(|(_, item)| definition(item)).collect(), next_cursor))
    }))
}

/// Items of a list with their positions, and the cursor of what follows them.
type Page<T> = (Vec<(Position, Arc<T>)>, Option<String>);

/// The position after which a page begins: in the list of the server (layer 0) or of the session (1).
#[derive(Clone, Copy, Default)]
struct Position {
    layer: u8,
    place: u64,
}

/// The requested page. The items of the session follow those of the server, without the ones that they replace.
fn page<T>(call: &Call, list: fn(&Catalog) -> &OrderedMap<T>) -> Result<Page<T>, RpcError> {
    let size = call.server().settings().page_size;
    let start = position(call)?;
    let mut items: Vec<(Position, Arc<T>)> = Vec::new();
    let own = call.session().and_then(|session| session.catalog());
    let own = own.as_deref().map(list);
    if start.layer == 0 {
        let catalog = call.server().catalog();
        let shared = list(&catalog);
        let replaced = own.map(|own| shared.places_taken_by(own)).unwrap_or_default();
        let rest = shared.after(start.place).filter(|(place, _)| !replaced.contains(place)).take(size + 1);
        items.extend(rest.map(|(place, item)| (Position { layer: 0, place }, item.clone())));
    }
    if let Some(own) = own {
        let from = if start.layer == 1 { start.place } else { 0 };
        let rest = own.after(from).take(size + 1 - items.len().min(size + 1));
        items.extend(rest.map(|(place, item)| (Position { layer: 1, place }, item.clone())));
    }
    let more = items.len() > size;
    items.truncate(size);
    let next_cursor = items.last().filter(|_| more).map(|(last, _)| seal(call, *last));
    Ok((items, next_cursor))
}

/// Where the requested page of a list begins behind that is not of the catalog.
pub(super) fn start(call: &Call) -> Result<u64, RpcError> {
    position(call).map(|position| position.place)
}

/// The cursor of what follows this place.
pub(super) fn cursor(call: &Call, place: u64) -> String {
    seal(call, Position { layer: 0, place })
}

/// Where the requested page of one of several lists of a method begins.
pub(super) fn start_in(call: &Call, list: &str) -> Result<u64, RpcError> {
    position_in(call, list).map(|position| position.place)
}

/// The cursor of what follows this place in one of several lists of a method.
pub(super) fn cursor_in(call: &Call, list: &str, place: u64) -> String {
    seal_in(call, list, Position { layer: 0, place })
}

fn seal(call: &Call, position: Position) -> String {
    seal_in(call, "", position)
}

fn seal_in(call: &Call, list: &str, position: Position) -> String {
    call.server()
        .sealer()
        .seal(&purpose(call, list), format!("{}.{}", position.layer, position.place).as_bytes())
}

fn position(call: &Call) -> Result<Position, RpcError> {
    position_in(call, "")
}

fn position_in(call: &Call, list: &str) -> Result<Position, RpcError> {
    let PaginatedParams { cursor, .. } = params(call)?;
    let Some(cursor) = cursor else { return Ok(Position::default()) };
    read(call, list, &cursor).ok_or_else(|| RpcError::invalid_params("cursor is not valid for this list"))
}

fn read(call: &Call, list: &str, cursor: &str) -> Option<Position> {
    let content = call.server().sealer().open(&purpose(call, list), cursor)?;
    let (layer, place) = std::str::from_utf8(&content).ok()?.split_once('.')?;
    Some(Position { layer: layer.parse().ok()?, place: place.parse().ok()? })
}

/// A cursor is good for one list and one principal.
fn purpose(call: &Call, list: &str) -> Vec<u8> {
    let method = call.dispatch().method.name();
    let principal = call.principal().unwrap_or_default();
    format!("refmcp cursor 2\n{}:{method}\n{}:{list}\n{principal}", method.len(), list.len()).into_bytes()
}
