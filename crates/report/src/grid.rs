//! A table of the page, which can also be written as Markdown or for LaTeX.

use std::fmt::Write;

use crate::markup::Esc;

#[derive(Default)]
pub(crate) struct Grid {
    /// Classes of its style sheet.
    pub(crate) class: &'static str,
    /// Above it; may be empty.
    pub(crate) caption: String,
    /// What the first columns say of a row: `queue`.
    pub(crate) corner: Vec<String>,
    /// What neighbouring columns have in common, and how many they are. It is empty, or covers all columns.
    pub(crate) above: Vec<(String, usize)>,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
}

#[derive(Default)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// What a pointer at it is told; may be empty.
    pub(crate) title: String,
}

pub(crate) struct Row {
    /// One for each part of the corner.
    pub(crate) heads: Vec<RowHead>,
    pub(crate) cells: Vec<Cell>,
}

#[derive(Default, PartialEq, Eq, Clone)]
pub(crate) struct RowHead {
    /// Bold, before the rest; may be empty.
    pub(crate) strong: String,
    pub(crate) text: String,
}

#[derive(Default)]
pub(crate) struct Cell {
    /// Of the element, each after a space.
    pub(crate) attributes: String,
    /// What is in the element.
    pub(crate) html: String,
    /// The same in words.
    pub(crate) text: String,
}

impl Cell {
    /// A cell for which there is no value; `why` may be empty.
    pub(crate) fn none(why: &str) -> Self {
        let small =
            if why.is_empty() { String::new() } else { format!(" <small>{}</small>", Esc(why)) };
        Self {
            attributes: " class=\"none\"".to_owned(),
            html: format!("–{small}"),
            text: if why.is_empty() { "–".to_owned() } else { format!("– ({why})") },
        }
    }
}

impl Grid {
    pub(crate) fn html(&self) -> String {
        let mut out = format!("<div class=\"wide\"><table class=\"{}\">", self.class);
        if !self.caption.is_empty() {
            let _ = write!(out, "<caption>{}</caption>", Esc(&self.caption));
        }
        out += "<thead>";
        if !self.above.is_empty() {
            out += "<tr>";
            self.corner.iter().for_each(|_| out += "<td></td>");
            for (name, columns) in &self.above {
                let _ = write!(
                    out,
                    "<th scope=\"colgroup\" colspan=\"{columns}\" class=\"factor\">{}</th>",
                    Esc(name)
                );
            }
            out += "</tr>";
        }
        out += "<tr>";
        for name in &self.corner {
            let _ = write!(out, "<th scope=\"col\" class=\"factor\">{}</th>", Esc(name));
        }
        for Column { name, title } in &self.columns {
            let title =
                if title.is_empty() { String::new() } else { format!(" title=\"{}\"", Esc(title)) };
            let _ = write!(out, "<th scope=\"col\"{title}>{}</th>", Esc(name));
        }
        out += "</tr></thead><tbody>";
        for (at, row) in self.rows.iter().enumerate() {
            out += "<tr>";
            for (part, RowHead { strong, text }) in row.heads.iter().enumerate() {
                let Some(rows) = self.spans(at, part) else { continue };
                let span = if rows > 1 { format!(" rowspan=\"{rows}\"") } else { String::new() };
                let strong = match strong.is_empty() {
                    true => String::new(),
                    false => format!("<b>{}</b> ", Esc(strong)),
                };
                let _ = write!(out, "<th scope=\"row\"{span}>{strong}{}</th>", Esc(text));
            }
            for Cell { attributes, html, .. } in &row.cells {
                let _ = write!(out, "<td{attributes}>{html}</td>");
            }
            out += "</tr>";
        }
        out + "</tbody></table></div>"
    }

    /// Over how many rows the head at this place reaches; `None` if that of a row above reaches here.
    /// A row's last head is of this row alone.
    fn spans(&self, row: usize, part: usize) -> Option<usize> {
        let heads = |row: usize| &self.rows[row].heads;
        if part + 1 == heads(row).len() {
            return Some(1);
        }
        let is_same = |other: usize| heads(other)[..=part] == heads(row)[..=part];
        if row > 0 && is_same(row - 1) {
            return None;
        }
        Some((row..self.rows.len()).take_while(|other| is_same(*other)).count())
    }

    /// Heads and cells of a row as text. A head that is written above is left out.
    fn words(
        &self,
        row: usize,
        escaped: fn(&str) -> String,
        strong: impl Fn(&str) -> String,
    ) -> Vec<String> {
        let Row { heads, cells } = &self.rows[row];
        let head = |(part, head): (usize, &RowHead)| {
            let text = escaped(&head.text);
            match (self.spans(row, part), head.strong.is_empty()) {
                (None, _) => String::new(),
                (_, true) => text,
                (_, false) => format!("{} {text}", strong(&escaped(&head.strong))),
            }
        };
        let cells = cells.iter().map(|cell| escaped(&cell.text));
        heads.iter().enumerate().map(head).chain(cells).collect()
    }

    /// For a page in Markdown, as GitHub reads it. There is one line of heads, so the first of the columns with something in common says what that is.
    pub(crate) fn markdown(&self) -> String {
        let mut out = String::new();
        if !self.caption.is_empty() {
            let _ = write!(out, "{}\n\n", markdown(&self.caption));
        }
        let mut heads: Vec<String> = self.corner.iter().map(|name| markdown(name)).collect();
        heads.extend(self.columns.iter().map(|column| markdown(&column.name)));
        let mut at = self.corner.len();
        for (name, columns) in &self.above {
            let (name, head) = (markdown(name), &mut heads[at]);
            *head = if head.is_empty() { name } else { format!("{name}: {head}") };
            at += columns;
        }
        line(&mut out, &heads);
        let sides = self.corner.iter().map(|_| "---").chain(self.columns.iter().map(|_| "---:"));
        let _ = writeln!(out, "|{}|", sides.collect::<Vec<_>>().join("|"));
        for row in 0..self.rows.len() {
            line(&mut out, &self.words(row, markdown, |text| format!("**{text}**")));
        }
        out
    }

    /// A `tabular` with the rules of the package booktabs.
    pub(crate) fn latex(&self) -> String {
        let mut out = String::new();
        if !self.caption.is_empty() {
            let _ = writeln!(out, "% {}", self.caption.replace(char::is_control, " "));
        }
        let sides = "l".repeat(self.corner.len()) + &"r".repeat(self.columns.len());
        let _ = writeln!(out, "\\begin{{tabular}}{{{sides}}}\n\\toprule");
        if !self.above.is_empty() {
            let mut heads = vec![String::new(); self.corner.len()];
            let mut rules = String::new();
            let mut at = self.corner.len();
            for (name, columns) in &self.above {
                heads.push(format!("\\multicolumn{{{columns}}}{{c}}{{{}}}", latex(name)));
                let _ = write!(rules, "\\cmidrule(lr){{{}-{}}}", at + 1, at + columns);
                at += columns;
            }
            let _ = writeln!(out, "{} \\\\\n{rules}", heads.join(" & "));
        }
        let names = self.corner.iter().chain(self.columns.iter().map(|column| &column.name));
        let names: Vec<String> = names.map(|name| latex(name)).collect();
        let _ = writeln!(out, "{} \\\\\n\\midrule", names.join(" & "));
        for row in 0..self.rows.len() {
            let cells = self.words(row, latex, |text| format!("\\textbf{{{text}}}"));
            let _ = writeln!(out, "{} \\\\", cells.join(" & "));
        }
        out + "\\bottomrule\n\\end{tabular}\n"
    }
}

fn line(out: &mut String, cells: &[String]) {
    let _ = writeln!(out, "| {} |", cells.join(" | "));
}

/// Text in a cell of Markdown. An underscore between letters is none of its signs.
fn markdown(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\\' | '|' | '*' | '`' | '<' | '[' | ']' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// Text for LaTeX, with the signs of the page's tables as mathematics.
fn latex(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => out.extend(['\\', c]),
            '\\' => out += "\\textbackslash{}",
            '~' => out += "\\textasciitilde{}",
            '^' => out += "\\textasciicircum{}",
            '<' => out += "$<$",
            '>' => out += "$>$",
            '±' => out += "$\\pm$",
            '−' => out += "$-$",
            '–' => out += "--",
            '·' => out += "$\\cdot$",
            'µ' | 'μ' => out += "\\textmu{}",
            '✓' => out += "\\checkmark{}",
            '✗' => out += "$\\times$",
            '▲' => out += "$\\blacktriangle$",
            '∞' => out += "$\\infty$",
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid {
        let head = |text: &str| RowHead { text: text.into(), ..RowHead::default() };
        let cell =
            |text: &str| Cell { html: Esc(text).to_string(), text: text.into(), ..Cell::default() };
        let row = |queue: &str, cca: &str, cells: [&str; 3]| Row {
            heads: vec![head(queue), head(cca)],
            cells: cells.into_iter().map(cell).collect(),
        };
        let column = |name: &str| Column { name: name.into(), ..Column::default() };
        Grid {
            class: "numbers",
            corner: vec!["queue".into(), "cca".into()],
            above: vec![("goodput, Mbit/s".into(), 2), ("index".into(), 1)],
            columns: vec![column("a_b"), column("c|d"), column("")],
            rows: vec![
                row("fifo", "bbr", ["1 ± 2", "<0.01", "1"]),
                row("fifo", "cubic", ["3", "4", "–"]),
                row("cake", "cubic", ["5", "6 %", "1"]),
            ],
            ..Grid::default()
        }
    }

    #[test]
    fn a_head_that_rows_share_is_written_once() {
        let html = grid().html();
        assert!(html.contains("<th scope=\"row\" rowspan=\"2\">fifo</th>"), "{html}");
        assert_eq!(html.matches("fifo").count(), 1);
        // The last of a row's heads is that row's.
        assert_eq!(html.matches(">cubic<").count(), 2);
    }

    #[test]
    fn markdown_has_a_line_of_heads() {
        let expected = "\
| queue | cca | goodput, Mbit/s: a_b | c\\|d | index |
|---|---|---:|---:|---:|
| fifo | bbr | 1 ± 2 | \\<0.01 | 1 |
|  | cubic | 3 | 4 | – |
| cake | cubic | 5 | 6 % | 1 |
";
        assert_eq!(grid().markdown(), expected);
    }

    #[test]
    fn latex_has_rules_below_what_columns_share() {
        let expected = "\
\\begin{tabular}{llrrr}
\\toprule
 &  & \\multicolumn{2}{c}{goodput, Mbit/s} & \\multicolumn{1}{c}{index} \\\\
\\cmidrule(lr){3-4}\\cmidrule(lr){5-5}
queue & cca & a\\_b & c|d &  \\\\
\\midrule
fifo & bbr & 1 $\\pm$ 2 & $<$0.01 & 1 \\\\
 & cubic & 3 & 4 & -- \\\\
cake & cubic & 5 & 6 \\% & 1 \\\\
\\bottomrule
\\end{tabular}
";
        assert_eq!(grid().latex(), expected);
    }
}
