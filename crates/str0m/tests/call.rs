//! Calls between real endpoints: they hold the claims of the study beside this crate, and bad parameters are refused.

use std::path::Path;

use sojourn_study::results::{Kind, Verdict};
use sojourn_study::{Overrides, Study, runner};

#[test]
fn the_model_and_real_code_agree_where_the_study_says_so() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("study.toml");
    let registry = sojourn_str0m::registry().unwrap();
    let study =
        Study::load_with(&registry, &path, &Overrides::default()).unwrap_or_else(|e| panic!("{e}"));
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("study");
    let _ = std::fs::remove_dir_all(&out);
    let summary = runner::run(&study, &runner::Options::new(&out), &|_| {}).unwrap();
    assert_eq!(summary.failed, []);
    let claims = summary.claims.unwrap().claims;
    assert_eq!(claims.len(), 5);
    for claim in claims {
        assert_eq!(claim.verdict, Verdict::Holds, "{}: {:?}", claim.id, claim.checks);
    }
    let results = sojourn_study::results::Folder::open(&out).unwrap();
    let of_call = |metric: &str| -> Vec<f64> {
        let rows = results
            .table
            .rows
            .iter()
            .filter(|row| row.kind == Kind::Flow && row.name.starts_with("real"));
        rows.filter_map(|row| results.table.value(row, metric)).collect()
    };
    // Where nothing is lost every frame comes, but those under way at the ends of what is counted.
    let counts = of_call("frames_encoded").into_iter().zip(of_call("frames_rendered"));
    let mut whole = 0;
    for ((encoded, shown), loss) in counts.zip(of_call("loss_share")) {
        assert!(encoded > 2000.0 && shown > 0.0 && shown <= encoded + 30.0, "{shown} of {encoded}");
        if loss == 0.0 {
            whole += 1;
            assert!((shown - encoded).abs() <= 30.0, "{shown} of {encoded}");
        }
    }
    assert!(whole >= 60, "{whole}");
}

#[test]
fn parameters_out_of_bounds_are_refused_with_what_is_allowed() {
    let registry = sojourn_str0m::registry().unwrap();
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("study.toml")).unwrap();
    for (wrong, said) in [
        ("fps=0", "1 to 240"),
        ("share=2", "0.05 to 1"),
        ("max_rate=-1", "negative"),
        ("speed=3", "spread"),
    ] {
        let study = text.replacen(
            "app  = \"str0m max_rate=5mbit share=0.8\"",
            &format!("app = \"str0m {wrong}\""),
            1,
        );
        assert_ne!(study, text);
        let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("{}.toml", wrong.replace('=', "-")));
        std::fs::write(&path, study).unwrap();
        let error =
            Study::load_with(&registry, &path, &Overrides::default()).map(|_| ()).unwrap_err();
        let error = error.to_string();
        assert!(error.contains(said), "{wrong}: {error}");
    }
}
