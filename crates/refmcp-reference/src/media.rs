//! Pictures and sounds, made here: small, real and always the same.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The media type of [`png`].
pub(crate) const PNG: &str = "image/png";
/// The media type of [`wav`].
pub(crate) const WAV: &str = "audio/wav";

/// Bytes as they travel in JSON.
pub(crate) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// A single red pixel.
pub(crate) fn red_pixel() -> Vec<u8> {
    png(1, 1, |_, _| [255, 0, 0])
}

/// A diagram: two boxes and an arrow from one to the other.
pub(crate) fn diagram() -> Vec<u8> {
    png(64, 24, |x, y| {
        let in_box = (4..20).contains(&y) && ((4..24).contains(&x) || (40..60).contains(&x));
        let in_line = (11..13).contains(&y) && (24..40).contains(&x);
        match (in_box, in_line) {
            (true, _) => [70, 130, 180],
            (_, true) => [40, 40, 40],
            _ => [255, 255, 255],
        }
    })
}

/// A picture of 8-bit colours, without compression.
fn png(width: u32, height: u32, colour: impl Fn(u32, u32) -> [u8; 3]) -> Vec<u8> {
    let mut rows = Vec::new();
    for y in 0..height {
        // Each row begins with its filter: none.
        rows.push(0);
        rows.extend((0..width).flat_map(|x| colour(x, y)));
    }
    let mut header = Vec::new();
    header.extend(width.to_be_bytes());
    header.extend(height.to_be_bytes());
    // 8 bits, true colour, and the only methods of compression, filtering and interlacing that need no work.
    header.extend([8, 2, 0, 0, 0]);
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    chunk(&mut file, *b"IHDR", &header);
    chunk(&mut file, *b"IDAT", &zlib_stored(&rows));
    chunk(&mut file, *b"IEND", &[]);
    file
}

fn chunk(file: &mut Vec<u8>, kind: [u8; 4], data: &[u8]) {
    file.extend(u32::try_from(data.len()).unwrap_or(u32::MAX).to_be_bytes());
    file.extend(kind);
    file.extend(data);
    file.extend(crc32(kind.iter().chain(data)).to_be_bytes());
}

/// A zlib stream of stored blocks.
fn zlib_stored(data: &[u8]) -> Vec<u8> {
    let mut stream = vec![0x78, 0x01];
    let mut blocks = data.chunks(usize::from(u16::MAX)).peekable();
    while let Some(block) = blocks.next() {
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        stream.push(u8::from(blocks.peek().is_none()));
        stream.extend(length.to_le_bytes());
        stream.extend((!length).to_le_bytes());
        stream.extend(block);
    }
    stream.extend(adler32(data).to_be_bytes());
    stream
}

fn crc32<'a>(bytes: impl IntoIterator<Item = &'a u8>) -> u32 {
    !bytes.into_iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg()))
    })
}

fn adler32(bytes: &[u8]) -> u32 {
    const PRIME: u32 = 65_521;
    let (a, b) = bytes.iter().fold((1, 0), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % PRIME;
        (a, (b + a) % PRIME)
    });
    (b << 16) | a
}

/// A tenth of a second of a 400 Hz tone: 8000 samples per second, one channel, 16 bits.
pub(crate) fn wav() -> Vec<u8> {
    const RATE: u32 = 8000;
    const PERIOD: i16 = 20;
    // A triangle: integers only, so that it is the same everywhere.
    let samples = (0..800i16).map(|at| ((at % PERIOD) - PERIOD / 2).abs() * 1600 - 8000);
    let data: Vec<u8> = samples.flat_map(i16::to_le_bytes).collect();
    let size = u32::try_from(data.len()).unwrap_or(u32::MAX);
    let mut file = b"RIFF".to_vec();
    file.extend((36 + size).to_le_bytes());
    file.extend(b"WAVEfmt ");
    file.extend(16u32.to_le_bytes());
    file.extend(1u16.to_le_bytes());
    file.extend(1u16.to_le_bytes());
    file.extend(RATE.to_le_bytes());
    file.extend((RATE * 2).to_le_bytes());
    file.extend(2u16.to_le_bytes());
    file.extend(16u16.to_le_bytes());
    file.extend(b"data");
    file.extend(size.to_le_bytes());
    file.extend(data);
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_the_known_ones() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32(b"IEND"), 0xAE42_6082);
        assert_eq!(adler32(b"Wikipedia"), 0x11E6_0398);
    }

    #[test]
    fn a_picture_has_its_parts_in_order() {
        let file = red_pixel();
        let mut rest = &file[8..];
        let mut kinds = Vec::new();
        while !rest.is_empty() {
            let length = u32::from_be_bytes(rest[..4].try_into().unwrap()) as usize;
            let (body, sum) = (&rest[4..8 + length], &rest[8 + length..12 + length]);
            assert_eq!(crc32(body).to_be_bytes(), sum);
            kinds.push(String::from_utf8(body[..4].to_vec()).unwrap());
            if kinds.last().is_some_and(|kind| kind == "IDAT") {
                assert_eq!(&body[4..], [0x78, 1, 1, 4, 0, 251, 255, 0, 255, 0, 0, 3, 1, 1, 0]);
            }
            rest = &rest[12 + length..];
        }
        assert_eq!(kinds, ["IHDR", "IDAT", "IEND"]);
    }

    #[test]
    fn large_pictures_have_several_blocks() {
        let stream = zlib_stored(&[7; 100_000]);
        assert_eq!(stream[2], 0);
        assert_eq!(stream[2 + 5 + 65_535], 1);
        assert_eq!(stream.len(), 2 + 5 + 5 + 100_000 + 4);
    }

    #[test]
    fn a_sound_says_how_long_it_is() {
        let file = wav();
        let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
        assert_eq!((&file[..4], &file[8..16]), (&b"RIFF"[..], &b"WAVEfmt "[..]));
        assert_eq!(word(4), file.len() - 8);
        assert_eq!(word(40), file.len() - 44);
    }
}
