//! What the programs that print tables are told.

/// Takes `--data FILE` out of the words, and gives what is in the file; nothing if the words don't have it.
///
/// # Errors
///
/// One line, if no file is named or it can't be read.
pub fn data_of(words: &mut Vec<String>) -> Result<Option<String>, String> {
    let Some(at) = words.iter().position(|word| word == "--data") else { return Ok(None) };
    let file = words.drain(at..words.len().min(at + 2)).nth(1).unwrap_or_default();
    match std::fs::read_to_string(&file) {
        Ok(text) => Ok(Some(text)),
        Err(error) => Err(format!("--data takes a file of situations; '{file}': {error}")),
    }
}
