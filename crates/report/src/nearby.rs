//! Finds things that are asked for in about the order in which they are listed, as rows of results are in the order of a
//! scenario's flows.

/// Where the first is that fits, from the one that was found last on and then from the beginning.
pub(crate) fn nearby<T>(all: &[T], last: &mut usize, fits: impl Fn(&T) -> bool) -> Option<usize> {
    let (before, behind) = all.split_at((*last).min(all.len()));
    let at = behind.iter().position(&fits).map(|at| before.len() + at);
    let at = at.or_else(|| before.iter().position(&fits))?;
    *last = at;
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_in_order_is_found_at_once() {
        let all: Vec<u32> = (0..1000).collect();
        let looks = std::cell::Cell::new(0);
        let mut last = 0;
        for wanted in all.iter().flat_map(|one| [one, one]).chain(&all) {
            let fits = |one: &u32| {
                looks.set(looks.get() + 1);
                one == wanted
            };
            assert_eq!(nearby(&all, &mut last, fits), Some(*wanted as usize));
        }
        // One or two for each.
        assert!(looks.get() < 6000, "{looks:?}");
    }

    #[test]
    fn what_comes_in_another_order_is_found() {
        let all = ["a", "b", "c"];
        let mut last = 0;
        for (wanted, at) in [("c", Some(2)), ("a", Some(0)), ("d", None), ("b", Some(1))] {
            assert_eq!(nearby(&all, &mut last, |one| *one == wanted), at, "{wanted}");
        }
        assert_eq!(nearby(&all[..0], &mut last, |one| *one == "a"), None);
    }
}
