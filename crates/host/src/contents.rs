use alloc::vec::Vec;

use sojourn_core::ContentId;

/// The bytes that packets carry, for endpoints that read them. A packet has a handle
/// ([`sojourn_core::Body::Opaque`]); the engine owns the bytes and frees them when the packet has
/// arrived or is lost.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    places: Vec<Place>,
    free: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Place {
    bytes: Vec<u8>,
    /// Wire packets that still have the handle. A queue may cut a packet into its segments.
    segments: u32,
}

impl Contents {
    /// Keeps `bytes` for a packet of `segments` segments.
    pub fn put(&mut self, bytes: Vec<u8>, segments: u16) -> ContentId {
        let place = Place { bytes, segments: u32::from(segments) };
        match self.free.pop() {
            Some(free) => {
                self.places[free as usize] = place;
                ContentId(free)
            }
            None => {
                self.places.push(place);
                ContentId(self.places.len() as u32 - 1)
            }
        }
    }

    /// The bytes of a packet; empty once they are freed.
    pub fn bytes(&self, content: ContentId) -> &[u8] {
        self.places.get(content.0 as usize).map_or(&[], |place| &place.bytes)
    }

    /// A packet of `segments` segments is gone. The last one frees the bytes.
    pub fn release(&mut self, content: ContentId, segments: u16) {
        let Some(place) = self.places.get_mut(content.0 as usize) else { return };
        if place.segments == 0 {
            return;
        }
        place.segments = place.segments.saturating_sub(u32::from(segments));
        if place.segments == 0 {
            place.bytes = Vec::new();
            self.free.push(content.0);
        }
    }

    /// How many contents are kept.
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_kept_until_the_last_segment_is_gone() {
        let mut contents = Contents::default();
        let (one, two) = (contents.put(vec![1], 1), contents.put(vec![2; 3], 3));
        contents.release(two, 2);
        assert_eq!((contents.bytes(one), contents.bytes(two)), (&[1][..], &[2, 2, 2][..]));
        contents.release(two, 1);
        contents.release(two, 1);
        assert_eq!((contents.bytes(two), contents.len()), (&[][..], 1));
        assert_eq!(contents.put(vec![3], 1), two);
    }
}
