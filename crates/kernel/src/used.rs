//! Which kernels take part in a study, for its results.

use std::path::PathBuf;

use sojourn_core::{Params, Words};
use sojourn_scenario::App;
use sojourn_study::Study;

use crate::app::Kernel;
use crate::engine::Kernels;
use crate::install;
use crate::router::Router;
use crate::settings::kernel_digest;

/// Path, release and digest of each guest kernel that the scenarios name, as engine, application or queue.
pub fn used(study: &Study) -> Vec<String> {
    let mut named: Vec<Option<String>> = Vec::new();
    let mut add = |kernel: Option<String>| {
        if !named.contains(&kernel) {
            named.push(kernel);
        }
    };
    let plan = study.plan();
    for (at, planned) in plan.scenarios.iter().enumerate() {
        // It ends with the version and the digest, which are no parameters.
        let mut words = planned.engine.as_deref().unwrap_or_default().split_whitespace();
        if words.next() == Some(Kernels::NAME) {
            add(words.find_map(|word| word.strip_prefix("kernel=").map(str::to_owned)));
        }
        let Some(scenario) = study.scenarios.get(at) else { continue };
        for flow in &scenario.scenario.flows {
            if let App::External(app) = &flow.app
                && let Some(kernel) = app.0.as_any().and_then(|app| app.downcast_ref::<Kernel>())
            {
                add(kernel.kernel.clone());
            }
        }
        for link in &scenario.scenario.links {
            let written = link.queue.to_string();
            let mut words = Words::new(&written);
            if words.next() == Some(Router::NAME)
                && let Ok(router) = Router::parse(&mut words)
            {
                add(router.kernel);
            }
        }
    }
    let paths =
        named.iter().filter_map(|kernel| Some((kernel, install::kernel(kernel.as_deref()).ok()?)));
    paths.map(|(kernel, path)| described(kernel.as_deref(), path)).collect()
}

fn described(kernel: Option<&str>, path: PathBuf) -> String {
    let release = install::release(&path);
    let release = release.map_or_else(|_| String::new(), |release| format!("Linux {release}, "));
    format!("{}: {release}digest {}", path.display(), kernel_digest(kernel))
}
