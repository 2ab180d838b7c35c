//! Reads text files that users name: traces and distributions. Endless input must not fill the
//! memory.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use sojourn_core::SpecError;

/// The longest file that is read: 26 bytes for each of ten million lines, the most that a trace may
/// have.
pub const MAX_BYTES: u64 = 256 << 20;

/// Bytes to read at a time.
const PIECE: usize = 1 << 16;

/// Reads a regular file.
///
/// # Errors
/// The file cannot be read, is a folder, a pipe or a device, is longer than [`MAX_BYTES`] or no
/// text in UTF-8. The caller names the file.
pub fn read(path: &Path) -> Result<String, SpecError> {
    let metadata = fs::metadata(path).map_err(|error| unreadable(&error))?;
    if !metadata.is_file() {
        let problem = match metadata.is_dir() {
            true => "is a folder",
            false => "is a pipe or a device and may never end",
        };
        return Err(SpecError::new(problem).allow(["a regular file"]));
    }
    // Refused before it is read.
    if metadata.len() > MAX_BYTES {
        return Err(too_long());
    }
    read_from(File::open(path).map_err(|error| unreadable(&error))?)
}

/// Reads a source to its end, such as standard input.
///
/// # Errors
/// As [`read`].
pub fn read_from(mut source: impl Read) -> Result<String, SpecError> {
    let mut bytes = Vec::new();
    let mut piece = vec![0; PIECE];
    loop {
        let length = match source.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(unreadable(&error)),
        };
        // The first piece reveals an endless file of zeros.
        if let Some(position) = piece[..length].iter().position(|byte| *byte == 0) {
            return Err(no_text(0, bytes.len() + position));
        }
        bytes.extend_from_slice(&piece[..length]);
        if bytes.len() as u64 > MAX_BYTES {
            return Err(too_long());
        }
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        no_text(error.as_bytes()[good], good)
    })
}

fn unreadable(error: &io::Error) -> SpecError {
    SpecError::new(format!("cannot be read: {error}"))
}

fn too_long() -> SpecError {
    SpecError::new("is too long").allow([format!("at most {} MiB", MAX_BYTES >> 20)])
}

fn no_text(byte: u8, position: usize) -> SpecError {
    SpecError::new(format!("byte {position} is 0x{byte:02x} and no text")).allow(["text in UTF-8"])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source without end.
    struct Endless(u8);

    impl Read for Endless {
        fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
            piece.fill(self.0);
            Ok(piece.len())
        }
    }

    #[test]
    fn what_never_ends_is_refused() {
        assert!(read_from(Endless(0)).unwrap_err().to_string().contains("byte 0 is 0x00"));
        assert!(read_from(Endless(b'1')).unwrap_err().to_string().contains("at most 256 MiB"));
    }

    #[test]
    fn what_is_no_regular_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read(folder.path()).unwrap_err().to_string().contains("is a folder"));
        assert!(read(&folder.path().join("none")).unwrap_err().to_string().contains("cannot be"));
        #[cfg(unix)]
        {
            let error = read(Path::new("/dev/zero")).unwrap_err().to_string();
            assert!(error.contains("a pipe or a device"), "{error}");
        }
    }

    #[test]
    fn a_long_file_is_refused_before_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("long");
        // A sparse file, which takes no space.
        File::create(&path).unwrap().set_len(MAX_BYTES + 1).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("is too long"));
    }

    #[test]
    fn text_is_read_as_it_is() {
        assert_eq!(read_from("12,1\né\n".as_bytes()), Ok("12,1\né\n".to_owned()));
        let error = read_from(&b"12,1\n\xff"[..]).unwrap_err().to_string();
        assert!(error.contains("byte 5 is 0xff"), "{error}");
    }
}
