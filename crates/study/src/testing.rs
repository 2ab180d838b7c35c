//! Folders for tests, which are removed when the test ends.

use std::path::PathBuf;

use tempfile::TempDir;

pub(crate) struct Scratch {
    folder: TempDir,
}

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        let folder = tempfile::Builder::new().prefix(&format!("sojourn-{name}-")).tempdir();
        Self { folder: folder.expect("the temporary folder can be written to") }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).expect("the temporary folder can be written to");
        path
    }
}
