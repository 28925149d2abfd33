//! A bounded run of a target without a fuzzer: its corpus, and seeded mutations of it.
//!
//! The same seed gives the same inputs on every machine. A failure prints the seed and the input, and leaves the input in a
//! file that the fuzzer takes as well.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

/// How many mutations a run of the tests feeds to most targets.
pub const MANY: u64 = 400;

/// How many it feeds to a target that takes milliseconds, as the engines do with every message checked.
pub const FEW: u64 = 60;

/// The seed, unless [`SEED`] says otherwise.
const DEFAULT_SEED: u64 = 1;

/// The environment variable with a number of mutations for all.
const RUNS: &str = "REFMCP_FUZZ_RUNS";

/// The environment variable with the seed.
const SEED: &str = "REFMCP_FUZZ_SEED";

/// The longest input that a mutation makes.
const MAX_INPUT: usize = 4096;

/// Feeds the corpus of a target to it, and this many mutations of it.
///
/// # Panics
/// When the target does, or when it has no corpus: what is never fed is never checked.
pub fn run(name: &str, runs: u64, target: impl Fn(&[u8])) {
    let folder = corpus(name);
    let files = files(&folder);
    assert!(!files.is_empty(), "{} has no inputs", folder.display());
    for (path, input) in &files {
        feed(name, &path.display().to_string(), input, &target);
    }
    let (seed, runs) = (setting(SEED, DEFAULT_SEED), setting(RUNS, runs));
    let inputs: Vec<&[u8]> = files.iter().map(|(_, input)| input.as_slice()).collect();
    let mut random = Random(seed);
    for number in 0..runs {
        let input = mutated(&mut random, &inputs);
        feed(name, &format!("mutation {number} of seed {seed}"), &input, &target);
    }
}

/// The corpus of a target: one file for each input, sorted by name.
pub fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name)
}

fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let listed = fs::read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    let mut paths: Vec<PathBuf> =
        listed.unwrap_or_else(|error| panic!("cannot read {}: {error}", folder.display()));
    paths.sort();
    let read = |path: PathBuf| {
        let input = fs::read(&path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
        (path, input)
    };
    paths.into_iter().map(read).collect()
}

fn setting(variable: &str, otherwise: u64) -> u64 {
    let Ok(text) = std::env::var(variable) else { return otherwise };
    text.parse().unwrap_or_else(|_| panic!("{variable} is {text:?}; it is a number"))
}

#[allow(clippy::print_stderr, reason = "a test says what it failed with")]
fn feed(name: &str, origin: &str, input: &[u8], target: &impl Fn(&[u8])) {
    let ended = catch_unwind(AssertUnwindSafe(|| target(input)));
    if let Err(panic) = ended {
        let file = std::env::temp_dir().join(format!("refmcp-fuzz-{name}"));
        let kept = match fs::write(&file, input) {
            Ok(()) => format!("kept in {}", file.display()),
            Err(error) => format!("not kept: {error}"),
        };
        eprintln!("{name} fails on {origin}, {kept}: \"{}\"", input.escape_ascii());
        resume_unwind(panic);
    }
}

/// One input of the corpus with a few changes.
fn mutated(random: &mut Random, corpus: &[&[u8]]) -> Vec<u8> {
    let mut input = random.pick(corpus).to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(input.len() + 1);
        let end = at + random.below((input.len() - at).min(32) + 1);
        match random.below(8) {
            0 => drop(input.splice(at..end, [])),
            1 => input.insert(at, random.byte()),
            2 if at < input.len() => input[at] = random.byte(),
            3 if at < input.len() => input[at] ^= 1 << random.below(8),
            4 => {
                let copy = input[at..end].to_vec();
                let to = random.below(input.len() + 1);
                drop(input.splice(to..to, copy));
            }
            5 => {
                let other = random.pick(corpus);
                let from = random.below(other.len() + 1);
                let to = from + random.below((other.len() - from).min(64) + 1);
                drop(input.splice(at..end, other[from..to].iter().copied()));
            }
            6 => drop(input.splice(at..at, random.pick(INTERESTING).iter().copied())),
            _ => input.truncate(at.max(1)),
        }
    }
    input.truncate(MAX_INPUT);
    input
}

/// What parsers stumble over.
const INTERESTING: &[&[u8]] = &[
    b"\0",
    b"\n",
    b"\r\n",
    b"\"",
    b"\\",
    b"\\ud800",
    b"{}",
    b"[",
    b"]",
    b"null",
    b"-0",
    b"1e999",
    b"18446744073709551616",
    b"-9223372036854775809",
    b"%2e%2e",
    b"=",
    b",",
    b";",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xf0\x9f\x92\xa5",
];

/// `SplitMix64`: small, and the same in every version.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap_or(0)
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }

    fn pick<'a, T: ?Sized>(&mut self, options: &[&'a T]) -> &'a T {
        options[self.below(options.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_mutations() {
        let corpus: [&[u8]; 2] = [b"{\"a\": 1}", b""];
        let inputs = |seed| {
            let mut random = Random(seed);
            (0..100).map(|_| mutated(&mut random, &corpus)).collect::<Vec<_>>()
        };
        assert_eq!(inputs(1), inputs(1));
        assert_ne!(inputs(1), inputs(2));
        assert!(inputs(1).iter().any(|input| !corpus.contains(&input.as_slice())));
    }

    #[test]
    fn a_target_that_panics_fails_the_run() {
        let ended =
            catch_unwind(|| feed("property-test", "here", b"x", &|input: &[u8]| assert!(input.is_empty())));
        assert!(ended.is_err());
    }
}
