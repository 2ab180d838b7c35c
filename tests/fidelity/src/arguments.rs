//! What the programs that print tables are told.

/// The situations to compare, those of `--data FILE` or else one's own, and the other words of the command line, which are parts of
/// their names. Where the file can't be read the program ends with one line and exit code 2.
#[expect(clippy::print_stderr, reason = "it speaks for programs")]
pub fn asked<T>(own: fn() -> Vec<T>, read: fn(&str) -> Vec<T>) -> (Vec<T>, Vec<String>) {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let Some(at) = words.iter().position(|word| word == "--data") else { return (own(), words) };
    let file = words.drain(at..words.len().min(at + 2)).nth(1).unwrap_or_default();
    match std::fs::read_to_string(&file) {
        Ok(text) => (read(&text), words),
        Err(error) => {
            eprintln!("--data takes a file of situations; '{file}': {error}");
            std::process::exit(2);
        }
    }
}
