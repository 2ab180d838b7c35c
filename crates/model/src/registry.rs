//! Closed forms that can be asked for by name, with their parameters.

use sojourn_core::{Kind, Kinds, SpecError};

use crate::formula::{Answer, Formula};
use crate::{aqm, bbr, bianchi, dctcp, ofdma, response, uora, ware};

/// All closed forms.
pub fn formulas() -> Kinds<Answer> {
    Kinds::new(
        "closed form",
        [
            kind::<ware::Ware>(),
            kind::<bbr::Standing>(),
            kind::<bbr::Standing2>(),
            kind::<response::SquareRoot>(),
            kind::<response::Padhye>(),
            kind::<response::CubicResponse>(),
            kind::<dctcp::Dctcp>(),
            kind::<aqm::Coupling>(),
            kind::<aqm::Md1>(),
            kind::<aqm::Nada>(),
            kind::<bianchi::Bianchi>(),
            kind::<uora::RandomAccess>(),
            kind::<ofdma::Uplink>(),
        ],
    )
}

const fn kind<F: Formula>() -> Kind<Answer> {
    Kind::of::<F>(|words| {
        let values = F::parse(words)?.evaluate()?;
        debug_assert_eq!(values.len(), F::OUTPUTS.len());
        if let Some(place) = values.iter().position(|value| !value.is_finite()) {
            let name = F::OUTPUTS[place].name;
            let problem = alloc::format!("'{name}' of {} is not finite here", F::NAME);
            return Err(SpecError::new(problem).allow(["other parameters"]));
        }
        Ok(Answer { outputs: F::OUTPUTS, values })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_formula_has_an_answer_for_its_defaults() {
        for kind in formulas().iter() {
            let answer = formulas().parse(kind.name);
            let answer = answer.unwrap_or_else(|error| panic!("{}: {error}", kind.name));
            assert_eq!(answer.values.len(), answer.outputs.len(), "{}", kind.name);
            for (at, output) in answer.outputs.iter().enumerate() {
                let same = answer.outputs.iter().position(|other| other.name == output.name);
                assert_eq!(same, Some(at), "{}.{}", kind.name, output.name);
            }
        }
    }

    #[test]
    fn shares_are_written_with_percent_too() {
        let of = |text: &str| formulas().parse(text).map(|answer| answer.values);
        assert_eq!(of("square-root p=0.1%"), of("square-root p=0.001"));
        assert_eq!(of("md1 load=80%"), of("md1 load=0.8"));
        assert!(of("square-root p=200%").is_err() && of("ware-bbr buffer=80%").is_err());
    }

    #[test]
    fn an_output_that_there_is_not_is_named_with_those_that_there_are() {
        let answer = formulas().parse("ware-bbr").expect("a formula");
        let error = answer.output(Some("shar")).expect_err("there is none");
        assert_eq!(error.nearest(), Some("share"));
        assert_eq!(answer.output(None).expect("the first").0.name, "share");
    }

    proptest! {
        #[test]
        fn any_text_is_answered_or_refused(
            text in "(ware-bbr|square-root|padhye|md1|uora|bianchi|ofdma|dctcp-sawtooth)( (flows|p|load|rate|buffer|rtt|stations|units)=[0-9a-z.%-]{1,8}){0,3}"
        ) {
            if let Ok(answer) = formulas().parse(&text) {
                prop_assert!(answer.values.iter().all(|value| value.is_finite()), "{answer:?}");
            }
        }
    }
}
