//! The keys of a flow that are the parameters of its application and of its transport. How each is
//! read is defined with the parameter; here its value becomes text, if it is of the right kind.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use sojourn_core::param::{Switch as OnOff, missing_param};
use sojourn_core::{Bytes, Param, ParamKind, Params, Rate, Span, SpecError, Words};

use super::Notation;

/// Keys and their values, in the order of the file.
#[derive(Clone, Debug, Default)]
pub struct Settings(Vec<(String, Setting)>);

#[derive(Clone, Debug)]
enum Setting {
    Text(String),
    Whole(i64),
    Number(f64),
    Truth(bool),
    /// What no parameter is, as an error calls it.
    Other(&'static str),
}

/// A parameter, and what is wrong with it.
pub type WrongSetting = (&'static str, SpecError);

impl Settings {
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(key, _)| &key[..])
    }

    pub fn has(&self, key: &str) -> bool {
        self.keys().any(|own| own == key)
    }

    /// The parameters `P` as far as they are written, and else their defaults.
    ///
    /// # Errors
    /// A value that is none, or out of bounds; something that must be given and is not.
    pub fn read<P: Params>(&self) -> Result<P, WrongSetting> {
        let mut params = P::default();
        for (key, setting) in &self.0 {
            let Some(param) = P::PARAMS.iter().find(|param| param.name == key) else { continue };
            let wrong = |error: SpecError| (param.name, error.outside(param.name));
            let text = setting.text(param).map_err(wrong)?;
            params.accept(param.name, &mut Words::one(&text)).map_err(wrong)?;
        }
        let is_missing = |param: &&Param| param.is_needed && !self.has(param.name);
        if let Some(param) = P::PARAMS.iter().find(is_missing) {
            let example = param.examples.first().copied().unwrap_or_default();
            let quote =
                if matches!(param.kind, ParamKind::Count | ParamKind::Number) { "" } else { "\"" };
            let example = format!("{} = {quote}{example}{quote}", param.name);
            return Err((param.name, missing_param(P::NAME, param).allow([example])));
        }
        match params.check() {
            Ok(()) => Ok(params),
            Err(error) => Err(blamed(error)),
        }
    }
}

/// With the key of the parameter that an error speaks of.
pub(crate) fn blamed(error: SpecError) -> WrongSetting {
    match error.parameter() {
        Some(key) => (key, error.outside(key)),
        None => ("app", error),
    }
}

impl Setting {
    /// As the parameter reads it.
    fn text(&self, param: &Param) -> Result<String, SpecError> {
        use ParamKind::{Choice, Count, Flag, Number, Rate, Share, Size, Span, Switch, Text};
        match (param.kind, self) {
            (Span | Rate | Size | Share | Choice | Text, Self::Text(text)) => Ok(text.clone()),
            (Count | Number | Share, Self::Whole(number)) => Ok(number.to_string()),
            (Number | Share, Self::Number(number)) => Ok(number.to_string()),
            // `1e3` is a whole number, too.
            (Count, Self::Number(number)) if number.fract() == 0.0 => Ok(number.to_string()),
            (Flag | Switch, Self::Truth(is_so)) => Ok(is_so.to_string()),
            (Flag | Switch, Self::Text(text)) if OnOff::of(text).is_some() => Ok(text.clone()),
            _ => Err(SpecError::new(format!("{self} does not fit")).allow(wanted(param))),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "the text '{text}'"),
            Self::Whole(number) => write!(f, "the number {number}"),
            Self::Number(number) => write!(f, "the number {number}"),
            Self::Truth(is_so) => write!(f, "{is_so}"),
            Self::Other(what) => f.write_str(what),
        }
    }
}

fn wanted(param: &Param) -> Vec<String> {
    let quoted = |wanted: &str| vec![format!("{wanted}, in quotes")];
    match param.kind {
        ParamKind::Span => quoted(Span::WANTED),
        ParamKind::Rate => quoted(Rate::WANTED),
        ParamKind::Size => quoted(Bytes::WANTED),
        ParamKind::Count | ParamKind::Number | ParamKind::Choice => param.bounds.allowed(),
        ParamKind::Share => vec!["a share, 0.02 or \"2%\"".to_owned()],
        ParamKind::Flag | ParamKind::Switch => vec![OnOff::WANTED.to_owned()],
        ParamKind::Text => match param.examples {
            [] => quoted("a text"),
            [example, ..] => quoted(&format!("a text such as {example}")),
        },
    }
}

impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SettingsVisitor;
        impl<'de> Visitor<'de> for SettingsVisitor {
            type Value = Settings;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Settings, A::Error> {
                let mut settings = Settings::default();
                while let Some(entry) = map.next_entry()? {
                    settings.0.push(entry);
                }
                Ok(settings)
            }
        }
        deserializer.deserialize_map(SettingsVisitor)
    }
}

impl<'de> Deserialize<'de> for Setting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SettingVisitor;
        impl<'de> Visitor<'de> for SettingVisitor {
            type Value = Setting;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Setting, E> {
                Ok(Setting::Text(text.to_owned()))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Setting, E> {
                Ok(Setting::Whole(number))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Setting, E> {
                Ok(Setting::Number(number))
            }

            fn visit_bool<E: de::Error>(self, is_so: bool) -> Result<Setting, E> {
                Ok(Setting::Truth(is_so))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Setting, A::Error> {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Setting::Other("a list"))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Setting, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Setting::Other("a table"))
            }
        }
        deserializer.deserialize_any(SettingVisitor)
    }
}
