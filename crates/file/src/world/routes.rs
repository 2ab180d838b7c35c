//! The way through a free topology.

use std::collections::VecDeque;

use sojourn_core::{PortId, SpecError};

/// Nodes, and ports that lead from one to another.
#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: Vec<String>,
    /// From, to, port; in the order of the file.
    edges: Vec<(usize, usize, PortId)>,
    /// Of each node, the edges that begin there.
    leaving: Vec<Vec<usize>>,
}

impl Graph {
    pub(super) fn add_node(&mut self, name: &str) {
        self.nodes.push(name.to_owned());
        self.leaving.push(Vec::new());
    }

    pub(super) fn add_edge(&mut self, from: usize, to: usize, port: PortId) {
        self.leaving[from].push(self.edges.len());
        self.edges.push((from, to, port));
    }

    pub(super) fn nodes(&self) -> &[String] {
        &self.nodes
    }

    pub(super) fn node(&self, name: &str) -> Result<usize, SpecError> {
        self.nodes.iter().position(|node| node == name).ok_or_else(|| {
            SpecError::new(format!("no node is named '{name}'"))
                .near(name, self.nodes.iter().map(String::as_str))
                .allow(&self.nodes)
        })
    }

    /// Some nodes, as an error names them.
    pub(super) fn names(&self, nodes: &[usize]) -> String {
        let names = nodes.iter().map(|node| format!("'{}'", self.nodes[*node]));
        names.collect::<Vec<_>>().join(" or ")
    }

    /// The nodes to which `port` leads from a node: several if it is a medium.
    pub(super) fn behind(&self, node: usize, port: PortId) -> impl Iterator<Item = usize> {
        let edges = self.leaving[node].iter().map(|index| self.edges[*index]);
        edges.filter(move |(.., own)| *own == port).map(|(_, end, _)| end)
    }

    /// The ports that a packet can enter at a node.
    pub(super) fn ports_of(&self, node: usize) -> impl Iterator<Item = PortId> {
        self.leaving[node].iter().map(|index| self.edges[*index].2)
    }

    /// The way with the fewest ports. Among equals it is the one found first in the order of the file.
    pub(super) fn way(&self, from: usize, to: usize) -> Result<Vec<PortId>, SpecError> {
        // The edge by which each node was first reached.
        let mut reached: Vec<Option<usize>> = vec![None; self.nodes.len()];
        let mut next = VecDeque::from([from]);
        while let Some(node) = next.pop_front() {
            for index in &self.leaving[node] {
                let (_, end, _) = self.edges[*index];
                if end != from && reached[end].is_none() {
                    reached[end] = Some(*index);
                    next.push_back(end);
                }
            }
        }
        let mut links = Vec::new();
        let mut node = to;
        while node != from {
            let edge = reached[node].ok_or_else(|| {
                let there = (0..self.nodes.len()).filter(|node| reached[*node].is_some());
                SpecError::new(format!(
                    "no way leads from '{}' to '{}'",
                    self.nodes[from], self.nodes[to]
                ))
                .allow(there.map(|node| &self.nodes[node]))
            })?;
            links.push(self.edges[edge].2);
            node = self.edges[edge].0;
        }
        links.reverse();
        Ok(links)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(nodes: &[&str], edges: &[(&str, &str)]) -> Graph {
        let mut graph = Graph::default();
        nodes.iter().for_each(|node| graph.add_node(node));
        for (link, (from, to)) in edges.iter().enumerate() {
            let (from, to) = (graph.node(from).unwrap(), graph.node(to).unwrap());
            graph.add_edge(from, to, PortId(link as u16));
        }
        graph
    }

    #[test]
    fn the_way_with_the_fewest_links_is_taken() {
        let graph = graph(&["a", "b", "c"], &[("a", "b"), ("b", "c"), ("a", "c")]);
        assert_eq!(graph.way(0, 2), Ok(vec![PortId(2)]));
    }

    #[test]
    fn among_equal_ways_the_first_in_the_file_is_taken() {
        let edges = [("a", "x"), ("a", "y"), ("y", "b"), ("x", "b")];
        let graph = graph(&["a", "x", "y", "b"], &edges);
        assert_eq!(graph.way(0, 3), Ok(vec![PortId(0), PortId(3)]));
    }

    #[test]
    fn where_no_way_leads_is_said() {
        let graph = graph(&["a", "b"], &[("b", "a")]);
        assert!(graph.way(0, 1).unwrap_err().to_string().contains("from 'a' to 'b'"));
    }
}
