//! Pictures and sounds: small, real and always the same.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

pub(crate) const PNG: &str = "image/png";
pub(crate) const WAV: &str = "audio/wav";

/// A single red pixel.
pub(crate) const RED_PIXEL: &[u8] = include_bytes!("media/red_pixel.png");
/// A diagram: two boxes and a line from one to the other.
pub(crate) const DIAGRAM: &[u8] = include_bytes!("media/diagram.png");
/// A tenth of a second of a 400 Hz tone: 8000 samples per second, one channel, 16 bits.
pub(crate) const TONE: &[u8] = include_bytes!("media/tone.wav");

/// Bytes as they travel in JSON.
pub(crate) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crc32(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(u32::MAX, |crc, byte| {
            (0..8)
                .fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg()))
        })
    }

    #[test]
    fn png_chunks_are_in_order_with_their_checksums() {
        for file in [RED_PIXEL, DIAGRAM] {
            let mut rest = file.strip_prefix(b"\x89PNG\r\n\x1a\n").unwrap();
            let mut kinds = Vec::new();
            while !rest.is_empty() {
                let length = u32::from_be_bytes(rest[..4].try_into().unwrap()) as usize;
                let (body, sum) = (&rest[4..8 + length], &rest[8 + length..12 + length]);
                assert_eq!(crc32(body).to_be_bytes(), sum);
                kinds.push(String::from_utf8(body[..4].to_vec()).unwrap());
                rest = &rest[12 + length..];
            }
            assert_eq!(kinds, ["IHDR", "IDAT", "IEND"]);
        }
    }

    #[test]
    fn wav_header_has_the_length() {
        let word = |at: usize| u32::from_le_bytes(TONE[at..at + 4].try_into().unwrap()) as usize;
        assert_eq!((&TONE[..4], &TONE[8..16]), (&b"RIFF"[..], &b"WAVEfmt "[..]));
        assert_eq!(word(4), TONE.len() - 8);
        assert_eq!(word(40), TONE.len() - 44);
    }
}
