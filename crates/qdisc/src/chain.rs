//! Lists of flows: every flow is in one list or in none, and moves between them in constant time.

/// Doubly linked rings through an array; each list is an extra node behind the flows. A flow's
/// node also holds what its turn is decided by, so that a round touches nothing else.
#[derive(Debug)]
pub(crate) struct Chains<T> {
    nodes: Vec<Node<T>>,
    flows: u32,
}

#[derive(Debug)]
struct Node<T> {
    next: u32,
    previous: u32,
    turn: T,
}

/// A list of a [`Chains`], by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct List(pub(crate) u32);

impl<T: Default> Chains<T> {
    pub(crate) fn new(flows: u32, lists: u32) -> Self {
        let node = |index| Node { next: index, previous: index, turn: T::default() };
        Self { nodes: (0..flows + lists).map(node).collect(), flows }
    }

    #[inline]
    pub(crate) fn turn(&self, flow: u32) -> &T {
        &self.nodes[flow as usize].turn
    }

    #[inline]
    pub(crate) fn turn_mut(&mut self, flow: u32) -> &mut T {
        &mut self.nodes[flow as usize].turn
    }

    #[inline]
    pub(crate) fn first(&self, list: List) -> Option<u32> {
        let next = self.nodes[(self.flows + list.0) as usize].next;
        (next < self.flows).then_some(next)
    }

    #[inline]
    pub(crate) fn is_linked(&self, flow: u32) -> bool {
        self.nodes[flow as usize].next != flow
    }

    /// Moves the flow to the end of the list, from wherever it was.
    #[inline]
    pub(crate) fn move_to_back(&mut self, list: List, flow: u32) {
        self.cut(flow);
        let head = self.flows + list.0;
        let last = std::mem::replace(&mut self.nodes[head as usize].previous, flow);
        self.nodes[last as usize].next = flow;
        let node = &mut self.nodes[flow as usize];
        (node.next, node.previous) = (head, last);
    }

    #[inline]
    pub(crate) fn unlink(&mut self, flow: u32) {
        self.cut(flow);
        let node = &mut self.nodes[flow as usize];
        (node.next, node.previous) = (flow, flow);
    }

    /// Joins the neighbours of a node, whose own links are left to the caller.
    #[inline]
    fn cut(&mut self, node: u32) {
        let Node { next, previous, .. } = self.nodes[node as usize];
        self.nodes[previous as usize].next = next;
        self.nodes[next as usize].previous = previous;
    }

    /// Goes round a list from one of its flows on, without end, until `stop` finds what it looks
    /// for; makes that flow the first one, as if those before it had moved to the back.
    #[inline]
    pub(crate) fn rotate_until(
        &mut self,
        list: List,
        from: u32,
        mut stop: impl FnMut(u32, &mut T) -> bool,
    ) -> u32 {
        let head = self.flows + list.0;
        let first = self.nodes[head as usize].next;
        let mut flow = from;
        loop {
            let node = &mut self.nodes[flow as usize];
            if stop(flow, &mut node.turn) {
                break;
            }
            flow = if node.next == head { first } else { node.next };
        }
        if flow != first {
            self.cut(head);
            let last = std::mem::replace(&mut self.nodes[flow as usize].previous, head);
            self.nodes[last as usize].next = head;
            let node = &mut self.nodes[head as usize];
            (node.next, node.previous) = (flow, last);
        }
        flow
    }

    pub(crate) fn iter(&self, list: List) -> impl Iterator<Item = u32> {
        let mut next = self.nodes[(self.flows + list.0) as usize].next;
        std::iter::from_fn(move || {
            let flow = next;
            if flow >= self.flows {
                return None;
            }
            next = self.nodes[flow as usize].next;
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
        let mut chains = Chains::<()>::new(4, 2);
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
        let mut chains = Chains::<u32>::new(5, 2);
        for flow in [4, 1, 3, 0] {
            chains.move_to_back(list, flow);
        }
        chains.rotate_until(list, 4, |flow, _| flow == 3);
        assert_eq!(chains.iter(list).collect::<Vec<_>>(), [3, 0, 4, 1]);
        chains.rotate_until(list, 3, |_, _| true);
        assert_eq!(chains.iter(list).collect::<Vec<_>>(), [3, 0, 4, 1]);
        chains.unlink(3);
        assert_eq!(chains.iter(list).collect::<Vec<_>>(), [0, 4, 1]);
        for flow in [0, 4] {
            chains.unlink(flow);
        }
        chains.rotate_until(list, 1, |_, _| true);
        assert_eq!(chains.iter(list).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn a_rotation_goes_round_as_often_as_it_takes() {
        let list = List(0);
        let mut chains = Chains::<u32>::new(3, 1);
        for flow in 0..3 {
            chains.move_to_back(list, flow);
        }
        let chosen = chains.rotate_until(list, 0, |_, visits| {
            *visits += 1;
            *visits == 4
        });
        assert_eq!(chosen, 0);
        assert_eq!((0..3).map(|flow| *chains.turn(flow)).collect::<Vec<_>>(), [4, 3, 3]);
    }
}
