//! Batches: their responses are collected until all are there, and sent as one array.

use std::collections::BTreeMap;

use crate::engine::ExchangeId;
use crate::jsonrpc::{RpcError, error_instead};

/// The engine's number for a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BatchId(u64);

/// The open batches; made with the first one, because most clients never send any.
#[derive(Debug, Default)]
pub(super) struct Batches(Option<Box<OpenBatches>>);

#[derive(Debug, Default)]
struct OpenBatches {
    next: u64,
    open: BTreeMap<BatchId, Batch>,
    /// Bytes of the responses of all of them.
    bytes: usize,
}

#[derive(Debug)]
struct Batch {
    exchange: ExchangeId,
    missing: usize,
    /// The responses so far, as the beginning of a JSON array.
    responses: Vec<u8>,
}

impl Batches {
    pub(super) fn open(&mut self, exchange: ExchangeId) -> BatchId {
        let batches = self.0.get_or_insert_default();
        let id = BatchId(batches.next);
        batches.next += 1;
        // One is missing until the batch has been read to its end, so that it is not complete before.
        batches.open.insert(id, Batch { exchange, missing: 1, responses: Vec::new() });
        id
    }

    fn get_mut(&mut self, id: BatchId) -> Option<&mut Batch> {
        self.0.as_mut()?.open.get_mut(&id)
    }

    /// Bytes of the responses that are collected.
    pub(super) fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |batches| batches.bytes)
    }

    pub(super) fn expect_one(&mut self, id: BatchId) {
        if let Some(batch) = self.get_mut(id) {
            batch.missing += 1;
        }
    }

    pub(super) fn add(&mut self, id: BatchId, response: &[u8]) {
        let Some(batches) = &mut self.0 else { return };
        if let Some(batch) = batches.open.get_mut(&id) {
            batch.responses.push(if batch.responses.is_empty() { b'[' } else { b',' });
            batch.responses.extend_from_slice(response);
            batches.bytes += response.len() + 1;
        }
    }

    /// Replaces the responses that are collected by this error each.
    pub(super) fn refuse(&mut self, error: &RpcError) {
        let Some(batches) = &mut self.0 else { return };
        batches.bytes = 0;
        for batch in batches.open.values_mut().filter(|batch| !batch.responses.is_empty()) {
            batch.responses.push(b']');
            batch.responses = error_instead(&batch.responses, error);
            // The array goes on.
            batch.responses.pop();
            batches.bytes += batch.responses.len();
        }
    }

    /// Counts one response, the end of the batch, or a request that gets none; returns the array when it was the last.
    pub(super) fn take_complete(&mut self, id: BatchId) -> Option<(ExchangeId, Vec<u8>)> {
        let batch = self.get_mut(id)?;
        batch.missing = batch.missing.saturating_sub(1);
        if batch.missing > 0 {
            return None;
        }
        let batches = self.0.as_mut()?;
        let mut batch = batches.open.remove(&id)?;
        batches.bytes = batches.bytes.saturating_sub(batch.responses.len());
        if batch.responses.is_empty() {
            return None;
        }
        batch.responses.push(b']');
        Some((batch.exchange, batch.responses))
    }
}
