//! Escapes text that came from a study for the place where it goes.

use std::fmt::{self, Write};

/// Text for element content and quoted attributes.
#[derive(Clone, Copy)]
pub(crate) struct Esc<'a>(pub(crate) &'a str);

impl fmt::Display for Esc<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' | '\t' => f.write_char(c)?,
                c if c.is_control() || bidirectional(c) => f.write_char('\u{fffd}')?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// Characters that change the order in which text around them is shown.
fn bidirectional(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text for a terminal, on one line and without control sequences.
pub(crate) fn plain_text(text: &str) -> String {
    let safe = |c: char| if c.is_control() || bidirectional(c) { ' ' } else { c };
    text.chars().map(safe).collect()
}

/// JSON that may be put inside a `script` element.
pub(crate) fn script_json(value: &serde_json::Value) -> String {
    let mut out = String::new();
    for c in value.to_string().chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

/// A link, if the text is only a web address; otherwise the text.
pub(crate) fn linked(text: &str) -> String {
    let plain = text.chars().all(|c| c.is_ascii_graphic());
    if plain && (text.starts_with("https://") || text.starts_with("http://")) {
        format!("<a href=\"{0}\" rel=\"noreferrer noopener\">{0}</a>", Esc(text))
    } else {
        Esc(text).to_string()
    }
}

/// A word for a POSIX shell.
pub(crate) fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn markup_in_a_name_stays_text() {
        assert_eq!(
            Esc("<img src=x onerror='a(\"b\")'>&").to_string(),
            "&lt;img src=x onerror=&#39;a(&quot;b&quot;)&#39;&gt;&amp;"
        );
    }

    #[test]
    fn a_script_cannot_be_ended_by_a_name() {
        let json = script_json(&serde_json::json!({ "name": "</script><!--\u{2028}" }));
        assert!(!json.contains('<') && !json.contains('\u{2028}'), "{json}");
        let back: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(back["name"], "</script><!--\u{2028}");
    }

    #[test]
    fn only_web_addresses_become_links() {
        assert!(linked("https://example.org/a?b=1&c=2").contains("b=1&amp;c=2"));
        for text in ["javascript:alert(1)", "see https://example.org", "https://a.b/\" x=\""] {
            assert!(!linked(text).contains("<a"), "{text}");
        }
    }

    proptest! {
        #[test]
        fn escaped_text_holds_no_markup(text in ".*") {
            let escaped = Esc(&text).to_string();
            prop_assert!(!escaped.contains(['<', '>', '"', '\'']));
        }

        #[test]
        fn a_shell_word_is_plain_or_quoted(word in ".*") {
            let quoted = shell_word(&word);
            if quoted != word {
                prop_assert_eq!(quoted[1..quoted.len() - 1].replace(r"'\''", "'"), word);
            }
        }
    }
}
