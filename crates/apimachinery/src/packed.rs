//! Text that is stored for a long time and rarely read: compressed if that saves memory.
//!
//! Main type: [`PackedText`].

use std::{borrow::Cow, cell::RefCell, fmt, sync::Arc};

/// Texts below this are not worth compressing.
const COMPRESS_FROM: usize = 512;
const LEVEL: i32 = 1;

thread_local! {
    static COMPRESSOR: RefCell<Option<zstd::bulk::Compressor<'static>>> = RefCell::new(zstd::bulk::Compressor::new(LEVEL).ok());
}

/// A compressed text. Cheap to clone; equal texts have equal bytes.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct PackedText {
    bytes: Arc<[u8]>,
    /// Length before compression; 0 means it is not compressed.
    plain: usize,
}

impl PackedText {
    pub fn new(text: &str) -> Self {
        let compressed = (text.len() >= COMPRESS_FROM)
            .then(|| {
                COMPRESSOR
                    .with_borrow_mut(|c| c.as_mut().and_then(|c| c.compress(text.as_bytes()).ok()))
            })
            .flatten()
            .filter(|c| c.len() < text.len() * 9 / 10);
        match compressed {
            Some(bytes) => Self {
                bytes: bytes.into(),
                plain: text.len(),
            },
            None => Self {
                bytes: text.as_bytes().into(),
                plain: 0,
            },
        }
    }

    pub fn read(&self) -> Cow<'_, str> {
        if self.plain == 0 {
            return Cow::Borrowed(str::from_utf8(&self.bytes).expect("it was a text"));
        }
        let text = zstd::bulk::decompress(&self.bytes, self.plain).expect("compressed by us");
        Cow::Owned(String::from_utf8(text).expect("it was a text"))
    }

    /// The number of bytes that it occupies.
    pub fn bytes_held(&self) -> usize {
        self.bytes.len()
    }

    /// Whether both are clones of the same text.
    pub fn is_shared_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.bytes, &other.bytes)
    }
}

impl fmt::Debug for PackedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.read(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_comes_back_as_it_was() {
        for text in [
            String::new(),
            "short".into(),
            "lorem ipsum ".repeat(200),
            (0..2000u32)
                .map(|i| char::from(b' ' + (i * i % 89) as u8))
                .collect(),
        ] {
            let packed = PackedText::new(&text);
            assert_eq!(packed.read(), text);
            assert_eq!(packed, PackedText::new(&text));
            assert!(packed.bytes_held() <= text.len());
        }
        assert!(PackedText::new(&"lorem ipsum ".repeat(200)).bytes_held() < 200);
    }
}
