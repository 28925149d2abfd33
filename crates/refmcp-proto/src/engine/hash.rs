//! A quick hash for the tables of calls in flight.
//!
//! The keys are numbers that we count up ourselves, and ids of at most a thousand requests that one client has in
//! flight: whoever makes them collide slows down nobody but themselves, and not by much.

use std::hash::{BuildHasherDefault, Hasher};

/// For maps whose keys nobody gains by choosing badly.
pub(crate) type Quick = BuildHasherDefault<QuickHasher>;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct QuickHasher(u64);

/// An odd number without a pattern; multiplying by it spreads bits upwards.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

impl Hasher for QuickHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(SPREAD);
    }

    fn write_i64(&mut self, number: i64) {
        self.write_u64(number.cast_unsigned());
    }

    fn write_isize(&mut self, number: isize) {
        self.write_i64(number as i64);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        // Tables look at the lowest bits, which multiplying has left the least mixed.
        self.0 ^ (self.0 >> 32)
    }
}
