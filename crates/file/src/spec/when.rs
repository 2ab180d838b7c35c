//! What a change waits for.

use sojourn_core::SpecError;

/// A flow enters a phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WhenSpec {
    pub flow: String,
    pub phase: String,
}

impl WhenSpec {
    /// # Errors
    /// The text is not `FLOW enters PHASE`.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        match text.split_whitespace().collect::<Vec<_>>()[..] {
            [flow, "enters", phase] => Ok(Self { flow: flow.to_owned(), phase: phase.to_owned() }),
            _ => Err(SpecError::new(format!("'{text}' is not what a change waits for"))
                .allow(["FLOW enters PHASE, such as 'sender enters PROBE_BW:UP'"])),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "[a-z: ]{0,20}(enters)?[A-Z: ]{0,12}") {
            if let Ok(WhenSpec { flow, phase }) = WhenSpec::parse(&text) {
                prop_assert_eq!(text.split_whitespace().count(), 3);
                prop_assert!(text.contains(&flow) && text.contains(&phase));
            }
        }
    }
}
