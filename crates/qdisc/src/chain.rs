//! Lists of flows: every flow is in one list or in none, and moves between them in constant time.

/// Doubly linked rings through an array; each list is an extra node behind the flows.
#[derive(Debug)]
pub(crate) struct Chains {
    links: Vec<Link>,
    flows: u32,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    next: u32,
    previous: u32,
}

/// A list of a [`Chains`], by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct List(pub(crate) u32);

impl Chains {
    pub(crate) fn new(flows: u32, lists: u32) -> Self {
        let links = (0..flows + lists).map(|node| Link { next: node, previous: node }).collect();
        Self { links, flows }
    }

    #[inline]
    pub(crate) fn first(&self, list: List) -> Option<u32> {
        let next = self.links[(self.flows + list.0) as usize].next;
        (next < self.flows).then_some(next)
    }

    #[inline]
    pub(crate) fn is_linked(&self, flow: u32) -> bool {
        self.links[flow as usize].next != flow
    }

    /// Moves the flow to the end of the list, from wherever it was.
    #[inline]
    pub(crate) fn move_to_back(&mut self, list: List, flow: u32) {
        self.unlink(flow);
        let head = self.flows + list.0;
        let last = self.links[head as usize].previous;
        self.links[flow as usize] = Link { next: head, previous: last };
        self.links[last as usize].next = flow;
        self.links[head as usize].previous = flow;
    }

    #[inline]
    pub(crate) fn unlink(&mut self, flow: u32) {
        let Link { next, previous } = self.links[flow as usize];
        self.links[previous as usize].next = next;
        self.links[next as usize].previous = previous;
        self.links[flow as usize] = Link { next: flow, previous: flow };
    }

    /// The flow after this one in the list, and after the last one the first.
    #[inline]
    pub(crate) fn next_around(&self, list: List, flow: u32) -> u32 {
        let head = self.flows + list.0;
        match self.links[flow as usize].next {
            next if next == head => self.links[head as usize].next,
            next => next,
        }
    }

    /// Makes a flow of the list its first one, as if those before it had moved to the back.
    #[inline]
    pub(crate) fn rotate_to(&mut self, list: List, flow: u32) {
        let head = self.flows + list.0;
        self.unlink(head);
        let last = self.links[flow as usize].previous;
        self.links[head as usize] = Link { next: flow, previous: last };
        self.links[last as usize].next = head;
        self.links[flow as usize].previous = head;
    }

    pub(crate) fn iter(&self, list: List) -> impl Iterator<Item = u32> {
        let mut next = self.links[(self.flows + list.0) as usize].next;
        std::iter::from_fn(move || {
            let flow = next;
            if flow >= self.flows {
                return None;
            }
            next = self.links[flow as usize].next;
            Some(flow)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_in_one_list_at_a_time_and_keeps_its_turn() {
        let (new, old) = (List(0), List(1));
        let mut chains = Chains::new(4, 2);
        for flow in [2, 0, 3] {
            chains.move_to_back(new, flow);
        }
        chains.move_to_back(old, 0);
        assert_eq!(chains.iter(new).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(chains.iter(old).collect::<Vec<_>>(), [0]);
        assert!(chains.is_linked(0) && !chains.is_linked(1));
        chains.unlink(2);
        assert_eq!(chains.first(new), Some(3));
        chains.unlink(3);
        assert_eq!(chains.first(new), None);
    }

    #[test]
    fn rotating_is_moving_the_first_ones_to_the_back() {
        let list = List(1);
        let mut chains = Chains::new(5, 2);
        for flow in [4, 1, 3, 0] {
            chains.move_to_back(list, flow);
        }
        chains.rotate_to(list, 3);
        assert_eq!(chains.iter(list).collect::<Vec<_>>(), [3, 0, 4, 1]);
        chains.rotate_to(list, 3);
        assert_eq!(chains.iter(list).collect::<Vec<_>>(), [3, 0, 4, 1]);
        assert_eq!(chains.next_around(list, 1), 3);
        chains.unlink(3);
        assert_eq!(chains.iter(list).collect::<Vec<_>>(), [0, 4, 1]);
        for flow in [0, 4] {
            chains.unlink(flow);
        }
        chains.rotate_to(list, 1);
        assert_eq!(chains.iter(list).collect::<Vec<_>>(), [1]);
    }
}
