//! The expressions of claims, as written.
//!
//! ```text
//! claim    = sum ( "in" quantity ".." quantity | "in" sum "±" quantity | ( "<=" | ">=" | "<" | ">" ) sum )
//! sum      = product { ( "+" | "-" ) product }
//! product  = factor { ( "*" | "/" ) factor }
//! factor   = quantity | pooled | harm | model | "(" sum ")" | "-" factor
//! pooled   = metric | pool "(" metric ")"
//! harm     = "harm" "(" pooled "," factor-name "=" "'" value "'" { "," … } ")"
//! model    = "model" "(" formula [ "." output ] { "," parameter "=" ( "'" value "'" | value | factor-name ) } ")"
//! metric   = word "(" [ name ] { "," factor-name "=" "'" value "'" } ")" [ "during" quantity ".." quantity ]
//! pool     = "min" | "max" | "sum" | "mean" | "median" | "jain"
//! quantity = number [ unit ]
//! ```

use sojourn_core::SpecError;

use super::units::Unit;

/// The deepest nesting allowed.
const MAX_DEPTH: usize = 50;

/// What an error names as the beginning of a term.
const TERMS: [&str; 3] = ["a metric such as goodput(cubic)", "a number with its unit", "("];

const HARM: &str =
    "harm(METRIC, FACTOR = 'VALUE'), such as harm(goodput(call), flow.download.count = '0')";

/// What stands before a tolerance.
const TOLERANCES: [&str; 2] = ["±", "+/-"];

const MODEL: &str = "model(FORMULA.OUTPUT, PARAMETER = 'VALUE' or a factor), such as model(ware-bbr.share, flows = '2')";

/// The most operators allowed; each nests the terms before it.
const MAX_OPERATORS: usize = 500;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Claim {
    Within {
        value: Expr,
        low: Quantity,
        high: Quantity,
    },
    /// Within a tolerance of another value, which begins at byte `right_at`.
    Near {
        left: Expr,
        right: Expr,
        right_at: usize,
        tolerance: Quantity,
    },
    /// The right side begins at byte `right_at`.
    Compare {
        left: Expr,
        relation: Relation,
        right: Expr,
        right_at: usize,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    Less,
    AtMost,
    Greater,
    AtLeast,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expr {
    Quantity(Quantity),
    Metric {
        pool: Option<Pool>,
        metric: MetricRef,
    },
    /// What a metric has lost against the scenario in which it has these factors.
    Harm {
        pool: Option<Pool>,
        metric: MetricRef,
        alone: Vec<Elsewhere>,
    },
    Model(ModelRef),
    Negative(Box<Expr>),
    Binary {
        operator: Operator,
        left: Box<Expr>,
        right: Box<Expr>,
        at: usize,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Plus,
    Minus,
    Times,
    Over,
}

/// How the values of a group's flows become one number, if the claim says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pool {
    Min,
    Max,
    Sum,
    Mean,
    Median,
    Jain,
}

impl Pool {
    const ALL: [(&'static str, Self); 6] = [
        ("min", Self::Min),
        ("max", Self::Max),
        ("sum", Self::Sum),
        ("mean", Self::Mean),
        ("median", Self::Median),
        ("jain", Self::Jain),
    ];

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(own, _)| *own == name).map(|(_, pool)| pool)
    }
}

/// `rtt_p50(cubic, path.queue = 'fq_codel')`. Positions are bytes of the expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MetricRef {
    pub metric: String,
    pub at: usize,
    /// Flow, group or queue; `None` is the run as a whole.
    pub of: Option<String>,
    pub of_at: usize,
    /// Factors that have another value than in the present scenario.
    pub elsewhere: Vec<Elsewhere>,
    /// From when to when; without it the whole run after its warm-up.
    pub during: Option<(Quantity, Quantity)>,
}

/// `model(ware-bbr.share, flows = '2', buffer = path.buffer)`: a closed form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ModelRef {
    pub formula: String,
    pub at: usize,
    pub output: Option<String>,
    pub params: Vec<ModelParam>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ModelParam {
    pub name: String,
    pub value: String,
    /// It stands in quotes, so that it is no factor.
    pub is_quoted: bool,
    pub at: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Elsewhere {
    pub factor: String,
    pub value: String,
    pub at: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Quantity {
    pub number: f64,
    pub unit: Option<Unit>,
    pub at: usize,
}

/// What is wrong with an expression, and at which of its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExprError {
    pub at: usize,
    pub problem: SpecError,
}

impl ExprError {
    pub(super) fn new(at: usize, problem: impl Into<String>) -> Self {
        Self { at, problem: SpecError::new(problem) }
    }

    pub(super) fn allow(mut self, allowed: &[&str]) -> Self {
        self.problem = self.problem.allow(allowed.iter().copied());
        self
    }
}

impl Claim {
    /// # Errors
    /// The text does not follow the grammar, or has an unknown unit.
    pub(super) fn parse(text: &str) -> Result<Self, ExprError> {
        let mut parser = Parser { text, at: 0, operators: 0 };
        let left = parser.sum(0)?;
        let at = parser.here();
        let claim = if parser.keyword("in") {
            let right_at = parser.here();
            let has_tolerance = TOLERANCES.iter().any(|sign| parser.rest().contains(sign));
            let is_term = |c: char| c.is_ascii_alphabetic() || c == '(';
            if has_tolerance || parser.next_char().is_some_and(is_term) {
                let right = parser.sum(0)?;
                Self::Near { left, right, right_at, tolerance: parser.tolerance()? }
            } else {
                let (low, high) = parser.bounds()?;
                Self::Within { value: left, low, high }
            }
        } else {
            let relation = parser.relation().ok_or_else(|| {
                let equality = ["==", "!=", "="].into_iter().find(|s| parser.rest().starts_with(s));
                let problem = match equality {
                    Some(symbol) => format!("'{symbol}' is no comparison of claims"),
                    None => "a comparison is missing".into(),
                };
                let allowed = ["in LOW..HIGH", "in VALUE ± 1 %", "<=", ">=", "<", ">"];
                ExprError::new(at, problem).allow(&allowed)
            })?;
            let right_at = parser.here();
            Self::Compare { left, relation, right: parser.sum(0)?, right_at }
        };
        let at = parser.here();
        match parser.rest() {
            "" => Ok(claim),
            rest => Err(ExprError::new(at, format!("'{}' follows a complete claim", head(rest)))
                .allow(&["one comparison"])),
        }
    }
}

impl Relation {
    pub(super) const fn symbol(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Greater => ">",
            Self::AtLeast => ">=",
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    /// Seen so far.
    operators: usize,
}

impl<'a> Parser<'a> {
    fn sum(&mut self, depth: usize) -> Result<Expr, ExprError> {
        let mut left = self.product(depth)?;
        loop {
            let at = self.here();
            let operator = match self.next_char() {
                _ if TOLERANCES.iter().any(|sign| self.rest().starts_with(sign)) => {
                    return Ok(left);
                }
                Some('+') => Operator::Plus,
                Some('-') => Operator::Minus,
                _ => return Ok(left),
            };
            self.operator(at)?;
            let right = Box::new(self.product(depth)?);
            left = Expr::Binary { operator, left: Box::new(left), right, at };
        }
    }

    fn product(&mut self, depth: usize) -> Result<Expr, ExprError> {
        let mut left = self.factor(depth)?;
        loop {
            let at = self.here();
            let operator = match self.next_char() {
                Some('*') => Operator::Times,
                Some('/') => Operator::Over,
                _ => return Ok(left),
            };
            self.operator(at)?;
            let right = Box::new(self.factor(depth)?);
            left = Expr::Binary { operator, left: Box::new(left), right, at };
        }
    }

    /// Steps over an operator.
    fn operator(&mut self, at: usize) -> Result<(), ExprError> {
        self.at += 1;
        self.operators += 1;
        if self.operators > MAX_OPERATORS {
            let problem = ExprError::new(at, "the expression is too long");
            return Err(problem.allow(&[&format!("at most {MAX_OPERATORS} operators")]));
        }
        Ok(())
    }

    fn factor(&mut self, depth: usize) -> Result<Expr, ExprError> {
        let at = self.here();
        if depth > MAX_DEPTH {
            return Err(ExprError::new(at, "parentheses are nested too deeply")
                .allow(&[&format!("at most {MAX_DEPTH} levels")]));
        }
        match self.next_char() {
            Some('(') => {
                self.at += 1;
                let inner = self.sum(depth + 1)?;
                self.expect(')')?;
                Ok(inner)
            }
            Some('-') => {
                self.at += 1;
                Ok(Expr::Negative(Box::new(self.factor(depth + 1)?)))
            }
            Some(c) if c.is_ascii_digit() || c == '.' => Ok(Expr::Quantity(self.quantity()?)),
            Some(c) if c.is_ascii_alphabetic() => self.call(),
            Some(_) => {
                let problem = format!("'{}' does not fit", head(self.rest()));
                Err(ExprError::new(at, problem).allow(&TERMS))
            }
            None => Err(ExprError::new(at, "the expression ends too early").allow(&TERMS)),
        }
    }

    fn call(&mut self) -> Result<Expr, ExprError> {
        let at = self.here();
        let word = self.word();
        self.expect('(').map_err(|error| {
            let problem = format!("'{word}' is not followed by '('");
            ExprError::new(error.at, problem).allow(&["a metric such as goodput(cubic)"])
        })?;
        match &word[..] {
            "harm" => return self.harm(),
            "model" => return Ok(Expr::Model(self.model(at)?)),
            _ => {}
        }
        // `jain()` is a metric; `jain(goodput(bulk))` pools one.
        let before = self.at;
        if let Some(pool) = Pool::named(&word) {
            let inner_at = self.here();
            let inner = self.word();
            if !inner.is_empty() && self.next_char() == Some('(') {
                self.at += 1;
                let metric = self.metric(inner, inner_at)?;
                self.expect(')')?;
                return Ok(Expr::Metric { pool: Some(pool), metric });
            }
            self.at = before;
        } else if !self.word().is_empty() && self.next_char() == Some('(') {
            let functions = Pool::ALL.map(|(name, _)| name);
            let problem = format!("unknown function '{word}'");
            return Err(
                ExprError::new(at, problem).allow(&[&functions[..], &["harm", "model"]].concat())
            );
        }
        self.at = before;
        Ok(Expr::Metric { pool: None, metric: self.metric(word, at)? })
    }

    /// Reads what follows the opening parenthesis of a harm, and the closing one.
    fn harm(&mut self) -> Result<Expr, ExprError> {
        let at = self.here();
        let Ok(Expr::Metric { pool, metric }) = self.call() else {
            return Err(ExprError::new(at, "harm is done to a metric").allow(&[HARM]));
        };
        let mut alone = Vec::new();
        while self.next_char() == Some(',') {
            self.at += 1;
            alone.push(self.elsewhere()?);
        }
        if alone.is_empty() {
            let problem = "the scenario without the harm is missing";
            return Err(ExprError::new(self.here(), problem).allow(&[HARM]));
        }
        self.expect(')')?;
        Ok(Expr::Harm { pool, metric, alone })
    }

    /// Reads what follows the opening parenthesis of a closed form, and the closing one.
    fn model(&mut self, at: usize) -> Result<ModelRef, ExprError> {
        let name = self.name();
        let (formula, output) = match name.split_once('.') {
            Some((formula, output)) => (formula.to_owned(), Some(output.to_owned())),
            None => (name, None),
        };
        let mut params = Vec::new();
        while self.next_char() == Some(',') {
            self.at += 1;
            let at = self.here();
            let name = self.name();
            if name.is_empty() {
                return Err(ExprError::new(at, "a parameter is missing").allow(&[MODEL]));
            }
            self.expect('=')?;
            let (value, is_quoted) = self.given()?;
            params.push(ModelParam { name, value, is_quoted, at });
        }
        self.expect(')')?;
        Ok(ModelRef { formula, at, output, params })
    }

    /// Reads what follows the opening parenthesis of a metric, and the closing one.
    fn metric(&mut self, metric: String, at: usize) -> Result<MetricRef, ExprError> {
        let of_at = self.here();
        let mut of = Some(self.name()).filter(|name| !name.is_empty());
        let mut elsewhere = Vec::new();
        // Without a name, the first word may already be a factor.
        if of.is_some() && self.next_char() == Some('=') {
            self.at = of_at;
            of = None;
            elsewhere.push(self.elsewhere()?);
        }
        while self.next_char() == Some(',') {
            self.at += 1;
            elsewhere.push(self.elsewhere()?);
        }
        self.expect(')')?;
        let during = if self.keyword("during") { Some(self.bounds()?) } else { None };
        Ok(MetricRef { metric, at, of, of_at, elsewhere, during })
    }

    fn elsewhere(&mut self) -> Result<Elsewhere, ExprError> {
        let at = self.here();
        let factor = self.name();
        if factor.is_empty() {
            return Err(ExprError::new(at, "a factor is missing")
                .allow(&["FACTOR = 'VALUE', such as path.queue = 'fq_codel'"]));
        }
        self.expect('=')?;
        let (value, _) = self.given()?;
        Ok(Elsewhere { factor, value, at })
    }

    /// A value in quotes, or up to the next comma or parenthesis; and whether it is in quotes.
    fn given(&mut self) -> Result<(String, bool), ExprError> {
        let at = self.here();
        let rest = self.rest();
        match rest.chars().next() {
            Some(quote @ ('\'' | '"')) => {
                let inner = &rest[1..];
                let end = inner.find(quote).ok_or_else(|| {
                    ExprError::new(at, "the quotation does not end").allow(&["FACTOR = 'VALUE'"])
                })?;
                self.at += end + 2;
                Ok((inner[..end].to_owned(), true))
            }
            _ => {
                let end = rest.find([',', ')']).unwrap_or(rest.len());
                self.at += end;
                Ok((rest[..end].trim().to_owned(), false))
            }
        }
    }

    /// Two quantities with `..` between; a unit of the second counts for both.
    fn bounds(&mut self) -> Result<(Quantity, Quantity), ExprError> {
        let mut low = self.signed()?;
        let at = self.here();
        if !self.rest().starts_with("..") {
            return Err(ExprError::new(at, "an upper bound is missing").allow(&["LOW..HIGH UNIT"]));
        }
        self.at += 2;
        let high = self.signed()?;
        low.unit = low.unit.or(high.unit);
        if low.number * scale(&low) > high.number * scale(&high) {
            return Err(ExprError::new(low.at, "the lower bound is above the upper one")
                .allow(&["LOW..HIGH UNIT"]));
        }
        Ok((low, high))
    }

    fn signed(&mut self) -> Result<Quantity, ExprError> {
        let at = self.here();
        if self.next_char() != Some('-') {
            return self.quantity();
        }
        self.at += 1;
        let quantity = self.quantity()?;
        Ok(Quantity { number: -quantity.number, at, ..quantity })
    }

    fn quantity(&mut self) -> Result<Quantity, ExprError> {
        let at = self.here();
        let rest = self.rest();
        let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
        let bytes = rest.as_bytes();
        let mut end = 0;
        while is_digit(bytes.get(end)) {
            end += 1;
        }
        // A point counts only before a digit: `6..8` is a range.
        if bytes.get(end) == Some(&b'.') && is_digit(bytes.get(end + 1)) {
            end += 1;
            while is_digit(bytes.get(end)) {
                end += 1;
            }
        }
        // A letter that no exponent follows begins a unit.
        if matches!(bytes.get(end), Some(b'e' | b'E')) && end > 0 {
            let digits = end + 1 + usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            if is_digit(bytes.get(digits)) {
                end = digits;
                while is_digit(bytes.get(end)) {
                    end += 1;
                }
            }
        }
        let number: f64 =
            rest[..end].parse().ok().filter(|number: &f64| number.is_finite()).ok_or_else(
                || {
                    ExprError::new(at, format!("'{}' is no number", head(rest)))
                        .allow(&["digits, such as 5 or 0.5"])
                },
            )?;
        self.at += end;
        let unit_at = self.here();
        let unit = self.unit();
        // 'in' follows a value, never a number.
        let unit = match unit {
            "" => None,
            unit => {
                self.at = unit_at + unit.len();
                Some(Unit::parse(unit).map_err(|problem| ExprError { at: unit_at, problem })?)
            }
        };
        Ok(Quantity { number, unit, at })
    }

    /// The letters after a number, and the other characters of units.
    fn unit(&mut self) -> &'a str {
        self.here();
        let rest = self.rest();
        if rest.starts_with('%') {
            return &rest[..1];
        }
        let letters = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
        let is_per_second = rest[letters..].starts_with("/s")
            && !rest[letters + 2..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
        match &rest[..letters] {
            "in" => "",
            "" => "",
            _ if is_per_second => &rest[..letters + 2],
            letters => letters,
        }
    }

    /// What follows `±`, which may also be written `+/-`.
    fn tolerance(&mut self) -> Result<Quantity, ExprError> {
        let at = self.here();
        let sign = TOLERANCES.into_iter().find(|sign| self.rest().starts_with(sign));
        let sign = sign.ok_or_else(|| {
            ExprError::new(at, "a tolerance is missing").allow(&["± 10 %", "± 2ms"])
        })?;
        self.at += sign.len();
        self.quantity()
    }

    fn relation(&mut self) -> Option<Relation> {
        self.here();
        let symbols = [
            ("<=", Relation::AtMost),
            (">=", Relation::AtLeast),
            ("≤", Relation::AtMost),
            ("≥", Relation::AtLeast),
            ("<", Relation::Less),
            (">", Relation::Greater),
        ];
        let (symbol, relation) =
            symbols.into_iter().find(|(symbol, _)| self.rest().starts_with(symbol))?;
        self.at += symbol.len();
        Some(relation)
    }

    fn keyword(&mut self, keyword: &str) -> bool {
        self.here();
        let Some(after) = self.rest().strip_prefix(keyword) else {
            return false;
        };
        let is_whole = !after.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        if is_whole {
            self.at += keyword.len();
        }
        is_whole
    }

    /// A metric's name.
    fn word(&mut self) -> String {
        self.take(|c| c.is_ascii_alphanumeric() || c == '_')
    }

    /// The name of a flow, queue or factor.
    fn name(&mut self) -> String {
        self.take(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '*'))
    }

    fn take(&mut self, is_part: impl Fn(char) -> bool) -> String {
        self.here();
        let rest = self.rest();
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        self.at += end;
        rest[..end].to_owned()
    }

    fn expect(&mut self, wanted: char) -> Result<(), ExprError> {
        let at = self.here();
        if self.next_char() == Some(wanted) {
            self.at += wanted.len_utf8();
            return Ok(());
        }
        let problem = match self.rest() {
            "" => format!("'{wanted}' is missing at the end"),
            rest => format!("'{}' stands where '{wanted}' should", head(rest)),
        };
        Err(ExprError::new(at, problem))
    }

    fn next_char(&mut self) -> Option<char> {
        self.here();
        self.rest().chars().next()
    }

    /// Skips blanks and returns the position after them.
    fn here(&mut self) -> usize {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        self.at
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }
}

fn scale(quantity: &Quantity) -> f64 {
    quantity.unit.map_or(1.0, |unit| unit.scale)
}

/// The first word of a text, for an error.
fn head(text: &str) -> &str {
    let end = text.char_indices().skip(1).find(|(_, c)| c.is_whitespace() || "(),".contains(*c));
    &text[..end.map_or(text.len(), |(end, _)| end)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_range_needs_no_blanks_and_its_unit_counts_for_both_ends() {
        let Ok(Claim::Within { low, high, .. }) = Claim::parse("goodput(cubic) in 6..8.5 Mbps")
        else {
            panic!("no range");
        };
        assert_eq!((low.number, high.number), (6.0, 8.5));
        assert_eq!(low.unit, high.unit);
        assert_eq!(high.unit.map(|unit| unit.name), Some("Mbit/s"));
    }

    #[test]
    fn numbers_may_have_exponents() {
        for (text, number, unit) in [
            ("goodput(a) > 1e3 kbps", 1e3, Some("kbit/s")),
            ("goodput(a) > 2.5E-1Mbps", 0.25, Some("Mbit/s")),
            ("goodput(a) > 1e+2", 100.0, None),
        ] {
            let Ok(Claim::Compare { right: Expr::Quantity(right), .. }) = Claim::parse(text) else {
                panic!("{text}");
            };
            assert_eq!((right.number, right.unit.map(|unit| unit.name)), (number, unit), "{text}");
        }
    }

    #[test]
    fn names_may_have_hyphens_and_minus_still_subtracts() {
        let claim = Claim::parse("rtt_p50(bbr3-linux) - rtt_p50(a.1) < 2ms").unwrap();
        let Claim::Compare { left: Expr::Binary { operator, left, .. }, .. } = claim else {
            panic!("no difference");
        };
        assert_eq!(operator, Operator::Minus);
        assert!(
            matches!(*left, Expr::Metric { ref metric, .. } if metric.of.as_deref() == Some("bbr3-linux"))
        );
    }

    #[test]
    fn a_metric_may_be_taken_from_another_scenario() {
        let claim = Claim::parse(
            "rtt_p50(a, path.queue = 'cake bandwidth 10mbit') < jain(path.queue=fq_codel)",
        );
        let Ok(Claim::Compare { left, right, .. }) = claim else { panic!("{claim:?}") };
        let elsewhere = |expr| match expr {
            Expr::Metric { metric, .. } => metric.elsewhere[0].clone(),
            _ => panic!("no metric"),
        };
        assert_eq!(elsewhere(left).value, "cake bandwidth 10mbit");
        let right = elsewhere(right);
        assert_eq!((&right.factor[..], &right.value[..]), ("path.queue", "fq_codel"));
    }

    #[test]
    fn a_metric_may_be_of_a_part_of_the_run() {
        let claim = Claim::parse("max(cwnd(a) during 500 ms..2 s) in 6..8").unwrap();
        let Claim::Within { value: Expr::Metric { pool, metric }, .. } = claim else {
            panic!("no metric");
        };
        let (from, to) = metric.during.expect("a part");
        assert_eq!((pool, from.number, to.number), (Some(Pool::Max), 500.0, 2.0));
        assert_eq!([from, to].map(|end| end.unit.map(|unit| unit.name)), [Some("ms"), Some("s")]);
    }

    #[test]
    fn pools_and_metrics_of_the_same_name_are_told_apart() {
        let left = |text| match Claim::parse(text).unwrap() {
            Claim::Compare { left: Expr::Metric { pool, metric }, .. } => (pool, metric.metric),
            other => panic!("{other:?}"),
        };
        assert_eq!(left("jain() > 0.9"), (None, "jain".into()));
        assert_eq!(left("jain(goodput(bulk)) > 0.9"), (Some(Pool::Jain), "goodput".into()));
    }

    #[test]
    fn products_bind_tighter_than_sums() {
        let claim = Claim::parse("1 + 2 * 3 - 4 / 2 > 0").unwrap();
        let Claim::Compare { left, .. } = claim else { panic!() };
        fn value(expr: &Expr) -> f64 {
            match expr {
                Expr::Quantity(quantity) => quantity.number,
                Expr::Negative(inner) => -value(inner),
                Expr::Binary { operator, left, right, .. } => {
                    let (left, right) = (value(left), value(right));
                    match operator {
                        Operator::Plus => left + right,
                        Operator::Minus => left - right,
                        Operator::Times => left * right,
                        Operator::Over => left / right,
                    }
                }
                Expr::Metric { .. } | Expr::Harm { .. } | Expr::Model(_) => panic!(),
            }
        }
        assert_eq!(value(&left), 5.0);
    }

    #[test]
    fn mistakes_are_found_where_they_are() {
        for (text, at, words) in [
            ("goodput(cubic)", 14, "comparison"),
            (
                "goodput(cubic) == 6 Mbps",
                15,
                "'==' is no comparison of claims (allowed: in LOW..HIGH",
            ),
            ("2 * abs(goodput(cubic)) > 1", 4, "unknown function 'abs' (allowed: min, max"),
            ("goodput(cubic) > 1e kbps", 18, "unknown unit 'e'"),
            ("goodput cubic > 1", 8, "not followed by '('"),
            ("goodput(cubic > 1", 14, "'>' stands where ')'"),
            ("goodput(cubic) in 6 Mbps", 24, "upper bound"),
            ("goodput(cubic) in 8..6 Mbps", 18, "above the upper"),
            ("goodput(cubic) > 6 Mbqs", 19, "did you mean 'mbps'"),
            ("goodput(cubic) > 6 Mbps 7", 24, "follows a complete"),
            ("", 0, "ends too early"),
            ("> 3", 0, "does not fit"),
        ] {
            let error = Claim::parse(text).unwrap_err();
            assert!(error.problem.to_string().contains(words), "{text}: {}", error.problem);
            assert_eq!(error.at, at, "{text}: {}", error.problem);
        }
    }

    #[test]
    fn deep_nesting_is_an_error_and_no_overflow() {
        let text = "(".repeat(100_000);
        assert!(Claim::parse(&text).unwrap_err().problem.to_string().contains("too deeply"));
        let text = format!("{}1 > 0", "-".repeat(100_000));
        assert!(Claim::parse(&text).is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "\\PC{0,60}") {
            let _ = Claim::parse(&text);
        }

        #[test]
        fn no_mixture_of_words_makes_the_parser_panic(
            words in prop::collection::vec(
                prop::sample::select(vec![
                    "goodput", "(", ")", "cubic", "in", "..", "6", ".5", "Mbps", "<=", ">", "-",
                    "*", "/", ",", "=", "'", "min", "µs", "/s", "≥", " ", "during",
                ]),
                0..24,
            )
        ) {
            let _ = Claim::parse(&words.concat());
        }
    }
}
