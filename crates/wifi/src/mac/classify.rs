//! The access category of a packet (section 10.2.3.2, with the mapping of RFC 8325 section 4).

use super::edca::AccessCategory;

/// The access category of a differentiated services code point.
#[inline]
pub const fn access_category(dscp: u8) -> AccessCategory {
    const CATEGORIES: [AccessCategory; 64] = {
        let mut categories = [AccessCategory::Be; 64];
        let mut dscp = 0;
        while dscp < 64 {
            categories[dscp] = mapped(dscp as u8);
            dscp += 1;
        }
        categories
    };
    CATEGORIES[(dscp % 64) as usize]
}

const fn mapped(dscp: u8) -> AccessCategory {
    match dscp {
        // CS6, CS7, VOICE-ADMIT and EF.
        48 | 56 | 44 | 46 => AccessCategory::Vo,
        // CS5, CS4, AF4x, CS3 and AF3x.
        40 | 32 | 34 | 36 | 38 | 24 | 26 | 28 | 30 => AccessCategory::Vi,
        // CS1 and LE (RFC 8622).
        8 | 1 => AccessCategory::Bk,
        _ => AccessCategory::Be,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_points_have_the_categories_of_rfc_8325() {
        let of = |dscps: &[u8]| dscps.iter().map(|dscp| access_category(*dscp)).collect::<Vec<_>>();
        assert_eq!(of(&[46, 44, 48]), [AccessCategory::Vo; 3]);
        assert_eq!(of(&[34, 32, 26]), [AccessCategory::Vi; 3]);
        assert_eq!(of(&[0, 10, 18, 63]), [AccessCategory::Be; 4]);
        assert_eq!(of(&[8, 1]), [AccessCategory::Bk; 2]);
    }
}
