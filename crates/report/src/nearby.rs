//! Finds things that are asked for in about the order in which they are listed, as rows of results are in the order of a
//! scenario's flows.

/// Where the first is that fits, from `next` on and then from the beginning. `next` becomes the one behind it.
pub(crate) fn nearby<T>(all: &[T], next: &mut usize, fits: impl Fn(&T) -> bool) -> Option<usize> {
    let (before, behind) = all.split_at((*next).min(all.len()));
    let at = behind.iter().position(&fits).map(|at| before.len() + at);
    let at = at.or_else(|| before.iter().position(&fits))?;
    *next = at + 1;
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_in_order_is_found_at_once() {
        let all: Vec<u32> = (0..1000).collect();
        let looks = std::cell::Cell::new(0);
        let mut next = 0;
        for wanted in all.iter().chain(&all) {
            let fits = |one: &u32| {
                looks.set(looks.get() + 1);
                one == wanted
            };
            assert_eq!(nearby(&all, &mut next, fits), Some(*wanted as usize));
        }
        assert_eq!(looks.get(), 2000);
    }

    #[test]
    fn what_comes_in_another_order_is_found() {
        let all = ["a", "b", "c"];
        let mut next = 0;
        for (wanted, at) in [("c", Some(2)), ("a", Some(0)), ("d", None), ("b", Some(1))] {
            assert_eq!(nearby(&all, &mut next, |one| *one == wanted), at, "{wanted}");
        }
        assert_eq!(nearby(&all[..0], &mut next, |one| *one == "a"), None);
    }
}
